//! `numerator reconcile`: repairs what is not repaired automatically: stalled recoveries, outboxes
//! of silent nodes, counters of closed epochs that are not settled. Without `--apply` it only
//! reports. `--ledger-restored` and `--rejected` are separate tasks (`restored.rs`, `rejected.rs`).

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::config::{DurationText, Settings};
use crate::engine::reconciler::{
    Life, Standstill, carry_on, observe, renew, settle_counters, settle_slices, stalled,
};
use crate::features::operations::drain::AdoptionAnswer;
use crate::features::operations::restored::RestoredArgs;
use crate::features::operations::{rejected, restored};
use crate::ledger::{Node, Owner, Partition, PartitionState, SharedLedger};
use crate::startup::Service;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{check_partition, note_act, open_ledger, operator, with_service};
use crate::terminal::words;

/// What to put right.
#[derive(Clone, Debug, Args)]
pub struct ReconcileArgs {
    /// Only this partition
    #[arg(long)]
    pub partition: Option<u32>,
    /// Do it; without it, print what would be done
    #[arg(long)]
    pub apply: bool,
    /// End the open epochs of Redis too and open the next ones: a planned recovery
    #[arg(long)]
    pub new_epoch: bool,
    /// Longest wait for silent nodes, and for each partition's recovery
    #[arg(long, value_name = "DURATION", default_value = "15s")]
    pub patience: DurationText,
    /// Journal the records again that the ledger refused and keeps beside the journal, all at once
    #[arg(long, conflicts_with_all = ["partition", "new_epoch", "patience", "ledger_restored"])]
    pub rejected: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// How held partitions are released instead.
    #[command(flatten)]
    pub restored: RestoredArgs,
}

/// The findings, and what was done.
#[derive(Debug, Serialize)]
struct ReconcileAnswer {
    applied: bool,
    /// Stalled recoveries, and epochs that an operator ends.
    recoveries: Vec<RecoveryAnswer>,
    /// Partitions that wait for an operator: the ledger went back.
    held: Vec<u32>,
    /// Nodes whose heartbeat does not move; if applied, with the outcome.
    silent: Vec<SilentAnswer>,
    /// Why the silent nodes are not known, if the ledger takes no heartbeats.
    untold: Option<String>,
    adoption: Option<AdoptionAnswer>,
    /// Counters of closed epochs whose lost values are not registered yet, or were just registered.
    unsettled: u64,
    /// What remains to be done, or has failed.
    problems: Vec<String>,
}

/// A recovery.
#[derive(Debug, Serialize)]
struct RecoveryAnswer {
    partition: u32,
    /// The epoch as found, or if applied, as left.
    epoch: u64,
    state: &'static str,
    owner: &'static str,
    /// How the epoch before was closed; known once it is.
    closing: Option<&'static str>,
    cause: String,
}

/// A silent node.
#[derive(Debug, Serialize)]
struct SilentAnswer {
    node_id: String,
    label: String,
    /// Where it may have left an outbox.
    partitions: Vec<u32>,
}

impl RecoveryAnswer {
    fn of(row: Partition) -> Self {
        let is_closed = row.state != PartitionState::Recovering;
        RecoveryAnswer {
            partition: row.partition,
            epoch: row.epoch,
            state: words::state(row.state),
            owner: words::owner(&row.owner),
            closing: row.last_closing.filter(|_| is_closed).map(words::closing),
            cause: row.cause,
        }
    }
}

impl SilentAnswer {
    fn of(node: &Node) -> Self {
        let (node_id, label) = (node.node_id.to_string(), node.label.clone());
        SilentAnswer { node_id, label, partitions: node.partitions.clone() }
    }
}

/// Reports, and repairs if requested.
///
/// # Errors
/// A ledger that cannot be reached; anything that could not be repaired.
pub async fn run(settings: &Settings, args: &ReconcileArgs) -> anyhow::Result<()> {
    if args.restored.ledger_restored {
        return restored::run(settings, args).await;
    }
    if args.rejected {
        return rejected::run(settings, args).await;
    }
    let answer = if args.apply {
        let work = async |service: &Service| {
            let done = apply(settings, args, service).await;
            note_act(&service.ledger, "reconciled", detail(args, &done)).await;
            done
        };
        with_service(settings, work).await?
    } else {
        look(settings, args).await?
    };
    if args.json {
        print_json(&answer)?;
    } else {
        print(answer.lines())?;
    }
    if let Some(why) = &answer.untold {
        bail!("cannot tell which processes live: the ledger takes no heartbeats: {why}");
    }
    if args.apply && !answer.problems.is_empty() {
        bail!("not everything was put right: {}", answer.problems.join("; "));
    }
    Ok(())
}

/// Reports what would be done.
async fn look(settings: &Settings, args: &ReconcileArgs) -> anyhow::Result<ReconcileAnswer> {
    let ledger = open_ledger(settings).await?;
    check_partition(&ledger, args.partition).await?;
    let mut recoveries = stalled(&ledger, &settings.allocator, args.partition).await?;
    if args.new_epoch {
        recoveries.extend(open(&ledger, args).await?);
    }
    let seen = observe(&ledger, settings.allocator.node_ttl).await?;
    Ok(ReconcileAnswer {
        applied: false,
        recoveries: recoveries.into_iter().map(RecoveryAnswer::of).collect(),
        held: held(&ledger, args).await?,
        silent: seen.of(Life::Silent).map(SilentAnswer::of).collect(),
        untold: seen.untold,
        adoption: None,
        unsettled: settle_counters(&ledger, args.partition, false).await?,
        problems: Vec::new(),
    })
}

/// Does it, as a node.
async fn apply(
    settings: &Settings,
    args: &ReconcileArgs,
    service: &Service,
) -> anyhow::Result<ReconcileAnswer> {
    let (ledger, context) = (&service.ledger, &service.context);
    check_partition(ledger, args.partition).await?;
    let patience = args.patience.0;
    let (mut recoveries, mut problems) = (Vec::new(), Vec::new());
    let mut done = |partition: u32, result: Result<Partition, Standstill>| match result {
        Ok(row) => recoveries.push(RecoveryAnswer::of(row)),
        Err(error) => problems.push(format!("partition {partition}: {error}")),
    };
    for row in stalled(ledger, &settings.allocator, args.partition).await? {
        done(row.partition, carry_on(context, &row, patience).await);
    }
    // Before epochs are ended: only a readable outbox prevents their closing at the ceiling.
    let adoption = AdoptionAnswer::adopt(service, args.partition, patience).await?;
    if args.new_epoch {
        let cause = format!("{} wants a new epoch", operator());
        for row in open(ledger, args).await? {
            done(row.partition, renew(context, &row, &cause, patience).await);
        }
    }
    let unsettled = settle_counters(ledger, args.partition, true).await?;
    settle_slices(ledger).await?;
    if adoption.rest > 0 {
        problems.push(format!("{} silent nodes are not adopted yet", adoption.rest));
    }
    let held = held(ledger, args).await?;
    problems.extend(held.iter().map(|one| format!("partition {one} is held")));
    let (applied, silent, adoption) = (true, Vec::new(), Some(adoption));
    let untold = None;
    Ok(ReconcileAnswer { applied, recoveries, held, silent, untold, adoption, unsettled, problems })
}

/// The request and the result, as an event.
fn detail(args: &ReconcileArgs, done: &anyhow::Result<ReconcileAnswer>) -> serde_json::Value {
    let answer = done.as_ref().ok();
    serde_json::json!({
        "partition": args.partition, "new_epoch": args.new_epoch,
        "recoveries": answer.map(|answer| answer.recoveries.len()),
        "adoption": answer.map(|answer| &answer.adoption),
        "settled": answer.map(|answer| answer.unsettled),
        "problems": answer.map(|answer| &answer.problems),
        "failed": done.as_ref().err().map(|error| format!("{error:#}")),
    })
}

/// Requested partitions that are open in Redis; only `fallback off` leads back to Redis.
async fn open(ledger: &SharedLedger, args: &ReconcileArgs) -> anyhow::Result<Vec<Partition>> {
    let mut rows = ledger.partitions().await?;
    rows.retain(|row| {
        let is_asked = args.partition.is_none_or(|one| one == row.partition);
        let is_of_redis = matches!(row.owner, Owner::Redis { .. });
        is_asked && is_of_redis && row.state == PartitionState::Open
    });
    Ok(rows)
}

async fn held(ledger: &SharedLedger, args: &ReconcileArgs) -> anyhow::Result<Vec<u32>> {
    let rows = ledger.partitions().await?;
    let held = rows.iter().filter(|row| row.state == PartitionState::Held);
    Ok(held.map(|row| row.partition).filter(|p| args.partition.is_none_or(|o| o == *p)).collect())
}

impl ReconcileAnswer {
    /// The same for people.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let (verb, settled) = match self.applied {
            true => ("now", "counters of closed epochs settled"),
            false => ("would go on from", "counters of closed epochs to be settled"),
        };
        for row in &self.recoveries {
            let RecoveryAnswer { partition, epoch, state, owner, closing, cause } = row;
            let closing = closing.map_or(String::new(), |word| format!(", closed {word} before"));
            lines.push(format!(
                "partition {partition}: {verb} epoch {epoch}, {state}, owner {owner}{closing} \
                 ({cause})"
            ));
        }
        for partition in &self.held {
            lines.push(format!(
                "partition {partition} is held: the ledger went back; see --ledger-restored and \
                 docs/runbook.md"
            ));
        }
        for SilentAnswer { node_id, label, partitions } in &self.silent {
            lines.push(format!(
                "node {node_id} ({label}) is silent: would adopt its outboxes in {partitions:?}"
            ));
        }
        lines.extend(self.adoption.as_ref().map(AdoptionAnswer::line));
        lines.push(format!("{settled}: {}", self.unsettled));
        if !self.applied {
            lines.push("nothing was changed; --apply does it".into());
        }
        lines
    }
}
