//! How often, and after which waits, a transaction of the database path is tried again.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::engine::node::{BACKOFF_MAX, BACKOFF_MIN};
use crate::ledger::LedgerError;

/// Further tries after a lock that was not granted.
const LOCK_ATTEMPTS: u32 = 5;
/// Further tries after a deadlock or a serialisation failure.
const CONFLICT_ATTEMPTS: u32 = 2;
/// Further tries after the ledger was lost, or failed.
const CONNECTION_ATTEMPTS: u32 = 3;

/// The further tries that the requests of one transaction have left, by what kept it from
/// committing.
#[derive(Clone, Debug)]
pub(super) struct Retries {
    /// Locks not granted.
    lock: Budget,
    /// Deadlocks and serialisation failures.
    conflict: Budget,
    /// Lost connections, and a ledger that fails.
    connection: Budget,
}

#[derive(Clone, Debug)]
struct Budget {
    backoff: Backoff,
    attempts_max: u32,
}

impl Retries {
    /// Those of a request that has had none, the first after `delay` (`retry.delay`).
    #[must_use]
    pub(super) fn new(delay: Duration) -> Self {
        let doubling = |attempts_max| {
            // Bounded by the number of attempts.
            let backoff = Backoff::new(delay, delay.saturating_mul(1_u32 << attempts_max));
            Budget { backoff, attempts_max }
        };
        let conflict = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
        Retries {
            lock: doubling(LOCK_ATTEMPTS),
            conflict: Budget { backoff: conflict, attempts_max: CONFLICT_ATTEMPTS },
            connection: doubling(CONNECTION_ATTEMPTS),
        }
    }

    /// The wait before another try; `None` when there were enough, or none would help.
    pub(super) fn after(&mut self, error: &LedgerError) -> Option<&mut Backoff> {
        let budget = match error {
            LedgerError::LockTimeout { .. } => &mut self.lock,
            LedgerError::Conflict(_) => &mut self.conflict,
            LedgerError::Unreachable { .. } | LedgerError::Fault(_) => &mut self.connection,
            _ => return None,
        };
        let is_left = budget.backoff.attempts() < budget.attempts_max;
        is_left.then_some(&mut budget.backoff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::node::ProcessSettings;

    fn retries() -> Retries {
        Retries::new(ProcessSettings::default().retry_delay)
    }

    /// The waits after an error, in seconds, until the tries are used up.
    async fn waits(error: &LedgerError) -> Vec<f64> {
        let mut retries = retries();
        let mut waits = Vec::new();
        while let Some(backoff) = retries.after(error) {
            let started = tokio::time::Instant::now();
            backoff.wait().await;
            waits.push(started.elapsed().as_secs_f64());
        }
        waits
    }

    #[tokio::test(start_paused = true)]
    async fn each_kind_of_failure_has_the_tries_and_waits_that_are_asked_of_it() {
        let cause = String::new;
        let lock = LedgerError::LockTimeout { cause: cause(), counter: None };
        assert_eq!(waits(&lock).await, [1.0, 2.0, 4.0, 8.0, 16.0]);
        let connection = LedgerError::Unreachable { cause: cause(), maybe_written: false };
        assert_eq!(waits(&connection).await, [1.0, 2.0, 4.0]);
        assert_eq!(waits(&LedgerError::Conflict(cause())).await.len(), 2);
        assert_eq!(waits(&LedgerError::Fault(cause())).await, [1.0, 2.0, 4.0]);
        // Others wait behind a request that may itself be to blame.
        assert!(waits(&LedgerError::Unfit(cause())).await.is_empty());
        assert!(waits(&LedgerError::Refused(cause())).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn one_kind_does_not_use_up_the_tries_of_another() {
        let mut retries = retries();
        let conflict = LedgerError::Conflict(String::new());
        while let Some(backoff) = retries.after(&conflict) {
            backoff.wait().await;
        }
        let lock = LedgerError::LockTimeout { cause: String::new(), counter: None };
        let started = tokio::time::Instant::now();
        retries.after(&lock).expect("its own tries").wait().await;
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }
}
