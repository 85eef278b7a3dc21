//! The records of exchange serials: interface serials that were seen, steps of system serials, and
//! the chain of a unified serial.

use sqlx_macros::FromRow;

use crate::LedgerError;
use crate::columns::{Word, unsigned_small};

/// The caller, its address, and its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principal {
    /// The user.
    pub user_id: String,
    /// The caller's address.
    pub ip_address: Option<String>,
    /// The caller's `Idempotency-Key`: the same user with the same key repeats its own call.
    pub key: Option<String>,
}

/// An interface serial to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceCheck {
    /// The serial.
    pub serial: String,
    /// The unified serial that came with it.
    pub unified_serial: Option<String>,
    /// A sight less than so long ago makes this one a repetition, in microseconds.
    pub window_us: i64,
    /// The caller that saw it.
    pub principal: Principal,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The first sight within the window: the call may be served.
    Accepted {
        /// When.
        at_us: i64,
        /// Whether an earlier check of the same asker under the same key accepted it.
        replayed: bool,
    },
    /// Seen before within the window.
    Repeated(FirstSeen),
}

/// The sight of an interface serial that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstSeen {
    /// When.
    pub at_us: i64,
    /// The user who saw it.
    pub user_id: String,
    /// How often the serial was repeated since, this time included.
    pub repeats: u64,
}

/// How far a step has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It runs, or did when it was last reported.
    InProgress,
    /// It is done, and never runs again.
    Succeeded,
    /// It may run again.
    Failed,
}

/// The step of a system serial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The system serial.
    pub serial: String,
    /// The unified serial that it belongs to, where a caller has named it.
    pub unified_serial: Option<String>,
    /// How far it has come.
    pub state: StepState,
    /// The current attempt, from 1.
    pub attempt: u32,
    /// When that began.
    pub begun_at_us: i64,
    /// The user who began it.
    pub begun_by: String,
    /// The `Idempotency-Key` under which it began.
    pub begun_key: Option<String>,
    /// When it ended.
    pub ended_at_us: Option<i64>,
    /// The user who ended it.
    pub ended_by: Option<String>,
    /// Its result, JSON as it was written.
    pub result: Option<String>,
    /// Why it failed.
    pub reason: Option<String>,
}

/// The columns of a step.
#[derive(FromRow)]
pub(crate) struct StepRow {
    serial: String,
    unified_serial: Option<String>,
    state: String,
    attempt: i32,
    begun_at_us: i64,
    begun_by: String,
    begun_key: Option<String>,
    ended_at_us: Option<i64>,
    ended_by: Option<String>,
    result: Option<String>,
    reason: Option<String>,
}

impl TryFrom<StepRow> for Step {
    type Error = LedgerError;

    fn try_from(row: StepRow) -> Result<Self, LedgerError> {
        Ok(Step {
            serial: row.serial,
            unified_serial: row.unified_serial,
            state: StepState::read(&row.state)?,
            attempt: unsigned_small(row.attempt, "system_step.attempt")?,
            begun_at_us: row.begun_at_us,
            begun_by: row.begun_by,
            begun_key: row.begun_key,
            ended_at_us: row.ended_at_us,
            ended_by: row.ended_by,
            result: row.result,
            reason: row.reason,
        })
    }
}

/// A step that wants to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginStep {
    /// The system serial.
    pub serial: String,
    /// The unified serial that came with it.
    pub unified_serial: Option<String>,
    /// The caller that wants to run it.
    pub principal: Principal,
}

/// Whether it may. Each carries the step as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Run it: no other caller may.
    Run(Step),
    /// Run it: the same asker got this answer before, under the same key.
    RunAgain(Step),
    /// It runs, or did when it was last reported.
    InProgress(Step),
    /// It is done.
    Succeeded(Step),
    /// The serial belongs to another unified serial.
    OtherChain(Step),
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Success; only the caller that began the attempt may report it.
    Succeeded {
        /// Its result, JSON.
        result: Option<String>,
    },
    /// Failure; any caller may report it with a reason: the way out for a step without a runner.
    Failed {
        /// Why.
        reason: String,
    },
}

/// An attempt that ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndStep {
    /// The system serial.
    pub serial: String,
    /// The attempt, as `begin` answered it.
    pub attempt: u32,
    /// How it ended.
    pub ending: Ending,
    /// The caller that reports it.
    pub principal: Principal,
}

/// The outcome of the ending. Each carries the step as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is noted.
    Noted(Step),
    /// It was noted before: the same attempt, ending, content and asker.
    NotedBefore(Step),
    /// That step was never begun.
    Unknown,
    /// The step has ended another way, is at another attempt, or has another runner.
    NotCurrent(Step),
}

/// The requested part of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainQuery {
    /// The unified serial.
    pub unified_serial: String,
    /// Only the links after this one.
    pub after: Option<LinkPlace>,
    /// At most so many links.
    pub limit: u32,
}

/// The place of a link in its chain: by time, then issued serials before events, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkPlace {
    /// When it happened.
    pub at_us: i64,
    /// Which link of that time.
    pub name: LinkName,
}

/// The name that distinguishes links of one time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkName {
    /// A serial that was issued.
    Issued(String),
    /// An event, by its number.
    Event(i64),
}

/// One link of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its place.
    pub place: LinkPlace,
    /// The serial.
    pub serial: String,
    /// The event: `issued`, `accepted`, `begun`, `succeeded` or `failed`.
    pub event: String,
    /// The attempt, for events of a step.
    pub attempt: Option<u32>,
    /// The document id of an issued serial.
    pub document_id: Option<String>,
    /// The user who asked.
    pub user_id: String,
    /// The caller's address.
    pub ip_address: Option<String>,
    /// Why the attempt failed.
    pub reason: Option<String>,
}
