//! Where partition workers put what they hand out, and what others learn of it.
//!
//! Space is reserved before a flight, so that what was taken always finds some; once it is handed
//! over, it counts as handed out (F11). Writes nothing: that is the loop's.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::kept::{Kept, with_text};
use super::outstanding::{Lag, Outstanding, Place};
use crate::ledger::Entry;
use crate::node::NodeId;

/// Sees the records that are journaled here or kept, whatever their path; must not wait.
pub type Spectator = Box<dyn Fn(&[Entry]) + Send + Sync>;

/// Where partition workers put what they hand out. Cheap to clone.
#[derive(Clone)]
pub struct JournalQueue {
    pub(super) sender: mpsc::UnboundedSender<Message>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) outstanding: Arc<Outstanding>,
    pub(super) kept: Arc<Kept>,
    pub(super) spectator: Arc<Spectator>,
    pub(super) progress: Arc<Vec<watch::Sender<u64>>>,
    pub(super) waiting: Arc<Waiting>,
    pub(super) rows_max: usize,
}

impl fmt::Debug for JournalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalQueue").field("lag", &self.lag()).finish_non_exhaustive()
    }
}

/// What is in the queue and in no transaction, and whether a caller waits for it.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Records.
    pub(super) records: AtomicUsize,
    /// Flights of which an answer waits for the commit.
    pub(super) urgent: AtomicUsize,
    /// Whether a caller waits until the queue is empty.
    pub(super) hurried: AtomicBool,
    /// Ends the gathering.
    pub(super) urge: Notify,
}

impl Waiting {
    /// Counts a flight that joins the queue.
    fn add(&self, handover: &Handover) {
        self.records.fetch_add(handover.entries.len(), Ordering::AcqRel);
        self.urgent.fetch_add(usize::from(handover.is_urgent), Ordering::AcqRel);
    }

    /// Counts one that leaves it.
    pub(super) fn remove(&self, handover: &Handover) {
        self.records.fetch_sub(handover.entries.len(), Ordering::AcqRel);
        self.urgent.fetch_sub(usize::from(handover.is_urgent), Ordering::AcqRel);
    }

    /// Whether a batch that begins with so many records should be written now.
    pub(super) fn is_due(&self, records: usize, rows_max: usize) -> bool {
        records + self.records.load(Ordering::Acquire) >= rows_max
            || self.urgent.load(Ordering::Acquire) > 0
            || self.hurried.load(Ordering::Acquire)
    }

    /// Ends the hurry once nothing waits.
    pub(super) fn rest(&self) {
        if self.records.load(Ordering::Acquire) == 0 {
            self.hurried.store(false, Ordering::Release);
        }
    }
}

/// The outcome of reporting to the ledger again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// When the newest record was committed, at the latest, that could not be reported any more.
    pub forgot: Option<Instant>,
    /// Records that it refused, and took raw.
    pub refused: u64,
    /// Records that wait for locked counters.
    pub waiting: usize,
    /// Partitions in which the counters of records live that the ledger may not have had.
    pub partitions: BTreeSet<u32>,
}

/// What the loop is asked.
#[derive(Debug)]
pub(super) enum Message {
    HandOver(Queued),
    /// Replays what is kept; the result goes to the sender.
    Replay(oneshot::Sender<Replayed>),
}

/// What one flight handed out, on its way.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) handover: Handover,
    pub(super) place: Place,
    /// When it was handed over.
    pub(super) since: Instant,
}

/// Everything that one flight handed out.
#[derive(Debug)]
pub struct Handover {
    /// The partition.
    pub partition: u32,
    /// The flight.
    pub flight: u64,
    /// The identity under which it was sent.
    pub node: NodeId,
    /// The records.
    pub entries: Vec<Entry>,
    /// Each of them as it travelled through Redis.
    pub texts: Vec<Arc<str>>,
    /// Their space in the queue; given back once they are committed.
    pub space: OwnedSemaphorePermit,
    /// Whether an answer waits for the commit.
    pub is_urgent: bool,
}

impl JournalQueue {
    /// Reserves space for up to `wanted` records; `None` when there is none at all.
    #[must_use]
    pub fn reserve(&self, wanted: usize) -> Option<OwnedSemaphorePermit> {
        up_to(wanted, &self.permits)
    }

    /// Takes over a flight's records: from here on they are handed out (F11).
    ///
    /// # Panics
    /// If the journal loop is gone: a number must not leave a process that cannot journal it.
    pub fn hand_over(&self, mut handover: Handover) {
        assert_eq!(handover.entries.len(), handover.texts.len(), "a text for each entry");
        // Requests of the flight that took nothing give their space back immediately.
        let spare = handover.space.num_permits().saturating_sub(handover.entries.len());
        drop(handover.space.split(spare));
        // Before it can be received, or it would leave before it came.
        let (place, since) = self.outstanding.add(handover.entries.len());
        self.waiting.add(&handover);
        let message = Message::HandOver(Queued { handover, place, since });
        self.sender.send(message).expect("the journal loop outlives the workers");
        if self.waiting.is_due(0, self.rows_max) {
            self.waiting.urge.notify_one();
        }
    }

    /// Has what waits written without waiting for more: an epoch or the process is to end.
    pub fn hurry(&self) {
        self.waiting.hurried.store(true, Ordering::Release);
        self.waiting.urge.notify_one();
    }

    /// Keeps records that the database path has committed, as the journal keeps its own: from here
    /// on they are part of each replay. Records that are to be written do not wait for them (F42).
    pub fn keep(&self, node: NodeId, entries: Vec<Entry>) {
        if entries.is_empty() {
            return;
        }
        (self.spectator)(&entries);
        self.kept.push(node, entries.into_iter().map(with_text));
    }

    /// Keeps what the ledger answered a retry with, like what was taken: the process that took it
    /// may be gone once the ledger has forgotten it (F25). Fields that its record does not show
    /// count as not kept.
    pub fn keep_found<'a>(&self, node: NodeId, found: impl IntoIterator<Item = &'a Entry>) {
        let tells = |entry: &&Entry| {
            let replayed =
                Entry::of_flight(entry.at, entry.taken.clone(), &entry.record.to_flat_json());
            replayed.is_ok_and(|replayed| replayed.number == entry.number)
        };
        let (kept, others): (Vec<&Entry>, Vec<_>) = found.into_iter().partition(tells);
        if !others.is_empty() {
            self.kept.note_unkept();
        }
        self.keep(node, kept.into_iter().cloned().collect());
    }

    /// Writes all records that are kept by now again, after those that wait already: the ledger
    /// went back. The receiver gets the result; requests that arrive meanwhile get the same one.
    pub fn replay_kept(&self) -> oneshot::Receiver<Replayed> {
        let (teller, listener) = oneshot::channel();
        let _ = self.sender.send(Message::Replay(teller));
        self.waiting.urge.notify_one();
        listener
    }

    /// What waits for the ledger.
    #[must_use]
    pub fn lag(&self) -> Lag {
        self.outstanding.lag()
    }

    /// For how many records there is space.
    #[must_use]
    pub fn space(&self) -> usize {
        self.permits.available_permits()
    }

    /// Whether a record finds space.
    #[must_use]
    pub fn has_space(&self) -> bool {
        self.space() > 0
    }

    /// The last flight of a partition before which everything is committed.
    #[must_use]
    pub fn progress(&self, partition: u32) -> watch::Receiver<u64> {
        self.progress[partition as usize].subscribe()
    }
}

/// As many of the permits that are wanted as there are; `None` when there is none at all.
fn up_to(wanted: usize, permits: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    loop {
        let granted = wanted.min(permits.available_permits());
        let space = u32::try_from(granted).ok().filter(|granted| *granted > 0)?;
        // Another worker may have been faster: then there is less, or none.
        if let Ok(space) = Arc::clone(permits).try_acquire_many_owned(space) {
            return Some(space);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::kept::tests::{entry, epochs};
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn committed_records_are_kept_up_to_a_bound_though_the_loop_stands_still() {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let spectator: Spectator = Box::new(|_| {});
        let queue = JournalQueue {
            sender,
            permits: Arc::new(Semaphore::new(3)),
            outstanding: Arc::default(),
            kept: Arc::new(Kept::new(Duration::from_secs(60), 3)),
            spectator: Arc::new(spectator),
            progress: Arc::default(),
            waiting: Arc::default(),
            rows_max: 1,
        };
        let keep = |range: std::ops::Range<u64>| {
            queue.keep(NodeId::random(), range.map(|epoch| entry(epoch).0).collect());
        };
        keep(0..2);
        assert_eq!(queue.kept.forgot(), None);
        keep(2..5);
        assert!(queue.kept.forgot().is_some(), "what is kept no more is told");
        assert!(queue.has_space(), "what is handed out has space of its own");
        assert_eq!(epochs(&queue.kept), [2, 3, 4], "at once, and no more than the bound");
        assert!(receiver.try_recv().is_err(), "nothing stands in the way of what is written");
        assert_eq!(queue.lag(), Lag::default());

        // A number that its record does not give was answered otherwise than it could be reported
        // again.
        let (found, forgot) = (entry(11).0, queue.kept.forgot());
        queue.keep_found(NodeId::random(), [&found]);
        assert_eq!((epochs(&queue.kept), queue.kept.forgot()), (vec![11], forgot));
        tokio::time::advance(Duration::from_secs(1)).await;
        let strange = Entry { number: "another".into(), ..found };
        queue.keep_found(NodeId::random(), [&strange]);
        assert!(epochs(&queue.kept).is_empty() && queue.kept.forgot() > forgot);
    }
}
