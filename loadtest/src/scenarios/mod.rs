//! What is measured: each scenario on a stage of its own.

mod calm;
mod command;
mod contest;
mod crowd;
mod curve;
mod history;
mod ladder;
mod mixed;
mod rates;
mod record;
mod reserve;
mod verified;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::load::{Load, Shared};
use crate::pace::Pace;
use crate::report::Section;
use crate::stage::{Placement, Served};

/// A scenario.
pub(crate) struct Scenario {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Measures.
    pub(crate) run: fn(&Bench, &mut Section),
}

/// All of them, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 14] = [
    Scenario { name: "hot", run: rates::hot },
    Scenario { name: "rivals", run: rates::rivals },
    Scenario { name: "ladder", run: ladder::run },
    Scenario { name: "once", run: rates::once },
    Scenario { name: "known", run: rates::known },
    Scenario { name: "calm", run: calm::run },
    Scenario { name: "curve", run: curve::run },
    Scenario { name: "batches", run: rates::batches },
    Scenario { name: "database", run: rates::database },
    Scenario { name: "reserve", run: reserve::run },
    Scenario { name: "mixed", run: mixed::run },
    Scenario { name: "crowd", run: crowd::run },
    Scenario { name: "history", run: history::run },
    Scenario { name: "record", run: record::run },
];

/// Counters of a smoke test.
const SMOKE_SIZE: usize = 200;

/// How the scenarios measure.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Connections of a closed load.
    pub(crate) connections: usize,
    /// How often each compared item is measured.
    pub(crate) runs: usize,
    /// Time before each of them.
    pub(crate) warm_up: Duration,
    /// Time of each of them.
    pub(crate) measured: Duration,
    /// Whether only the numbers are checked: everything is small.
    pub(crate) is_smoke: bool,
    /// Rows of a long journal.
    pub(crate) rows: u64,
    /// Which cores the processes have.
    pub(crate) placement: Placement,
    /// Another build of this executable, which `hot` measures for comparison.
    pub(crate) before: Option<PathBuf>,
}

impl Bench {
    /// This many counters, or few if only the numbers are checked.
    fn sized(&self, count: usize) -> usize {
        if self.is_smoke { count.min(SMOKE_SIZE) } else { count }
    }

    /// A load at a pace, for the usual time.
    fn load(&self, address: SocketAddr, pace: Pace) -> Load {
        let Bench { connections, warm_up, measured, .. } = *self;
        Load { address, connections, pace, warm_up, measured }
    }

    /// This many requests per second for the usual time, whatever happens to them.
    fn open(&self, rate: f64) -> Pace {
        Pace::open(rate, self.warm_up + self.measured)
    }
}

/// Sends this many requests to a service, as soon as possible.
fn send(section: &mut Section, to: &Served, work: &Shared, connections: usize, requests: usize) {
    let load = Load {
        address: to.address,
        connections,
        pace: Pace::once(requests),
        warm_up: Duration::ZERO,
        measured: Duration::ZERO,
    };
    let (measured, ()) = load.run(work, async {});
    section.judge(&measured);
}
