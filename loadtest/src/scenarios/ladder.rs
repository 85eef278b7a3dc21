//! From ten counters to a million: what one number costs, and the memory of a service that has
//! touched them all.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::Bench;
use super::contest::Contestant;
use crate::load::{Load, Shared};
use crate::pace::Pace;
use crate::report::{Plot, Reach, Row, Section, figure};
use crate::stage::{Path, Served, Stage, filling, resident_mb};
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
    let services = stages.each_ref().map(|stage| stage.service(Path::Redis, "fast", &[]));
    for ((stage, service), step) in stages.iter().zip(&services).zip(steps) {
        write_counters(stage, service, step, section);
    }
    let work = |place: usize| {
        let counters = Counters::at_random(steps[place]);
        let work = Single::after_first(counters, SERIES_MAX.min(steps[place]));
        Contestant::service(&stages[place], &services[place], work)
    };
    let mut contestants = [0, 1, 2, 3].map(work);
    bench.contest(section, &mut contestants);
    let [few, .., many] = &contestants;
    let mut points = Vec::new();
    for (contestant, step) in contestants.iter().zip(STEPS) {
        let step = f64::from(step);
        points.push((step, contestant.cost()));
        section.rows.push(contestant.row(&format!("{} counters", figure(step))));
    }
    let ratio = many.cost() / few.cost();
    section.rows.push(
        Row::new("a number of 1,000,000 counters, CPU", many.cost(), "µs")
            .per(ratio, "10 counters")
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
    drop(contestants);
    walk(bench, section, steps[3]);
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

/// Touches every counter of a service that has just started, and tells its memory.
fn walk(bench: &Bench, section: &mut Section, count: usize) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "fast", &[]);
    let idle_mb = resident_mb(service.id()).unwrap_or_default();
    section.rows.push(Row::new("memory, idle", idle_mb, "MiB").reach(Reach::AtMost(40.0)));
    write_counters(&stage, &service, count, section);
    let list = LIST.min(count);
    let lists = count.div_ceil(list);
    let work = Documents::after_first(count, list, SERIES_MAX.min(count));
    let work: Shared = Rc::new(RefCell::new(work));
    let load = Load {
        addresses: vec![service.address],
        connections: WALKERS,
        pace: Pace::once(lists),
        warm_up: Duration::ZERO,
        measured: Duration::ZERO,
    };
    let (measured, ()) = load.run(&work, async {});
    section.judge(&measured);
    section.breaches.extend(work.borrow().findings());
    let touched_mb = resident_mb(service.id()).unwrap_or_default();
    let row = Row::new("memory, 1,000,000 counters touched", touched_mb, "MiB");
    section.rows.push(row.reach(Reach::AtMost(300.0)));
}
