//! How a lane comes into an epoch: joins one that is open, or brings the next one about.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::Unavailable;
use super::lane::{Lane, Standing, Suspicion};
use super::seat::Seat;
use crate::ledger::{Acknowledged, At, LedgerError, Owner, Partition, PartitionState};
use crate::node::NodeId;
use crate::reconciler::{self, Plan, Recovered, Trouble};

/// How long Redis is asked again whose epoch it was that is above the ledger's: nothing is held for
/// another ledger's while a connection is only being made anew. And how often.
const STRAYED_LIMIT: Duration = Duration::from_secs(2);
const STRAYED_PAUSE: Duration = Duration::from_millis(100);

/// What an operator does about a held partition.
pub(super) const HELD: &str = "the ledger went back; bring the newer one back, or release the \
                               partitions with `numerator reconcile --ledger-restored`";

impl Lane {
    /// Finds the epoch to serve in, or brings it about.
    pub(super) async fn join(&mut self, suspicion: Option<Suspicion>) -> Standing {
        self.take_back_questions();
        if self.context.membership.ledger_went_back() {
            self.refuse(Unavailable::Held, HELD).await;
            return Standing::Nowhere;
        }
        if let Some(spent) = self.spent {
            if let Err(error) = self.context.membership.renew(spent).await {
                self.trouble(Unavailable::Ledger, &error).await;
                return away(suspicion);
            }
            self.spent = None;
        }
        // Before the row: what it shows holds for whoever the ledger knew by then (F9).
        let node = self.context.membership.node();
        let row = match self.read_row().await {
            Ok(row) => row,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                return away(suspicion);
            }
        };
        let redis_epoch = suspicion.as_ref().and_then(|suspicion| suspicion.redis_epoch);
        let highest = match redis_epoch {
            Some(epoch) if epoch > row.epoch && !self.has_strayed(row.epoch).await => {
                self.highest.max(epoch)
            }
            _ => self.highest,
        };
        self.context.membership.see(At { partition: self.partition, epoch: highest });
        if row.state != PartitionState::Held && row.epoch < highest {
            let cause = suspicion.as_ref().map_or("an epoch is forgotten", |seen| &seen.cause);
            return self.hold(highest, cause).await;
        }
        self.highest = row.epoch;
        // A closed epoch asks for no acknowledgement any more.
        let closing = u64::from(row.state == PartitionState::Recovering);
        self.owed.forget_before(row.epoch - closing);
        let at = At { partition: self.partition, epoch: row.epoch };
        let has_redis = self.context.redis_of(self.partition).is_some();
        if has_redis {
            self.context.sights.watch(self.partition);
        }
        match (row.state, &row.owner) {
            (PartitionState::Held, _) => Standing::Held,
            // A process without Redis never moves a partition that Redis owns (F22).
            (_, Owner::Redis { .. }) if !has_redis => {
                self.refuse(Unavailable::NoRedis, "redis owns the partition; set redis.url").await;
                Standing::Nowhere
            }
            (PartitionState::Open, Owner::Redis { .. }) if row.is_for_database() => {
                self.recover(&row, "an operator wants the database", suspicion).await
            }
            (PartitionState::Open, Owner::Redis { incarnation }) => match &suspicion {
                Some(suspicion) if suspicion.at == at => {
                    let cause = suspicion.cause.clone();
                    self.recover(&row, &cause, Some(suspicion.clone())).await
                }
                _ => self.participate(at, incarnation.clone()).await,
            },
            (PartitionState::Open, Owner::Database) => self.join_database(at, node).await,
            (PartitionState::Open, Owner::None) => self.recover(&row, "first use", suspicion).await,
            (PartitionState::Recovering | PartitionState::Opening, _) => {
                self.carry_on(&row, suspicion).await
            }
        }
    }

    /// Takes from the database from now on, once somebody would miss this identity: another process
    /// meets it within two heartbeats.
    async fn join_database(&mut self, at: At, node: NodeId) -> Standing {
        if !self.context.membership.is_met() {
            tracing::info!(%node, "no other process has met this one yet");
            self.backoff.wait().await;
            return Standing::Nowhere;
        }
        self.well();
        Standing::Database(at, node)
    }

    /// Becomes a participant of an open epoch: only then may it fly there (F5).
    async fn participate(&mut self, at: At, incarnation: String) -> Standing {
        let node = self.context.membership.node();
        match self.context.ledger.participate(at, node).await {
            Ok(true) => {
                self.well();
                self.owed.join(at.epoch, node);
                self.context.membership.vouching().join(at);
                let counters_max = self.context.settings.counters_max;
                Standing::Redis(Box::new(Seat::new(at, incarnation, node, counters_max)))
            }
            Ok(false) => {
                self.backoff.wait().await;
                Standing::Nowhere
            }
            Err(error) => {
                // It may be entered all the same, and the next recovery would wait for it.
                self.owed.may_join(at.epoch, node);
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Nowhere
            }
        }
    }

    /// Acknowledges another node's recovery and watches it; goes on in its place when it stands
    /// still too long (F6).
    async fn carry_on(&mut self, row: &Partition, suspicion: Option<Suspicion>) -> Standing {
        if row.state == PartitionState::Recovering
            && let Some(standing) = self.acknowledge(row.epoch).await
        {
            return standing;
        }
        let settings = &self.context.settings;
        let mine = row.actor == Some(self.context.membership.node());
        let patience = match row.state {
            PartitionState::Opening => settings.recovery_open_timeout,
            _ => settings.recovery_open_timeout + settings.recovery_barrier_max,
        };
        let since = match self.watched {
            Some((epoch, state, since)) if (epoch, state) == (row.epoch, row.state) => since,
            _ => {
                self.backoff.reset();
                Instant::now()
            }
        };
        self.watched = Some((row.epoch, row.state, since));
        if mine || since.elapsed() > patience {
            return self.recover(row, &row.cause.clone(), suspicion).await;
        }
        self.backoff.wait().await;
        away(suspicion)
    }

    /// Tells the ledger that this process has left the epoch before `epoch`, once all that it
    /// handed out there is committed.
    async fn acknowledge(&mut self, epoch: u64) -> Option<Standing> {
        let at = At { partition: self.partition, epoch };
        if let Some(unsure) = self.owed.unsure_in(epoch - 1) {
            // It never flew, so there is nothing to wait for, and nothing to find amiss.
            if let Err(error) = self.context.ledger.acknowledge(at, &[unsure]).await {
                self.trouble(Unavailable::Ledger, &error).await;
                return None;
            }
            self.owed.settle_unsure();
        }
        let nodes = self.owed.joined_in(epoch - 1);
        if nodes.is_empty() {
            return None;
        }
        if *self.progress.borrow() < self.handed {
            self.context.journal.hurry();
            return None;
        }
        // From here on the epoch may close without this process.
        self.context.membership.vouching().leave(self.partition);
        match self.context.ledger.acknowledge(at, &nodes).await {
            Ok(Acknowledged::Taken | Acknowledged::TooLate) => {
                self.owed.forget_before(epoch);
                None
            }
            Ok(Acknowledged::Forgotten) => {
                Some(self.hold(epoch + 1, "this node's participation is forgotten").await)
            }
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                None
            }
        }
    }

    /// Redis has been healthy for long enough: it may take over from the database.
    pub(super) async fn offer_to_redis(&mut self) -> Standing {
        self.note_return();
        match self.read_row().await {
            Ok(row) if (row.state, &row.owner) == (PartitionState::Open, &Owner::Database) => {
                self.recover(&row, "redis is back", None).await
            }
            Ok(_) => Standing::Nowhere,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Nowhere
            }
        }
    }

    /// Leads a recovery one step further.
    async fn recover(
        &mut self,
        row: &Partition,
        cause: &str,
        suspicion: Option<Suspicion>,
    ) -> Standing {
        // What another node saw is not known here: only a planned recovery trusts the data.
        let lost_data = suspicion.is_some() || row.state != PartitionState::Open;
        let closing = match row.state {
            PartitionState::Recovering => row.epoch - 1,
            _ => row.epoch,
        };
        let (participations, unsure) = (self.owed.joined_in(closing), self.owed.unsure_in(closing));
        let plan = Plan { cause, lost_data, participations, unsure };
        let settled = self.settled();
        // It acknowledges for this process.
        self.context.membership.vouching().leave(self.partition);
        match reconciler::recover(&self.context, row, plan, settled).await {
            Ok(Recovered::Opened | Recovered::Elsewhere) => Standing::Nowhere,
            Ok(Recovered::Held) => Standing::Held,
            Err(Trouble::Ledger(error)) => {
                self.trouble(Unavailable::Ledger, &error).await;
                away(suspicion)
            }
            Err(Trouble::Redis(error)) => {
                self.trouble(Unavailable::Redis, &error).await;
                away(suspicion)
            }
            Err(error @ Trouble::Foreign { .. }) => {
                self.refuse(Unavailable::ForeignRedis, &error.to_string()).await;
                away(suspicion)
            }
        }
    }

    /// Ends when everything that this lane handed out is committed. Safe to drop.
    fn settled(&self) -> impl Future<Output = ()> + use<> {
        let (handed, mut progress) = (self.handed, self.progress.clone());
        self.context.journal.hurry();
        async move {
            // An error means that the journal is gone: then nothing more will be committed.
            if progress.wait_for(|committed| *committed >= handed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// The ledger shows less than this node or Redis has seen: it went back (F9).
    async fn hold(&mut self, seen: u64, cause: &str) -> Standing {
        let seen = At { partition: self.partition, epoch: seen };
        let cause = format!("the ledger went back: {cause}");
        match self.context.hold(seen, &cause).await {
            Ok(true) => Standing::Held,
            Ok(false) => Standing::Nowhere,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Nowhere
            }
        }
    }

    /// Whether an epoch above the ledger's was another ledger's: Redis still counts for that one,
    /// or for this one in an epoch that the ledger knows. An owner record that is gone proves
    /// nothing, nor does one that cannot be read for [`STRAYED_LIMIT`] (F8, F9).
    async fn has_strayed(&self, known: u64) -> bool {
        let Some(redis) = self.context.redis_of(self.partition) else { return false };
        let deadline = Instant::now() + STRAYED_LIMIT;
        let survey = loop {
            match redis.survey(&self.context.keys, self.partition, &[]).await {
                Ok(survey) => break survey,
                // Whoever leads Redis back cuts its connections.
                Err(_) if Instant::now() < deadline => tokio::time::sleep(STRAYED_PAUSE).await,
                Err(_) => return false,
            }
        };
        let Some(owner) = survey.owner else { return false };
        let mine = self.context.deployment.deployment_id.to_string();
        owner.deployment != mine || owner.epoch <= known
    }

    /// The ledger's row of this partition, read now.
    async fn read_row(&self) -> Result<Partition, LedgerError> {
        let rows = self.context.ledger.partitions().await?;
        let row = rows.into_iter().find(|row| row.partition == self.partition);
        Ok(row.expect("the ledger has a row for each partition of its deployment"))
    }
}

fn away(suspicion: Option<Suspicion>) -> Standing {
    suspicion.map_or(Standing::Nowhere, Standing::Away)
}
