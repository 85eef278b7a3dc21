//! The database path of a worker: waiting requests share one transaction of the ledger.
//!
//! What a transaction took is journaled with it, so a number is handed out only after its row is
//! committed. Requests whose counter somebody else holds go aside: one counter's contention never
//! blocks another (R6.1).

use std::sync::Arc;

use super::Unavailable;
use super::batch::{Batch, Failed, Runner};
use super::pending_request::PendingRequest;
use super::worker::{PartitionWorker, Standing};
use crate::ledger::{At, LedgerError, TakeOutcome};
use crate::node::NodeId;

impl PartitionWorker {
    /// Whether nothing may be taken in an epoch of the database any more, or not under this
    /// identity.
    pub(super) fn is_no_place(&self, at: At, node: NodeId) -> bool {
        self.epoch_is_over(at) || self.context.membership.node() != node
    }

    /// One transaction for as many waiting requests as fit. Every try is made under the identity
    /// that found the epoch open: to another one a ledger that went back has confirmed nothing
    /// (F9).
    pub(super) async fn serve_database(&mut self, at: At, node: NodeId) -> Standing {
        self.take_back_questions();
        if self.is_no_place(at, node) {
            return Standing::Nowhere;
        }
        if self.return_is_due(at) {
            return self.offer_to_redis().await;
        }
        let mut parts = vec![Batch::new(self.next_requests())];
        while let Some(mut part) = parts.pop() {
            let error = match self.transact(at, node, &mut part).await {
                Ok(outcomes) => {
                    part.answer(&self.context, at, outcomes);
                    continue;
                }
                Err(LedgerError::LockTimeout { counter: Some(counter), .. }) => {
                    let needing = part.split_off(&counter);
                    self.set_aside(at, node, counter, needing);
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
        Standing::Database(at, node)
    }

    /// The next requests, but for those whose counter is contended: they join its queue.
    fn next_requests(&mut self) -> Vec<PendingRequest> {
        let mut requests = Vec::new();
        while requests.len() < self.context.settings.flight_max {
            let Some(pending) = self.waiting.pop_front() else { break };
            requests.extend(self.contended.join(pending));
        }
        requests
    }

    async fn transact(
        &mut self,
        at: At,
        node: NodeId,
        part: &mut Batch,
    ) -> Result<Vec<TakeOutcome>, LedgerError> {
        if part.requests.is_empty() {
            return Ok(Vec::new());
        }
        let context = Arc::clone(&self.context);
        let say = |error: &LedgerError| self.say_trouble(Unavailable::of_ledger(error), error);
        let outcomes = part.take(&context, at, node, Runner::Worker, say).await?;
        self.well();
        Ok(outcomes)
    }
}
