//! Where lanes put what they hand out, and what others learn of it.
//!
//! Room is reserved before a flight, so that what was taken always finds some; once it is handed
//! over, it counts as handed out (F11). Writes nothing: that is the loop's.

use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::Instant;

use super::in_use::{CounterInUse, InUse};
use crate::ledger::Entry;
use crate::node::NodeId;

/// Where lanes put what they hand out. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JournalQueue {
    pub(super) sender: mpsc::UnboundedSender<Message>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) lag: Arc<Mutex<Lag>>,
    pub(super) progress: Arc<Vec<watch::Sender<u64>>>,
    pub(super) in_use: InUse,
    /// Ends the gathering.
    pub(super) urge: Arc<Notify>,
    pub(super) rows_max: usize,
}

/// Records that were handed out and are not committed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// How many.
    pub records: usize,
    /// Since when the oldest of them waits.
    pub oldest: Option<Instant>,
}

/// What the loop is told.
#[derive(Debug)]
pub(super) enum Message {
    HandOver(Handover),
    Keep(NodeId, Vec<Entry>),
    TellAgain,
}

/// Everything that one flight handed out.
#[derive(Debug)]
pub struct Handover {
    /// The partition.
    pub partition: u32,
    /// The flight.
    pub flight: u64,
    /// The identity under which it was flown.
    pub node: NodeId,
    /// The records.
    pub entries: Vec<Entry>,
    /// Their room in the queue; given back once they are committed.
    pub room: OwnedSemaphorePermit,
    /// Whether an answer waits for the commit.
    pub is_urgent: bool,
}

impl JournalQueue {
    /// Reserves room for up to `wanted` records; `None` when there is none at all.
    #[must_use]
    pub fn reserve(&self, wanted: usize) -> Option<OwnedSemaphorePermit> {
        loop {
            let granted = wanted.min(self.permits.available_permits());
            let room = u32::try_from(granted).ok().filter(|granted| *granted > 0)?;
            // Another lane may have been faster: then there is less, or none.
            if let Ok(room) = Arc::clone(&self.permits).try_acquire_many_owned(room) {
                return Some(room);
            }
        }
    }

    /// Takes over a flight's records: from here on they are handed out (F11).
    ///
    /// # Panics
    /// If the journal loop is gone: a number must not leave a process that cannot journal it.
    pub fn hand_over(&self, mut handover: Handover) {
        // Requests of the flight that took nothing give their room back at once.
        let spare = handover.room.num_permits().saturating_sub(handover.entries.len());
        drop(handover.room.split(spare));
        let is_full = {
            let mut lag = self.lag.lock().expect("no holder of this lock panics");
            lag.records += handover.entries.len();
            lag.oldest.get_or_insert_with(Instant::now);
            lag.records >= self.rows_max
        };
        let is_urgent = handover.is_urgent || is_full;
        let message = Message::HandOver(handover);
        self.sender.send(message).expect("the journal loop outlives the lanes");
        if is_urgent {
            self.urge.notify_one();
        }
    }

    /// Keeps records that the database path has committed, as the journal's own are kept.
    pub fn keep(&self, node: NodeId, entries: Vec<Entry>) {
        // They are committed: a loop that is gone loses nothing.
        let _ = self.sender.send(Message::Keep(node, entries));
    }

    /// Has everything that is kept written once more: the ledger went back.
    pub fn tell_again(&self) {
        let _ = self.sender.send(Message::TellAgain);
    }

    /// What waits for the ledger.
    #[must_use]
    pub fn lag(&self) -> Lag {
        *self.lag.lock().expect("no holder of this lock panics")
    }

    /// Whether a record finds room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.permits.available_permits() > 0
    }

    /// Counters whose records passed here within a day.
    #[must_use]
    pub fn counters_in_use(&self) -> Vec<CounterInUse> {
        self.in_use.list()
    }

    /// The last flight of a partition before which everything is committed.
    #[must_use]
    pub fn progress(&self, partition: u32) -> watch::Receiver<u64> {
        self.progress[partition as usize].subscribe()
    }
}
