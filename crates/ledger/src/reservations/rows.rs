//! Reservations: a number that a document holds before it is final, and what callers do with it.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::{Entry, HandedBack, Record, RowVisibility};

/// The end of a reservation that never ends by time: that of a block.
pub const NO_END_US: i64 = i64::MAX;

/// The state of a live reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationState {
    /// Its document holds the number until its time is over.
    Reserved,
    /// Its document has the number for good; the journal is about to have it.
    Confirmed,
    /// Given up by its caller; its value is about to return.
    Cancelled,
}

/// A live reservation.
#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    /// Its number with its values, as it was reserved; the allocation is the reservation's id.
    pub entry: Entry,
    /// Its state.
    pub state: ReservationState,
    /// From then on it cannot be confirmed: microseconds of UTC by the ledger's clock; of a block
    /// [`NO_END_US`].
    pub expires_at_us: i64,
    /// Whether that time was over as it was read, by the same clock.
    pub is_over: bool,
    /// The `taken` of its counter plus its `reissued`, once it was made. Both only rise: of two
    /// reservations of one counter the later one has more.
    pub turn: i64,
    /// When it was made, by the same clock.
    pub reserved_at_us: i64,
    /// When it was confirmed or cancelled.
    pub changed_at_us: Option<i64>,
    /// Who did that.
    pub changed_by: Option<String>,
    /// Why it was cancelled.
    pub reason: Option<String>,
}

impl Reservation {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.entry.record.allocation_id
    }

    /// Whether it is a block: several numbers, which are handed back and never end by time (L13).
    #[must_use]
    pub fn is_block(&self) -> bool {
        self.entry.taken.iter().any(|taken| taken.range.first != taken.range.last)
    }

    /// From when on it cannot be confirmed, in microseconds of UTC; none of a block.
    #[must_use]
    pub fn ends_at_us(&self) -> Option<i64> {
        Some(self.expires_at_us).filter(|at_us| *at_us != NO_END_US)
    }

    /// Whether nothing keeps its value with its document any more.
    #[must_use]
    pub fn is_due(&self) -> bool {
        match self.state {
            ReservationState::Reserved => self.is_over,
            ReservationState::Confirmed => false,
            ReservationState::Cancelled => true,
        }
    }

    /// Whether its document has the number for good.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.state == ReservationState::Confirmed
    }

    /// Its number as the journal has it: issued as it is confirmed.
    #[must_use]
    pub fn issued(&self) -> Entry {
        let issued_at_us = self.changed_at_us.unwrap_or(self.reserved_at_us);
        let record = Record { issued_at_us, ..(*self.entry.record).clone() };
        Entry { record: Arc::new(record), ..self.entry.clone() }
    }
}

/// How a reservation ended without being confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationEnd {
    /// Its caller gave it up.
    Cancelled,
    /// Its time was over.
    Expired,
    /// The ledger went back, and nobody knows what its caller has committed since: its value is
    /// spent.
    Lost,
    /// It was a block, and its holder said which of its numbers were used.
    HandedBack,
}

/// A reservation that ended without being confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedReservation {
    /// Its id.
    pub reservation_id: Uuid,
    /// How.
    pub end: ReservationEnd,
    /// When, in microseconds of UTC by the ledger's clock.
    pub ended_at_us: i64,
    /// The number that its document held.
    pub number: String,
    /// That document.
    pub document_id: Option<String>,
    /// Who had made it.
    pub user_id: String,
    /// Why it was given up.
    pub reason: Option<String>,
    /// What became of its numbers, where it was a block that was handed back.
    pub handed_back: Option<HandedBack>,
}

/// Where a reservation stands.
#[derive(Clone, Debug, PartialEq)]
pub enum ReservationStanding {
    /// The ledger knows none under this id.
    Unknown,
    /// It is live.
    Live(Reservation),
    /// It ended without being confirmed.
    Ended(EndedReservation),
    /// It was confirmed, and its number is in the journal.
    Issued(Entry),
}

impl ReservationStanding {
    /// Who made it, which never changes.
    #[must_use]
    pub fn user_id(&self) -> Option<&str> {
        match self {
            ReservationStanding::Unknown => None,
            ReservationStanding::Live(live) => Some(&live.entry.record.user_id),
            ReservationStanding::Ended(ended) => Some(&ended.user_id),
            ReservationStanding::Issued(entry) => Some(&entry.record.user_id),
        }
    }

    /// The document that it is for, which never changes.
    #[must_use]
    pub fn document_id(&self) -> Option<&str> {
        match self {
            ReservationStanding::Unknown => None,
            ReservationStanding::Live(live) => live.entry.record.document_id.as_deref(),
            ReservationStanding::Ended(ended) => ended.document_id.as_deref(),
            ReservationStanding::Issued(entry) => entry.record.document_id.as_deref(),
        }
    }
}

/// Where a live reservation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveStatus {
    /// Its document holds the number.
    Reserved,
    /// Its time is over, and it has not ended yet.
    Over,
    /// It is confirmed, and its number is not in the journal yet.
    Confirmed,
    /// It is cancelled, and has not ended yet.
    Cancelled,
}

/// Which live reservations are listed. What is `None` restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservationFilter {
    /// Of this series.
    pub series_id: Option<i64>,
    /// Of this document.
    pub document_id: Option<String>,
    /// Those that stand so.
    pub status: Option<LiveStatus>,
    /// Those that the reader sees; the others count as missing.
    pub shown: RowVisibility,
    /// Those after this one, by id.
    pub after: Option<Uuid>,
    /// At most so many.
    pub limit: u32,
}

/// What a caller does with its reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationAct {
    /// Its document is final: the number is its own for good.
    Confirm,
    /// Its document is not to have the number.
    Cancel {
        /// Why, where the caller says so.
        reason: Option<String>,
    },
}

/// What became of an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActOutcome {
    /// It was done now.
    Done,
    /// It was done before: a repeated request.
    Repeated,
    /// Refused: there is no such reservation.
    Unknown,
    /// Refused: its time was over.
    Expired,
    /// Refused: it was cancelled.
    Cancelled,
    /// Refused: it was lost with what the ledger forgot.
    Lost,
    /// Refused: it is confirmed.
    Confirmed,
    /// Refused: it is a block, which is handed back.
    IsBlock,
    /// Refused: it was a block, and was handed back.
    HandedBack,
    /// Nothing was done: the partition is held until an operator acts. Worth a retry.
    Held,
}

impl ReservationAct {
    /// What becomes of it where it finds a reservation so and changes nothing.
    #[must_use]
    pub fn refused(&self, found: &ReservationStanding) -> ActOutcome {
        let is_confirm = *self == ReservationAct::Confirm;
        match found {
            ReservationStanding::Unknown => ActOutcome::Unknown,
            ReservationStanding::Issued(_) if is_confirm => ActOutcome::Repeated,
            ReservationStanding::Issued(_) => ActOutcome::Confirmed,
            ReservationStanding::Ended(ended) => match ended.end {
                ReservationEnd::HandedBack => ActOutcome::HandedBack,
                _ if !is_confirm => ActOutcome::Repeated,
                ReservationEnd::Cancelled => ActOutcome::Cancelled,
                ReservationEnd::Expired => ActOutcome::Expired,
                ReservationEnd::Lost => ActOutcome::Lost,
            },
            ReservationStanding::Live(live) => match live.state {
                ReservationState::Reserved if live.is_block() => ActOutcome::IsBlock,
                ReservationState::Reserved if is_confirm && live.is_over => ActOutcome::Expired,
                ReservationState::Reserved => ActOutcome::Held,
                ReservationState::Confirmed if is_confirm => ActOutcome::Repeated,
                ReservationState::Confirmed => ActOutcome::Confirmed,
                ReservationState::Cancelled if is_confirm => ActOutcome::Cancelled,
                ReservationState::Cancelled => ActOutcome::Repeated,
            },
        }
    }
}

/// What an act found, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Acted {
    /// The reservation as it is now.
    pub standing: ReservationStanding,
    /// What became of the act.
    pub outcome: ActOutcome,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationsSwept {
    /// Confirmed ones whose numbers are in the journal now.
    pub issued: u64,
    /// Confirmed ones whose numbers another allocation has: duplicates. Must stay 0.
    pub collided: u64,
    /// Cancelled ones that ended.
    pub cancelled: u64,
    /// Those that ended because their time was over.
    pub expired: u64,
    /// Counters whose reservations could not be swept now; the next sweep tries again.
    pub failed: u64,
    /// Those that the ledger refused to end or to journal, one by one: they stay as they are, and
    /// are tried again after five seconds.
    pub refused: u64,
    /// Counters of which more may be due than one transaction takes: another sweep has work at
    /// once.
    pub unfinished: u64,
}

/// How many reservations are live, and for how long the oldest wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservationCounts {
    /// Those that wait for their callers, whether or not their time is over.
    pub reserved: u64,
    /// Confirmed ones that are not in the journal yet.
    pub confirmed: u64,
    /// Cancelled ones that have not ended yet.
    pub cancelled: u64,
    /// For how long the oldest confirmed one waits for the journal, in microseconds.
    pub confirmed_for_us: i64,
    /// For how long the time of the oldest is over that is still held, in microseconds: an open
    /// transaction of its caller may hold it.
    pub over_for_us: i64,
}

/// What `verify` finds wrong with reservations and returned values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationFinding {
    /// The register has another number of returned values of a counter than its row counts.
    Pool {
        /// The counter.
        counter_id: i64,
        /// As many as its row counts.
        counted: i64,
        /// As many as are in the register.
        registered: i64,
    },
    /// A reserved value lies above all that its counter has taken.
    AboveTaken {
        /// The counter.
        counter_id: i64,
        /// The value.
        value: i64,
    },
    /// A confirmed reservation is not in the journal after a minute.
    NotJournaled {
        /// The reservation.
        reservation_id: Uuid,
        /// Its number.
        number: String,
    },
}

impl fmt::Display for ReservationFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReservationFinding::Pool { counter_id, counted, registered } => write!(
                f,
                "counter {counter_id} counts {counted} returned values, and the gap register has \
                 {registered}"
            ),
            ReservationFinding::AboveTaken { counter_id, value } => {
                write!(f, "value {value} of counter {counter_id} is reserved and was never taken")
            }
            ReservationFinding::NotJournaled { reservation_id, number } => write!(
                f,
                "number {number} of reservation {reservation_id} is confirmed, and not in the \
                 journal after a minute"
            ),
        }
    }
}
