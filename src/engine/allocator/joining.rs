//! How a worker comes into an epoch: joins one that is open, or brings the next one about.

use std::sync::Arc;

use tokio::time::Instant;

use super::Unavailable;
use super::acknowledgements::PendingAcknowledgements;
use super::intake::Intake;
use super::redis_path::{EpochLease, Suspicion};
use super::strayed::has_strayed;
use super::worker::WorkerState;
use crate::engine::node::{Context, PlannedEnd, RECOVERY_OPEN_TIMEOUT};
use crate::engine::reconciler::{self, Plan, Recovered, RecoveryError};
use crate::ledger::{Acknowledged, At, LedgerError, Owner, Partition, PartitionState};
use crate::node::NodeId;
use crate::redis::Redis;

/// What an operator does about a held partition.
pub(super) const HELD: &str = "the ledger went back; bring the newer one back, or release the \
                               partitions with `numerator reconcile --ledger-restored`";

/// Why an epoch of Redis ends below which numbers were taken that it does not count (F35).
const OUTDATED: &str = "numbers of before the ledger was released were told";

/// What a worker knows of the epochs of its partition from one to the next.
pub(super) struct Joining {
    context: Arc<Context>,
    partition: u32,
    /// Acknowledgements that epochs wait for when they end.
    acknowledgements: PendingAcknowledgements,
    /// An identity under which this worker must not send again; it is replaced before the next
    /// join, however long the ledger is away.
    spent: Option<NodeId>,
    /// Highest epoch that the ledger has shown: it never shows a lower one, unless it went back.
    highest: u64,
    /// Another node's recovery as last seen, and since when it has not moved.
    watched: Option<(u64, PartitionState, Instant)>,
}

impl Joining {
    /// Nothing is known yet.
    pub(super) fn new(context: &Arc<Context>, partition: u32) -> Self {
        Joining {
            context: Arc::clone(context),
            partition,
            acknowledgements: PendingAcknowledgements::default(),
            spent: None,
            highest: 0,
            watched: None,
        }
    }

    /// Whether an epoch that has ended may wait for this worker's acknowledgement.
    pub(super) fn is_awaited(&self) -> bool {
        !self.acknowledgements.is_empty()
    }

    /// The state of a worker that left its epoch because of a fault.
    pub(super) fn go_away(&mut self, suspicion: Suspicion) -> WorkerState {
        self.spent = suspicion.spent.or(self.spent);
        if suspicion.epoch_in_doubt { WorkerState::Away(suspicion) } else { WorkerState::Nowhere }
    }

    /// Finds the epoch to serve in, or brings it about.
    pub(super) async fn join(
        &mut self,
        intake: &mut Intake,
        suspicion: Option<Suspicion>,
    ) -> WorkerState {
        intake.take_back_questions();
        if self.context.membership.ledger_went_back() {
            intake.refuse(Unavailable::Held, HELD).await;
            return WorkerState::Nowhere;
        }
        let (node, row) = match self.look().await {
            Ok(found) => found,
            Err(error) => {
                intake.trouble(Unavailable::Ledger, &error).await;
                return away(suspicion);
            }
        };
        let at = At { partition: self.partition, epoch: row.epoch };
        let redis_epoch = suspicion.as_ref().and_then(|suspicion| suspicion.redis_epoch);
        let highest = match redis_epoch {
            Some(epoch) if epoch > row.epoch && !has_strayed(&self.context, at).await => {
                self.highest.max(epoch)
            }
            _ => self.highest,
        };
        self.context.membership.see(At { partition: self.partition, epoch: highest });
        if row.state != PartitionState::Held && row.epoch < highest {
            let cause = suspicion.as_ref().map_or("an epoch is forgotten", |seen| &seen.cause);
            return self.hold(intake, highest, cause).await;
        }
        self.highest = row.epoch;
        // A closed epoch asks for no acknowledgement any more.
        let closing = u64::from(row.state == PartitionState::Recovering);
        self.acknowledgements.forget_before(row.epoch - closing);
        self.take_up(intake, &row, node, suspicion).await
    }

    /// The identity of this process, one that may send flights, and the row of the partition.
    async fn look(&mut self) -> Result<(NodeId, Partition), LedgerError> {
        if let Some(spent) = self.spent {
            self.context.membership.renew(spent).await?;
            self.spent = None;
        }
        // Before the row: what it shows holds for the identity that the ledger knew by then (F9).
        let node = self.context.membership.node();
        Ok((node, self.read_row().await?))
    }

    /// Does what the row of the partition asks for.
    async fn take_up(
        &mut self,
        intake: &mut Intake,
        row: &Partition,
        node: NodeId,
        suspicion: Option<Suspicion>,
    ) -> WorkerState {
        let at = At { partition: self.partition, epoch: row.epoch };
        let redis = self.context.redis_of(self.partition).cloned();
        if redis.is_some() {
            self.context.redis_health.watch(self.partition);
        }
        match (row.state, &row.owner, redis) {
            (PartitionState::Held, ..) => WorkerState::Held,
            // A process without Redis never moves a partition that Redis owns (F22).
            (_, Owner::Redis { .. }, None) => {
                let remedy = "redis owns the partition; set redis.url";
                intake.refuse(Unavailable::NoRedis, remedy).await;
                WorkerState::Nowhere
            }
            (PartitionState::Open, Owner::Redis { .. }, _) if row.is_for_database() => {
                self.recover(intake, row, "an operator wants the database", suspicion).await
            }
            (PartitionState::Open, Owner::Redis { .. }, Some(_))
                if self.context.membership.is_outdated(at) =>
            {
                self.recover(intake, row, OUTDATED, suspicion).await
            }
            (PartitionState::Open, Owner::Redis { incarnation }, Some(redis)) => match suspicion {
                Some(suspicion) if suspicion.at == at => {
                    let cause = suspicion.cause.clone();
                    self.recover(intake, row, &cause, Some(suspicion)).await
                }
                suspicion => match self.planned_end(row, node, suspicion).await {
                    Some(why) => self.recover(intake, row, why.cause(), None).await,
                    None => self.participate(intake, redis, at, incarnation.clone()).await,
                },
            },
            (PartitionState::Open, Owner::Database, _) => {
                self.join_database(intake, at, node).await
            }
            (PartitionState::Open, Owner::None, _) => {
                self.recover(intake, row, "first use", suspicion).await
            }
            (PartitionState::Recovering | PartitionState::Opening, ..) => {
                self.carry_on(intake, row, suspicion).await
            }
        }
    }

    /// Why an open epoch that is joined without a fault ends instead, where it does: its end is
    /// planned, or all others have left it with ceilings far above their counters.
    async fn planned_end(
        &self,
        row: &Partition,
        node: NodeId,
        suspicion: Option<Suspicion>,
    ) -> Option<PlannedEnd> {
        if suspicion.is_some() {
            return None;
        }
        let (context, at) = (&self.context, At { partition: self.partition, epoch: row.epoch });
        if let Some(why) = context.planned_ends.take(at) {
            return Some(why);
        }
        // A command that takes one number is no reason for another epoch.
        if !context.eager || row.tall_epoch != row.epoch {
            return None;
        }
        let is_left = context.ledger.takes_alone(at, node).await.unwrap_or(false);
        let may_end = is_left && reconciler::few_have_ended(context, at.partition).await.ok()?;
        may_end.then_some(PlannedEnd::Ceilings)
    }

    /// No failure (any more), and no other node's recovery is watched.
    fn well(&mut self, intake: &mut Intake) {
        self.watched = None;
        intake.well();
    }

    /// Takes from the database from now on, once another process would miss this identity: it meets
    /// it within two heartbeats.
    async fn join_database(&mut self, intake: &mut Intake, at: At, node: NodeId) -> WorkerState {
        if !self.context.membership.is_met() {
            tracing::info!(%node, "no other process has met this one yet");
            intake.backoff.wait().await;
            return WorkerState::Nowhere;
        }
        self.well(intake);
        WorkerState::Database(at, node)
    }

    /// Becomes a participant of an open epoch: only then may it send a flight there (F5).
    async fn participate(
        &mut self,
        intake: &mut Intake,
        redis: Redis,
        at: At,
        incarnation: String,
    ) -> WorkerState {
        let node = self.context.membership.node();
        match self.context.ledger.participate(at, node).await {
            Ok(true) => {
                self.well(intake);
                self.acknowledgements.join(at.epoch, node);
                self.context.membership.known_epochs().join(at);
                let lease = EpochLease::new(&self.context, redis, at, incarnation, node);
                WorkerState::Redis(Box::new(lease))
            }
            Ok(false) => {
                intake.backoff.wait().await;
                WorkerState::Nowhere
            }
            Err(error) => {
                // It may be entered all the same, and the next recovery would wait for it.
                self.acknowledgements.may_join(at.epoch, node);
                intake.trouble(Unavailable::Ledger, &error).await;
                WorkerState::Nowhere
            }
        }
    }

    /// Acknowledges another node's recovery and watches it; continues it when it stalls for too
    /// long (F6).
    async fn carry_on(
        &mut self,
        intake: &mut Intake,
        row: &Partition,
        suspicion: Option<Suspicion>,
    ) -> WorkerState {
        if row.state == PartitionState::Recovering {
            match self.acknowledge(intake, row.epoch).await {
                Ok(true) => {}
                Ok(false) => {
                    let cause = "this node's participation is forgotten";
                    return self.hold(intake, row.epoch + 1, cause).await;
                }
                Err(error) => intake.trouble(Unavailable::Ledger, &error).await,
            }
        }
        let settings = &self.context.settings;
        let mine = row.actor == Some(self.context.membership.node());
        let retry_policy = match row.state {
            PartitionState::Opening => RECOVERY_OPEN_TIMEOUT,
            _ => RECOVERY_OPEN_TIMEOUT + settings.recovery_barrier_max,
        };
        let since = match self.watched {
            Some((epoch, state, since)) if (epoch, state) == (row.epoch, row.state) => since,
            _ => {
                intake.backoff.reset();
                Instant::now()
            }
        };
        self.watched = Some((row.epoch, row.state, since));
        if mine || since.elapsed() > retry_policy {
            return self.recover(intake, row, &row.cause.clone(), suspicion).await;
        }
        intake.backoff.wait().await;
        away(suspicion)
    }

    /// Reports to the ledger that this process has left the epoch before `epoch`, once all that it
    /// handed out there is committed; false when the ledger has forgotten that it took part.
    async fn acknowledge(&mut self, intake: &Intake, epoch: u64) -> Result<bool, LedgerError> {
        let at = At { partition: self.partition, epoch };
        if let Some(unsure) = self.acknowledgements.unsure_in(epoch - 1) {
            // It never sent a flight, so there is nothing to wait for, and no fault to find.
            self.context.ledger.acknowledge(at, &[unsure]).await?;
            self.acknowledgements.clear_unsure();
        }
        let nodes = self.acknowledgements.joined_in(epoch - 1);
        if nodes.is_empty() {
            return Ok(true);
        }
        if intake.handed_out.committed() < intake.handed_out.flight() {
            // The next time.
            self.context.journal.hurry();
            return Ok(true);
        }
        // From here on the epoch may close without this process.
        self.context.membership.known_epochs().leave(self.partition);
        if self.context.ledger.acknowledge(at, &nodes).await? == Acknowledged::Forgotten {
            return Ok(false);
        }
        self.acknowledgements.forget_before(epoch);
        Ok(true)
    }

    /// Redis has been healthy for long enough: it may take over from the database.
    pub(super) async fn offer_to_redis(&mut self, intake: &mut Intake) -> WorkerState {
        match self.read_row().await {
            Ok(row) if (row.state, &row.owner) == (PartitionState::Open, &Owner::Database) => {
                self.recover(intake, &row, "redis is back", None).await
            }
            Ok(_) => WorkerState::Nowhere,
            Err(error) => {
                intake.trouble(Unavailable::Ledger, &error).await;
                WorkerState::Nowhere
            }
        }
    }

    /// Leads a recovery one step further.
    async fn recover(
        &self,
        intake: &mut Intake,
        row: &Partition,
        cause: &str,
        suspicion: Option<Suspicion>,
    ) -> WorkerState {
        // What another node saw is not known here: only a planned recovery trusts the data.
        let at = At { partition: self.partition, epoch: row.epoch };
        let lost_data = suspicion.is_some()
            || row.state != PartitionState::Open
            || self.context.membership.is_outdated(at);
        let closing = match row.state {
            PartitionState::Recovering => row.epoch - 1,
            _ => row.epoch,
        };
        let (participations, unsure) =
            (self.acknowledgements.joined_in(closing), self.acknowledgements.unsure_in(closing));
        let plan = Plan { cause, lost_data, participations, unsure };
        let all_committed = intake.handed_out.all_committed();
        let committed = async move {
            // Without a journal nothing more will be committed.
            if !all_committed.await {
                std::future::pending::<()>().await;
            }
        };
        // It acknowledges for this process.
        self.context.membership.known_epochs().leave(self.partition);
        match reconciler::recover(&self.context, row, plan, committed).await {
            Ok(Recovered::Opened | Recovered::Elsewhere) => return WorkerState::Nowhere,
            Ok(Recovered::Held) => return WorkerState::Held,
            Err(RecoveryError::Ledger(error)) => intake.trouble(Unavailable::Ledger, &error).await,
            Err(RecoveryError::Redis(error)) => intake.trouble(Unavailable::Redis, &error).await,
            Err(error @ RecoveryError::Foreign { .. }) => {
                intake.refuse(Unavailable::ForeignRedis, &error.to_string()).await;
            }
        }
        away(suspicion)
    }

    /// The ledger shows less than this node or Redis has seen: it went back (F9).
    async fn hold(&self, intake: &mut Intake, seen: u64, cause: &str) -> WorkerState {
        let seen = At { partition: self.partition, epoch: seen };
        let cause = format!("the ledger went back: {cause}");
        match self.context.hold(seen, &cause).await {
            Ok(true) => WorkerState::Held,
            Ok(false) => WorkerState::Nowhere,
            Err(error) => {
                intake.trouble(Unavailable::Ledger, &error).await;
                WorkerState::Nowhere
            }
        }
    }

    /// The ledger's row of this partition, read now.
    async fn read_row(&self) -> Result<Partition, LedgerError> {
        let rows = self.context.ledger.partitions().await?;
        Partition::among(rows, self.partition)
    }
}

fn away(suspicion: Option<Suspicion>) -> WorkerState {
    suspicion.map_or(WorkerState::Nowhere, WorkerState::Away)
}
