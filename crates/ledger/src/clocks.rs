//! What a ledger says of the time, beside the clock of whoever asks (F37).

use numerator_runtime::node::NodeId;
use tokio::time::Instant;

/// A time that somebody else's clock told between two moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// In microseconds of UTC.
    pub at_us: i64,
    /// Before it was told.
    pub asked: Instant,
    /// After that.
    pub answered: Instant,
}

impl Heard {
    /// What that clock shows at a moment, at the least.
    #[must_use]
    pub fn least_us(&self, now: Instant) -> i64 {
        self.at_us.saturating_add(micros(now.saturating_duration_since(self.answered)))
    }

    /// What that clock shows at a moment, at the most.
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
    /// When the newest batch of the journal was written, by the clock of who wrote it.
    pub journaled_us: Option<i64>,
    /// The newest time that a node told, among those that are not later than was asked for.
    pub told_us: Option<i64>,
    /// What nodes that have not ended told last, each of its own clock.
    pub nodes: Vec<(NodeId, i64)>,
}
