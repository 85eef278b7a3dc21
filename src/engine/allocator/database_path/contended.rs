//! Counters of the database path that are locked elsewhere, and the requests that wait for them.
//!
//! Each contended counter has a queue and a task apart from the worker, so that its wait for the
//! lock delays no other counter. The task serves the queue until it is empty and ends; what it
//! cannot serve in its epoch it gives back to the worker. Queues are bounded by
//! `allocator.queue_max`, the transactions that wait by [`crate::engine::node::Permits`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use super::batch::{self, Runner, Turn};
use crate::engine::allocator::background_jobs::BackgroundJobs;
use crate::engine::allocator::pending_request::PendingRequest;
use crate::engine::node::Context;
use crate::ledger::{At, LedgerError};
use crate::node::NodeId;

/// The queues of a worker, by the name of their counter. A queue that is here has a task.
#[derive(Clone, Default)]
pub(crate) struct Contended(Arc<Mutex<Queues>>);

type Queues = HashMap<String, VecDeque<PendingRequest>>;

impl Contended {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Puts a request into the queue of a counter that it needs; gives it back if there is none.
    pub(super) fn join(&self, pending: PendingRequest) -> Option<PendingRequest> {
        let mut queues = self.queues();
        let counter = pending.order.counters().find(|counter| queues.contains_key(*counter));
        match counter.and_then(|counter| queues.get_mut(counter)) {
            Some(queue) => {
                queue.push_back(pending);
                None
            }
            None => Some(pending),
        }
    }

    /// Sets requests aside whose counter is locked elsewhere; a queue that is new gets a task.
    pub(super) fn set_aside(
        &self,
        jobs: &BackgroundJobs,
        at: At,
        node: NodeId,
        counter: String,
        requests: Vec<PendingRequest>,
    ) {
        let is_new = {
            let mut queues = self.queues();
            let is_new = !queues.contains_key(&counter);
            queues.entry(counter.clone()).or_default().extend(requests);
            is_new
        };
        if is_new {
            tracing::info!(partition = at.partition, counter, "somebody else holds a counter");
            jobs.wait_aside(at, node, counter, self.clone());
        }
    }

    /// The next requests of a queue; an empty queue ends.
    fn next(&self, counter: &str, max: usize) -> Vec<PendingRequest> {
        let mut queues = self.queues();
        let queue = queues.get_mut(counter).expect("only its task ends a queue");
        let requests: Vec<PendingRequest> = queue.drain(..queue.len().min(max)).collect();
        if requests.is_empty() {
            queues.remove(counter);
        }
        requests
    }

    /// Ends a queue; what was in it.
    pub(crate) fn end(&self, counter: &str) -> impl Iterator<Item = PendingRequest> + use<> {
        self.queues().remove(counter).unwrap_or_default().into_iter()
    }

    /// Serves a queue to its end; requests that have to wait for another epoch or identity.
    pub(crate) async fn serve(
        &self,
        context: &Arc<Context>,
        at: At,
        node: NodeId,
        counter: &str,
    ) -> Vec<PendingRequest> {
        loop {
            let requests = self.next(counter, context.settings.flight_max);
            if requests.is_empty() {
                return requests;
            }
            let partition = at.partition;
            let turn = |turn: Turn<'_>| {
                let Turn::Failed(error) = turn else { return };
                let said = "requests wait for a counter";
                match error {
                    // One lock is one warning, by its event.
                    LedgerError::LockTimeout { .. } => {
                        tracing::debug!(partition, counter, %error, "{said}");
                    }
                    _ => tracing::warn!(partition, counter, %error, said),
                }
            };
            let served = batch::serve(context, at, node, Runner::Aside, requests, turn).await;
            if let Err((error, mut back)) = served {
                // After all of them, the requests that are still queued.
                back.extend(batch::give_back(self.end(counter), &error));
                return back;
            }
        }
    }
}
