//! Requests of the database path that share one transaction, from its first try to its last.
//!
//! Between two tries the requests are put back: who gives up then is told that no number
//! was taken. Only after a COMMIT of unknown outcome that stays open; the ledger looks for the
//! allocation ids of an earlier try before it takes anything (F10).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::context::Context;
use super::retries::Retries;
use super::ticket::Ticket;
use super::{AllocError, NumberTaken, replay};
use crate::ledger::{At, Entry, Found, LedgerError, TakeOrder, TakeOutcome};
use crate::node::NodeId;

/// How long a worker itself waits for a counter that somebody else holds; longer waits happen
/// beside it.
const LOCK_PROBE: Duration = Duration::from_millis(100);

/// Who runs the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// The worker, for which others wait: it does not wait for a counter that somebody else holds.
    Worker,
    /// A task beside it, for a contended counter.
    Aside,
}

/// What becomes of a batch whose transaction failed for good.
pub(super) enum Failed {
    /// One bad row must not keep the others: each half goes on by itself, the first one first
    /// (F13).
    Halved([Batch; 2]),
    /// Its epoch is over, or its node is not known any more: all of it, for `give_back`.
    EpochOver(Batch),
    /// Its requests are refused.
    Refused,
}

/// The requests.
pub(super) struct Batch {
    pub(super) tickets: Vec<Ticket>,
}

impl Batch {
    /// Requests that wait.
    #[must_use]
    pub(super) fn new(tickets: Vec<Ticket>) -> Self {
        Batch { tickets }
    }

    /// Runs the transaction for a node; again after a failure, as often as its kind allows
    /// (R6.2-R6.4), saying each time what is wrong.
    ///
    /// # Errors
    /// The last failure. In a worker also the first `LockTimeout` that names its counter.
    pub(super) async fn take(
        &mut self,
        context: &Arc<Context>,
        at: At,
        node: NodeId,
        runner: Runner,
        mut troubled: impl FnMut(&LedgerError),
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        let mut retries = Retries::new(&context.settings);
        loop {
            let error = match self.attempt(context, at, node, runner).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(error) => error,
            };
            self.tickets.iter_mut().for_each(|t| t.maybe_taken |= error.maybe_written());
            let is_named = matches!(error, LedgerError::LockTimeout { counter: Some(_), .. });
            if is_named && runner == Runner::Worker {
                return Err(error);
            }
            context.note_failure(at, &error, self.tickets.len());
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
        if let Some(outcome) = outcome.filter(|_| !self.tickets.is_empty()) {
            context.metrics.lock_acquisitions.of(outcome).increment(1);
        }
        result
    }

    /// Waits for a contended counter, or looks at it from time to time for as long.
    async fn wait(
        &mut self,
        context: &Context,
        at: At,
        node: NodeId,
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        let began = Instant::now();
        loop {
            let place = context.places.at_counter().await;
            let patience = self.lock_wait(context);
            let lock_wait = if place.is_look { LOCK_PROBE } else { patience };
            let result = self.transact(context, at, node, lock_wait).await;
            let is_held = matches!(&result, Err(LedgerError::LockTimeout { counter: Some(_), .. }));
            if !(is_held && place.is_look && began.elapsed() < patience) {
                return result;
            }
            // A look counts as no try.
            self.put_back();
            self.tickets.iter_mut().for_each(|ticket| ticket.attempts -= 1);
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
        self.tickets.retain_mut(|ticket| ticket.admit(&context.metrics));
        if self.tickets.is_empty() {
            return Ok(Vec::new());
        }
        let since_us = context.windows_ago_us(1);
        let orders: Vec<TakeOrder> =
            self.tickets.iter().map(|ticket| order(ticket, since_us)).collect();
        let started = Instant::now();
        let result = context.ledger.take(at, node, &orders, lock_wait).await;
        context.metrics.flight_seconds.of("database").record(started.elapsed());
        context.metrics.flight_requests.of("database").record(orders.len() as f64);
        let outcomes = result?.outcomes;
        // What was taken before the ledger went back, and is heard of only now, is nobody's: its
        // users may have agreed on a ledger without it.
        let Some(_right) = context.membership.hand_out(node) else {
            let cause = "the ledger went back meanwhile".to_owned();
            return Err(LedgerError::Unreachable { cause, maybe_written: true });
        };
        assert_eq!(outcomes.len(), orders.len(), "one outcome per order");
        // In case that the ledger forgets them (F9).
        context.journal.keep(node, outcomes.iter().filter_map(taken).cloned().collect());
        context
            .journal
            .keep_found(node, outcomes.iter().filter_map(found).flat_map(Found::entries));
        Ok(outcomes)
    }

    /// Who waits for a second counter holds the first one meanwhile: half as long at most (R6.2).
    fn lock_wait(&self, context: &Context) -> Duration {
        let first = self.tickets.first().map(|ticket| &ticket.order.counters);
        let is_one = self.tickets.iter().all(|ticket| {
            ticket.order.counters.len() == 1 && Some(&ticket.order.counters) == first
        });
        let lock_timeout = context.lock_timeout;
        if is_one { lock_timeout } else { lock_timeout / 2 }
    }

    fn put_back(&self) {
        self.tickets.iter().for_each(Ticket::put_back);
    }

    /// Sorts the batch by the last failure of its transaction.
    #[must_use]
    pub(super) fn fail(mut self, at: At, error: &LedgerError) -> Failed {
        match error {
            LedgerError::Refused(_) | LedgerError::Conflict(_) if self.tickets.len() > 1 => {
                // Nothing was committed: each half is admitted again.
                self.put_back();
                let right = self.tickets.split_off(self.tickets.len() / 2);
                Failed::Halved([self, Batch::new(right)])
            }
            LedgerError::Fenced { .. } | LedgerError::NodeGone(_) | LedgerError::WentBack(_) => {
                Failed::EpochOver(self)
            }
            _ => {
                self.refuse(at, error);
                Failed::Refused
            }
        }
    }

    /// Takes those requests out that need a counter.
    #[must_use]
    pub(super) fn split_off(&mut self, counter: &str) -> Vec<Ticket> {
        self.put_back();
        let tickets = std::mem::take(&mut self.tickets);
        let needs = |ticket: &Ticket| ticket.order.counters.iter().any(|name| name == counter);
        let (needing, rest) = tickets.into_iter().partition(needs);
        self.tickets = rest;
        needing
    }

    /// Answers every request with its outcome.
    pub(super) fn answer(self, context: &Arc<Context>, at: At, outcomes: Vec<TakeOutcome>) {
        for (ticket, outcome) in self.tickets.into_iter().zip(outcomes) {
            answer(context, at, ticket, outcome);
        }
    }

    /// Refuses every request after the last try. Only a lost commit leaves it open whether numbers
    /// were taken; their records are journaled then, and a retry finds them.
    fn refuse(self, at: At, error: &LedgerError) {
        tracing::error!(partition = at.partition, %error, "giving up on the ledger");
        for ticket in self.tickets {
            refuse(ticket, error);
        }
    }

    /// The requests, for another epoch. One that may have its number is refused instead: Redis does
    /// not look for allocation ids and would take another one for it (F10).
    pub(super) fn give_back(self, error: &LedgerError) -> Vec<Ticket> {
        let (unclear, back): (Vec<_>, Vec<_>) =
            self.tickets.into_iter().partition(|ticket| ticket.maybe_taken);
        for ticket in unclear {
            refuse(ticket, error);
        }
        back
    }
}

fn refuse(ticket: Ticket, error: &LedgerError) {
    let taken = if ticket.maybe_taken { NumberTaken::Maybe } else { NumberTaken::No };
    ticket.answer(Err(AllocError::of_ledger(error, taken)));
}

fn taken(outcome: &TakeOutcome) -> Option<&Entry> {
    match outcome {
        TakeOutcome::Taken(entry) => Some(entry),
        _ => None,
    }
}

fn found(outcome: &TakeOutcome) -> Option<&Found> {
    match outcome {
        TakeOutcome::Found(found) => Some(found),
        _ => None,
    }
}

/// What became of a transaction's locks; `None` where its failure says nothing of them.
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

fn answer(context: &Arc<Context>, at: At, ticket: Ticket, outcome: TakeOutcome) {
    let answer = match outcome {
        TakeOutcome::Taken(entry) => {
            let metrics = &context.metrics;
            ticket.order.served.meter(metrics).issued_database.increment(ticket.order.count);
            metrics.request_retries.record(f64::from(ticket.retry_count()));
            ticket.order.issued(entry, false)
        }
        TakeOutcome::Found(found) => {
            let answer = replay::judge(&ticket.order, found)
                .expect("the ledger answers `found` only with a finding");
            if answer.is_ok() {
                ticket.order.served.meter(&context.metrics).replayed.increment(1);
            }
            answer
        }
        TakeOutcome::Exhausted { serial } => {
            Err(replay::exhausted(&ticket.order, usize::from(serial)))
        }
        TakeOutcome::BeforeLast { last_date } => Err(replay::before_last(&ticket.order, last_date)),
        TakeOutcome::Collided { number } => {
            let code = &ticket.order.served.version.definition.code;
            tracing::error!(number, series = code, "another counter rendered the same number");
            let detail = serde_json::json!({ "number": number, "series": code });
            context.incident("collision", at, detail);
            Err(AllocError::Collided { number })
        }
    };
    ticket.answer(answer);
}

fn order(ticket: &Ticket, since_us: i64) -> TakeOrder {
    TakeOrder {
        record: Arc::clone(&ticket.order.record),
        count: ticket.order.count,
        family: ticket.order.family.clone(),
        serials: ticket.order.serials.clone(),
        question: ticket.order.question(since_us),
        retry_count: ticket.retry_count(),
    }
}
