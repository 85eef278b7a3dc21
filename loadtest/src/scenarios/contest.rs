//! Several ways to do the same, measured in turn, so that whatever else the machine does meets all.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::time::sleep;

use super::Bench;
use crate::figures::median;
use crate::load::{Load, Measured, Shared, Work};
use crate::pace::Pace;
use crate::report::{Row, Section};
use crate::stage::Usage;

/// Processes by name.
pub(super) type Processes = Vec<(&'static str, u32)>;

/// One of them.
pub(super) struct Contestant {
    addresses: Vec<SocketAddr>,
    processes: Processes,
    work: Shared,
    runs: Vec<Run>,
}

/// One run under load, and what it cost.
struct Run {
    measured: Measured,
    /// Microseconds of the processor per number, by process.
    cost: BTreeMap<&'static str, f64>,
}

impl Contestant {
    /// Servers that are asked for some work, and the processes whose time is told.
    pub(super) fn new(
        addresses: Vec<SocketAddr>,
        mut processes: Processes,
        work: impl Work + 'static,
    ) -> Self {
        processes.push(("generator", std::process::id()));
        Contestant { addresses, processes, work: Rc::new(RefCell::new(work)), runs: Vec::new() }
    }

    /// Numbers per second, at the median.
    pub(super) fn rate(&self) -> f64 {
        median(self.runs.iter().map(|run| run.measured.rate()))
    }

    /// Its rate divided by another's of the same round, at the median.
    pub(super) fn ratio_to(&self, other: &Contestant) -> f64 {
        let rounds = self.runs.iter().zip(&other.runs);
        median(rounds.map(|(run, other)| run.measured.rate() / other.measured.rate()))
    }

    /// The latency that so many percent of a run do not exceed, at the median of the runs.
    pub(super) fn percentile_ms(&self, percent: f64) -> f64 {
        median(self.runs.iter().map(|run| run.measured.latencies.percentile_ms(percent)))
    }

    /// What else a reader should know: what a number costs, and refusals.
    pub(super) fn note(&self) -> String {
        let names: BTreeSet<&str> =
            self.runs.iter().flat_map(|run| run.cost.keys().copied()).collect();
        let cost =
            |name: &&str| median(self.runs.iter().filter_map(|run| run.cost.get(name).copied()));
        let costs: Vec<String> =
            names.iter().map(|name| format!("{name} {:.1}", cost(name))).collect();
        let refused: u64 = self.runs.iter().map(|run| run.measured.refused()).sum();
        let refused = if refused > 0 { format!("; {refused} refusals") } else { String::new() };
        format!("CPU µs: {}{refused}", costs.join(", "))
    }

    /// A row of its rate.
    pub(super) fn row(&self, what: &str) -> Row {
        Row::new(what, self.rate(), "/s").note(self.note())
    }

    /// Rows of its latencies.
    pub(super) fn latencies(&self, what: &str) -> impl Iterator<Item = Row> {
        [50.0, 99.0, 99.9].into_iter().map(move |percent| {
            Row::new(format!("{what}, p{percent}"), self.percentile_ms(percent), "ms")
        })
    }
}

impl Bench {
    /// Measures all of them in turn, as fast as their answers come.
    pub(super) fn contest(&self, section: &mut Section, contestants: &mut [Contestant]) {
        self.contest_at(&Pace::Closed, section, contestants);
    }

    /// Measures all of them in turn, as often as figures are measured, and checks their numbers.
    pub(super) fn contest_at(
        &self,
        pace: &Pace,
        section: &mut Section,
        contestants: &mut [Contestant],
    ) {
        for _ in 0..self.runs {
            for contestant in &mut *contestants {
                let load = self.load(pace.clone(), contestant.addresses.clone());
                let run = carry_out(&load, contestant);
                section.judge(&run.measured);
                contestant.runs.push(run);
            }
        }
        for contestant in contestants {
            section.breaches.extend(contestant.work.borrow().findings());
        }
    }
}

/// Carries a load out, and counts what the processes spend meanwhile.
fn carry_out(load: &Load, contestant: &Contestant) -> Run {
    let watch = async {
        sleep(load.warm_up).await;
        let before = Usage::now(&contestant.processes);
        sleep(load.measured).await;
        (before, Usage::now(&contestant.processes))
    };
    let (measured, (before, after)) = load.run(&contestant.work, watch);
    let cost = after.since(&before, measured.numbers);
    Run { measured, cost }
}
