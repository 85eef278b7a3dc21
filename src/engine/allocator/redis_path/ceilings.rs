//! Ceilings as a worker sees them: what is left below one, when it should rise and how far.
//!
//! Decides for one counter from what its node remembers; sends nothing and asks no store.

use std::time::Duration;

use super::counter_cache::{CachedCounter, Moment, known, signed};
use crate::engine::allocator::headroom::Headroom;
use crate::engine::node::ProcessSettings;
use crate::ledger::CounterSpec;

impl CachedCounter {
    /// The headroom below a ceiling that is not the end of the serial; `None` where this node does
    /// not know it.
    #[must_use]
    pub(super) fn headroom_below(&self, spec: &CounterSpec, now: Moment) -> Option<Headroom> {
        let is_end = known(self.ceiling)? >= signed(spec.max);
        let left = self.headroom(spec.step);
        let seconds = left as f64 / self.rate(now).max(f64::MIN_POSITIVE);
        let lasts = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let headroom = Headroom { left, granted: self.granted.into(), lasts };
        (!is_end && self.granted > 0).then_some(headroom)
    }

    /// Numbers a second by which the counter has moved since its last grant, by any process.
    fn rate(&self, now: Moment) -> f64 {
        f64::from(self.moved) / now.seconds_since(self.granted_at).max(1.0)
    }

    /// Whether less than half of the last grant is left and no raise is under way.
    #[must_use]
    pub(super) fn wants_raise(&self, spec: &CounterSpec) -> bool {
        let may_rise = known(self.ceiling).is_some_and(|ceiling| ceiling < signed(spec.max));
        may_rise && !self.is_raising && self.headroom(spec.step) * 2 < self.granted.into()
    }

    /// The ceiling to ask for: about `ceiling.horizon` of this counter's traffic above its value,
    /// which is that of all nodes,
    /// at least `need` numbers, growing fourfold at most, and sparing small serials: no more than
    /// an eighth of what is left, so that one close at the ceiling cannot use a counter up.
    #[must_use]
    pub(super) fn next_ceiling(
        &self,
        spec: &CounterSpec,
        need: u64,
        now: Moment,
        settings: &ProcessSettings,
    ) -> i64 {
        let value = self.value().unwrap_or_else(|| origin(spec));
        let left = signed(spec.max).abs_diff(value.min(signed(spec.max))) / spec.step;
        let horizon = settings.ceiling_horizon.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let traffic = (self.rate(now) * horizon) as u64;
        let floor = settings.ceiling_step_min.max(need);
        let wanted = traffic.min(u64::from(self.granted) * 4).min(left / 8).max(floor);
        value + signed(wanted.min(left)) * signed(spec.step)
    }
}

/// The value before a serial's first one.
fn origin(spec: &CounterSpec) -> i64 {
    signed(spec.start) - signed(spec.step)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::counter_cache::CounterCache;
    use super::*;

    fn spec(max: u64) -> CounterSpec {
        CounterSpec {
            series_id: 1,
            version: 1,
            serial: "SEQ".into(),
            key: "k".into(),
            start: 1,
            step: 1,
            max,
            headroom: 0,
        }
    }

    fn granted(cache: &mut CounterCache, value: i64, ceiling: i64) -> &mut CachedCounter {
        let now = cache.now();
        let cached = cache.of("k");
        cached.seeded(value);
        cached.grant(ceiling, 1, now);
        cached
    }

    #[tokio::test(start_paused = true)]
    async fn a_raise_follows_the_rate_and_grows_fourfold_at_most() {
        let settings = ProcessSettings::default();
        let mut cache = CounterCache::new(1);
        let (begun, cached) = (cache.now(), granted(&mut cache, 0, 10));
        for value in 1..=6 {
            cached.took(7, value, 1, 1);
        }
        assert!(cached.wants_raise(&spec(1_000_000)), "4 of 10 are left");
        // 6 numbers within a second are 180 in 30 s, but the last grant was only 10.
        assert_eq!(cached.next_ceiling(&spec(1_000_000), 0, begun, &settings), 6 + 40);
        cached.grant(46, 1, begun);
        assert!(!cached.wants_raise(&spec(1_000_000)), "40 of 40 are left");
        tokio::time::advance(Duration::from_secs(60)).await;
        let now = cache.now();
        for value in 7..=46 {
            cache.took("k", 7, value, [1, 1]);
        }
        // 40 numbers a minute are 20 in 30 s.
        let cached = cache.of("k");
        assert_eq!(cached.next_ceiling(&spec(1_000_000), 0, now, &settings), 46 + 20);
    }

    /// Two nodes take in turn, each a hundred numbers a second; each raises by what it sees.
    #[tokio::test(start_paused = true)]
    async fn the_room_covers_the_horizon_at_the_rate_of_all_nodes() {
        const TURN: Duration = Duration::from_millis(10);
        let settings = ProcessSettings::default();
        for step in [1_i64, 5] {
            let spec = CounterSpec { step: step.unsigned_abs(), ..spec(100_000_000) };
            let mut caches = [CounterCache::new(1), CounterCache::new(1)];
            let (mut value, mut ceiling) = (0, 10 * step);
            for cache in &mut caches {
                let now = cache.now();
                cache.of("k").seeded(0);
                cache.of("k").grant(ceiling, spec.step, now);
            }
            // Four raises or so, each fourfold; then the last seconds are looked at.
            let mut least = i64::MAX;
            for turn in 0..6_000 {
                tokio::time::advance(TURN).await;
                for cache in &mut caches {
                    let now = cache.now();
                    assert!(value + step <= ceiling || turn < 1_000, "a ceiling is met");
                    ceiling = ceiling.max(value + step);
                    value += step;
                    let cached = cache.took("k", 7, value, [1, spec.step]);
                    if cached.wants_raise(&spec) {
                        ceiling = cached.next_ceiling(&spec, 0, now, &settings).max(ceiling);
                        cached.grant(ceiling, spec.step, now);
                        let room = (ceiling - value) / step;
                        least = if turn < 1_000 { i64::MAX } else { least.min(room) };
                    }
                }
            }
            // 200 a second for 30 s; moments are kept in tenths of a second.
            assert!((5_900..=6_600).contains(&least), "step {step}: {least}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_serial_is_never_promised_more_than_an_eighth_of_what_is_left() {
        let settings = ProcessSettings::default();
        let mut cache = CounterCache::new(1);
        let (now, cached) = (cache.now(), granted(&mut cache, 0, 400));
        cached.took(7, 399, 399, 1);
        let next = |need| cached.next_ceiling(&spec(999), need, now, &settings);
        assert_eq!(next(0), 399 + 75);
        assert_eq!(next(590), 399 + 590, "need comes first");
        assert_eq!(next(9_000), 999, "never past the end");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_known_ceiling_no_headroom_is_known() {
        let mut cache = CounterCache::new(1);
        let now = cache.now();
        assert_eq!(cache.took("k", 7, -4, [1, 1]).headroom_below(&spec(9), now), None);
    }

    #[tokio::test(start_paused = true)]
    async fn headroom_lasts_as_long_as_the_rate_since_the_last_grant_says() {
        let mut cache = CounterCache::new(1);
        granted(&mut cache, 0, 100);
        let lasts = |cache: &mut CounterCache| {
            let now = cache.now();
            cache.of("k").headroom_below(&spec(1_000_000), now).expect("a ceiling").lasts
        };
        assert_eq!(lasts(&mut cache), Duration::MAX, "it does not move");
        tokio::time::advance(Duration::from_secs(10)).await;
        cache.took("k", 7, 20, [20, 1]);
        assert_eq!(lasts(&mut cache), Duration::from_secs(40), "two a second, and 80 are left");
    }
}
