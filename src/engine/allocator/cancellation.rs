//! The answer to a caller that gives up: whether a number may have been taken.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a pending request can still be cancelled: decides what a caller who gives up is
/// answered.
#[derive(Debug, Default)]
pub(super) struct CancellationState(AtomicU8);

/// It was in no flight yet.
const WAITING: u8 = 0;
const IN_FLIGHT: u8 = 1;
const GIVEN_UP: u8 = 2;
/// It waits again.
const BACK: u8 = 3;

impl CancellationState {
    /// Admits the request to a flight; false when its caller has given up.
    pub(super) fn admit(&self) -> bool {
        self.moves(WAITING, IN_FLIGHT) || self.moves(BACK, IN_FLIGHT)
    }

    /// Puts a request back that certainly took nothing that will ever be handed out. One that was
    /// given up stays so: its caller has the answer that it takes no number.
    pub(super) fn put_back(&self) {
        self.moves(IN_FLIGHT, BACK);
    }

    /// Gives up; true when the request will certainly not take a number any more.
    pub(super) fn give_up(&self) -> bool {
        self.moves(WAITING, GIVEN_UP) || self.moves(BACK, GIVEN_UP)
    }

    /// Gives up a request that was in no flight yet; true when it will take no number.
    pub(super) fn give_up_untried(&self) -> bool {
        self.moves(WAITING, GIVEN_UP)
    }

    fn moves(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether the caller has given up.
    #[must_use]
    pub(super) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == GIVEN_UP
    }
}
