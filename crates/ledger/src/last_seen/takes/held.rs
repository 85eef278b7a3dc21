//! The highest value of each counter that was reserved here, or shown reserved (L10). Kept as long
//! as records are, and by the same clock: what is dropped is said to be forgotten.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{COUNTERS_KEPT, NamedCounter, Reached};

/// For how long a process keeps what it handed out, from its commit on: records, and the highest
/// values that it showed reserved.
pub const RECORDS_KEPT: Duration = Duration::from_secs(60);

/// Least time between two searches for what is too old: each looks at all of it.
const SEARCH_PERIOD: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// When each was shown last.
    values: HashMap<NamedCounter, (Reached, Instant)>,
    searched_at: Option<Instant>,
    /// When the newest of those was shown that are not kept any more.
    forgot: Option<Instant>,
}

impl Held {
    /// Keeps the higher one, from now on.
    pub(super) fn add(&mut self, name: NamedCounter, new: Reached, now: Instant) {
        let (kept, since) = self.values.entry(name).or_insert((new, now));
        *kept = Reached { value: kept.value.max(new.value), ..new };
        *since = now;
    }

    /// Drops what was shown too long ago, and beyond their bound the older half.
    pub(super) fn let_old_go(&mut self, now: Instant) {
        let is_full = self.values.len() > COUNTERS_KEPT;
        let is_soon = |at: Instant| now.saturating_duration_since(at) < SEARCH_PERIOD;
        if !is_full && self.searched_at.is_some_and(is_soon) {
            return;
        }
        self.searched_at = Some(now);
        let is_old = |since: Instant| now.saturating_duration_since(since) > RECORDS_KEPT;
        self.drop_those(is_old);
        if self.values.len() > COUNTERS_KEPT {
            let mut all: Vec<Instant> = self.values.values().map(|(_, since)| *since).collect();
            let half = all.len() / 2;
            let upto = *all.select_nth_unstable(half).1;
            self.drop_those(|since| since <= upto);
        }
    }

    fn drop_those(&mut self, is_dropped: impl Fn(Instant) -> bool) {
        let forgot = &mut self.forgot;
        self.values.retain(|_, (_, since)| {
            let is_kept = !is_dropped(*since);
            if !is_kept {
                *forgot = (*forgot).max(Some(*since));
            }
            is_kept
        });
    }

    /// The highest of a counter.
    pub(super) fn get(&self, name: &NamedCounter) -> Option<&Reached> {
        self.values.get(name).map(|(reached, _)| reached)
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&NamedCounter, &Reached)> {
        self.values.iter().map(|(name, (reached, _))| (name, reached))
    }

    /// When the newest of those was shown that are not kept any more.
    pub(super) fn forgot(&self) -> Option<Instant> {
        self.forgot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: usize) -> NamedCounter {
        (1, "SEQ".into(), key.to_string())
    }

    fn reached(value: i64) -> Reached {
        Reached { value, partition: 0, noted: 0 }
    }

    fn value_of(held: &Held, key: usize) -> Option<i64> {
        held.get(&name(key)).map(|reached| reached.value)
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_that_was_shown_reserved_is_kept_as_long_as_records_are() {
        let mut held = Held::default();
        let first = Instant::now();
        held.add(name(1), reached(7), first);
        held.add(name(2), reached(5), first);
        held.let_old_go(first);
        tokio::time::advance(RECORDS_KEPT).await;
        let second = Instant::now();
        // Shown again, and a lower one: the highest is kept from now on.
        held.add(name(1), reached(6), second);
        held.let_old_go(second);
        assert_eq!((value_of(&held, 1), value_of(&held, 2)), (Some(7), Some(5)));
        assert_eq!(held.forgot(), None);
        tokio::time::advance(SEARCH_PERIOD).await;
        held.let_old_go(Instant::now());
        assert_eq!((value_of(&held, 1), value_of(&held, 2)), (Some(7), None));
        assert_eq!(held.forgot(), Some(first), "it is said to be forgotten");
    }

    #[test]
    fn beyond_their_bound_the_values_that_were_shown_last_are_kept() {
        let (mut held, began) = (Held::default(), Instant::now());
        for key in 0..=COUNTERS_KEPT {
            held.add(name(key), reached(1), began + Duration::from_nanos(key as u64));
        }
        held.let_old_go(began + SEARCH_PERIOD);
        assert!(held.values.len() <= COUNTERS_KEPT / 2 + 1, "{}", held.values.len());
        assert_eq!((value_of(&held, COUNTERS_KEPT), value_of(&held, 0)), (Some(1), None));
        assert!(held.forgot().is_some());
    }
}
