//! The database path of a lane: waiting requests share one transaction of the ledger.
//!
//! What a transaction took is journaled with it, so a number is handed out only after its row is
//! committed. A transaction of unknown outcome is run again with the same allocation ids: the
//! ledger looks for them first (F10).

use std::sync::Arc;

use super::lane::{Lane, Standing, unavailable};
use super::ticket::Ticket;
use super::{AllocError, NumberTaken, Unavailable, replay};
use crate::ledger::{At, LedgerError, TakeOrder, TakeOutcome};

impl Lane {
    /// One transaction for as many waiting requests as fit.
    pub(super) async fn serve_database(&mut self, at: At) -> Standing {
        self.take_back_questions();
        if self.epoch_is_over(at) {
            return Standing::Nowhere;
        }
        if self.return_is_due(at) {
            return self.offer_to_redis().await;
        }
        let mut tickets = Vec::new();
        while tickets.len() < self.context.settings.flight_max {
            let Some(mut ticket) = self.waiting.pop_front() else { break };
            if ticket.board() {
                tickets.push(ticket);
            }
        }
        let mut parts = vec![tickets];
        while let Some(mut part) = parts.pop() {
            match self.transact(at, &part).await {
                Ok(outcomes) => {
                    self.keep(&outcomes);
                    for (ticket, outcome) in part.into_iter().zip(outcomes) {
                        self.answer_taken(ticket, outcome);
                    }
                }
                Err(LedgerError::Refused(reason)) if part.len() == 1 => {
                    let ticket = part.remove(0);
                    tracing::error!(reason, "the ledger refuses a request");
                    ticket.answer(Err(AllocError::Field { field: "request", reason }));
                }
                Err(LedgerError::Refused(_)) => {
                    // One bad row must not keep the others: halve until it is alone (F13).
                    let right = part.split_off(part.len() / 2);
                    parts.push(right);
                    parts.push(part);
                }
                Err(
                    error @ (LedgerError::Fenced { .. }
                    | LedgerError::NodeGone(_)
                    | LedgerError::WentBack(_)),
                ) => {
                    parts.push(part);
                    for part in parts {
                        self.wait_again(part);
                    }
                    // The heartbeat sees it too; until then this would go round and round.
                    if matches!(error, LedgerError::WentBack(_)) {
                        self.trouble(Unavailable::Held, &error).await;
                    }
                    return Standing::Nowhere;
                }
                Err(error) => self.give_up(part, &error),
            }
        }
        Standing::Database(at)
    }

    /// Runs one transaction, again while the ledger is busy or away: `retry.attempts_max` times.
    async fn transact(
        &mut self,
        at: At,
        tickets: &[Ticket],
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        if tickets.is_empty() {
            return Ok(Vec::new());
        }
        let since_us = self.context.window_start_us();
        let orders: Vec<TakeOrder> = tickets.iter().map(|ticket| order(ticket, since_us)).collect();
        let node = self.context.membership.node();
        loop {
            let started = tokio::time::Instant::now();
            let result = self.context.ledger.take(at, node, &orders).await;
            self.context.metrics.flight_seconds.record(started.elapsed());
            self.context.metrics.flight_requests.record(orders.len() as f64);
            match result {
                Ok(taken) => {
                    assert_eq!(taken.outcomes.len(), orders.len(), "one outcome per order");
                    self.well();
                    return Ok(taken.outcomes);
                }
                Err(error)
                    if error.retry_useful()
                        && self.backoff.attempts() < self.context.settings.retry_attempts_max =>
                {
                    self.trouble(Unavailable::Ledger, &error).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Remembers what was taken, in case that the ledger forgets it (F9).
    fn keep(&self, outcomes: &[TakeOutcome]) {
        let taken = |outcome: &TakeOutcome| match outcome {
            TakeOutcome::Taken(entry) => Some(entry.clone()),
            _ => None,
        };
        let entries = outcomes.iter().filter_map(taken).collect();
        self.context.journal.keep(self.context.membership.node(), entries);
    }

    fn answer_taken(&mut self, ticket: Ticket, outcome: TakeOutcome) {
        let answer = match outcome {
            TakeOutcome::Taken(entry) => {
                self.context.metrics.issued_database.increment(ticket.order.count);
                ticket.order.issued(entry, false)
            }
            TakeOutcome::Found(found) => {
                let answer = replay::judge(&ticket.order, found)
                    .expect("the ledger answers `found` only with a finding");
                if answer.is_ok() {
                    self.context.metrics.replayed.increment(1);
                }
                answer
            }
            TakeOutcome::Exhausted { serial } => {
                Err(replay::exhausted(&ticket.order, usize::from(serial)))
            }
            TakeOutcome::Collided { number } => {
                let code = &ticket.order.served.version.definition.code;
                tracing::error!(number, series = code, "another counter rendered the same number");
                Err(AllocError::Collided { number })
            }
        };
        ticket.answer(answer);
    }

    /// Refuses requests after the last try. Only a lost commit leaves it open whether numbers were
    /// taken; their records are journaled then, and a retry finds them.
    fn give_up(&mut self, tickets: Vec<Ticket>, error: &LedgerError) {
        tracing::error!(partition = self.partition, %error, "giving up on the ledger");
        let taken = match error {
            LedgerError::Unreachable { maybe_written: true, .. } => NumberTaken::Maybe,
            _ => NumberTaken::No,
        };
        let why = match error {
            LedgerError::Busy(_) => return self.time_out(tickets),
            _ => Unavailable::Ledger,
        };
        for ticket in tickets {
            ticket.answer(Err(unavailable(why, taken)));
        }
        self.backoff.reset();
    }

    /// Locks were not granted in time (R6.2).
    fn time_out(&mut self, tickets: Vec<Ticket>) {
        for ticket in tickets {
            ticket.answer(Err(AllocError::TimedOut { taken: NumberTaken::No }));
        }
        self.backoff.reset();
    }
}

fn order(ticket: &Ticket, since_us: i64) -> TakeOrder {
    TakeOrder {
        record: Arc::clone(&ticket.order.record),
        count: ticket.order.count,
        serials: ticket.order.serials.clone(),
        question: ticket.order.question(since_us),
        retry_count: ticket.retry_count(),
    }
}
