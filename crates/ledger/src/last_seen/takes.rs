//! What the database path confirmed to this process and no heartbeat shows yet. No count of its
//! node shows that a ledger forgot one of these (F34). A later heartbeat shows the older ones, once
//! they were found in the ledger after it (F47). A ledger of another incarnation receives all of
//! them (F35). What is known of reservations is in [`known`], and what was shown reserved in
//! [`held`].

mod held;
pub(crate) mod known;

use std::collections::{BTreeSet, HashMap, VecDeque};

use tokio::time::Instant;
use uuid::Uuid;

use crate::ArchivedName;
use crate::Entry;
use held::Held;
pub use held::RECORDS_KEPT;
use known::{KnownHolders, Sighting, let_half_go};

/// Counters whose confirmed value is kept, at most; more than are used between two heartbeats.
/// Beyond, the older half is dropped.
const COUNTERS_KEPT: usize = 65_536;

/// Numbers that are looked for after a heartbeat, at most: more than are confirmed at one time, so
/// that the last one that the ledger wrote is among them.
const NUMBERS_KEPT: usize = 64;

/// Batches whose counters are looked for after a heartbeat, at most, of those that reserved a value
/// or took a returned one: the journal need not have a number of theirs.
const TURNS_KEPT: usize = 64;

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
    /// The highest value of each counter that was reserved here, or shown reserved. No record tells
    /// it again, so no heartbeat lets it go (L10).
    held: Held,
    /// How many returned values of counters were taken again (L12).
    reissued: HashMap<NamedCounter, (u64, u64)>,
    /// How far counters were, by the batch that reserved or took a returned value.
    turns: VecDeque<(u64, CounterTurn)>,
    /// What is known of reservations (L12).
    known: KnownHolders,
    numbers: VecDeque<(u64, ConfirmedNumber)>,
    /// Partitions of counters that a report of takes raised, until the report is complete.
    raised: BTreeSet<u32>,
}

/// Where a batch left a counter. Both values only rise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterTurn {
    pub(crate) name: NamedCounter,
    /// The highest value taken.
    pub(crate) taken: i64,
    /// How many returned values were taken again.
    pub(crate) reissued: u64,
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
    /// Reservations that must not wait for their callers any more.
    pub(crate) changed: Vec<Uuid>,
    /// Reservations that must have no row any more.
    pub(crate) ended: Vec<Uuid>,
    /// Counters that must be as far.
    pub(crate) turns: Vec<CounterTurn>,
}

/// The report to a ledger of another incarnation.
#[derive(Debug)]
pub(crate) struct Unreported {
    upto: u64,
    /// How far each counter was taken, by name.
    pub(crate) reached: Vec<(NamedCounter, Reached)>,
}

impl ConfirmedTakes {
    /// Notes a committed batch of a partition: how far it took each counter, and its last number,
    /// where it journaled one.
    pub(crate) fn note(
        &mut self,
        partition: u32,
        values: impl IntoIterator<Item = (NamedCounter, i64)>,
        last: Option<ConfirmedNumber>,
    ) {
        self.noted += 1;
        for (name, value) in values {
            let new = Reached { value, partition, noted: self.noted };
            let kept = self.values.entry(name).or_insert(new);
            *kept = Reached { value: kept.value.max(value), ..new };
        }
        if self.values.len() > COUNTERS_KEPT {
            let_half_go(&mut self.values, |reached| reached.noted);
        }
        let Some(last) = last else { return };
        if self.numbers.len() == NUMBERS_KEPT {
            self.numbers.pop_front();
        }
        self.numbers.push_back((self.noted, last));
    }

    /// Notes values of a partition that were reserved, or shown reserved, to callers.
    pub(crate) fn hold(
        &mut self,
        partition: u32,
        values: impl IntoIterator<Item = (NamedCounter, i64)>,
    ) {
        let now = Instant::now();
        for (name, value) in values {
            self.held.add(name, Reached { value, partition, noted: self.noted }, now);
        }
        self.held.let_old_go(now);
    }

    /// When the newest of the values was shown reserved that are not kept any more.
    pub(crate) fn forgot_held(&self) -> Option<Instant> {
        self.held.forgot()
    }

    /// Notes where the batch noted last left a counter, of one that reserved a value or took a
    /// returned one.
    pub(crate) fn note_turn(&mut self, turn: CounterTurn) {
        if turn.reissued > 0 {
            let kept = self.reissued.entry(turn.name.clone()).or_default();
            *kept = (kept.0.max(turn.reissued), self.noted);
        }
        if self.reissued.len() > COUNTERS_KEPT {
            self.reissued.clear();
        }
        if self.turns.len() == TURNS_KEPT {
            self.turns.pop_front();
        }
        self.turns.push_back((self.noted, turn));
    }

    /// Notes what was seen of reservations, or done to them and committed. Returns the first that
    /// contradicts what was noted before: one of the two answers is of a ledger that went back.
    pub(crate) fn note_seen(&mut self, all: &[Sighting]) -> Result<(), Uuid> {
        self.noted += u64::from(!all.is_empty());
        let strange = all.iter().find(|seen| !self.known.note(seen, self.noted));
        strange.map_or(Ok(()), |seen| Err(seen.id()))
    }

    /// Whether a row of a reservation shows less than what is known of it, of its value or of its
    /// document, by as many of the notes as there were before it was read; by all of them where the
    /// row is locked.
    pub(crate) fn is_missed_by(&self, row: &Sighting, upto: u64) -> bool {
        self.known.is_missed_by(row, upto)
    }

    /// The value below which a counter cannot be, unless the ledger went back.
    pub(crate) fn value_of(&self, name: &NamedCounter) -> Option<i64> {
        let kept = [self.values.get(name), self.held.get(name)];
        kept.into_iter().flatten().map(|reached| reached.value).max()
    }

    /// How many returned values of a counter must have been taken again, unless the ledger went
    /// back.
    pub(crate) fn reissued_of(&self, name: &NamedCounter) -> u64 {
        self.reissued.get(name).map_or(0, |(reissued, _)| *reissued)
    }

    /// How many notes there are: read before a heartbeat is sent, and before a row is read that is
    /// compared with them.
    pub(crate) fn noted(&self) -> u64 {
        self.noted
    }

    /// A heartbeat was confirmed that was sent once so many batches were noted.
    pub(crate) fn beat_after(&mut self, noted: u64) {
        self.beaten = self.beaten.max(noted);
    }

    /// The numbers among [`ConfirmedTakes::unproven`].
    pub(crate) fn numbers(&self) -> Vec<ConfirmedNumber> {
        self.numbers.iter().map(|(_, number)| *number).collect()
    }

    /// Whether a heartbeat waits for its proof. Copies nothing.
    pub(crate) fn is_proof_awaited(&self) -> bool {
        let is_any = !self.numbers.is_empty() || !self.turns.is_empty() || self.known.has_changed();
        is_any && self.provable_upto() > 0
    }

    /// How many of the notes a heartbeat has followed, where any of them is not proven.
    fn provable_upto(&self) -> u64 {
        let is_kept = self.numbers.iter().any(|(noted, _)| *noted <= self.beaten)
            || self.values.values().any(|reached| reached.noted <= self.beaten)
            || self.turns.iter().any(|(noted, _)| *noted <= self.beaten)
            || self.known.has_any(self.beaten);
        if is_kept { self.beaten } else { 0 }
    }

    /// What was not seen in the ledger since a heartbeat followed it, and what came after.
    pub(crate) fn unproven(&self) -> Unproven {
        Unproven {
            upto: self.provable_upto(),
            numbers: self.numbers(),
            changed: self.known.changed(),
            ended: self.known.ended(),
            turns: self.turns.iter().map(|(_, turn)| turn.clone()).collect(),
        }
    }

    /// Drops what a heartbeat followed and then was found in the ledger.
    pub(crate) fn let_go(&mut self, proven: &Unproven) {
        self.let_go_upto(proven.upto);
    }

    /// Everything that the next incarnation does not know from this process yet.
    pub(crate) fn unreported(&self) -> Unreported {
        let mut highest = self.values.clone();
        for (name, held) in self.held.all() {
            let kept = highest.entry(name.clone()).or_insert(*held);
            if kept.value < held.value {
                *kept = *held;
            }
        }
        let mut reached: Vec<_> = highest.into_iter().collect();
        reached.sort_by(|(one, _), (other, _)| one.cmp(other));
        Unreported { upto: self.noted, reached }
    }

    /// Notes the partitions whose counters are raised; before the commit, because a repeated try
    /// may find them raised.
    pub(crate) fn note_raised(&mut self, partitions: BTreeSet<u32>) {
        self.raised.extend(partitions);
    }

    /// Drops what was reported, and all that is known of reservations. Returns the partitions whose
    /// counters were raised for that.
    pub(crate) fn forget_reported(&mut self, told: &Unreported) -> BTreeSet<u32> {
        self.let_go_upto(told.upto);
        // Nothing of it holds in another incarnation, whenever it was noted.
        self.known = KnownHolders::default();
        std::mem::take(&mut self.raised)
    }

    fn let_go_upto(&mut self, upto: u64) {
        self.values.retain(|_, reached| reached.noted > upto);
        self.numbers.retain(|(noted, _)| *noted > upto);
        self.reissued.retain(|_, (_, noted)| *noted > upto);
        self.turns.retain(|(noted, _)| *noted > upto);
        self.known.let_go(upto);
    }
}

#[cfg(test)]
mod tests;
