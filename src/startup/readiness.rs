//! Whether a new document would get its number here now, and if not, why: a list of named reasons.
//!
//! A process is ready when no reason applies. A reason is a variant of [`Reason`], with its word
//! and its sentence, and a line in [`Service::reasons`] that decides when it applies: from the last
//! known state of the stores, never from a plan. `/readyz`, `numerator_ready` and everything
//! derived from it agree.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use numbering::Policy;

use super::Service;
use crate::engine::allocator::{ServedSeries, Unavailable, WorkerView};
use crate::engine::node::{ClockOff, CutOff, Use};

/// Why a new document gets no number here now, or another process should be asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The process was asked to stop: new requests belong to another one.
    Stopping,
    /// Its clock is off (F37).
    Clock(ClockOff),
    /// It alone cannot reach the Redis of partitions that others can serve.
    CutOff(CutOff),
    /// No partition in which a series is active issues numbers: one has this state, which is
    /// neither `redis` nor `database`,
    WorkerState(&'static str),
    /// or is refused for this.
    Refused(Unavailable),
}

impl Reason {
    /// The reason in a word, for programs: the slug of what callers are refused with, where there
    /// is one.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Reason::Stopping => Unavailable::Stopping.slug(),
            Reason::Clock(_) => "clock",
            Reason::CutOff(_) => "cut-off",
            Reason::WorkerState("held") => Unavailable::Held.slug(),
            Reason::WorkerState(standing) => standing,
            Reason::Refused(why) => why.slug(),
        }
    }
}

/// The reason in a sentence, for people.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Stopping => f.write_str("this process is stopping"),
            Reason::Clock(off) => off.fmt(f),
            Reason::CutOff(cut_off) => cut_off.fmt(f),
            Reason::WorkerState(standing) => {
                write!(f, "no partition of a series is open: {standing}")
            }
            Reason::Refused(why) => write!(f, "no series gives numbers to new documents: {why}"),
        }
    }
}

/// Partitions that can issue, by path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// Redis takes the numbers.
    pub redis: usize,
    /// The database takes the numbers, that of gapless series included.
    pub database: usize,
}

/// What works whether new documents get numbers or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Works {
    /// Partitions in which retries get the numbers that were taken for them: without the ledger
    /// only what Redis keeps whole.
    pub replays: usize,
    /// Partitions in which counters in use give numbers to what names no document and no key, such
    /// as ranges.
    pub warm_counters: usize,
    /// Whether a counter can be begun, as the first number of a day does.
    pub new_counters: bool,
    /// Whether gapless series issue.
    pub gapless: bool,
}

/// Whether a new document would get its number right now, and what works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Why not; nothing where it would.
    pub reasons: Vec<Reason>,
    /// Partitions in which new documents get numbers, by the path that serves them.
    pub serving: Serving,
    /// What else works.
    pub works: Works,
    /// For how long the ledger has not answered, as far as is known; `None` while it does.
    pub ledger_unanswered: Option<Duration>,
    /// Tables, keys and rights of the ledger that records wait for, each with its remedy.
    pub ledger_lacks: Vec<String>,
    /// Records handed out and not journaled yet.
    pub journal_lag_records: usize,
    /// How long ago the oldest of them was handed out.
    pub journal_lag: Duration,
    /// Records for which the journal has space.
    pub journal_space: usize,
    /// Partitions in which new documents need the ledger for a while, as Redis does not have all
    /// records of earlier ones.
    pub asking_partitions: usize,
    /// For how long at most.
    pub asking_for: Duration,
    /// Per partition, that of gapless series last, its state: `idle`, `redis`, `database`,
    /// `recovering` or `held`; followed by what keeps it from issuing, where something does.
    pub partitions: Vec<String>,
}

impl Readiness {
    /// Whether a new document would get its number.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Whether the process was asked to stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.reasons.contains(&Reason::Stopping)
    }
}

impl Service {
    /// Whether a new document would get its number, and if not, why.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let context = &self.context;
        let workers = self.allocator.workers();
        let by = |path| {
            workers.iter().filter(|worker| worker.serves() && worker.standing == path).count()
        };
        let say = |worker: &WorkerView| match worker.trouble {
            None => worker.standing.to_owned(),
            Some(why) => format!("{}: {why}", worker.standing),
        };
        let lag = context.journal.lag();
        let asking: Vec<Duration> = (0..context.deployment.partitions)
            .map(|partition| context.asks_for(partition))
            .filter(|period| !period.is_zero())
            .collect();
        Readiness {
            reasons: self.reasons(&workers),
            serving: Serving { redis: by("redis"), database: by("database") },
            works: self.works(&workers),
            ledger_unanswered: context.membership.availability().unanswered_for(),
            ledger_lacks: self.fitness.lacks(),
            journal_lag_records: lag.records,
            journal_lag: lag.oldest.map_or(Duration::ZERO, |oldest| oldest.elapsed()),
            journal_space: context.journal.space(),
            asking_partitions: asking.len(),
            asking_for: asking.into_iter().max().unwrap_or_default(),
            partitions: workers.iter().map(say).collect(),
        }
    }

    /// Every reason against being ready that holds now. One more is one more line.
    fn reasons(&self, workers: &[WorkerView]) -> Vec<Reason> {
        let mut reasons = Vec::new();
        if self.is_stopping.load(Ordering::Acquire) {
            reasons.push(Reason::Stopping);
        }
        reasons.extend(self.context.clocks.off().map(Reason::Clock));
        reasons.extend(self.context.cut_off().map(Reason::CutOff));
        reasons.extend(self.against_series(workers));
        reasons
    }

    /// Why no active series gives a new document its number; nothing where one does.
    fn against_series(&self, workers: &[WorkerView]) -> Vec<Reason> {
        let catalog = self.allocator.catalog();
        if catalog.active().is_empty() {
            // A series that is added counts in its future partition.
            let hashed = &workers[..self.context.deployment.partitions as usize];
            return each_once(hashed.iter().map(against));
        }
        each_once(catalog.active().iter().map(|served| self.against(served, workers)))
    }

    /// Why a series gives a new document no number.
    fn against(&self, served: &ServedSeries, workers: &[WorkerView]) -> Option<Reason> {
        let definition = &served.version.definition;
        let worker = &workers[served.version.partition as usize];
        let availability = self.context.membership.availability();
        let waits = definition.policy == Policy::Durable || worker.standing == "database";
        let waits_for_commit = waits && self.lacks_commits();
        // What is numbered once forever is always looked up.
        let looks_up = definition.is_once_per_document() && availability.lacks(Use::Read);
        let lacks_ledger = waits_for_commit || looks_up;
        against(worker).or(lacks_ledger.then_some(Reason::Refused(Unavailable::Ledger)))
    }

    /// Whether the ledger is known to commit nothing: it is away, or lacks what records need.
    fn lacks_commits(&self) -> bool {
        self.context.membership.availability().lacks(Use::Write) || !self.fitness.lacks().is_empty()
    }

    fn works(&self, workers: &[WorkerView]) -> Works {
        let by_database = |worker: &WorkerView| worker.standing == "database" && worker.serves();
        let count = |is_so: fn(&WorkerView) -> bool| {
            workers.iter().filter(|worker| is_so(worker) || by_database(worker)).count()
        };
        let can_commit = !self.lacks_commits();
        // A record of Redis points to the ledger once its number is in the journal.
        let answers_retries = self.context.settings.idempotency_keep_whole
            || !self.context.membership.availability().lacks(Use::Read);
        Works {
            replays: if answers_retries { count(|worker| worker.remembers) } else { 0 },
            warm_counters: count(|worker| worker.has_room),
            new_counters: can_commit && workers.iter().any(WorkerView::serves),
            gapless: can_commit && workers.last().is_some_and(WorkerView::serves),
        }
    }
}

/// Why new documents get no numbers in a worker's partition.
fn against(worker: &WorkerView) -> Option<Reason> {
    let reason = worker.trouble.map_or(Reason::WorkerState(worker.standing), Reason::Refused);
    (!worker.serves()).then_some(reason)
}

/// Each reason once; nothing where one of them is missing.
fn each_once(reasons: impl Iterator<Item = Option<Reason>>) -> Vec<Reason> {
    let mut all = Vec::new();
    for reason in reasons {
        let Some(reason) = reason else { return Vec::new() };
        if !all.contains(&reason) {
            all.push(reason);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_no_reason_makes_all_others_none() {
        let [ledger, redis] = [Unavailable::Ledger, Unavailable::Redis].map(Reason::Refused);
        let all = [Some(ledger.clone()), Some(redis.clone()), Some(ledger.clone())];
        assert_eq!(each_once(all.clone().into_iter()), [ledger, redis]);
        assert_eq!(each_once(all.into_iter().chain([None])), []);
    }
}
