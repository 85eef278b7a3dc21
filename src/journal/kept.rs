//! Committed records that stay in memory for a while, in case that the ledger forgets them (F9).
//!
//! Kept as they travel through Redis, not as they are worked with: some 500 bytes instead of 1,500.
//! Owns nothing but the memory: who writes them again, and when, is the journal loop's business.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::{At, Entry, IssuePath};
use crate::node::NodeId;
use crate::number::TakenRange;

/// Records for a while after they were committed. Bounded by their age and their number.
pub(super) struct Kept {
    records: VecDeque<Packed>,
    period: Duration,
    records_max: usize,
}

/// A record in little room.
struct Packed {
    since: Instant,
    node: NodeId,
    at: At,
    taken: Box<[TakenRange]>,
    /// The record as it travels through Redis.
    record: Box<str>,
    number: Box<str>,
    retry_count: u32,
    path: IssuePath,
}

impl Packed {
    fn new(since: Instant, node: NodeId, entry: Entry) -> Self {
        let Entry { record, taken, number, at, retry_count, path } = entry;
        let (record, taken) = (record.to_flat_json().into(), taken.into());
        Packed { since, node, at, taken, record, number: number.into(), retry_count, path }
    }

    fn entry(self) -> (NodeId, Entry) {
        let Packed { node, at, taken, record, number, retry_count, path, .. } = self;
        let record = serde_json::from_str(&record).expect("a record reads as it was written");
        let (record, taken, number) = (Arc::new(record), taken.into(), number.into());
        (node, Entry { record, taken, number, at, retry_count, path })
    }
}

impl Kept {
    pub(super) fn new(period: Duration, records_max: usize) -> Self {
        Kept { records: VecDeque::new(), period, records_max }
    }

    pub(super) fn push(&mut self, node: NodeId, entries: Vec<Entry>) {
        let now = Instant::now();
        let spare = entries.len().saturating_sub(self.records_max);
        self.records.extend(entries.into_iter().skip(spare).map(|e| Packed::new(now, node, e)));
        let spare = self.records.len().saturating_sub(self.records_max);
        self.records.drain(..spare);
        let is_old = |kept: &Packed| now - kept.since > self.period;
        let old = self.records.iter().take_while(|kept| is_old(kept)).count();
        self.records.drain(..old);
    }

    /// Everything, to be written again; kept anew only once that is done.
    pub(super) fn take(&mut self) -> Vec<(NodeId, Entry)> {
        std::mem::take(&mut self.records).into_iter().map(Packed::entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Record;
    use crate::number::Range;

    fn entry(epoch: u64) -> Entry {
        let record = serde_json::json!({
            "allocation_id": uuid::Uuid::nil(), "series_id": 1, "version": 1, "type_code": "T",
            "scope": "", "mask": "{0:3}", "document_date": "2026-01-02", "counter_keys": ["k"],
            "user_id": "u", "payload_digest": "00", "issued_at_us": 0,
        });
        let record: Record = serde_json::from_value(record).expect("a record");
        Entry {
            record: Arc::new(record),
            taken: vec![TakenRange { counter_id: 9, range: Range { first: 3, last: 3, step: 1 } }],
            number: "003".into(),
            at: At { partition: 0, epoch },
            retry_count: 2,
            path: IssuePath::Database,
        }
    }

    fn epochs(kept: &mut Kept) -> Vec<u64> {
        kept.take().iter().map(|(_, entry)| entry.at.epoch).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn records_are_kept_for_their_period_and_no_more_than_their_bound() {
        let (node, second) = (NodeId::random(), Duration::from_secs(1));
        let mut kept = Kept::new(second, 3);
        kept.push(node, vec![entry(1)]);
        tokio::time::advance(second).await;
        kept.push(node, vec![entry(2)]);
        assert_eq!(kept.take(), [(node, entry(1)), (node, entry(2))]);
        kept.push(node, vec![entry(3)]);
        tokio::time::advance(second * 2).await;
        kept.push(node, vec![entry(4)]);
        assert_eq!(epochs(&mut kept), [4], "the one before is too old");
        kept.push(node, (5..10).map(entry).collect());
        assert_eq!(epochs(&mut kept), [7, 8, 9], "the oldest go first");
        assert!(kept.take().is_empty());
    }
}
