//! What a node remembers of the counters of one partition in one epoch.
//!
//! Never the truth: a second net against a counter that was set lower (F3), and the rate by which
//! ceilings are raised ahead of need. Forgotten when the epoch ends.
//!
//! A node that touches a million counters remembers each of them, so an entry is small: 56 bytes in
//! a list without holes (a digest of the counter's name and 40 bytes of counter), and 5 to 10 bytes
//! in the table that finds it there.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroI64;

use hashbrown::HashTable;
use tokio::time::Instant;

/// Means a value or a ceiling that is not known: lower than any.
const UNKNOWN: i64 = i64::MIN;

/// A moment of an epoch, in tenths of a second since its cache was begun: enough for 13 years.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(u32);

impl Moment {
    /// Seconds from an earlier moment to this one.
    pub(super) fn seconds_since(self, earlier: Moment) -> f64 {
        f64::from(self.0.saturating_sub(earlier.0)) / 10.0
    }
}

/// One counter as this node has seen it in this epoch.
#[derive(Debug)]
pub(super) struct CachedCounter {
    counter_id: Option<NonZeroI64>,
    /// Highest value seen in Redis, or in the ledger as the counter was met; else `UNKNOWN`.
    pub(super) value: i64,
    /// The ceiling in Redis, or `UNKNOWN`.
    pub(super) ceiling: i64,
    /// Headroom of the last grant, in numbers. Stops at 4 billion, which is more than any grant
    /// needs.
    pub(super) granted: u32,
    /// Numbers that the counter has moved by since then, by any process; saturates likewise.
    pub(super) moved: u32,
    pub(super) granted_at: Moment,
    is_warm: bool,
    /// Whether a raise is under way.
    pub(super) is_raising: bool,
}

impl CachedCounter {
    fn new(now: Moment) -> Self {
        CachedCounter {
            counter_id: None,
            value: UNKNOWN,
            ceiling: UNKNOWN,
            granted: 0,
            moved: 0,
            granted_at: now,
            is_warm: false,
            is_raising: false,
        }
    }

    /// Its id in the ledger, once known.
    #[must_use]
    pub(super) fn counter_id(&self) -> Option<i64> {
        self.counter_id.map(NonZeroI64::get)
    }

    /// Highest value seen.
    #[must_use]
    pub(super) fn value(&self) -> Option<i64> {
        known(self.value)
    }

    /// Whether it was seen or made warm in this epoch: cold after that is lost (F12).
    #[must_use]
    pub(super) fn is_warm(&self) -> bool {
        self.is_warm
    }

    /// Notes its id.
    pub(super) fn identify(&mut self, counter_id: i64) {
        self.counter_id = NonZeroI64::new(counter_id);
    }

    /// Notes what the ledger knows of it: Redis may not show less (F33).
    pub(super) fn met(&mut self, counter_id: i64, value: i64) {
        self.warmed(counter_id);
        self.value = self.value.max(value);
    }

    /// Notes `count` values up to `value`, `step` apart. What others took since this node's last
    /// look has moved the counter as well: a ceiling is for all of them.
    pub(super) fn took(&mut self, counter_id: i64, value: i64, count: u64, step: u64) {
        self.identify(counter_id);
        let moved = known(self.value).filter(|before| *before < value);
        let moved = moved.map_or(count, |before| value.abs_diff(before) / step);
        self.moved = self.moved.saturating_add(narrow(moved));
        self.value = self.value.max(value);
        self.is_warm = true;
    }

    /// Notes that it is in Redis.
    pub(super) fn warmed(&mut self, counter_id: i64) {
        self.identify(counter_id);
        self.is_warm = true;
    }

    /// Notes the value with which it was seeded.
    pub(super) fn seeded(&mut self, value: i64) {
        self.value = value;
    }

    /// Notes that a request found no headroom.
    pub(super) fn met_ceiling(&mut self, value: i64, ceiling: i64) {
        self.value = self.value.max(value);
        self.ceiling = ceiling;
        self.is_warm = true;
    }

    /// Notes the ceiling in force after a seed or a raise.
    pub(super) fn grant(&mut self, ceiling: i64, step: u64, now: Moment) {
        self.ceiling = self.ceiling.max(ceiling);
        self.is_raising = false;
        self.granted = narrow(self.headroom(step));
        self.granted_at = now;
        self.moved = 0;
    }

    /// How many numbers fit below the ceiling, as far as this node knows.
    pub(super) fn headroom(&self, step: u64) -> u64 {
        match (known(self.value), known(self.ceiling)) {
            (Some(value), Some(ceiling)) => ceiling.abs_diff(value.min(ceiling)) / step,
            _ => 0,
        }
    }
}

/// A digest of a counter's name: 128 bits, by keys that no two processes share. Two names of one
/// digest would share an entry, which costs an epoch at worst; among a million counters that has a
/// chance of one in 10^27.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest([u64; 2]);

impl Digest {
    /// Where the table looks first.
    fn hash(self) -> u64 {
        self.0[0]
    }
}

/// The counters of one epoch, bounded.
#[derive(Debug)]
pub(super) struct CounterCache {
    counters: Vec<(Digest, CachedCounter)>,
    /// The place of each counter in the list.
    places: HashTable<u32>,
    keys: [RandomState; 2],
    /// Since when counters are cold although another node seeds them. Apart from the rest: there
    /// are few, and not for long.
    cold: HashMap<Box<str>, Instant>,
    counters_max: usize,
    begun: Instant,
}

impl CounterCache {
    /// None yet, and never more than `counters_max`.
    #[must_use]
    pub(super) fn new(counters_max: usize) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        let (counters, places, cold) = (Vec::new(), HashTable::new(), HashMap::new());
        CounterCache { counters, places, keys, cold, counters_max, begun: Instant::now() }
    }

    /// This moment.
    #[must_use]
    pub(super) fn now(&self) -> Moment {
        Moment(narrow(u64::try_from(self.begun.elapsed().as_millis() / 100).unwrap_or(u64::MAX)))
    }

    /// The entry of a counter, begun if there is none. At the bound all entries are forgotten
    /// first: only the second net and the rates start over.
    pub(super) fn of(&mut self, counter: &str) -> &mut CachedCounter {
        let digest = self.digest(counter);
        let place = self.find(digest).unwrap_or_else(|| self.begin(digest));
        &mut self.counters[place].1
    }

    /// The entry of a counter, where there is one.
    #[must_use]
    pub(super) fn get(&self, counter: &str) -> Option<&CachedCounter> {
        self.find(self.digest(counter)).map(|place| &self.counters[place].1)
    }

    fn digest(&self, counter: &str) -> Digest {
        Digest(self.keys.each_ref().map(|key| key.hash_one(counter)))
    }

    fn find(&self, digest: Digest) -> Option<usize> {
        let is_its = |place: &u32| self.counters[*place as usize].0 == digest;
        self.places.find(digest.hash(), is_its).map(|place| *place as usize)
    }

    /// The place of a new entry.
    fn begin(&mut self, digest: Digest) -> usize {
        if self.counters.len() >= self.counters_max {
            self.counters.clear();
            self.places.clear();
        }
        let place = self.counters.len();
        self.counters.push((digest, CachedCounter::new(self.now())));
        let hash = |place: &u32| self.counters[*place as usize].0.hash();
        let short = u32::try_from(place).expect("`counters_max` is below 4 billion");
        self.places.insert_unique(digest.hash(), short, hash);
        place
    }

    /// Notes `count` values of a counter up to `value`, `step` apart.
    pub(super) fn took(
        &mut self,
        counter: &str,
        counter_id: i64,
        value: i64,
        [count, step]: [u64; 2],
    ) -> &mut CachedCounter {
        if !self.cold.is_empty() {
            self.cold.remove(counter);
        }
        let cached = self.of(counter);
        cached.took(counter_id, value, count, step);
        cached
    }

    /// Since when a counter is cold although another node seeds it; since now, where it was not.
    pub(super) fn cold_since(&mut self, counter: &str) -> Instant {
        if self.cold.len() >= self.counters_max {
            self.cold.clear();
        }
        *self.cold.entry(counter.into()).or_insert_with(Instant::now)
    }
}

/// A value or ceiling, where it is known.
pub(super) fn known(value: i64) -> Option<i64> {
    (value != UNKNOWN).then_some(value)
}

/// A count as the cache keeps it: stops at 4 billion.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Values are at most 2^53 - 1.
#[must_use]
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("values are at most 2^53 - 1")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn at_the_bound_the_cache_begins_anew_and_what_is_not_known_is_none() {
        let mut cache = CounterCache::new(2);
        cache.took("a", 1, 0, [1, 1]);
        cache.took("b", 2, -4, [1, 1]);
        let seen = |cache: &CounterCache, name| cache.get(name).and_then(CachedCounter::value);
        assert_eq!((seen(&cache, "a"), seen(&cache, "b")), (Some(0), Some(-4)));
        cache.of("c");
        assert_eq!((seen(&cache, "a"), seen(&cache, "c")), (None, None));
        assert_eq!(cache.of("c").counter_id(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_counter_is_cold_until_it_is_taken_from() {
        let mut cache = CounterCache::new(2);
        let since = cache.cold_since("a");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.cold_since("a"), since);
        cache.took("a", 1, 5, [1, 1]);
        assert_ne!(cache.cold_since("a"), since);
    }

    #[test]
    fn an_entry_is_small() {
        assert_eq!(size_of::<(Digest, CachedCounter)>(), 56);
    }
}
