//! How a caller waits for its answer: until it comes, until its own time is over, or until this
//! process knows that it cannot serve the request.
//!
//! Only the wait ends. What was sent continues, and a number that it took is journaled: a retry
//! with the same document or key finds it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::cancellation::CancellationState;
use super::error::unavailable;
use super::pending_request::PendingRequest;
use super::{AllocError, Allocator, NumberTaken, Unavailable, WorkerHandle};

/// A request that waits for less than this is left alone; a longer one ends once it is known that
/// no worker can serve it.
const UNDISTURBED: Duration = Duration::from_secs(1);

/// Time between two polls for a request that continues to wait.
const POLL_PERIOD: Duration = Duration::from_millis(250);

/// Gives a request up when its caller goes away.
struct Waiter(Arc<CancellationState>);

impl Waiter {
    /// Gives up, and returns whether a number may have been taken.
    fn taken(&self) -> NumberTaken {
        if self.0.give_up() { NumberTaken::No } else { NumberTaken::Maybe }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

impl Allocator {
    /// Hands a request to a worker, and waits for its answer until a time. Only the wait is
    /// bounded: the flight itself continues and its records are journaled.
    pub(super) async fn serve<T>(
        &self,
        worker: &WorkerHandle,
        pending: PendingRequest,
        mut answer: oneshot::Receiver<Result<T, AllocError>>,
        (is_durable, by): (bool, Instant),
    ) -> Result<T, AllocError> {
        let waiter = Waiter(Arc::clone(&pending.cancellation));
        if worker.inbox.send(pending).is_err() {
            return Err(unavailable(Unavailable::Stopping, NumberTaken::No));
        }
        let early = by.min(Instant::now() + UNDISTURBED);
        let mut answered = timeout_at(early, &mut answer).await;
        if answered.is_err() && early < by {
            // Boxed: few requests wait for long.
            let waited = Box::pin(async {
                tokio::select! {
                    biased;
                    answered = timeout_at(by, &mut answer) => Ok(answered),
                    refusal = self.hopeless(worker, &waiter, is_durable) => Err(refusal),
                }
            });
            answered = waited.await?;
        }
        match answered {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(unavailable(Unavailable::Stopping, waiter.taken())),
            Err(_) => Err(self.timed_out(worker.trouble(), waiter.taken())),
        }
    }

    /// Waits until no worker can serve a request, and gives it up. A request that was tried at the
    /// ledger has its further attempts there; one whose flight only this process cannot ask for any
    /// more has a better chance at another.
    async fn hopeless(
        &self,
        worker: &WorkerHandle,
        waiter: &Waiter,
        is_durable: bool,
    ) -> AllocError {
        loop {
            match worker.refuses(&self.shared.context, is_durable) {
                Some(why @ Unavailable::Redis) => return unavailable(why, waiter.taken()),
                Some(why) if waiter.0.give_up_untried() => {
                    return unavailable(why, NumberTaken::No);
                }
                _ => tokio::time::sleep(POLL_PERIOD).await,
            }
        }
    }

    /// The answer to a request that ran out of time: the failure, where one is known.
    pub(super) fn timed_out(&self, trouble: Option<Unavailable>, taken: NumberTaken) -> AllocError {
        // Where no failure is noted, a long wait is a wait for the ledger.
        let unanswered = self.shared.context.membership.availability().unanswered_for();
        match trouble.or(unanswered.map(|_| Unavailable::Ledger)) {
            Some(why) => unavailable(why, taken),
            None => AllocError::TimedOut { taken },
        }
    }
}
