//! Reservations of one gapless counter: reserved and confirmed over HTTP, and confirmed in callers'
//! transactions; and numbers that are taken out of a pool of returned ones.

mod pool;
mod transactions;

use std::cell::RefCell;
use std::rc::Rc;

use super::Bench;
use super::contest::Contestant;
use crate::figures::Latencies;
use crate::load::Shared;
use crate::pace::Pace;
use crate::report::{Row, Section};
use crate::stage::{Path, Stage};
use crate::work::{Reservations, Then};

/// The lines of the series.
const GAPLESS: &str = "policy = \"gapless\"";

/// Settings that allow as many live reservations as a scenario makes.
const SETTINGS: [&str; 2] = ["reservations.live_max=1000000", "reservations.ttl=1h"];

/// What figures of latency are of.
const WHOLE: &str = "of all runs with their warm-ups";

pub(super) fn run(bench: &Bench, section: &mut Section) {
    pairs(bench, section);
    transactions::run(bench, section);
    pool::run(bench, section);
}

/// Numbers taken at once, and numbers reserved and confirmed over HTTP, in turn.
fn pairs(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let work = Rc::new(RefCell::new(Reservations::hot(Then::Confirm)));
    let served = stage.service(Path::Postgres, GAPLESS, &SETTINGS);
    let shared: Shared = work.clone();
    let mut contestants = [
        Contestant::hot(&stage, Path::Postgres, GAPLESS),
        Contestant::sharing(&stage, served, shared),
    ];
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [taken, reserved] = &contestants;
    section.rows.push(taken.row("gapless numbers taken at once"));
    let name = "reserved and confirmed over HTTP, pairs";
    section.rows.push(reserved.row_per(name, taken, "taken at once"));
    let work = work.borrow();
    tell(section, "a reservation over HTTP", &work.reserving);
    tell(section, "a confirmation over HTTP", &work.confirming);
}

/// Adds rows of the latencies of a call.
fn tell(section: &mut Section, what: &str, latencies: &Latencies) {
    section.rows.extend([50.0, 99.0].map(|percent| {
        let row = Row::new(format!("{what}, p{percent}"), latencies.percentile_ms(percent), "ms");
        row.note(WHOLE)
    }));
}
