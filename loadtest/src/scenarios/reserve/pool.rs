//! Numbers out of a pool of returned values, next to numbers of a counter that has none: as many of
//! each, in turn.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::{Bench, send};
use super::{GAPLESS, SETTINGS};
use crate::figures::median;
use crate::load::{Shared, Work as _, shared};
use crate::report::{Row, Section};
use crate::stage::{Path, Served, Stage};
use crate::work::{Ask, Numbers, Reservations, Then};

/// Values of a full pool.
const POOL: usize = 10_000;

/// Longest wait until all that was cancelled has come back.
const RETURN_LIMIT: Duration = Duration::from_secs(120);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(50);

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let values = bench.sized(POOL);
    let enter = || Side::new(stage.service(Path::Postgres, GAPLESS, &SETTINGS));
    let [mut without, mut with] = [enter(), enter()];
    let reservations = Rc::new(RefCell::new(Reservations::hot(Then::Wait)));
    for _ in 0..bench.runs {
        if let Err(complaint) = with.fill(&stage, bench, section, (&reservations, values)) {
            section.breaches.push(complaint);
            return;
        }
        for side in [&mut without, &mut with] {
            side.take(bench, section, values);
        }
    }
    let ratios = with.rates.iter().zip(&without.rates).map(|(with, without)| with / without);
    let ratio = median(ratios);
    section.rows.push(without.row("gapless numbers, nothing to return"));
    let name = format!("the same out of a pool of {values}");
    section.rows.push(with.row(name).per(ratio, "nothing to return"));
    for Side { served, work, .. } in [&without, &with] {
        section.breaches.extend(served.complaints(&stage, &*work.borrow()));
    }
}

/// A service that is asked for numbers of one counter.
struct Side {
    served: Served,
    work: Shared,
    /// Numbers per second of each run.
    rates: Vec<f64>,
}

impl Side {
    fn new(served: Served) -> Self {
        Side { served, work: shared(Numbers::hot(Ask::One)), rates: Vec::new() }
    }

    /// Reserves as many values, then cancels all of them, and waits until they have come back.
    fn fill(
        &self,
        stage: &Stage,
        bench: &Bench,
        section: &mut Section,
        (reservations, values): (&Rc<RefCell<Reservations>>, usize),
    ) -> Result<(), String> {
        let work: Shared = reservations.clone();
        for then in [Then::Wait, Then::Cancel] {
            reservations.borrow_mut().then = then;
            send(section, &self.served, &work, bench.connections, values);
        }
        section.breaches.extend(reservations.borrow().findings());
        let deadline = Instant::now() + RETURN_LIMIT;
        let count = format!("select count(*) from {}.reservation", self.served.schema());
        loop {
            let left = stage.postgres.sql(&count);
            if left == "0" {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{left} cancelled reservations have not come back"));
            }
            std::thread::park_timeout(POLL);
        }
    }

    /// Takes so many numbers as fast as the answers come.
    fn take(&mut self, bench: &Bench, section: &mut Section, values: usize) {
        let begun = Instant::now();
        send(section, &self.served, &self.work, bench.connections, values);
        #[expect(clippy::cast_precision_loss, reason = "some thousands")]
        let values = values as f64;
        self.rates.push(values / begun.elapsed().as_secs_f64());
    }

    /// A row of its rate.
    fn row(&self, what: impl Into<String>) -> Row {
        Row::new(what, median(self.rates.iter().copied()), "/s")
    }
}
