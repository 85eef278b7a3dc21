//! What is measured: one file per scenario, each on a stage of its own.

mod batches;
mod calm;
mod contest;
mod counters;
mod database;
mod hot;

use std::net::SocketAddr;
use std::time::Duration;

use harness::service::Program;

use crate::load::Load;
use crate::pace::Pace;
use crate::report::Section;

/// A scenario.
pub(crate) struct Scenario {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it measures, for people.
    pub(crate) about: &'static str,
    /// Measures.
    pub(crate) run: fn(&Bench, &mut Section),
}

/// All of them, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 5] = [
    Scenario { name: "hot", about: "one hot counter, beside a bare echo", run: hot::run },
    Scenario { name: "counters", about: "one counter beside 1,000", run: counters::run },
    Scenario { name: "calm", about: "100 requests per second", run: calm::run },
    Scenario { name: "batches", about: "lists of documents, and ranges", run: batches::run },
    Scenario { name: "database", about: "PostgreSQL or SQLite alone", run: database::run },
];

/// How the scenarios measure.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// The service's executable.
    pub(crate) program: Program,
    /// Connections of a closed load.
    pub(crate) connections: usize,
    /// Times that each figure is measured.
    pub(crate) runs: usize,
    /// Time before each of them.
    pub(crate) warm_up: Duration,
    /// Time of each of them.
    pub(crate) measured: Duration,
}

impl Bench {
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
