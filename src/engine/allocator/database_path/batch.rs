//! Requests of the database path that share one transaction, from its first attempt to its last.
//!
//! Between two attempts the requests are put back: a caller that gives up then gets the answer that
//! no number was taken. Only after a COMMIT of unknown outcome that stays open; the ledger looks
//! for the allocation ids of an earlier attempt before it takes anything (F10).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::retries::Retries;
use crate::engine::allocator::error::unavailable;
use crate::engine::allocator::pending_request::PendingRequest;
use crate::engine::allocator::{AllocError, NumberTaken, Unavailable, replay, reserving};
use crate::engine::node::Context;
use crate::ledger::{At, LedgerError, TakeOutcome, TakeRequest};
use crate::node::NodeId;

/// How long a worker itself waits for a counter that is locked elsewhere; longer waits happen in a
/// separate task.
const LOCK_PROBE: Duration = Duration::from_millis(100);

/// The task that runs the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// The worker, for which others wait: it does not wait for a counter that is locked elsewhere.
    Worker,
    /// A separate task, for a contended counter.
    Aside,
}

/// What happens to requests on their way through their transactions.
pub(super) enum Turn<'e> {
    /// A transaction was committed.
    Committed,
    /// A try failed; another one follows.
    Failed(&'e LedgerError),
    /// Requests were refused after the last try.
    Refused,
    /// The counter that these need is locked elsewhere. In a worker only.
    Contended(String, Vec<PendingRequest>),
}

/// Serves requests in one transaction of a node, or in more where it does not go through.
///
/// # Errors
/// Why their epoch is over, or the node not known any more; with the requests, in their order.
pub(super) async fn serve(
    context: &Arc<Context>,
    at: At,
    node: NodeId,
    runner: Runner,
    requests: Vec<PendingRequest>,
    mut turn: impl FnMut(Turn<'_>),
) -> Result<(), (LedgerError, Vec<PendingRequest>)> {
    let mut parts = vec![Batch { requests }];
    while let Some(mut part) = parts.pop() {
        if part.requests.is_empty() {
            continue;
        }
        let failed = |error: &LedgerError| turn(Turn::Failed(error));
        match part.take(context, at, node, runner, failed).await {
            Ok(outcomes) => {
                turn(Turn::Committed);
                for (pending, outcome) in part.requests.into_iter().zip(outcomes) {
                    answer(context, at, pending, outcome);
                }
            }
            Err(LedgerError::LockTimeout { counter: Some(counter), .. })
                if runner == Runner::Worker =>
            {
                let needing = part.split_off(&counter);
                turn(Turn::Contended(counter, needing));
                parts.push(part);
            }
            // One bad row must not stop the others: each half continues alone, the first one first
            // (F13). Nothing was committed: it is admitted again.
            Err(
                LedgerError::Refused(_)
                | LedgerError::Unfit(_)
                | LedgerError::Conflict(_)
                | LedgerError::SeriesChanged,
            ) if part.requests.len() > 1 => {
                part.put_back();
                let right = part.requests.split_off(part.requests.len() / 2);
                parts.extend([Batch { requests: right }, part]);
            }
            Err(
                error @ (LedgerError::Fenced { .. }
                | LedgerError::NodeGone(_)
                | LedgerError::WentBack(_)),
            ) => {
                // The last part came first.
                parts.push(part);
                let requests = parts.into_iter().rev().flat_map(|part| part.requests);
                let back = give_back(requests, &error);
                return Err((error, back));
            }
            Err(error) => {
                // Only a lost commit leaves it open whether numbers were taken; their records are
                // journaled then, and a retry finds them.
                tracing::error!(partition = at.partition, %error, "giving up on the ledger");
                part.requests.into_iter().for_each(|pending| refuse(pending, &error));
                turn(Turn::Refused);
            }
        }
    }
    Ok(())
}

/// Requests, for another epoch. One that may have its number is refused instead: Redis does not
/// look for allocation ids and would take another one for it (F10).
pub(super) fn give_back(
    requests: impl Iterator<Item = PendingRequest>,
    error: &LedgerError,
) -> Vec<PendingRequest> {
    let (unclear, back): (Vec<_>, Vec<_>) = requests.partition(|pending| pending.maybe_taken);
    for pending in unclear {
        refuse(pending, error);
    }
    back
}

/// The requests of one transaction.
struct Batch {
    requests: Vec<PendingRequest>,
}

impl Batch {
    /// Runs the transaction for a node; again after a failure, as often as its kind allows, and
    /// notes each failure.
    ///
    /// # Errors
    /// The last failure. In a worker also the first `LockTimeout` that names its counter.
    async fn take(
        &mut self,
        context: &Arc<Context>,
        at: At,
        node: NodeId,
        runner: Runner,
        mut troubled: impl FnMut(&LedgerError),
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        let mut retries = Retries::new(context.settings.retry_delay);
        loop {
            let error = match self.attempt(context, at, node, runner).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(error) => error,
            };
            self.requests.iter_mut().for_each(|t| t.maybe_taken |= error.maybe_written());
            let is_named = matches!(error, LedgerError::LockTimeout { counter: Some(_), .. });
            if is_named && runner == Runner::Worker {
                return Err(error);
            }
            context.note_failure(at, &error, self.requests.len());
            let Some(backoff) = retries.after(&error) else { return Err(error) };
            count_retry(context, &error);
            troubled(&error);
            self.put_back();
            backoff.wait().await;
        }
    }

    /// Tries once.
    async fn attempt(
        &mut self,
        context: &Context,
        at: At,
        node: NodeId,
        runner: Runner,
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        let result = match runner {
            Runner::Worker => self.transact(context, at, node, LOCK_PROBE).await,
            Runner::Aside => self.wait(context, at, node).await,
        };
        let outcome = lock_outcome(result.as_ref().err(), runner);
        if let Some(outcome) = outcome.filter(|_| !self.requests.is_empty()) {
            context.metrics.lock_acquisitions.of(outcome).increment(1);
        }
        result
    }

    /// Waits for a contended counter, or polls it from time to time for as long.
    async fn wait(
        &mut self,
        context: &Context,
        at: At,
        node: NodeId,
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        let began = Instant::now();
        loop {
            let place = context.permits.at_counter().await;
            let retry_policy = self.lock_wait(context);
            let lock_wait = if place.is_look { LOCK_PROBE } else { retry_policy };
            let result = self.transact(context, at, node, lock_wait).await;
            let is_held = matches!(&result, Err(LedgerError::LockTimeout { counter: Some(_), .. }));
            if !(is_held && place.is_look && began.elapsed() < retry_policy) {
                return result;
            }
            // A poll is no attempt.
            self.put_back();
            self.requests.iter_mut().for_each(|pending| pending.attempts -= 1);
        }
    }

    /// Runs the transaction once. Requests given up meanwhile are left out.
    async fn transact(
        &mut self,
        context: &Context,
        at: At,
        node: NodeId,
        lock_wait: Duration,
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        self.requests.retain_mut(|pending| pending.admit(&context.metrics));
        if self.requests.is_empty() {
            return Ok(Vec::new());
        }
        let since_us = context.windows_ago_us(1);
        let orders: Vec<TakeRequest> =
            self.requests.iter().map(|pending| order(pending, since_us)).collect();
        let started = Instant::now();
        let result = context.ledger.take(at, node, &orders, lock_wait).await;
        context.metrics.flight_seconds.of("database").record(started.elapsed());
        context.metrics.flight_requests.of("database").record(orders.len() as f64);
        let outcomes = result?.outcomes;
        context.membership.must_not_have_slept(started, node).await?;
        context.membership.availability().hear();
        // What was taken before the ledger went back, and is answered only now, is given to no
        // caller: the processes may have agreed on a ledger without it.
        assert_eq!(outcomes.len(), orders.len(), "one outcome per order");
        // In case that the ledger forgets them (F9).
        let (mut taken, mut found) = (Vec::new(), Vec::new());
        for outcome in &outcomes {
            match outcome {
                TakeOutcome::Taken(entry) => taken.push(entry.clone()),
                TakeOutcome::Found(earlier) => found.extend(earlier.entries()),
                _ => {}
            }
        }
        context.hand_out(node, taken, found)?;
        Ok(outcomes)
    }

    /// A transaction that waits for a second counter holds the first one meanwhile: half as long at
    /// most.
    fn lock_wait(&self, context: &Context) -> Duration {
        let mut counters = self.requests.iter().flat_map(|pending| pending.order.counters());
        let first = counters.next();
        let is_one = counters.all(|counter| Some(counter) == first);
        let lock_timeout = context.lock_timeout;
        if is_one { lock_timeout } else { lock_timeout / 2 }
    }

    fn put_back(&self) {
        self.requests.iter().for_each(PendingRequest::put_back);
    }

    /// Takes those requests out that need a counter.
    fn split_off(&mut self, counter: &str) -> Vec<PendingRequest> {
        self.put_back();
        let requests = std::mem::take(&mut self.requests);
        let needs = |pending: &PendingRequest| pending.order.counters().any(|name| name == counter);
        let (needing, rest) = requests.into_iter().partition(needs);
        self.requests = rest;
        needing
    }
}

fn refuse(pending: PendingRequest, error: &LedgerError) {
    let taken = if pending.maybe_taken { NumberTaken::Maybe } else { NumberTaken::No };
    pending.answer(Err(AllocError::of_ledger(error, taken)));
}

/// The outcome of a transaction's locks; `None` where its failure does not show it.
fn lock_outcome(failure: Option<&LedgerError>, runner: Runner) -> Option<&'static str> {
    match failure {
        None => Some("granted"),
        Some(LedgerError::LockTimeout { counter: Some(_), .. }) if runner == Runner::Worker => {
            Some("contended")
        }
        Some(LedgerError::LockTimeout { .. }) => Some("timeout"),
        Some(_) => None,
    }
}

fn count_retry(context: &Context, error: &LedgerError) {
    let reason = match error {
        LedgerError::LockTimeout { .. } => "lock",
        LedgerError::Conflict(_) => "conflict",
        _ => "connection",
    };
    context.metrics.retries_database.of(reason).increment(1);
}

fn answer(context: &Arc<Context>, at: At, pending: PendingRequest, outcome: TakeOutcome) {
    let answer = match outcome {
        TakeOutcome::Taken(entry) => {
            let metrics = &context.metrics;
            pending.order.served.meter(metrics).issued_database.increment(pending.order.count());
            metrics.request_retries.record(f64::from(pending.retry_count()));
            pending.order.issued(entry, false)
        }
        TakeOutcome::Found(found) => {
            let answer = replay::judge(&pending.order, found)
                .expect("the ledger answers `found` only with a finding");
            if answer.is_ok() {
                pending.order.served.meter(&context.metrics).replayed.increment(1);
            }
            answer
        }
        TakeOutcome::Reserved(reservation) => pending.order.reserved(*reservation, false),
        TakeOutcome::StillHeld => Err(unavailable(Unavailable::Lock, NumberTaken::No)),
        TakeOutcome::SeriesChanging => {
            Err(unavailable(Unavailable::SeriesChanged, NumberTaken::No))
        }
        TakeOutcome::SeriesUnknown { why } => {
            tracing::debug!(why, "nothing is reserved");
            Err(unavailable(Unavailable::SeriesUnread, NumberTaken::No))
        }
        TakeOutcome::NotKeptApart => Err(reserving::not_kept_apart(&pending.order)),
        TakeOutcome::BesideOlder => Err(unavailable(Unavailable::OlderProcess, NumberTaken::No)),
        TakeOutcome::Below { serial, counter_id, value } => {
            let at = (counter_id, value);
            Err(replay::below_start(&pending.order, usize::from(serial), at))
        }
        TakeOutcome::Exhausted { serial } => {
            Err(replay::exhausted(&pending.order, usize::from(serial)))
        }
        TakeOutcome::TooFew { left } => Err(reserving::too_few(left)),
        TakeOutcome::BeforeLast { last_date } => {
            Err(replay::before_last(&pending.order, last_date))
        }
        // A value that a source gives twice is the source's mistake, and no incident.
        TakeOutcome::Collided { number } if pending.order.source().is_some() => {
            let error = pending.order.collided(number);
            tracing::warn!(%error, "a source of numbers gave a value twice");
            context.metrics.external_calls.of("taken").increment(1);
            Err(error)
        }
        TakeOutcome::Collided { number } => {
            let code = &pending.order.served.version.definition.code;
            tracing::error!(number, series = code, "another counter rendered the same number");
            let detail = serde_json::json!({ "number": number, "series": code });
            context.incident("collision", at, detail);
            Err(AllocError::Collided { number })
        }
    };
    pending.answer(answer);
}

fn order(pending: &PendingRequest, since_us: i64) -> TakeRequest {
    TakeRequest {
        record: Arc::clone(&pending.order.record),
        count: pending.order.count(),
        family: pending.order.family.clone(),
        specs: pending.order.specs.clone(),
        question: pending.order.question(since_us),
        retry_count: pending.retry_count(),
        reserve_us: pending.order.reserve_us,
    }
}
