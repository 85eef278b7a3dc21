//! What the database path confirmed to this process since its last confirmed heartbeat. No count of
//! its node shows that a ledger forgot one of these (F34); what is older, the heartbeat shows.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

use crate::Entry;
use crate::rows::ArchivedName;

/// Counters whose confirmed value is kept, at most; more than are used between two heartbeats.
/// Beyond, the older half is let go.
const COUNTERS_KEPT: usize = 65_536;

/// Numbers that a heartbeat looks for, at most: more than are confirmed at one time, so that the
/// last one that the ledger wrote is among them.
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
        // One of no counter is found nowhere.
        let value = entry.taken.first().map(|taken| (taken.counter_id, taken.range.first));
        let (counter_id, first) = value.unwrap_or_default();
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        let document_id = entry.record.document_id.as_deref();
        let archived_as = ArchivedName::of(&entry.number, document_id, (counter_id, first));
        ConfirmedNumber { allocation: entry.record.allocation_id, archived_as }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ConfirmedTakes {
    /// Batches noted so far: their order.
    noted: u64,
    values: HashMap<NamedCounter, (i64, u64)>,
    numbers: VecDeque<(u64, ConfirmedNumber)>,
}

/// What a heartbeat looks for.
#[derive(Debug)]
pub(crate) struct Unbeaten {
    upto: u64,
    /// Numbers that must be there.
    pub(crate) numbers: Vec<ConfirmedNumber>,
}

impl ConfirmedTakes {
    /// Notes a committed batch: how far it took each counter, and its last number.
    pub(crate) fn note(
        &mut self,
        values: impl IntoIterator<Item = (NamedCounter, i64)>,
        last: ConfirmedNumber,
    ) {
        self.noted += 1;
        for (name, value) in values {
            let kept = self.values.entry(name).or_insert((value, self.noted));
            *kept = (kept.0.max(value), self.noted);
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
        self.values.get(name).map(|(value, _)| *value)
    }

    /// What no heartbeat has followed so far.
    pub(crate) fn unbeaten(&self) -> Unbeaten {
        let numbers = self.numbers.iter().map(|(_, number)| *number).collect();
        Unbeaten { upto: self.noted, numbers }
    }

    /// Lets go what a heartbeat followed.
    pub(crate) fn let_go(&mut self, beaten: &Unbeaten) {
        self.let_go_upto(beaten.upto);
    }

    /// Lets all go: of an incarnation that is over.
    pub(crate) fn clear(&mut self) {
        self.let_go_upto(self.noted);
    }

    fn let_go_upto(&mut self, upto: u64) {
        self.values.retain(|_, (_, noted)| *noted > upto);
        self.numbers.retain(|(noted, _)| *noted > upto);
    }

    fn let_half_go(&mut self) {
        let mut noted: Vec<u64> = self.values.values().map(|(_, noted)| *noted).collect();
        let half = noted.len() / 2;
        let upto = *noted.select_nth_unstable(half).1;
        self.values.retain(|_, (_, noted)| *noted > upto);
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
        ConfirmedNumber { allocation, archived_as: ArchivedName::of("n", None, (1, 1)) }
    }

    #[test]
    fn a_heartbeat_lets_go_only_what_it_followed() {
        let mut takes = ConfirmedTakes::default();
        takes.note([(name(1), 5), (name(2), 7)], number(1));
        let unbeaten = takes.unbeaten();
        assert_eq!(unbeaten.numbers, [number(1)]);
        takes.note([(name(1), 6)], number(2));
        takes.let_go(&unbeaten);
        assert_eq!((takes.value_of(&name(1)), takes.value_of(&name(2))), (Some(6), None));
        assert_eq!(takes.unbeaten().numbers, [number(2)]);
        takes.clear();
        assert_eq!((takes.value_of(&name(1)), takes.unbeaten().numbers.len()), (None, 0));
    }

    #[test]
    fn a_batch_that_is_confirmed_late_lowers_nothing() {
        let mut takes = ConfirmedTakes::default();
        takes.note([(name(1), 6)], number(1));
        takes.note([(name(1), 5)], number(2));
        assert_eq!(takes.value_of(&name(1)), Some(6));
    }

    #[test]
    fn beyond_their_bounds_the_newest_are_kept() {
        let mut takes = ConfirmedTakes::default();
        for key in 0..=COUNTERS_KEPT {
            takes.note([(name(key), 1)], number(key));
        }
        assert!(takes.values.len() <= COUNTERS_KEPT / 2 + 1, "{}", takes.values.len());
        assert_eq!(takes.value_of(&name(COUNTERS_KEPT)), Some(1));
        let numbers = takes.unbeaten().numbers;
        assert_eq!(numbers.len(), NUMBERS_KEPT);
        assert_eq!(numbers.last(), Some(&number(COUNTERS_KEPT)));
    }
}
