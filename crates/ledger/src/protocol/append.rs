//! Issued entries on their way into the journal. Not fenced by an epoch: what was handed out is
//! always journaled.
//!
//! Before Redis counts, the ledger has the counter, and a ceiling for it. So an entry of a missing
//! counter, or above the ceiling of its own epoch, is never a bad one: the ledger has forgotten
//! what it confirmed (F25).

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::batch::{Before, Mark};
use crate::calls::CALL;
use crate::columns::{raw, unsigned, unsigned_small};
use crate::connections::Share;
use crate::dialect::Conn;
use crate::line::{Extent, Line};
use crate::protocol::entries::{self, Care, Judged, Verdict};
use crate::protocol::{blame, partitions, put_aside};
use crate::seal::Writing;
use crate::statement::query;
use crate::store::{Store, commit, commit_alone};
use crate::{Appended, Entry, Ledger, LedgerError, nodes};

/// The source of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bringer {
    /// The node that handed them out, to a ledger that must have their counters and ceilings.
    Issuer,
    /// A process that reports again, or for a dead node: its entries may predate the ledger's loss.
    Teller,
}

impl Ledger {
    /// Writes issued records: one row per range, in one transaction, which counts as one batch of
    /// the node. Idempotent by allocation id.
    /// Raises each counter's `taken` and count of journaled values, shrinks gaps that a late row
    /// fills. A record whose (counter, value) or number belongs to another allocation goes to the
    /// collisions instead; it counts as written.
    ///
    /// # Errors
    /// `WentBack` where an earlier batch of the node is forgotten, or a counter, or its ceiling:
    /// use `journal_again`. `Unfit` where the database refuses one of several for what it holds;
    /// `Refused` of one entry alone, which is to blame (F45).
    /// `LockTimeout` after a brief wait: [`crate::Ledger::held_counters`] says which counter was
    /// held.
    pub async fn append(&self, node: NodeId, entries: &[Entry]) -> Result<Appended, LedgerError> {
        self.call(CALL.named("append").of(Share::Journal), async |store| {
            append(store, node, entries).await
        })
        .await
    }

    /// Notes among the collisions a number that another allocation holds too, unseen by the unique
    /// keys. Safe to repeat.
    pub async fn note_twice(&self, number: &Entry, other: Uuid) -> Result<(), LedgerError> {
        self.write(async |store| {
            let now_us = store.clock.now_us();
            let mut tx = store.begin().await?;
            let lines = Line::of(0, number)?;
            let other = other.as_bytes().as_slice();
            record_collision(&mut *tx, &lines[0], number, Some(other), now_us).await?;
            commit_alone(store, tx).await
        })
        .await
    }
}

/// See [`crate::Ledger::append`].
pub(crate) async fn append(
    store: &Store,
    node: NodeId,
    entries: &[Entry],
) -> Result<Appended, LedgerError> {
    if entries.is_empty() {
        return Ok(Appended::default());
    }
    let all: Vec<&Entry> = entries.iter().collect();
    let appended = match attempt(store, node, &all, Care::Plain).await {
        // A row is above what its counter has taken, or has the text of one of these numbers: then
        // all are looked for.
        Err(LedgerError::Conflict(_)) => attempt(store, node, &all, Care::Judged).await,
        appended => appended,
    };
    blame::judged(store, node, entries, appended).await
}

/// One transaction.
async fn attempt(
    store: &Store,
    node: NodeId,
    entries: &[&Entry],
    care: Care,
) -> Result<Appended, LedgerError> {
    // A waiter for these rows does not wait longer for a counter that it does not need.
    let mut tx = store.begin_brief(Some(node)).await?;
    nodes::must_be_remembered(store, &mut *tx, node).await?;
    let writing = store.writing(node, store.clock.now_us());
    let appended = journal(&mut *tx, &writing, entries, (Bringer::Issuer, care)).await;
    if matches!(appended, Err(LedgerError::WentBack(_))) {
        // Possibly no mark is missing: the next heartbeat must report the loss all the same.
        store.witness.forget(node);
    }
    let appended = appended?;
    // Last, so that the node's heartbeat does not wait for the rows.
    let counted = nodes::count_batch(&mut *tx, node).await?;
    commit(tx).await?;
    if let Some(counted) = counted.filter(|_| store.witness.of(node).is_some()) {
        store.witness.confirm(node, counted, store.clock.now_us());
    }
    Ok(appended)
}

/// Writes entries within a transaction.
pub(crate) async fn journal(
    conn: &mut Conn,
    writing: &Writing,
    entries: &[&Entry],
    (bringer, care): (Bringer, Care),
) -> Result<Appended, LedgerError> {
    if entries.is_empty() {
        return Ok(Appended::default());
    }
    let mut lines = entries::lines(entries)?;
    let marks: Vec<Mark> = of_counters(&lines).map(mark).collect();
    let before = advance(conn, &marks, bringer).await?;
    let is_any_aside = before.iter().any(|before| before.is_any_aside);
    if bringer == Bringer::Issuer {
        must_be_below_ceilings(conn, &lines, &before).await?;
    }
    let counters = lines.chunk_by_mut(|one, next| one.extent.counter_id == next.extent.counter_id);
    for (lines, before) in counters.zip(&before) {
        // They are sorted: the first is the lowest.
        let is_above = care == Care::Plain && lines[0].extent.first > before.taken;
        lines.iter_mut().for_each(|line| line.is_above = is_above);
    }
    let mut verdicts = vec![Verdict::Written; entries.len()];
    if is_any_aside {
        put_aside::judge(conn, &lines, &mut verdicts).await?;
    }
    let judged = entries::write(conn, writing, lines, verdicts).await?;
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
                record_collision(conn, line, entry, other.as_deref(), writing.now_us).await?;
            }
        }
    }
    correct(conn, &judged, &marks, &before).await?;
    Ok(appended)
}

/// Sorted lines by counter.
fn of_counters<'l, 'a>(lines: &'l [Line<'a>]) -> impl Iterator<Item = &'l [Line<'a>]> {
    lines.chunk_by(|one, next| one.extent.counter_id == next.extent.counter_id)
}

/// The effect of the lines of a counter on its marks. A line that is there already, or is
/// another's, shows how far the counter has come like any other: a duplicate was handed out too,
/// and going on below it would give a third.
pub(crate) fn mark(lines: &[Line<'_>]) -> Mark {
    let Line { extent: Extent { counter_id, first, .. }, step, epoch, .. } = lines[0];
    let is_like_first = |line: &&Line<'_>| line.step == step && line.epoch == epoch;
    let count = lines.iter().filter(is_like_first).map(|line| line.count).sum();
    let last = lines.iter().map(|line| line.extent.last).max().unwrap_or(first);
    Mark { counter_id, last, first, epoch, step, count }
}

/// Moves counters on as if all lines were new, which is the rule, and keeps them locked. Returns
/// the state of each before.
///
/// # Errors
/// Where a counter is missing: `WentBack`, or `Refused` where it was looked for by its name.
async fn advance(
    conn: &mut Conn,
    marks: &[Mark],
    bringer: Bringer,
) -> Result<Vec<Before>, LedgerError> {
    let mut before = conn.advance(marks).await?;
    before.sort_unstable_by_key(|before| before.counter_id);
    let is_there = |mark: &&Mark| {
        before.binary_search_by_key(&mark.counter_id, |before| before.counter_id).is_ok()
    };
    match marks.iter().find(|mark| !is_there(mark)) {
        None => Ok(before),
        Some(Mark { counter_id, .. }) => {
            let why = format!("counter_id {counter_id}: the ledger has no such counter");
            Err(match bringer {
                Bringer::Issuer => LedgerError::WentBack(why),
                Bringer::Teller => LedgerError::Refused(why),
            })
        }
    }
}

/// Refuses values above the ceiling that their counter had, in its own epoch while that is not
/// closed: only then a raise alone may change it, and Redis gets the raise last.
async fn must_be_below_ceilings(
    conn: &mut Conn,
    lines: &[Line<'_>],
    before: &[Before],
) -> Result<(), LedgerError> {
    for (lines, before) in of_counters(lines).zip(before) {
        let Before { counter_id, partition_id, epoch, ceiling, .. } = *before;
        let is_own = |line: &&Line<'_>| line.epoch == epoch && line.partition_id == partition_id;
        let last = lines.iter().filter(is_own).map(|line| line.extent.last).max();
        let Some(last) = last.filter(|last| *last > ceiling) else { continue };
        let home = unsigned_small(partition_id, "counter.partition_id")?;
        let own = unsigned(epoch, "counter.epoch")?;
        if partitions::closing(conn, home, own).await?.is_none() {
            let why = format!("its ceiling is {ceiling}, and {last} was issued");
            return Err(LedgerError::WentBack(format!("counter_id {counter_id}: {why}")));
        }
    }
    Ok(())
}

/// Reverts the counts of lines that were not written.
async fn correct(
    conn: &mut Conn,
    judged: &Judged<'_>,
    marks: &[Mark],
    before: &[Before],
) -> Result<(), LedgerError> {
    for ((lines, all), before) in of_counters(&judged.lines).zip(marks).zip(before) {
        let written = lines.iter().filter(|line| judged.verdicts[line.entry] == Verdict::Written);
        let counted = written.map(|line| mark(std::slice::from_ref(line)).counted(before));
        let excess = all.counted(before) - counted.sum::<i64>();
        if excess != 0 {
            query("update counter set journaled = journaled - $2 where counter_id = $1")
                .bind(before.counter_id)
                .bind(excess)
                .execute(&mut *conn)
                .await?;
        }
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
    query(
        "insert into collision (counter_id, first_value, last_value, step, allocation_id,
         other_allocation_id, number, raw, noted_at_us)
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
