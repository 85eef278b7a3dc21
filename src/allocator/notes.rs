//! What a node remembers of the counters of one partition in one epoch.
//!
//! Never the truth: a second net against a counter that was set lower (F3), and the rate by which
//! ceilings are raised ahead of need. Forgotten when the epoch ends.
//!
//! A node that touches a million counters remembers each of them, so a note is small: 56 bytes in a
//! list without holes (a digest of the counter's name and 40 bytes of note), and 5 to 10 bytes in
//! the table that finds it there.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroI64;

use hashbrown::HashTable;
use tokio::time::Instant;

use super::AllocatorSettings;
use super::rooms::Room;
use crate::ledger::Seed;

/// Stands for a value or a ceiling that is not known: lower than any.
const UNKNOWN: i64 = i64::MIN;

/// A moment of an epoch, in tenths of a second since its notes were begun: enough for 13 years.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment(u32);

impl Moment {
    /// Seconds from an earlier moment to this one.
    fn seconds_since(self, earlier: Moment) -> f64 {
        f64::from(self.0.saturating_sub(earlier.0)) / 10.0
    }
}

/// One counter as this node has seen it in this epoch.
#[derive(Debug)]
pub(super) struct Note {
    counter_id: Option<NonZeroI64>,
    /// Highest value seen, or `UNKNOWN`.
    value: i64,
    /// The ceiling in Redis, or `UNKNOWN`.
    ceiling: i64,
    /// Room of the last grant, in numbers. Stops at 4 billion, which is more than any grant needs.
    granted: u32,
    /// Numbers taken since then; stops likewise.
    taken: u32,
    granted_at: Moment,
    is_warm: bool,
    is_raising: bool,
}

impl Note {
    fn new(now: Moment) -> Self {
        Note {
            counter_id: None,
            value: UNKNOWN,
            ceiling: UNKNOWN,
            granted: 0,
            taken: 0,
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

    /// Whether a raise is under way.
    #[must_use]
    pub(super) fn is_raising(&self) -> bool {
        self.is_raising
    }

    /// Notes whether a raise is under way.
    pub(super) fn set_raising(&mut self, is_raising: bool) {
        self.is_raising = is_raising;
    }

    /// Notes its id.
    pub(super) fn identify(&mut self, counter_id: i64) {
        self.counter_id = NonZeroI64::new(counter_id);
    }

    /// Notes `count` values up to `value`.
    fn took(&mut self, counter_id: i64, value: i64, count: u64) {
        self.identify(counter_id);
        self.value = self.value.max(value);
        self.is_warm = true;
        self.taken = self.taken.saturating_add(narrow(count));
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

    /// Notes that a request found no room.
    pub(super) fn met_ceiling(&mut self, value: i64, ceiling: i64) {
        self.value = self.value.max(value);
        self.ceiling = ceiling;
        self.is_warm = true;
    }

    /// Notes the ceiling in force after a seed or a raise.
    pub(super) fn grant(&mut self, ceiling: i64, step: u64, now: Moment) {
        self.ceiling = self.ceiling.max(ceiling);
        self.is_raising = false;
        self.granted = narrow(self.room(step));
        self.granted_at = now;
        self.taken = 0;
    }

    /// How many numbers fit below the ceiling, as far as this node knows.
    fn room(&self, step: u64) -> u64 {
        match (known(self.value), known(self.ceiling)) {
            (Some(value), Some(ceiling)) => ceiling.abs_diff(value.min(ceiling)) / step,
            _ => 0,
        }
    }

    /// The room below a ceiling that is not the end of the serial; `None` where this node does not
    /// know it.
    #[must_use]
    pub(super) fn room_left(&self, serial: &Seed) -> Option<Room> {
        let is_end = known(self.ceiling)? >= signed(serial.max);
        let room = Room { left: self.room(serial.step), granted: self.granted.into() };
        (!is_end && self.granted > 0).then_some(room)
    }

    /// Whether less than half of the last grant is left and nobody raises yet.
    #[must_use]
    pub(super) fn wants_raise(&self, serial: &Seed) -> bool {
        let room_in_sight = known(self.ceiling).is_some_and(|ceiling| ceiling < signed(serial.max));
        room_in_sight && !self.is_raising && self.room(serial.step) * 2 < self.granted.into()
    }

    /// The ceiling to ask for: about `ceiling.horizon` of this counter's traffic above its value,
    /// at least `need` numbers, growing fourfold at most, and sparing small serials: no more than
    /// an eighth of what is left, so that one close at the ceiling cannot use a counter up.
    #[must_use]
    pub(super) fn next_ceiling(
        &self,
        serial: &Seed,
        need: u64,
        now: Moment,
        settings: &AllocatorSettings,
    ) -> i64 {
        let value = self.value().unwrap_or_else(|| origin(serial));
        let left = signed(serial.max).abs_diff(value.min(signed(serial.max))) / serial.step;
        let elapsed = now.seconds_since(self.granted_at).max(1.0);
        let horizon = settings.ceiling_horizon.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let traffic = (f64::from(self.taken) * horizon / elapsed) as u64;
        let floor = settings.ceiling_step_min.max(need);
        let wanted = traffic.min(u64::from(self.granted) * 4).min(left / 8).max(floor);
        value + signed(wanted.min(left)) * signed(serial.step)
    }
}

/// Stands for a counter's name: 128 bits, by keys that no two processes share. Two names of one
/// digest would share a note, which costs an epoch at worst; among a million counters that has a
/// chance of one in 10^27.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest([u64; 2]);

impl Digest {
    /// Where the table looks first.
    fn hash(self) -> u64 {
        self.0[0]
    }
}

/// The notes of one epoch, bounded.
#[derive(Debug)]
pub(super) struct Notes {
    notes: Vec<(Digest, Note)>,
    /// The place of each note in the list.
    places: HashTable<u32>,
    keys: [RandomState; 2],
    /// Since when counters are cold although another node seeds them. Apart from the notes: there
    /// are few, and not for long.
    cold: HashMap<Box<str>, Instant>,
    counters_max: usize,
    begun: Instant,
}

impl Notes {
    /// None yet, and never more than `counters_max` (`allocator.counters_max`).
    #[must_use]
    pub(super) fn new(counters_max: usize) -> Self {
        let keys = [RandomState::new(), RandomState::new()];
        let (notes, places, cold) = (Vec::new(), HashTable::new(), HashMap::new());
        Notes { notes, places, keys, cold, counters_max, begun: Instant::now() }
    }

    /// This moment.
    #[must_use]
    pub(super) fn now(&self) -> Moment {
        Moment(narrow(u64::try_from(self.begun.elapsed().as_millis() / 100).unwrap_or(u64::MAX)))
    }

    /// The note of a counter, begun if there is none. At the bound all notes are forgotten first:
    /// only the second net and the rates start over.
    pub(super) fn of(&mut self, counter: &str) -> &mut Note {
        let digest = self.digest(counter);
        let place = self.find(digest).unwrap_or_else(|| self.begin(digest));
        &mut self.notes[place].1
    }

    /// The note of a counter, where there is one.
    #[must_use]
    pub(super) fn get(&self, counter: &str) -> Option<&Note> {
        self.find(self.digest(counter)).map(|place| &self.notes[place].1)
    }

    fn digest(&self, counter: &str) -> Digest {
        Digest(self.keys.each_ref().map(|key| key.hash_one(counter)))
    }

    fn find(&self, digest: Digest) -> Option<usize> {
        let is_its = |place: &u32| self.notes[*place as usize].0 == digest;
        self.places.find(digest.hash(), is_its).map(|place| *place as usize)
    }

    /// The place of a new note.
    fn begin(&mut self, digest: Digest) -> usize {
        if self.notes.len() >= self.counters_max {
            self.notes.clear();
            self.places.clear();
        }
        let place = self.notes.len();
        self.notes.push((digest, Note::new(self.now())));
        let hash = |place: &u32| self.notes[*place as usize].0.hash();
        let short = u32::try_from(place).expect("`allocator.counters_max` is below 4 billion");
        self.places.insert_unique(digest.hash(), short, hash);
        place
    }

    /// Notes `count` values of a counter up to `value`.
    pub(super) fn took(
        &mut self,
        counter: &str,
        counter_id: i64,
        value: i64,
        count: u64,
    ) -> &mut Note {
        if !self.cold.is_empty() {
            self.cold.remove(counter);
        }
        let note = self.of(counter);
        note.took(counter_id, value, count);
        note
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
fn known(value: i64) -> Option<i64> {
    (value != UNKNOWN).then_some(value)
}

/// A count as notes keep it: stops at 4 billion.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The value before a serial's first one.
#[must_use]
pub(super) fn origin(serial: &Seed) -> i64 {
    signed(serial.start) - signed(serial.step)
}

/// Values are at most 2^53 - 1.
#[must_use]
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("values are at most 2^53 - 1")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn serial(max: u64) -> Seed {
        Seed {
            series_id: 1,
            version: 1,
            serial: "SEQ".into(),
            key: "k".into(),
            start: 1,
            step: 1,
            max,
            room: 0,
        }
    }

    fn noted(notes: &mut Notes, value: i64, ceiling: i64) -> &mut Note {
        let now = notes.now();
        let note = notes.of("k");
        note.seeded(value);
        note.grant(ceiling, 1, now);
        note
    }

    #[tokio::test(start_paused = true)]
    async fn a_raise_follows_the_rate_and_grows_fourfold_at_most() {
        let settings = AllocatorSettings::default();
        let mut notes = Notes::new(1);
        let (begun, note) = (notes.now(), noted(&mut notes, 0, 10));
        for value in 1..=6 {
            note.took(7, value, 1);
        }
        assert!(note.wants_raise(&serial(1_000_000)), "4 of 10 are left");
        // 6 numbers within a second are 180 in 30 s, but the last grant was only 10.
        assert_eq!(note.next_ceiling(&serial(1_000_000), 0, begun, &settings), 6 + 40);
        note.grant(46, 1, begun);
        assert!(!note.wants_raise(&serial(1_000_000)), "40 of 40 are left");
        tokio::time::advance(Duration::from_secs(60)).await;
        let now = notes.now();
        for value in 7..=46 {
            notes.took("k", 7, value, 1);
        }
        // 40 numbers a minute are 20 in 30 s.
        let note = notes.of("k");
        assert_eq!(note.next_ceiling(&serial(1_000_000), 0, now, &settings), 46 + 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_serial_is_never_promised_more_than_an_eighth_of_what_is_left() {
        let settings = AllocatorSettings::default();
        let mut notes = Notes::new(1);
        let (now, note) = (notes.now(), noted(&mut notes, 0, 400));
        note.took(7, 399, 399);
        let next = |need| note.next_ceiling(&serial(999), need, now, &settings);
        assert_eq!(next(0), 399 + 75);
        assert_eq!(next(590), 399 + 590, "need comes first");
        assert_eq!(next(9_000), 999, "never past the end");
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_bound_notes_begin_anew_and_what_is_not_known_is_told_so() {
        let mut notes = Notes::new(2);
        notes.took("a", 1, 0, 1);
        notes.took("b", 2, -4, 1);
        let seen = |notes: &Notes, name| notes.get(name).and_then(Note::value);
        assert_eq!((seen(&notes, "a"), seen(&notes, "b")), (Some(0), Some(-4)));
        assert_eq!(notes.of("b").room_left(&serial(9)), None, "no ceiling is known");
        notes.of("c");
        assert_eq!((seen(&notes, "a"), seen(&notes, "c")), (None, None));
        assert_eq!(notes.of("c").counter_id(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_counter_is_cold_until_it_is_taken_from() {
        let mut notes = Notes::new(2);
        let since = notes.cold_since("a");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(notes.cold_since("a"), since);
        notes.took("a", 1, 5, 1);
        assert_ne!(notes.cold_since("a"), since);
    }

    #[test]
    fn a_note_is_small() {
        assert_eq!(size_of::<(Digest, Note)>(), 56);
    }
}
