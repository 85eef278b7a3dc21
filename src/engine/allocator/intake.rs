//! What a worker has in every state: the requests that wait, the reports of background jobs, the
//! partition's state from the heartbeat, and the current failure.
//!
//! Takes no numbers; the paths do.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, MutexGuard};

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::background_jobs::{BackgroundJobs, Done};
use super::error::unavailable;
use super::handed_out::HandedOut;
use super::pending_request::PendingRequest;
use super::status::{SharedStatus, WorkerStatus};
use super::turns::Turns;
use super::{AllocError, NumberTaken, Unavailable};
use crate::backoff::Backoff;
use crate::engine::node::{BACKOFF_MAX, BACKOFF_MIN, Context, News, Use};
use crate::ledger::{At, Partition, PartitionState};
use crate::task::{Stop, until};

/// The intake of one worker.
pub(super) struct Intake {
    /// Starts background jobs.
    pub(super) jobs: BackgroundJobs,
    /// What was handed out, and how much of it is committed.
    pub(super) handed_out: HandedOut,
    /// Waits a moment, longer each time until all is well.
    pub(super) backoff: Backoff,
    context: Arc<Context>,
    partition: u32,
    inbox: mpsc::UnboundedReceiver<PendingRequest>,
    /// Callers take turns: none waits for all that another asked for.
    waiting: Turns<PendingRequest>,
    reports: mpsc::UnboundedReceiver<Done>,
    /// Reports that have arrived.
    done: VecDeque<Done>,
    news: watch::Receiver<News>,
    status: SharedStatus,
}

impl Intake {
    /// Requests come from `inbox`; `status` shows others what is wrong.
    pub(super) fn new(
        context: &Arc<Context>,
        partition: u32,
        inbox: mpsc::UnboundedReceiver<PendingRequest>,
        status: SharedStatus,
    ) -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let caller_queue_max = context.settings.caller_queue_max;
        Intake {
            jobs: BackgroundJobs::new(Arc::clone(context), sender),
            handed_out: HandedOut::new(&context.journal, partition),
            backoff: Backoff::new(BACKOFF_MIN, BACKOFF_MAX),
            context: Arc::clone(context),
            partition,
            inbox,
            waiting: Turns::new(caller_queue_max, PendingRequest::caller),
            reports,
            done: VecDeque::new(),
            news: context.membership.news(),
            status,
        }
    }

    /// Takes in whatever has arrived.
    pub(super) fn pull(&mut self) {
        while let Ok(pending) = self.inbox.try_recv() {
            self.receive(pending);
        }
        while let Ok(done) = self.reports.try_recv() {
            self.take_in(done);
        }
    }

    /// A caller that has as much waiting as it may have is refused here: nothing was taken for it.
    fn receive(&mut self, pending: PendingRequest) {
        if let Err(pending) = self.waiting.push(pending) {
            pending.answer(Err(unavailable(Unavailable::QueueFull, NumberTaken::No)));
        }
    }

    fn take_in(&mut self, done: Done) {
        self.jobs.take_back();
        self.done.push_back(done);
    }

    /// Waits for anything to happen, or until a moment. Each branch is safe to drop.
    pub(super) async fn idle(&mut self, look_at: Option<Instant>, stop: &mut Stop) {
        tokio::select! {
            pending = self.inbox.recv() => match pending {
                Some(pending) => self.receive(pending),
                // The allocator is gone: only the stop signal is left to wait for.
                None => stop.requested().await,
            },
            Some(done) = self.reports.recv() => self.take_in(done),
            _ = self.news.changed() => {}
            () = self.handed_out.progressed() => {}
            () = until(look_at), if look_at.is_some() => {}
            () = stop.requested() => {}
        }
    }

    /// Waits for a report, or a moment.
    pub(super) async fn await_report(&mut self) {
        tokio::select! {
            Some(done) = self.reports.recv() => self.take_in(done),
            () = self.backoff.wait() => {}
        }
    }

    /// Whether requests or reports have arrived.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.done.is_empty()
    }

    /// How many requests wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The request that waits first.
    pub(super) fn next_request(&mut self) -> Option<PendingRequest> {
        self.waiting.pop()
    }

    /// Puts requests back to the front, in their order.
    pub(super) fn wait_again(&mut self, requests: Vec<PendingRequest>) {
        for pending in requests.into_iter().rev() {
            pending.cancellation.put_back();
            self.waiting.push_first(pending);
        }
    }

    /// Requests that were parked wait behind the others.
    pub(super) fn wait_behind(&mut self, requests: Option<Vec<PendingRequest>>) {
        for pending in requests.into_iter().flatten() {
            self.waiting.push_again(pending);
        }
    }

    /// The next report that has arrived.
    pub(super) fn next_report(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    /// Answers those who only asked the journal for an earlier number; requests that were there, or
    /// set aside, when their epoch ended wait again.
    pub(super) fn answer_questions(&mut self) {
        for done in std::mem::take(&mut self.done) {
            match done {
                Done::Asked { requests, result, .. }
                    if requests.iter().all(PendingRequest::is_question) =>
                {
                    match result {
                        Ok(found) => {
                            for (pending, found) in std::iter::zip(requests, found) {
                                pending.answer_question(found, &self.context.metrics);
                            }
                        }
                        Err(error) => {
                            for pending in requests {
                                pending.answer(Err(AllocError::of_ledger(&error, NumberTaken::No)));
                            }
                        }
                    }
                }
                other => self.done.push_back(other),
            }
        }
        self.take_back_questions();
    }

    /// Requests that were at the journal or set aside when their epoch ended wait again.
    pub(super) fn take_back_questions(&mut self) {
        while let Some(done) = self.next_report() {
            if let Done::Asked { requests, .. } | Done::Aside { requests } = done {
                self.wait_again(requests);
            }
        }
    }

    /// The row as the last heartbeat showed it.
    fn row(&self) -> Option<Partition> {
        self.news.borrow().iter().find(|row| row.partition == self.partition).cloned()
    }

    /// Whether the partition is known not to be held.
    pub(super) fn is_released(&self) -> bool {
        self.row().is_some_and(|row| row.state != PartitionState::Held)
    }

    /// Whether the partition should be on the database, by an operator's word or lent to it.
    pub(super) fn is_for_database(&self) -> bool {
        self.row().is_some_and(|row| row.is_for_database())
    }

    /// Whether the ledger has left an epoch.
    pub(super) fn epoch_is_over(&self, at: At) -> bool {
        let is_over = |row: &&Partition| row.epoch > at.epoch || row.state == PartitionState::Held;
        if self.context.membership.ledger_went_back() {
            return true;
        }
        let rows = self.news.borrow();
        rows.iter().find(|row| row.partition == at.partition).as_ref().is_some_and(is_over)
    }

    /// Notes a failure, for requests that give up waiting, and waits a moment. There is no wait for
    /// a ledger that is known to be away.
    pub(super) async fn trouble(&mut self, why: Unavailable, error: &(dyn Display + Sync)) {
        self.log_failure(why, error);
        if why == Unavailable::Ledger && self.cannot_commit() {
            self.refuse_all(why);
        }
        self.waiting.retain(|pending| !pending.cancellation.is_given_up());
        self.backoff.wait().await;
    }

    /// Whether the ledger is known to take no writes.
    pub(super) fn cannot_commit(&self) -> bool {
        self.context.membership.availability().lacks(Use::Write)
    }

    /// Notes a failure, for requests that give up waiting.
    pub(super) fn log_failure(&self, why: Unavailable, error: &(dyn Display + Sync)) {
        let before = self.status().trouble.replace(why);
        // Logged once, not at each attempt.
        if before == Some(why) {
            tracing::debug!(partition = self.partition, ?why, %error, "still cannot issue");
        } else {
            tracing::warn!(partition = self.partition, ?why, %error, "cannot issue for now");
        }
    }

    /// Nothing is wrong (any more).
    pub(super) fn well(&mut self) {
        self.backoff.reset();
        self.status().trouble = None;
    }

    /// Answers all waiting requests that they get no number now: none of them took anything.
    pub(super) fn refuse_all(&mut self, why: Unavailable) {
        while let Some(pending) = self.waiting.pop() {
            pending.answer(Err(unavailable(why, NumberTaken::No)));
        }
    }

    /// Refuses all waiting requests, and waits a moment.
    pub(super) async fn refuse(&mut self, why: Unavailable, remedy: &str) {
        self.refuse_all(why);
        self.trouble(why, &remedy).await;
    }

    /// What others see of the worker.
    pub(super) fn status(&self) -> MutexGuard<'_, WorkerStatus> {
        self.status.lock().expect("no holder of this lock panics")
    }
}
