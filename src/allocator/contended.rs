//! Counters of the database path that somebody else holds, and the requests that wait for them.
//!
//! Each contended counter has a queue and a task of its own beside the worker, so that its wait for
//! the lock keeps no other counter waiting (R6.1). The task serves the queue until it is empty and
//! goes; what it cannot serve in its epoch it gives back to the worker. Queues are bounded by
//! `allocator.queue_max`, the transactions that wait by [`crate::process::Places`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use super::batch::{Batch, Failed, Runner};
use super::pending_request::PendingRequest;
use super::worker::PartitionWorker;
use crate::ledger::{At, LedgerError};
use crate::node::NodeId;
use crate::process::Context;

/// The queues of a worker, by the name of their counter. A queue that is here has a task.
#[derive(Clone, Default)]
pub(super) struct Contended(Arc<Mutex<Queues>>);

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

    /// Adds requests to a counter's queue; true where that is new and needs a task.
    fn add(&self, counter: &str, requests: Vec<PendingRequest>) -> bool {
        let mut queues = self.queues();
        let is_new = !queues.contains_key(counter);
        queues.entry(counter.to_owned()).or_default().extend(requests);
        is_new
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
    pub(super) fn end(&self, counter: &str) -> impl Iterator<Item = PendingRequest> + use<> {
        self.queues().remove(counter).unwrap_or_default().into_iter()
    }

    /// Serves a queue to its end; requests that have to wait for another epoch or identity.
    pub(super) async fn serve(
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
            let mut parts = vec![Batch::new(requests)];
            while let Some(mut part) = parts.pop() {
                let partition = at.partition;
                let say = |error: &LedgerError| {
                    tracing::warn!(partition, counter, %error, "requests wait for a counter");
                };
                let error = match part.take(context, at, node, Runner::Aside, say).await {
                    Ok(outcomes) => {
                        part.answer(context, at, outcomes);
                        continue;
                    }
                    Err(error) => error,
                };
                match part.fail(at, &error) {
                    Failed::Halved([left, right]) => parts.extend([right, left]),
                    Failed::EpochOver(part) => {
                        parts.push(part);
                        let queue = Batch::new(self.end(counter).collect());
                        // The last part came first; behind all of them, who still queues.
                        let back = parts.into_iter().rev().chain([queue]);
                        return back.flat_map(|part| part.give_back(&error)).collect();
                    }
                    Failed::Refused => {}
                }
            }
        }
    }
}

impl PartitionWorker {
    /// Sets requests aside whose counter somebody else holds.
    pub(super) fn set_aside(
        &mut self,
        at: At,
        node: NodeId,
        counter: String,
        requests: Vec<PendingRequest>,
    ) {
        if self.contended.add(&counter, requests) {
            tracing::info!(partition = at.partition, counter, "somebody else holds a counter");
            self.jobs.wait_aside(at, node, counter, self.contended.clone());
        }
    }
}
