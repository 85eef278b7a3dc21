//! This process in a quorum check over a ledger that went back: it has replayed what it remembers
//! (F35), reports whether that is all, and opens the partitions with the others once each has
//! reported (F25).
//!
//! Runs apart from the heartbeat, which must not wait for it. Decides nothing: the ledger does,
//! from the reports of all nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::Context;
use crate::engine::journal::Replayed;
use crate::ledger::{Agreement, At, Known, LedgerError, Owner, Partition, PartitionState, Report};
use crate::task::{Task, Ticks};

/// How far this process is.
#[derive(Debug, Default)]
enum Stage {
    /// Nothing was reported.
    #[default]
    Rests,
    /// The others are waited for; the nodes that were missing when it was last logged.
    Waits(Option<Agreement>),
    /// There is no inquest, or it is over.
    Done,
}

/// Its part in the inquest of one incarnation.
#[derive(Debug, Default)]
pub struct QuorumCheck {
    nonce: Option<Uuid>,
    stage: Stage,
}

impl QuorumCheck {
    /// Starts looking, as often as the heartbeat.
    #[must_use]
    pub fn start(context: Arc<Context>) -> Task {
        let period = context.settings.node_heartbeat();
        Task::start("inquest", move |stop| async move {
            let (mut ticks, mut quorum_check) =
                (Ticks::every(period, stop), QuorumCheck::default());
            while ticks.next().await {
                if let Err(error) = quorum_check.step(&context).await {
                    tracing::info!(%error, "the inquest over the ledger waits");
                }
            }
        })
    }

    /// One step, where one can be made.
    async fn step(&mut self, context: &Context) -> Result<(), LedgerError> {
        let rows = context.membership.news().borrow().clone();
        if !context.ledger.fails_over() || rows.iter().any(|row| row.state != PartitionState::Held)
        {
            context.membership.memory().go_on();
            *self = QuorumCheck::default();
            return Ok(());
        }
        // Until it has another identity it is not in the incarnation of the hold.
        let node = context.membership.node();
        let confirmed = context.ledger.confirmed(node);
        let Some(nonce) = confirmed.map(|confirmed| confirmed.nonce) else { return Ok(()) };
        if context.membership.ledger_went_back() {
            return Ok(());
        }
        if self.nonce != Some(nonce) {
            *self = QuorumCheck { nonce: Some(nonce), stage: Stage::Rests };
        }
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::Rests => {
                // It takes no identity in an incarnation before the replay there is done.
                let Some(replayed) = context.membership.replayed(nonce) else { return Ok(()) };
                if report(context, nonce, replayed).await? {
                    Stage::Waits(None)
                } else {
                    tracing::warn!("nobody asks: an operator releases the ledger");
                    Stage::Done
                }
            }
            Stage::Waits(before) => match agree(context, &rows).await {
                Ok(Some(found)) => conclude(context, &rows, before, found).await,
                Ok(None) => Stage::Waits(before),
                Err(error) => {
                    self.stage = Stage::Waits(before);
                    return Err(error);
                }
            },
            Stage::Done => Stage::Done,
        };
        Ok(())
    }
}

/// Reports what this process is, has seen and remembers; false where no quorum check is open.
async fn report(context: &Context, nonce: Uuid, replayed: Replayed) -> Result<bool, LedgerError> {
    let (ledger, membership) = (&context.ledger, &context.membership);
    let beaten = membership.memory().beaten(nonce);
    let beats = ledger.nodes().beats(&beaten).await?;
    let shown: BTreeMap<_, _> =
        beaten.into_iter().zip(beats).filter_map(|(node, beat)| Some((node, beat?))).collect();
    let has_catalog = ledger.has_catalog().await?;
    let report = {
        let node = membership.node();
        let mut memory = membership.memory();
        let complete_until = memory.complete_until(nonce, &shown);
        // Everything that is gone from memory must precede the last moment that the ledger shows.
        let is_older =
            |lost: Option<_>| lost.is_none_or(|lost| complete_until.is_some_and(|at| lost < at));
        let lost = [replayed.forgot, memory.forgot(), ledger.changed_at(), ledger.forgot_held()];
        let remembers = lost.map(is_older);
        let is_complete = has_catalog && replayed.refused == 0 && remembers == [true; 4];
        tracing::warn!(
            ?replayed,
            has_catalog,
            ?remembers,
            "what this process remembers is reported"
        );
        Report {
            node,
            is_complete: memory.judge(is_complete),
            identities: memory.identities().collect(),
            known: Known { epochs: membership.seen(), nodes: memory.met().collect() },
        }
    };
    ledger.report(&report).await
}

/// Asks whether every node has reported; `None` while Redis cannot be asked which nodes it has met.
async fn agree(context: &Context, rows: &[Partition]) -> Result<Option<Agreement>, LedgerError> {
    let Some(known) = known_to_redis(context, rows).await else { return Ok(None) };
    context.ledger.agree(context.membership.node(), &known).await.map(Some)
}

/// The epochs and nodes that the owner records show.
async fn known_to_redis(context: &Context, rows: &[Partition]) -> Option<Known> {
    let mut known = Known::default();
    let deployment = context.deployment.deployment_id.to_string();
    for Partition { partition, owner, .. } in rows {
        let Some(redis) = context.redis_of(*partition) else {
            if matches!(owner, Owner::Redis { .. }) {
                return None;
            }
            continue;
        };
        let survey = match redis.survey(&context.keys, *partition, &[]).await {
            Ok(survey) if survey.is_master => survey,
            other => {
                tracing::info!(partition, ?other, "redis cannot say yet whom it has met");
                return None;
            }
        };
        let Some(owner) = survey.owner.filter(|owner| owner.deployment == deployment) else {
            continue;
        };
        known.epochs.push(At { partition: *partition, epoch: owner.epoch });
        known.nodes.extend(survey.senders);
    }
    Some(known)
}

/// Logs the decision of the ledger.
async fn conclude(
    context: &Context,
    rows: &[Partition],
    before: Option<Agreement>,
    found: Agreement,
) -> Stage {
    match found {
        Agreement::NoCheck => Stage::Done,
        Agreement::Agreed => {
            let epoch = rows.first().map_or(0, |row| row.epoch);
            let detail = serde_json::json!({
                "cause": "all processes have reported what was confirmed to them",
            });
            let at = At { partition: 0, epoch };
            context.event("ledger-agreed", at, context.membership.node(), detail).await;
            Stage::Done
        }
        found => {
            if before.as_ref() != Some(&found) {
                tracing::warn!(?found, "the ledger that went back waits for processes");
            }
            Stage::Waits(Some(found))
        }
    }
}
