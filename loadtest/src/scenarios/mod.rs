//! What is measured: each scenario on a stage of its own.

mod calm;
mod contest;
mod curve;
mod history;
mod ladder;
mod pressure;
mod rates;
mod records;
mod verified;

use std::time::Duration;

use crate::load::{Load, Shared};
use crate::pace::Pace;
use crate::report::Section;
use crate::stage::{Given, Served, Stage};

/// A scenario.
pub(crate) struct Scenario {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Whether it also works on stores that were there before and stay.
    pub(crate) takes_given: bool,
    /// Measures.
    pub(crate) run: fn(&Bench, &mut Section),
}

/// All of them, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 13] = [
    Scenario { name: "hot", takes_given: true, run: rates::hot },
    Scenario { name: "rivals", takes_given: true, run: rates::rivals },
    Scenario { name: "counters", takes_given: true, run: rates::counters },
    Scenario { name: "ladder", takes_given: false, run: ladder::run },
    Scenario { name: "variants", takes_given: true, run: rates::variants },
    Scenario { name: "once", takes_given: true, run: rates::once },
    Scenario { name: "calm", takes_given: true, run: calm::run },
    Scenario { name: "curve", takes_given: true, run: curve::run },
    Scenario { name: "batches", takes_given: true, run: rates::batches },
    Scenario { name: "database", takes_given: true, run: rates::database },
    Scenario { name: "pressure", takes_given: false, run: pressure::run },
    Scenario { name: "records", takes_given: false, run: records::run },
    Scenario { name: "history", takes_given: false, run: history::run },
];

/// Sizes of a smoke test: counters, records.
const SMOKE_SIZE: usize = 200;

/// How the scenarios measure.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Connections of a closed load.
    pub(crate) connections: usize,
    /// Times that what is compared is measured.
    pub(crate) runs: usize,
    /// Time before each of them.
    pub(crate) warm_up: Duration,
    /// Time of each of them.
    pub(crate) measured: Duration,
    /// Whether only the numbers are checked: everything is small.
    pub(crate) is_smoke: bool,
    /// How much later everything arrives that is sent to or from a store.
    pub(crate) latency: Duration,
    /// Stores to measure on; its own without them.
    pub(crate) given: Option<Given>,
    /// Rows of a long journal.
    pub(crate) rows: u64,
}

impl Bench {
    /// Stores to measure on.
    fn stage(&self) -> Stage {
        match &self.given {
            Some(given) => Stage::on_given(given.clone()),
            None => Stage::start(self.latency),
        }
    }

    /// So many of something, or few where only the numbers are checked.
    fn sized(&self, count: usize) -> usize {
        if self.is_smoke { count.min(SMOKE_SIZE) } else { count }
    }

    /// A load at a pace, for the usual time, on no server yet.
    fn load(&self, pace: Pace) -> Load {
        let Bench { connections, warm_up, measured, .. } = *self;
        Load { addresses: Vec::new(), connections, pace, warm_up, measured }
    }

    /// So many requests per second for the usual time, whatever becomes of them.
    fn open(&self, rate: f64) -> Pace {
        Pace::open(rate, self.warm_up + self.measured)
    }
}

/// Sends so many requests to a service, as soon as may be.
fn send(section: &mut Section, to: &Served, work: &Shared, connections: usize, requests: usize) {
    let load = Load {
        addresses: vec![to.address],
        connections,
        pace: Pace::once(requests),
        warm_up: Duration::ZERO,
        measured: Duration::ZERO,
    };
    let (measured, ()) = load.run(work, async {});
    section.judge(&measured);
}
