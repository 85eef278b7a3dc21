//! Why no number was handed out, whether a retry is useful, and whether one may have been taken.

use std::fmt;

use numbering::{InputError, RuleError};
use thiserror::Error;

use crate::engine::sources::SourceError;
use crate::ledger::LedgerError;

/// Whether a number may have been taken although none was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberTaken {
    /// Certainly not.
    No,
    /// Possibly: a retry with the same document or key finds it.
    Maybe,
}

/// What keeps the service from taking numbers for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// A ceiling is used up and the ledger cannot raise it (slug `ceiling-reached`).
    CeilingReached,
    /// Too many records wait for the journal (slug `outbox-full`).
    OutboxFull,
    /// Too many requests wait for the partition (slug `queue-full`).
    QueueFull,
    /// Redis does not answer and owns the partition (slug `redis-unavailable`).
    Redis,
    /// The ledger does not answer (slug `database-connection`).
    Ledger,
    /// The lock of a counter is held elsewhere (slug `lock-timeout`).
    Lock,
    /// The series was changed or removed, and this process does not know it yet; or, for a
    /// reservation, any series or reference data (slug `series-changed`).
    SeriesChanged,
    /// The partition is held until an operator acts (slug `partition-held`).
    Held,
    /// The partition belongs to Redis, and this process knows none (slug `redis-unavailable`).
    NoRedis,
    /// The configured Redis counts for another ledger (slug `redis-unavailable`).
    ForeignRedis,
    /// The clock is behind the last id of `{SNOWFLAKE}`, or shows a year that ids do not have (slug
    /// `clock-behind`).
    ClockBehind,
    /// Redis knows a number of the request, and the journal does not (slug `number-not-journaled`).
    NotJournaled,
    /// Every node number for ids is held (slug `node-numbers-held`).
    NodeNumbers,
    /// A process of an earlier version lives, which does not know reservations (slug
    /// `older-process`).
    OlderProcess,
    /// Which series reserve nothing cannot be found out (slug `series-unread`).
    SeriesUnread,
    /// The series has as many live reservations as it may have (slug `reservations-full`).
    ReservationsFull,
    /// The process is stopping (slug `stopping`).
    Stopping,
}

impl Unavailable {
    /// The slug by which callers and `/readyz` know it.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Unavailable::CeilingReached => "ceiling-reached",
            Unavailable::OutboxFull => "outbox-full",
            Unavailable::QueueFull => "queue-full",
            Unavailable::Redis | Unavailable::NoRedis | Unavailable::ForeignRedis => {
                "redis-unavailable"
            }
            Unavailable::Ledger => "database-connection",
            Unavailable::Lock => "lock-timeout",
            Unavailable::SeriesChanged => "series-changed",
            Unavailable::Held => "partition-held",
            Unavailable::ClockBehind => "clock-behind",
            Unavailable::NotJournaled => "number-not-journaled",
            Unavailable::NodeNumbers => "node-numbers-held",
            Unavailable::OlderProcess => "older-process",
            Unavailable::SeriesUnread => "series-unread",
            Unavailable::ReservationsFull => "reservations-full",
            Unavailable::Stopping => "stopping",
        }
    }

    /// The reason in a failed call to the ledger.
    pub(super) fn of_ledger(error: &LedgerError) -> Self {
        match error {
            LedgerError::LockTimeout { .. } | LedgerError::Conflict(_) => Unavailable::Lock,
            LedgerError::SeriesChanged => Unavailable::SeriesChanged,
            _ => Unavailable::Ledger,
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unavailable::CeilingReached => "ceiling reached",
            Unavailable::OutboxFull => "outbox full",
            Unavailable::QueueFull => "queue full",
            Unavailable::Redis => "redis does not answer",
            Unavailable::Ledger => "ledger does not answer",
            Unavailable::Lock => "somebody else holds a lock",
            Unavailable::SeriesChanged => "the series has just changed",
            Unavailable::Held => "held until an operator acts",
            Unavailable::NoRedis => "owned by redis, and redis.url is not set",
            Unavailable::ForeignRedis => "redis counts for another ledger",
            Unavailable::ClockBehind => "the clock is behind the last id",
            Unavailable::NotJournaled => "the number that was taken is not in the journal",
            Unavailable::NodeNumbers => "every node number for ids is held",
            Unavailable::OlderProcess => "a process of an earlier version lives",
            Unavailable::SeriesUnread => "which series reserve nothing is not known",
            Unavailable::ReservationsFull => "too many reservations are live",
            Unavailable::Stopping => "stopping",
        })
    }
}

/// The error for a request that cannot be served now; a second is a fair guess for all causes.
pub(super) fn unavailable(why: Unavailable, taken: NumberTaken) -> AllocError {
    AllocError::Unavailable { why, retry_after_ms: 1_000, taken }
}

/// The part of a message that names the number of a document.
fn earlier(number: &Option<String>) -> String {
    match number {
        Some(number) => format!(
            "document has number {number} already, for another payload: send the first one \
             unchanged to get it again"
        ),
        None => "document has a number already, which was issued to somebody else: who may read \
                 their numbers looks it up"
            .to_owned(),
    }
}

/// The message about the reservation of a document.
fn reserved(number: &Option<String>) -> String {
    match number {
        Some(number) => format!(
            "number {number} is reserved for the document: confirm or cancel its reservation, or \
             send the request that made it unchanged to see it again"
        ),
        None => {
            "a number is reserved for the document by another caller, which confirms or cancels it"
                .to_owned()
        }
    }
}

/// Why a request got no number.
#[derive(Clone, Debug, Error)]
pub enum AllocError {
    /// No series serves it.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The series refuses it.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A field outside the numbering language is wrong (`document_id`, `idempotency_key`, `count`).
    #[error("{field}: {reason}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// What is wrong and the remedy.
        reason: String,
    },
    /// The document has a number for another payload.
    #[error(
        "{}; only for a second number, send \"again\": true (`next --again`)",
        earlier(.number)
    )]
    DocumentNumbered {
        /// That number; nothing where it was issued to another identity, and is not shown.
        number: Option<String>,
    },
    /// A number is reserved for the document, and not confirmed.
    #[error("{}", reserved(.number))]
    DocumentReserved {
        /// That number; nothing where it was reserved for another identity, and is not shown.
        number: Option<String>,
    },
    /// The document has a number that moved to an archive.
    #[error(
        "document has a number already, and its record moved to the archive file {file}: read it \
         with `numerator find --archive`; only for a second number, send \"again\": true \
         (`next --again`)"
    )]
    DocumentArchived {
        /// The file.
        file: String,
    },
    /// The idempotency key was used for another payload.
    #[error("idempotency key was used for another payload; use a new key for another request")]
    KeyReused,
    /// The counter has not reached the `start` of the version in force, as after a change of it:
    /// values below are never skipped silently.
    #[error(
        "counter {counter_id} of serial {serial} goes on with {next}, which lies below the `start` \
         of series {code}, {start}, and nothing is given out: move it with `numerator move-counter \
         {counter_id} --next {move_to} --reason …`, or, where callers have tokens, by \
         `reset-counter`, for which two people answer; or apply the series with a lower `start`"
    )]
    BelowStart {
        /// Code of the series.
        code: String,
        /// Name of the serial.
        serial: String,
        /// The counter.
        counter_id: i64,
        /// The value that it would give next.
        next: i64,
        /// The least value that the series gives.
        start: u64,
        /// The least value on the counter's step that it may give next.
        move_to: u64,
    },
    /// The serial is past its last value.
    #[error(
        "serial {serial} ends at {max} and has too few values left; give it more digits or a \
         higher `max` in the series and apply that"
    )]
    Exhausted {
        /// Name of the serial.
        serial: String,
        /// Its last value.
        max: u64,
    },
    /// The ledger has that number from another counter, of this series or another one.
    #[error(
        "another counter rendered the same number {number}; the template must show everything that \
         its counters count by, for example the year"
    )]
    Collided {
        /// The number.
        number: String,
    },
    /// The source of the series gives no value, or none that its number can show. Nothing was
    /// taken.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Not now.
    #[error("unavailable: {why}")]
    Unavailable {
        /// What is missing.
        why: Unavailable,
        /// When a retry makes sense.
        retry_after_ms: u64,
        /// Whether a number may have been taken.
        taken: NumberTaken,
    },
    /// Other transactions got in the way each time (slug `version-conflict`).
    #[error("other transactions changed the same rows each time it was tried")]
    Conflict {
        /// Whether a number may have been taken.
        taken: NumberTaken,
    },
    /// The time limit of the request passed while it waited (slug `lock-timeout`).
    #[error("timed out while waiting for the partition")]
    TimedOut {
        /// Whether a number may have been taken.
        taken: NumberTaken,
    },
}

impl AllocError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn retry_useful(&self) -> bool {
        match self {
            AllocError::Source(error) => error.retry_useful(),
            AllocError::Unavailable { .. }
            | AllocError::TimedOut { .. }
            | AllocError::Conflict { .. } => true,
            _ => false,
        }
    }

    /// The answer to a request for which the ledger failed for good.
    pub(super) fn of_ledger(error: &LedgerError, taken: NumberTaken) -> Self {
        match error {
            // A refusal of the program itself. After a commit of unknown outcome the first attempt
            // may have been taken for good. An error of the database is never a final answer, nor
            // shown to callers: a fault of it looks like one of the request (F45).
            LedgerError::Refused(reason) if taken == NumberTaken::No => {
                AllocError::Field { field: "request", reason: reason.clone() }
            }
            LedgerError::Conflict(_) => AllocError::Conflict { taken },
            _ => unavailable(Unavailable::of_ledger(error), taken),
        }
    }

    /// Whether a number may have been taken.
    #[must_use]
    pub fn number_taken(&self) -> NumberTaken {
        match self {
            AllocError::Unavailable { taken, .. }
            | AllocError::Conflict { taken }
            | AllocError::TimedOut { taken } => *taken,
            _ => NumberTaken::No,
        }
    }
}

/// The answer to a request whose ledger does not answer before anything is taken.
pub(super) fn unread(error: &LedgerError) -> AllocError {
    tracing::warn!(%error, "the ledger could not be read");
    unavailable(Unavailable::Ledger, NumberTaken::No)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A commit of unknown outcome, and then a ledger that refuses the row.
    #[test]
    fn a_refusal_after_a_lost_commit_says_that_a_number_may_have_been_taken() {
        let refused = LedgerError::Refused("request: too large".into());
        let maybe = AllocError::of_ledger(&refused, NumberTaken::Maybe);
        assert_eq!((maybe.number_taken(), maybe.retry_useful()), (NumberTaken::Maybe, true));
        let no = AllocError::of_ledger(&refused, NumberTaken::No);
        assert_eq!((no.number_taken(), no.retry_useful()), (NumberTaken::No, false));
    }

    #[test]
    fn what_the_database_says_is_no_final_answer_and_is_not_told() {
        let says = || "23514: new row for relation \"journal\" violates".to_owned();
        for error in [LedgerError::Unfit(says()), LedgerError::Fault(says())] {
            let told = AllocError::of_ledger(&error, NumberTaken::No);
            assert!(told.retry_useful() && !told.to_string().contains("journal"), "{told}");
        }
    }
}
