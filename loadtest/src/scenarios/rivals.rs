//! One hot counter, taken in other ways: what the service is instead of.

use super::Bench;
use super::contest::{Contestant, LEAST};
use crate::baselines::Baseline;
use crate::report::{Reach, Row, Section};
use crate::stage::Path;
use crate::work::{Counters, Single};

/// How the baselines are called in the table.
const RIVALS: [(Baseline, &str); 5] = [
    (Baseline::Locked, "lock in Redis, optimistic update"),
    (Baseline::RowLock, "update … returning + insert"),
    (Baseline::IncrInsert, "INCR, then insert"),
    (Baseline::IncrBehind, LEAST),
    (Baseline::Incr, "pipelined INCR, no record"),
];

/// The percentile by which latencies are compared.
const PERCENT: f64 = 99.0;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let hot = || Single::new(Counters::in_turn(1), false);
    let service = stage.service(Path::Redis, "", &[]);
    let alone = stage.service(Path::Postgres, "", &[]);
    let rivals = RIVALS.map(|(baseline, _)| stage.baseline(baseline));
    let mut contestants: Vec<Contestant<'_>> =
        rivals.iter().map(|rival| Contestant::baseline(&stage, rival, hot())).collect();
    contestants.push(Contestant::service(&stage, &service, hot()));
    contestants.push(Contestant::service(&stage, &alone, hot()));
    bench.contest(section, &mut contestants);
    let [locked, row_lock, incr_insert, behind, incr, ours, alone] = &contestants[..] else {
        unreachable!("as many as were entered");
    };
    for (rival, (_, name)) in contestants.iter().zip(RIVALS) {
        section.rows.push(rival.row(name));
        let p99_ms = rival.percentile_ms(PERCENT);
        section.rows.push(Row::new(format!("{name}, p{PERCENT}"), p99_ms, "ms"));
    }
    let ratio = |rival, to| ours.row("one hot counter").per(ours.ratio_to(rival), to);
    let rows = [
        ratio(locked, "lock in Redis").reach(Reach::AtLeast(40.0)),
        Row::new("one hot counter, p99", ours.percentile_ms(PERCENT), "ms")
            .per(ours.percentile_ratio_to(locked, PERCENT), "lock in Redis")
            .reach(Reach::AtMost(1.0 / 50.0)),
        ratio(row_lock, "update … returning").reach(Reach::AtLeast(30.0)),
        ratio(incr_insert, "INCR, then insert"),
        ratio(behind, LEAST),
        ratio(incr, "pipelined INCR"),
        alone
            .row("database path, one hot counter")
            .per(alone.ratio_to(row_lock), "update … returning")
            .reach(Reach::AtLeast(10.0)),
    ];
    section.rows.extend(rows);
    // How far the least that remembers every number comes: nobody who does gets further.
    let least = |rival, to| behind.row(LEAST).per(behind.ratio_to(rival), to);
    section.rows.extend([least(locked, "lock in Redis"), least(row_lock, "update … returning")]);
}
