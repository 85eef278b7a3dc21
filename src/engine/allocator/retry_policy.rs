//! How long a background job continues while the ledger fails, and in whose places it tries.
//!
//! A ledger that is known to be away is not tried at all: requests that wait for the job are
//! refused immediately, also those that wait for a place behind jobs that hang.

use std::sync::Arc;

use tokio::sync::SemaphorePermit;
use tokio::task::JoinError;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::engine::node::{BACKOFF_MAX, BACKOFF_MIN, Context, Use};
use crate::ledger::{At, LedgerError};
use crate::task::spawn;

/// Further tries of a job before what waits for it is refused.
const ATTEMPTS_MAX: u32 = 5;

/// The purpose of a job at the ledger, which decides whose permits it waits for.
#[derive(Clone, Copy)]
pub(super) enum Errand {
    /// To write counters; it may wait for their locks.
    Seed,
    /// To read.
    Question,
    /// To write since when a request is asked.
    Moment,
}

impl Errand {
    fn needs(self) -> Use {
        match self {
            Errand::Seed | Errand::Moment => Use::Write,
            Errand::Question => Use::Read,
        }
    }

    async fn place(self, context: &Context) -> SemaphorePermit<'_> {
        match self {
            Errand::Seed => context.permits.seed().await,
            Errand::Question | Errand::Moment => context.permits.question().await,
        }
    }
}

/// The failure of a job for which the ledger was not asked.
pub(super) fn known_to_be_away() -> LedgerError {
    let cause = "it is known to be away".to_owned();
    LedgerError::Unreachable { cause, maybe_written: false }
}

/// One attempt of a job at the ledger, with a permit of its purpose. An attempt that panics fails
/// like a lost connection: the worker learns of it, and what waits for the job is answered.
pub(super) async fn attempt<T: Send + 'static>(
    context: &Context,
    errand: Errand,
    call: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
) -> Result<T, LedgerError> {
    let (availability, needs) = (context.membership.availability(), errand.needs());
    let _place = tokio::select! {
        biased;
        () = availability.until_lacking(needs) => return Err(known_to_be_away()),
        place = errand.place(context) => place,
    };
    if availability.still_lacks(needs).await {
        return Err(known_to_be_away());
    }
    let outcome = spawn(call).await.unwrap_or_else(|failure| {
        note_panic(context, &failure);
        let cause = "a background job failed; see the log".to_owned();
        Err(LedgerError::Unreachable { cause, maybe_written: false })
    });
    if outcome.is_ok() {
        availability.hear();
    }
    outcome
}

/// Notes a job that panicked.
pub(super) fn note_panic(context: &Context, failure: &JoinError) {
    tracing::error!(%failure, "a background job panicked");
    context.metrics.jobs_failed.increment(1);
}

/// How long a job continues while the ledger fails: [`ATTEMPTS_MAX`] further tries; while
/// heartbeats fail, too, until the ledger is back, or is known to be away. A try ends early at a
/// lock, so all that fall into one `database.lock_timeout` count as one.
pub(super) struct RetryPolicy {
    context: Arc<Context>,
    at: At,
    errand: Errand,
    /// Requests, or counters with requests behind them, that the job is for.
    waiting: usize,
    backoff: Backoff,
    tries: u32,
    /// When the current attempts began to wait for a lock.
    locked_since: Instant,
}

impl RetryPolicy {
    pub(super) fn new(context: &Arc<Context>, at: At, errand: Errand, waiting: usize) -> Self {
        let backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
        let (context, locked_since) = (Arc::clone(context), Instant::now());
        RetryPolicy { context, at, errand, waiting, backoff, tries: 0, locked_since }
    }

    /// Tries a job, each time in a place of its errand, until it is done or there were enough
    /// tries.
    pub(super) async fn try_again<T, W>(mut self, job: impl Fn() -> W) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, LedgerError>> + Send + 'static,
    {
        let context = Arc::clone(&self.context);
        loop {
            match attempt(&context, self.errand, job()).await {
                Err(error) if self.another_try(&error).await => {}
                result => return result,
            }
        }
    }

    /// Waits before another try; false when it would be of no use or there were enough.
    pub(super) async fn another_try(&mut self, error: &LedgerError) -> bool {
        self.context.note_failure(self.at, error, self.waiting);
        let is_at_lock = matches!(error, LedgerError::LockTimeout { .. });
        if !is_at_lock || self.locked_since.elapsed() >= self.context.lock_timeout {
            let availability = self.context.membership.availability();
            let is_enough = self.tries >= ATTEMPTS_MAX && availability.unanswered_for().is_none();
            if !error.retry_useful() || is_enough || availability.lacks(self.errand.needs()) {
                return false;
            }
            self.tries += 1;
            self.locked_since = Instant::now();
        }
        self.backoff.wait().await;
        true
    }
}
