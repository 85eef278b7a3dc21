//! What is counted of reservations.

use metrics::{Counter, Gauge};

use super::definitions::{
    RESERVATION_CONFIRMED_AGE, RESERVATION_OVER_AGE, RESERVATIONS, RESERVATIONS_ENDED,
};
use super::families::Family;

/// States of live ones.
const STATES: [&str; 3] = ["reserved", "confirmed", "cancelled"];
/// What becomes of those that are swept.
const ENDS: [&str; 3] = ["issued", "cancelled", "expired"];

/// Live reservations, and those that were swept.
pub struct ReservationMeters {
    /// Live ones, by state.
    pub live: Family<Gauge>,
    /// Those that this process swept, by what became of them.
    pub ended: Family<Counter>,
    /// For how long the oldest confirmed one waits for the journal.
    pub confirmed_age: Gauge,
    /// For how long the time of the oldest is over that is still held.
    pub over_age: Gauge,
}

impl ReservationMeters {
    pub(super) fn new() -> Self {
        ReservationMeters {
            live: Family::new(STATES, |state| RESERVATIONS.gauge(&[state])),
            ended: Family::new(ENDS, |act| RESERVATIONS_ENDED.counter(&[act])),
            confirmed_age: RESERVATION_CONFIRMED_AGE.gauge(&[]),
            over_age: RESERVATION_OVER_AGE.gauge(&[]),
        }
    }
}
