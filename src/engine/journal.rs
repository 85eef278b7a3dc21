//! The journal loop: writes what was handed out to the ledger, in batches, after the answers.
//!
//! ```text
//!  worker ──reserve─▶ permits ──send─▶ hand over ──▶ queue ──▶ batch ──commit─▶ progress ──▶ trim
//!                                       │                       │
//!                             now it is handed out       ├─ unfit: halve, then journal_rejected
//!                                                        └─ counter locked: waits until it is free
//!  database path ──committed─▶ kept ◀──committed── batch      (what is kept waits for no batch)
//! ```
//!
//! Space is reserved *before* a flight, so the queue never refuses what was taken; a full queue
//! makes the worker refuse new requests (`outbox-full`). Batches commit in order, so that
//! `progress` of a partition names a flight before which everything is committed (F16). A batch is
//! all that waits, up to its bound. `outstanding` knows at any moment what is not committed, and
//! since when the oldest of it waits (F42).
//!
//! What is committed stays in memory for a minute: a ledger that went back gets it again
//! (F9). It then finds the counters by their names, for their ids may belong to others by now. The
//! worker that took the records of the database path keeps them, without the queue.
//!
//! Failure handling: a ledger that is away or fails is tried again for ever, and the records wait
//! in memory and in the outbox. A batch refused for its content is halved until the row is alone;
//! that row goes, raw, to `journal_rejected`, once the ledger has taken another one (F13, F45).
//! Records of a counter that is locked elsewhere wait, and the others are committed (F31). Nothing
//! is ever dropped.

mod kept;
mod late;
mod outstanding;
mod queue;
mod writing;

pub use outstanding::Lag;
pub use queue::{Handover, JournalQueue, Replayed, Spectator};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::clock::SharedClock;
use crate::ledger::{Entry, RECORDS_KEPT, SharedLedger};
use crate::metrics::Metrics;
use crate::node::NodeId;
use crate::task::{Stop, Task, until};
use kept::{Kept, with_text};
use late::{Late, Part, Tag};
use outstanding::Outstanding;
use queue::{Message, Queued, Waiting};
use writing::Manner;

/// How long a record waits, from its handing over, for others to be committed with: a transaction
/// costs as much as some hundred rows. A batch that is full, or that a caller waits for, is
/// committed immediately, and so is one whose first record has waited so long behind another batch.
const GATHER_PERIOD: Duration = Duration::from_millis(20);

/// How long a record stays in memory once it is committed.
const KEEP: Duration = RECORDS_KEPT;

/// Rows in one transaction: with fewer the ledger takes less, with more each number waits longer
/// for its batch.
const BATCH_ROWS_MAX: usize = 2_000;

/// Bounds of the journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalSettings {
    /// `journal.queue_max`: records that may wait for the journal.
    pub queue_max: usize,
    /// How long a record stays in memory once it is committed (F9).
    pub keep: Duration,
    /// Rows in one transaction.
    pub batch_rows_max: usize,
}

impl JournalSettings {
    /// Those of a queue of this length: no batch is longer than that.
    #[must_use]
    pub fn of(queue_max: usize) -> Self {
        JournalSettings { queue_max, keep: KEEP, batch_rows_max: BATCH_ROWS_MAX.min(queue_max) }
    }
}

impl Default for JournalSettings {
    fn default() -> Self {
        JournalSettings::of(100_000)
    }
}

/// Starts the loop. Asked to end, it first commits what waits; ask only after the workers have
/// ended. `backoff` is what it waits between two tries at a ledger that does not answer.
#[must_use]
pub fn start(
    ledger: &SharedLedger,
    clock: &SharedClock,
    partitions: u32,
    settings: JournalSettings,
    backoff: Backoff,
    metrics: &Metrics,
    spectator: Spectator,
) -> (JournalQueue, Task) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let progress = Arc::new((0..partitions).map(|_| watch::Sender::new(0)).collect::<Vec<_>>());
    let queue = JournalQueue {
        sender,
        permits: Arc::new(Semaphore::new(settings.queue_max)),
        outstanding: Arc::default(),
        kept: Arc::new(Kept::new(settings.keep, settings.queue_max)),
        spectator: Arc::new(spectator),
        progress: Arc::clone(&progress),
        waiting: Arc::default(),
        rows_max: settings.batch_rows_max,
    };
    let writer = Writer {
        ledger: Arc::clone(ledger),
        clock: Arc::clone(clock),
        receiver,
        progress,
        outstanding: Arc::clone(&queue.outstanding),
        spectator: Arc::clone(&queue.spectator),
        waiting: Arc::clone(&queue.waiting),
        asked: Vec::new(),
        late: Late::new(partitions),
        kept: Arc::clone(&queue.kept),
        rows_max: settings.batch_rows_max,
        backoff,
        metrics: metrics.clone(),
        refused: 0,
        rewritten: BTreeSet::new(),
    };
    let task = Task::start("journal", |stop| writer.run(stop));
    (queue, task)
}

struct Writer {
    ledger: SharedLedger,
    clock: SharedClock,
    receiver: mpsc::UnboundedReceiver<Message>,
    /// The requests that wait until what is kept is replayed.
    asked: Vec<oneshot::Sender<Replayed>>,
    late: Late,
    kept: Arc<Kept>,
    outstanding: Arc<Outstanding>,
    spectator: Arc<Spectator>,
    waiting: Arc<Waiting>,
    progress: Arc<Vec<watch::Sender<u64>>>,
    rows_max: usize,
    backoff: Backoff,
    metrics: Metrics,
    /// Records that the ledger refused and took raw, in the life of the process.
    refused: u64,
    /// Partitions with counters of records that were written again and that the ledger may not have
    /// had, since the last report.
    rewritten: BTreeSet<u32>,
}

/// What the loop does next.
enum Next {
    Write(Queued),
    /// Replay what is kept.
    Tell,
    /// Check whether counters are free again.
    Look,
    End,
}

impl Writer {
    async fn run(mut self, mut stop: Stop) {
        loop {
            match self.next(&mut stop).await {
                Next::Write(first) => {
                    self.waiting.remove(&first.handover);
                    self.gather(&first, &mut stop).await;
                    self.commit(first).await;
                }
                Next::Tell => {
                    let replayed = self.replay_kept().await;
                    for listener in self.asked.drain(..) {
                        // The next request gets a result that had no receiver.
                        if let Err(unheard) = listener.send(replayed.clone()) {
                            self.rewritten.extend(unheard.partitions);
                        }
                    }
                }
                Next::Look => self.write_late().await,
                Next::End => return,
            }
        }
    }

    /// Waits until others have joined a flight's records. A permit to end the wait may be left from
    /// the batch before: that wait is over too soon, and nothing else.
    async fn gather(&self, first: &Queued, stop: &mut Stop) {
        let Queued { handover, since, .. } = first;
        if handover.is_urgent || self.waiting.is_due(handover.entries.len(), self.rows_max) {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep_until(*since + GATHER_PERIOD) => {}
            () = self.waiting.urge.notified() => {}
            () = stop.requested() => {}
        }
    }

    /// Commits a flight, and with it those that wait after it, except for records of counters that
    /// are locked elsewhere.
    async fn commit(&mut self, first: Queued) {
        let mut batch = self.collect(first);
        let records = batch.iter().map(|queued| queued.handover.entries.len()).sum::<usize>();
        let started = Instant::now();
        let late_before = self.late.len();
        for of_node in batch.chunk_by_mut(|one, next| one.handover.node == next.handover.node) {
            let (node, mut part) = (of_node[0].handover.node, Part::default());
            for Queued { handover: Handover { entries, texts, flight, .. }, place, .. } in of_node {
                let tag = |text| Tag { text, flight: *flight, place: Some(*place) };
                part.extend(std::mem::take(entries).into_iter().zip(texts.drain(..).map(tag)));
            }
            (self.spectator)(&part.entries);
            let [free, waiting] = part.without(self.late.held());
            self.late.wait(node, waiting);
            self.write(node, free, Manner::First).await;
        }
        let late = self.late.len() - late_before;
        self.metrics.journal_batch_seconds.record(started.elapsed());
        self.metrics.journal_batch_records.record(records as f64);
        let mut spaceless = late;
        for Queued { handover: Handover { partition, flight, space, .. }, .. } in &mut batch {
            let kept = spaceless.min(space.num_permits());
            if let Some(space) = space.split(kept).filter(|_| kept > 0) {
                self.late.keep_space(space);
            }
            spaceless -= kept;
            self.late.seen_to(*partition, *flight);
        }
        let partitions: BTreeSet<u32> =
            batch.iter().map(|queued| queued.handover.partition).collect();
        self.tell_progress(partitions);
        self.waiting.rest();
    }

    /// Publishes up to which flight everything is committed.
    fn tell_progress(&self, partitions: impl IntoIterator<Item = u32>) {
        for partition in partitions {
            self.progress[partition as usize].send_replace(self.late.progress(partition));
        }
    }

    /// Writes those late records whose counters are free again.
    async fn write_late(&mut self) {
        let asked: Vec<i64> = self.late.held().iter().copied().collect();
        let held = match self.ledger.held_counters(&asked).await {
            Ok(held) => held,
            Err(error) => {
                tracing::debug!(%error, "cannot look for counters that are free again");
                asked
            }
        };
        let mut partitions = BTreeSet::new();
        for (node, part) in self.late.take_free(held) {
            let (waiting, records) = (self.late.len(), part.len());
            partitions.extend(part.entries.iter().map(|entry| entry.at.partition));
            self.write(node, part, Manner::First).await;
            let written = records - (self.late.len() - waiting);
            self.late.give_room(written);
        }
        self.tell_progress(partitions);
    }

    /// Writes the kept records again, with those that wait for locked counters.
    async fn replay_kept(&mut self) -> Replayed {
        let refused = self.refused;
        let kept = self.kept.take();
        let count = kept.len();
        let tagged = |(_, entry): &(NodeId, Entry)| {
            let (entry, text) = with_text(entry.clone());
            (entry, Tag { text, flight: 0, place: None })
        };
        for of_node in kept.chunk_by(|one, next| one.0 == next.0) {
            for some in of_node.chunks(self.rows_max) {
                let mut part = Part::default();
                part.extend(some.iter().map(tagged));
                self.write(of_node[0].0, part, Manner::Again).await;
            }
        }
        tracing::warn!(count, "the ledger got its newest records again");
        let (forgot, refused) = (self.kept.forgot(), self.refused - refused);
        let partitions = std::mem::take(&mut self.rewritten);
        Replayed { forgot, refused, waiting: self.late.len(), partitions }
    }

    /// The next message; the end once the loop is to stop and nothing waits.
    async fn next(&mut self, stop: &mut Stop) -> Next {
        if !self.asked.is_empty() {
            return Next::Tell;
        }
        let look_at = self.late.due_at();
        if look_at.is_some_and(|moment| moment <= Instant::now()) {
            return Next::Look;
        }
        let message = tokio::select! {
            biased;
            message = self.receiver.recv() => message,
            () = until(look_at) => return Next::Look,
            () = stop.requested() => self.receiver.try_recv().ok(),
        };
        match (message, look_at) {
            (Some(Message::HandOver(first)), _) => Next::Write(first),
            (Some(Message::Replay(listener)), _) => {
                self.asked.push(listener);
                Next::Tell
            }
            (None, None) => Next::End,
            (None, look_at) => {
                until(look_at).await;
                Next::Look
            }
        }
    }

    /// As many waiting flights as fit into one transaction. A replay that is requested between them
    /// waits for no other batch.
    fn collect(&mut self, first: Queued) -> Vec<Queued> {
        let mut rows = first.handover.entries.len();
        let mut batch = vec![first];
        while rows < self.rows_max {
            match self.receiver.try_recv() {
                Ok(Message::HandOver(next)) => {
                    self.waiting.remove(&next.handover);
                    rows += next.handover.entries.len();
                    batch.push(next);
                }
                Ok(Message::Replay(listener)) => self.asked.push(listener),
                Err(_) => break,
            }
        }
        batch
    }
}
