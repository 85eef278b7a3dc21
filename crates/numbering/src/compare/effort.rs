//! What a proof may cost, in steps and not by a clock: the same series are proved, or refused, on
//! every machine. Never claims that a proof has succeeded: a lack of steps is a refusal.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Most steps of the proof of one series: against itself, its earlier versions and all others. A
/// step takes as long as the comparison of one pair of characters, some 40 ns. The widest series of
/// the tests takes a tenth of them.
pub const PROOF_STEPS_MAX: u64 = 40_000_000;

/// Ends proofs that are no longer awaited. Clones end the same ones.
#[derive(Clone, Debug, Default)]
pub struct GiveUp(Arc<AtomicBool>);

impl GiveUp {
    /// Ends them within some steps.
    pub fn give_up(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they end.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The remaining steps of the proof of one series.
#[derive(Debug)]
pub(super) struct Effort<'g> {
    left: Cell<u64>,
    give_up: &'g GiveUp,
}

impl<'g> Effort<'g> {
    /// All of them.
    pub(super) fn whole(give_up: &'g GiveUp) -> Self {
        Effort { left: Cell::new(PROOF_STEPS_MAX), give_up }
    }

    /// Spends steps; false if fewer are left, and from then on.
    pub(super) fn spend(&self, steps: usize) -> bool {
        let left = self.left.get().checked_sub(steps as u64);
        let left = left.filter(|_| !self.give_up.is_given_up());
        self.left.set(left.unwrap_or(0));
        left.is_some_and(|left| left > 0)
    }

    /// Whether none are left.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }
}
