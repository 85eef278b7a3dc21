//! The journal's ways in: issued entries, and those that the ledger refuses.
//! Not fenced by an epoch: what was handed out is always journaled.

use uuid::Uuid;

use super::counters::lock_all;
use super::entries::{self, Judged, Verdict};
use super::{Conn, Store, bulk, commit, gaps, nodes};
use crate::ledger::batch::Advance;
use crate::ledger::columns::{raw, signed};
use crate::ledger::line::{Extent, Line};
use crate::ledger::{Appended, Counter, Entry, LedgerError};
use crate::node::NodeId;

/// See [`crate::ledger::Ledger::append`].
pub(super) async fn append(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
) -> Result<Appended, LedgerError> {
    if entries.is_empty() {
        return Ok(Appended::default());
    }
    let entries: Vec<&Entry> = entries.iter().collect();
    let mut tx = store.begin().await?;
    nodes::must_be_remembered(store, &mut tx, node).await?;
    let appended = journal(&mut tx, node, &entries, store.clock.now_us()).await?;
    // Last, so that the node's heartbeat does not wait for the rows.
    let counted = nodes::count_batch(&mut tx, node).await?;
    commit(tx).await?;
    if let Some(counted) = counted.filter(|_| store.witness.of(node).is_some()) {
        store.witness.confirm(node, counted);
    }
    Ok(appended)
}

/// Writes entries within a transaction.
pub(super) async fn journal(
    conn: &mut Conn,
    node: NodeId,
    entries: &[&Entry],
    now_us: i64,
) -> Result<Appended, LedgerError> {
    if entries.is_empty() {
        return Ok(Appended::default());
    }
    let lines = entries::lines(entries)?;
    let ids = entries::counters_of(&lines);
    let counters = lock_all(conn, &ids).await?;
    if let Some(unknown) = ids.iter().find(|id| counters.iter().all(|c| c.counter_id != **id)) {
        let why = "the ledger has no such counter";
        return Err(LedgerError::Refused(format!("counter_id {unknown}: {why}")));
    }
    let judged = entries::write(conn, node, now_us, lines, entries.len()).await?;
    let mut appended = Appended::default();
    for (entry, verdict) in entries.iter().zip(&judged.verdicts) {
        match verdict {
            Verdict::Written => {}
            Verdict::Known => appended.known += 1,
            Verdict::Collided { .. } => appended.collisions.push(entry.record.allocation_id),
        }
    }
    for line in &judged.lines {
        match &judged.verdicts[line.entry] {
            Verdict::Written => appended.written += 1,
            Verdict::Known => {}
            Verdict::Collided { other } => {
                let entry = entries[line.entry];
                record_collision(conn, line, entry, other.as_deref(), now_us).await?;
            }
        }
    }
    bulk::advance(conn, &advances(&counters, &judged)?).await?;
    Ok(appended)
}

/// The counters' new high-water marks. A row of an older epoch raises nothing: its counter went on
/// above it when that epoch was closed.
fn advances(counters: &[Counter], judged: &Judged<'_>) -> Result<Vec<Advance>, LedgerError> {
    let mark = |line: &Line<'_>, count| Mark {
        extent: line.extent,
        step: line.step,
        epoch: line.epoch,
        count,
    };
    let mut advances = Vec::with_capacity(counters.len());
    for counter in counters {
        let mut advance = standstill(counter)?;
        for line in judged.lines.iter().filter(|l| l.extent.counter_id == counter.counter_id) {
            match judged.verdicts[line.entry] {
                Verdict::Written => raise(&mut advance, counter, &mark(line, line.count))?,
                // A duplicate was handed out too: going on below it would give a third.
                Verdict::Collided { .. } => raise(&mut advance, counter, &mark(line, 0))?,
                Verdict::Known => {}
            }
        }
        advances.push(advance);
    }
    Ok(advances)
}

fn standstill(counter: &Counter) -> Result<Advance, LedgerError> {
    Ok(Advance {
        counter_id: counter.counter_id,
        taken: counter.taken,
        ceiling: counter.ceiling,
        journaled: signed(counter.journaled, "counter.journaled")?,
    })
}

/// What a row says to its counter's marks: where it lies, and how many values it accounts for.
struct Mark {
    extent: Extent,
    step: i64,
    epoch: i64,
    count: i64,
}

fn raise(advance: &mut Advance, counter: &Counter, mark: &Mark) -> Result<(), LedgerError> {
    let epoch = signed(counter.epoch, "counter.epoch")?;
    if mark.epoch >= epoch {
        advance.taken = advance.taken.max(mark.extent.last);
        // Never happens while nobody writes to Redis but the scripts; if it does, the next epoch
        // must still start above it.
        advance.ceiling = advance.ceiling.max(advance.taken);
    }
    // Counted only where count times step says how far the values reach: the sum then proves that
    // nothing is missing.
    let on_grid = mark.extent.first > counter.start && mark.step == signed(counter.step, "step")?;
    if mark.epoch == epoch && on_grid {
        advance.journaled += mark.count;
    }
    Ok(())
}

async fn record_collision(
    conn: &mut Conn,
    line: &Line<'_>,
    entry: &Entry,
    other: Option<&[u8]>,
    now_us: i64,
) -> Result<(), LedgerError> {
    sqlx::query(
        "insert into collision (counter_id, first_value, last_value, step, allocation_id, \
         other_allocation_id, number, raw, noted_at_us) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing",
    )
    .bind(line.extent.counter_id)
    .bind(line.extent.first)
    .bind(line.extent.last)
    .bind(line.step)
    .bind(line.allocation_id)
    .bind(other)
    .bind(&entry.number)
    .bind(raw(entry))
    .bind(now_us)
    .execute(conn)
    .await?;
    Ok(())
}

/// See [`crate::ledger::Ledger::reject`].
pub(super) async fn reject(store: &Store, entry: &Entry, reason: &str) -> Result<(), LedgerError> {
    let epoch = signed(entry.at.epoch, "epoch").unwrap_or(i64::MAX);
    let mut ids: Vec<i64> = entry.taken.iter().map(|taken| taken.counter_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut tx = store.begin().await?;
    let counters = lock_all(&mut tx, &ids).await?;
    let mut advances = counters.iter().map(standstill).collect::<Result<Vec<_>, _>>()?;
    for taken in &entry.taken {
        let (extent, step) = plausible(taken);
        if !insert_rejected(&mut tx, entry, extent, step, reason, store.clock.now_us()).await? {
            continue;
        }
        gaps::shrink(&mut tx, extent).await?;
        let place = counters.iter().position(|c| c.counter_id == extent.counter_id);
        if let Some(place) = place {
            let count = (extent.last - extent.first) / step + 1;
            raise(&mut advances[place], &counters[place], &Mark { extent, step, epoch, count })?;
        }
    }
    bulk::advance(&mut tx, &advances).await?;
    commit(tx).await
}

/// A range as columns take it, whatever is wrong with it: the raw text keeps the truth.
fn plausible(taken: &crate::number::TakenRange) -> (Extent, i64) {
    let clamp = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (one, other) = (clamp(taken.range.first), clamp(taken.range.last));
    let (first, last) = (one.min(other), one.max(other));
    (Extent { counter_id: taken.counter_id, first, last }, clamp(taken.range.step).max(1))
}

/// Writes one raw row; false when it was there already.
async fn insert_rejected(
    conn: &mut Conn,
    entry: &Entry,
    extent: Extent,
    step: i64,
    reason: &str,
    now_us: i64,
) -> Result<bool, LedgerError> {
    let allocation_id: Uuid = entry.record.allocation_id;
    let done = sqlx::query(
        "insert into journal_rejected (counter_id, first_value, last_value, step, allocation_id, \
         raw, reason, rejected_at_us) values ($1, $2, $3, $4, $5, $6, $7, $8) \
         on conflict do nothing",
    )
    .bind(extent.counter_id)
    .bind(extent.first)
    .bind(extent.last)
    .bind(step)
    .bind(allocation_id.as_bytes().as_slice())
    .bind(raw(entry))
    .bind(reason.replace('\0', "\\0"))
    .bind(now_us)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}
