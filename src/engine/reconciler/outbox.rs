//! Adopts one outbox: bar its node, read it whole, journal it, remove it.
//!
//! The node may only be paused, so it is barred before its outbox is read; when it wakes it learns
//! so (F7). Only a whole outbox accounts for its node, and only in the epoch named (F5).

use crate::engine::node::Context;
use crate::ledger::{Adopted, At, Entry, LedgerError};
use crate::node::NodeId;
use crate::redis::{Barred, CounterError, Guard, OutboxEntry, OutboxPage, Redis, Trimmed};

/// Entries of an outbox read at once.
const PAGE_ENTRIES: u32 = 200;

/// Records journaled at once, at most: after a ledger went back, each may have a counter that is
/// looked for by its name, and no epoch of the partition closes meanwhile.
const ROWS_MAX: usize = 500;

/// Why an outbox could not be adopted now; it may be tried again later.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdoptionError {
    #[error(transparent)]
    Redis(#[from] CounterError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("the partition has moved on")]
    MovedOn,
    #[error("entry of flight {flight} cannot be read by this version: {reason}")]
    Unreadable { flight: u64, reason: String },
}

/// Adopts what a node left in a partition, under the epoch that the owner record carries.
pub(super) async fn adopt_outbox(
    context: &Context,
    redis: &Redis,
    at: At,
    incarnation: &str,
    dead: NodeId,
) -> Result<Adopted, AdoptionError> {
    let (partition, node) = (at.partition, context.membership.node());
    let started = tokio::time::Instant::now();
    let guard = context.guard(at, incarnation, node);
    if redis.bar(&context.keys, &guard, dead).await? == Barred::Fenced {
        return Err(AdoptionError::MovedOn);
    }
    let (entries, complete) = read(context, redis, &guard, dead).await?;
    let last_flight = entries.last().map(|entry| entry.flight);
    let records = to_records(&entries, partition)?;
    let adopted = write(context, at, dead, &records, complete).await?;
    match last_flight {
        // What is incomplete stays where it is, for an operator to examine.
        Some(flight) if !complete => {
            tracing::error!(%dead, partition, flight, "outbox is not whole; it is kept");
        }
        Some(upto) => match redis.drop_outbox(&context.keys, &guard, dead, upto).await? {
            Trimmed::Removed(_) => {}
            Trimmed::Fenced | Trimmed::Barred => return Err(AdoptionError::MovedOn),
        },
        None => {}
    }
    context.metrics.adopted.increment(adopted.written);
    context.metrics.duplicates.increment(adopted.collided);
    if adopted.collided > 0 {
        let count = adopted.collided;
        tracing::error!(%dead, partition, count, "DUPLICATE numbers adopted");
        let detail =
            serde_json::json!({ "cause": "numbers came twice", "dead": dead, "count": count });
        context.event("conflict", at, node, detail).await;
    }
    let detail = serde_json::json!({
        "cause": "node is silent", "dead": dead.to_string(), "complete": complete,
        "written": adopted.written, "known": adopted.known, "discarded": adopted.discarded,
        "collided": adopted.collided,
        "duration_ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    context.event("adoption", at, node, detail).await;
    Ok(adopted)
}

/// Journals a dead node's records in batches, and marks it as accounted for with the last one.
/// A batch that the ledger refuses for its content is halved; a record that it refuses alone
/// goes to `journal_rejected` (F13), where it alone is to blame (F45).
async fn write(
    context: &Context,
    at: At,
    dead: NodeId,
    records: &[Entry],
    complete: bool,
) -> Result<Adopted, AdoptionError> {
    let ledger = &context.ledger;
    let rows_max = context.settings.journal.batch_rows_max.min(ROWS_MAX);
    let mut parts: Vec<&[Entry]> = records.chunks(rows_max).rev().collect();
    let mut sum = Adopted::default();
    while let Some(part) = parts.pop() {
        match ledger.adopt(at, dead, part, false).await {
            Ok(adopted) => sum.add(adopted),
            Err(LedgerError::Refused(reason)) if part.len() == 1 => {
                let number = &part[0].number;
                tracing::error!(%number, reason, "adopted record goes to journal_rejected");
                context.metrics.rejected.increment(1);
                ledger.reject(&part[0], &reason).await?;
            }
            Err(LedgerError::Refused(_) | LedgerError::Unfit(_)) if part.len() > 1 => {
                let (left, right) = part.split_at(part.len() / 2);
                parts.extend([right, left]);
            }
            Err(error) => return Err(error.into()),
        }
    }
    ledger.adopt(at, dead, &[], complete).await?;
    Ok(sum)
}

/// Reads a barred node's whole outbox. The outbox is bounded by that node's journal queue.
async fn read(
    context: &Context,
    redis: &Redis,
    guard: &Guard,
    dead: NodeId,
) -> Result<(Vec<OutboxEntry>, bool), AdoptionError> {
    let (mut all, mut all_complete) = (Vec::<OutboxEntry>::new(), true);
    loop {
        let after = all.last().map_or(0, |entry| entry.flight);
        let keys = &context.keys;
        match redis.read_outbox(keys, guard, dead, after, PAGE_ENTRIES).await? {
            OutboxPage::Fenced => return Err(AdoptionError::MovedOn),
            OutboxPage::Entries { entries, complete } => {
                all_complete &= complete;
                let last_page = entries.len() < PAGE_ENTRIES as usize;
                all.extend(entries);
                if last_page {
                    return Ok((all, all_complete));
                }
            }
        }
    }
}

/// Makes journal entries of outbox entries. One that cannot be read leaves the outbox as it is:
/// a newer version of the program may read it.
fn to_records(entries: &[OutboxEntry], partition: u32) -> Result<Vec<Entry>, AdoptionError> {
    let mut records = Vec::new();
    for entry in entries {
        let at = At { partition, epoch: entry.epoch };
        for (taken, record) in &entry.allocations {
            let record = Entry::of_flight(at, taken.clone(), record)
                .map_err(|reason| AdoptionError::Unreadable { flight: entry.flight, reason })?;
            records.push(record);
        }
    }
    Ok(records)
}
