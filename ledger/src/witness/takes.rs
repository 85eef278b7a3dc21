//! What the database path confirmed to this process since its last confirmed heartbeat. No count of
//! its node shows that a ledger forgot one of these (F34); what is older, the heartbeat shows.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

/// Counters whose confirmed value is kept, at most; more than are used between two heartbeats.
/// Beyond, the older half is let go.
const COUNTERS_KEPT: usize = 65_536;

/// Allocations that a heartbeat looks for, at most: more than are confirmed at one time, so that
/// the last one that the ledger wrote is among them.
const ALLOCATIONS_KEPT: usize = 64;

/// Series, serial and key of a counter: a ledger that went back gives its id to another.
pub(crate) type NamedCounter = (i64, String, String);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ConfirmedTakes {
    /// Batches noted so far: their order.
    noted: u64,
    values: HashMap<NamedCounter, (i64, u64)>,
    allocations: VecDeque<(u64, Uuid)>,
}

/// What a heartbeat looks for.
#[derive(Debug)]
pub(crate) struct Unbeaten {
    upto: u64,
    /// Allocations that must be in the journal.
    pub(crate) allocations: Vec<Uuid>,
}

impl ConfirmedTakes {
    /// Notes a committed batch: how far it took each counter, and its last allocation.
    pub(crate) fn note(
        &mut self,
        values: impl IntoIterator<Item = (NamedCounter, i64)>,
        allocation: Uuid,
    ) {
        self.noted += 1;
        for (name, value) in values {
            let kept = self.values.entry(name).or_insert((value, self.noted));
            *kept = (kept.0.max(value), self.noted);
        }
        if self.values.len() > COUNTERS_KEPT {
            self.let_half_go();
        }
        if self.allocations.len() == ALLOCATIONS_KEPT {
            self.allocations.pop_front();
        }
        self.allocations.push_back((self.noted, allocation));
    }

    /// The value below which a counter cannot be, unless the ledger went back.
    pub(crate) fn value_of(&self, name: &NamedCounter) -> Option<i64> {
        self.values.get(name).map(|(value, _)| *value)
    }

    /// What no heartbeat has followed so far.
    pub(crate) fn unbeaten(&self) -> Unbeaten {
        let allocations = self.allocations.iter().map(|(_, allocation)| *allocation).collect();
        Unbeaten { upto: self.noted, allocations }
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
        self.allocations.retain(|(noted, _)| *noted > upto);
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

    #[test]
    fn a_heartbeat_lets_go_only_what_it_followed() {
        let mut takes = ConfirmedTakes::default();
        let (first, second) = (Uuid::from_u128(1), Uuid::from_u128(2));
        takes.note([(name(1), 5), (name(2), 7)], first);
        let unbeaten = takes.unbeaten();
        assert_eq!(unbeaten.allocations, [first]);
        takes.note([(name(1), 6)], second);
        takes.let_go(&unbeaten);
        assert_eq!((takes.value_of(&name(1)), takes.value_of(&name(2))), (Some(6), None));
        assert_eq!(takes.unbeaten().allocations, [second]);
        takes.clear();
        assert_eq!((takes.value_of(&name(1)), takes.unbeaten().allocations.len()), (None, 0));
    }

    #[test]
    fn a_batch_that_is_confirmed_late_lowers_nothing() {
        let mut takes = ConfirmedTakes::default();
        takes.note([(name(1), 6)], Uuid::nil());
        takes.note([(name(1), 5)], Uuid::nil());
        assert_eq!(takes.value_of(&name(1)), Some(6));
    }

    #[test]
    fn beyond_their_bounds_the_newest_are_kept() {
        let mut takes = ConfirmedTakes::default();
        for key in 0..=COUNTERS_KEPT {
            takes.note([(name(key), 1)], Uuid::from_u128(key as u128));
        }
        assert!(takes.values.len() <= COUNTERS_KEPT / 2 + 1, "{}", takes.values.len());
        assert_eq!(takes.value_of(&name(COUNTERS_KEPT)), Some(1));
        let allocations = takes.unbeaten().allocations;
        assert_eq!(allocations.len(), ALLOCATIONS_KEPT);
        assert_eq!(allocations.last(), Some(&Uuid::from_u128(COUNTERS_KEPT as u128)));
    }
}
