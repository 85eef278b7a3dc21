//! How close the counters in use come to their ceilings: how long issuing would go on without the
//! ledger.
//!
//! Seen by the worker as it takes; decides nothing.

use std::time::Duration;

use tokio::time::Instant;

/// The least room of so long is told at once; told longer ago than twice that, it is out of date.
const PERIOD: Duration = Duration::from_secs(5);

/// The room of a counter below its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Numbers left.
    pub left: u64,
    /// Numbers of the last grant.
    pub granted: u64,
}

impl Room {
    /// Share of the grant that is taken.
    #[must_use]
    pub fn used_ratio(self) -> f64 {
        1.0 - self.left.min(self.granted) as f64 / self.granted.max(1) as f64
    }
}

/// Watches for the counter with the least room.
#[derive(Debug)]
pub(super) struct RoomWatch {
    since: Instant,
    least: Option<Room>,
}

impl RoomWatch {
    /// Nothing is seen yet.
    pub(super) fn new() -> Self {
        RoomWatch { since: Instant::now(), least: None }
    }

    /// Notes the room of a counter that was just taken from, or had none.
    pub(super) fn note(&mut self, room: Room) {
        if self.least.is_none_or(|least| room.used_ratio() > least.used_ratio()) {
            self.least = Some(room);
        }
    }

    /// The least room of the period that is over; none until it is.
    pub(super) fn told(&mut self) -> Option<LeastRoom> {
        if self.since.elapsed() < PERIOD {
            return None;
        }
        self.since = Instant::now();
        self.least.take().map(|room| LeastRoom { room, at: self.since })
    }
}

/// The least room of a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastRoom {
    room: Room,
    at: Instant,
}

impl LeastRoom {
    /// The room, unless no counter has been in use since.
    pub(super) fn current(self) -> Option<Room> {
        (self.at.elapsed() <= PERIOD * 2).then_some(self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_least_room_of_a_period_is_told_and_forgotten() {
        let mut watch = RoomWatch::new();
        watch.note(Room { left: 9, granted: 10 });
        watch.note(Room { left: 20, granted: 100 });
        watch.note(Room { left: 8, granted: 10 });
        assert!(watch.told().is_none(), "the period goes on");
        tokio::time::advance(PERIOD).await;
        let told = watch.told().expect("a period is over");
        assert_eq!(told.current(), Some(Room { left: 20, granted: 100 }));
        assert!((Room { left: 20, granted: 100 }.used_ratio() - 0.8).abs() < 1e-9);
        tokio::time::advance(PERIOD).await;
        assert!(watch.told().is_none(), "nothing was taken");
        tokio::time::advance(PERIOD * 2).await;
        assert_eq!(told.current(), None, "it says nothing of now");
    }
}
