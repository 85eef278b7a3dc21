//! Why a number that was given by hand is not registered. Nothing was changed, unless the ledger
//! says otherwise.

use thiserror::Error;

use crate::engine::allocator::AllocError;
use crate::ledger::{
    AS_WRITTEN_MAX, LedgerError, NARROWED_AS_WRITTEN_MAX, PASSED_OVER_MAX, Registering,
};
use crate::web::problem::{Problem, Slug};

/// Why a number is not registered.
#[derive(Debug, Error)]
pub(crate) enum NotRegistered {
    /// What is wrong with the request, or its document has another number.
    #[error(transparent)]
    Asked(#[from] AllocError),
    /// Something stands in its way.
    #[error("{number} is not registered: {}", why(.outcome))]
    Refused {
        /// The text.
        number: String,
        /// What it is.
        outcome: Registering,
    },
    /// A document holds it.
    #[error(
        "{number} is not registered: it is reserved for {} until {until}; confirm or cancel its \
         reservation",
        .document_id.as_deref().unwrap_or("its caller")
    )]
    Reserved {
        /// The text.
        number: String,
        /// The document, where one was named and the registrar sees its number.
        document_id: Option<String>,
        /// Until when, RFC 3339 in UTC.
        until: String,
    },
    /// It was to be kept as written, and a series could render it.
    #[error(
        "{number} is not kept as written: {} could render it; register it without `as_written`, in \
         the series that reads it",
        reader_of(.reader.as_ref())
    )]
    Readable {
        /// The text.
        number: String,
        /// Code and version of the series, where the registrar reaches it.
        reader: Option<(String, u32)>,
    },
    /// The partition is lent to an import, a change or another registration.
    #[error(
        "partition {0} is lent to an import, a change or another registration: send the request \
         again once that is done; where it was killed, the services take the partition back within \
         seconds"
    )]
    Lent(u32),
    /// Not every node has released the partition.
    #[error(
        "the database could not take partition {0} over in time, and nothing is registered: send \
         the request again; `numerator status` shows what it waits for"
    )]
    TimedOut(u32),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Why a value is not known to be a gap yet.
const UNSETTLED: &str = "its value is among those that are still looked through after an \
    interruption; send the request again";

/// The series that could render a text, as far as its registrar reaches it.
fn reader_of(reader: Option<&(String, u32)>) -> String {
    match reader {
        Some((code, version)) => format!("version {version} of series {code}"),
        None => "a series beyond your reach".into(),
    }
}

/// What stands in the way of a number, with the remedy.
fn why(outcome: &Registering) -> String {
    match outcome {
        Registering::Taken => "it was issued, and the record has it; look it up".into(),
        Registering::Collided => {
            "its value was spent, because another document has that text; look it up".into()
        }
        Registering::Unsettled => UNSETTLED.into(),
        Registering::BelowFirst { first } => {
            format!("its counter begins with {first}; import what was issued before it")
        }
        Registering::Beside { next, step } => {
            format!("its counter counts {next} and on in steps of {step}")
        }
        Registering::TooFar { counter_id, next } => format!(
            "its counter goes on with {next}, and a number by hand passes over at most \
             {PASSED_OVER_MAX} values: where the number is right, have counter {counter_id} moved \
             there first (`reset-counter`, or `numerator move-counter`)"
        ),
        Registering::TooManyAsWritten { is_share: false } => format!(
            "the ledger keeps {AS_WRITTEN_MAX} numbers as written, and no more, void ones \
             included; numbers of a form of which none is kept are registered in a series whose \
             template reads that form"
        ),
        Registering::TooManyAsWritten { is_share: true } => format!(
            "a registrar who is narrowed to series or projects keeps {NARROWED_AS_WRITTEN_MAX} \
             numbers as written, and no more; one who is not narrowed can register it"
        ),
        Registering::InRedis(partition) => {
            format!("redis counts partition {partition}; send the request again")
        }
        Registering::Held(partition) => format!(
            "partition {partition} is held, for the ledger went back; it is released by \
             `numerator reconcile --ledger-restored`"
        ),
        Registering::BesideOlder => {
            "a process of an earlier version runs on the ledger; send the request again once it \
             has ended"
                .into()
        }
        // Answered otherwise.
        Registering::Written(_)
        | Registering::Known(_)
        | Registering::Reserved(_)
        | Registering::DocumentHas(_)
        | Registering::Readable { .. }
        | Registering::BelowStart { .. }
        | Registering::BeforeLast(_) => "nothing was done".into(),
    }
}

/// The problem that an outcome is.
fn slug_of(outcome: &Registering) -> Slug {
    match outcome {
        Registering::Reserved(_) => Slug::NumberReserved,
        Registering::Collided => Slug::NumberCollided,
        Registering::Unsettled | Registering::InRedis(_) => Slug::LockTimeout,
        Registering::Held(_) => Slug::PartitionHeld,
        Registering::BesideOlder => Slug::OlderProcess,
        Registering::BelowFirst { .. }
        | Registering::Beside { .. }
        | Registering::Readable { .. }
        | Registering::TooManyAsWritten { .. }
        | Registering::TooFar { .. } => Slug::InvalidField,
        Registering::Taken
        | Registering::Written(_)
        | Registering::Known(_)
        | Registering::DocumentHas(_)
        | Registering::BelowStart { .. }
        | Registering::BeforeLast(_) => Slug::NumberTaken,
    }
}

impl From<NotRegistered> for Problem {
    fn from(error: NotRegistered) -> Self {
        let error = match error {
            NotRegistered::Ledger(error) => return Problem::of_write(error),
            other => other,
        };
        let told = |slug| Problem::new(slug, error.to_string());
        match &error {
            NotRegistered::Refused { outcome, .. } => match slug_of(outcome) {
                Slug::InvalidField => Problem::field("number", error.to_string()),
                slug @ (Slug::LockTimeout | Slug::PartitionHeld | Slug::OlderProcess) => {
                    told(slug).retry_soon()
                }
                slug => told(slug),
            },
            NotRegistered::Reserved { .. } => told(Slug::NumberReserved),
            NotRegistered::Readable { .. } => Problem::field("number", error.to_string()),
            NotRegistered::Lent(_) | NotRegistered::TimedOut(_) => {
                told(Slug::LockTimeout).retry_soon()
            }
            NotRegistered::Asked(asked) => Problem::from(asked),
            NotRegistered::Ledger(_) => Problem::internal(&error),
        }
    }
}

#[cfg(test)]
mod tests {
    use numbering::InputError;

    use super::*;
    use crate::web::language::Locale;

    fn refused(outcome: Registering) -> NotRegistered {
        NotRegistered::Refused { number: "INV-0004".into(), outcome }
    }

    fn reserved(document_id: Option<&str>) -> NotRegistered {
        let (document_id, until) = (document_id.map(Into::into), "2026-02-03T00:00:00Z".into());
        NotRegistered::Reserved { number: "INV-0004".into(), document_id, until }
    }

    fn readable(reader: Option<(String, u32)>) -> NotRegistered {
        NotRegistered::Readable { number: "INV-0004".into(), reader }
    }

    fn unreachable(maybe_written: bool) -> NotRegistered {
        LedgerError::Unreachable { cause: "gone".into(), maybe_written }.into()
    }

    #[test]
    fn each_refusal_has_its_problem_and_says_whether_a_retry_may_help_and_a_number_is_taken() {
        let busy = LedgerError::LockTimeout { cause: "held".into(), counter: None };
        let late = InputError::DateBeforeLast { date: "a".into(), last_date: "b".into() };
        let beside = Registering::Beside { next: 5, step: 5 };
        let too_far = Registering::TooFar { counter_id: 1, next: 5 };
        let too_many = |is_share| Registering::TooManyAsWritten { is_share };
        let numbered = AllocError::DocumentNumbered { number: None };
        let held = AllocError::DocumentReserved { number: None };
        let archived = AllocError::DocumentArchived { file: "a".into() };
        for (error, (status, code), retryable, taken) in [
            (refused(Registering::Taken), (409, "number-taken"), false, "no"),
            (refused(Registering::Collided), (409, "number-collided"), false, "no"),
            (refused(Registering::Unsettled), (503, "lock-timeout"), true, "no"),
            (refused(Registering::InRedis(3)), (503, "lock-timeout"), true, "no"),
            (refused(Registering::Held(3)), (503, "partition-held"), true, "no"),
            (refused(Registering::BesideOlder), (503, "older-process"), true, "no"),
            (refused(Registering::BelowFirst { first: 5 }), (422, "invalid-field"), false, "no"),
            (refused(beside), (422, "invalid-field"), false, "no"),
            (refused(too_far), (422, "invalid-field"), false, "no"),
            (refused(too_many(false)), (422, "invalid-field"), false, "no"),
            (refused(too_many(true)), (422, "invalid-field"), false, "no"),
            (readable(Some(("INV".into(), 3))), (422, "invalid-field"), false, "no"),
            (reserved(Some("shop/1")), (409, "number-reserved"), false, "no"),
            (NotRegistered::Lent(3), (503, "lock-timeout"), true, "no"),
            (NotRegistered::TimedOut(3), (503, "lock-timeout"), true, "no"),
            (numbered.into(), (409, "document-already-numbered"), false, "no"),
            (held.into(), (409, "document-reserved"), false, "no"),
            (archived.into(), (409, "document-archived"), false, "no"),
            (AllocError::from(late).into(), (422, "date-before-last"), false, "no"),
            (busy.into(), (503, "lock-timeout"), true, "no"),
            (LedgerError::SeriesChanged.into(), (503, "series-changed"), true, "no"),
            (unreachable(false), (503, "database-connection"), true, "no"),
            (unreachable(true), (503, "database-connection"), true, "maybe"),
        ] {
            let said = error.to_string();
            let body = Problem::from(error).body("r", Locale::English);
            let told = (body.status, body.code, body.retryable, body.number_taken);
            assert_eq!(told, (status, code, retryable, taken), "{said}");
        }
    }

    #[test]
    fn a_series_that_could_render_a_number_is_named_to_those_who_reach_it() {
        let said = |reader| Problem::from(readable(reader)).to_string();
        assert!(said(Some(("INV".into(), 3))).contains("version 3 of series INV could render it"));
        assert!(said(None).contains("a series beyond your reach could render it"));
    }

    #[test]
    fn a_reservation_whose_document_is_not_shown_is_that_of_its_caller() {
        let said = |document_id| Problem::from(reserved(document_id)).to_string();
        assert!(said(Some("shop/1")).contains("reserved for shop/1 until 2026-02-03"));
        assert!(said(None).contains("reserved for its caller until 2026-02-03"));
    }
}
