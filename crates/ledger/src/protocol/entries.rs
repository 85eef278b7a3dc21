//! Entries become journal rows: finds what is there already, what collides, writes the rest.
//! Never by catching an exception: one bad row must not undo its neighbours (F13).

use std::collections::{HashMap, HashSet};

use crate::ArchivedName;
use crate::archive::names;
use crate::batch::Table;
use crate::dialect::Conn;
use crate::new_row::{Head, NewRow, ValueRange};
use crate::query::query_scalar;
use crate::register::gaps;
use crate::reservations::table;
use crate::seal::Writing;
use crate::{Entry, LedgerError, number_hash};

/// How entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// As if nothing were in their way where nothing can be, which is the rule.
    Plain,
    /// Each is looked for first, and has a verdict of its own.
    Judged,
}

/// What became of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Written now.
    Written,
    /// It was there already, or was rejected and counted before.
    Known,
    /// Its number or one of its values belongs to another allocation; nothing of it was written.
    Collided {
        /// That allocation's sixteen bytes.
        other: Option<Vec<u8>>,
    },
}

/// A batch with a verdict on each of its entries.
pub(crate) struct Judged<'a> {
    /// All lines of all entries, by counter and value.
    pub(crate) new_rows: Vec<NewRow<'a>>,
    /// One verdict per entry.
    pub(crate) verdicts: Vec<Verdict>,
}

/// The lines of a batch, by counter and value.
///
/// # Errors
/// `Refused` where an entry holds what no column takes.
pub(crate) fn new_rows<'a>(entries: &[&'a Entry]) -> Result<Vec<NewRow<'a>>, LedgerError> {
    let mut new_rows = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        new_rows.extend(NewRow::of(index, entry)?);
    }
    new_rows.sort_by_key(|new_row| (new_row.value_range, new_row.entry));
    Ok(new_rows)
}

/// Writes the lines of entries whose counters the transaction has locked; `verdicts` has one for
/// each of them, and those that are to be written are judged. `is_any_reserved`: whether the ledger
/// has a reservation; what may tell it is with [`judge_reserved`].
pub(crate) async fn write<'a>(
    conn: &mut Conn,
    writing: &Writing,
    new_rows: Vec<NewRow<'a>>,
    mut verdicts: Vec<Verdict>,
    is_any_reserved: bool,
) -> Result<Judged<'a>, LedgerError> {
    judge_within(&new_rows, &mut verdicts);
    judge_neighbours(conn, &new_rows, &mut verdicts).await?;
    judge_archived(conn, &new_rows, &mut verdicts).await?;
    if is_any_reserved {
        judge_reserved(conn, &new_rows, &mut verdicts).await?;
    }
    // The first serial's row carries the number: the further ones follow only where it could be
    // written.
    let heads: Vec<&NewRow<'_>> =
        standing(&new_rows, &verdicts).filter(|l| l.head.is_some()).collect();
    let inserted = conn.insert_new_rows(&heads, writing).await?;
    for new_row in heads {
        if !inserted.contains(&(new_row.value_range.counter_id, new_row.value_range.first)) {
            let other = holder(conn, new_row).await?;
            verdicts[new_row.entry] = verdict_of_kept_out(new_row, other)?;
        }
    }
    let tails: Vec<&NewRow<'_>> =
        standing(&new_rows, &verdicts).filter(|l| l.head.is_none()).collect();
    if !tails.is_empty() {
        let inserted = conn.insert_new_rows(&tails, writing).await?;
        if inserted.len() != tails.len() {
            let why = "a further serial's value appeared between the probe and the insert";
            return Err(LedgerError::Conflict(why.into()));
        }
    }
    fill_gaps(conn, &new_rows, &verdicts).await?;
    Ok(Judged { new_rows, verdicts })
}

/// What became of a line that a unique key kept out.
///
/// # Errors
/// `Fault` where no row holds its number or its value: a key that is not the journal's kept it out,
/// and would keep others out as well.
fn verdict_of_kept_out(
    new_row: &NewRow<'_>,
    other: Option<Vec<u8>>,
) -> Result<Verdict, LedgerError> {
    match other {
        // Its own row, in whichever counter.
        Some(own) if own == new_row.allocation_id => Ok(Verdict::Known),
        Some(other) => Ok(Verdict::Collided { other: Some(other) }),
        None => Err(LedgerError::Fault(
            "a unique key of journal that this program does not know keeps rows out".into(),
        )),
    }
}

/// Lines of entries that are still to be written, or were.
pub(crate) fn standing<'l, 'a, 'v>(
    new_rows: &'l [NewRow<'a>],
    verdicts: &'v [Verdict],
) -> impl Iterator<Item = &'l NewRow<'a>> + use<'l, 'a, 'v> {
    new_rows.iter().filter(|new_row| verdicts[new_row.entry] == Verdict::Written)
}

/// Finds entries that repeat or overlap each other within the batch.
fn judge_within(new_rows: &[NewRow<'_>], verdicts: &mut [Verdict]) {
    let mut before: Option<&NewRow<'_>> = None;
    for new_row in new_rows {
        if verdicts[new_row.entry] != Verdict::Written {
            continue;
        }
        match before
            .filter(|before| before.value_range.counter_id == new_row.value_range.counter_id)
        {
            Some(before) if before.value_range.last >= new_row.value_range.first => {
                verdicts[new_row.entry] = verdict_against(
                    new_row,
                    before.value_range.first,
                    Some(before.allocation_id.to_vec()),
                );
            }
            _ => before = Some(new_row),
        }
    }
}

/// A line overlaps a row that begins at `first`: its own, or another allocation's.
pub(crate) fn verdict_against(
    new_row: &NewRow<'_>,
    first: i64,
    allocation_id: Option<Vec<u8>>,
) -> Verdict {
    if first == new_row.value_range.first && allocation_id.as_deref() == Some(new_row.allocation_id)
    {
        Verdict::Known
    } else {
        Verdict::Collided { other: allocation_id }
    }
}

/// Finds entries whose values are in the journal. One probe per counter is enough as long as the
/// whole batch lies above what is there, which is the rule; then one per line.
async fn judge_neighbours(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    let touched = touched_counters(conn, Table::Journal, new_rows, verdicts).await?;
    if touched.is_empty() {
        return Ok(());
    }
    let probed: Vec<&NewRow<'_>> = standing(new_rows, verdicts)
        .filter(|new_row| touched.contains(&new_row.value_range.counter_id))
        .collect();
    let value_ranges: Vec<ValueRange> = probed.iter().map(|new_row| new_row.value_range).collect();
    let neighbours = conn.neighbours(Table::Journal, &value_ranges).await?;
    for (new_row, neighbour) in probed.into_iter().zip(neighbours) {
        if let Some(neighbour) = neighbour.filter(|n| n.last >= new_row.value_range.first) {
            verdicts[new_row.entry] =
                verdict_against(new_row, neighbour.first, neighbour.allocation_id);
        }
    }
    Ok(())
}

/// An entry whose own row moved to an archive is known: its values meet a segment. Its document
/// distinguishes it from another allocation of the value, which has the same number; without one it
/// is reported as a collision.
async fn judge_archived(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    for new_row in new_rows {
        let (Verdict::Collided { .. }, Some(head)) = (&verdicts[new_row.entry], &new_row.head)
        else {
            continue;
        };
        let ValueRange { counter_id, first, .. } = new_row.value_range;
        let document = (head.document_id, new_row.project);
        let name = ArchivedName::of(head.number, document, (counter_id, first));
        if name.document_hash.is_some() && names::is_archived(conn, name).await? {
            verdicts[new_row.entry] = Verdict::Known;
        }
    }
    Ok(())
}

/// Whether any reservation may have the text of one of these lines, by hashes.
pub(crate) async fn is_any_text_reserved(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
) -> Result<bool, LedgerError> {
    let hashes = new_rows.iter().filter_map(|new_row| new_row.head.as_ref());
    let hashes = hashes.map(|head| number_hash(head.number)).collect();
    Ok(!table::named(conn, hashes).await?.is_empty())
}

/// Finds entries whose text or values another allocation has reserved: its document holds them.
///
/// Asked only where the ledger has a reservation, so that it costs nothing elsewhere. What tells
/// that must be read behind the locks of the counters, except for entries that their issuer hands
/// in for the first time. For these the statement that locks their counters may tell it, although
/// it sees the ledger as it was when it began to wait:
///
/// - **Values.** A value is reserved under its counter's row, by a take that moves the row there or
///   takes the value out of the pool. The row gives it to nobody else, and Redis counts no counter
///   of a `gapless` series. So an issuer's entry has no value that was reserved meanwhile. An entry
///   that comes again may have one, of a ledger that went back.
/// - **Texts.** Two counters have no text in common: series are saved only where that is proved,
///   and one that rests on its rows instead reserves nothing (L14). Should a proof be wrong, no
///   look at rows keeps two transactions apart that run at once, wherever it comes; this one finds
///   what was reserved before.
async fn judge_reserved(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    let heads = standing(new_rows, verdicts).filter_map(|new_row| new_row.head.as_ref());
    let hashes: Vec<i64> = heads.map(|head| number_hash(head.number)).collect();
    let ranges = || standing(new_rows, verdicts).map(|new_row| new_row.value_range);
    let counters: HashSet<i64> = ranges().map(|range| range.counter_id).collect();
    let from = ranges().map(|range| range.first).min().unwrap_or(0);
    let to = ranges().map(|range| range.last).max().unwrap_or(0);
    let texts = table::named(conn, hashes).await?;
    let values = table::of_counters(conn, counters.into_iter().collect(), (from, to)).await?;
    if texts.is_empty() && values.is_empty() {
        return Ok(());
    }
    for new_row in new_rows {
        if verdicts[new_row.entry] != Verdict::Written {
            continue;
        }
        let ValueRange { counter_id, first, last } = new_row.value_range;
        let has_text = |head: &Head<'_>| {
            let same = |(number, scope, _): &&(String, String, Vec<u8>)| {
                number == head.number && scope == head.scope
            };
            texts.iter().find(same).map(|(.., id)| id)
        };
        let overlaps = |(of, from, to, _): &&(i64, i64, i64, Vec<u8>)| {
            *of == counter_id && *from <= last && *to >= first
        };
        let other = new_row.head.as_ref().and_then(has_text);
        let other = other.or_else(|| values.iter().find(overlaps).map(|(.., id)| id));
        if let Some(other) = other.filter(|other| *other != new_row.allocation_id) {
            verdicts[new_row.entry] = Verdict::Collided { other: Some(other.clone()) };
        }
    }
    Ok(())
}

/// Counters of whose rows some reach into the values of the batch.
async fn touched_counters(
    conn: &mut Conn,
    table: Table,
    new_rows: &[NewRow<'_>],
    verdicts: &[Verdict],
) -> Result<HashSet<i64>, LedgerError> {
    let mut whole: HashMap<i64, ValueRange> = HashMap::new();
    for new_row in standing(new_rows, verdicts).filter(|new_row| !new_row.is_above) {
        let value_range =
            whole.entry(new_row.value_range.counter_id).or_insert(new_row.value_range);
        value_range.first = value_range.first.min(new_row.value_range.first);
        value_range.last = value_range.last.max(new_row.value_range.last);
    }
    if whole.is_empty() {
        return Ok(HashSet::new());
    }
    let value_ranges: Vec<ValueRange> = whole.into_values().collect();
    let neighbours = conn.neighbours(table, &value_ranges).await?;
    let touched = value_ranges.iter().zip(neighbours).filter(|(value_range, neighbour)| {
        neighbour.as_ref().is_some_and(|neighbour| neighbour.last >= value_range.first)
    });
    Ok(touched.map(|(value_range, _)| value_range.counter_id).collect())
}

/// The allocation that has the number, or else the value, of a line.
pub(crate) async fn holder(
    conn: &mut Conn,
    new_row: &NewRow<'_>,
) -> Result<Option<Vec<u8>>, LedgerError> {
    let Some(head) = &new_row.head else {
        return Ok(None);
    };
    let of_number =
        query_scalar("select allocation_id from journal where number = $1 and scope = $2")
            .bind(head.number)
            .bind(head.scope)
            .fetch_optional(&mut *conn)
            .await?;
    if of_number.is_some() {
        return Ok(of_number);
    }
    let of_value = query_scalar(
        "select allocation_id from journal where counter_id = $1 and first_value = $2",
    );
    Ok(of_value
        .bind(new_row.value_range.counter_id)
        .bind(new_row.value_range.first)
        .fetch_optional(conn)
        .await?)
}

/// Removes from the gap register what was written: a late row explains its values.
async fn fill_gaps(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    verdicts: &[Verdict],
) -> Result<(), LedgerError> {
    let touched = touched_counters(conn, Table::Gap, new_rows, verdicts).await?;
    if touched.is_empty() {
        return Ok(());
    }
    let written = standing(new_rows, verdicts).map(|new_row| new_row.value_range);
    let probed: Vec<ValueRange> =
        written.filter(|value_range| touched.contains(&value_range.counter_id)).collect();
    let neighbours = conn.neighbours(Table::Gap, &probed).await?;
    for (value_range, neighbour) in probed.into_iter().zip(neighbours) {
        if neighbour.is_some_and(|neighbour| neighbour.last >= value_range.first) {
            gaps::shrink(conn, value_range).await?;
        }
    }
    Ok(())
}
