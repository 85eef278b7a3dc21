//! Why nothing became of a number. Nothing was changed, unless a variant says so.

use numbering::CorrectionError;
use thiserror::Error;
use uuid::Uuid;

use crate::ledger::{CORRECTIONS_MAX, LedgerError, LifeRow};
use crate::web::instant::{instant, reserved_until};
use crate::web::problem::{Problem, Slug};

/// Why nothing became of a number.
#[derive(Debug, Error)]
pub(crate) enum LifecycleError {
    /// The journal has no such number that the caller sees, after a wait for it.
    #[error(
        "the journal has no number {number:?}; one that was issued a moment ago appears once its \
         record is committed"
    )]
    NotFound {
        /// The text.
        number: String,
    },
    /// It is reserved, and nobody's until it is confirmed.
    #[error(
        "{number} is reserved for {} until {}, and not issued: confirm its reservation, or cancel \
         it",
        document_id.as_deref().unwrap_or("its caller"),
        reserved_until(*until_us)
    )]
    Reserved {
        /// The text.
        number: String,
        /// The document that holds it.
        document_id: Option<String>,
        /// Until when, in microseconds of UTC; nothing where it is of a block.
        until_us: Option<i64>,
    },
    /// Its reservation is confirmed, and its record is on its way.
    #[error(
        "{number} is confirmed, and its record is not in the journal yet; it appears there within \
         a second while a process serves"
    )]
    BeingRecorded {
        /// The text.
        number: String,
        /// Its counter.
        counter_id: i64,
        /// The reservation.
        id: Uuid,
    },
    /// The text is that of a revision.
    #[error("{number} is a revision of {of}: name {of}, with which its revisions are void")]
    Revision {
        /// The text.
        number: String,
        /// The number as it was issued.
        of: String,
    },
    /// Several numbers have the text.
    #[error(
        "{count} numbers have the text {number:?}, each in a scope of its own: name one by its \
         `series`, `project` or `document_id`; for `replaces`, the request's own are tried"
    )]
    Several {
        /// The text.
        number: String,
        /// How many.
        count: usize,
    },
    /// The ledger refused its record.
    #[error(
        "the record of {number} is put aside, and not in the journal: have it journaled first \
         (`numerator reconcile --rejected`)"
    )]
    PutAside {
        /// The text.
        number: String,
    },
    /// Its record moved to the archive.
    #[error(
        "{number} moved to the archive{}: its record is not changed any more",
        file.as_ref().map_or(String::new(), |file| format!(", file {file}"))
    )]
    Archived {
        /// The text.
        number: String,
        /// The file, where it is known.
        file: Option<String>,
    },
    /// Its range was taken for a document: no number of it is unused.
    #[error(
        "{number} belongs to {document_id}, for which its range was taken: void its numbers one by \
         one"
    )]
    OfDocument {
        /// The text.
        number: String,
        /// The document.
        document_id: String,
    },
    /// It was taken alone: there is no range.
    #[error("{number} is no number of a range: void it without `unused`")]
    NotOfARange {
        /// The text.
        number: String,
    },
    /// It is out of reach of the caller's right.
    #[error("{user} is narrowed, and {number} lies beyond its series and projects")]
    OutOfReach {
        /// The caller.
        user: String,
        /// The text.
        number: String,
    },
    /// It is void.
    #[error("{number} is void since {}, by {}: {}", instant(row.at_us), row.user_id, why(row))]
    Void {
        /// The text.
        number: String,
        /// The void.
        row: Box<LifeRow>,
    },
    /// It is not void, and is to be replaced.
    #[error("{number} is not void: only a void number is replaced")]
    NotVoid {
        /// The text.
        number: String,
    },
    /// Another number stands in its place.
    #[error(
        "{number} is replaced by {}{}",
        row.replacement.as_deref().unwrap_or("another number"),
        taken.as_ref().map_or(String::new(), |taken| format!(
            "; {taken} was taken for this request, and replaces nothing: void it"
        ))
    )]
    Replaced {
        /// The text.
        number: String,
        /// The link.
        row: Box<LifeRow>,
        /// The number that the request has taken before it was refused.
        taken: Option<String>,
    },
    /// The link to a number that was taken is not written.
    #[error(
        "{taken} was taken, and it is not known whether it is noted that it replaces {number}: \
         send the same request again, which writes what is missing"
    )]
    Unlinked {
        /// The number that is replaced.
        number: String,
        /// The number that was taken.
        taken: String,
        /// Why.
        error: Box<LedgerError>,
    },
    /// The variables cannot be corrected.
    #[error(transparent)]
    Correction(#[from] CorrectionError),
    /// Nothing is to be corrected.
    #[error("context: names no variable; name those that were wrong, with the right values")]
    NothingToCorrect,
    /// It was corrected too often.
    #[error("{number} has {CORRECTIONS_MAX} corrections, as many as a number may have")]
    TooMany {
        /// The text.
        number: String,
    },
    /// An error of the ledger, or of its content.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl LifecycleError {
    /// Whether the record of a number may be on its way.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, LifecycleError::NotFound { .. } | LifecycleError::BeingRecorded { .. })
    }
}

/// Why a number is void.
fn why(row: &LifeRow) -> &str {
    row.reason.as_deref().unwrap_or_default()
}

impl From<LifecycleError> for Problem {
    fn from(error: LifecycleError) -> Self {
        let error = match error {
            LifecycleError::Ledger(error) => return error.into(),
            other => other,
        };
        let told = |slug| Problem::new(slug, error.to_string());
        match &error {
            // Its record may be on its way.
            LifecycleError::NotFound { .. } | LifecycleError::BeingRecorded { .. } => {
                told(Slug::NumberNotFound)
            }
            LifecycleError::Reserved { .. } => told(Slug::NumberReserved),
            LifecycleError::Revision { .. }
            | LifecycleError::Several { .. }
            | LifecycleError::PutAside { .. }
            | LifecycleError::OfDocument { .. }
            | LifecycleError::NotOfARange { .. }
            | LifecycleError::TooMany { .. } => Problem::field("number", error.to_string()),
            LifecycleError::Archived { .. } => told(Slug::NumberArchived),
            LifecycleError::OutOfReach { .. } => told(Slug::NotPermitted),
            LifecycleError::Void { .. } => told(Slug::NumberVoided),
            LifecycleError::NotVoid { .. } => told(Slug::NotVoided),
            LifecycleError::Replaced { taken: None, .. } => told(Slug::AlreadyReplaced),
            LifecycleError::Replaced { taken: Some(taken), .. } => {
                told(Slug::AlreadyReplaced).maybe_taken().naming(taken.clone())
            }
            LifecycleError::Unlinked { taken, error: cause, .. } => {
                tracing::warn!(error = %cause, number = %taken, "a replacement has no link yet");
                let problem = told(Slug::DatabaseConnection).retry_soon();
                problem.maybe_taken().naming(taken.clone())
            }
            LifecycleError::Correction(CorrectionError::Input(input)) => Problem::of_input(input),
            LifecycleError::Correction(correction) => {
                Problem::field(correction.field(), correction.to_string())
            }
            LifecycleError::NothingToCorrect => Problem::field("context", error.to_string()),
            LifecycleError::Ledger(_) => Problem::internal_taking_nothing(&error),
        }
    }
}
