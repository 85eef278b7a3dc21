//! The times that a ledger shows, compared with the caller's clock (F37).

use numerator_runtime::node::NodeId;
use tokio::time::Instant;

/// A time of another clock, read between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// In microseconds of UTC.
    pub at_us: i64,
    /// Before the reading.
    pub asked: Instant,
    /// After that.
    pub answered: Instant,
}

impl Heard {
    /// The least time that the clock shows at a moment.
    #[must_use]
    pub fn least_us(&self, now: Instant) -> i64 {
        self.at_us.saturating_add(micros(now.saturating_duration_since(self.answered)))
    }

    /// The greatest time that the clock shows at a moment.
    #[must_use]
    pub fn most_us(&self, now: Instant) -> i64 {
        self.at_us.saturating_add(micros(now.saturating_duration_since(self.asked)))
    }

    /// By how much another clock is ahead of it at a moment, at the least; negative: behind it.
    #[must_use]
    pub fn offset_us(&self, other_us: i64, now: Instant) -> i64 {
        other_us.saturating_sub(other_us.clamp(self.least_us(now), self.most_us(now)))
    }
}

fn micros(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The times that a ledger shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerTimes {
    /// The clock of its server; none where it is a file.
    pub server: Option<Heard>,
    /// When the newest batch of the journal was written, by the clock of its writer.
    pub journaled_us: Option<i64>,
    /// The newest time that a node reported, among those that are not later than requested.
    pub told_us: Option<i64>,
    /// The last report of each node that has not ended, each by its own clock.
    pub nodes: Vec<(NodeId, i64)>,
}
