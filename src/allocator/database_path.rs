//! The database path of a lane: waiting requests share one transaction of the ledger.
//!
//! What a transaction took is journaled with it, so a number is handed out only after its row is
//! committed. Requests whose counter somebody else holds go aside: one counter's contention never
//! blocks another (R6.1).

use std::sync::Arc;

use super::Unavailable;
use super::batch::{Batch, Failed, Runner};
use super::lane::{Lane, Standing};
use super::ticket::Ticket;
use crate::ledger::{At, LedgerError, TakeOutcome};

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
        let mut parts = vec![Batch::new(self.next_tickets())];
        while let Some(mut part) = parts.pop() {
            let error = match self.transact(at, &mut part).await {
                Ok(outcomes) => {
                    part.answer(&self.context, at, outcomes);
                    continue;
                }
                Err(LedgerError::LockTimeout { counter: Some(counter), .. }) => {
                    let needing = part.split_off(&counter);
                    self.set_aside(at, counter, needing);
                    parts.push(part);
                    continue;
                }
                Err(error) => error,
            };
            match part.fail(at, &error) {
                Failed::Halved([left, right]) => parts.extend([right, left]),
                Failed::EpochOver(part) => {
                    parts.push(part);
                    for part in parts {
                        self.wait_again(part.give_back(&error));
                    }
                    // The heartbeat sees it too; until then this would go round and round.
                    if matches!(error, LedgerError::WentBack(_)) {
                        self.trouble(Unavailable::Held, &error).await;
                    }
                    return Standing::Nowhere;
                }
                Failed::Refused => self.backoff.reset(),
            }
        }
        Standing::Database(at)
    }

    /// The next requests, but for those whose counter is contended: they join its queue.
    fn next_tickets(&mut self) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        while tickets.len() < self.context.settings.flight_max {
            let Some(ticket) = self.waiting.pop_front() else { break };
            tickets.extend(self.contended.join(ticket));
        }
        tickets
    }

    async fn transact(
        &mut self,
        at: At,
        part: &mut Batch,
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        if part.tickets.is_empty() {
            return Ok(Vec::new());
        }
        let context = Arc::clone(&self.context);
        let say = |error: &LedgerError| self.say_trouble(Unavailable::of_ledger(error), error);
        let outcomes = part.take(&context, at, Runner::Lane, say).await?;
        self.well();
        Ok(outcomes)
    }
}
