//! The journal loop: writes what was handed out to the ledger, in batches, behind the answers.
//!
//! ```text
//!  worker ──reserve─▶ permits ──send─▶ hand over ──▶ queue ──▶ batch ──commit─▶ progress ──▶ trim
//!                                       │                       │
//!                             now it is handed out       ├─ refused: halve, then journal_rejected
//!                                                        └─ counter held: beside, until it is free
//! ```
//!
//! Space is reserved *before* a flight, so the queue never refuses what was taken; a full queue
//! makes the worker refuse new requests (`outbox-full`). Batches commit in order, so that
//! `progress` of a partition names a flight before which everything is committed (F16).
//!
//! What is committed stays in memory for `journal.keep`: a ledger that went back gets it again
//! (F9). It finds the counters by their names then, for their ids may be others' by now.
//!
//! Failure handling: an unreachable ledger is tried again for ever, the records waiting in memory
//! and in the outbox. A batch refused for its content is halved until the row is alone; that row
//! goes, raw, to `journal_rejected` (F13). Records of a counter that somebody else holds wait
//! beside, and the others are committed (F31). Nothing is ever dropped.

mod kept;
mod late;
mod queue;
mod writing;

pub use queue::{Handover, JournalQueue, Lag, Told};

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::clock::SharedClock;
use crate::ledger::{Entry, SharedLedger};
use crate::metrics::Metrics;
use crate::node::NodeId;
use crate::task::{Stop, Task, until};
use kept::Kept;
use late::{Late, Part, Tag};
use queue::{Message, Waiting};
use writing::Manner;

/// How long a record waits for others to be committed with: a transaction costs as much as some
/// hundred rows. Nobody waits who asked for the commit, nor a batch that is full.
const GATHER_PERIOD: Duration = Duration::from_millis(20);

/// Bounds of the journal.
#[derive(Clone, Copy, Debug)]
pub struct JournalSettings {
    /// `journal.queue_max`: records that may wait for the journal.
    pub queue_max: usize,
    /// `journal.keep`: how long a record stays in memory once it is committed (F9).
    pub keep: Duration,
    /// `journal.batch_rows_max`: rows in one journal transaction.
    pub batch_rows_max: usize,
}

impl Default for JournalSettings {
    fn default() -> Self {
        JournalSettings { queue_max: 100_000, keep: Duration::from_secs(60), batch_rows_max: 2_000 }
    }
}

/// Sees the records that pass the loop, whatever their path; must not wait.
pub type Spectator = Box<dyn Fn(&[Entry]) + Send + Sync>;

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
        space_to_keep: Arc::new(Semaphore::new(settings.queue_max)),
        lag: Arc::default(),
        progress: Arc::clone(&progress),
        waiting: Arc::default(),
        rows_max: settings.batch_rows_max,
        unkept: Arc::default(),
    };
    let writer = Writer {
        ledger: Arc::clone(ledger),
        clock: Arc::clone(clock),
        receiver,
        progress,
        lag: Arc::clone(&queue.lag),
        spectator,
        waiting: Arc::clone(&queue.waiting),
        aside: None,
        late: Late::new(partitions),
        kept: Kept::new(settings.keep, settings.queue_max),
        rows_max: settings.batch_rows_max,
        backoff,
        metrics: metrics.clone(),
        unkept: Arc::clone(&queue.unkept),
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
    /// Received behind a batch that it does not belong to.
    aside: Option<Message>,
    late: Late,
    kept: Kept,
    lag: Arc<Mutex<Lag>>,
    spectator: Spectator,
    waiting: Arc<Waiting>,
    progress: Arc<Vec<watch::Sender<u64>>>,
    rows_max: usize,
    backoff: Backoff,
    metrics: Metrics,
    /// When records of the database path last found no space to be kept.
    unkept: Arc<Mutex<Option<Instant>>>,
    /// Records that the ledger refused and took raw, in the life of the process.
    refused: u64,
    /// Partitions of records that were written again and that the ledger did not have, since it was
    /// last told.
    rewritten: BTreeSet<u32>,
}

/// What the loop does next.
enum Next {
    Message(Message),
    /// Look whether counters are free again.
    Look,
    End,
}

impl Writer {
    async fn run(mut self, mut stop: Stop) {
        loop {
            match self.next(&mut stop).await {
                Next::Message(Message::HandOver(first)) => {
                    self.waiting.remove(&first);
                    self.gather(&first, &mut stop).await;
                    self.commit(first).await;
                }
                Next::Message(Message::Keep(node, entries, _room)) => {
                    (self.spectator)(&entries);
                    self.kept.push(node, entries.into_iter().map(with_text));
                }
                Next::Message(Message::TellAgain(listener)) => {
                    let told = self.tell_again().await;
                    let _ = listener.send(told);
                }
                Next::Look => self.write_late().await,
                Next::End => return,
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

    /// Commits a flight, and with it those that wait behind it, but for records of counters that
    /// somebody else holds.
    async fn commit(&mut self, first: Handover) {
        let mut batch = self.collect(first);
        let records = batch.iter().map(|handover| handover.entries.len()).sum::<usize>();
        let started = Instant::now();
        let late_before = self.late.len();
        for handovers in batch.chunk_by_mut(|one, next| one.node == next.node) {
            let (node, mut part) = (handovers[0].node, Part::default());
            for Handover { entries, texts, flight, .. } in handovers {
                let tag = |text| Tag { text, flight: *flight, since: started };
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
        for Handover { partition, flight, space, .. } in &mut batch {
            let kept = spaceless.min(space.num_permits());
            if let Some(space) = space.split(kept).filter(|_| kept > 0) {
                self.late.keep_space(space);
            }
            spaceless -= kept;
            self.late.seen_to(*partition, *flight);
        }
        // What waits now arrived while this batch was written, at the earliest.
        self.note_committed(records - late, started);
        let partitions: BTreeSet<u32> = batch.iter().map(|handover| handover.partition).collect();
        self.tell_progress(partitions);
        self.waiting.rest();
    }

    /// Counts what was committed; what waits now does so since a moment, or is late.
    fn note_committed(&self, records: usize, waiting_since: Instant) {
        self.metrics.journaled.increment(records as u64);
        let mut lag = self.lag.lock().expect("no holder of this lock panics");
        lag.records -= records;
        let oldest = self.late.oldest().unwrap_or(waiting_since);
        lag.oldest = (lag.records > 0).then_some(oldest);
    }

    /// Says up to which flight everything is committed.
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
        let (started, mut partitions) = (Instant::now(), BTreeSet::new());
        for (node, part) in self.late.take_free(held) {
            let (waiting, records) = (self.late.len(), part.len());
            partitions.extend(part.entries.iter().map(|entry| entry.at.partition));
            self.write(node, part, Manner::First).await;
            let written = records - (self.late.len() - waiting);
            self.late.give_room(written);
            self.note_committed(written, started);
        }
        self.tell_progress(partitions);
    }

    /// Writes what is kept once more, and what waits beside for its counters with it.
    async fn tell_again(&mut self) -> Told {
        let refused = self.refused;
        let kept = self.kept.take();
        let count = kept.len();
        let since = Instant::now();
        let tagged = |(_, entry): &(NodeId, Entry)| {
            let (entry, text) = with_text(entry.clone());
            (entry, Tag { text, flight: 0, since })
        };
        for of_node in kept.chunk_by(|one, next| one.0 == next.0) {
            for some in of_node.chunks(self.rows_max) {
                let mut part = Part::default();
                part.extend(some.iter().map(tagged));
                self.write(of_node[0].0, part, Manner::Again).await;
            }
        }
        tracing::warn!(count, "the ledger got its newest records again");
        let unkept = *self.unkept.lock().expect("no holder of this lock panics");
        let (forgot, refused) = (self.kept.forgot().max(unkept), self.refused - refused);
        let partitions = std::mem::take(&mut self.rewritten);
        Told { forgot, refused, waiting: self.late.len(), partitions }
    }

    /// What comes next; the end once the loop is asked for it and nothing waits.
    async fn next(&mut self, stop: &mut Stop) -> Next {
        if let Some(message) = self.aside.take() {
            return Next::Message(message);
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
            (Some(message), _) => Next::Message(message),
            (None, None) => Next::End,
            (None, look_at) => {
                until(look_at).await;
                Next::Look
            }
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
}

/// An entry beside its record as it travels through Redis.
fn with_text(entry: Entry) -> (Entry, Arc<str>) {
    let text = entry.record.to_flat_json().into();
    (entry, text)
}
