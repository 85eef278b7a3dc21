//! The findings of an import, before anything is written.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ledger::Stand;
use super::reading::Misfit;
use super::tables::TableRow;
use crate::ledger::{ImportedCounter, ImportedVersion, Span};

/// Problems that are listed; more are counted.
const PROBLEMS_LISTED_MAX: usize = 1_000;

/// A checked import.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The findings.
    pub report: Report,
    /// The counters that are concerned.
    pub counters: Vec<ImportedCounter>,
    /// Earlier versions of their series that are imported too; only from another ledger.
    pub earlier: Vec<ImportedVersion>,
    /// Partitions that the database must own while the import is applied: those of used counters
    /// that it raises, and those that get documents.
    pub handed_over: BTreeSet<u32>,
    /// The state of the source ledger, if it was one.
    pub(super) stand: Option<Stand>,
}

/// The findings of an import.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The source, without its password.
    pub source: String,
    /// SHA-256 of a file, hex.
    pub sha256: Option<String>,
    /// Rows read.
    pub rows: u64,
    /// Rows without anything to import: counters that never counted, and deleted ones that cannot
    /// be read.
    pub skipped: u64,
    /// Numbers to be journaled.
    pub numbers: u64,
    /// How many of them are dated in a period that is closed.
    pub into_closed: u64,
    /// Numbers of ranges that were documents' where an export was made. An import brings the ranges
    /// and not these assignments.
    pub assigned: u64,
    /// Whether the import was applied.
    pub applied: bool,
    /// The counters of the import, by series and key; at most 1,000 are listed.
    pub counters: Vec<CounterReport>,
    /// Their total number.
    pub counters_total: u64,
    /// The reasons not to apply the import; at most 1,000 are listed.
    pub problems: Vec<Problem>,
    /// Their total number.
    pub problems_total: u64,
}

impl Report {
    /// Counts a row, by whether it has anything to import; a misfit is a problem of the row.
    pub(super) fn note(&mut self, table_row: &TableRow, noted: Result<bool, Misfit>) {
        self.rows += 1;
        match noted {
            Ok(true) => {}
            Ok(false) => self.skipped += 1,
            Err(Misfit { kind, detail, .. }) => {
                self.add(Problem { place: table_row.place(), number: None, kind, detail });
            }
        }
    }

    /// Adds a problem.
    pub(super) fn add(&mut self, problem: Problem) {
        self.problems_total += 1;
        if self.problems.len() < PROBLEMS_LISTED_MAX {
            self.problems.push(problem);
        }
    }
}

/// A counter of an import.
#[derive(Clone, Debug, Serialize)]
pub struct CounterReport {
    /// Code of its series.
    pub series: String,
    /// Name of its serial.
    pub serial: String,
    /// Its key.
    pub counter_key: String,
    /// Its value here; none: the import creates it.
    pub stands_at: Option<u64>,
    /// Lowest value that comes along.
    pub first: u64,
    /// Highest value: the counter continues above it, unless it is already higher.
    pub last: u64,
    /// Its imported numbers; from a table of counters there are none.
    pub numbers: u64,
    /// Values above its present one, up to the highest, that are not imported now: the old system
    /// issued them or skipped them, and nothing below the highest is issued here.
    pub missing: u64,
    /// The first of them, at most 10 runs.
    pub holes: Vec<Span>,
}

/// A reason not to apply an import.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where: `line 7`, `document_sequence row 3`, or a counter.
    pub place: String,
    /// The number, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Its kind.
    pub kind: ProblemKind,
    /// The flaw, and the remedy.
    pub detail: String,
}

impl Problem {
    /// Of a line of a file.
    pub(super) fn of_line(
        line: u64,
        number: Option<&str>,
        kind: ProblemKind,
        detail: impl Into<String>,
    ) -> Self {
        let number = number.map(str::to_owned);
        Problem { place: format!("line {line}"), number, kind, detail: detail.into() }
    }
}

/// Kinds of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// Not a line of its file.
    UnreadableLine,
    /// No series reads the number.
    NotRead,
    /// Several series read the number or may, or one reads it in several ways.
    Ambiguous,
    /// Columns contradict the number.
    Contradiction,
    /// The number does not show a part of its counter's key, and no column does.
    Missing,
    /// A value that its serial cannot have.
    Value,
    /// It is dated in a closed period, and no option adds it to that period.
    Closed,
    /// The source has the same value, or another configuration for the same thing, before it.
    Twice,
    /// Another series has the code.
    SeriesTaken,
    /// The journal has the number already.
    Issued,
    /// The counter is above a value that was not left open.
    CounterPassed,
    /// An id without a code.
    NotMapped,
}

impl ProblemKind {
    /// Its name, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            ProblemKind::UnreadableLine => "unreadable-line",
            ProblemKind::NotRead => "not-read",
            ProblemKind::Ambiguous => "ambiguous",
            ProblemKind::Contradiction => "contradiction",
            ProblemKind::Missing => "missing",
            ProblemKind::Value => "value",
            ProblemKind::Closed => "closed",
            ProblemKind::Twice => "twice",
            ProblemKind::SeriesTaken => "series-taken",
            ProblemKind::Issued => "issued",
            ProblemKind::CounterPassed => "counter-passed",
            ProblemKind::NotMapped => "not-mapped",
        }
    }
}
