//! Requests started at fixed times: 100 per second, compared with a bare web server, and the load
//! profile of the system that requested the service first.

use std::time::Duration;

use super::Bench;
use super::contest::{Contestant, LEAST, Run};
use crate::baselines::Baseline;
use crate::pace::Pace;
use crate::report::{Goal, Row, Section};
use crate::stage::{Path, Stage};

/// Requests per second.
const RATE: f64 = 100.0;

/// What p50 should not exceed, in p50 of the minimum that remembers every number.
const GOAL: f64 = 1.5;

/// The milliseconds that p99 and p99.9 should not exceed.
const GOAL_MS: [f64; 2] = [2.0, 5.0];

/// 50 requests per second for this many parts of the time, then 100 for the rest.
const PROFILE: [(f64, u32); 2] = [(50.0, 3), (100.0, 1)];

/// The required figures, in milliseconds: typical and normal, and two percentiles.
const ASKED: [(&str, f64, f64); 4] = [
    ("typical (p50)", 50.0, 100.0),
    ("normal (p90)", 90.0, 500.0),
    ("p95", 95.0, 2_000.0),
    ("p99", 99.0, 5_000.0),
];

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let mut contestants = [
        Contestant::hot(&stage, Path::Redis, ""),
        // The cost of waking the generator and one server on this machine, and then Redis as well.
        Contestant::baseline(&stage, Baseline::Echo),
        Contestant::baseline(&stage, Baseline::IncrBehind),
    ];
    // A percentile of a thousand needs several thousand requests.
    let bench = Bench { measured: bench.measured * 4, ..bench.clone() };
    bench.contest(&bench.open(RATE), section, &mut contestants);
    let [ours, bare, least] = &contestants;
    let mut rows = ours.latencies("100 requests/s");
    for (row, most_ms) in rows[1..].iter_mut().zip(GOAL_MS) {
        row.goal = Some(Goal::AtMost(most_ms));
    }
    rows[2].note = ours.asked_and_answered();
    let p50 = |run: &Run| run.measured.latencies.percentile_ms(50.0);
    let [half, others @ ..] = rows;
    let half = half.per(ours.ratio(least, p50), LEAST).goal(Goal::AtMost(GOAL));
    let rows = [half].into_iter().chain(others);
    section.rows.extend(rows);
    section.rows.extend(bare.latencies("bare echo"));
    section.rows.extend(least.latencies(LEAST));

    let mut contestants = [Contestant::hot(&stage, Path::Redis, "")];
    let whole: u32 = PROFILE.iter().map(|(_, parts)| parts).sum();
    let part = (bench.warm_up + bench.measured) / whole;
    let pace = Pace::Open(PROFILE.map(|(rate, parts)| (rate, part * parts)).to_vec());
    let once = Bench { runs: 1, warm_up: Duration::ZERO, measured: part * whole, ..bench };
    once.contest(&pace, section, &mut contestants);
    let mut rows = ASKED.map(|(name, percent, most_ms)| {
        let latency_ms = contestants[0].percentile_ms(percent);
        let row = Row::new(format!("50/s, then 100/s: {name}"), latency_ms, "ms");
        row.goal(Goal::AtMost(most_ms))
    });
    rows[3].note = contestants[0].asked_and_answered();
    section.rows.extend(rows);
}
