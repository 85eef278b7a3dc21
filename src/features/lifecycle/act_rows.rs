//! Acts upon a number as rows of its answer: corrections, and the document of a number of a range.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger::{LifeRow, VariableChange};
use crate::web::instant::instant;

/// A correction, as the number's row shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CorrectionRow<'a> {
    /// When.
    #[schema(format = DateTime)]
    corrected_at: String,
    /// Who.
    user_id: &'a str,
    /// From where.
    ip_address: Option<&'a str>,
    /// Why.
    reason: Option<&'a str>,
    /// Each variable with the value that it had and the one that it should have had.
    #[schema(value_type = Object)]
    context: &'a BTreeMap<String, VariableChange>,
}

impl<'a> CorrectionRow<'a> {
    /// The answer for a correction.
    pub(crate) fn of(act: &'a LifeRow) -> Self {
        CorrectionRow {
            corrected_at: instant(act.at_us),
            user_id: &act.user_id,
            ip_address: act.ip_address.as_deref(),
            reason: act.reason.as_deref(),
            context: &act.changes,
        }
    }
}

/// A number of a range that is assigned to a document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AssignedRow<'a> {
    /// The number.
    pub(crate) document_number: Option<&'a str>,
    /// Its document.
    pub(crate) document_id: Option<&'a str>,
    /// When it was assigned.
    #[schema(format = DateTime)]
    assigned_at: String,
    /// Who assigned it.
    assigned_by: &'a str,
}

impl<'a> AssignedRow<'a> {
    /// The answer for an assignment.
    pub(crate) fn of(act: &'a LifeRow) -> Self {
        AssignedRow {
            document_number: act.number.as_deref(),
            document_id: act.document_id.as_deref(),
            assigned_at: instant(act.at_us),
            assigned_by: &act.user_id,
        }
    }
}
