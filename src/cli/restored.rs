//! `numerator reconcile --ledger-restored`: releases partitions that are held because the ledger
//! went back. Shows what it finds; writes only with `--apply`. Safe while services run: they refuse
//! until the release, and go on by themselves after it.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use super::output::{print, print_json, say};
use super::reconcile::ReconcileArgs;
use super::session::{check_partition, clock, open_deployment};
use super::words::moment;
use crate::config::Settings;
use crate::counter::{Keys, Redis};
use crate::ledger::{Event, SharedLedger};
use crate::node::NodeId;
use crate::reconciler::{Restore, Restored, is_held};

/// How held partitions are released; which ones, and whether at all, say the arguments of
/// `reconcile`.
#[derive(Clone, Debug, Args)]
pub struct RestoredArgs {
    /// The ledger went back (a restored backup): release what is held, above all that was issued
    #[arg(long, conflicts_with_all = ["new_epoch", "patience"])]
    pub ledger_restored: bool,
    /// Numbers to leave out above each counter, for those that nobody remembers
    #[arg(long, value_name = "NUMBERS", requires = "ledger_restored")]
    pub margin: Option<u64>,
    /// The data of Redis is lost: do not ask it
    #[arg(long, requires = "ledger_restored")]
    pub without_redis: bool,
    /// Hold all partitions first: for a ledger that was restored while no service ran
    #[arg(long, requires = "ledger_restored", requires = "apply")]
    pub hold: bool,
}

/// What was found and done.
#[derive(Debug, Serialize)]
struct RestoredAnswer {
    applied: bool,
    /// When the ledger was first held of what is held now; none where nothing is.
    held_at: Option<String>,
    /// When the newest number was issued that it had journaled by then: what came after is
    /// forgotten.
    newest_record_at: Option<String>,
    partitions: Vec<Restored>,
}

/// Prints what it found and did.
///
/// # Errors
/// Stores that cannot be reached, a partition that cannot be released; those before it are.
pub(super) async fn run(settings: &Settings, args: &ReconcileArgs) -> anyhow::Result<()> {
    let (ledger, deployment) = open_deployment(settings).await?;
    check_partition(&ledger, args.partition).await?;
    let RestoredArgs { margin, without_redis, hold, .. } = args.restored;
    let redis = settings.redis.as_ref().filter(|_| !without_redis);
    let redis = redis.map(Redis::start).transpose().context("redis.url")?;
    let restore = Restore {
        ledger: &ledger,
        redis: redis.as_ref(),
        keys: &Keys::new(&deployment.prefix),
        deployment: &deployment.deployment_id.to_string(),
        node: NodeId::random(),
        margin,
        without_redis,
        apply: args.apply,
    };
    if hold {
        ledger.hold_all(&[], "an operator restored the ledger").await?;
    }
    let (mut partitions, rows) = (Vec::new(), ledger.partitions().await?);
    let held_at_us = rows.iter().filter(|row| is_held(row)).map(|row| row.changed_at_us).min();
    let newest_us = match held_at_us {
        Some(held_at_us) => ledger.last_issued_us(held_at_us).await?,
        None => None,
    };
    for row in rows {
        if !is_held(&row) || args.partition.is_some_and(|number| number != row.partition) {
            continue;
        }
        let restored = restore.partition(&row).await?;
        if restored.released.is_some() {
            record(&ledger, &restored, restore.node).await;
        }
        partitions.push(restored);
    }
    if let Some(redis) = &redis {
        redis.stop().await;
    }
    let answer = RestoredAnswer {
        applied: args.apply,
        held_at: held_at_us.map(moment),
        newest_record_at: newest_us.map(moment),
        partitions,
    };
    if args.json {
        print_json(&answer)?;
    } else {
        print(answer.lines())?;
    }
    Ok(())
}

/// An event in the ledger (R5.2); without it the release stands all the same.
async fn record(ledger: &SharedLedger, restored: &Restored, node: NodeId) {
    let event = Event {
        at_us: clock().now_us(),
        kind: "ledger-restored".into(),
        partition: Some(restored.partition),
        epoch: restored.released,
        node_id: Some(node),
        detail: serde_json::to_value(restored).unwrap_or_default(),
    };
    if let Err(error) = ledger.record_event(&event).await {
        say(format_args!("numerator: the event is not on record: {error}"));
    }
}

impl RestoredAnswer {
    /// The same for people.
    fn lines(&self) -> Vec<String> {
        if self.partitions.is_empty() {
            return vec!["no partition is held; nothing to do".into()];
        }
        let line = |found: &Restored| {
            let Restored { partition, epoch, counters, counters_behind, records, .. } = found;
            let end = match (found.released, found.unbounded) {
                (Some(epoch), _) => {
                    format!("{} journaled, open at epoch {epoch}", found.journaled)
                }
                (None, Some(why)) => format!("held; --margin is needed: {why}"),
                (None, None) => "held".to_owned(),
            };
            let epoch_or = |epoch: Option<u64>| epoch.map_or("-".to_owned(), |e| e.to_string());
            format!(
                "partition {partition}: epoch {epoch} (seen {}, redis {} to {}), counters \
                 {counters} ({counters_behind} behind), records {records}, left alone {}: {end}",
                found.seen_epoch,
                epoch_or(found.run_since),
                epoch_or(found.redis_epoch),
                found.left_alone,
            )
        };
        let mut lines: Vec<String> = self.partitions.iter().map(line).collect();
        if self.partitions.iter().any(|found| found.unbounded.is_some()) {
            let at = |moment: &Option<String>| moment.clone().unwrap_or_else(|| "-".to_owned());
            lines.push(format!(
                "the newest record is of {}, the ledger was held at {}: a margin covers what each \
                 counter may have issued since",
                at(&self.newest_record_at),
                at(&self.held_at),
            ));
        }
        if !self.applied {
            lines.push("nothing is changed yet; do it with --apply".into());
        }
        lines
    }
}
