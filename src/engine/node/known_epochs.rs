//! The known epochs: those of Redis of which this process knows that none has followed them.
//!
//! An epoch closes only after its participants have acknowledged, or have had
//! `recovery.barrier_max` to see the next one in a heartbeat. So a process that takes part, and
//! beats without such a pause, misses no epoch: its report means that the database has not served
//! since (F9). Never guesses: what it does not know is left out, and a release asks for a margin.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::ledger::At;

/// What this process could vouch for.
#[derive(Debug, Default)]
pub(crate) struct KnownEpochs {
    /// The epoch that it takes part in, by partition.
    joined: BTreeMap<u32, u64>,
    /// When the last heartbeat that was confirmed was sent.
    beaten_at: Option<Instant>,
    /// What it vouches for since the ledger was found to have gone back.
    given: Option<Vec<At>>,
}

impl KnownEpochs {
    /// It takes part in an epoch of Redis from now on.
    pub(crate) fn join(&mut self, at: At) {
        self.joined.insert(at.partition, at.epoch);
    }

    /// It may leave its epoch of a partition from now on.
    pub(crate) fn leave(&mut self, partition: u32) {
        self.joined.remove(&partition);
    }

    /// A heartbeat sent at this moment was confirmed.
    pub(super) fn beat(&mut self, sent_at: Instant, pause_max: Duration) {
        if self.has_paused(sent_at, pause_max) {
            self.joined.clear();
        }
        self.beaten_at = Some(sent_at);
    }

    /// The ledger was found to have gone back: what is known at this moment is reported of it from
    /// now on, until it is forgotten.
    pub(super) fn stop(&mut self, pause_max: Duration) {
        if self.given.is_none() {
            let is_sure = !self.has_paused(Instant::now(), pause_max);
            let joined = self.joined.iter().filter(|_| is_sure);
            let at = |(partition, epoch): (&u32, &u64)| At { partition: *partition, epoch: *epoch };
            self.given = Some(joined.map(at).collect());
        }
    }

    /// What it vouches for.
    pub(super) fn given(&self) -> Vec<At> {
        self.given.clone().unwrap_or_default()
    }

    /// The ledger knows it.
    pub(super) fn forget(&mut self) {
        self.given = None;
        self.joined.clear();
    }

    fn has_paused(&self, now: Instant, pause_max: Duration) -> bool {
        self.beaten_at.is_none_or(|beaten_at| now - beaten_at >= pause_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE_MAX: Duration = Duration::from_secs(2);
    const SHORT: Duration = Duration::from_millis(1_999);
    const AT: At = At { partition: 3, epoch: 7 };

    /// One that beats and takes part.
    fn beating() -> KnownEpochs {
        let mut known_epochs = KnownEpochs::default();
        known_epochs.beat(Instant::now(), PAUSE_MAX);
        known_epochs.join(AT);
        known_epochs
    }

    fn word(mut known_epochs: KnownEpochs) -> Vec<At> {
        known_epochs.stop(PAUSE_MAX);
        known_epochs.given()
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_part_and_beats_vouches_for_its_epoch() {
        let mut known_epochs = beating();
        tokio::time::advance(SHORT).await;
        known_epochs.beat(Instant::now(), PAUSE_MAX);
        tokio::time::advance(SHORT).await;
        known_epochs.stop(PAUSE_MAX);
        tokio::time::advance(PAUSE_MAX).await;
        known_epochs.stop(PAUSE_MAX);
        assert_eq!(known_epochs.given(), [AT], "it stopped when it was first noticed");
        known_epochs.forget();
        assert_eq!(known_epochs.given(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_silent_for_as_long_as_an_epoch_needs_to_close_vouches_for_nothing() {
        let known_epochs = beating();
        tokio::time::advance(PAUSE_MAX).await;
        assert_eq!(word(known_epochs), [], "the last beat is too old");
        let mut known_epochs = beating();
        tokio::time::advance(PAUSE_MAX).await;
        known_epochs.beat(Instant::now(), PAUSE_MAX);
        assert_eq!(word(known_epochs), [], "it slept, and has not joined again");
        assert_eq!(word(KnownEpochs::default()), []);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_left_its_epoch_vouches_for_nothing() {
        let mut known_epochs = beating();
        known_epochs.leave(AT.partition);
        assert_eq!(word(known_epochs), []);
    }
}
