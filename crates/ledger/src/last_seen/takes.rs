//! What the database path confirmed to this process and no heartbeat shows yet. No count of its
//! node shows that a ledger forgot one of these (F34). A later heartbeat shows the older ones, once
//! they were found in the ledger after it (F47). A ledger of another incarnation receives all of
//! them (F35).

use std::collections::{BTreeSet, HashMap, VecDeque};

use uuid::Uuid;

use crate::ArchivedName;
use crate::Entry;

/// Counters whose confirmed value is kept, at most; more than are used between two heartbeats.
/// Beyond, the older half is dropped.
const COUNTERS_KEPT: usize = 65_536;

/// Numbers that are looked for after a heartbeat, at most: more than are confirmed at one time, so
/// that the last one that the ledger wrote is among them.
const NUMBERS_KEPT: usize = 64;

/// Series, serial and key of a counter: a ledger that went back gives its id to another.
pub(crate) type NamedCounter = (i64, String, String);

/// A number that was confirmed, as it is looked for: in the journal, and among what moved to an
/// archive since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmedNumber {
    pub(crate) allocation: Uuid,
    pub(crate) archived_as: ArchivedName,
}

impl ConfirmedNumber {
    /// Of a number that was committed.
    pub(crate) fn of(entry: &Entry) -> Self {
        // A number without a counter cannot be looked up.
        let value = entry.taken.first().map(|taken| (taken.counter_id, taken.range.first));
        let (counter_id, first) = value.unwrap_or_default();
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        let document = (entry.record.document_id.as_deref(), entry.record.project.as_deref());
        let archived_as = ArchivedName::of(&entry.number, document, (counter_id, first));
        ConfirmedNumber { allocation: entry.record.allocation_id, archived_as }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ConfirmedTakes {
    /// Batches noted so far: their order.
    noted: u64,
    /// Those of them that a confirmed heartbeat followed.
    beaten: u64,
    values: HashMap<NamedCounter, Reached>,
    numbers: VecDeque<(u64, ConfirmedNumber)>,
    /// Partitions of counters that a report of takes raised, until the report is complete.
    raised: BTreeSet<u32>,
}

/// How far a counter was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Its highest value that was confirmed.
    pub(crate) value: i64,
    /// The partition in which it was taken.
    pub(crate) partition: u32,
    /// The last batch that took of it.
    noted: u64,
}

/// What is looked for after a heartbeat.
#[derive(Debug)]
pub(crate) struct Unproven {
    /// What may be dropped once the numbers are there.
    upto: u64,
    /// Numbers that must be there.
    pub(crate) numbers: Vec<ConfirmedNumber>,
}

impl Unproven {
    /// Whether a heartbeat waits for its proof.
    pub(crate) fn is_awaited(&self) -> bool {
        self.upto > 0 && !self.numbers.is_empty()
    }
}

/// The report to a ledger of another incarnation.
#[derive(Debug)]
pub(crate) struct Unreported {
    upto: u64,
    /// How far each counter was taken, by name.
    pub(crate) reached: Vec<(NamedCounter, Reached)>,
}

impl ConfirmedTakes {
    /// Notes a committed batch of a partition: how far it took each counter, and its last number.
    pub(crate) fn note(
        &mut self,
        partition: u32,
        values: impl IntoIterator<Item = (NamedCounter, i64)>,
        last: ConfirmedNumber,
    ) {
        self.noted += 1;
        for (name, value) in values {
            let new = Reached { value, partition, noted: self.noted };
            let kept = self.values.entry(name).or_insert(new);
            *kept = Reached { value: kept.value.max(value), ..new };
        }
        if self.values.len() > COUNTERS_KEPT {
            self.let_half_go();
        }
        if self.numbers.len() == NUMBERS_KEPT {
            self.numbers.pop_front();
        }
        self.numbers.push_back((self.noted, last));
    }

    /// The value below which a counter cannot be, unless the ledger went back.
    pub(crate) fn value_of(&self, name: &NamedCounter) -> Option<i64> {
        self.values.get(name).map(|reached| reached.value)
    }

    /// Batches noted so far; read before a heartbeat is sent.
    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    /// A heartbeat was confirmed that was sent once so many batches were noted.
    pub(crate) fn beat_after(&mut self, noted: u64) {
        self.beaten = self.beaten.max(noted);
    }

    /// What was not seen in the ledger since a heartbeat followed it, and what came after.
    pub(crate) fn unproven(&self) -> Unproven {
        let is_kept = self.numbers.iter().any(|(noted, _)| *noted <= self.beaten)
            || self.values.values().any(|reached| reached.noted <= self.beaten);
        let numbers = self.numbers.iter().map(|(_, number)| *number).collect();
        Unproven { upto: if is_kept { self.beaten } else { 0 }, numbers }
    }

    /// Drops what a heartbeat followed and then was found in the ledger.
    pub(crate) fn let_go(&mut self, proven: &Unproven) {
        self.let_go_upto(proven.upto);
    }

    /// Everything that the next incarnation does not know from this process yet.
    pub(crate) fn unreported(&self) -> Unreported {
        let mut reached: Vec<_> =
            self.values.iter().map(|(name, reached)| (name.clone(), *reached)).collect();
        reached.sort_by(|(one, _), (other, _)| one.cmp(other));
        Unreported { upto: self.noted, reached }
    }

    /// Notes the partitions whose counters are raised; before the commit, because a repeated try
    /// may find them raised.
    pub(crate) fn note_raised(&mut self, partitions: BTreeSet<u32>) {
        self.raised.extend(partitions);
    }

    /// Drops what was reported. Returns the partitions whose counters were raised for that.
    pub(crate) fn forget_reported(&mut self, told: &Unreported) -> BTreeSet<u32> {
        self.let_go_upto(told.upto);
        std::mem::take(&mut self.raised)
    }

    fn let_go_upto(&mut self, upto: u64) {
        self.values.retain(|_, reached| reached.noted > upto);
        self.numbers.retain(|(noted, _)| *noted > upto);
    }

    fn let_half_go(&mut self) {
        let mut noted: Vec<u64> = self.values.values().map(|reached| reached.noted).collect();
        let half = noted.len() / 2;
        let upto = *noted.select_nth_unstable(half).1;
        self.values.retain(|_, reached| reached.noted > upto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(key: usize) -> NamedCounter {
        (1, "SEQ".into(), key.to_string())
    }

    fn number(allocation: usize) -> ConfirmedNumber {
        let allocation = Uuid::from_u128(allocation as u128);
        ConfirmedNumber { allocation, archived_as: ArchivedName::of("n", (None, None), (1, 1)) }
    }

    #[test]
    fn what_is_proven_lets_go_only_what_a_heartbeat_followed() {
        let mut takes = ConfirmedTakes::default();
        takes.note(0, [(name(1), 5), (name(2), 7)], number(1));
        assert!(!takes.unproven().is_awaited(), "no heartbeat has followed");
        let noted = takes.noted();
        takes.note(0, [(name(1), 6)], number(2));
        takes.beat_after(noted);
        let unproven = takes.unproven();
        assert!(unproven.is_awaited());
        assert_eq!(unproven.numbers, [number(1), number(2)]);
        takes.let_go(&unproven);
        assert_eq!((takes.value_of(&name(1)), takes.value_of(&name(2))), (Some(6), None));
        assert_eq!(takes.unproven().numbers, [number(2)]);
        assert!(!takes.unproven().is_awaited(), "that is proven");
    }

    #[test]
    fn what_the_next_incarnation_was_told_is_let_go_and_nothing_that_came_after() {
        let mut takes = ConfirmedTakes::default();
        takes.note(3, [(name(2), 7), (name(1), 5)], number(1));
        let unreported = takes.unreported();
        let told: Vec<_> = unreported
            .reached
            .iter()
            .map(|(name, to)| (name.clone(), to.value, to.partition))
            .collect();
        assert_eq!(told, [(name(1), 5, 3), (name(2), 7, 3)]);
        takes.note(3, [(name(1), 6)], number(2));
        takes.forget_reported(&unreported);
        assert_eq!((takes.value_of(&name(1)), takes.value_of(&name(2))), (Some(6), None));
    }

    #[test]
    fn what_a_try_raised_whose_end_is_unknown_is_said_by_the_next() {
        let mut takes = ConfirmedTakes::default();
        takes.note(3, [(name(1), 5)], number(1));
        takes.note_raised([3].into());
        // The next one finds that counter raised, and raises another one.
        let unreported = takes.unreported();
        takes.note_raised([2].into());
        assert_eq!(takes.forget_reported(&unreported), [2, 3].into());
        assert!(takes.forget_reported(&unreported).is_empty(), "it is said once");
    }

    #[test]
    fn a_batch_that_is_confirmed_late_lowers_nothing() {
        let mut takes = ConfirmedTakes::default();
        takes.note(0, [(name(1), 6)], number(1));
        takes.note(0, [(name(1), 5)], number(2));
        assert_eq!(takes.value_of(&name(1)), Some(6));
    }

    #[test]
    fn beyond_their_bounds_the_newest_are_kept() {
        let mut takes = ConfirmedTakes::default();
        for key in 0..=COUNTERS_KEPT {
            takes.note(0, [(name(key), 1)], number(key));
        }
        assert!(takes.values.len() <= COUNTERS_KEPT / 2 + 1, "{}", takes.values.len());
        assert_eq!(takes.value_of(&name(COUNTERS_KEPT)), Some(1));
        let numbers = takes.unproven().numbers;
        assert_eq!(numbers.len(), NUMBERS_KEPT);
        assert_eq!(numbers.last(), Some(&number(COUNTERS_KEPT)));
    }
}
