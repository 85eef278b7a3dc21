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
//! What is committed stays in memory for `journal.keep`: a ledger that went back is told again
//! (F9). It finds the counters by their names then, for their ids may be others' by now.
//!
//! Failure handling: an unreachable ledger is tried again for ever, the records waiting in memory
//! and in the outbox. A batch refused for its content is halved until the row is alone; that row
//! goes, raw, to `journal_rejected` (F13). Nothing is ever dropped.

mod in_use;
mod kept;
mod queue;

pub use in_use::CounterInUse;
pub use queue::{Handover, JournalQueue, Lag};

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::allocator::AllocatorSettings;
use crate::backoff::Backoff;
use crate::clock::SharedClock;
use crate::ledger::{Entry, Event, LedgerError, SharedLedger};
use crate::metrics::Metrics;
use crate::node::NodeId;
use crate::task::{Stop, Task};
use in_use::InUse;
use kept::Kept;
use queue::{Message, Waiting};

/// How long a record waits for others to be committed with: a transaction costs as much as some
/// hundred rows. Nobody waits who asked for the commit, nor a batch that is full.
const GATHER_PERIOD: Duration = Duration::from_millis(20);

/// Starts the loop. Asked to end, it first commits what waits; ask only after the lanes have ended.
#[must_use]
pub fn start(
    ledger: &SharedLedger,
    clock: &SharedClock,
    partitions: u32,
    settings: &AllocatorSettings,
    metrics: &Metrics,
) -> (JournalQueue, Task) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let progress = Arc::new((0..partitions).map(|_| watch::Sender::new(0)).collect::<Vec<_>>());
    let queue = JournalQueue {
        sender,
        permits: Arc::new(Semaphore::new(settings.journal_queue_max)),
        room_to_keep: Arc::new(Semaphore::new(settings.journal_queue_max)),
        lag: Arc::default(),
        progress: Arc::clone(&progress),
        in_use: InUse::default(),
        waiting: Arc::default(),
        rows_max: settings.journal_batch_rows_max,
    };
    let writer = Writer {
        ledger: Arc::clone(ledger),
        clock: Arc::clone(clock),
        receiver,
        progress,
        lag: Arc::clone(&queue.lag),
        in_use: queue.in_use.clone(),
        waiting: Arc::clone(&queue.waiting),
        aside: None,
        kept: Kept::new(settings.journal_keep, settings.journal_queue_max),
        rows_max: settings.journal_batch_rows_max,
        backoff: Backoff::new(settings.retry_delay_min, settings.retry_delay_max),
        metrics: metrics.clone(),
    };
    let task = Task::start("journal", |stop| writer.run(stop));
    (queue, task)
}

struct Writer {
    ledger: SharedLedger,
    clock: SharedClock,
    receiver: mpsc::UnboundedReceiver<Message>,
    /// Received behind a batch that it does not belong to.
    aside: Option<Message>,
    kept: Kept,
    lag: Arc<Mutex<Lag>>,
    in_use: InUse,
    waiting: Arc<Waiting>,
    progress: Arc<Vec<watch::Sender<u64>>>,
    rows_max: usize,
    backoff: Backoff,
    metrics: Metrics,
}

/// How records are written.
#[derive(Clone, Copy)]
enum Manner {
    /// Behind the answers.
    First,
    /// To a ledger that may have forgotten them.
    Again,
}

impl Writer {
    async fn run(mut self, mut stop: Stop) {
        while let Some(message) = self.next(&mut stop).await {
            match message {
                Message::HandOver(first) => {
                    self.waiting.remove(&first);
                    self.gather(&first, &mut stop).await;
                    self.commit(first).await;
                }
                Message::Keep(node, entries, _room) => {
                    self.in_use.note(&entries);
                    self.kept.push(node, entries.into_iter().map(with_text));
                }
                Message::TellAgain => self.tell_again().await,
            }
        }
    }

    /// Waits until others have joined a flight's records. A permit to end the wait may be left from
    /// the batch before: that wait is over too soon, and nothing else.
    async fn gather(&self, first: &Handover, stop: &mut Stop) {
        if first.is_urgent || self.waiting.is_due(first.entries.len(), self.rows_max) {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(GATHER_PERIOD) => {}
            () = self.waiting.urge.notified() => {}
            () = stop.requested() => {}
        }
    }

    /// Commits a flight, and with it those that wait behind it.
    async fn commit(&mut self, first: Handover) {
        let mut batch = self.collect(first);
        let records = batch.iter().map(|handover| handover.entries.len()).sum::<usize>();
        let started = Instant::now();
        for part in batch.chunk_by_mut(|one, next| one.node == next.node) {
            let node = part[0].node;
            let taken = part.iter_mut().flat_map(|handover| std::mem::take(&mut handover.entries));
            let entries: Vec<Entry> = taken.collect();
            self.in_use.note(&entries);
            self.write(node, &entries, Manner::First).await;
            let texts = part.iter_mut().flat_map(|handover| std::mem::take(&mut handover.texts));
            self.kept.push(node, entries.into_iter().zip(texts));
        }
        self.metrics.journal_batch_seconds.record(started.elapsed());
        self.metrics.journal_batch_records.record(records as f64);
        self.metrics.journaled.increment(records as u64);
        {
            let mut lag = self.lag.lock().expect("no holder of this lock panics");
            lag.records -= records;
            // What waits now arrived while this batch was written, at the earliest.
            lag.oldest = (lag.records > 0).then_some(started);
        }
        for handover in batch {
            self.progress[handover.partition as usize].send_replace(handover.flight);
        }
        self.waiting.rest();
    }

    /// Writes what is kept once more.
    async fn tell_again(&mut self) {
        let kept = self.kept.take();
        let count = kept.len();
        for part in kept.chunk_by(|one, next| one.0 == next.0) {
            let node = part[0].0;
            for part in part.chunks(self.rows_max) {
                let entries: Vec<Entry> = part.iter().map(|(_, entry)| entry.clone()).collect();
                self.write(node, &entries, Manner::Again).await;
                self.kept.push(node, entries.into_iter().map(with_text));
            }
        }
        tracing::warn!(count, "the ledger was told its newest records again");
    }

    /// The next message; `None` once the loop is asked to end and nothing waits.
    async fn next(&mut self, stop: &mut Stop) -> Option<Message> {
        if let Some(message) = self.aside.take() {
            return Some(message);
        }
        tokio::select! {
            biased;
            message = self.receiver.recv() => message,
            () = stop.requested() => self.receiver.try_recv().ok(),
        }
    }

    /// As many waiting flights as fit into one transaction.
    fn collect(&mut self, first: Handover) -> Vec<Handover> {
        let mut rows = first.entries.len();
        let mut batch = vec![first];
        while rows < self.rows_max {
            match self.receiver.try_recv() {
                Ok(Message::HandOver(next)) => {
                    self.waiting.remove(&next);
                    rows += next.entries.len();
                    batch.push(next);
                }
                Ok(other) => {
                    self.aside = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        batch
    }

    /// Writes a batch whatever it takes; halves what the ledger refuses.
    async fn write(&mut self, node: NodeId, entries: &[Entry], manner: Manner) {
        let mut parts = vec![entries];
        while let Some(part) = parts.pop() {
            if part.is_empty() {
                continue;
            }
            match self.append(node, part, manner).await {
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
    async fn append(
        &mut self,
        node: NodeId,
        entries: &[Entry],
        mut manner: Manner,
    ) -> Result<(), String> {
        loop {
            let appended = match manner {
                Manner::First => self.ledger.append(node, entries).await,
                Manner::Again => self.ledger.journal_again(node, entries).await,
            };
            match appended {
                Ok(appended) => {
                    self.backoff.reset();
                    if !appended.collisions.is_empty() {
                        self.report_duplicates(node, &appended.collisions).await;
                    }
                    return Ok(());
                }
                Err(LedgerError::Refused(reason)) => return Err(reason),
                // The heartbeat notices it too, and has the partitions held.
                Err(error @ LedgerError::WentBack(_)) => {
                    tracing::error!(%node, %error, "journaling what it may have forgotten");
                    manner = Manner::Again;
                }
                Err(error) => {
                    tracing::warn!(%error, rows = entries.len(), "journal waits for the ledger");
                    self.backoff.wait().await;
                }
            }
        }
    }

    /// Raises the alarm for numbers that came twice; on record in the ledger too (R5.2).
    async fn report_duplicates(&self, node: NodeId, allocations: &[uuid::Uuid]) {
        self.metrics.duplicates.increment(allocations.len() as u64);
        tracing::error!(%node, ?allocations, "DUPLICATE numbers were journaled");
        let event = Event {
            at_us: self.clock.now_us(),
            kind: "conflict".into(),
            partition: None,
            epoch: None,
            node_id: Some(node),
            detail: serde_json::json!({
                "cause": "numbers came twice", "allocations": allocations,
            }),
        };
        // The collisions themselves were committed with the batch: the event only points to them.
        if let Err(error) = self.ledger.record_event(&event).await {
            tracing::warn!(%error, "conflict not recorded as an event");
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

/// An entry beside its record as it travels through Redis.
fn with_text(entry: Entry) -> (Entry, Arc<str>) {
    let text = entry.record.to_flat_json().into();
    (entry, text)
}
