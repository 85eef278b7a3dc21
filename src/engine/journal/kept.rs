//! Committed records that stay in memory for a while, in case that the ledger forgets them (F9).
//!
//! Owns nothing but the memory: the journal loop decides when they are written again. A record is
//! put here by the task that committed it, before that task continues: the next replay has it, and
//! no record waits for what is being written (F42).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use numbering::TakenRange;
use tokio::time::Instant;

use crate::ledger::{At, Entry, IssuePath};
use crate::node::NodeId;

/// Records for a while after they were committed. Bounded by their age and their number.
#[derive(Debug)]
pub(super) struct Kept {
    period: Duration,
    records_max: usize,
    state: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// In the order in which they came, and when that was.
    records: VecDeque<(Instant, KeptRecord)>,
    /// When the newest of those was committed that are not kept any more.
    forgot: Option<Instant>,
}

/// An entry as a flight writes it: a third of the memory that it takes as fields, and in one piece.
#[derive(Debug)]
struct KeptRecord {
    node: NodeId,
    at: At,
    taken: Vec<TakenRange>,
    record: Arc<str>,
    retry_count: u32,
    path: IssuePath,
}

impl Kept {
    pub(super) fn new(period: Duration, records_max: usize) -> Self {
        Kept { period, records_max, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.state.lock().expect("no holder of this lock panics")
    }

    /// Keeps entries, each with its record as it travels through Redis. Where there are more than
    /// the bound, the oldest are dropped, and so are those that are too old.
    pub(super) fn push(&self, node: NodeId, entries: impl IntoIterator<Item = (Entry, Arc<str>)>) {
        self.add(node, entries, self.period);
    }

    /// The same for records of a replay: the ledger may lack older ones, too, so none is too old
    /// for it.
    pub(super) fn push_again(
        &self,
        node: NodeId,
        entries: impl IntoIterator<Item = (Entry, Arc<str>)>,
    ) {
        self.add(node, entries, Duration::MAX);
    }

    fn add(
        &self,
        node: NodeId,
        entries: impl IntoIterator<Item = (Entry, Arc<str>)>,
        period: Duration,
    ) {
        let new = entries.into_iter().map(|(entry, record)| {
            let Entry { taken, at, retry_count, path, .. } = entry;
            KeptRecord { node, at, taken, record, retry_count, path }
        });
        // Before the lock, and what is dropped is freed after it: others wait for the entries
        // alone.
        let new: Vec<KeptRecord> = new.collect();
        let mut state = self.lock();
        let since = Instant::now();
        state.records.extend(new.into_iter().map(|record| (since, record)));
        let spare = state.records.len().saturating_sub(self.records_max);
        let is_old = |(kept, _): &&(Instant, KeptRecord)| since - *kept > period;
        let old = state.records.iter().take_while(is_old).count();
        let gone: Vec<_> = state.records.drain(..spare.max(old)).collect();
        state.forgot = state.forgot.max(gone.last().map(|(kept, _)| *kept));
        drop(state);
    }

    /// Notes that records were committed which are not kept.
    pub(super) fn note_unkept(&self) {
        let mut state = self.lock();
        state.forgot = Some(Instant::now());
    }

    /// When the newest of those records was committed that are not kept any more; it was committed
    /// at that moment or before.
    pub(super) fn forgot(&self) -> Option<Instant> {
        self.lock().forgot
    }

    /// Everything, to be written again; kept anew only once that is done.
    pub(super) fn take(&self) -> Vec<(NodeId, Entry)> {
        let records = std::mem::take(&mut self.lock().records);
        let read = |(_, kept): (Instant, KeptRecord)| {
            let KeptRecord { node, at, taken, record, retry_count, path } = kept;
            let entry = Entry::of_flight(at, taken, &record)
                .expect("this process has written the record and rendered its number before");
            (node, Entry { retry_count, path, ..entry })
        };
        records.into_iter().map(read).collect()
    }
}

/// An entry with its record as it travels through Redis.
pub(super) fn with_text(entry: Entry) -> (Entry, Arc<str>) {
    let text = entry.record.to_flat_json().into();
    (entry, text)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ledger::Record;
    use numbering::Range;

    pub(in crate::engine::journal) fn entry(epoch: u64) -> (Entry, Arc<str>) {
        let record = serde_json::json!({
            "allocation_id": uuid::Uuid::nil(), "series_id": 1, "version": 1, "type_code": "T",
            "scope": "", "mask": "{0:3}", "document_date": "2026-01-02", "serials": ["SEQ"],
            "counter_keys": ["k"],
            "user_id": "u", "payload_digest": "00", "issued_at_us": 0,
        });
        let record: Record = serde_json::from_value(record).expect("a record");
        let text = record.to_flat_json().into();
        let range = Range { first: epoch, last: epoch, step: 1 };
        let entry = Entry {
            record: Arc::new(record),
            taken: vec![TakenRange { counter_id: 1, range }],
            number: format!("{epoch:03}"),
            at: At { partition: 0, epoch },
            retry_count: 2,
            path: IssuePath::Database,
        };
        (entry, text)
    }

    pub(in crate::engine::journal) fn epochs(kept: &Kept) -> Vec<u64> {
        kept.take().iter().map(|(_, entry)| entry.at.epoch).collect()
    }

    #[tokio::test]
    async fn what_is_kept_comes_back_as_it_was() {
        let node = NodeId::random();
        let kept = Kept::new(Duration::from_secs(1), 3);
        kept.push(node, [entry(7)]);
        assert_eq!(kept.take(), [(node, entry(7).0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn records_are_kept_for_their_period_and_no_more_than_their_bound() {
        let (node, second) = (NodeId::random(), Duration::from_secs(1));
        let kept = Kept::new(second, 3);
        kept.push(node, vec![entry(1)]);
        tokio::time::advance(second).await;
        kept.push(node, vec![entry(2)]);
        assert_eq!(epochs(&kept), [1, 2]);
        kept.push(node, vec![entry(3)]);
        tokio::time::advance(second * 2).await;
        kept.push(node, vec![entry(4)]);
        assert_eq!(epochs(&kept), [4], "the one before is too old");
        kept.push(node, (5..10).map(entry));
        assert_eq!(epochs(&kept), [7, 8, 9], "the oldest go first");
        assert!(kept.take().is_empty());
    }

    /// Goal: a process that slept for long forgets nothing when it learns that the ledger went
    /// back.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_too_old_for_a_ledger_that_is_told_again() {
        let (node, second) = (NodeId::random(), Duration::from_secs(1));
        let kept = Kept::new(second, 3);
        kept.push(node, [entry(1)]);
        tokio::time::advance(second * 9).await;
        kept.push_again(node, [entry(2)]);
        assert_eq!((epochs(&kept), kept.forgot()), (vec![1, 2], None));
    }
}
