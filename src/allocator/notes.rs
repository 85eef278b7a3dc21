//! What a node remembers of the counters of one partition in one epoch.
//!
//! Never the truth: a second net against a counter that was set lower (F3), and the rate by which
//! ceilings are raised ahead of need. Forgotten when the epoch ends.

use std::collections::HashMap;

use tokio::time::Instant;

use super::AllocatorSettings;
use super::rooms::Room;
use crate::ledger::Seed;

/// One counter as this node has seen it in this epoch.
#[derive(Debug)]
pub(super) struct Note {
    /// Its id in the ledger, once known.
    pub counter_id: Option<i64>,
    /// Highest value seen.
    pub value: Option<i64>,
    /// The ceiling in Redis, once known.
    pub ceiling: Option<i64>,
    /// Whether it was seen or made warm in this epoch: cold after that is lost (F12).
    pub warm: bool,
    /// Whether a raise is under way.
    pub raising: bool,
    /// Since when it is cold although another node seeds it.
    pub cold_since: Option<Instant>,
    granted: u64,
    since: Instant,
    taken: u64,
}

impl Note {
    fn new() -> Self {
        Note {
            counter_id: None,
            value: None,
            ceiling: None,
            warm: false,
            raising: false,
            cold_since: None,
            granted: 0,
            since: Instant::now(),
            taken: 0,
        }
    }

    /// Notes `count` values up to `value`.
    pub(super) fn took(&mut self, counter_id: i64, value: i64, count: u64) {
        self.counter_id = Some(counter_id);
        self.value = self.value.max(Some(value));
        self.warm = true;
        self.cold_since = None;
        self.taken = self.taken.saturating_add(count);
    }

    /// Notes that a request found no room.
    pub(super) fn met_ceiling(&mut self, value: i64, ceiling: i64) {
        self.value = self.value.max(Some(value));
        self.ceiling = Some(ceiling);
        self.warm = true;
    }

    /// Notes the ceiling in force after a seed or a raise.
    pub(super) fn grant(&mut self, ceiling: i64, step: u64) {
        self.ceiling = self.ceiling.max(Some(ceiling));
        self.raising = false;
        self.granted = self.room(step);
        self.since = Instant::now();
        self.taken = 0;
    }

    /// How many numbers fit below the ceiling, as far as this node knows.
    fn room(&self, step: u64) -> u64 {
        match (self.value, self.ceiling) {
            (Some(value), Some(ceiling)) => ceiling.abs_diff(value.min(ceiling)) / step,
            _ => 0,
        }
    }

    /// The room below a ceiling that is not the end of the serial; `None` where this node does not
    /// know it.
    #[must_use]
    pub(super) fn room_left(&self, serial: &Seed) -> Option<Room> {
        let is_end = self.ceiling? >= signed(serial.max);
        let room = Room { left: self.room(serial.step), granted: self.granted };
        (!is_end && self.granted > 0).then_some(room)
    }

    /// Whether less than half of the last grant is left and nobody raises yet.
    #[must_use]
    pub(super) fn wants_raise(&self, serial: &Seed) -> bool {
        let room_in_sight = self.ceiling.is_some_and(|ceiling| ceiling < signed(serial.max));
        room_in_sight && !self.raising && self.room(serial.step) * 2 < self.granted
    }

    /// The ceiling to ask for: about `ceiling.horizon` of this counter's traffic above its value,
    /// at least `need` numbers, growing fourfold at most, and sparing small serials: no more than
    /// an eighth of what is left, so that one close at the ceiling cannot use a counter up.
    #[must_use]
    pub(super) fn next_ceiling(
        &self,
        serial: &Seed,
        need: u64,
        settings: &AllocatorSettings,
    ) -> i64 {
        let value = self.value.unwrap_or_else(|| origin(serial));
        let left = signed(serial.max).abs_diff(value.min(signed(serial.max))) / serial.step;
        let elapsed = self.since.elapsed().as_secs_f64().max(1.0);
        let horizon = settings.ceiling_horizon.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let traffic = (self.taken as f64 * horizon / elapsed) as u64;
        let floor = settings.ceiling_step_min.max(need);
        let wanted = traffic.min(self.granted.saturating_mul(4)).min(left / 8).max(floor);
        value + signed(wanted.min(left)) * signed(serial.step)
    }
}

/// The notes of one epoch, bounded.
#[derive(Debug, Default)]
pub(super) struct Notes(HashMap<String, Note>);

impl Notes {
    /// The note of a counter, begun if there is none. Past `counters_max` all notes are forgotten
    /// first: only the second net and the rates start over.
    pub(super) fn of(&mut self, counter: &str, counters_max: usize) -> &mut Note {
        if self.0.len() >= counters_max && !self.0.contains_key(counter) {
            self.0.clear();
        }
        self.0.entry(counter.to_owned()).or_insert_with(Note::new)
    }

    /// The note of a counter, where there is one.
    #[must_use]
    pub(super) fn get(&self, counter: &str) -> Option<&Note> {
        self.0.get(counter)
    }
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

    #[tokio::test(start_paused = true)]
    async fn a_raise_follows_the_rate_and_grows_fourfold_at_most() {
        let settings = AllocatorSettings::default();
        let mut note = Note::new();
        note.value = Some(0);
        note.grant(10, 1);
        for value in 1..=6 {
            note.took(7, value, 1);
        }
        assert!(note.wants_raise(&serial(1_000_000)), "4 of 10 are left");
        // 6 numbers within a second are 180 in 30 s, but the last grant was only 10.
        assert_eq!(note.next_ceiling(&serial(1_000_000), 0, &settings), 6 + 40);
        note.grant(46, 1);
        assert!(!note.wants_raise(&serial(1_000_000)), "40 of 40 are left");
        tokio::time::advance(Duration::from_secs(60)).await;
        for value in 7..=46 {
            note.took(7, value, 1);
        }
        // 40 numbers a minute are 20 in 30 s.
        assert_eq!(note.next_ceiling(&serial(1_000_000), 0, &settings), 46 + 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_serial_is_never_promised_more_than_an_eighth_of_what_is_left() {
        let settings = AllocatorSettings::default();
        let mut note = Note::new();
        note.value = Some(0);
        note.grant(400, 1);
        note.took(7, 399, 399);
        assert_eq!(note.next_ceiling(&serial(999), 0, &settings), 399 + 75);
        assert_eq!(note.next_ceiling(&serial(999), 590, &settings), 399 + 590, "need comes first");
        assert_eq!(note.next_ceiling(&serial(999), 9_000, &settings), 999, "never past the end");
    }
}
