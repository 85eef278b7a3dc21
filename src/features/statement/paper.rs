//! The content of the paper, before it has a form: programs get it in this one.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::language::Locale;

/// The paper of a series and a period.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Statement {
    /// The language of its sentences: `th`, `zh-Hans`, `zh-Hant` or `en`.
    #[serde(serialize_with = "tag")]
    #[schema(value_type = String)]
    pub language: Locale,
    /// Code of the series.
    pub series: String,
    /// The period that was asked for.
    pub period: String,
    /// The project that was asked for.
    pub project: Option<String>,
    /// The era of the years in its numbers and labels; null where they show none, or several.
    pub era: Option<&'static str>,
    /// When it was drawn up.
    #[schema(format = DateTime)]
    pub drawn_up_at: String,
    /// Whether nothing is missing.
    pub verdict: Verdict,
    /// The same in a sentence.
    pub sentence: String,
    /// Its runs of numbers, one for each counter.
    pub runs: Vec<RunStatement>,
    /// What seals the records.
    pub seal: SealAnswer,
}

/// Whether nothing is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Each value has exactly one record or one explanation.
    Complete,
    /// The same, but for values that are being recorded or not looked at yet.
    CompleteSoFar,
    /// Values have no record, stand twice, or are not explained.
    NotComplete,
}

/// A run of numbers: the account of one counter.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunStatement {
    /// The counter, as in `gaps` and in the columns `counter_id`.
    pub counter_id: i64,
    /// Name of its serial.
    pub serial: String,
    /// Dimensions and period with their values, as text.
    pub counter_key: String,
    /// The same in words.
    pub label: String,
    /// Whether it has no period, and so is of all time.
    pub over_all_time: bool,
    /// Whether nothing is missing.
    pub verdict: Verdict,
    /// The first number in the journal.
    pub first: Option<EndAnswer>,
    /// The last number in the journal.
    pub last: Option<EndAnswer>,
    /// Where the run goes on beyond the period that was asked for: the part of it whose documents
    /// are dated in the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartAnswer>,
    /// How many numbers have a revision.
    pub revised: u64,
    /// The values from the first to the last, by stretches of one step.
    pub stretches: Vec<RunAnswer>,
    /// How many values these are.
    pub values: u64,
    /// What became of them.
    pub lines: Vec<CountLine>,
    /// The sum of the lines that count: as many as `values`.
    pub sum: u64,
    /// Whatever is no issued number, or void, by value.
    pub entries: Vec<EntryAnswer>,
    /// Entries that are counted, and not listed.
    pub further_entries: u64,
    /// Sentences on it.
    pub notes: Vec<String>,
}

/// The part of a run whose documents are dated in the period.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PartAnswer {
    /// The first day of the period.
    pub dated_from: String,
    /// The last day of it.
    pub dated_upto: String,
    /// How many numbers, but for those that are kept aside and those in the archive.
    pub count: u64,
    /// The first of them.
    pub first: Option<EndAnswer>,
    /// The last of them.
    pub last: Option<EndAnswer>,
    /// Further numbers that are dated so, whose records are kept aside or which another document
    /// has too; those among them whose records cannot be read may be.
    pub kept_aside: u64,
    /// Numbers in the archive that may be of the period: its files have the dates of their
    /// documents.
    pub archived: u64,
}

/// The first or the last number.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EndAnswer {
    /// Its value.
    pub value: String,
    /// Its text; null for a further serial of a number, and in the archive.
    #[serde(rename = "document_number")]
    pub number: Option<String>,
    /// When the request was accepted.
    #[schema(format = DateTime)]
    pub issued_at: String,
    /// In the archive, its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Values of one step.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunAnswer {
    /// First value.
    pub first: String,
    /// Last value.
    pub last: String,
    /// Distance between two.
    pub step: String,
    /// How many they are.
    pub count: u64,
}

/// A line of the arithmetic.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CountLine {
    /// What it counts: `issued`, `archived` (among those issued), `imported`, `registered` (given
    /// by hand), `voided` (among those before), `replaced` (among the void ones), `discarded`,
    /// `unaccounted`, `collided`, `before-import`, `skipped`, `returned`, `cancelled`, `expired`,
    /// `reserved`, `kept-aside`, `duplicate`, `being-recorded`, `not-looked-at`, `missing`, or
    /// `twice`, which is taken away.
    pub what: &'static str,
    /// The same for a reader.
    pub label: &'static str,
    /// How many values.
    pub count: u64,
    /// What the line adds to the sum: 1, 0 or -1 times its count.
    pub sign: i8,
}

/// Values that are no issued numbers, that are void, that were given by hand, or that stand twice.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EntryAnswer {
    /// What they are, as in the lines.
    pub what: &'static str,
    /// The same for a reader.
    pub label: &'static str,
    /// First value, last value, step, count.
    #[serde(flatten)]
    pub run: RunAnswer,
    /// The first as a number, as the numbers beside it are written; null where these differ.
    pub first_number: Option<String>,
    /// The last as a number.
    pub last_number: Option<String>,
    /// How it came about.
    pub explanation: String,
    /// What proves it.
    pub evidence: String,
    /// Its row in the register of gaps, among the records kept aside, among the duplicates, or
    /// among the voids and registrations.
    pub entry_id: Option<i64>,
    /// When that was noted.
    #[schema(format = DateTime)]
    pub noted_at: Option<String>,
}

/// What seals the records.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SealAnswer {
    /// Whether a checkpoint seals all records.
    pub sealed: bool,
    /// The number of the newest checkpoint.
    pub checkpoint: Option<i64>,
    /// When it was made.
    pub made_at: Option<String>,
    /// The SHA-256 of its body, hexadecimal.
    pub sha256: Option<String>,
    /// Who signed it, hexadecimal.
    pub public_key: Option<String>,
    /// Records that it seals.
    pub records_sealed: u64,
    /// Records that came later.
    pub records_later: u64,
    /// Records that were written without the key, or by another program: nothing seals them.
    pub records_without_key: u64,
    /// The same in sentences.
    pub sentences: Vec<String>,
}

fn tag<S: Serializer>(language: &Locale, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(language.tag())
}

impl EndAnswer {
    /// Its text, or else its value.
    pub(super) fn shown(&self) -> &str {
        self.number.as_deref().unwrap_or(&self.value)
    }
}

impl EntryAnswer {
    /// First and last as numbers, or else as values.
    pub(super) fn shown(&self) -> String {
        let first = self.first_number.as_ref().unwrap_or(&self.run.first);
        let last = self.last_number.as_ref().unwrap_or(&self.run.last);
        if first == last { first.clone() } else { format!("{first} – {last}") }
    }
}
