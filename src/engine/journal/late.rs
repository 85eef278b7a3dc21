//! Records whose counters are locked elsewhere: they wait outside the journal's batches, so that
//! those of all other counters are committed meanwhile (F31).
//!
//! Bounded: each keeps its space in the journal's queue until it is committed. As long as one
//! waits, its partition's progress stays before its flight, whatever was committed after it (F16).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::outstanding::Place;
use crate::ledger::Entry;
use crate::node::NodeId;

/// How often it is checked whether a counter is free again.
const POLL_PERIOD: Duration = Duration::from_millis(500);

/// What accompanies an entry.
#[derive(Debug)]
pub(super) struct Tag {
    /// Its record as it travels through Redis.
    pub(super) text: Arc<str>,
    /// The flight that handed it out.
    pub(super) flight: u64,
    /// Its place among what is handed out; `None` where it is a replay.
    pub(super) place: Option<Place>,
}

/// Records of one node, written together.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) entries: Vec<Entry>,
    /// One for each entry.
    pub(super) tags: Vec<Tag>,
}

impl Part {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds records.
    pub(super) fn extend(&mut self, more: impl IntoIterator<Item = (Entry, Tag)>) {
        for (entry, tag) in more {
            self.entries.push(entry);
            self.tags.push(tag);
        }
    }

    /// The two halves.
    pub(super) fn halves(mut self) -> [Part; 2] {
        let middle = self.len() / 2;
        let right =
            Part { entries: self.entries.split_off(middle), tags: self.tags.split_off(middle) };
        [self, right]
    }

    /// Parts those that need none of these counters from those that do.
    pub(super) fn without(self, held: &HashSet<i64>) -> [Part; 2] {
        if held.is_empty() {
            return [self, Part::default()];
        }
        let needs = |(entry, _): &(Entry, Tag)| needs(entry, held);
        let (waiting, free): (Vec<_>, Vec<_>) = self.into_pairs().partition(needs);
        [free, waiting].map(|pairs| {
            let mut part = Part::default();
            part.extend(pairs);
            part
        })
    }

    /// Each entry with its tag.
    pub(super) fn into_pairs(self) -> impl Iterator<Item = (Entry, Tag)> {
        self.entries.into_iter().zip(self.tags)
    }
}

fn needs(entry: &Entry, counters: &HashSet<i64>) -> bool {
    entry.taken.iter().any(|taken| counters.contains(&taken.counter_id))
}

/// The records that wait.
pub(super) struct Late {
    rows: Vec<(NodeId, Entry, Tag)>,
    /// Counters that were held at the last check.
    held: HashSet<i64>,
    /// A place in the journal's queue for each.
    space: Option<OwnedSemaphorePermit>,
    looked_at: Instant,
    /// Per partition the last flight that the journal has seen to.
    flights: Vec<u64>,
}

impl Late {
    /// None yet, in so many partitions.
    pub(super) fn new(partitions: u32) -> Self {
        Late {
            rows: Vec::new(),
            held: HashSet::new(),
            space: None,
            looked_at: Instant::now(),
            flights: vec![0; partitions as usize],
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// When to check whether they may be written; `None` while none waits.
    pub(super) fn due_at(&self) -> Option<Instant> {
        (!self.rows.is_empty()).then(|| self.looked_at + POLL_PERIOD)
    }

    /// Counters for which records wait, as far as is known.
    pub(super) fn held(&self) -> &HashSet<i64> {
        &self.held
    }

    /// Notes that counters are locked elsewhere.
    pub(super) fn note_held(&mut self, counters: impl IntoIterator<Item = i64>) {
        self.held.extend(counters);
    }

    /// Has records wait.
    pub(super) fn wait(&mut self, node: NodeId, part: Part) {
        if self.rows.is_empty() {
            self.looked_at = Instant::now();
        }
        self.rows.extend(part.into_pairs().map(|(entry, tag)| (node, entry, tag)));
    }

    /// Keeps space for some that wait.
    pub(super) fn keep_space(&mut self, space: OwnedSemaphorePermit) {
        match &mut self.space {
            Some(kept) => kept.merge(space),
            none => *none = Some(space),
        }
    }

    /// Gives the space of some back that are committed.
    pub(super) fn give_room(&mut self, records: usize) {
        drop(self.space.as_mut().and_then(|space| space.split(records)));
    }

    /// Takes those that need none of the counters that are locked now.
    pub(super) fn take_free(&mut self, held: Vec<i64>) -> Vec<(NodeId, Part)> {
        self.looked_at = Instant::now();
        self.held = held.into_iter().collect();
        let mut free: Vec<(NodeId, Part)> = Vec::new();
        let waiting = std::mem::take(&mut self.rows);
        for (node, entry, tag) in waiting {
            if needs(&entry, &self.held) {
                self.rows.push((node, entry, tag));
                continue;
            }
            if free.last().is_none_or(|(last, _)| *last != node) {
                free.push((node, Part::default()));
            }
            free.last_mut().expect("pushed above").1.extend([(entry, tag)]);
        }
        free
    }

    /// Notes that everything up to a flight of a partition is committed, or waits here.
    pub(super) fn seen_to(&mut self, partition: u32, flight: u64) {
        self.flights[partition as usize] = flight;
    }

    /// The last flight of a partition before which everything is committed.
    pub(super) fn progress(&self, partition: u32) -> u64 {
        let here = self.rows.iter().filter(|(_, entry, _)| entry.at.partition == partition);
        let first = here.map(|(_, _, tag)| tag.flight).min();
        first.map_or(self.flights[partition as usize], |flight| flight.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::super::kept::tests::entry;
    use super::*;

    /// A record of a counter in partition 0, handed out by a flight.
    fn record(counter_id: i64, flight: u64) -> (Entry, Tag) {
        let (mut entry, text) = entry(flight);
        entry.taken[0].counter_id = counter_id;
        (entry, Tag { text, flight, place: None })
    }

    fn part(records: impl IntoIterator<Item = (Entry, Tag)>) -> Part {
        let mut part = Part::default();
        part.extend(records);
        part
    }

    fn flights(part: &Part) -> Vec<u64> {
        part.tags.iter().map(|tag| tag.flight).collect()
    }

    #[tokio::test]
    async fn progress_stands_before_the_first_record_that_waits_and_then_where_it_would_be() {
        let mut late = Late::new(2);
        let all = part([record(1, 4), record(2, 5), record(1, 6), record(3, 7)]);
        let [free, waiting] = all.without(&HashSet::from([1]));
        assert_eq!((flights(&free), flights(&waiting)), (vec![5, 7], vec![4, 6]));
        let node = NodeId::random();
        late.note_held([1]);
        late.wait(node, waiting);
        late.seen_to(0, 7);
        late.seen_to(1, 8);
        assert_eq!((late.progress(0), late.progress(1)), (3, 8));
        assert!(late.take_free(vec![1]).is_empty(), "it is held still");
        assert_eq!(late.progress(0), 3);
        let free = late.take_free(Vec::new());
        assert_eq!(free.iter().map(|(_, part)| flights(part)).collect::<Vec<_>>(), [[4, 6]]);
        assert_eq!((late.len(), late.progress(0), late.due_at()), (0, 7, None));
    }

    #[tokio::test]
    async fn who_waits_keeps_its_room_in_the_queue() {
        let space = Arc::new(Semaphore::new(3));
        let mut late = Late::new(1);
        for _ in 0..2 {
            late.keep_space(Arc::clone(&space).try_acquire_owned().unwrap());
        }
        assert_eq!(space.available_permits(), 1);
        late.give_room(1);
        assert_eq!(space.available_permits(), 2);
        late.give_room(1);
        assert_eq!(space.available_permits(), 3);
    }
}
