//! The JSON of a void and of a correction. Also the output of the commands with `--json`.

use serde::Serialize;
use utoipa::ToSchema;

use super::act_rows::CorrectionRow;
use super::correcting::CorrectedNumber;
use super::standing::NumberStanding;
use super::unused::UnusedNumbers;
use super::voiding::VoidNumber;
use crate::ledger::{JournalRow, LifeRow};
use crate::web::instant::instant;

/// A number that became void.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VoidAnswer<'a> {
    /// The number.
    document_number: &'a str,
    /// The document, where one was named.
    document_id: Option<&'a str>,
    /// Code of its series.
    series: &'a str,
    /// `voided`.
    status: NumberStanding,
    /// When it was voided.
    #[schema(format = DateTime)]
    voided_at: String,
    /// Who voided it.
    voided_by: &'a str,
    /// Why.
    void_reason: Option<&'a str>,
    /// Whether an earlier call voided it.
    replayed: bool,
}

/// The numbers of a range that became void because nothing uses them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnusedAnswer<'a> {
    /// The first number of the range.
    document_number: &'a str,
    /// Its last number.
    last_number: Option<String>,
    /// Code of its series.
    series: &'a str,
    /// How many numbers of the range this principal voided for this reason, now and before.
    pub(super) void_count: u64,
    /// Which ones, the first hundred.
    pub(super) void_numbers: Vec<&'a str>,
    /// How many have neither a document nor a void yet: the same call again goes on with them.
    pub(super) left: u64,
    /// Whether an earlier call voided all of them.
    replayed: bool,
}

/// What a void answers: of one number, or of those that a range did not use.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only described")]
pub(crate) enum VoidOutcome<'a> {
    Number(VoidAnswer<'a>),
    Unused(UnusedAnswer<'a>),
}

/// A number whose variables were corrected.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CorrectAnswer<'a> {
    /// The number.
    document_number: &'a str,
    /// The document, where one was named.
    document_id: Option<&'a str>,
    /// Code of its series.
    series: &'a str,
    /// The correction; missing where the number was issued with these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<CorrectionRow<'a>>,
    /// Whether the variables had these values before.
    replayed: bool,
}

impl<'a> VoidAnswer<'a> {
    /// The answer for a void number.
    pub(crate) fn of(VoidNumber { found, row, replayed }: &'a VoidNumber) -> Self {
        VoidAnswer {
            document_number: &found.number,
            document_id: row.document_id.as_deref().or(document_of(&found.row)),
            series: &found.row.series,
            status: NumberStanding::Voided,
            voided_at: instant(row.at_us),
            voided_by: &row.user_id,
            void_reason: reason_of(row),
            replayed: *replayed,
        }
    }
}

impl<'a> UnusedAnswer<'a> {
    /// The answer for what a range did not use.
    pub(crate) fn of(unused: &'a UnusedNumbers) -> Self {
        let UnusedNumbers { found, done } = unused;
        let entry = &found.row.entry;
        let last = entry.taken.first().map(|taken| taken.range.last);
        UnusedAnswer {
            document_number: &entry.number,
            last_number: last.and_then(|last| entry.text_of(last)),
            series: &found.row.series,
            void_count: done.count,
            void_numbers: done.rows.iter().filter_map(|row| row.number.as_deref()).collect(),
            left: done.left,
            replayed: unused.is_replayed(),
        }
    }
}

impl<'a> CorrectAnswer<'a> {
    /// The answer for a corrected number.
    pub(crate) fn of(CorrectedNumber { found, row, replayed }: &'a CorrectedNumber) -> Self {
        CorrectAnswer {
            document_number: &found.number,
            document_id: document_of(&found.row),
            series: &found.row.series,
            correction: row.as_ref().map(CorrectionRow::of),
            replayed: *replayed,
        }
    }
}

fn document_of(row: &JournalRow) -> Option<&str> {
    row.entry.record.document_id.as_deref()
}

fn reason_of(row: &LifeRow) -> Option<&str> {
    row.reason.as_deref()
}
