//! The worker of one partition: a single task through which each of its numbers passes.
//!
//! ```text
//!            join                      fenced, regressed, gone, newer epoch
//!   Away ───────────▶ Redis (lease) ──────────────────────────────────▶ Away (suspicion)
//!    │  ╲                                                                │ recovery
//!    │   ╲──────────▶ Database ────── fenced, redis is back ──────────▶ Away
//!    ╰──────────────▶ Held (the ledger went back; an operator acts)
//! ```
//!
//! Because one task does everything, there is one moment of handing out (F11): the worker moves a
//! flight's records into the journal queue, then answers; it leaves an epoch between two such
//! moments, never within one. The task is never cancelled.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::acknowledgements::PendingAcknowledgements;
use super::background_jobs::{BackgroundJobs, Done};
use super::contended::Contended;
use super::epoch_lease::EpochLease;
use super::headroom::LeastHeadroom;
use super::joining::HELD;
use super::pending_request::PendingRequest;
use super::status::SharedStatus;
use super::{AllocError, NumberTaken, Unavailable};
use crate::backoff::Backoff;
use crate::ledger::{At, Partition, PartitionState};
use crate::node::NodeId;
use crate::process::{Context, News};
use crate::task::Stop;

/// Why a worker left an epoch: it must not go back to it without a recovery.
#[derive(Clone, Debug)]
pub(super) struct Suspicion {
    /// The epoch.
    pub at: At,
    /// What was seen.
    pub cause: String,
    /// The epoch that Redis showed, where it showed one.
    pub redis_epoch: Option<u64>,
    /// Whether the epoch itself is in doubt; a node that was merely barred joins it again.
    pub epoch_in_doubt: bool,
    /// Whether the node's identity is spent: barred, or its outbox does not take entries any more.
    pub identity_spent: bool,
}

impl Suspicion {
    /// The epoch must end.
    pub(super) fn of_epoch(at: At, cause: String) -> Self {
        Suspicion { at, cause, redis_epoch: None, epoch_in_doubt: true, identity_spent: false }
    }

    /// Others have barred this node: it takes a new identity and joins again (F14).
    pub(super) fn barred(at: At) -> Self {
        let cause = "barred".to_owned();
        Suspicion { at, cause, redis_epoch: None, epoch_in_doubt: false, identity_spent: true }
    }
}

/// Where a worker stands.
#[derive(Default)]
pub(super) enum Standing {
    /// In no epoch.
    #[default]
    Nowhere,
    /// Out of an epoch that needs a recovery.
    Away(Suspicion),
    /// Participant of an epoch that Redis owns.
    Redis(Box<EpochLease>),
    /// In an epoch that the ledger owns, and the identity that came into it.
    Database(At, NodeId),
    /// The partition is held.
    Held,
}

/// The worker of a partition.
pub(super) struct PartitionWorker {
    pub(super) context: Arc<Context>,
    pub(super) partition: u32,
    pub(super) waiting: VecDeque<PendingRequest>,
    pub(super) jobs: BackgroundJobs,
    pub(super) done: Vec<Done>,
    pub(super) contended: Contended,
    /// Last flight whose records went to the journal queue.
    pub(super) handed: u64,
    pub(super) progress: watch::Receiver<u64>,
    pub(super) backoff: Backoff,
    /// Acknowledgements that epochs wait for when they end.
    pub(super) acknowledgements: PendingAcknowledgements,
    /// An identity under which this worker must not send again; it is replaced before the next
    /// join, however long the ledger is away.
    pub(super) spent: Option<NodeId>,
    /// Highest epoch that the ledger has shown: it never shows a lower one, unless it went back.
    pub(super) highest: u64,
    /// When Redis was last offered a partition that the database owns.
    pub(super) return_tried: Option<Instant>,
    inbox: mpsc::UnboundedReceiver<PendingRequest>,
    reports: mpsc::UnboundedReceiver<Done>,
    news: watch::Receiver<News>,
    standing: Standing,
    status: SharedStatus,
    stopping: bool,
    /// Another node's recovery as last seen, and since when it stands there.
    pub(super) watched: Option<(u64, PartitionState, Instant)>,
}

impl PartitionWorker {
    /// A worker that takes its requests from `inbox`.
    pub(super) fn new(
        context: Arc<Context>,
        partition: u32,
        inbox: mpsc::UnboundedReceiver<PendingRequest>,
        status: SharedStatus,
    ) -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let settings = &context.settings;
        PartitionWorker {
            partition,
            waiting: VecDeque::new(),
            jobs: BackgroundJobs::new(Arc::clone(&context), sender),
            done: Vec::new(),
            contended: Contended::default(),
            handed: 0,
            progress: context.journal.progress(partition),
            backoff: Backoff::new(settings.retry_delay_min, settings.retry_delay_max),
            acknowledgements: PendingAcknowledgements::default(),
            spent: None,
            highest: 0,
            return_tried: None,
            inbox,
            reports,
            news: context.membership.news(),
            standing: Standing::Nowhere,
            status,
            stopping: false,
            watched: None,
            context,
        }
    }

    /// Serves until asked to stop and nothing waits any more, or half of the time for that is over:
    /// the other half is for the journal.
    pub(super) async fn run(mut self, mut stop: Stop) {
        let mut serve_until = None;
        loop {
            if let (Some(by), None) = (stop.deadline(), serve_until) {
                self.stopping = true;
                let now = Instant::now();
                serve_until = Some(now + by.saturating_duration_since(now) / 2);
            }
            self.pull();
            let busy = self.has_work();
            match serve_until {
                Some(_) if !busy && self.jobs.are_all_back() => break,
                Some(moment) if Instant::now() >= moment => break,
                None if !busy => {
                    self.idle(&mut stop).await;
                    continue;
                }
                _ => {}
            }
            if busy {
                self.step().await;
            } else {
                self.await_report().await;
            }
        }
        let by = stop.deadline().expect("the loop ends only when it is asked to");
        self.finish(by).await;
    }

    /// Takes in whatever has arrived.
    pub(super) fn pull(&mut self) {
        while let Ok(pending) = self.inbox.try_recv() {
            self.waiting.push_back(pending);
        }
        while let Ok(done) = self.reports.try_recv() {
            self.jobs.take_back();
            self.done.push(done);
        }
    }

    fn has_work(&self) -> bool {
        let standing_has = match &self.standing {
            Standing::Redis(lease) => {
                lease.has_work()
                    || self.trim_is_due(lease)
                    || self.epoch_is_over(lease.at)
                    || self.is_unwanted()
            }
            Standing::Database(at, node) => self.is_no_place(*at, *node) || self.return_is_due(*at),
            // Others may wait for this worker's acknowledgement even if nobody here asks for
            // numbers.
            Standing::Nowhere | Standing::Away(_) => {
                (self.context.eager && !self.stopping) || !self.acknowledgements.is_empty()
            }
            Standing::Held => self.row().is_some_and(|row| row.state != PartitionState::Held),
        };
        standing_has || !self.waiting.is_empty() || !self.done.is_empty()
    }

    /// Waits for anything to happen. Each branch is safe to drop.
    async fn idle(&mut self, stop: &mut Stop) {
        let look_at = match &self.standing {
            Standing::Redis(lease) => Some(self.next_trim(lease)),
            Standing::Database(..) if self.context.redis_of(self.partition).is_some() => {
                Some(Instant::now() + self.context.settings.probe_period)
            }
            _ => None,
        };
        tokio::select! {
            pending = self.inbox.recv() => match pending {
                Some(pending) => self.waiting.push_back(pending),
                // The allocator is gone: only the stop signal is left to wait for.
                None => stop.requested().await,
            },
            Some(done) = self.reports.recv() => {
                self.jobs.take_back();
                self.done.push(done);
            }
            _ = self.news.changed() => {}
            _ = self.progress.changed() => {}
            () = until(look_at), if look_at.is_some() => {}
            () = stop.requested() => {}
        }
    }

    /// While stopping: waits for a job, or a moment.
    async fn await_report(&mut self) {
        tokio::select! {
            Some(done) = self.reports.recv() => {
                self.jobs.take_back();
                self.done.push(done);
            }
            () = self.backoff.wait() => {}
        }
    }

    /// One unit of work in the present standing.
    async fn step(&mut self) {
        self.standing = match std::mem::take(&mut self.standing) {
            Standing::Nowhere => self.join(None).await,
            Standing::Away(suspicion) => self.join(Some(suspicion)).await,
            Standing::Redis(lease) => self.serve_redis(lease).await,
            Standing::Database(at, node) => self.serve_database(at, node).await,
            Standing::Held => self.serve_held().await,
        };
        let word = match &self.standing {
            Standing::Nowhere => "idle",
            Standing::Away(_) => "recovering",
            Standing::Redis(_) => "redis",
            Standing::Database(..) => "database",
            Standing::Held => "held",
        };
        self.status.lock().expect("no holder of this lock panics").standing = word;
    }

    /// Refuses everything until the ledger says that the partition is no longer held.
    async fn serve_held(&mut self) -> Standing {
        self.take_back_questions();
        self.refuse(Unavailable::Held, HELD).await;
        match self.row() {
            Some(row) if row.state != PartitionState::Held => Standing::Nowhere,
            _ => Standing::Held,
        }
    }

    /// Lets the last records be committed, until a moment, and removes them from the outbox.
    async fn finish(&mut self, by: Instant) {
        for pending in std::mem::take(&mut self.waiting) {
            pending.answer(Err(unavailable(Unavailable::Stopping, NumberTaken::No)));
        }
        let handed = self.handed;
        self.context.journal.hurry();
        let committed = self.progress.wait_for(|committed| *committed >= handed);
        let journaled = tokio::time::timeout_at(by, committed).await.is_ok_and(|seen| seen.is_ok());
        let emptied = match std::mem::take(&mut self.standing) {
            Standing::Redis(mut lease) => {
                // Whatever the answer, the worker ends here: `trimmed` shows whether it is empty.
                let _ = self.trim(&mut lease).await;
                let resolved = lease.in_flight.is_none();
                let trimmed = lease.trimmed >= handed;
                for pending in lease.discard() {
                    pending.answer(Err(unavailable(Unavailable::Stopping, NumberTaken::Maybe)));
                }
                resolved && trimmed
            }
            // Entries that an acknowledged epoch left in the outbox are in the journal too.
            _ => self.acknowledgements.is_empty(),
        };
        self.status.lock().expect("no holder of this lock panics").drained = journaled && emptied;
    }

    /// The row as the last heartbeat showed it.
    pub(super) fn row(&self) -> Option<Partition> {
        self.news.borrow().iter().find(|row| row.partition == self.partition).cloned()
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

    /// Requests that were at the journal or set aside when their epoch ended wait again.
    pub(super) fn take_back_questions(&mut self) {
        for done in std::mem::take(&mut self.done) {
            if let Done::Asked { requests, .. } | Done::Aside { requests } = done {
                self.wait_again(requests);
            }
        }
    }

    /// Puts requests back to the front, in their order.
    pub(super) fn wait_again(&mut self, requests: Vec<PendingRequest>) {
        for pending in requests.into_iter().rev() {
            pending.cancellation.put_back();
            self.waiting.push_front(pending);
        }
    }

    /// Notes what is wrong, for whoever gives up waiting, and waits a moment.
    pub(super) async fn trouble(
        &mut self,
        why: Unavailable,
        error: &(dyn std::fmt::Display + Sync),
    ) {
        self.say_trouble(why, error);
        self.waiting.retain(|pending| !pending.cancellation.is_given_up());
        self.backoff.wait().await;
    }

    /// Notes what is wrong, for whoever gives up waiting.
    pub(super) fn say_trouble(&self, why: Unavailable, error: &(dyn std::fmt::Display + Sync)) {
        let before = {
            let mut status = self.status.lock().expect("no holder of this lock panics");
            status.trouble.replace(why)
        };
        // Said once, not at each try.
        if before == Some(why) {
            tracing::debug!(partition = self.partition, ?why, %error, "still cannot issue");
        } else {
            tracing::warn!(partition = self.partition, ?why, %error, "cannot issue for now");
        }
    }

    /// Shows the least headroom of late.
    pub(super) fn show_headroom(&self, least: LeastHeadroom) {
        let mut status = self.status.lock().expect("no holder of this lock panics");
        status.least_headroom = Some(least);
    }

    /// Nothing is wrong (any more).
    pub(super) fn well(&mut self) {
        self.watched = None;
        self.backoff.reset();
        self.status.lock().expect("no holder of this lock panics").trouble = None;
    }

    /// Refuses all waiting requests: none of them took anything.
    pub(super) async fn refuse(&mut self, why: Unavailable, remedy: &str) {
        for pending in std::mem::take(&mut self.waiting) {
            pending.answer(Err(unavailable(why, NumberTaken::No)));
        }
        self.trouble(why, &remedy).await;
    }
}

/// The error for a request that cannot be served now; a second is a fair guess for all causes.
pub(super) fn unavailable(why: Unavailable, taken: NumberTaken) -> AllocError {
    AllocError::Unavailable { why, retry_after_ms: 1_000, taken }
}

/// Waits until a moment; without one, for ever. Safe to drop.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
