//! The journal loop: writes what was handed out to the ledger, in batches, behind the answers.
//!
//! ```text
//!  lane ──reserve──▶ permits ──fly──▶ hand over ──▶ queue ──▶ batch ──commit──▶ progress ──▶ trim
//!                                        │                      │
//!                              now it is handed out      refused: halve, then journal_rejected
//! ```
//!
//! Room is reserved *before* a flight, so the queue never refuses what was taken; a full queue
//! makes the lane refuse new requests (`outbox-full`). Batches commit in order, so that `progress`
//! of a partition names a flight before which everything is committed (F16).
//!
//! Failure handling: an unreachable ledger is tried again for ever, the records waiting in memory
//! and in the outbox. A batch refused for its content is halved until the row is alone; that row
//! goes, raw, to `journal_rejected` (F13). Nothing is ever dropped.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::allocator::AllocatorSettings;
use crate::backoff::Backoff;
use crate::ledger::{Entry, LedgerError, SharedLedger};
use crate::metrics::Metrics;
use crate::node::NodeId;
use crate::task::{Stop, Task};

/// Where lanes put what they hand out. Cheap to clone.
#[derive(Clone, Debug)]
pub struct JournalQueue {
    sender: mpsc::UnboundedSender<Handover>,
    permits: Arc<Semaphore>,
    progress: Arc<Vec<watch::Sender<u64>>>,
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
        self.sender.send(handover).expect("the journal loop outlives the lanes");
    }

    /// The last flight of a partition before which everything is committed.
    #[must_use]
    pub fn progress(&self, partition: u32) -> watch::Receiver<u64> {
        self.progress[partition as usize].subscribe()
    }
}

/// Starts the loop. Asked to end, it first commits what waits; ask only after the lanes have ended.
#[must_use]
pub fn start(
    ledger: SharedLedger,
    partitions: u32,
    settings: &AllocatorSettings,
    metrics: Metrics,
) -> (JournalQueue, Task) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let progress = Arc::new((0..partitions).map(|_| watch::Sender::new(0)).collect::<Vec<_>>());
    let queue = JournalQueue {
        sender,
        permits: Arc::new(Semaphore::new(settings.journal_queue_max)),
        progress: Arc::clone(&progress),
    };
    let writer = Writer {
        ledger,
        receiver,
        progress,
        rows_max: settings.journal_batch_rows_max,
        backoff: Backoff::new(settings.retry_delay_min, settings.retry_delay_max),
        metrics,
    };
    let task = Task::start("journal", |stop| writer.run(stop));
    (queue, task)
}

struct Writer {
    ledger: SharedLedger,
    receiver: mpsc::UnboundedReceiver<Handover>,
    progress: Arc<Vec<watch::Sender<u64>>>,
    rows_max: usize,
    backoff: Backoff,
    metrics: Metrics,
}

impl Writer {
    async fn run(mut self, mut stop: Stop) {
        while let Some(first) = self.next(&mut stop).await {
            let batch = self.collect(first);
            self.metrics.journal_lag_records.set(self.waiting(&batch));
            let started = tokio::time::Instant::now();
            let mut rest = batch.as_slice();
            while let Some(node) = rest.first().map(|handover| handover.node) {
                let length = rest.iter().take_while(|handover| handover.node == node).count();
                let entries: Vec<Entry> =
                    rest[..length].iter().flat_map(|handover| handover.entries.clone()).collect();
                self.write(node, &entries).await;
                rest = &rest[length..];
            }
            self.metrics.journal_batch_seconds.record(started.elapsed());
            for handover in batch {
                self.progress[handover.partition as usize].send_replace(handover.flight);
            }
            self.metrics.journal_lag_records.set(self.receiver.len() as f64);
        }
    }

    /// The next flight; `None` once the loop is asked to end and nothing waits.
    async fn next(&mut self, stop: &mut Stop) -> Option<Handover> {
        tokio::select! {
            biased;
            handover = self.receiver.recv() => handover,
            () = stop.requested() => self.receiver.try_recv().ok(),
        }
    }

    /// As many waiting flights as fit into one transaction.
    fn collect(&mut self, first: Handover) -> Vec<Handover> {
        let mut rows = first.entries.len();
        let mut batch = vec![first];
        while rows < self.rows_max {
            let Ok(next) = self.receiver.try_recv() else { break };
            rows += next.entries.len();
            batch.push(next);
        }
        batch
    }

    fn waiting(&self, batch: &[Handover]) -> f64 {
        (batch.iter().map(|handover| handover.entries.len()).sum::<usize>() + self.receiver.len())
            as f64
    }

    /// Writes a batch whatever it takes; halves what the ledger refuses.
    async fn write(&mut self, node: NodeId, entries: &[Entry]) {
        let mut parts = vec![entries];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match self.append(node, part).await {
                Ok(()) => {}
                Err(reason) if part.len() == 1 => self.reject(&part[0], &reason).await,
                Err(_) => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.push(right);
                    parts.push(left);
                }
            }
        }
    }

    /// Appends, again and again while the ledger cannot be reached; `Err` only when it refuses.
    async fn append(&mut self, node: NodeId, entries: &[Entry]) -> Result<(), String> {
        loop {
            match self.ledger.append(node, entries).await {
                Ok(appended) => {
                    self.backoff.reset();
                    if !appended.collisions.is_empty() {
                        self.metrics.duplicates.increment(appended.collisions.len() as u64);
                        let allocations = &appended.collisions;
                        tracing::error!(%node, ?allocations, "DUPLICATE numbers were journaled");
                    }
                    return Ok(());
                }
                Err(LedgerError::Refused(reason)) => return Err(reason),
                Err(error) => {
                    tracing::warn!(%error, rows = entries.len(), "journal waits for the ledger");
                    self.backoff.wait().await;
                }
            }
        }
    }

    /// Puts one refused entry aside, raw, and raises the alarm (F13).
    async fn reject(&mut self, entry: &Entry, reason: &str) {
        let number = &entry.number;
        tracing::error!(%number, reason, "record refused; it goes to journal_rejected");
        self.metrics.rejected.increment(1);
        while let Err(error) = self.ledger.reject(entry, reason).await {
            tracing::error!(%error, %number, "cannot put a refused record aside; trying again");
            self.backoff.wait().await;
        }
        self.backoff.reset();
    }
}
