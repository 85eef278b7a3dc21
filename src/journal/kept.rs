//! Committed records that stay in memory for a while, in case that the ledger forgets them (F9).
//!
//! Owns nothing but the memory: who writes them again, and when, is the journal loop's business.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::Entry;
use crate::node::NodeId;

/// Records for a while after they were committed. Bounded by their age and their number.
pub(super) struct Kept {
    records: VecDeque<(Instant, NodeId, Entry)>,
    period: Duration,
    records_max: usize,
}

impl Kept {
    pub(super) fn new(period: Duration, records_max: usize) -> Self {
        Kept { records: VecDeque::new(), period, records_max }
    }

    pub(super) fn push(&mut self, node: NodeId, entries: Vec<Entry>) {
        let now = Instant::now();
        self.records.extend(entries.into_iter().map(|entry| (now, node, entry)));
        let spare = self.records.len().saturating_sub(self.records_max);
        self.records.drain(..spare);
        let is_old = |kept: &(Instant, NodeId, Entry)| now - kept.0 > self.period;
        let old = self.records.iter().take_while(|kept| is_old(kept)).count();
        self.records.drain(..old);
    }

    /// Everything, to be written again; kept anew only once that is done.
    pub(super) fn take(&mut self) -> Vec<(NodeId, Entry)> {
        std::mem::take(&mut self.records)
            .into_iter()
            .map(|(_, node, entry)| (node, entry))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ledger::{At, IssuePath, Record};

    fn entry(epoch: u64) -> Entry {
        let record = serde_json::json!({
            "allocation_id": uuid::Uuid::nil(), "series_id": 1, "version": 1, "type_code": "T",
            "scope": "", "mask": "{0:3}", "document_date": "2026-01-02", "counter_keys": ["k"],
            "user_id": "u", "payload_digest": "00", "issued_at_us": 0,
        });
        let record: Record = serde_json::from_value(record).expect("a record");
        Entry {
            record: Arc::new(record),
            taken: Vec::new(),
            number: String::new(),
            at: At { partition: 0, epoch },
            retry_count: 0,
            path: IssuePath::Redis,
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
        assert_eq!(epochs(&mut kept), [1, 2]);
        kept.push(node, vec![entry(3)]);
        tokio::time::advance(second * 2).await;
        kept.push(node, vec![entry(4)]);
        assert_eq!(epochs(&mut kept), [4], "the one before is too old");
        kept.push(node, (5..10).map(entry).collect());
        assert_eq!(epochs(&mut kept), [7, 8, 9], "the oldest go first");
        assert!(kept.take().is_empty());
    }
}
