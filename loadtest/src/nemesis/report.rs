//! The page at the end: what was done, what callers noticed, what the ledger says, what is broken.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Outcome;
use super::breaches::Breaches;
use super::check::{COUNTERS, Findings};
use super::kinds::{KINDS, Kind};
use super::ledger::Stores;
use super::plan::NODES;
use super::progress::Noted;

/// Everything that the page tells.
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) stores: Stores,
    pub(super) connections: u32,
    pub(super) outcomes: Vec<Outcome>,
    /// Documents that were given a number or a range.
    pub(super) received: u64,
    /// Requests that repeated an earlier document.
    pub(super) repeated: u64,
    pub(super) noted: Noted,
    pub(super) restarts: u64,
    pub(super) releases: u64,
    pub(super) findings: Findings,
    pub(super) breaches: Breaches,
}

/// One line for a step that is done.
pub(super) fn line(outcome: &Outcome, numbers: u64) -> String {
    let Outcome { step, stall, took, refused, .. } = outcome;
    let (stall, took) = (stall.as_millis(), took.as_millis());
    format!(
        "{step}: stall {stall} ms, in order after {took} ms, {refused} refusals, {numbers} numbers \
         so far"
    )
}

/// The value below which a share of the sorted values lies, in milliseconds.
fn quantile_ms(sorted: &[Duration], percent: usize) -> u128 {
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(place).map_or(0, Duration::as_millis)
}

fn listed<K: fmt::Display>(counts: &BTreeMap<K, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let each: Vec<_> = counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
    each.join(", ")
}

impl Report {
    /// The row of one kind alone; of all steps with two faults without a kind.
    fn row(&self, f: &mut fmt::Formatter<'_>, kind: Option<Kind>) -> fmt::Result {
        let is_it = |outcome: &&Outcome| outcome.step.kind() == kind;
        let outcomes: Vec<&Outcome> = self.outcomes.iter().filter(is_it).collect();
        if outcomes.is_empty() {
            return Ok(());
        }
        let gaps = |reason: &str| {
            self.findings.gaps.get(&(kind, reason.to_owned())).copied().unwrap_or_default()
        };
        let sorted = |time: fn(&Outcome) -> Duration| {
            let mut times: Vec<Duration> = outcomes.iter().map(|outcome| time(outcome)).collect();
            times.sort_unstable();
            times
        };
        let (lasted, stalls) = (sorted(|outcome| outcome.lasted), sorted(|outcome| outcome.stall));
        let refused: u64 = outcomes.iter().map(|outcome| outcome.refused).sum();
        writeln!(
            f,
            "{:<31}{:>5}{:>8}{:>8}{:>8}{:>8}{:>10}{:>10}{:>12}",
            kind.map_or("two at once", Kind::name),
            outcomes.len(),
            quantile_ms(&lasted, 50),
            quantile_ms(&stalls, 50),
            quantile_ms(&stalls, 99),
            quantile_ms(&stalls, 100),
            refused,
            gaps("discarded"),
            gaps("unaccounted"),
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
        KINDS.into_iter().try_for_each(|kind| self.row(f, Some(kind)))?;
        self.row(f, None)
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
            self.noted.numbers, self.received, self.repeated
        )?;
        writeln!(f, "journal      {journal_rows} rows")?;
        writeln!(f, "epochs       {}", listed(&self.findings.closings))?;
        writeln!(f, "recoveries   {}", listed(&self.findings.causes))?;
        writeln!(f, "refusals     {}", listed(&self.noted.refusals))?;
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
        for (what, examples) in self.breaches.iter() {
            writeln!(f, "BREACH: {what}: {}", examples.count())?;
            for example in examples.shown() {
                writeln!(f, "  {example}")?;
            }
        }
        let verdict = if self.breaches.is_empty() { "every promise held" } else { "NOT SAFE" };
        writeln!(f, "{verdict}")
    }
}
