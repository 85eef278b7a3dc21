//! The findings of a comparison with the checkpoints.

use std::fmt;

use serde::Serialize;

/// Findings that are listed; more are counted.
const FINDINGS_MAX: usize = 100;

/// The place of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A journal batch.
    Batch(i64),
    /// An event.
    Event(i64),
    /// A version of a series, by the id of its row.
    Version(i64),
    /// A checkpoint.
    Checkpoint(i64),
    /// The key of a counter.
    Counter(i64),
    /// The code of a series.
    Series(i64),
    /// What became of a number, by the id of its row.
    Act(i64),
    /// Rows of the journal without a batch.
    Journal,
    /// Files that segments refer to, and their entries.
    Archive,
    /// The schema of the record.
    Schema,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Batch(id) => write!(f, "batch {id}"),
            Place::Event(id) => write!(f, "event {id}"),
            Place::Version(id) => write!(f, "series version {id}"),
            Place::Checkpoint(number) => write!(f, "checkpoint {number}"),
            Place::Counter(id) => write!(f, "counter {id}"),
            Place::Series(id) => write!(f, "series {id}"),
            Place::Act(id) => write!(f, "act {id}"),
            Place::Journal => f.write_str("the journal"),
            Place::Archive => f.write_str("the archive"),
            Place::Schema => f.write_str("the schema"),
        }
    }
}

/// A deviation of the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// The deviation.
    pub why: String,
}

/// All findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) listed: Vec<Finding>,
    pub(super) more: u64,
}

impl Findings {
    pub(super) fn add(&mut self, place: Place, why: String) {
        if self.listed.len() < FINDINGS_MAX {
            self.listed.push(Finding { place, why });
        } else {
            self.more += 1;
        }
    }
}

/// What was compared, and what has changed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct AuditReport {
    /// Checkpoints looked at.
    pub checkpoints: u64,
    /// The last of them, and when it was made.
    pub last: Option<i64>,
    /// When the last was made.
    pub last_at: Option<String>,
    /// Batches that they bind.
    pub batches: u64,
    /// Rows compared with the seals of their batches.
    pub rows: u64,
    /// Rows that were not compared: segments account for them, and no given file has them.
    pub rows_archived: u64,
    /// Rows that were not compared: their batches lack rows that no file gave.
    pub rows_beside_archive: u64,
    /// How many batches those are of.
    pub batches_beside_archive: u64,
    /// Events that they bind.
    pub events: u64,
    /// Versions of series that they bind.
    pub versions: u64,
    /// Counters whose keys they bind.
    pub counters: u64,
    /// Series of which they bind the codes.
    pub series: u64,
    /// Acts upon numbers, such as voids, that they bind.
    pub acts: u64,
    /// Batches that no checkpoint binds yet.
    pub unbound_batches: u64,
    /// Rows that are missing from bound batches, and that segments not yet bound by a checkpoint
    /// account for: whether a holder of the key wrote those segments is not known.
    pub rows_not_bound_yet: u64,
    /// Rows that are missing after the checkpoint of the start, while segments account for as many,
    /// there or before it: whether they were archived is not known.
    pub rows_not_told: u64,
    /// What has changed, the lowest place of each kind first.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub more: u64,
}

impl AuditReport {
    /// Adds the findings about files of an archive.
    pub fn add(&mut self, of_archive: impl Iterator<Item = String>) {
        for why in of_archive {
            if self.findings.len() < FINDINGS_MAX {
                self.findings.push(Finding { place: Place::Archive, why });
            } else {
                self.more += 1;
            }
        }
    }

    /// Whether everything compared is as it was bound, and nothing is missing without reason.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let is_known = self.rows_not_bound_yet == 0 && self.rows_not_told == 0;
        self.findings.is_empty() && self.more == 0 && is_known
    }

    /// The last line.
    fn verdict(&self) -> &'static str {
        match self.is_clean() {
            true if self.rows_archived + self.rows_beside_archive == 0 => "all is as it was bound",
            true => "what was compared is as it was bound",
            false => "not clean",
        }
    }

    /// What was not compared, and what cannot be determined here.
    fn write_unknown(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows_archived > 0 {
            let rows = self.rows_archived;
            writeln!(f, "{rows} rows are in an archive and were not compared: see --archive")?;
        }
        if self.rows_beside_archive > 0 {
            let (rows, batches) = (self.rows_beside_archive, self.batches_beside_archive);
            writeln!(
                f,
                "{rows} rows of {batches} batches whose other rows are not in the journal were \
                 not compared: see --archive"
            )?;
        }
        if self.rows_not_bound_yet > 0 {
            let rows = self.rows_not_bound_yet;
            writeln!(
                f,
                "NOT KNOWN YET: {rows} rows made room for segments that no checkpoint binds yet: \
                 compare again after the next checkpoint, or with --archive"
            )?;
        }
        if self.rows_not_told > 0 {
            let rows = self.rows_not_told;
            writeln!(
                f,
                "NOT KNOWN: {rows} rows are missing, and segments may stand for them or for rows \
                 of before: compare with --archive, or without --from"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AuditReport { checkpoints, batches, rows, events, versions, .. } = self;
        match (&self.last, &self.last_at) {
            (Some(last), Some(at)) => {
                writeln!(f, "{checkpoints} checkpoints, the last is {last} of {at}")?;
            }
            _ => writeln!(f, "no checkpoint")?,
        }
        write!(f, "{batches} batches, {rows} rows compared, ")?;
        writeln!(f, "{events} events, {versions} versions")?;
        writeln!(f, "{} counters, {} series, {} acts", self.counters, self.series, self.acts)?;
        writeln!(f, "{} batches are not bound yet", self.unbound_batches)?;
        self.write_unknown(f)?;
        for Finding { place, why } in &self.findings {
            writeln!(f, "NOT AS IT WAS: {place}: {why}")?;
        }
        if self.more > 0 {
            writeln!(f, "and {} findings more", self.more)?;
        }
        f.write_str(self.verdict())
    }
}
