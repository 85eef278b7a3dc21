//! What is measured: one file per scenario, each on a stage of its own.

mod batches;
mod calm;
mod contest;
mod counters;
mod curve;
mod database;
mod history;
mod hot;
mod ladder;
mod once;
mod pressure;
mod records;
mod rivals;
mod variants;
mod verified;

use std::net::SocketAddr;
use std::time::Duration;

use harness::service::Program;

use crate::load::Load;
use crate::pace::Pace;
use crate::report::Section;
use crate::stage::{Given, Stage};

/// A scenario.
pub(crate) struct Scenario {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it measures, for people.
    pub(crate) about: &'static str,
    /// Whether it also works on stores that were there before and stay.
    pub(crate) takes_given: bool,
    /// Measures.
    pub(crate) run: fn(&Bench, &mut Section),
}

/// All of them, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 13] = [
    Scenario {
        name: "hot",
        about: "one hot counter, beside a bare echo",
        takes_given: true,
        run: hot::run,
    },
    Scenario {
        name: "rivals",
        about: "the same taken in other ways",
        takes_given: true,
        run: rivals::run,
    },
    Scenario {
        name: "counters",
        about: "one counter beside 1,000",
        takes_given: true,
        run: counters::run,
    },
    Scenario {
        name: "ladder",
        about: "10 to 1,000,000 counters",
        takes_given: false,
        run: ladder::run,
    },
    Scenario {
        name: "variants",
        about: "keys, durable, two processes",
        takes_given: true,
        run: variants::run,
    },
    Scenario {
        name: "once",
        about: "documents that are numbered once, for ever",
        takes_given: true,
        run: once::run,
    },
    Scenario { name: "calm", about: "100 requests per second", takes_given: true, run: calm::run },
    Scenario {
        name: "curve",
        about: "full rate, and latency below it",
        takes_given: true,
        run: curve::run,
    },
    Scenario {
        name: "batches",
        about: "lists of documents, and ranges",
        takes_given: true,
        run: batches::run,
    },
    Scenario {
        name: "database",
        about: "PostgreSQL or SQLite alone",
        takes_given: true,
        run: database::run,
    },
    Scenario {
        name: "pressure",
        about: "a ledger that stops",
        takes_given: false,
        run: pressure::run,
    },
    Scenario {
        name: "records",
        about: "memory of idempotency records",
        takes_given: false,
        run: records::run,
    },
    Scenario { name: "history", about: "a long journal", takes_given: false, run: history::run },
];

/// Sizes of a smoke test: counters, records.
const SMOKE_SIZE: usize = 200;

/// How the scenarios measure.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// The service's executable.
    pub(crate) program: Program,
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
            Some(given) => Stage::on_given(&self.program, given.clone()),
            None => Stage::start(&self.program, self.latency),
        }
    }

    /// So many of something, or few where only the numbers are checked.
    fn sized(&self, count: usize) -> usize {
        if self.is_smoke { count.min(SMOKE_SIZE) } else { count }
    }

    /// A load at a pace, for the usual time.
    fn load(&self, pace: Pace, addresses: Vec<SocketAddr>) -> Load {
        let Bench { connections, warm_up, measured, .. } = *self;
        Load { addresses, connections, pace, warm_up, measured }
    }

    /// So many requests per second for the usual time, whatever becomes of them.
    fn open(&self, rate: f64) -> Pace {
        Pace::open(rate, self.warm_up + self.measured)
    }
}
