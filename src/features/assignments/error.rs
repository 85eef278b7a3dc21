//! Why a number of a range is not assigned to a document. Nothing was changed, unless the ledger
//! says otherwise; no number is taken.

use thiserror::Error;

use crate::engine::allocator::AllocError;
use crate::features::lifecycle::error::LifecycleError;
use crate::ledger::LedgerError;
use crate::web::problem::{Problem, Slug};

/// Why a number is not assigned.
#[derive(Debug, Error)]
pub(crate) enum NotAssigned {
    /// The number is not found, is void, or is in the archive.
    #[error(transparent)]
    Number(LifecycleError),
    /// The number is beyond the caller's right.
    #[error(
        "{user} may see {number}, and did not take its range: a caller assigns numbers of ranges \
         that it took itself, a registrar those within its series and projects"
    )]
    OutOfReach {
        /// The caller.
        user: String,
        /// The text.
        number: String,
    },
    /// The number is of no range that was taken for no document.
    #[error("{number} is not assigned: {}", alone(document_id.as_deref()))]
    NotOfARange {
        /// The text.
        number: String,
        /// The document for which it was taken, where one was named.
        document_id: Option<String>,
    },
    /// The number is another document's.
    #[error("{number} is assigned to {held}, not to {named}")]
    OtherDocument {
        /// The text.
        number: String,
        /// Its document.
        held: String,
        /// The document that the caller names.
        named: String,
    },
    /// The document has, or holds, another number of the series.
    #[error(transparent)]
    Document(#[from] AllocError),
    /// The partition is lent to something else.
    #[error(
        "partition {0} is lent to an import, a change, a registration or another assignment: send \
         the request again once that is done; where it was killed, the services take the partition \
         back within seconds"
    )]
    Lent(u32),
    /// Not every node has released the partition.
    #[error(
        "the database could not take partition {0} over in time, and nothing is assigned: send the \
         request again; `numerator status` shows what it waits for"
    )]
    TimedOut(u32),
    /// The ledger went back.
    #[error(
        "partition {0} is held, for the ledger went back; it is released by `numerator reconcile \
         --ledger-restored`"
    )]
    Held(u32),
    /// A process of an earlier version runs.
    #[error(
        "a process of an earlier version runs on the ledger, and would give the document a second \
         number; send the request again once it has ended"
    )]
    BesideOlder,
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a number that is no member of a range for no document keeps its document, with the remedy.
fn alone(document_id: Option<&str>) -> String {
    match document_id {
        Some(document_id) => format!(
            "it was taken for {document_id}, whose number it stays; void it, and take another one \
             with `replaces`"
        ),
        None => "it was taken alone and for no document; take a number with its `document_id`, or \
                 assign one of a range (`count`)"
            .to_owned(),
    }
}

impl NotAssigned {
    /// Whether the record of the range may be on its way.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, NotAssigned::Number(error) if error.is_missing())
    }
}

impl From<LifecycleError> for NotAssigned {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::Ledger(error) => NotAssigned::Ledger(error),
            other => NotAssigned::Number(other),
        }
    }
}

impl From<NotAssigned> for Problem {
    fn from(error: NotAssigned) -> Self {
        let error = match error {
            NotAssigned::Ledger(error) => return Problem::of_write(error),
            NotAssigned::Number(error) => return error.into(),
            NotAssigned::Document(asked) => return asked.into(),
            other => other,
        };
        let told = |slug| Problem::new(slug, error.to_string());
        match &error {
            NotAssigned::OutOfReach { .. } => told(Slug::NotPermitted),
            NotAssigned::NotOfARange { .. } => Problem::field("number", error.to_string()),
            NotAssigned::OtherDocument { .. } => told(Slug::OtherDocument).of_field("document_id"),
            NotAssigned::Lent(_) | NotAssigned::TimedOut(_) => told(Slug::LockTimeout).retry_soon(),
            NotAssigned::Held(_) => told(Slug::PartitionHeld).retry_soon(),
            NotAssigned::BesideOlder => told(Slug::OlderProcess).retry_soon(),
            NotAssigned::Number(_) | NotAssigned::Document(_) | NotAssigned::Ledger(_) => {
                Problem::internal_taking_nothing(&error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::language::Locale;

    #[test]
    fn each_refusal_has_its_problem_and_says_whether_a_retry_may_help_and_a_number_is_taken() {
        let number = || "INV-0004".to_owned();
        let unreachable = |maybe_written| {
            NotAssigned::from(LedgerError::Unreachable { cause: "gone".into(), maybe_written })
        };
        let other =
            NotAssigned::OtherDocument { number: number(), held: "a".into(), named: "b".into() };
        for (error, (status, code), retryable, taken) in [
            (
                LifecycleError::NotFound { number: number() }.into(),
                (404, "number-not-found"),
                false,
                "no",
            ),
            (
                NotAssigned::OutOfReach { user: "u".into(), number: number() },
                (403, "not-permitted"),
                false,
                "no",
            ),
            (
                NotAssigned::NotOfARange { number: number(), document_id: None },
                (422, "invalid-field"),
                false,
                "no",
            ),
            (other, (409, "other-document"), false, "no"),
            (
                AllocError::DocumentNumbered { number: None }.into(),
                (409, "document-already-numbered"),
                false,
                "no",
            ),
            (NotAssigned::Lent(3), (503, "lock-timeout"), true, "no"),
            (NotAssigned::TimedOut(3), (503, "lock-timeout"), true, "no"),
            (NotAssigned::Held(3), (503, "partition-held"), true, "no"),
            (NotAssigned::BesideOlder, (503, "older-process"), true, "no"),
            (unreachable(true), (503, "database-connection"), true, "maybe"),
        ] {
            let said = error.to_string();
            let body = Problem::from(error).body("r", Locale::English);
            let told = (body.status, body.code, body.retryable, body.number_taken);
            assert_eq!(told, (status, code, retryable, taken), "{said}");
        }
    }
}
