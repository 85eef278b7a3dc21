//! A run of values taken from one counter at once.

use serde::{Deserialize, Serialize};

/// Values `first`, `first + step`, …, `last`. Carries both ends: neither is ever derived from the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Range {
    /// The first value taken.
    pub first: u64,
    /// The last value taken; equal to `first` for a single number.
    pub last: u64,
    /// Distance between neighbours, at least 1.
    pub step: u64,
}

impl Range {
    /// How many values the range holds.
    ///
    /// # Panics
    /// If the ends do not lie on the step: such a range was never taken; it was computed wrongly.
    #[must_use]
    pub fn count(&self) -> u64 {
        assert!(self.step >= 1 && self.first <= self.last, "malformed range {self:?}");
        assert!((self.last - self.first).is_multiple_of(self.step), "range off its step {self:?}");
        (self.last - self.first) / self.step + 1
    }

    /// The values in rising order.
    pub fn values(&self) -> impl Iterator<Item = u64> + use<> {
        let Range { first, step, .. } = *self;
        (0..self.count()).map(move |i| first + i * step)
    }
}

/// The values of one serial of an allocation, and the counter they were taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenRange {
    /// The counter's id in the ledger.
    pub counter_id: i64,
    /// The values.
    pub range: Range,
}

/// The first value of each serial: what the first number of an allocation shows.
#[must_use]
pub fn first_values(taken: &[TakenRange]) -> Vec<u64> {
    taken.iter().map(|taken| taken.range.first).collect()
}
