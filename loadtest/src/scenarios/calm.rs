//! Requests started at fixed times: 100 per second beside a bare web server, and the profile of the
//! system that asked for the service first.

use std::time::Duration;

use super::Bench;
use super::contest::{Contestant, LEAST};
use crate::baselines::Baseline;
use crate::pace::{Pace, Phase};
use crate::report::{Reach, Row, Section};
use crate::stage::Path;
use crate::work::{Counters, Single};

/// Requests per second.
const RATE: f64 = 100.0;

/// Percentiles, and the milliseconds that they should not exceed.
const REACH: [(f64, f64); 3] = [(50.0, 0.5), (99.0, 2.0), (99.9, 5.0)];

/// 50 requests per second for so many parts of the time, then 100 for the rest of it.
const PROFILE: [(f64, u32); 2] = [(50.0, 3), (100.0, 1)];

/// What was asked for (R9.1), in milliseconds: typical and normal, and two percentiles.
const ASKED: [(&str, f64, f64); 4] = [
    ("typical (p50)", 50.0, 100.0),
    ("normal (p90)", 90.0, 500.0),
    ("p95", 95.0, 2_000.0),
    ("p99", 99.0, 5_000.0),
];

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "", &[]);
    let work = Single::new(Counters::in_turn(1), false);
    let echo = stage.baseline(Baseline::Echo);
    let bare = Contestant::baseline(&stage, &echo, Single::unchecked(Counters::in_turn(1)));
    let behind = stage.baseline(Baseline::IncrBehind);
    let least = Contestant::baseline(&stage, &behind, Single::new(Counters::in_turn(1), false));
    let mut contestants = [Contestant::service(&stage, &service, work), bare, least];
    // A percentile of a thousand needs some thousands.
    let bench = Bench { measured: bench.measured * 4, ..bench.clone() };
    bench.contest_at(&bench.open(RATE), section, &mut contestants);
    let rows = contestants[0].latencies("100 requests/s");
    let reached = rows.zip(REACH).map(|(row, (_, most_ms))| row.reach(Reach::AtMost(most_ms)));
    section.rows.extend(reached);
    note_last(section, &contestants[0]);
    // What waking the generator and one server takes on this machine, and then Redis as well.
    section.rows.extend(contestants[1].latencies("bare echo"));
    section.rows.extend(contestants[2].latencies(LEAST));

    let service = stage.service(Path::Redis, "", &[]);
    let work = Single::new(Counters::in_turn(1), false);
    let mut contestants = [Contestant::service(&stage, &service, work)];
    let whole: u32 = PROFILE.iter().map(|(_, parts)| parts).sum();
    let part = (bench.warm_up + bench.measured) / whole;
    let phase = |(rate, parts): (f64, u32)| Phase { length: part * parts, rate };
    let pace = Pace::Open(PROFILE.map(phase).to_vec());
    let once = Bench { runs: 1, warm_up: Duration::ZERO, ..bench.clone() };
    let once = Bench { measured: part * whole, ..once };
    once.contest_at(&pace, section, &mut contestants);
    for (name, percent, most_ms) in ASKED {
        let latency_ms = contestants[0].percentile_ms(percent);
        let row = Row::new(format!("50/s, then 100/s: {name}"), latency_ms, "ms");
        section.rows.push(row.reach(Reach::AtMost(most_ms)));
    }
    note_last(section, &contestants[0]);
}

/// Says at the last row what was asked and answered.
fn note_last(section: &mut Section, contestant: &Contestant<'_>) {
    let row = section.rows.last_mut().expect("a row of these figures");
    row.note = contestant.asked_and_answered();
}
