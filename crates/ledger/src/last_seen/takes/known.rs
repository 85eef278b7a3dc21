//! What this process knows of reservations (L12): of each value the last one and how far it came,
//! and of each document the last one. A row that shows less is of a ledger that went back. Of two
//! reservations of one counter the later one has the higher turn: no clock is compared.
//!
//! A row is compared with what was noted before it was read, and with nothing that came after: what
//! was read before an act shows no loss. What another process does raises turns, and contradicts
//! nothing. Reads no row, and decides nothing.

mod blocks;

use std::collections::{BTreeMap, HashMap, btree_map, hash_map};
use std::hash::Hash;

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::NamedCounter;
use crate::{Entry, Question, Reservation, ReservationState};
use blocks::KnownBlocks;

/// Values, blocks and documents of which something is known, at most of each: more than a process
/// meets between two heartbeats. Beyond, the older half is dropped: of these an earlier reservation
/// that is live again is not noticed.
const KNOWN_MAX: usize = 65_536;

/// How far a reservation came. It never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// It waits for its caller.
    Reserved,
    /// It is confirmed or cancelled.
    Changed,
    /// It has no row any more.
    Ended,
}

/// How many stages there are.
const STAGES: usize = 3;

/// Stands for a counter, and a document with its project: one of another counter is not compared.
/// A hash: two documents of one would be compared with each other; among as many as are known that
/// happens once in 10^29 times.
type NamedDocument = u128;

/// The hash of a document.
fn named(counter: &NamedCounter, project: Option<&str>, document: &str) -> NamedDocument {
    let mut hash = Sha256::new();
    hash.update(counter.0.to_be_bytes());
    hash.update([u8::from(project.is_some())]);
    // Each with its length: no two lists of texts read alike.
    for text in [&*counter.1, &*counter.2, project.unwrap_or_default(), document] {
        hash.update(text.len().to_be_bytes());
        hash.update(text.as_bytes());
    }
    let mut head = [0; 16];
    head.copy_from_slice(&hash.finalize()[..16]);
    u128::from_be_bytes(head)
}

/// What is seen of a reservation, or of a number that has its value.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    id: Uuid,
    counter: NamedCounter,
    /// The value; of a block the lowest one,
    value: i64,
    /// the highest one, and how far they are apart.
    last: i64,
    step: i64,
    /// None of what was found issued: it is its document's for good.
    turn: Option<i64>,
    /// By which it is compared with others of its document.
    document_turn: Option<i64>,
    stage: Stage,
    /// Whether the value is never another's.
    is_final: bool,
    /// Whether an earlier reservation may have had the value.
    is_of_value: bool,
    document: Option<NamedDocument>,
    /// Whether nothing that was reserved earlier for the document was live at that moment.
    is_sole: bool,
}

impl Sighting {
    /// A live reservation; a block with all of its values.
    pub(crate) fn of(reservation: &Reservation) -> Option<Self> {
        let is_final = reservation.is_confirmed();
        let stage = match reservation.state {
            ReservationState::Reserved => Stage::Reserved,
            ReservationState::Confirmed | ReservationState::Cancelled => Stage::Changed,
        };
        let seen = Self::confirmed(&reservation.entry)?;
        let range = reservation.entry.taken.first()?.range;
        let (last, step) = (i64::try_from(range.last).ok()?, i64::try_from(range.step).ok()?);
        let (last, step) = (last.max(seen.value), step.max(1));
        let turn = Some(reservation.turn);
        Some(Sighting { last, step, turn, document_turn: turn, stage, is_final, ..seen })
    }

    /// A number that was found confirmed; it may still wait for the journal.
    pub(crate) fn confirmed(entry: &Entry) -> Option<Self> {
        let record = &entry.record;
        let (serial, key) = (record.serials.first()?, record.counter_keys.first()?);
        let value = i64::try_from(entry.taken.first()?.range.first).ok()?;
        let counter = (record.series_id, serial.clone(), key.clone());
        let document = record.document_id.as_deref();
        let document = document.map(|id| named(&counter, record.project.as_deref(), id));
        Some(Sighting {
            id: record.allocation_id,
            counter,
            value,
            last: value,
            step: 1,
            turn: None,
            document_turn: None,
            stage: Stage::Changed,
            is_final: true,
            is_of_value: true,
            document,
            is_sole: false,
        })
    }

    /// A number that was taken without a reservation, and whether its value had returned.
    pub(crate) fn taken(entry: &Entry, turn: i64, is_of_value: bool) -> Option<Self> {
        let (turn, document_turn) = (Some(turn), Some(turn));
        Some(Sighting { turn, document_turn, is_of_value, ..Self::confirmed(entry)? })
    }

    /// A number of a block that is handed back, and the turn of its counter then: it is later than
    /// all that its document had, of which nothing is live.
    pub(crate) fn handed_back(entry: &Entry, turn: i64) -> Option<Self> {
        Some(Sighting { document_turn: Some(turn), is_sole: true, ..Self::confirmed(entry)? })
    }

    /// The same as it was before its caller changed it.
    pub(crate) fn unchanged(self) -> Self {
        Sighting { stage: Stage::Reserved, is_final: false, ..self }
    }

    /// The same once its row is gone.
    pub(crate) fn ended(self) -> Self {
        Sighting { stage: Stage::Ended, ..self }
    }

    /// The same, and whether nothing of its document was live that was reserved earlier.
    pub(crate) fn sole(self, is_sole: bool) -> Self {
        Sighting { is_sole, ..self }
    }

    /// The reservation, or the allocation of the number.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    fn is_block(&self) -> bool {
        self.value < self.last
    }

    /// Whether it has a value.
    fn has(&self, value: i64) -> bool {
        (self.value..=self.last).contains(&value) && (value - self.value) % self.step == 0
    }
}

/// Whether what answers a question is the first that was reserved for its document and is live: one
/// that asks for another number beside an earlier one does not know.
pub(crate) fn finds_sole(question: &Question) -> bool {
    question.document_id.is_some() && !question.again
}

/// The last reservation of a value, or the number that has it.
#[derive(Debug)]
struct LastOfValue {
    id: Uuid,
    turn: Option<i64>,
    /// The first note of each stage.
    noted: [Option<u64>; STAGES],
    /// Since when it is known that the value is never another's.
    final_since: Option<u64>,
}

impl LastOfValue {
    fn new(seen: &Sighting, noted: u64) -> Self {
        let (id, turn) = (seen.id, seen.turn);
        let mut new = LastOfValue { id, turn, noted: [None; STAGES], final_since: None };
        new.add(seen, noted);
        new
    }

    fn add(&mut self, seen: &Sighting, noted: u64) {
        self.noted[seen.stage as usize].get_or_insert(noted);
        if seen.is_final {
            self.final_since.get_or_insert(noted);
        }
        self.turn = self.turn.or(seen.turn);
    }

    fn since(&self) -> u64 {
        self.noted.iter().flatten().copied().min().unwrap_or(u64::MAX)
    }

    fn last(&self) -> u64 {
        self.noted.iter().flatten().copied().max().unwrap_or(0)
    }

    fn is_at(&self, stage: Stage) -> bool {
        self.noted[stage as usize].is_some()
    }

    /// Whether a row shows less than these of the notes.
    fn is_missed_by(&self, row: &Sighting, upto: u64) -> bool {
        if self.id == row.id {
            let later = &self.noted[row.stage as usize + 1..];
            return later.iter().flatten().any(|noted| *noted <= upto);
        }
        // Two that are confirmed are a collision, unless this process knows which came first.
        let is_comparable = self.turn.is_some() || !row.is_final;
        let is_taken = is_comparable && self.final_since.is_some_and(|since| since <= upto);
        let is_earlier = row.turn.zip(self.turn).is_some_and(|(row, known)| row <= known);
        is_taken || (is_earlier && self.since() <= upto)
    }

    /// Whether no one history of the ledger has both, whichever was seen first.
    fn contradicts(&self, seen: &Sighting) -> bool {
        let Some((known, new)) = self.turn.zip(seen.turn).filter(|_| self.id != seen.id) else {
            return false;
        };
        let is_final = self.final_since.is_some();
        known == new
            || (is_final && (seen.is_final || new > known))
            || (seen.is_final && known > new)
    }

    fn is_followed_by(&self, seen: &Sighting) -> bool {
        self.final_since.is_none() && (seen.is_final || seen.turn > self.turn)
    }
}

/// The last reservation of a document, or the number that it got.
#[derive(Debug)]
struct LastOfDocument {
    id: Uuid,
    turn: i64,
    noted: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct KnownHolders {
    values: BTreeMap<(NamedCounter, i64), LastOfValue>,
    blocks: KnownBlocks,
    documents: HashMap<NamedDocument, LastOfDocument>,
}

impl KnownHolders {
    /// Notes what was seen or done. False where it contradicts what is known: one of the two is an
    /// answer of a ledger that went back.
    #[must_use]
    pub(super) fn note(&mut self, seen: &Sighting, noted: u64) -> bool {
        let is_sound = match seen.is_block() {
            true => self.note_block(seen, noted),
            false => !seen.is_of_value || self.note_value(seen, noted),
        };
        self.note_document(seen, noted);
        is_sound
    }

    /// A block has new values alone: none of them was another's before it.
    fn note_block(&mut self, seen: &Sighting, noted: u64) -> bool {
        let is_before = |known: &LastOfValue| {
            known.turn.zip(seen.turn).is_some_and(|(known, block)| known <= block)
        };
        let is_late = self.values_of(seen).any(is_before);
        !is_late && self.blocks.note(seen, noted)
    }

    fn note_value(&mut self, seen: &Sighting, noted: u64) -> bool {
        if self.blocks.contradict(seen) {
            return false;
        }
        match self.values.entry((seen.counter.clone(), seen.value)) {
            btree_map::Entry::Vacant(free) => {
                free.insert(LastOfValue::new(seen, noted));
            }
            btree_map::Entry::Occupied(mut known) => {
                let known = known.get_mut();
                if known.contradicts(seen) {
                    return false;
                }
                if known.id == seen.id {
                    known.add(seen, noted);
                } else if known.is_followed_by(seen) {
                    *known = LastOfValue::new(seen, noted);
                }
            }
        }
        if self.values.len() > KNOWN_MAX {
            let upto = middle(self.values.values().map(LastOfValue::last));
            self.values.retain(|_, known| known.last() > upto);
        }
        true
    }

    fn note_document(&mut self, seen: &Sighting, noted: u64) {
        let turn = seen.document_turn.filter(|_| seen.is_sole);
        let Some((turn, name)) = turn.zip(seen.document) else { return };
        let new = LastOfDocument { id: seen.id, turn, noted };
        match self.documents.entry(name) {
            hash_map::Entry::Vacant(free) => {
                free.insert(new);
            }
            hash_map::Entry::Occupied(mut known) => {
                if known.get().turn < turn {
                    known.insert(new);
                }
            }
        }
        if self.documents.len() > KNOWN_MAX {
            let_half_go(&mut self.documents, |known| known.noted);
        }
    }

    /// Whether a row shows less than so many of the notes.
    pub(super) fn is_missed_by(&self, row: &Sighting, upto: u64) -> bool {
        let is_older = |known: &LastOfDocument| {
            known.id != row.id
                && known.noted <= upto
                && row.document_turn.is_some_and(|row| row < known.turn)
        };
        // Each value of a block: one may be another's by now.
        self.values_of(row).any(|known| known.is_missed_by(row, upto))
            || self.blocks.are_missed_by(row, upto)
            || row.document.is_some_and(|name| self.documents.get(&name).is_some_and(is_older))
    }

    /// What is known of single values that a row has.
    fn values_of<'k>(&'k self, row: &'k Sighting) -> impl Iterator<Item = &'k LastOfValue> {
        let key = |value| (row.counter.clone(), value);
        let known = self.values.range(key(row.value)..=key(row.last));
        known.filter(move |((_, value), _)| row.has(*value)).map(|(_, known)| known)
    }

    /// What is known of all values.
    fn all(&self) -> impl Iterator<Item = &LastOfValue> {
        self.values.values().chain(self.blocks.all())
    }

    /// Whether anything was noted by then.
    pub(super) fn has_any(&self, upto: u64) -> bool {
        self.all().any(|known| known.since() <= upto)
            || self.documents.values().any(|known| known.noted <= upto)
    }

    /// Whether any does not wait for its caller any more.
    pub(super) fn has_changed(&self) -> bool {
        let is_changed =
            |known: &LastOfValue| known.is_at(Stage::Changed) || known.is_at(Stage::Ended);
        self.all().any(is_changed)
    }

    /// Those that do not wait for their callers any more.
    pub(super) fn changed(&self) -> Vec<Uuid> {
        self.at(Stage::Changed)
    }

    /// Those that have no row any more.
    pub(super) fn ended(&self) -> Vec<Uuid> {
        self.at(Stage::Ended)
    }

    fn at(&self, stage: Stage) -> Vec<Uuid> {
        self.all().filter(|known| known.is_at(stage)).map(|known| known.id).collect()
    }

    /// Drops what was noted by then, and nothing of which more was noted since.
    pub(super) fn let_go(&mut self, upto: u64) {
        self.values.retain(|_, known| known.last() > upto);
        self.blocks.let_go(upto);
        self.documents.retain(|_, known| known.noted > upto);
    }
}

/// Drops the half that was noted longest ago.
pub(super) fn let_half_go<K: Eq + Hash, V>(known: &mut HashMap<K, V>, noted: impl Fn(&V) -> u64) {
    let upto = middle(known.values().map(&noted));
    known.retain(|_, known| noted(known) > upto);
}

/// The middle one of these notes, of which there is at least one.
fn middle(noted: impl Iterator<Item = u64>) -> u64 {
    let mut all: Vec<u64> = noted.collect();
    let half = all.len() / 2;
    *all.select_nth_unstable(half).1
}

#[cfg(test)]
pub(super) mod tests;
