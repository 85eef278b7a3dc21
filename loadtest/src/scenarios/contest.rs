//! Several ways to do the same, measured in turn, so that other load of the machine affects all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use testkit::process::Process;
use tokio::time::sleep;

use super::{Bench, send};
use crate::baselines::Baseline;
use crate::figures::median;
use crate::load::{Measured, Shared, repeats, shared};
use crate::pace::Pace;
use crate::report::{Row, Section, figure};
use crate::stage::{Path, Served, Stage, Usage};
use crate::work::{Ask, Numbers};

/// The name in tables of the minimum that remembers every number (`Baseline::IncrBehind`): the
/// goals are seen in relation to it.
pub(super) const LEAST: &str = "INCR, rows behind it";

/// How often Redis is emptied to measure how soon numbers come again.
const RECOVERIES: usize = 5;

/// One of them.
pub(super) struct Contestant<'a> {
    stage: &'a Stage,
    address: SocketAddr,
    server: Server,
    work: Shared,
    runs: Vec<Run>,
}

enum Server {
    Service(Box<Served>),
    Baseline(Process),
}

/// One run under load, and its cost.
pub(super) struct Run {
    pub(super) measured: Measured,
    /// Microseconds of the processor per number, by process.
    cost: BTreeMap<&'static str, f64>,
}

impl Run {
    /// Numbers per second.
    pub(super) fn rate(&self) -> f64 {
        self.measured.rate()
    }

    /// Microseconds of the processor per number, of all processes.
    pub(super) fn cost(&self) -> f64 {
        self.cost.values().sum()
    }

    /// Microseconds of the processor per number, of all processes but the generator.
    pub(super) fn cost_of_servers(&self) -> f64 {
        self.cost.iter().filter(|(name, _)| **name != "generator").map(|(_, cost)| cost).sum()
    }
}

impl<'a> Contestant<'a> {
    /// A service of its own, each series with these settings, asked for one hot counter.
    pub(super) fn hot(stage: &'a Stage, path: Path, series: &str) -> Self {
        Self::service(stage, stage.service(path, series, &[]), Numbers::hot(Ask::One))
    }

    /// A service on a stage, asked for some work.
    pub(super) fn service(stage: &'a Stage, served: Served, work: Numbers) -> Self {
        Self::sharing(stage, served, shared(work))
    }

    /// The same, for work that the scenario reads afterwards, too.
    pub(super) fn sharing(stage: &'a Stage, served: Served, work: Shared) -> Self {
        let (address, server) = (served.address, Server::Service(Box::new(served)));
        Contestant { stage, address, server, work, runs: Vec::new() }
    }

    /// A baseline, asked for one hot counter.
    pub(super) fn baseline(stage: &'a Stage, baseline: Baseline) -> Self {
        let ask = if baseline == Baseline::Echo { Ask::Unchecked } else { Ask::One };
        let (process, address) = stage.baseline(baseline);
        let (server, work) = (Server::Baseline(process), shared(Numbers::hot(ask)));
        Contestant { stage, address, server, work, runs: Vec::new() }
    }

    /// A figure of the runs, at the median.
    pub(super) fn median(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(of))
    }

    /// The same divided by another's of the same round, at the median.
    pub(super) fn ratio(&self, other: &Contestant<'_>, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().zip(&other.runs).map(|(run, other)| of(run) / of(other)))
    }

    /// The latency that this many percent of a run do not exceed, at the median of the runs.
    pub(super) fn percentile_ms(&self, percent: f64) -> f64 {
        self.median(|run| run.measured.latencies.percentile_ms(percent))
    }

    /// Notes on a rate: the cost of a number, and what was repeated.
    fn note(&self) -> String {
        let names: BTreeSet<&str> =
            self.runs.iter().flat_map(|run| run.cost.keys().copied()).collect();
        let cost = |name: &&str| self.median(|run| run.cost.get(name).copied().unwrap_or_default());
        let costs: Vec<String> =
            names.iter().map(|name| format!("{name} {}", figure(cost(name)))).collect();
        format!("CPU µs: {}; {}", costs.join(", "), self.repeats())
    }

    /// For an open load: requests per second that were sent, and numbers that were answered.
    pub(super) fn asked_and_answered(&self) -> String {
        let asked = self.median(|run| run.measured.rate_asked());
        let (asked, answered) = (figure(asked), figure(self.median(Run::rate)));
        format!("asked {asked}/s, answered {answered}/s; {}", self.repeats())
    }

    /// What was repeated in all its runs.
    fn repeats(&self) -> String {
        let sum = |count: fn(&Measured) -> u64| -> u64 {
            self.runs.iter().map(|run| count(&run.measured)).sum()
        };
        repeats(sum(Measured::refused), sum(|measured| measured.broken))
    }

    /// A row of its rate.
    pub(super) fn row(&self, what: &str) -> Row {
        Row::new(what, self.median(Run::rate), "/s").note(self.note())
    }

    /// The same in relation to another's rate of the same rounds.
    pub(super) fn row_per(&self, what: &str, other: &Contestant<'_>, to: &'static str) -> Row {
        self.row(what).per(self.ratio(other, Run::rate), to)
    }

    /// A row of a latency.
    pub(super) fn latency(&self, what: &str, percent: f64) -> Row {
        Row::new(format!("{what}, p{percent}"), self.percentile_ms(percent), "ms")
    }

    /// Rows of its latencies.
    pub(super) fn latencies(&self, what: &str) -> [Row; 3] {
        [50.0, 99.0, 99.9].map(|percent| self.latency(what, percent))
    }

    /// Milliseconds from the loss of everything in Redis to the next number, at the median.
    pub(super) fn recovery_ms(&self, section: &mut Section) -> f64 {
        let Server::Service(served) = &self.server else {
            unreachable!("a baseline has no epochs")
        };
        let round = |_| {
            // How a server frees its memory is not measured here.
            assert_eq!(self.stage.redis.cli(&["flushall", "async"]), "OK");
            let flushed = Instant::now();
            send(section, served, &self.work, 1, 1);
            flushed.elapsed().as_secs_f64() * 1e3
        };
        let recovery_ms = median((0..RECOVERIES).map(round));
        section.breaches.extend(served.complaints(self.stage, &*self.work.borrow()));
        recovery_ms
    }

    /// Carries a load out, and measures what the processes use meanwhile.
    fn carry_out(&mut self, bench: &Bench, pace: Pace, section: &mut Section) {
        let mut processes = self.stage.processes();
        processes.push(("generator", std::process::id()));
        let id = match &self.server {
            Server::Service(served) => served.id(),
            Server::Baseline(process) => process.id(),
        };
        processes.push(("service", id));
        let load = bench.load(self.address, pace);
        let watch = async {
            sleep(load.warm_up).await;
            let before = Usage::now(&processes);
            sleep(load.measured).await;
            (before, Usage::now(&processes))
        };
        let (measured, (before, after)) = load.run(&self.work, watch);
        section.judge(&measured);
        let cost = after.since(&before, measured.numbers);
        self.runs.push(Run { measured, cost });
    }
}

impl Bench {
    /// Measures each of them in turn, as often as figures are measured, and checks their numbers.
    pub(super) fn contest(
        &self,
        pace: &Pace,
        section: &mut Section,
        contestants: &mut [Contestant<'_>],
    ) {
        for _ in 0..self.runs {
            for contestant in &mut *contestants {
                contestant.carry_out(self, pace.clone(), section);
            }
        }
        for Contestant { stage, server, work, .. } in contestants {
            let work = work.borrow();
            section.breaches.extend(match server {
                Server::Service(served) => served.complaints(stage, &*work),
                Server::Baseline(_) => work.findings(),
            });
        }
    }
}
