//! Recoveries on an operator's request: continuing one that has no leader any more, a planned one,
//! and one that gives the partition to the database.
//!
//! Uses the same steps as every node (`recovery`), so it is safe while services run: each step is a
//! compare-and-set, and the second process sees that another was first.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;

use super::recovery::{Plan, Recovered, RecoveryError, recover};
use crate::backoff::Backoff;
use crate::engine::node::{Context, ProcessSettings, RECOVERY_OPEN_TIMEOUT};
use crate::ledger::{LedgerError, Owner, Partition, PartitionState, SharedLedger};

/// First and longest wait between two polls of a partition.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// Why a partition was not brought to an open epoch.
#[derive(Debug, Error)]
pub enum Standstill {
    /// The condition that the recovery waits for.
    #[error(transparent)]
    RecoveryError(#[from] RecoveryError),
    /// A process without Redis never moves a partition that Redis owns (F22).
    #[error("redis owns the partition; set redis.url")]
    NoRedis,
    /// The nodes would not find the epoch where this process would open it.
    #[error("node {node} sees another redis there; all must use the same redis.url")]
    OtherRedis {
        /// One that does.
        node: String,
    },
    /// An operator must act (F9).
    #[error("the partition is held: the ledger went back")]
    Held,
    /// Others were busy with it all the time.
    #[error("not open in time")]
    TimedOut,
}

/// How long a recovery may stall before another process continues it.
#[must_use]
pub fn stalls_after(settings: &ProcessSettings) -> Duration {
    RECOVERY_OPEN_TIMEOUT + settings.recovery_barrier_max
}

/// Partitions that were in the middle of a recovery and did not move for [`stalls_after`].
///
/// # Errors
/// When the ledger cannot be read.
pub async fn stalled(
    ledger: &SharedLedger,
    settings: &ProcessSettings,
    partition: Option<u32>,
) -> Result<Vec<Partition>, LedgerError> {
    let deadline = Instant::now() + stalls_after(settings);
    let mut wait = Backoff::new(POLL.0, POLL.1);
    let is_asked = |row: &Partition| partition.is_none_or(|one| one == row.partition);
    let is_under_way =
        |row: &Partition| matches!(row.state, PartitionState::Recovering | PartitionState::Opening);
    let mut still: Vec<Partition> = ledger.partitions().await?;
    still.retain(|row| is_asked(row) && is_under_way(row));
    while !still.is_empty() && Instant::now() < deadline {
        wait.wait().await;
        let rows = ledger.partitions().await?;
        still.retain(|row| rows.contains(row));
    }
    Ok(still)
}

/// Continues a recovery that was seen to stall, until its partition is open, whichever process
/// opens it.
///
/// # Errors
/// See [`Standstill`]; safe to repeat.
pub async fn carry_on(
    context: &Arc<Context>,
    stalled: &Partition,
    time_limit: Duration,
) -> Result<Partition, Standstill> {
    LedRecovery::new(context, stalled.clone(), time_limit).finish(context, true).await
}

/// Ends the open epoch of a partition that Redis owns and opens the next one: the nodes
/// acknowledge, and it closes exact if none of them is silent. `before` is the row of that epoch.
///
/// # Errors
/// See [`Standstill`]; a repeat brings about one more epoch.
pub async fn renew(
    context: &Arc<Context>,
    before: &Partition,
    cause: &str,
    time_limit: Duration,
) -> Result<Partition, Standstill> {
    assert_eq!(before.state, PartitionState::Open, "only an open epoch is ended for the next");
    let mut effort = LedRecovery::new(context, before.clone(), time_limit);
    agree(context, before.partition).await?;
    loop {
        let row = row_of(context, before.partition).await?;
        if row.epoch != before.epoch || row.state != PartitionState::Open {
            return effort.finish(context, false).await;
        }
        effort.step(context, &row, cause).await?;
        effort.pause().await?;
    }
}

/// Has the database take a partition over, as the operator's wish in the ledger demands, and waits
/// until it owns it.
///
/// # Errors
/// See [`Standstill`]; safe to repeat.
pub async fn hand_over(
    context: &Arc<Context>,
    partition: u32,
    cause: &str,
    time_limit: Duration,
) -> Result<Partition, Standstill> {
    let deadline = Instant::now() + time_limit;
    loop {
        let row = row_of(context, partition).await?;
        if row.state == PartitionState::Open && row.owner == Owner::Database {
            return Ok(row);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Standstill::TimedOut);
        }
        // One that is under way may have chosen its owner before the wish: then one more follows.
        if row.state == PartitionState::Open {
            renew(context, &row, cause, left).await?;
        } else {
            LedRecovery::new(context, row, left).finish(context, false).await?;
        }
    }
}

/// A recovery led by this process, for as long as it has patience.
struct LedRecovery {
    deadline: Instant,
    wait: Backoff,
    /// The row as last seen, and since when it has not changed.
    seen: (Partition, Instant),
}

impl LedRecovery {
    fn new(context: &Context, row: Partition, time_limit: Duration) -> Self {
        if context.redis_of(row.partition).is_some() {
            context.redis_health.watch(row.partition);
        }
        let now = Instant::now();
        let wait = Backoff::new(POLL.0, POLL.1);
        LedRecovery { deadline: now + time_limit, wait, seen: (row, now) }
    }

    /// Takes the partition on to an open epoch. Another node that leads is given its time.
    async fn finish(
        &mut self,
        context: &Arc<Context>,
        has_stalled: bool,
    ) -> Result<Partition, Standstill> {
        let (stalled, limit) = (self.seen.0.clone(), stalls_after(&context.settings));
        loop {
            let row = row_of(context, stalled.partition).await?;
            if row.state == PartitionState::Open {
                return Ok(row);
            }
            if self.seen.0 != row {
                self.seen = (row.clone(), Instant::now());
            }
            let is_mine = row.actor == Some(context.membership.node());
            let stands = has_stalled && row == stalled || self.seen.1.elapsed() > limit;
            if is_mine || stands {
                self.step(context, &row, &row.cause).await?;
            }
            self.pause().await?;
        }
    }

    /// One try; a store that does not answer is tried again until the deadline.
    async fn step(
        &self,
        context: &Arc<Context>,
        row: &Partition,
        cause: &str,
    ) -> Result<(), Standstill> {
        if context.redis.is_none() && matches!(row.owner, Owner::Redis { .. }) {
            return Err(Standstill::NoRedis);
        }
        // What another node saw is not known here: only a planned recovery trusts the data (F1).
        // This process has taken part in nothing and has nothing to acknowledge.
        let lost_data = row.state != PartitionState::Open;
        let plan = Plan { cause, lost_data, participations: Vec::new(), unsure: None };
        match recover(context, row, plan, async {}).await {
            Ok(Recovered::Held) => Err(Standstill::Held),
            Ok(Recovered::Opened | Recovered::Elsewhere) => Ok(()),
            Err(error @ RecoveryError::Foreign { .. }) => Err(error.into()),
            Err(error) if Instant::now() >= self.deadline => Err(error.into()),
            Err(error) => {
                tracing::info!(partition = row.partition, %error, "recovery waits");
                Ok(())
            }
        }
    }

    async fn pause(&mut self) -> Result<(), Standstill> {
        if Instant::now() >= self.deadline {
            return Err(Standstill::TimedOut);
        }
        self.wait.wait().await;
        Ok(())
    }
}

/// Whether the Redis of this process is the one that the nodes see.
async fn agree(context: &Context, partition: u32) -> Result<(), Standstill> {
    let Some(redis) = context.redis_of(partition) else { return Ok(()) };
    let Ok(probe) = redis.probe(&context.keys, partition).await else { return Ok(()) };
    for node in context.ledger.nodes().list().await.map_err(RecoveryError::from)? {
        let mut sight = node.sight.iter().flatten();
        if sight.any(|(seen, all)| *seen != probe.incarnation && all.contains(&partition)) {
            return Err(Standstill::OtherRedis { node: node.label });
        }
    }
    Ok(())
}

async fn row_of(context: &Context, partition: u32) -> Result<Partition, RecoveryError> {
    let rows = context.ledger.partitions().await?;
    Ok(Partition::among(rows, partition)?)
}
