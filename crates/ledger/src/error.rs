//! What can go wrong in the ledger, and what it means for a number.

use thiserror::Error;

use super::{At, ChangeRefusal, SeriesRefusal, TokenRefusal};

/// Why a ledger call failed.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The connection, the pool or a time-out: no write is known to have happened unless
    /// `maybe_written`. Worth a retry.
    #[error("ledger unreachable: {cause}")]
    Unreachable {
        /// The driver's message.
        cause: String,
        /// Whether the transaction may have committed all the same.
        maybe_written: bool,
    },
    /// A lock was not granted in time: rolled back. Worth a retry.
    #[error("ledger busy: {cause}")]
    LockTimeout {
        /// The driver's message.
        cause: String,
        /// Name of the counter whose row another transaction holds, where that is known.
        counter: Option<String>,
    },
    /// A deadlock or a serialisation failure: rolled back. Worth a retry.
    #[error("ledger conflict: {0}")]
    Conflict(String),
    /// The ledger refuses a value for good. Not worth a retry. A refusal by the database is one
    /// only where it accepted another row in the same statements ([`LedgerError::Unfit`]).
    #[error("ledger refused: {0}")]
    Refused(String),
    /// The series was changed or removed a moment ago, and the caller uses its former version.
    /// Nothing written; worth another call with the new version, not the same one again.
    #[error("the series has just changed; send the request again")]
    SeriesChanged,
    /// The database refuses a row for its content or for other rows (SQLSTATE classes 22 and 23).
    /// This does not prove a fault of the row: a broken constraint or trigger refuses every row
    /// with the same error. Never a final answer to a request for a number.
    #[error("ledger refused a row: {0}")]
    Unfit(String),
    /// The database answers, but cannot serve: a right or a table is missing, an index is
    /// corrupted, a trigger fails. No row is at fault. Worth a retry, as where it is unreachable.
    #[error("ledger fails: {0}")]
    Fault(String),
    /// A change of series is refused for good. Nothing written.
    #[error(transparent)]
    Series(#[from] SeriesRefusal),
    /// A change of tokens is refused for good. Nothing written.
    #[error(transparent)]
    Token(#[from] TokenRefusal),
    /// A change that two people answer for is refused. Nothing written.
    #[error(transparent)]
    Change(#[from] ChangeRefusal),
    /// No caller waits for a change of series any more; its proof was not made. Nothing written.
    #[error("the proof of a change of series was given up: nobody waited for it any longer")]
    GivenUp,
    /// The epoch of the call is no longer the partition's. Nothing written.
    #[error("partition {partition} has left epoch {epoch}")]
    Fenced {
        /// The partition.
        partition: u32,
        /// The caller's epoch.
        epoch: u64,
    },
    /// The node has left or was adopted.
    #[error("node {0} is not registered (any more)")]
    NodeGone(numerator_runtime::node::NodeId),
    /// The ledger has forgotten what it confirmed earlier, or is another incarnation than the one
    /// that was agreed on: it went back (F9, F25). Nothing written; not worth a retry under this
    /// identity.
    #[error("the ledger went back: {0}")]
    WentBack(String),
    /// The ledger was set up with other settings.
    #[error("{setting} is {here} here but {there} in the ledger; use the ledger's value")]
    SettingsDiffer {
        /// Name of the setting.
        setting: &'static str,
        /// The value in the settings.
        here: String,
        /// The value in the ledger.
        there: String,
    },
    /// The search was not exhaustive: there is too much to search. The text is complete.
    #[error("{0}")]
    Unsearched(String),
    /// The schema is newer than this binary, or older and not to be changed, or a migration failed.
    #[error("migration: {0}")]
    Migration(String),
}

impl LedgerError {
    /// The refusal of a caller whose epoch is over.
    pub(crate) fn fenced(At { partition, epoch }: At) -> Self {
        LedgerError::Fenced { partition, epoch }
    }

    /// The same failure of a statement with its own commit, or of a COMMIT: when the answer is
    /// lost, the write may be committed.
    pub(super) fn at_commit(error: sqlx::Error) -> Self {
        match LedgerError::from(error) {
            LedgerError::Unreachable { cause, .. } => {
                LedgerError::Unreachable { cause, maybe_written: true }
            }
            other => other,
        }
    }

    /// The same failure, met while locking the row of a counter.
    pub(super) fn at_counter(self, name: String) -> Self {
        match self {
            LedgerError::LockTimeout { cause, .. } => {
                LedgerError::LockTimeout { cause, counter: Some(name) }
            }
            other => other,
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn retry_useful(&self) -> bool {
        matches!(
            self,
            LedgerError::Unreachable { .. }
                | LedgerError::LockTimeout { .. }
                | LedgerError::Conflict(_)
                | LedgerError::Fault(_)
        )
    }

    /// The failure in a word, for metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            LedgerError::LockTimeout { .. } => "lock",
            LedgerError::Conflict(_) => "conflict",
            LedgerError::Unreachable { .. } => "connection",
            LedgerError::Fenced { .. } | LedgerError::NodeGone(_) | LedgerError::WentBack(_) => {
                "fenced"
            }
            _ => "refused",
        }
    }

    /// Whether the statements of the call's connections are of an older schema: on these they
    /// always fail.
    pub(super) fn is_of_outdated_query(&self) -> bool {
        matches!(self, LedgerError::Unreachable { cause, .. } if cause.starts_with(COLUMNS_CHANGED))
    }

    /// Whether reading may go on where this call failed: the database takes no writes, or its disk
    /// is full.
    #[must_use]
    pub fn spares_reads(&self) -> bool {
        match self.code() {
            Some(code) if code.len() == 5 => matches!(code, READ_ONLY | DISK_FULL),
            Some(code) => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 8 | 13)),
            None => false,
        }
    }

    /// Whether the database did not answer: there is no connection, or it broke. Otherwise the
    /// database itself does not carry the call out.
    #[must_use]
    pub fn is_silence(&self) -> bool {
        let is_of_connection = |code: &str| code.starts_with("08") || code.starts_with("57");
        matches!(self, LedgerError::Unreachable { .. })
            && self.code().is_none_or(|code| code.len() == 5 && is_of_connection(code))
    }

    /// The engine's code of the failure that keeps the ledger from answering, if it has one.
    fn code(&self) -> Option<&str> {
        let LedgerError::Unreachable { cause, .. } = self else { return None };
        let (code, _) = cause.split_once(':')?;
        let is_state = |code: &str| {
            code.len() == 5 && code.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'Z'))
        };
        (is_state(code) || code.parse::<u32>().is_ok()).then_some(code)
    }

    /// The same behind the commit of what the call wrote: the caller learns only that it may be
    /// written, and asks again.
    pub(crate) fn behind_commit(self) -> Self {
        LedgerError::Unreachable { cause: self.to_string(), maybe_written: true }
    }

    /// Whether the call may have written.
    #[must_use]
    pub fn maybe_written(&self) -> bool {
        matches!(self, LedgerError::Unreachable { maybe_written: true, .. })
    }
}

impl From<sqlx::Error> for LedgerError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(refusal) => {
                let code = refusal.code().unwrap_or_default();
                of_code(&code, refusal.constraint(), refusal.message())
            }
            // Values of ours that no column takes.
            sqlx::Error::Encode(_) => LedgerError::Unfit(error.to_string()),
            // A table, a column or its content is not as this program knows it.
            sqlx::Error::RowNotFound
            | sqlx::Error::TypeNotFound { .. }
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_) => LedgerError::Fault(error.to_string()),
            _ => LedgerError::Unreachable { cause: error.to_string(), maybe_written: false },
        }
    }
}

impl LedgerError {
    /// The meaning of an error as a transaction began. No row was examined yet, so none is at
    /// fault: where the tables are missing, another ledger is in the place of this one.
    pub(super) fn at_begin(error: sqlx::Error) -> Self {
        match Self::from(error) {
            LedgerError::Unfit(cause) => LedgerError::Fault(cause),
            other => other,
        }
    }

    /// The same where the row is not proved to be at fault.
    pub(super) fn unproven(self) -> Self {
        match self {
            LedgerError::Unfit(cause) => LedgerError::Fault(format!(
                "{cause}; it refuses a plain row too, so the record is not to blame"
            )),
            other => other,
        }
    }
}

impl From<sqlx::migrate::MigrateError> for LedgerError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError;
        match error {
            // The schema is not known to be wrong: a lock wait, a lost connection.
            MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
                match LedgerError::from(cause) {
                    LedgerError::Unfit(why) | LedgerError::Fault(why) => {
                        LedgerError::Migration(why)
                    }
                    worth_a_retry => worth_a_retry,
                }
            }
            MigrateError::VersionMissing(version) => LedgerError::Migration(format!(
                "the schema has migration {version}, which this binary does not know: it is newer \
                 than the binary; start a newer version"
            )),
            other => LedgerError::Migration(other.to_string()),
        }
    }
}

/// PostgreSQL: the ledger lives another life than the one agreed on (`must_be_incarnation`).
const NO_SUCH_INCARNATION: &str = "NU001";

/// PostgreSQL: a prepared statement now gives columns of other types, because the schema was
/// changed. Never the fault of a row: one must not be put aside for it.
const COLUMNS_CHANGED: &str = "0A000";

/// PostgreSQL: the server, or the transaction, takes no writes.
const READ_ONLY: &str = "25006";

/// PostgreSQL: no space is left.
const DISK_FULL: &str = "53100";

/// SQLite: the snapshot that the transaction has read is no longer the newest.
const BUSY_SNAPSHOT: u32 = 517;

/// The meaning of an engine's error code: SQLSTATE (five characters) or SQLite's extended result
/// code. Other codes than these are a fault of the database: never of a row.
fn of_code(code: &str, constraint: Option<&str>, message: &str) -> LedgerError {
    let unreachable =
        || LedgerError::Unreachable { cause: format!("{code}: {message}"), maybe_written: false };
    let lock_timeout = || LedgerError::LockTimeout { cause: message.to_owned(), counter: None };
    let conflict = || LedgerError::Conflict(message.to_owned());
    let unfit = || {
        LedgerError::Unfit(match constraint {
            Some(name) => format!("{name}: {message}"),
            None => message.to_owned(),
        })
    };
    let fault = || LedgerError::Fault(format!("{code}: {message}"));
    if code.len() == 5 {
        return match code {
            "40001" | "40P01" => conflict(),
            NO_SUCH_INCARNATION => LedgerError::WentBack(message.to_owned()),
            // A statement that takes too long has waited for locks, one after the other.
            "55P03" | "57014" => lock_timeout(),
            // Connection lost, server out of resources or stopping, session ended by its time-out,
            // or its disk failing: not the fault of the data.
            _ if ["08", "53", "57", "58"].iter().any(|class| code.starts_with(class)) => {
                unreachable()
            }
            "25P03" | "25P04" | READ_ONLY | COLUMNS_CHANGED => unreachable(),
            // The content of a row does not fit; a violated constraint.
            _ if ["22", "23"].iter().any(|class| code.starts_with(class)) => unfit(),
            _ => fault(),
        };
    }
    let number = code.parse::<u32>().unwrap_or(0);
    // The low byte is SQLite's primary result code.
    match number & 0xff {
        _ if number == BUSY_SNAPSHOT => conflict(),
        5 | 6 => LedgerError::LockTimeout {
            cause: format!(
                "{message}: another process writes to the file, such as a command or a backup; \
                 try again once it has ended"
            ),
            counter: None,
        },
        // Interrupted: it has looked through rows for longer than it may.
        9 => lock_timeout(),
        // Out of memory, read-only, I/O, damaged, full, cannot open, not a database.
        7 | 8 | 10 | 11 | 13 | 14 | 26 => unreachable(),
        // Too big; a constraint, which is what a trigger raises as well; a value of another type.
        18..=20 => unfit(),
        _ => fault(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_behind_a_commit_may_be_written() {
        let late = LedgerError::WentBack("it was answered".into()).behind_commit();
        assert!(late.maybe_written() && late.retry_useful(), "{late}");
    }

    #[test]
    fn a_code_says_whether_to_try_again() {
        let retry = |code| of_code(code, None, "m").retry_useful();
        for busy in ["55P03", "57014", "5", "261", "6", "9"] {
            assert!(matches!(of_code(busy, None, "m"), LedgerError::LockTimeout { .. }), "{busy}");
        }
        for conflict in ["40001", "40P01", "517"] {
            assert!(matches!(of_code(conflict, None, "m"), LedgerError::Conflict(_)), "{conflict}");
        }
        for lost in ["08006", "53300", "57P01", "25P03", "0A000", "10", "13", "14"] {
            assert!(matches!(of_code(lost, None, "m"), LedgerError::Unreachable { .. }), "{lost}");
        }
        for data in ["22021", "22P02", "23503", "23505", "23514", "2067", "19", "20", "18"] {
            assert!(matches!(of_code(data, None, "m"), LedgerError::Unfit(_)), "{data}");
            assert!(!retry(data), "{data}");
        }
        for fault in [
            "42501", "42P01", "42703", "XX000", "XX001", "XX002", "P0001", "55000", "54000",
            "28000", "28P01", "40002", "F0000", "1", "17", "21", "23", "25", "", "what",
        ] {
            assert!(matches!(of_code(fault, None, "m"), LedgerError::Fault(_)), "{fault}");
            assert!(retry(fault), "{fault}");
        }
    }

    #[test]
    fn who_says_why_it_does_not_serve_is_there_and_may_be_read() {
        let lost = |code| of_code(code, None, "m");
        for code in ["25006", "53100", "8", "1032", "13"] {
            assert!(lost(code).spares_reads() && !lost(code).is_silence(), "{code}");
        }
        for code in ["53300", "10", "14", "58030"] {
            assert!(!lost(code).spares_reads() && !lost(code).is_silence(), "{code}");
        }
        for silent in [lost("57P01"), lost("08006"), sqlx::Error::PoolTimedOut.into()] {
            assert!(silent.is_silence() && !silent.spares_reads(), "{silent}");
        }
        assert!(!lost("55P03").is_silence(), "a lock is an answer");
    }

    #[test]
    fn what_fails_as_a_transaction_begins_is_the_fault_of_no_row() {
        let unfit = || sqlx::Error::Encode("too long".into());
        assert!(matches!(LedgerError::from(unfit()), LedgerError::Unfit(_)));
        assert!(matches!(LedgerError::at_begin(unfit()), LedgerError::Fault(_)));
    }

    #[test]
    fn a_lock_that_was_not_granted_names_its_counter() {
        let at = |code| of_code(code, None, "m").at_counter("1:SEQ:k".into());
        let named = |error| matches!(error, LedgerError::LockTimeout { counter: Some(_), .. });
        assert!(named(at("55P03")));
        assert!(matches!(at("40001"), LedgerError::Conflict(_)));
    }

    #[test]
    fn a_broken_constraint_is_named() {
        let error = of_code("23514", Some("counter_in_order"), "violates");
        assert_eq!(error.to_string(), "ledger refused a row: counter_in_order: violates");
    }

    #[test]
    fn a_lost_answer_to_a_commit_leaves_the_write_open() {
        let error = LedgerError::at_commit(sqlx::Error::WorkerCrashed);
        assert!(matches!(error, LedgerError::Unreachable { maybe_written: true, .. }));
    }
}
