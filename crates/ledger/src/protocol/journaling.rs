//! Entries of a transaction on their way into the journal: their counters move, what collides is
//! recorded, the counts are corrected. Never commits.

use crate::batch::{Before, Mark};
use crate::columns::{raw, unsigned, unsigned_small};
use crate::dialect::Conn;
use crate::new_row::{NewRow, ValueRange};
use crate::protocol::entries::{self, Judged, Verdict, WriteMode};
use crate::protocol::{partitions, put_aside};
use crate::query::query;
use crate::reservations::{lost, table};
use crate::seal::Writing;
use crate::{Appended, Entry, LedgerError};

/// The source of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntrySource {
    /// The node that handed them out, to a ledger that must have their counters and ceilings.
    Issuer,
    /// A process that reports again, or for a dead node: its entries may predate the ledger's loss.
    Teller,
}

/// Writes entries within a transaction.
pub(crate) async fn journal(
    conn: &mut Conn,
    writing: &Writing,
    entries: &[&Entry],
    (entry_source, write_mode): (EntrySource, WriteMode),
) -> Result<Appended, LedgerError> {
    if entries.is_empty() {
        return Ok(Appended::default());
    }
    let mut new_rows = entries::new_rows(entries)?;
    let marks: Vec<Mark> = of_counters(&new_rows).map(mark).collect();
    let before = advance(conn, &marks, entry_source).await?;
    let is_any_aside = before.iter().any(|before| before.any_aside != 0);
    let is_any_reserved = match (entry_source, write_mode) {
        // See `judge_reserved`: nothing that was reserved during the wait matters.
        (EntrySource::Issuer, WriteMode::Plain) => before.iter().any(|row| row.any_reserved != 0),
        _ => table::is_any(conn).await?,
    };
    if is_any_reserved && entry_source == EntrySource::Teller {
        lost::make_way(conn, &new_rows, writing.now_us).await?;
    }
    if entry_source == EntrySource::Issuer {
        must_be_below_ceilings(conn, &new_rows, &before).await?;
    }
    let counters = new_rows
        .chunk_by_mut(|one, next| one.value_range.counter_id == next.value_range.counter_id);
    for (new_rows, before) in counters.zip(&before) {
        // They are sorted: the first is the lowest.
        let is_above =
            write_mode == WriteMode::Plain && new_rows[0].value_range.first > before.taken;
        new_rows.iter_mut().for_each(|new_row| new_row.is_above = is_above);
    }
    let mut verdicts = vec![Verdict::Written; entries.len()];
    if is_any_aside {
        put_aside::judge(conn, &new_rows, &mut verdicts).await?;
    }
    let judged = entries::write(conn, writing, new_rows, verdicts, is_any_reserved).await?;
    let mut appended = Appended::default();
    for (entry, verdict) in entries.iter().zip(&judged.verdicts) {
        match verdict {
            Verdict::Written => {}
            Verdict::Known => appended.known += 1,
            Verdict::Collided { .. } => appended.collisions.push(entry.record.allocation_id),
        }
    }
    for new_row in &judged.new_rows {
        match &judged.verdicts[new_row.entry] {
            Verdict::Written => appended.written += 1,
            Verdict::Known => {}
            Verdict::Collided { other } => {
                let entry = entries[new_row.entry];
                record_collision(conn, new_row, entry, other.as_deref(), writing.now_us).await?;
            }
        }
    }
    correct(conn, &judged, &marks, &before).await?;
    Ok(appended)
}

/// Sorted lines by counter.
fn of_counters<'l, 'a>(new_rows: &'l [NewRow<'a>]) -> impl Iterator<Item = &'l [NewRow<'a>]> {
    new_rows.chunk_by(|one, next| one.value_range.counter_id == next.value_range.counter_id)
}

/// The effect of the lines of a counter on its marks. A line that is there already, or is
/// another's, shows how far the counter has come like any other: a duplicate was handed out too,
/// and going on below it would give a third.
pub(crate) fn mark(new_rows: &[NewRow<'_>]) -> Mark {
    let NewRow { value_range: ValueRange { counter_id, first, .. }, step, epoch, .. } = new_rows[0];
    let is_like_first = |new_row: &&NewRow<'_>| new_row.step == step && new_row.epoch == epoch;
    let count = new_rows.iter().filter(is_like_first).map(|new_row| new_row.count).sum();
    let last = new_rows.iter().map(|new_row| new_row.value_range.last).max().unwrap_or(first);
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
    entry_source: EntrySource,
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
            Err(match entry_source {
                EntrySource::Issuer => LedgerError::WentBack(why),
                EntrySource::Teller => LedgerError::Refused(why),
            })
        }
    }
}

/// Refuses values above the ceiling that their counter had, in its own epoch while that is not
/// closed: only then a raise alone may change it, and Redis gets the raise last.
async fn must_be_below_ceilings(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    before: &[Before],
) -> Result<(), LedgerError> {
    for (new_rows, before) in of_counters(new_rows).zip(before) {
        let Before { counter_id, partition_id, epoch, ceiling, .. } = *before;
        let is_own =
            |new_row: &&NewRow<'_>| new_row.epoch == epoch && new_row.partition_id == partition_id;
        let last = new_rows.iter().filter(is_own).map(|new_row| new_row.value_range.last).max();
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
    for ((new_rows, all), before) in of_counters(&judged.new_rows).zip(marks).zip(before) {
        let written =
            new_rows.iter().filter(|new_row| judged.verdicts[new_row.entry] == Verdict::Written);
        let counted = written.map(|new_row| mark(std::slice::from_ref(new_row)).counted(before));
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

pub(crate) async fn record_collision(
    conn: &mut Conn,
    new_row: &NewRow<'_>,
    entry: &Entry,
    other: Option<&[u8]>,
    now_us: i64,
) -> Result<(), LedgerError> {
    query(
        "insert into collision (counter_id, first_value, last_value, step, allocation_id,
         other_allocation_id, number, raw, noted_at_us)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict do nothing",
    )
    .bind(new_row.value_range.counter_id)
    .bind(new_row.value_range.first)
    .bind(new_row.value_range.last)
    .bind(new_row.step)
    .bind(new_row.allocation_id)
    .bind(other)
    .bind(&entry.number)
    .bind(raw(entry))
    .bind(now_us)
    .execute(conn)
    .await?;
    Ok(())
}
