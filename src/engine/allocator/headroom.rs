//! How close the counters in use come to their ceilings: how long issuing would continue without
//! the ledger.
//!
//! Seen by the worker as it takes; decides nothing.

use std::time::Duration;

use tokio::time::Instant;

/// The least headroom of so long is shown immediately; shown for longer than twice that, it is out
/// of date.
const PERIOD: Duration = Duration::from_secs(5);

/// The headroom of a counter below its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Numbers left.
    pub left: u64,
    /// Numbers of the last grant.
    pub granted: u64,
    /// For how long they last at the present rate; `MAX`: it does not move.
    pub lasts: Duration,
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

    /// Notes the headroom of a counter that was just taken from, or had none. The one that lasts
    /// shortest need not be the one of which most is used.
    pub(super) fn note(&mut self, headroom: Headroom) {
        let least = self.least.unwrap_or(headroom);
        let lasts = headroom.lasts.min(least.lasts);
        let most = if headroom.used_ratio() > least.used_ratio() { headroom } else { least };
        self.least = Some(Headroom { lasts, ..most });
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
        let of =
            |left, granted, lasts| Headroom { left, granted, lasts: Duration::from_secs(lasts) };
        watch.note(of(9, 10, 60));
        watch.note(of(20, 100, 40));
        watch.note(of(8, 10, 7));
        assert!(watch.least().is_none(), "the period goes on");
        tokio::time::advance(PERIOD).await;
        let least = watch.least().expect("a period is over");
        assert_eq!(least.current(), Some(of(20, 100, 7)), "the most used, and the shortest");
        assert!((of(20, 100, 7).used_ratio() - 0.8).abs() < 1e-9);
        tokio::time::advance(PERIOD).await;
        assert!(watch.least().is_none(), "nothing was taken");
        tokio::time::advance(PERIOD * 2).await;
        assert_eq!(least.current(), None, "it says nothing of now");
    }
}
