//! Partitions in which somebody may hold records that the journal does not have yet.
//!
//! While a node that sent flights there is neither seen alive nor adopted, the journal's "no such
//! key" is not an answer: a retry would get a second number. So questions to the journal wait (F1).

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::watch;

/// The doubtful partitions, kept by the reconciler.
#[derive(Debug)]
pub struct Doubts(watch::Sender<Option<HashSet<u32>>>);

impl Doubts {
    /// Nothing is known until the reconciler has looked once. A process that does not watch the
    /// nodes (a one-shot command) has no doubts.
    #[must_use]
    pub fn new(watches: bool) -> Self {
        Doubts(watch::Sender::new((!watches).then(HashSet::new)))
    }

    /// Says which partitions are doubtful now.
    pub fn set(&self, partitions: HashSet<u32>) {
        self.0.send_if_modified(|doubtful| {
            let changed = doubtful.as_ref() != Some(&partitions);
            *doubtful = Some(partitions);
            changed
        });
    }

    /// Waits until a partition is not doubtful, at most `limit`; whether it is so.
    pub async fn cleared(&self, partition: u32, limit: Duration) -> bool {
        let mut doubtful = self.0.subscribe();
        let clear = doubtful.wait_for(|known| {
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
        let doubts = Doubts::new(true);
        assert!(!doubts.cleared(7, limit).await, "nobody has looked yet");
        doubts.set(HashSet::from([7]));
        assert!(doubts.cleared(1, limit).await);
        assert!(!doubts.cleared(7, limit).await);
        let waits = doubts.cleared(7, limit);
        doubts.set(HashSet::new());
        assert!(waits.await);
        assert!(Doubts::new(false).cleared(7, limit).await, "a command does not wait");
    }
}
