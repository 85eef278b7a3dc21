//! Reads the ledger before a request is refused for what this process does not know: a series, a
//! variable, a code of a table may have been saved a moment ago.
//!
//! Concurrent refusals share a read: there is one at a time, and no more than [`POLL_SPACING`]
//! allows.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Allocator;

/// Shortest time between the beginnings of two reads: 50 in a second.
const POLL_SPACING: Duration = Duration::from_millis(20);

/// Longest that a refusal waits for a read.
const POLL_WAIT_MAX: Duration = Duration::from_secs(1);

/// The reads of a process.
#[derive(Debug, Default)]
pub(super) struct Polls(Mutex<Last>);

/// The last read: when it began, and whether the ledger answered.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    began: Option<Instant>,
    is_answered: bool,
}

impl Polls {
    /// Whether a read that began after a moment was answered, possibly one of another task; false
    /// where none was until `by`.
    async fn since<L: Future<Output = bool>>(
        &self,
        moment: Instant,
        by: Instant,
        look: impl FnOnce() -> L,
    ) -> bool {
        let Ok(mut last) = timeout_at(by, self.0.lock()).await else { return false };
        if last.began.is_some_and(|began| began >= moment) {
            return last.is_answered;
        }
        if let Some(began) = last.began {
            sleep_until(began + POLL_SPACING).await;
        }
        *last = Last { began: Some(Instant::now()), is_answered: false };
        last.is_answered = timeout_at(by, look()).await.unwrap_or(false);
        last.is_answered
    }
}

impl Allocator {
    /// Whether this process knows all that was saved until now. False where the ledger does not
    /// answer in a second.
    pub async fn knows_all(&self) -> bool {
        let now = Instant::now();
        self.knows_all_since(now, now + POLL_WAIT_MAX).await
    }

    /// Whether this process knows all that was saved before a moment, after a new read. False where
    /// the ledger does not answer in time.
    pub(super) async fn knows_all_since(&self, moment: Instant, by: Instant) -> bool {
        let by = by.min(Instant::now() + POLL_WAIT_MAX);
        let look = || {
            let allocator = self.clone();
            // Callers may go away; ledger work is never cancelled.
            let looking = tokio::spawn(async move { allocator.refresh_catalog().await });
            async { matches!(looking.await, Ok(Ok(()))) }
        };
        self.shared.polls.since(moment, by, look).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_refusals_shares_its_looks_and_these_are_spaced() {
        let (polls, begun) = (Polls::default(), AtomicUsize::new(0));
        let ask = async |answer: bool| {
            let (now, look) = (Instant::now(), async || {
                begun.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(5)).await;
                answer
            });
            polls.since(now, now + POLL_WAIT_MAX, look).await
        };
        let all = join_all((0..1_000).map(|_| ask(true))).await;
        assert!(all.into_iter().all(|answered| answered));
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        // Each caller that comes after the last read gets another one, in turn.
        let started = Instant::now();
        for _ in 0..100 {
            assert!(ask(true).await);
        }
        assert_eq!(begun.load(Ordering::Relaxed), 101);
        assert!(started.elapsed() >= POLL_SPACING * 99);
        // A ledger that does not answer is asked once for all callers.
        let all = join_all((0..1_000).map(|_| ask(false))).await;
        assert!(!all.into_iter().any(|answered| answered));
        assert_eq!(begun.load(Ordering::Relaxed), 102);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_waits_no_longer_than_its_time_for_a_look() {
        let (polls, now) = (Polls::default(), Instant::now());
        let by = now + Duration::from_millis(70);
        let never = std::future::pending::<bool>;
        let all = join_all((0..10).map(|_| polls.since(now, by, never))).await;
        assert!(!all.into_iter().any(|answered| answered));
        assert_eq!(now.elapsed(), Duration::from_millis(70));
    }
}
