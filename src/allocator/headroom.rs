//! How close the counters in use come to their ceilings: how long issuing would go on without the
//! ledger.
//!
//! Seen by the worker as it takes; decides nothing.

use std::time::Duration;

use tokio::time::Instant;

/// The least headroom of so long is shown at once; shown for longer than twice that, it is out of
/// date.
const PERIOD: Duration = Duration::from_secs(5);

/// The headroom of a counter below its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Numbers left.
    pub left: u64,
    /// Numbers of the last grant.
    pub granted: u64,
}

impl Headroom {
    /// Share of the grant that is taken.
    #[must_use]
    pub fn used_ratio(self) -> f64 {
        1.0 - self.left.min(self.granted) as f64 / self.granted.max(1) as f64
    }
}

/// Watches for the counter with the least headroom.
#[derive(Debug)]
pub(super) struct HeadroomWatch {
    since: Instant,
    least: Option<Headroom>,
}

impl HeadroomWatch {
    /// Nothing is seen yet.
    pub(super) fn new() -> Self {
        HeadroomWatch { since: Instant::now(), least: None }
    }

    /// Notes the headroom of a counter that was just taken from, or had none.
    pub(super) fn note(&mut self, headroom: Headroom) {
        if self.least.is_none_or(|least| headroom.used_ratio() > least.used_ratio()) {
            self.least = Some(headroom);
        }
    }

    /// The least headroom of the period that is over; none until it is.
    pub(super) fn least(&mut self) -> Option<LeastHeadroom> {
        if self.since.elapsed() < PERIOD {
            return None;
        }
        self.since = Instant::now();
        self.least.take().map(|headroom| LeastHeadroom { headroom, at: self.since })
    }
}

/// The least headroom of a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastHeadroom {
    headroom: Headroom,
    at: Instant,
}

impl LeastHeadroom {
    /// The headroom, unless no counter has been in use since.
    pub(super) fn current(self) -> Option<Headroom> {
        (self.at.elapsed() <= PERIOD * 2).then_some(self.headroom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_least_headroom_of_a_period_is_shown_and_forgotten() {
        let mut watch = HeadroomWatch::new();
        watch.note(Headroom { left: 9, granted: 10 });
        watch.note(Headroom { left: 20, granted: 100 });
        watch.note(Headroom { left: 8, granted: 10 });
        assert!(watch.least().is_none(), "the period goes on");
        tokio::time::advance(PERIOD).await;
        let least = watch.least().expect("a period is over");
        assert_eq!(least.current(), Some(Headroom { left: 20, granted: 100 }));
        assert!((Headroom { left: 20, granted: 100 }.used_ratio() - 0.8).abs() < 1e-9);
        tokio::time::advance(PERIOD).await;
        assert!(watch.least().is_none(), "nothing was taken");
        tokio::time::advance(PERIOD * 2).await;
        assert_eq!(least.current(), None, "it says nothing of now");
    }
}
