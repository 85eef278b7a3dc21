//! Partitions in which a node may hold records that the journal does not have yet.
//!
//! While a node that sent flights there is neither seen alive nor taken over, the journal's "no
//! such key" is not an answer: a retry would get a second number. So questions to the journal wait
//! (F1).

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::watch;

/// The partitions with unjournaled records, kept by the reconciler.
#[derive(Debug)]
pub struct UnjournaledPartitions(watch::Sender<Option<HashSet<u32>>>);

impl UnjournaledPartitions {
    /// Nothing is known before the first poll of the reconciler. A process that does not watch the
    /// nodes (a one-shot command) suspects none.
    #[must_use]
    pub fn new(watches: bool) -> Self {
        UnjournaledPartitions(watch::Sender::new((!watches).then(HashSet::new)))
    }

    /// Sets which partitions may have unjournaled records now.
    pub fn set(&self, partitions: HashSet<u32>) {
        self.0.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&partitions);
            *known = Some(partitions);
            changed
        });
    }

    /// Waits until a partition has no unjournaled records, at most `limit`; whether it is so.
    pub async fn cleared(&self, partition: u32, limit: Duration) -> bool {
        let mut known = self.0.subscribe();
        let clear = known.wait_for(|known| {
            known.as_ref().is_some_and(|partitions| !partitions.contains(&partition))
        });
        tokio::time::timeout(limit, clear).await.is_ok_and(|seen| seen.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_until_the_partition_is_cleared_or_its_time_is_over() {
        let limit = Duration::from_secs(6);
        let partitions = UnjournaledPartitions::new(true);
        assert!(!partitions.cleared(7, limit).await, "nobody has looked yet");
        partitions.set(HashSet::from([7]));
        assert!(partitions.cleared(1, limit).await);
        assert!(!partitions.cleared(7, limit).await);
        let waits = partitions.cleared(7, limit);
        partitions.set(HashSet::new());
        assert!(waits.await);
        assert!(
            UnjournaledPartitions::new(false).cleared(7, limit).await,
            "a command does not wait"
        );
    }
}
