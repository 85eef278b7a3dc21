//! Closing an epoch and opening the next one.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::time::Instant;

use super::outbox::adopt_outbox;
use super::owner::{next_owner, stays};
use crate::backoff::Backoff;
use crate::engine::node::Context;
use crate::ledger::{
    Acknowledged, At, Claim, Closing, LedgerError, Owner, Partition, PartitionState,
};
use crate::node::NodeId;
use crate::redis::{CounterError, OpenOutcome, Opening, Redis};

/// First and longest wait between two reads of the acknowledgements.
const BARRIER_POLL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));

/// How many times `recovery.barrier_max` a leader waits for its own journal: what it handed out is
/// known for sure, and an impatient close would give it up as unaccounted (F17).
const OWN_TIME_FACTOR: u32 = 5;

/// How a recovery ended, as far as this node is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// The next epoch is open.
    Opened,
    /// Another node is ahead, or nothing is to be changed.
    Elsewhere,
    /// The partition is held: an operator must act (F9).
    Held,
}

/// The condition that a recovery waits for.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Redis. An epoch whose `open` has an unknown outcome is given up for the next.
    #[error(transparent)]
    Redis(#[from] CounterError),
    /// Waiting does not help: another ledger's numbers are counted in that Redis (F8).
    #[error("redis counts for the ledger {deployment}: use another one in redis.url")]
    Foreign {
        /// That ledger's deployment id.
        deployment: String,
    },
}

/// Why a recovery is led, and what its leader has to account for itself.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What was seen.
    pub cause: &'a str,
    /// Whether something may be missing or changed in Redis: then idempotency records are not
    /// carried over (F1).
    pub lost_data: bool,
    /// Identities under which this process took part in the epoch that ends.
    pub participations: Vec<NodeId>,
    /// An identity that may have been entered in it and never sent a flight: its joining had no
    /// answer.
    pub unsure: Option<NodeId>,
}

/// Takes a partition from the state of its row to an open epoch, unless another process does.
///
/// `committed` ends when everything that this process handed out in the partition is committed; the
/// process must have left the epoch for good before, and is waited for a while longer than others.
/// Others are waited for at most `recovery.barrier_max`; a node that has not acknowledged by then
/// is barred, and taken over where Redis still has a whole outbox of it, else the epoch closes at
/// the ceiling.
///
/// # Errors
/// See [`RecoveryError`]: safe to call again with the row as it is then.
pub async fn recover(
    context: &Arc<Context>,
    row: &Partition,
    plan: Plan<'_>,
    committed: impl Future<Output = ()>,
) -> Result<Recovered, RecoveryError> {
    let started = Instant::now();
    let node = context.membership.node();
    let partition = row.partition;
    // The next owner is chosen before anything is closed: no epoch ends for a Redis that is away.
    let owner = next_owner(context, row).await?;
    if stays(row, &owner) {
        return Ok(Recovered::Elsewhere);
    }
    let epoch = match row.state {
        PartitionState::Open | PartitionState::Opening => {
            let at = At { partition, epoch: row.epoch };
            match context.ledger.bump(at, row.state, node, plan.cause).await? {
                Some(epoch) => epoch,
                None => return Ok(Recovered::Elsewhere),
            }
        }
        PartitionState::Recovering => row.epoch,
        PartitionState::Held => return Ok(Recovered::Held),
    };
    let at = At { partition, epoch };
    let closed = match close(context, at, row, &owner, &plan, committed).await? {
        Closed::As(closing, silent) => (closing, silent),
        Closed::Elsewhere => return Ok(Recovered::Elsewhere),
        Closed::Held => return Ok(Recovered::Held),
    };
    // Asked once the epoch is claimed: an import that brings documents commits before that, or sees
    // that Redis owns the partition (F29).
    let is_first = epoch == 1 && row.owner == Owner::None;
    let pristine = is_first && !context.ledger.counters().exist_in(partition).await?;
    if let (Owner::Redis { incarnation }, Some(redis)) = (&owner, &context.redis) {
        match open(context, redis, at, incarnation, pristine, plan.lost_data).await? {
            Recovered::Opened if context.ledger.opened(at, node).await? => {}
            Recovered::Opened | Recovered::Elsewhere => return Ok(Recovered::Elsewhere),
            Recovered::Held => return Ok(Recovered::Held),
        }
    }
    report(context, at, (row, &owner), plan.cause, closed, started.elapsed()).await;
    Ok(Recovered::Opened)
}

/// How a claim to close an epoch ended.
enum Closed {
    /// How, and which nodes had not acknowledged when the wait was over.
    As(Closing, Vec<NodeId>),
    Elsewhere,
    Held,
}

/// The barrier and the claim: waits until every participant is accounted for, or long enough.
async fn close(
    context: &Context,
    at: At,
    row: &Partition,
    owner: &Owner,
    plan: &Plan<'_>,
    committed: impl Future<Output = ()>,
) -> Result<Closed, RecoveryError> {
    let (ledger, node) = (&context.ledger, context.membership.node());
    let limit = context.settings.recovery_barrier_max;
    let deadline = Instant::now() + limit;
    // The bound is a wait, not a cancellation: `committed` only watches the journal's progress.
    let is_committed = tokio::time::timeout(limit * OWN_TIME_FACTOR, committed).await.is_ok();
    if let Some(unsure) = plan.unsure {
        // Whether it was entered or not: it has nothing to journal.
        ledger.acknowledge(at, &[unsure]).await?;
    }
    if is_committed && !plan.participations.is_empty() {
        match ledger.acknowledge(at, &plan.participations).await? {
            Acknowledged::Taken => {}
            Acknowledged::TooLate => return Ok(Closed::Elsewhere),
            Acknowledged::Forgotten => {
                let cause = "the ledger went back: this node's participation is forgotten";
                let held = context.hold(At { epoch: at.epoch + 1, ..at }, cause).await?;
                return Ok(if held { Closed::Held } else { Closed::Elsewhere });
            }
        }
    }
    let mut wait = Backoff::new(BARRIER_POLL.0, BARRIER_POLL.1);
    let silent = loop {
        match ledger.claim_open(at, node, false, owner).await? {
            Claim::Closed(closing) => return Ok(Closed::As(closing, Vec::new())),
            Claim::Elsewhere => return Ok(Closed::Elsewhere),
            Claim::Waiting(_) if Instant::now() < deadline => wait.wait().await,
            Claim::Waiting(silent) => break silent,
        }
    };
    adopt(context, at, row, &silent).await;
    match ledger.claim_open(at, node, true, owner).await? {
        Claim::Closed(closing) => Ok(Closed::As(closing, silent)),
        Claim::Waiting(_) | Claim::Elsewhere => Ok(Closed::Elsewhere),
    }
}

/// Takes over the outboxes of participants that did not acknowledge, as far as Redis still carries
/// the epoch that ends. A participant whose outbox is complete does not keep it from closing exact.
async fn adopt(context: &Context, at: At, row: &Partition, silent: &[NodeId]) {
    let (Some(redis), Owner::Redis { incarnation }) = (&context.redis, &row.owner) else { return };
    let ending = At { epoch: at.epoch - 1, ..at };
    for node in silent {
        // The outbox of this process is not taken over: its journal queue has the same records.
        if *node == context.membership.node() {
            continue;
        }
        if let Err(error) = adopt_outbox(context, redis, ending, incarnation, *node).await {
            tracing::warn!(partition = at.partition, %node, %error, "not accounted for");
        }
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
) -> Result<Recovered, RecoveryError> {
    let opening = Opening {
        partition: at.partition,
        epoch: at.epoch,
        incarnation: incarnation.to_owned(),
        deployment: context.deployment.deployment_id.to_string(),
        // Where data was lost, idempotency records may be lost with it: they are carried over into
        // the next epoch only by a recovery that no fault forced (F1).
        closed_epoch: if lost_data { 0 } else { at.epoch - 1 },
        now_ms: None,
        pristine,
        window_ms: context.settings.idempotency_window_ms(),
    };
    let (newer, cause) = match redis.open(&context.keys, &opening).await? {
        OpenOutcome::Opened => return Ok(Recovered::Opened),
        OpenOutcome::Unfit { reason } => {
            return Err(CounterError::NotExecuted(format!("not opened: {reason}")).into());
        }
        OpenOutcome::Foreign { deployment } => return Err(RecoveryError::Foreign { deployment }),
        OpenOutcome::Newer { epoch } => {
            (epoch, format!("redis shows epoch {epoch}, above the ledger's: it went back"))
        }
    };
    // Another node may be ahead while this one was slow: then the ledger shows that epoch too.
    let held = context.hold(At { epoch: newer, ..at }, &cause).await?;
    Ok(if held { Recovered::Held } else { Recovered::Elsewhere })
}

/// Reports what was done, in log, metrics and ledger.
async fn report(
    context: &Arc<Context>,
    at: At,
    (before, owner): (&Partition, &Owner),
    cause: &str,
    (closing, silent): (Closing, Vec<NodeId>),
    took: Duration,
) {
    let kind = match (&before.owner, owner) {
        (Owner::None, _) => "opening",
        (Owner::Redis { .. }, Owner::Database) => "fallback",
        (Owner::Database, Owner::Redis { .. }) => "return",
        _ => "recovery",
    };
    if kind != "opening" {
        let word = if closing == Closing::Exact { "exact" } else { "ceiling" };
        context.metrics.count_recovery(kind, word, took);
        let partition = at.partition;
        tracing::warn!(kind, partition, epoch = at.epoch, cause, ?closing, ?took, "recovered");
    }
    let silent: Vec<String> = silent.iter().map(ToString::to_string).collect();
    let mut detail = serde_json::json!({
        "cause": cause,
        "closing": match closing { Closing::Exact => "exact", Closing::Ceiling => "ceiling" },
        "owner": match owner { Owner::Redis { .. } => "redis", _ => "database" },
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "waited_for": silent,
    });
    let (context, node) = (Arc::clone(context), context.membership.node());
    if closing == Closing::Exact {
        return context.event(kind, at, node, detail).await;
    }
    let closed = At { epoch: at.epoch - 1, ..at };
    let is_service = context.eager;
    let tell = async move {
        match context.ledger.lost_at_most(closed).await {
            Ok(numbers) => detail["numbers_at_most"] = numbers.into(),
            Err(error) => tracing::warn!(%error, "cannot count how many numbers are affected"),
        }
        context.event(kind, at, node, detail).await;
    };
    // The sum takes as long as there are counters: requests do not wait for it. A command does, or
    // it would end before the event is on record.
    if is_service {
        tokio::spawn(tell);
    } else {
        tell.await;
    }
}
