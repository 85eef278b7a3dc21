//! What a caller who gives up is answered: whether a number may have been taken.

use std::sync::atomic::{AtomicU8, Ordering};

/// Whether a pending request can still be cancelled: decides what a caller who gives up is
/// answered.
#[derive(Debug, Default)]
pub(super) struct CancellationState(AtomicU8);

const WAITING: u8 = 0;
const IN_FLIGHT: u8 = 1;
const GIVEN_UP: u8 = 2;

impl CancellationState {
    /// Admits the request to a flight; false when its caller has given up.
    pub(super) fn admit(&self) -> bool {
        self.0.compare_exchange(WAITING, IN_FLIGHT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Puts a request back that certainly took nothing that will ever be handed out.
    pub(super) fn put_back(&self) {
        self.0.store(WAITING, Ordering::Release);
    }

    /// Gives up; true when the request will certainly not take a number any more.
    pub(super) fn give_up(&self) -> bool {
        self.0.compare_exchange(WAITING, GIVEN_UP, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether the caller has given up.
    #[must_use]
    pub(super) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Acquire) == GIVEN_UP
    }
}
