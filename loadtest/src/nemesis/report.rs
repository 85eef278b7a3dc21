//! The page at the end: what was done, what callers noticed, what the ledger says, what is broken.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Outcome;
use super::breaches::Breaches;
use super::check::{COUNTERS, Findings};
use super::ledger::Stores;
use super::plan::{Kind, NODES};
use super::progress::{Progress, Refusals};

/// Everything that the page tells.
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) stores: Stores,
    pub(super) connections: u32,
    pub(super) outcomes: Vec<Outcome>,
    /// Numbers in all answers, repetitions too.
    pub(super) numbers: u64,
    /// Documents that were given a number or a range.
    pub(super) received: u64,
    /// Requests that repeated an earlier document.
    pub(super) repeated: u64,
    pub(super) refusals: [Refusals; NODES],
    pub(super) restarts: u64,
    pub(super) releases: u64,
    pub(super) findings: Findings,
    pub(super) breaches: Breaches,
}

/// One line for a step that is done.
pub(super) fn line(outcome: &Outcome, progress: &Progress) -> String {
    let (stall, took) = (outcome.stall.as_millis(), outcome.took.as_millis());
    let refused: u64 = outcome.refusals.iter().flat_map(BTreeMap::values).sum();
    format!(
        "{}: stall {stall} ms, in order after {took} ms, {refused} refusals, {} numbers so far",
        outcome.step,
        progress.numbers()
    )
}

/// The value below which a share of the sorted values lies; none of an empty list.
fn quantile(sorted: &[Duration], percent: usize) -> Option<Duration> {
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(place).copied()
}

fn millis(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "-".into(), |duration| duration.as_millis().to_string())
}

fn listed<K: fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let each: Vec<_> = counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
    each.join(", ")
}

impl Report {
    /// Steps of one kind alone; of all steps with two faults without a kind.
    fn of(&self, kind: Option<Kind>) -> Vec<&Outcome> {
        let is_it = |outcome: &&Outcome| match (kind, &outcome.step.faults[..]) {
            (Some(kind), [only]) => only.kind == kind,
            (None, faults) => faults.len() > 1,
            _ => false,
        };
        self.outcomes.iter().filter(is_it).collect()
    }

    fn gaps(&self, kind: Option<Kind>, reason: &str) -> u64 {
        let is_it = |of: Option<Kind>, is_double: bool| match kind {
            Some(kind) => of == Some(kind) && !is_double,
            None => is_double,
        };
        let gaps = self.findings.gaps.iter();
        gaps.filter(|((of, is_double, why), _)| is_it(*of, *is_double) && why == reason)
            .map(|(_, gaps)| gaps.values)
            .sum()
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, kind: Option<Kind>) -> fmt::Result {
        let outcomes = self.of(kind);
        if outcomes.is_empty() {
            return Ok(());
        }
        let sorted = |time: fn(&Outcome) -> Duration| {
            let mut times: Vec<Duration> = outcomes.iter().map(|outcome| time(outcome)).collect();
            times.sort_unstable();
            times
        };
        let (lasted, stalls) = (sorted(|outcome| outcome.lasted), sorted(|outcome| outcome.stall));
        let of_all = outcomes.iter().flat_map(|outcome| &outcome.refusals);
        let refused: u64 = of_all.flat_map(BTreeMap::values).sum();
        writeln!(
            f,
            "{:<31}{:>5}{:>8}{:>8}{:>8}{:>8}{:>10}{:>10}{:>12}",
            kind.map_or("two at once", Kind::name),
            outcomes.len(),
            millis(quantile(&lasted, 50)),
            millis(quantile(&stalls, 50)),
            millis(quantile(&stalls, 99)),
            millis(stalls.last().copied()),
            refused,
            self.gaps(kind, "discarded"),
            self.gaps(kind, "unaccounted"),
        )
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<31}{:>5}{:>8}{:>24}{:>10}{:>22}\n{:<44}{:>8}{:>8}{:>8}{:>20}{:>12}",
            "fault",
            "count",
            "lasts",
            "stall, ms",
            "refusals",
            "values in gaps",
            "",
            "median",
            "p99",
            "max",
            "discarded",
            "unaccounted"
        )?;
        let mut kinds: Vec<Kind> = self.outcomes.iter().map(|o| o.step.faults[0].kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            self.row(f, Some(kind))?;
        }
        self.row(f, None)
    }

    /// The figures that the service is meant to reach.
    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = [
            Kind::Flushed,
            Kind::RedisRestarted,
            Kind::RedisRestartedEmpty,
            Kind::FailOver,
            Kind::StaleFailOver,
        ];
        let outcomes: Vec<&Outcome> = lost.iter().flat_map(|kind| self.of(Some(*kind))).collect();
        let mut stalls: Vec<Duration> = outcomes.iter().map(|outcome| outcome.stall).collect();
        stalls.sort_unstable();
        let gaps = |reason| -> u64 { lost.iter().map(|k| self.gaps(Some(*k), reason)).sum() };
        writeln!(
            f,
            "Redis lost, all nodes alive  {} times, {} values in gaps, stall median {} ms",
            outcomes.len(),
            gaps("discarded") + gaps("unaccounted"),
            millis(quantile(&stalls, 50))
        )?;
        let away = [Kind::RedisAway, Kind::RedisUnreachable];
        let away: Vec<&Outcome> = away.iter().flat_map(|kind| self.of(Some(*kind))).collect();
        let mut served: Vec<Duration> = away.iter().filter_map(|o| o.database_path).collect();
        served.sort_unstable();
        writeln!(
            f,
            "Redis gone                   {} times, the database path served {} times, after {} ms \
             (median)",
            away.len(),
            served.len(),
            millis(quantile(&served, 50))
        )?;
        let killed = self.of(Some(Kind::NodeKilled));
        let at_others = |outcome: &&Outcome| -> u64 {
            let dead = outcome.step.faults[0].node;
            let others = outcome.refusals.iter().enumerate().filter(|(node, _)| *node != dead);
            others.flat_map(|(_, refusals)| refusals.values()).sum()
        };
        let refused: u64 = killed.iter().map(at_others).sum();
        let times = killed.len();
        writeln!(
            f,
            "One node killed              {times} times, {refused} refusals by the others"
        )?;
        let stopped = self.of(Some(Kind::NodeRestarted));
        let twice: u64 = stopped.iter().map(|outcome| outcome.refused_twice).sum();
        let times = stopped.len();
        writeln!(f, "One node stopped, started    {times} times, {twice} requests refused twice")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: usize = self.outcomes.iter().map(|outcome| outcome.step.faults.len()).sum();
        let Findings { journal_rows, second_numbers, lost_in_double_failures, .. } = self.findings;
        writeln!(f, "\nNemesis on {}, seed {}\n", self.stores, self.seed)?;
        writeln!(f, "faults       {faults} in {} steps", self.outcomes.len())?;
        let (nodes, connections) = (NODES, self.connections);
        writeln!(f, "load         {nodes} nodes, {connections} callers, {COUNTERS} counters")?;
        writeln!(
            f,
            "numbers      {} answered, for {} documents, and {} repetitions",
            self.numbers, self.received, self.repeated
        )?;
        writeln!(f, "journal      {journal_rows} rows")?;
        writeln!(f, "epochs       {}", listed(&self.findings.closings))?;
        writeln!(f, "recoveries   {}", listed(&self.findings.causes))?;
        let mut refusals = Refusals::new();
        for (why, count) in self.refusals.iter().flatten() {
            *refusals.entry(*why).or_default() += count;
        }
        writeln!(f, "refusals     {}", listed(&refusals))?;
        writeln!(f, "supervisor   {} nodes ended by themselves and were started", self.restarts)?;
        writeln!(f, "operator     {} ledgers that went back were released", self.releases)?;
        writeln!(f, "second       {second_numbers} documents, each after a close at the ceiling")?;
        let lost = lost_in_double_failures;
        writeln!(
            f,
            "lost         {lost} numbers, each when a node and the data of a store went\n"
        )?;
        self.table(f)?;
        writeln!(f)?;
        self.figures(f)?;
        writeln!(f)?;
        for (what, count, examples) in self.breaches.iter() {
            writeln!(f, "BREACH: {what}: {count}")?;
            for example in examples {
                writeln!(f, "  {example}")?;
            }
        }
        let verdict = if self.breaches.is_empty() { "every promise held" } else { "NOT SAFE" };
        writeln!(f, "{verdict}")
    }
}
