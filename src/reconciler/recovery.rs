//! Closing an epoch and opening the next one.

use std::future::Future;

use thiserror::Error;

use crate::allocator::Context;
use crate::counter::{CounterError, OpenOutcome, Opening, Redis};
use crate::ledger::{At, Closing, LedgerError, Owner, Partition, PartitionState};
use crate::node::NodeId;

/// How a recovery ended, as far as this node is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// The next epoch is open.
    Opened,
    /// Another node is ahead, or the epoch has moved on.
    Elsewhere,
    /// The partition is held: an operator must act (F9).
    Held,
}

/// What a recovery waits for.
#[derive(Debug, Error)]
pub enum Trouble {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Redis. An epoch whose `open` has an unknown outcome is given up for the next.
    #[error(transparent)]
    Redis(#[from] CounterError),
    /// Nobody can wait for this: another ledger's numbers are counted in that Redis (F8).
    #[error("redis counts for the ledger {deployment}: use another one in redis.url")]
    Foreign {
        /// That ledger's deployment id.
        deployment: String,
    },
}

/// Takes a partition from where its row stands to an open epoch, if nobody else does.
///
/// `settled` ends when everything that this node handed out in the partition is committed; it is
/// waited for at most `recovery.barrier_max`. Closing an epoch of Redis at its ceilings is right
/// whatever `settled` has reached (late rows shrink the gaps). `lost_data` says that something was
/// missing or changed in Redis.
///
/// # Errors
/// See [`Trouble`]: safe to call again with the row as it stands then.
pub async fn recover(
    context: &Context,
    row: &Partition,
    cause: &str,
    lost_data: bool,
    settled: impl Future<Output = ()>,
) -> Result<Recovered, Trouble> {
    let started = tokio::time::Instant::now();
    let node = context.membership.node();
    let partition = row.partition;
    // The next owner is asked before anything is closed: no epoch ends for a Redis that is away.
    let owner = next_owner(context, partition).await?;
    let epoch = match row.state {
        PartitionState::Open | PartitionState::Opening => {
            let at = At { partition, epoch: row.epoch };
            match context.ledger.bump(at, row.state, node, cause).await? {
                Some(epoch) => epoch,
                None => return Ok(Recovered::Elsewhere),
            }
        }
        PartitionState::Recovering => row.epoch,
        PartitionState::Held => return Ok(Recovered::Held),
    };
    // The bound is a wait, not a cancellation: `settled` only watches the journal's progress.
    if tokio::time::timeout(context.settings.recovery_barrier_max, settled).await.is_err() {
        tracing::warn!(partition, epoch, "closing before this node's records are committed");
    }
    let at = At { partition, epoch };
    let closing = closing_of(row);
    if !context.ledger.claim_open(at, node, closing, &owner).await? {
        return Ok(Recovered::Elsewhere);
    }
    let pristine = epoch == 1 && row.owner == Owner::None;
    if let (Owner::Redis { incarnation }, Some(redis)) = (&owner, &context.redis) {
        match open(context, redis, at, incarnation, pristine, lost_data).await? {
            Recovered::Opened if context.ledger.opened(at, node).await? => {}
            Recovered::Opened | Recovered::Elsewhere => return Ok(Recovered::Elsewhere),
            Recovered::Held => return Ok(Recovered::Held),
        }
    }
    report(context, at, node, cause, closing, started.elapsed()).await;
    Ok(Recovered::Opened)
}

/// Redis where one may own the partition: whoever answers as master now. Else the ledger.
async fn next_owner(context: &Context, partition: u32) -> Result<Owner, Trouble> {
    let Some(redis) = context.redis_of(partition) else { return Ok(Owner::Database) };
    let probe = redis.probe(&context.keys, partition).await?;
    if !probe.is_master {
        return Err(CounterError::NotExecuted("the Redis server is not a master".into()).into());
    }
    let mine = context.deployment.deployment_id.to_string();
    match probe.deployment {
        Some(deployment) if deployment != mine => Err(Trouble::Foreign { deployment }),
        _ => Ok(Owner::Redis { incarnation: probe.incarnation }),
    }
}

/// How the epoch before may be closed. An epoch that never was open, or that the ledger owned, has
/// nothing unaccounted; one that Redis owned may have, in the hands of any of its participants.
fn closing_of(row: &Partition) -> Closing {
    match (row.state, &row.owner) {
        (PartitionState::Opening, _) | (_, Owner::None | Owner::Database) => Closing::Exact,
        (_, Owner::Redis { .. }) => Closing::Ceiling,
    }
}

/// Sends `open`, once (F6).
async fn open(
    context: &Context,
    redis: &Redis,
    at: At,
    incarnation: &str,
    pristine: bool,
    lost_data: bool,
) -> Result<Recovered, Trouble> {
    let opening = Opening {
        partition: at.partition,
        epoch: at.epoch,
        incarnation: incarnation.to_owned(),
        deployment: context.deployment.deployment_id.to_string(),
        // Whoever lost data may have lost idempotency records with it: they are carried over into
        // the next epoch only by a recovery that nothing forced (F1).
        closed_epoch: if lost_data { 0 } else { at.epoch - 1 },
        now_ms: context.clock.now_ms(),
        pristine,
    };
    let (newer, cause) = match redis.open(&context.keys, &opening).await? {
        OpenOutcome::Opened => return Ok(Recovered::Opened),
        OpenOutcome::Unfit { reason } => {
            return Err(CounterError::NotExecuted(format!("not opened: {reason}")).into());
        }
        OpenOutcome::Foreign { deployment } => return Err(Trouble::Foreign { deployment }),
        OpenOutcome::Newer { epoch } => {
            (epoch, format!("redis shows epoch {epoch}, above the ledger's: it went back"))
        }
    };
    // Another node may be ahead while this one was slow: then the ledger shows that epoch too.
    if !context.ledger.hold(At { epoch: newer, ..at }, &cause).await? {
        return Ok(Recovered::Elsewhere);
    }
    tracing::error!(partition = at.partition, cause, "partition held");
    Ok(Recovered::Held)
}

async fn report(
    context: &Context,
    at: At,
    node: NodeId,
    cause: &str,
    closing: Closing,
    took: std::time::Duration,
) {
    let kind = if at.epoch > 1 { "recovery" } else { "opening" };
    if at.epoch > 1 {
        context.metrics.recoveries.increment(1);
        tracing::warn!(
            partition = at.partition,
            epoch = at.epoch,
            cause,
            ?closing,
            ?took,
            "recovered"
        );
    }
    let detail = serde_json::json!({
        "cause": cause,
        "closing": match closing { Closing::Exact => "exact", Closing::Ceiling => "ceiling" },
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    context.event(kind, at, node, detail).await;
}
