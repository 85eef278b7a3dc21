//! The page at the end: what was done, what callers noticed, the ledger's state, broken promises.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Outcome;
use super::breaches::Breaches;
use super::check::{COUNTERS, Findings};
use super::kinds::{KINDS, Kind};
use super::ledger::Stores;
use super::life::LifeCounts;
use super::plan::NODES;
use super::progress::Noted;
use crate::figures::Latencies;

/// Everything that the page shows.
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) stores: Stores,
    pub(super) connections: u32,
    pub(super) outcomes: Vec<Outcome>,
    /// Documents that were given a number or a range.
    pub(super) received: u64,
    /// Requests that repeated an earlier document.
    pub(super) repeated: u64,
    /// Those of them that came without a date after the turn.
    pub(super) across: u64,
    pub(super) noted: Noted,
    pub(super) restarts: u64,
    pub(super) releases: u64,
    pub(super) releases_for_dead: u64,
    pub(super) findings: Findings,
    pub(super) breaches: Breaches,
}

/// One line for a finished step.
pub(super) fn line(outcome: &Outcome, numbers: u64) -> String {
    let Outcome { step, stall, took, refused, .. } = outcome;
    let (stall, took) = (stall.as_millis(), took.as_millis());
    format!(
        "{step}: stall {stall} ms, in order after {took} ms, {refused} refusals, {numbers} numbers \
         so far"
    )
}

fn listed(counts: &BTreeMap<String, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let each: Vec<_> = counts.iter().map(|(what, count)| format!("{what}: {count}")).collect();
    each.join(", ")
}

impl Report {
    /// The row of one kind alone; without a kind, of all steps with two faults.
    fn row(&self, f: &mut fmt::Formatter<'_>, kind: Option<Kind>) -> fmt::Result {
        let is_it = |outcome: &&Outcome| outcome.step.kind() == kind;
        let outcomes: Vec<&Outcome> = self.outcomes.iter().filter(is_it).collect();
        if outcomes.is_empty() {
            return Ok(());
        }
        let gaps = |reason: &str| {
            self.findings.gaps.get(&(kind, reason.to_owned())).copied().unwrap_or_default()
        };
        let quantile_ms = |time: fn(&Outcome) -> Duration, percent| {
            let mut times = Latencies::default();
            outcomes.iter().for_each(|outcome| times.note(time(outcome)));
            times.percentile_ms(percent)
        };
        let stall_ms = |percent| quantile_ms(|outcome| outcome.stall, percent);
        let refused: u64 = outcomes.iter().map(|outcome| outcome.refused).sum();
        writeln!(
            f,
            "{:<31}{:>5}{:>8.0}{:>8.0}{:>8.0}{:>8.0}{:>10}{:>10}{:>12}",
            kind.map_or("two at once", Kind::name),
            outcomes.len(),
            quantile_ms(|outcome| outcome.lasted, 50.0),
            stall_ms(50.0),
            stall_ms(99.0),
            stall_ms(100.0),
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
        let Report { seed, stores, connections, received, repeated, restarts, .. } = self;
        let Report { releases, releases_for_dead, across, .. } = self;
        let Findings { journal_rows, archived_rows, second_numbers, .. } = self.findings;
        let lost_in_double_failures =
            self.findings.lost_in_double_failures + self.findings.life.lost;
        let LifeCounts { reserved, confirmed, committed, voided, replaced, .. } =
            self.findings.life;
        let LifeCounts { repeated: again, forgotten, .. } = self.findings.life;
        let (steps, numbers) = (self.outcomes.len(), self.noted.numbers);
        let (closings, causes) = (listed(&self.findings.closings), listed(&self.findings.causes));
        let refusals = listed(&self.noted.refusals);
        writeln!(
            f,
            "\nNemesis on {stores}, seed {seed}\n\n\
             faults       {faults} in {steps} steps\n\
             load         {NODES} nodes, {connections} callers, {COUNTERS} counters\n\
             numbers      {numbers} answered, for {received} documents, and {repeated} \
             repetitions, {across} of them without a date behind the turn\n\
             life         {reserved} reserved, {confirmed} of them confirmed and {committed} in \
             callers' transactions, {voided} voided, {replaced} replaced, {again} repetitions; \
             {forgotten} forgotten by ledgers that went back\n\
             journal      {journal_rows} rows, {archived_rows} of them archived\n\
             epochs       {closings}\n\
             recoveries   {causes}\n\
             refusals     {refusals}\n\
             supervisor   {restarts} nodes ended by themselves and were started\n\
             operator     {releases} ledgers that went back were released, \
             {releases_for_dead} of them for a dead node without its outbox\n\
             second       {second_numbers} documents, each after a close at the ceiling\n\
             lost         {lost_in_double_failures} numbers, each when a node and the data of a \
             store went\n"
        )?;
        self.table(f)?;
        writeln!(f)?;
        for (what, examples) in self.breaches.iter() {
            writeln!(f, "BREACH: {what}: {}", examples.count)?;
            for example in &examples.shown {
                writeln!(f, "  {example}")?;
            }
        }
        let verdict = if self.breaches.is_empty() { "every promise held" } else { "NOT SAFE" };
        writeln!(f, "{verdict}")
    }
}
