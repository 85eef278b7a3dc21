//! The database path of a worker: waiting requests share one transaction of the ledger.
//!
//! What a transaction took is journaled with it, so a number is handed out only after its row is
//! committed. Requests whose counter is locked elsewhere are set aside: one counter's contention
//! never blocks another.

mod batch;
mod contended;
mod retries;

pub(super) use contended::Contended;

use std::sync::Arc;

use tokio::time::Instant;

use super::Unavailable;
use super::intake::Intake;
use super::pending_request::PendingRequest;
use crate::engine::node::Context;
use crate::ledger::{At, LedgerError};
use crate::node::NodeId;
use batch::{Runner, Turn};

/// What a worker keeps of the database path, over all epochs.
pub(super) struct DatabasePath {
    context: Arc<Context>,
    contended: Contended,
    /// When Redis was last offered the partition.
    return_tried: Option<Instant>,
}

impl DatabasePath {
    /// Nothing is contended yet.
    pub(super) fn new(context: &Arc<Context>) -> Self {
        let (context, contended) = (Arc::clone(context), Contended::default());
        DatabasePath { context, contended, return_tried: None }
    }

    /// Whether there is something to do in an epoch apart from waiting requests.
    pub(super) fn has_work(&self, intake: &Intake, at: At, node: NodeId) -> bool {
        self.is_no_place(intake, at, node) || self.return_is_due(intake, at)
    }

    /// Whether nothing may be taken in an epoch of the database any more, or not under this
    /// identity.
    pub(super) fn is_no_place(&self, intake: &Intake, at: At, node: NodeId) -> bool {
        intake.epoch_is_over(at) || self.context.membership.node() != node
    }

    /// Whether Redis should take a partition of the database (again): every live node has seen the
    /// same healthy data set for `redis.return_after`.
    pub(super) fn return_is_due(&self, intake: &Intake, at: At) -> bool {
        let after = self.context.settings.return_after;
        let is_fresh = self.return_tried.is_some_and(|tried| tried.elapsed() < after);
        if self.context.redis_of(at.partition).is_none() || is_fresh || intake.is_for_database() {
            return false;
        }
        match self.context.redis_health.healthy_for(at.partition) {
            Some((incarnation, period)) if period >= after => {
                self.context.cluster_health.agree_on(at.partition, &incarnation, after)
            }
            _ => false,
        }
    }

    /// Notes that Redis was offered the partition just now.
    pub(super) fn note_return(&mut self) {
        self.return_tried = Some(Instant::now());
    }

    /// One transaction for as many waiting requests as fit; false when they have to wait for
    /// another epoch or identity. Every try is made under the identity that found the epoch open:
    /// to another one a ledger that went back has confirmed nothing (F9).
    pub(super) async fn serve(&self, intake: &mut Intake, at: At, node: NodeId) -> bool {
        let requests = self.next_requests(intake, at);
        let turn = |turn: Turn<'_>| match turn {
            Turn::Failed(error) => intake.log_failure(Unavailable::of_ledger(error), error),
            Turn::Committed => intake.well(),
            Turn::Refused => intake.backoff.reset(),
            Turn::Contended(counter, requests) => {
                self.contended.set_aside(&intake.jobs, at, node, counter, requests);
            }
        };
        let served = batch::serve(&self.context, at, node, Runner::Worker, requests, turn).await;
        let Err((error, back)) = served else { return true };
        intake.wait_again(back);
        // The heartbeat sees it too; until then this would go round and round.
        if matches!(error, LedgerError::WentBack(_)) {
            intake.trouble(Unavailable::Held, &error).await;
        }
        false
    }

    /// The next requests, but for those whose counter is contended: they join its queue. Those that
    /// only ask for an earlier number go to the journal.
    fn next_requests(&self, intake: &mut Intake, at: At) -> Vec<PendingRequest> {
        let (mut requests, mut questions) = (Vec::new(), Vec::new());
        while requests.len() + questions.len() < self.context.settings.flight_max {
            let Some(mut pending) = intake.next_request() else { break };
            if !pending.is_question() {
                requests.extend(self.contended.join(pending));
            } else if pending.admit(&self.context.metrics) {
                questions.push(pending);
            }
        }
        if !questions.is_empty() {
            intake.jobs.ask(at, questions);
        }
        requests
    }
}
