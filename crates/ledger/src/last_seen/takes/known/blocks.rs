//! Blocks that this process knows of (L12), each as one run of values: how far it came, and that
//! none of its values was another's before it. Reads no row, and decides nothing.

use std::collections::{BTreeMap, btree_map};

use super::{KNOWN_MAX, LastOfValue, NamedCounter, Sighting, middle};

/// A block, by its counter and its lowest value.
#[derive(Debug)]
struct KnownBlock {
    last: i64,
    step: i64,
    holder: LastOfValue,
}

impl KnownBlock {
    /// Whether it has a value of a row that lies within it.
    fn meets(&self, first: i64, row: &Sighting) -> bool {
        row.is_block() || (row.value - first) % self.step == 0
    }
}

/// See the module. Of one counter none overlaps another: each has new values alone.
#[derive(Debug, Default)]
pub(super) struct KnownBlocks(BTreeMap<(NamedCounter, i64), KnownBlock>);

impl KnownBlocks {
    /// Notes what was seen of a block. False where it contradicts what is known: another block has
    /// one of its values.
    #[must_use]
    pub(super) fn note(&mut self, seen: &Sighting, noted: u64) -> bool {
        if self.met_by(seen).any(|known| known.holder.id != seen.id) {
            return false;
        }
        match self.0.entry((seen.counter.clone(), seen.value)) {
            btree_map::Entry::Vacant(free) => {
                let (last, step) = (seen.last, seen.step);
                free.insert(KnownBlock { last, step, holder: LastOfValue::new(seen, noted) });
            }
            btree_map::Entry::Occupied(mut known) => known.get_mut().holder.add(seen, noted),
        }
        if self.0.len() > KNOWN_MAX {
            let upto = middle(self.all().map(LastOfValue::last));
            self.let_go(upto);
        }
        true
    }

    /// Whether no one history of the ledger has both a known block and a single number of its
    /// value: that is taken once it came back, and is later.
    pub(super) fn contradict(&self, seen: &Sighting) -> bool {
        let is_before = |known: &KnownBlock| {
            seen.turn.zip(known.holder.turn).is_some_and(|(seen, block)| seen <= block)
        };
        self.met_by(seen).any(is_before)
    }

    /// Whether a row shows less than so many of the notes.
    pub(super) fn are_missed_by(&self, row: &Sighting, upto: u64) -> bool {
        self.met_by(row).any(|known| known.holder.is_missed_by(row, upto))
    }

    /// Those that have a value of a row.
    fn met_by<'k>(&'k self, row: &'k Sighting) -> impl Iterator<Item = &'k KnownBlock> {
        let upto = (row.counter.clone(), row.last);
        let below = self.0.range(..=upto).rev();
        let reaching = below.take_while(move |((counter, _), known)| {
            *counter == row.counter && known.last >= row.value
        });
        reaching.filter(move |((_, first), known)| known.meets(*first, row)).map(|(_, known)| known)
    }

    /// What is known of each.
    pub(super) fn all(&self) -> impl Iterator<Item = &LastOfValue> {
        self.0.values().map(|known| &known.holder)
    }

    /// Drops what was noted by then, and nothing of which more was noted since.
    pub(super) fn let_go(&mut self, upto: u64) {
        self.0.retain(|_, known| known.holder.last() > upto);
    }
}
