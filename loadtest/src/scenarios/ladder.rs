//! From one counter to a million: the cost of a number once the service has met them, the cost of
//! meeting them, the memory of a service that has touched them all, and how soon numbers come again
//! once Redis has lost everything. Counters are resolved at their first touch, so that should not
//! depend on how many there are.

use std::time::Instant;

use super::contest::{Contestant, Run};
use super::{Bench, send};
use crate::load::shared;
use crate::pace::Pace;
use crate::report::{Goal, Row, Section, figure};
use crate::stage::{Path, Served, Stage, filling, resident_mb};
use crate::tally::Tally;
use crate::work::{Ask, Counters, Numbers, SERIES_MAX};

/// The steps.
const STEPS: [u32; 5] = [1, 10, 1_000, 100_000, 1_000_000];

/// The last of them.
const MANY: usize = STEPS.len() - 1;

/// The step whose counters are met one by one.
const MET: usize = MANY - 1;

/// Connections that walk through all counters by lists.
const WALKERS: usize = 8;

/// Documents of each of their lists.
const LIST: usize = 1_000;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let steps = STEPS.map(|step| bench.sized(step as usize));
    let stages = steps.map(|_| Stage::start(bench.placement));
    let services = stages.each_ref().map(|stage| stage.service(Path::Redis, "", &[]));
    let idle_mb = resident_mb(services[MANY].id()).unwrap_or_default();
    section.rows.push(Row::new("memory, idle", idle_mb, "MiB").goal(Goal::AtMost(40.0)));
    let mut tallies: Vec<Tally> = Vec::new();
    for ((stage, service), step) in stages.iter().zip(&services).zip(steps) {
        tallies.push(write_counters(stage, service, step, section));
    }
    for (place, (service, count)) in services.iter().zip(steps).enumerate() {
        let touched = std::mem::take(&mut tallies[place]);
        tallies[place] = if place == MET {
            meet(bench, service, count, touched, section)
        } else {
            walk(service, count, touched, section)
        };
    }
    // Records that wait for the journal do not count as a counter's memory.
    section
        .breaches
        .extend(services[MANY].await_journal(&stages[MANY], tallies[MANY].numbers()).err());
    let touched_mb = resident_mb(services[MANY].id()).unwrap_or_default();
    let row = Row::new("memory, 1,000,000 counters touched", touched_mb, "MiB");
    section.rows.push(row.goal(Goal::AtMost(300.0)));

    let entries = stages.iter().zip(services).zip(steps).zip(tallies);
    let mut contestants: Vec<Contestant<'_>> = entries
        .map(|(((stage, service), step), tally)| {
            let work = Numbers::new(Ask::One, Counters::at_random(step)).after(tally);
            Contestant::service(stage, service, work)
        })
        .collect();
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [one, few, thousand, .., many] = &contestants[..] else {
        unreachable!("as many as there are steps");
    };
    section.rows.push(one.row("one counter"));
    for (contestant, step) in contestants.iter().zip(STEPS).skip(1) {
        section.rows.push(contestant.row(&format!("{} counters", figure(f64::from(step)))));
    }
    let rate = thousand.median(Run::rate);
    let row = Row::new("1,000 counters", rate, "/s").per(thousand.ratio(one, Run::rate), "one");
    section.rows.push(row.goal(Goal::AtLeast(0.8)));
    let cost = many.median(Run::cost_of_servers);
    section.rows.push(
        Row::new("a number of 1,000,000 counters, CPU", cost, "µs")
            .per(many.ratio(few, Run::cost_of_servers), "10 counters")
            .goal(Goal::AtMost(1.25)),
    );
    let [few_ms, many_ms] = [few, many].map(|contestant| contestant.recovery_ms(section));
    let what = |counters| format!("FLUSHALL to the next number, {counters} counters");
    section.rows.push(Row::new(what("10"), few_ms, "ms"));
    let row = Row::new(what("1,000,000"), many_ms, "ms");
    section.rows.push(row.per(many_ms / few_ms, "10 counters"));
}

/// Writes counters into both stores, as if callers had touched them; the first line of each series
/// really is touched by one, and the number that it was given is returned.
fn write_counters(stage: &Stage, served: &Served, count: usize, section: &mut Section) -> Tally {
    let series = SERIES_MAX.min(count);
    let work = shared(Numbers::new(Ask::One, Counters::in_turn(series)));
    send(section, served, &work, 1, series);
    section.breaches.extend(work.borrow().findings());
    for index in 0..series {
        let lines = count / series + usize::from(index < count % series);
        let key = format!("type=LOAD{index};LINE=0000000");
        filling::write(stage, served.schema(), &key, lines as u64);
    }
    let mut touched = Tally::new(count);
    (0..series).for_each(|counter| touched.take(counter, 1, 1));
    touched
}

/// Takes a number of every counter, each by a request of its own, as callers would after a restart
/// of the service; returns what they were given until then.
fn meet(
    bench: &Bench,
    served: &Served,
    count: usize,
    touched: Tally,
    section: &mut Section,
) -> Tally {
    let work = shared(Numbers::new(Ask::One, Counters::in_turn(count)).after(touched));
    let started = Instant::now();
    send(section, served, &work, bench.connections, count);
    let rate = count as f64 / started.elapsed().as_secs_f64();
    section.rows.push(Row::new("100,000 counters, each met for the first time", rate, "/s"));
    let work = work.borrow();
    section.breaches.extend(work.findings());
    work.tally().cloned().unwrap_or_default()
}

/// Takes a number of every counter by lists; returns what they were given until then.
fn walk(served: &Served, count: usize, touched: Tally, section: &mut Section) -> Tally {
    let list = LIST.min(count);
    let work = shared(Numbers::new(Ask::List(list), Counters::in_turn(count)).after(touched));
    send(section, served, &work, WALKERS, count.div_ceil(list));
    let work = work.borrow();
    section.breaches.extend(work.findings());
    work.tally().cloned().unwrap_or_default()
}
