//! Committed records that stay in memory for a while, in case that the ledger forgets them (F9).
//!
//! Owns nothing but the memory: who writes them again, and when, is the journal loop's business.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use numbering::TakenRange;
use tokio::time::Instant;

use crate::ledger::{At, Entry, IssuePath};
use crate::node::NodeId;

/// Records for a while after they were committed. Bounded by their age and their number.
pub(super) struct Kept {
    records: VecDeque<KeptRecord>,
    period: Duration,
    records_max: usize,
    /// When the newest of those was committed that are not kept any more.
    forgot: Option<Instant>,
}

/// An entry as a flight writes it: a third of the memory that it takes as fields, and in one piece.
struct KeptRecord {
    since: Instant,
    node: NodeId,
    at: At,
    taken: Vec<TakenRange>,
    record: Arc<str>,
    retry_count: u32,
    path: IssuePath,
}

impl Kept {
    pub(super) fn new(period: Duration, records_max: usize) -> Self {
        Kept { records: VecDeque::new(), period, records_max, forgot: None }
    }

    /// Keeps entries, each beside its record as it travels through Redis.
    pub(super) fn push(
        &mut self,
        node: NodeId,
        entries: impl IntoIterator<Item = (Entry, Arc<str>)>,
    ) {
        self.add(node, entries);
        let now = Instant::now();
        let is_old = |kept: &KeptRecord| now - kept.since > self.period;
        let old = self.records.iter().take_while(|kept| is_old(kept)).count();
        self.forget(old);
    }

    /// The same for what a ledger is told again: it may lack older ones, too, and none is too old
    /// for it.
    pub(super) fn push_again(
        &mut self,
        node: NodeId,
        entries: impl IntoIterator<Item = (Entry, Arc<str>)>,
    ) {
        self.add(node, entries);
        self.forget(0);
    }

    fn add(&mut self, node: NodeId, entries: impl IntoIterator<Item = (Entry, Arc<str>)>) {
        let since = Instant::now();
        self.records.extend(entries.into_iter().map(|(entry, record)| {
            let Entry { taken, at, retry_count, path, .. } = entry;
            KeptRecord { since, node, at, taken, record, retry_count, path }
        }));
    }

    /// Forgets so many of the oldest, and those beyond the bound.
    fn forget(&mut self, old: usize) {
        let spare = self.records.len().saturating_sub(self.records_max);
        let gone = self.records.drain(..spare.max(old)).map(|kept| kept.since);
        self.forgot = self.forgot.max(gone.max());
    }

    /// When the newest of those records was committed that are not kept any more; it was committed
    /// at that moment or before.
    pub(super) fn forgot(&self) -> Option<Instant> {
        self.forgot
    }

    /// Everything, to be written again; kept anew only once that is done.
    pub(super) fn take(&mut self) -> Vec<(NodeId, Entry)> {
        let read = |kept: KeptRecord| {
            let KeptRecord { node, at, taken, record, retry_count, path, .. } = kept;
            let entry = Entry::of_flight(at, taken, &record)
                .expect("this process has written the record and rendered its number before");
            (node, Entry { retry_count, path, ..entry })
        };
        std::mem::take(&mut self.records).into_iter().map(read).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::ledger::Record;
    use numbering::Range;

    pub(in crate::journal) fn entry(epoch: u64) -> (Entry, Arc<str>) {
        let record = serde_json::json!({
            "allocation_id": uuid::Uuid::nil(), "series_id": 1, "version": 1, "type_code": "T",
            "scope": "", "mask": "{0:3}", "document_date": "2026-01-02", "counter_keys": ["k"],
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

    fn epochs(kept: &mut Kept) -> Vec<u64> {
        kept.take().iter().map(|(_, entry)| entry.at.epoch).collect()
    }

    #[tokio::test]
    async fn what_is_kept_comes_back_as_it_was() {
        let node = NodeId::random();
        let mut kept = Kept::new(Duration::from_secs(1), 3);
        kept.push(node, [entry(7)]);
        assert_eq!(kept.take(), [(node, entry(7).0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn records_are_kept_for_their_period_and_no_more_than_their_bound() {
        let (node, second) = (NodeId::random(), Duration::from_secs(1));
        let mut kept = Kept::new(second, 3);
        kept.push(node, vec![entry(1)]);
        tokio::time::advance(second).await;
        kept.push(node, vec![entry(2)]);
        assert_eq!(epochs(&mut kept), [1, 2]);
        kept.push(node, vec![entry(3)]);
        tokio::time::advance(second * 2).await;
        kept.push(node, vec![entry(4)]);
        assert_eq!(epochs(&mut kept), [4], "the one before is too old");
        kept.push(node, (5..10).map(entry));
        assert_eq!(epochs(&mut kept), [7, 8, 9], "the oldest go first");
        assert!(kept.take().is_empty());
    }

    /// Goal: a process that slept for long forgets nothing by being told that the ledger went back.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_too_old_for_a_ledger_that_is_told_again() {
        let (node, second) = (NodeId::random(), Duration::from_secs(1));
        let mut kept = Kept::new(second, 3);
        kept.push(node, [entry(1)]);
        tokio::time::advance(second * 9).await;
        kept.push_again(node, [entry(2)]);
        assert_eq!((epochs(&mut kept), kept.forgot()), (vec![1, 2], None));
    }
}
