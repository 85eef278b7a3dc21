//! From ten counters to a million: what one number costs, and the memory of a service that has
//! touched them all.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::Bench;
use super::contest::Contestant;
use crate::load::{Load, Shared, Work as _};
use crate::pace::Pace;
use crate::report::{Plot, Reach, Row, Section, figure};
use crate::stage::{Path, Served, Stage, filling, resident_mb};
use crate::tally::Tally;
use crate::work::{Counters, Documents, SERIES_MAX, Single};

/// The steps.
const STEPS: [u32; 4] = [10, 1_000, 100_000, 1_000_000];

/// Connections that walk through all counters.
const WALKERS: usize = 8;

/// Documents of each of their lists.
const LIST: usize = 1_000;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let steps = STEPS.map(|step| bench.sized(step as usize));
    let stages = steps.map(|_| bench.stage());
    let services = stages.each_ref().map(|stage| stage.service(Path::Redis, "", &[]));
    let idle_mb = resident_mb(services[3].id()).unwrap_or_default();
    section.rows.push(Row::new("memory, idle", idle_mb, "MiB").reach(Reach::AtMost(40.0)));
    for ((stage, service), step) in stages.iter().zip(&services).zip(steps) {
        write_counters(stage, service, step, section);
    }
    let tally = walk(&services[3], steps[3], section);
    // What waits for the journal is no counter's memory.
    section.breaches.extend(services[3].await_journal(&stages[3], tally.numbers()).err());
    let touched_mb = resident_mb(services[3].id()).unwrap_or_default();
    let row = Row::new("memory, 1,000,000 counters touched", touched_mb, "MiB");
    section.rows.push(row.reach(Reach::AtMost(300.0)));

    let contestant = |place: usize, tally: Tally| {
        let work = Single::after(Counters::at_random(steps[place]), tally);
        Contestant::service(&stages[place], &services[place], work)
    };
    let mut contestants: Vec<Contestant<'_>> =
        (0..3).map(|place| contestant(place, touched(steps[place]))).collect();
    contestants.push(contestant(3, tally));
    bench.contest(section, &mut contestants);
    let [few, .., many] = &contestants[..] else { unreachable!("as many as there are steps") };
    let mut points = Vec::new();
    for (contestant, step) in contestants.iter().zip(STEPS) {
        let step = f64::from(step);
        points.push((step, contestant.cost()));
        section.rows.push(contestant.row(&format!("{} counters", figure(step))));
    }
    section.rows.push(
        Row::new("a number of 1,000,000 counters, CPU", many.cost(), "µs")
            .per(many.cost_ratio_to(few), "10 counters")
            .reach(Reach::AtMost(1.2)),
    );
    section.plots.push(Plot {
        file: "counters",
        title: "Time of the processor for one number",
        x: "counters",
        y: "µs",
        is_x_log: true,
        lines: vec![("service and stores".to_owned(), points)],
    });
}

/// What is known of counters after the first line of each series was touched.
fn touched(count: usize) -> Tally {
    let mut tally = Tally::new(count);
    (0..SERIES_MAX.min(count)).for_each(|counter| tally.take(counter, 1, 1));
    tally
}

/// Writes counters into both stores, as if callers had touched them; the first line of each series
/// is touched by one indeed.
fn write_counters(stage: &Stage, service: &Served, count: usize, section: &mut Section) {
    let series = SERIES_MAX.min(count);
    let work: Shared = Rc::new(RefCell::new(Single::new(Counters::in_turn(series), false)));
    let touch = Load {
        addresses: vec![service.address],
        connections: 1,
        pace: Pace::once(series),
        warm_up: Duration::ZERO,
        measured: Duration::ZERO,
    };
    let (measured, ()) = touch.run(&work, async {});
    section.judge(&measured);
    section.breaches.extend(work.borrow().findings());
    let (postgres, redis) = (stage.postgres(), stage.redis());
    let schema = service.schema();
    for index in 0..series {
        let lines = count / series + usize::from(index < count % series);
        let key = format!("type=LOAD{index};LINE=0000000");
        let written = filling::write(postgres, schema, &key, 1..lines as u64);
        filling::fill(postgres, schema, redis, schema, &written);
    }
}

/// Takes a number of every counter.
fn walk(service: &Served, count: usize, section: &mut Section) -> Tally {
    let list = LIST.min(count);
    let work = Rc::new(RefCell::new(Documents::after(count, list, touched(count))));
    let load = Load {
        addresses: vec![service.address],
        connections: WALKERS,
        pace: Pace::once(count.div_ceil(list)),
        warm_up: Duration::ZERO,
        measured: Duration::ZERO,
    };
    let shared: Shared = Rc::<RefCell<Documents>>::clone(&work);
    let (measured, ()) = load.run(&shared, async {});
    drop(shared);
    section.judge(&measured);
    section.breaches.extend(work.borrow().findings());
    Rc::into_inner(work).expect("the load has ended").into_inner().into_tally()
}
