//! Fast and gapless numbers at once: the rate of each, and how old records that wait for the
//! journal become, as the service shows it and as the journal itself shows it.

use std::rc::Rc;

use super::Bench;
use super::curve::watch;
use crate::load::{Load, Measured, shared};
use crate::pace::Pace;
use crate::report::{Goal, Row, Section};
use crate::stage::{Served, Stage};
use crate::work::{Ask, Counters, Numbers};

/// Requests per second of the fast series.
const FAST_RATE: f64 = 1_000.0;

/// Connections that take gapless numbers as fast as the answers come: each commit of the database
/// path leaves records to be kept in memory.
const GAPLESS_CONNECTIONS: usize = 4;

/// Multiple of the usual measuring time: a journal falls behind slowly.
const LONGER: u32 = 5;

/// The greatest age of a fast record when it is journaled, in seconds.
const AGE_MAX_S: f64 = 1.0;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let bench = Bench { measured: bench.measured * LONGER, ..bench.clone() };
    // The same fast load alone, for comparison, and then with the gapless load.
    for is_mixed in [false, true] {
        let service = stage.mixed_service(&[]);
        let fast_work = shared(Numbers::hot(Ask::One));
        let gapless_work = shared(Numbers::new(Ask::One, Counters::gapless()));
        let fast = bench.load(service.address, bench.open(FAST_RATE));
        let connections = if is_mixed { GAPLESS_CONNECTIONS } else { 0 };
        let gapless = Load { connections, ..bench.load(service.address, Pace::Closed) };
        let beside = async {
            tokio::join!(gapless.carry_out(Rc::clone(&gapless_work)), watch(&service, &fast))
        };
        let (of_fast, (of_gapless, lags)) = fast.run(&fast_work, beside);
        let name = if is_mixed { "beside gapless ones" } else { "alone" };
        tell(section, &format!("fast numbers {name}"), &of_fast);
        if is_mixed {
            tell(section, "gapless numbers beside them", &of_gapless);
        }
        match lags {
            Ok(lags) => section.rows.extend(lags.rows(name, bench.measured)),
            Err(complaint) => section.breaches.push(complaint),
        }
        let (fast_work, gapless_work) = (fast_work.borrow(), gapless_work.borrow());
        section.breaches.extend(fast_work.findings());
        section.breaches.extend(gapless_work.findings());
        let numbers = fast_work.received() + gapless_work.received();
        section.breaches.extend(service.await_journal(&stage, numbers).err());
        section.rows.extend(ages(&stage, &service, name));
    }
}

/// Its rate and latencies.
fn tell(section: &mut Section, what: &str, measured: &Measured) {
    section.judge(measured);
    section.rows.push(Row::new(what, measured.rate(), "/s").note(measured.repeats()));
    section.rows.extend([50.0, 99.0].map(|percent| {
        let latency_ms = measured.latencies.percentile_ms(percent);
        Row::new(format!("{what}, p{percent}"), latency_ms, "ms")
    }));
}

/// The age of fast records when they were journaled, by the journal itself.
fn ages(stage: &Stage, service: &Served, load: &str) -> Vec<Row> {
    let age = "(journaled_at_us - issued_at_us) / 1e6";
    let text = stage.postgres.sql(&format!(
        "select max({age}) || ' ' || percentile_disc(0.99) within group (order by {age}) \
         from {}.journal_row where type_code = 'LOAD0'",
        service.schema()
    ));
    let ages = text.split_whitespace().filter_map(|age| age.parse::<f64>().ok());
    let names = ["at most", "p99"].map(|which| format!("age when journaled {load}, {which}"));
    let goal = [Some(Goal::AtMost(AGE_MAX_S)), None];
    let rows = names.into_iter().zip(ages).zip(goal);
    rows.map(|((name, age_s), goal)| {
        let row = Row::new(name, age_s, "s");
        match goal {
            Some(goal) => row.goal(goal),
            None => row.note("by the journal's own times"),
        }
    })
    .collect()
}
