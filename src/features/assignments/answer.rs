//! The JSON of an assignment. Also the output of the command with `--json`.

use serde::Serialize;
use utoipa::ToSchema;

use super::assigning::Assignment;
use crate::web::instant::instant;

/// A number of a range that is a document's.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AssignmentAnswer<'a> {
    /// The number.
    document_number: &'a str,
    /// Its document.
    document_id: Option<&'a str>,
    /// Code of its series.
    series: &'a str,
    /// When it was assigned.
    #[schema(format = DateTime)]
    assigned_at: String,
    /// Who assigned it.
    assigned_by: &'a str,
    /// Why, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Whether the series numbers a document once: then `generate-number` gives this document no
    /// other number. Elsewhere it does, since it does not look for assignments.
    numbered_once: bool,
    /// Whether an earlier call assigned it.
    replayed: bool,
}

impl<'a> AssignmentAnswer<'a> {
    /// The answer for an assignment.
    pub(crate) fn of(assignment: &'a Assignment) -> Self {
        let Assignment { found, row, is_once, replayed } = assignment;
        AssignmentAnswer {
            document_number: &found.number,
            document_id: row.document_id.as_deref(),
            series: &found.row.series,
            assigned_at: instant(row.at_us),
            assigned_by: &row.user_id,
            reason: row.reason.as_deref(),
            numbered_once: *is_once,
            replayed: *replayed,
        }
    }
}
