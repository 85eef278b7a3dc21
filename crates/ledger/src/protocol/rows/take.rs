//! Requests of the database path, and what became of them.

use std::sync::Arc;

use crate::{CounterSpec, Entry, Found, Question, Record, Reservation};

/// A request on the database path.
#[derive(Clone, Debug)]
pub struct TakeRequest {
    /// What is asked.
    pub record: Arc<Record>,
    /// How many numbers.
    pub count: u64,
    /// Where no number may be dated before the last one: the counters that share a last date.
    pub family: Option<String>,
    /// The counters, one per serial; `CounterSpec::headroom` is not used.
    pub specs: Vec<CounterSpec>,
    /// Earlier numbers to look for.
    pub question: Question,
    /// Attempts so far. From the second one on, the ledger looks for the number that an earlier one
    /// may have taken (F10).
    pub retry_count: u32,
    /// For how long the number is reserved for its document instead of being issued, in
    /// microseconds of the ledger's clock: one number of one serial; or [`crate::NO_END_US`] for a
    /// block, of [`crate::BLOCK_MIN`] to [`crate::BLOCK_MAX`] numbers of one serial.
    pub reserve_us: Option<i64>,
}

/// What the database path answers, one outcome per order in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Outcomes.
    pub outcomes: Vec<TakeOutcome>,
}

/// One outcome of the database path.
#[derive(Clone, Debug, PartialEq)]
pub enum TakeOutcome {
    /// Taken and journaled; final once the call returned.
    Taken(Entry),
    /// An earlier number was found under the order's keys.
    Found(Found),
    /// The counter of a serial has not reached the smallest value that the order may take. Nothing
    /// was taken.
    Below {
        /// Index of the serial.
        serial: u16,
        /// The counter.
        counter_id: i64,
        /// Its value.
        value: i64,
    },
    /// A serial is past its last value.
    Exhausted {
        /// Index of the serial.
        serial: u16,
    },
    /// The serial has fewer values left than the block that is to be reserved. Nothing was taken.
    TooFew {
        /// How many it has left, at least one.
        left: u64,
    },
    /// The counters of its family have a number of a later date. Nothing was taken.
    BeforeLast {
        /// That date.
        last_date: String,
    },
    /// Reserved; final once the call returned. Also where an earlier attempt of this order did it.
    Reserved(Box<Reservation>),
    /// A reservation under the order's keys is over, and a transaction of its caller holds it.
    /// Nothing was taken; worth a retry.
    StillHeld,
    /// Series or reference data are being saved, or were since it was looked which series reserve
    /// nothing. Nothing was taken; worth a retry after `Series::learn_unreserved`.
    SeriesChanging,
    /// Which series reserve nothing cannot be found out: versions cannot be read, or there are too
    /// many texts to compare. Nothing was taken; worth a retry some seconds later.
    SeriesUnknown {
        /// The cause.
        why: String,
    },
    /// Nothing is reserved while a process of an earlier version lives: it would take the value for
    /// lost. Nothing was taken; worth a retry.
    BesideOlder,
    /// The texts of its series are kept apart from another series' by rows of the journal alone,
    /// and a reservation has none. Nothing was taken.
    NotKeptApart,
    /// Another allocation has that number already: the value is spent, registered as a gap, never
    /// handed out.
    Collided {
        /// The number.
        number: String,
    },
}

impl TakeOutcome {
    /// The reservations that it shows and that are not confirmed.
    pub(crate) fn reserved(&self) -> Vec<&Reservation> {
        match self {
            TakeOutcome::Reserved(reservation) => vec![&**reservation],
            TakeOutcome::Found(found) => found.reserved().collect(),
            _ => Vec::new(),
        }
    }
}
