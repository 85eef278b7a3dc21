//! `numerator reconcile --ledger-restored`: releases partitions that are held because the ledger
//! went back. Shows what it finds; writes only with `--apply`. Safe while services run: they refuse
//! until the release, and continue automatically after it.

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use crate::config::Settings;
use crate::engine::reconciler::{Restore, RestoreError, Restored, is_held};
use crate::features::operations::reconcile::ReconcileArgs;
use crate::ledger::{Event, Partition, SharedLedger};
use crate::node::NodeId;
use crate::redis::{Keys, Redis};
use crate::startup::must_have_key;
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::{
    check_partition, clock, note_act, open_catalog, open_deployment, operator,
};
use crate::terminal::words::moment;

/// Most counters that are named among those that a margin uses up.
const NAMED_MAX: usize = 20;

/// Counters that are read in one statement.
const PAGE_COUNTERS: u32 = 1_000;

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

/// The findings, and what was done.
#[derive(Debug, Serialize)]
struct RestoredAnswer {
    applied: bool,
    /// When the ledger was first held, for the current hold; none if nothing is held.
    held_at: Option<String>,
    /// When the newest number that it had journaled by then was issued: later ones are forgotten.
    newest_record_at: Option<String>,
    partitions: Vec<Restored>,
    /// Counters that can issue nothing after the margin, as far as the ledger knows; at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    used_up: Vec<String>,
    /// Their total number.
    used_up_total: u64,
}

/// Runs, and prints the findings and what was done.
///
/// # Errors
/// Stores that cannot be reached; partitions that need a margin if none is named, which stay held;
/// a partition that cannot be released otherwise: those before it are released, and reported.
pub(crate) async fn run(settings: &Settings, args: &ReconcileArgs) -> anyhow::Result<()> {
    let (ledger, deployment) = open_deployment(settings).await?;
    check_partition(&ledger, args.partition).await?;
    if args.apply {
        must_have_key(&ledger, &settings.audit, &clock()).await?;
    }
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
    let rows = ledger.partitions().await?;
    let held_at_us = rows.iter().filter(|row| is_held(row)).map(|row| row.changed_at_us).min();
    let newest_us = match held_at_us {
        Some(held_at_us) => ledger.last_issued_us(held_at_us).await?,
        None => None,
    };
    let is_asked = |row: &Partition| args.partition.is_none_or(|number| number == row.partition);
    let held: Vec<Partition> =
        rows.into_iter().filter(|row| is_held(row) && is_asked(row)).collect();
    let (partitions, failed) = each(&restore, &held).await;
    if args.apply {
        let released = partitions.iter().filter(|restored| restored.released.is_some()).count();
        let detail = serde_json::json!({
            "ledger_restored": true, "partition": args.partition, "hold": hold, "margin": margin,
            "without_redis": without_redis, "released": released,
            "failed": failed.as_ref().map(|error| format!("{error:#}")),
        });
        note_act(&ledger, "reconciled", detail).await;
    }
    let (mut used_up, mut used_up_total) = (Vec::new(), 0);
    if let Some(margin) = margin.filter(|_| !args.apply) {
        (used_up, used_up_total) = find_used_up(settings, &ledger, &held, margin).await?;
    }
    if let Some(redis) = &redis {
        redis.stop().await;
    }
    let answer = RestoredAnswer {
        applied: args.apply,
        held_at: held_at_us.map(moment),
        newest_record_at: newest_us.map(moment),
        partitions,
        used_up,
        used_up_total,
    };
    // Released partitions are reported even after an error.
    if args.json {
        print_json(&answer)?;
    } else if failed.is_none() || !answer.partitions.is_empty() {
        print(answer.lines())?;
    }
    failed.map_or(Ok(()), Err)
}

/// Examines each, or releases it. One that needs a margin while none is named stays held. The
/// others are released nevertheless: their margin would only be a gap. Ends at any other failure.
async fn each(restore: &Restore<'_>, held: &[Partition]) -> (Vec<Restored>, Option<anyhow::Error>) {
    let (mut partitions, mut needs) = (Vec::new(), Vec::new());
    for row in held {
        let mut restored = restore.partition(row).await;
        if let Err(RestoreError::MarginNeeded(partition, why)) = &restored {
            needs.push(format!("partition {partition}: {why}"));
            restored = Restore { apply: false, ..*restore }.partition(row).await;
        }
        match restored {
            Ok(restored) => {
                if restored.released.is_some() {
                    record(restore, &restored).await;
                }
                partitions.push(restored);
            }
            Err(error) => {
                let why = format!("partition {} is not released", row.partition);
                return (partitions, Some(anyhow::Error::new(error).context(why)));
            }
        }
    }
    let failed = (!needs.is_empty()).then(|| {
        anyhow::anyhow!(
            "{} of {} partitions are held still: say with --margin how many numbers each counter \
             may have issued since the newest record of the ledger; {}",
            needs.len(),
            held.len(),
            needs.join("; ")
        )
    });
    (partitions, failed)
}

/// Counters of held partitions that are exhausted once a margin has raised them, and their number.
/// Values that only Redis remembers are not considered.
async fn find_used_up(
    settings: &Settings,
    ledger: &SharedLedger,
    held: &[Partition],
    margin: u64,
) -> anyhow::Result<(Vec<String>, u64)> {
    let catalog = open_catalog(settings).await?;
    let (mut named, mut total, mut after) = (Vec::new(), 0, 0);
    loop {
        let page = ledger.counters().page(after, PAGE_COUNTERS).await?;
        let Some(last) = page.last() else { return Ok((named, total)) };
        after = last.counter_id;
        for counter in page {
            let served = catalog.all().find(|one| one.version.series_id == counter.series_id);
            let serials = served.map_or(&[][..], |one| one.series.serials());
            let serial = serials.iter().find(|serial| serial.name == counter.serial);
            let (Some(served), Some(serial)) = (served, serial) else { continue };
            if !held.iter().any(|row| row.partition == counter.partition) {
                continue;
            }
            let next =
                i128::from(counter.ceiling) + (i128::from(margin) + 1) * i128::from(counter.step);
            if next <= i128::from(serial.max) {
                continue;
            }
            total += 1;
            if named.len() < NAMED_MAX {
                let (code, key) = (&served.version.definition.code, &counter.key);
                let of = if key.is_empty() { String::new() } else { format!(" of {key}") };
                let (ceiling, max) = (counter.ceiling, serial.max);
                named.push(format!(
                    "series {code}: {}{of}: it may have issued up to {ceiling} of {max}",
                    serial.name
                ));
            }
        }
    }
}

/// An event in the ledger, with the user who released it and the stated values; without it the
/// release is valid nevertheless.
async fn record(restore: &Restore<'_>, restored: &Restored) {
    let mut detail = serde_json::to_value(restored).unwrap_or_default();
    detail["user"] = operator().into();
    detail["margin"] = restore.margin.into();
    detail["without_redis"] = restore.without_redis.into();
    let event = Event {
        at_us: clock().now_us(),
        kind: "ledger-restored".into(),
        partition: Some(restored.partition),
        epoch: restored.released,
        node_id: Some(restore.node),
        detail,
    };
    if let Err(error) = restore.ledger.events().record(&event).await {
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
        for counter in &self.used_up {
            lines.push(format!("the margin uses up {counter}"));
        }
        let unnamed = self.used_up_total - self.used_up.len() as u64;
        if unnamed > 0 {
            lines.push(format!("and {unnamed} counters more"));
        }
        if !self.applied {
            lines.push("nothing is changed yet; do it with --apply".into());
        }
        lines
    }
}
