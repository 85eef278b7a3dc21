//! Counters in use: those whose records passed the journal within a day, their latest value, and
//! their speed.
//!
//! Every number passes the journal whatever its path, so the ledger need not be asked which of its
//! counters move. Bounded: past [`COUNTERS_MAX`] those that have been idle longest are dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use numbering::Range;
use tokio::time::Instant;

use crate::ledger::Entry;

/// Counters remembered.
const COUNTERS_MAX: usize = 10_000;

/// A counter that is idle for longer is no longer in use.
const IDLE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A rate is measured over one to two of these.
const RATE_WINDOW: Duration = Duration::from_secs(5 * 60);

/// A rate between takes that are closer together is meaningless: what came in one moment is no
/// rate.
const RATE_TIME_MIN: Duration = Duration::from_secs(60);

/// A counter in use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CounterInUse {
    /// Its id in the ledger.
    pub(super) counter_id: i64,
    /// Its series.
    pub(super) series_id: i64,
    /// Name of its serial.
    pub(super) serial: String,
    /// The counter key's text.
    pub(super) key: String,
    /// Highest value seen.
    pub(super) value: u64,
    /// How much the value rises in a second; 0 until two takes a minute apart were seen.
    pub(super) rate: f64,
}

/// The counters in use, shared by the journal, which shows its records, and the
/// gauges. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CountersInUse(Arc<Mutex<HashMap<i64, Seen>>>);

#[derive(Debug)]
struct Seen {
    series_id: i64,
    serial: String,
    key: String,
    value: u64,
    at: Instant,
    /// Where the rate is measured from,
    base: (Instant, u64),
    /// and where it will be from one window later.
    next_base: (Instant, u64),
}

impl CountersInUse {
    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Seen>> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Notes the values of records.
    pub fn note(&self, entries: &[Entry]) {
        let now = Instant::now();
        let mut all = self.lock();
        for entry in entries {
            for (place, taken) in entry.taken.iter().enumerate() {
                let known = all.entry(taken.counter_id);
                let seen = known.or_insert_with(|| Seen::new(entry, place, now));
                seen.advance(taken.range.last, now);
            }
        }
        if all.len() > COUNTERS_MAX {
            forget_half(&mut all);
        }
    }

    /// Those that moved within a day.
    pub(super) fn list(&self) -> Vec<CounterInUse> {
        let now = Instant::now();
        let mut all = self.lock();
        all.retain(|_, seen| now - seen.at <= IDLE_MAX);
        all.iter().map(|(counter_id, seen)| seen.show(*counter_id, now)).collect()
    }
}

/// Keeps the half that moved last, so that this is not needed for each new one.
fn forget_half(all: &mut HashMap<i64, Seen>) {
    let mut ids: Vec<(Instant, i64)> = all.iter().map(|(id, seen)| (seen.at, *id)).collect();
    let middle = ids.len() / 2;
    let (oldest, ..) = ids.select_nth_unstable(middle);
    for (_, counter_id) in oldest {
        all.remove(counter_id);
    }
}

impl Seen {
    /// A counter that is met with this take of a record.
    fn new(entry: &Entry, place: usize, now: Instant) -> Self {
        let record = &entry.record;
        let Range { last, .. } = entry.taken[place].range;
        let text = |list: &[String]| list.get(place).cloned().unwrap_or_default();
        // The first take shows the value of the counter, and nothing of its speed.
        let base = (now, last);
        Seen {
            series_id: record.series_id,
            serial: text(&record.serials),
            key: text(&record.counter_keys),
            value: last,
            at: now,
            base,
            next_base: base,
        }
    }

    /// A later flight may be noted before an earlier one, and a replay shows an old value.
    fn advance(&mut self, value: u64, now: Instant) {
        if value <= self.value {
            return;
        }
        if now - self.next_base.0 >= RATE_WINDOW {
            self.base = self.next_base;
            self.next_base = (now, self.value);
        }
        (self.value, self.at) = (value, now);
    }

    fn show(&self, counter_id: i64, now: Instant) -> CounterInUse {
        let time = now - self.base.0;
        let risen = self.value.saturating_sub(self.base.1) as f64;
        let is_told = self.at - self.base.0 >= RATE_TIME_MIN;
        let rate = if is_told { risen / time.as_secs_f64() } else { 0.0 };
        CounterInUse {
            counter_id,
            series_id: self.series_id,
            serial: self.serial.clone(),
            key: self.key.clone(),
            value: self.value,
            rate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{At, IssuePath, Record};
    use numbering::TakenRange;

    fn entry(counter_id: i64, value: u64) -> Entry {
        let record = serde_json::json!({
            "allocation_id": uuid::Uuid::nil(), "series_id": 7, "version": 1, "type_code": "T",
            "scope": "", "mask": "{0:3}", "document_date": "2026-01-02", "serials": ["SEQ"],
            "counter_keys": ["k"], "user_id": "u", "payload_digest": "00", "issued_at_us": 0,
        });
        let record: Record = serde_json::from_value(record).expect("a record");
        let range = Range { first: value, last: value, step: 1 };
        Entry {
            record: Arc::new(record),
            taken: vec![TakenRange { counter_id, range }],
            number: String::new(),
            at: At { partition: 0, epoch: 1 },
            retry_count: 0,
            path: IssuePath::Redis,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_counter_shows_its_value_and_its_rate_of_the_last_minutes() {
        let in_use = CountersInUse::default();
        in_use.note(&[entry(1, 500)]);
        assert_eq!(in_use.list()[0].rate, 0.0, "no time has passed");
        // 2 a second, then 1 a second.
        for _ in 0..600 {
            tokio::time::advance(Duration::from_secs(1)).await;
            let value = in_use.list()[0].value;
            in_use.note(&[entry(1, value + 2)]);
        }
        let before = in_use.list().remove(0);
        assert!((before.rate - 2.0).abs() < 0.1, "{before:?}");
        assert_eq!((before.value, before.series_id), (1_700, 7));
        assert_eq!((before.serial.as_str(), before.key.as_str()), ("SEQ", "k"));
        for _ in 0..900 {
            tokio::time::advance(Duration::from_secs(1)).await;
            let value = in_use.list()[0].value;
            in_use.note(&[entry(1, value + 1)]);
        }
        let after = in_use.list().remove(0);
        assert!((after.rate - 1.0).abs() < 0.1, "{after:?}");
        in_use.note(&[entry(1, 3)]);
        assert_eq!(in_use.list()[0].value, 2_600, "a replay moves nothing");
        tokio::time::advance(IDLE_MAX + Duration::from_secs(1)).await;
        assert!(in_use.list().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_number_and_a_burst_say_nothing_of_a_rate() {
        let in_use = CountersInUse::default();
        in_use.note(&[entry(1, 500)]);
        tokio::time::advance(RATE_TIME_MIN * 2).await;
        assert_eq!(in_use.list()[0].rate, 0.0, "one number in two minutes");
        in_use.note(&[entry(2, 500)]);
        tokio::time::advance(Duration::from_secs(1)).await;
        in_use.note(&[entry(2, 800)]);
        tokio::time::advance(RATE_TIME_MIN * 2).await;
        let burst = in_use.list().into_iter().find(|counter| counter.value == 800);
        assert_eq!(burst.expect("in use").rate, 0.0, "all within a second");
        in_use.note(&[entry(1, 620)]);
        let moving = in_use.list().into_iter().find(|counter| counter.value == 620);
        let rate = moving.expect("in use").rate;
        assert!((rate - 120.0 / 241.0).abs() < 1e-9, "{rate}");
    }

    #[tokio::test(start_paused = true)]
    async fn counters_that_stand_still_make_room_for_those_that_move() {
        let in_use = CountersInUse::default();
        let max = i64::try_from(COUNTERS_MAX).expect("small");
        let all: Vec<Entry> = (0..max).map(|counter_id| entry(counter_id, 1)).collect();
        in_use.note(&all);
        tokio::time::advance(Duration::from_secs(1)).await;
        in_use.note(&[entry(1, 2), entry(max, 1)]);
        let kept = in_use.lock();
        assert!(kept.contains_key(&max) && kept.len() <= COUNTERS_MAX, "{}", kept.len());
    }
}
