//! 100 requests per second, started at fixed times: what most callers of the service will see.

use super::Bench;
use super::contest::Contestant;
use crate::report::{Reach, Section};
use crate::stage::{Path, Stage};
use crate::work::{Counters, Single};

/// Requests per second.
const RATE: f64 = 100.0;

/// Percentiles, and the milliseconds that they should not exceed.
const REACH: [(f64, f64); 3] = [(50.0, 0.5), (99.0, 2.0), (99.9, 5.0)];

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(&bench.program);
    let service = stage.service(Path::Redis, "fast", &[]);
    let work = Single::new(Counters::in_turn(1), false);
    let mut contestants = [Contestant::new(vec![service.address], stage.processes(&service), work)];
    bench.contest_at(&bench.open(RATE), section, &mut contestants);
    let rows = contestants[0].latencies("100 requests/s");
    let reached = rows.zip(REACH).map(|(row, (_, most_ms))| row.reach(Reach::AtMost(most_ms)));
    section.rows.extend(reached);
}
