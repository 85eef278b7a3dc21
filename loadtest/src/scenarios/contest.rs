//! Several ways to do the same, measured in turn, so that whatever else the machine does meets all.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::time::sleep;

use super::Bench;
use crate::figures::median;
use crate::load::{Load, Measured, Shared, Work, repeats};
use crate::pace::Pace;
use crate::report::figure;
use crate::report::{Row, Section};
use crate::stage::{Measuring, Served, Stage, Usage};

/// How the tables call the least that remembers every number (`Baseline::IncrBehind`): what the
/// goals are seen beside.
pub(super) const LEAST: &str = "INCR, rows behind it";

/// One of them.
pub(super) struct Contestant<'a> {
    addresses: Vec<SocketAddr>,
    /// Processes whose time is told, by name.
    processes: Vec<(&'static str, u32)>,
    /// Where its numbers must be found at the end.
    journal: Option<(&'a Stage, &'a Served)>,
    work: Shared,
    runs: Vec<Run>,
}

/// One run under load, and what it cost.
struct Run {
    measured: Measured,
    /// Microseconds of the processor per number, by process.
    cost: BTreeMap<&'static str, f64>,
}

impl Run {
    /// Of all processes but the generator.
    fn cost_of_servers(&self) -> f64 {
        self.cost.iter().filter(|(name, _)| **name != "generator").map(|(_, cost)| cost).sum()
    }
}

impl<'a> Contestant<'a> {
    /// A service on a stage, asked for some work.
    pub(super) fn service(stage: &'a Stage, served: &'a Served, work: impl Work + 'static) -> Self {
        let processes = [&[("service", served.id())], &stage.processes()[..]].concat();
        Contestant { journal: Some((stage, served)), ..Self::new(served.address, processes, work) }
    }

    /// A baseline on a stage, asked for some work.
    pub(super) fn baseline(
        stage: &Stage,
        measuring: &Measuring,
        work: impl Work + 'static,
    ) -> Self {
        let processes = [&[("service", measuring.id())], &stage.processes()[..]].concat();
        Self::new(measuring.address, processes, work)
    }

    fn new(
        address: SocketAddr,
        mut processes: Vec<(&'static str, u32)>,
        work: impl Work + 'static,
    ) -> Self {
        processes.push(("generator", std::process::id()));
        let work = Rc::new(RefCell::new(work));
        Contestant { addresses: vec![address], processes, journal: None, work, runs: Vec::new() }
    }

    /// With a second process of the service that shares the load.
    pub(super) fn and(mut self, served: &Served) -> Self {
        self.addresses.push(served.address);
        self.processes.push(("second service", served.id()));
        self
    }

    /// Numbers per second, at the median.
    pub(super) fn rate(&self) -> f64 {
        median(self.runs.iter().map(|run| run.measured.rate()))
    }

    /// Its rate divided by another's of the same round, at the median.
    pub(super) fn ratio_to(&self, other: &Contestant<'_>) -> f64 {
        let rounds = self.runs.iter().zip(&other.runs);
        median(rounds.map(|(run, other)| run.measured.rate() / other.measured.rate()))
    }

    /// The latency that so many percent of a run do not exceed, at the median of the runs.
    pub(super) fn percentile_ms(&self, percent: f64) -> f64 {
        median(self.runs.iter().map(|run| run.measured.latencies.percentile_ms(percent)))
    }

    /// The same of two percentiles: this one's divided by another's.
    pub(super) fn percentile_ratio_to(&self, other: &Contestant<'_>, percent: f64) -> f64 {
        let of = |run: &Run| run.measured.latencies.percentile_ms(percent);
        let rounds = self.runs.iter().zip(&other.runs);
        median(rounds.map(|(run, other)| of(run) / of(other)))
    }

    /// Microseconds of the processor per number, of all processes of the service and its stores.
    pub(super) fn cost(&self) -> f64 {
        median(self.runs.iter().map(Run::cost_of_servers))
    }

    /// The same divided by another's of the same round, at the median.
    pub(super) fn cost_ratio_to(&self, other: &Contestant<'_>) -> f64 {
        let rounds = self.runs.iter().zip(&other.runs);
        median(rounds.map(|(run, other)| run.cost_of_servers() / other.cost_of_servers()))
    }

    /// What else a reader should know: what a number costs, and what was asked again.
    pub(super) fn note(&self) -> String {
        let names: BTreeSet<&str> =
            self.runs.iter().flat_map(|run| run.cost.keys().copied()).collect();
        let cost =
            |name: &&str| median(self.runs.iter().filter_map(|run| run.cost.get(name).copied()));
        let costs: Vec<String> =
            names.iter().map(|name| format!("{name} {}", figure(cost(name)))).collect();
        format!("CPU µs: {}; {}", costs.join(", "), self.repeats())
    }

    /// Of an open load: requests per second that were asked, and numbers that were answered.
    pub(super) fn asked_and_answered(&self) -> String {
        let asked = median(self.runs.iter().map(|run| run.measured.rate_asked()));
        let answered = median(self.runs.iter().map(|run| run.measured.rate()));
        let again = self.repeats();
        format!("asked {}/s, answered {}/s; {again}", figure(asked), figure(answered))
    }

    /// What was asked again in all its runs.
    fn repeats(&self) -> String {
        let sum = |count: fn(&Measured) -> u64| -> u64 {
            self.runs.iter().map(|run| count(&run.measured)).sum()
        };
        repeats(sum(Measured::refused), sum(|measured| measured.broken))
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
    pub(super) fn contest(&self, section: &mut Section, contestants: &mut [Contestant<'_>]) {
        self.contest_at(&Pace::Closed, section, contestants);
    }

    /// Measures all of them in turn, as often as figures are measured, and checks their numbers.
    pub(super) fn contest_at(
        &self,
        pace: &Pace,
        section: &mut Section,
        contestants: &mut [Contestant<'_>],
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
            let work = contestant.work.borrow();
            section.breaches.extend(match contestant.journal {
                Some((stage, served)) => served.complaints(stage, &*work),
                None => work.findings(),
            });
        }
    }
}

/// Carries a load out, and counts what the processes spend meanwhile.
fn carry_out(load: &Load, contestant: &Contestant<'_>) -> Run {
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
