//! How a lane comes into an epoch: joins one that is open, or brings the next one about.

use std::time::Duration;

use tokio::time::Instant;

use super::Unavailable;
use super::lane::{Lane, Standing, Suspicion};
use super::seat::Seat;
use crate::ledger::{At, LedgerError, Owner, Partition, PartitionState};
use crate::reconciler::{self, Recovered, Trouble};

/// How long a recovery after which nothing was handed out slows the next one down.
const BRAKE_MEMORY: Duration = Duration::from_secs(60);

impl Lane {
    /// Finds the epoch to serve in, or brings it about.
    pub(super) async fn join(&mut self, suspicion: Option<Suspicion>) -> Standing {
        self.take_back_questions();
        let row = match self.read_row().await {
            Ok(row) => row,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                return away(suspicion);
            }
        };
        let at = At { partition: self.partition, epoch: row.epoch };
        if let Some(suspicion) = &suspicion
            && (row.epoch < suspicion.at.epoch || suspicion.redis_epoch > Some(row.epoch))
        {
            return self.hold(suspicion).await;
        }
        let has_redis = self.context.redis_of(self.partition).is_some();
        match (row.state, &row.owner) {
            (PartitionState::Held, _) => Standing::Held,
            // A process without Redis never moves a partition that Redis owns (F22).
            (_, Owner::Redis { .. }) if !has_redis => {
                self.refuse(Unavailable::NoRedis, "redis owns the partition; set redis.url").await;
                Standing::Nowhere
            }
            (PartitionState::Open, Owner::Redis { incarnation }) => match &suspicion {
                Some(suspicion) if suspicion.at == at => {
                    let cause = suspicion.cause.clone();
                    self.recover(&row, &cause, Some(suspicion.clone())).await
                }
                _ => self.participate(at, incarnation.clone()).await,
            },
            (PartitionState::Open, Owner::Database) if !has_redis => {
                self.well();
                Standing::Database(at)
            }
            (PartitionState::Open, Owner::Database) => {
                self.recover(&row, "redis configured", suspicion).await
            }
            (PartitionState::Open, Owner::None) => self.recover(&row, "first use", suspicion).await,
            (PartitionState::Recovering | PartitionState::Opening, _) => {
                self.carry_on(&row, suspicion).await
            }
        }
    }

    /// Becomes a participant of an open epoch: only then may it fly there (F5).
    async fn participate(&mut self, at: At, incarnation: String) -> Standing {
        let node = self.context.membership.node();
        match self.context.ledger.participate(at, node).await {
            Ok(true) => {
                self.well();
                Standing::Redis(Box::new(Seat::new(at, incarnation, node)))
            }
            Ok(false) => {
                self.backoff.wait().await;
                Standing::Nowhere
            }
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Nowhere
            }
        }
    }

    /// Watches another node's recovery; goes on in its place when it stands still too long (F6).
    async fn carry_on(&mut self, row: &Partition, suspicion: Option<Suspicion>) -> Standing {
        let settings = &self.context.settings;
        let mine = row.actor == Some(self.context.membership.node());
        let patience = match row.state {
            PartitionState::Opening => settings.recovery_open_timeout,
            _ => settings.recovery_open_timeout + settings.recovery_barrier_max,
        };
        let since = match self.watched {
            Some((epoch, state, since)) if (epoch, state) == (row.epoch, row.state) => since,
            _ => Instant::now(),
        };
        self.watched = Some((row.epoch, row.state, since));
        if mine || since.elapsed() > patience {
            return self.recover(row, &row.cause.clone(), suspicion).await;
        }
        self.backoff.wait().await;
        away(suspicion)
    }

    /// Leads a recovery one step further.
    async fn recover(
        &mut self,
        row: &Partition,
        cause: &str,
        suspicion: Option<Suspicion>,
    ) -> Standing {
        if self.fruitless.is_some_and(|opened| opened.elapsed() < BRAKE_MEMORY) {
            // The recovery before helped nobody: whatever is wrong will not go away by speed (F6).
            self.brake.wait().await;
        } else {
            self.brake.reset();
        }
        // What another node saw is not known here: only a planned recovery trusts the data.
        let lost_data = suspicion.is_some() || row.state != PartitionState::Open;
        let handed = self.handed;
        let mut progress = self.progress.clone();
        let settled = async move {
            // An error means that the journal is gone: then nothing more will be committed.
            let _ = progress.wait_for(|committed| *committed >= handed).await;
        };
        match reconciler::recover(&self.context, row, cause, lost_data, settled).await {
            Ok(Recovered::Opened) => {
                self.fruitless = Some(Instant::now());
                Standing::Nowhere
            }
            Ok(Recovered::Elsewhere) => Standing::Nowhere,
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

    /// The ledger shows less than this node or Redis has seen: it went back (F9).
    async fn hold(&mut self, suspicion: &Suspicion) -> Standing {
        let epoch = suspicion.at.epoch.max(suspicion.redis_epoch.unwrap_or(0));
        let seen = At { epoch, ..suspicion.at };
        let cause = format!("the ledger went back: {}", suspicion.cause);
        match self.context.ledger.hold(seen, &cause).await {
            Ok(true) => {
                tracing::error!(partition = self.partition, cause, "partition held");
                Standing::Held
            }
            Ok(false) => Standing::Nowhere,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Away(suspicion.clone())
            }
        }
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
