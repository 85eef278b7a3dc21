//! What was handed out and is not committed: how much, and since when the oldest of it waits.
//!
//! The answer is exact at any moment (F42): a flight's records count from the moment they are
//! handed over until each of them is committed, whether they are in the queue, in a batch that is
//! being written or tried again, or waiting for a locked counter. Bounded by the queue: each record
//! has a place there.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use tokio::time::Instant;

/// Records that were handed out and are not committed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// How many.
    pub records: usize,
    /// When the oldest of them was handed out.
    pub oldest: Option<Instant>,
}

/// The records of one flight among them. The next flight has a higher place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(u64);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Outstanding(Mutex<Flights>);

#[derive(Debug, Default)]
struct Flights {
    next: u64,
    /// By place, so that the first is the oldest: when it was handed out, and how many of its
    /// records are not committed.
    flights: BTreeMap<Place, (Instant, usize)>,
    records: usize,
}

impl Outstanding {
    fn lock(&self) -> MutexGuard<'_, Flights> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Counts the records of a flight that is handed over now; when that is.
    pub(super) fn add(&self, records: usize) -> (Place, Instant) {
        let mut state = self.lock();
        // Under the lock: places and times are in one order.
        let (place, now) = (Place(state.next), Instant::now());
        state.next += 1;
        if records > 0 {
            state.flights.insert(place, (now, records));
            state.records += records;
        }
        (place, now)
    }

    /// Counts records of a flight that are committed.
    pub(super) fn commit(&self, place: Place, records: usize) {
        let mut state = self.lock();
        let (_, left) = state.flights.get_mut(&place).expect("it was handed out");
        *left -= records;
        if *left == 0 {
            state.flights.remove(&place);
        }
        state.records -= records;
    }

    /// What waits now.
    pub(super) fn lag(&self) -> Lag {
        let state = self.lock();
        let oldest = state.flights.first_key_value().map(|(_, (since, _))| *since);
        Lag { records: state.records, oldest }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_is_the_first_of_which_a_record_is_not_committed() {
        let all = Outstanding::default();
        let step = || tokio::time::advance(Duration::from_secs(1));
        assert_eq!(all.lag(), Lag::default());
        let (first, at_first) = all.add(2);
        step().await;
        let (second, at_second) = all.add(1);
        step().await;
        let (nothing, _) = all.add(0);
        assert!(first < second && second < nothing);
        assert_eq!(all.lag(), Lag { records: 3, oldest: Some(at_first) });
        all.commit(second, 1);
        all.commit(first, 1);
        assert_eq!(all.lag(), Lag { records: 1, oldest: Some(at_first) }, "half of a flight");
        let (third, at_third) = all.add(1);
        all.commit(first, 1);
        assert_eq!(all.lag(), Lag { records: 1, oldest: Some(at_third) });
        assert!(at_first < at_second && at_second < at_third);
        all.commit(third, 1);
        assert_eq!(all.lag(), Lag::default());
    }
}
