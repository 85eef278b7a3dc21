//! Permits for connections of the ledger that wait for locks, one budget for each kind of work: a
//! kind that waits must leave connections for the others (F31). Heartbeat and journal have their
//! own.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::ledger::LedgerSettings;

/// Transactions that may look at the same time whether a contended counter is free again.
const POLLS_MAX: usize = 1;

/// The places of one process.
#[derive(Debug)]
pub struct Permits {
    seeds: Semaphore,
    questions: Semaphore,
    waiters: Semaphore,
    looks: Semaphore,
}

/// A place at a contended counter of the database path.
pub(crate) struct Permit<'p> {
    _permit: SemaphorePermit<'p>,
    /// Whether there is only time for a poll: all places to wait are taken.
    pub(crate) is_look: bool,
}

impl Permits {
    /// As many as the ledger's connections allow.
    #[must_use]
    pub fn new(settings: &LedgerSettings) -> Self {
        Permits {
            seeds: Semaphore::new(settings.seeds_max()),
            questions: Semaphore::new(settings.questions_max()),
            waiters: Semaphore::new(settings.lock_waiters_max()),
            looks: Semaphore::new(POLLS_MAX),
        }
    }

    /// A place for one try of a seed or a raise.
    pub(crate) async fn seed(&self) -> SemaphorePermit<'_> {
        self.seeds.acquire().await.expect("it is never closed")
    }

    /// A place for a question to the journal: it waits behind no seed, which may wait for a lock.
    pub(crate) async fn question(&self) -> SemaphorePermit<'_> {
        self.questions.acquire().await.expect("it is never closed")
    }

    /// A permit to wait for a contended counter, or to poll it in turn with others: those that wait
    /// for counters that are locked for long do not delay others.
    pub(crate) async fn at_counter(&self) -> Permit<'_> {
        let (permit, is_look) = tokio::select! {
            biased;
            permit = self.waiters.acquire() => (permit, false),
            permit = self.looks.acquire() => (permit, true),
        };
        Permit { _permit: permit.expect("it is never closed"), is_look }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_question_waits_behind_no_seed() {
        let permits = Permits::new(&LedgerSettings::default());
        let _seeds = [permits.seed().await, permits.seed().await, permits.seed().await];
        assert_eq!(permits.seeds.available_permits(), 0);
        let _question = permits.question().await;
    }

    #[tokio::test]
    async fn who_finds_no_place_to_wait_looks_in_turn() {
        let settings = LedgerSettings { connections_max: 8, ..LedgerSettings::default() };
        let permits = Permits::new(&settings);
        let waiting = [permits.at_counter().await, permits.at_counter().await];
        assert!(waiting.iter().all(|place| !place.is_look));
        let look = permits.at_counter().await;
        assert!(look.is_look);
        let (next, ()) = tokio::join!(permits.at_counter(), async { drop(look) });
        assert!(next.is_look);
        drop(waiting);
        assert!(!permits.at_counter().await.is_look);
    }
}
