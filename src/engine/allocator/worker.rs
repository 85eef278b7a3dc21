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
//! Because one task does everything, there is one moment of handing out (F11): a flight's records
//! move into the journal queue, then its requests are answered; the worker leaves an epoch between
//! two such moments, never within one. The task is never cancelled. Switches between the paths, and
//! knows neither's state.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::Unavailable;
use super::database_path::DatabasePath;
use super::intake::Intake;
use super::joining::{HELD, Joining};
use super::pending_request::PendingRequest;
use super::redis_path::{EpochLease, Suspicion};
use super::status::SharedStatus;
use crate::engine::node::{Context, PROBE_PERIOD};
use crate::ledger::At;
use crate::node::NodeId;
use crate::task::Stop;

/// The state of a worker.
#[derive(Default)]
pub(super) enum WorkerState {
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
    context: Arc<Context>,
    partition: u32,
    intake: Intake,
    joining: Joining,
    database: DatabasePath,
    standing: WorkerState,
    stopping: bool,
}

impl PartitionWorker {
    /// A worker that takes its requests from `inbox`.
    pub(super) fn new(
        context: Arc<Context>,
        partition: u32,
        inbox: mpsc::UnboundedReceiver<PendingRequest>,
        status: SharedStatus,
    ) -> Self {
        PartitionWorker {
            partition,
            intake: Intake::new(&context, partition, inbox, status),
            joining: Joining::new(&context, partition),
            database: DatabasePath::new(&context),
            standing: WorkerState::Nowhere,
            stopping: false,
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
            self.intake.pull();
            let busy = self.has_work();
            match serve_until {
                Some(_) if !busy && self.intake.jobs.are_all_back() => break,
                Some(moment) if Instant::now() >= moment => break,
                None if !busy => {
                    self.intake.idle(self.look_at(), &mut stop).await;
                    continue;
                }
                _ => {}
            }
            if busy {
                self.step().await;
            } else {
                self.intake.await_report().await;
            }
        }
        let by = stop.deadline().expect("the loop ends only when it is asked to");
        self.finish(by).await;
    }

    fn has_work(&self) -> bool {
        let standing_has = match &self.standing {
            WorkerState::Redis(lease) => lease.has_work(&self.intake),
            WorkerState::Database(at, node) => self.database.has_work(&self.intake, *at, *node),
            // Others may wait for this worker's acknowledgement even without a request here.
            WorkerState::Nowhere | WorkerState::Away(_) => {
                (self.context.eager && !self.stopping) || self.joining.is_awaited()
            }
            WorkerState::Held => self.intake.is_released(),
        };
        standing_has || self.intake.has_work()
    }

    /// When an idle worker should look at its epoch, if nothing happens before.
    fn look_at(&self) -> Option<Instant> {
        match &self.standing {
            WorkerState::Redis(lease) => Some(lease.next_trim(&self.intake)),
            WorkerState::Database(..) if self.context.redis_of(self.partition).is_some() => {
                Some(Instant::now() + PROBE_PERIOD)
            }
            _ => None,
        }
    }

    /// One unit of work in the present state.
    async fn step(&mut self) {
        let intake = &mut self.intake;
        self.standing = match std::mem::take(&mut self.standing) {
            WorkerState::Nowhere => self.joining.join(intake, None).await,
            WorkerState::Away(suspicion) => self.joining.join(intake, Some(suspicion)).await,
            WorkerState::Redis(lease) => self.serve_redis(lease).await,
            WorkerState::Database(at, node) => self.serve_database(at, node).await,
            WorkerState::Held => self.serve_held().await,
        };
        let word = match &self.standing {
            WorkerState::Nowhere => "idle",
            WorkerState::Away(_) => "recovering",
            WorkerState::Redis(_) => "redis",
            WorkerState::Database(..) => "database",
            WorkerState::Held => "held",
        };
        self.intake.status().standing = word;
    }

    async fn serve_redis(&mut self, mut lease: Box<EpochLease>) -> WorkerState {
        if lease.is_over(&self.intake) {
            lease.vacate(&mut self.intake).await;
            return WorkerState::Nowhere;
        }
        match lease.serve(&mut self.intake).await {
            Ok(()) => WorkerState::Redis(lease),
            Err(suspicion) => {
                lease.leave(&mut self.intake, &suspicion).await;
                self.joining.go_away(suspicion)
            }
        }
    }

    async fn serve_database(&mut self, at: At, node: NodeId) -> WorkerState {
        self.intake.answer_questions();
        if self.database.is_no_place(&self.intake, at, node) {
            return WorkerState::Nowhere;
        }
        if self.database.return_is_due(&self.intake, at) {
            self.database.note_return();
            return self.joining.offer_to_redis(&mut self.intake).await;
        }
        if self.intake.cannot_commit() {
            self.intake.refuse_all(Unavailable::Ledger);
            return WorkerState::Database(at, node);
        }
        match self.database.serve(&mut self.intake, at, node).await {
            true => WorkerState::Database(at, node),
            false => WorkerState::Nowhere,
        }
    }

    /// Refuses everything until the ledger shows that the partition is no longer held.
    async fn serve_held(&mut self) -> WorkerState {
        self.intake.take_back_questions();
        self.intake.refuse(Unavailable::Held, HELD).await;
        if self.intake.is_released() { WorkerState::Nowhere } else { WorkerState::Held }
    }

    /// Lets the last records be committed, until a moment, and removes them from the outbox.
    async fn finish(mut self, by: Instant) {
        self.intake.refuse_all(Unavailable::Stopping);
        if let WorkerState::Redis(lease) = &mut self.standing {
            lease.answer_due();
        }
        let committed = self.intake.handed_out.all_committed();
        let is_journaled = timeout_at(by, committed).await.unwrap_or(false);
        let is_emptied = match self.standing {
            WorkerState::Redis(lease) => lease.finish(&mut self.intake).await,
            // Entries that an acknowledged epoch left in the outbox are in the journal too.
            _ => !self.joining.is_awaited(),
        };
        self.intake.status().drained = is_journaled && is_emptied;
    }
}
