//! Changes of counters that two people answer for: one requests, another approves.

use thiserror::Error;

use crate::{GapReason, ShownToken};

/// Requests pending at the same time.
pub const CHANGES_PENDING_MAX: u64 = 100;

/// The user who answers for a change where callers have no tokens: the command that makes it, for
/// one person. No other user has the name.
pub const ANSWERED_ALONE: &str = "(no tokens)";

/// The requested change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WantedChange {
    /// A counter is to go on with this value.
    NextValue(u64),
    /// Of the counters that share their last date, dates later than this no longer count.
    LastDate {
        /// Their key but for the period.
        family: String,
        /// The date.
        date: String,
    },
}

impl WantedChange {
    /// The word for it in records and answers.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            WantedChange::NextValue(_) => "counter",
            WantedChange::LastDate { .. } => "chronology",
        }
    }
}

/// A change to ask for.
#[derive(Clone, Debug)]
pub struct NewChange {
    /// The series,
    pub series_id: i64,
    /// and the counter of it; of dates, any one of those that share them.
    pub counter_id: i64,
    /// The requested change.
    pub wanted: WantedChange,
    /// Distance between two values of the serial.
    pub step: u64,
    /// Why.
    pub reason: String,
    /// The user who requests it.
    pub requested_by: String,
    /// It can no longer be approved from then on.
    pub expires_at_us: i64,
    /// The token of the ledger that was used, if any.
    pub shown: Option<ShownToken>,
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct ChangeDecision {
    /// The request.
    pub change_id: i64,
    /// The user who answers.
    pub decided_by: String,
    /// Why.
    pub reason: Option<String>,
    /// Distance between two values of the serial by now.
    pub step: u64,
    /// The token of the ledger that was used, if any.
    pub shown: Option<ShownToken>,
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeState {
    /// Not answered; once its time is over, it can no longer be approved.
    Pending,
    /// Approved, and done.
    Approved,
    /// Refused, or withdrawn by its author.
    Rejected,
}

/// A request, and its intended or actual change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRequest {
    /// Its id.
    pub change_id: i64,
    /// The series.
    pub series_id: i64,
    /// The counter.
    pub counter_id: i64,
    /// Name of its serial.
    pub serial: String,
    /// The counter's key.
    pub key: String,
    /// The requested change.
    pub wanted: WantedChange,
    /// Distance between two values.
    pub step: u64,
    /// Of a counter, the highest value that is taken or lost: as far as the ledger knows now, or at
    /// the time of the change.
    pub stands_at: i64,
    /// Of dates, the last one that counts, likewise; none where no number was issued.
    pub stands_on: Option<String>,
    /// Of dates, how many records are dated later than the requested one: at the time of the
    /// request, or of the change.
    pub dated_later: Option<u64>,
    /// Why.
    pub reason: String,
    /// The user who requested it.
    pub requested_by: String,
    /// When.
    pub requested_at_us: i64,
    /// It can no longer be approved from then on.
    pub expires_at_us: i64,
    /// The state of the request.
    pub state: ChangeState,
    /// The user who answered,
    pub decided_by: Option<String>,
    /// when,
    pub decided_at_us: Option<i64>,
    /// and why.
    pub decision_reason: Option<String>,
}

impl ChangeRequest {
    /// The run of values that are jumped over, where there are any.
    #[must_use]
    pub fn skipped(&self) -> Option<(i64, i64)> {
        let WantedChange::NextValue(next) = self.wanted else { return None };
        let step = i64::try_from(self.step).ok()?;
        let (first, last) = (self.stands_at + step, i64::try_from(next).ok()? - step);
        (first <= last).then_some((first, last))
    }

    /// Whether a gap is one that it left.
    #[must_use]
    pub fn explains(&self, reason: GapReason, first: i64) -> bool {
        let has = |(from, to)| (from..=to).contains(&first);
        reason == GapReason::Skipped && self.skipped().is_some_and(has)
    }
}

/// Why a change is refused. Nothing written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeRefusal {
    /// There is no such request.
    #[error("there is no change request {0}; list them")]
    Unknown(i64),
    /// The series has no such counter.
    #[error("the configuration has no counter {0}; list its counters")]
    UnknownCounter(i64),
    /// Too many wait already.
    #[error("{CHANGES_PENDING_MAX} requests wait for an answer; answer some of them")]
    TooMany,
    /// The request is already answered.
    #[error("change request {change_id} is answered already: it is {}", word(*.state))]
    Decided {
        /// The request.
        change_id: i64,
        /// The state of the request.
        state: ChangeState,
    },
    /// Its time is over.
    #[error("the time to approve change request {0} is over; ask anew")]
    Expired(i64),
    /// The author of a request may not approve it.
    #[error("{0} asked for this change; somebody else has to approve it")]
    Own(String),
    /// A number that was issued could come again.
    #[error("the least allowed value is {least}: what is below was issued, or may have been")]
    Below {
        /// The least value that may come next.
        least: i64,
    },
    /// The counter never comes to that value.
    #[error("the counter goes on in steps of {step}: from {least}, the least allowed value, on")]
    BesideStep {
        /// The least value that may come next.
        least: i64,
        /// Distance between two values.
        step: i64,
    },
    /// Redis counts it: the database has to take the partition over first.
    #[error("redis counts the counter; the database has to take partition {0} over first")]
    InRedis(u32),
    /// The ledger went back, and the partition is not released yet.
    #[error(
        "partition {0} is held, for the ledger went back; it is released by `numerator reconcile \
         --ledger-restored`"
    )]
    Held(u32),
    /// There is no later date that could be made not to count.
    #[error("the last date is {0}; ask for an earlier one")]
    NotEarlier(String),
    /// No date is known.
    #[error("the last date of these counters is not known here: nothing was issued under it yet")]
    NoDate,
    /// The last date is past, or today, or tomorrow: it is not taken for wrong.
    #[error("the least allowed date is {0}: only later ones, still to come, can be set aside")]
    TooEarly(String),
}

fn word(state: ChangeState) -> &'static str {
    match state {
        ChangeState::Pending => "pending",
        ChangeState::Approved => "approved",
        ChangeState::Rejected => "rejected",
    }
}
