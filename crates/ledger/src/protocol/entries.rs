//! Entries become journal rows: finds what is there already, what collides, writes the rest.
//! Never by catching an exception: one bad row must not undo its neighbours (F13).

use std::collections::{HashMap, HashSet};

use crate::ArchivedName;
use crate::batch::Table;
use crate::dialect::Conn;
use crate::line::{Extent, Line};
use crate::register::gaps;
use crate::seal::Writing;
use crate::statement::query_scalar;
use crate::{Entry, LedgerError, archive};

/// How entries are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
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
    pub(crate) lines: Vec<Line<'a>>,
    /// One verdict per entry.
    pub(crate) verdicts: Vec<Verdict>,
}

/// The lines of a batch, by counter and value.
///
/// # Errors
/// `Refused` where an entry holds what no column takes.
pub(crate) fn lines<'a>(entries: &[&'a Entry]) -> Result<Vec<Line<'a>>, LedgerError> {
    let mut lines = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        lines.extend(Line::of(index, entry)?);
    }
    lines.sort_by_key(|line| (line.extent, line.entry));
    Ok(lines)
}

/// Writes the lines of entries whose counters the transaction has locked; `verdicts` has one for
/// each of them, and those that are to be written are judged.
pub(crate) async fn write<'a>(
    conn: &mut Conn,
    writing: &Writing,
    lines: Vec<Line<'a>>,
    mut verdicts: Vec<Verdict>,
) -> Result<Judged<'a>, LedgerError> {
    judge_within(&lines, &mut verdicts);
    judge_neighbours(conn, &lines, &mut verdicts).await?;
    judge_archived(conn, &lines, &mut verdicts).await?;
    // The first serial's row carries the number: the further ones follow only where it could be
    // written.
    let heads: Vec<&Line<'_>> = standing(&lines, &verdicts).filter(|l| l.head.is_some()).collect();
    let inserted = conn.insert_lines(&heads, writing).await?;
    for line in heads {
        if !inserted.contains(&(line.extent.counter_id, line.extent.first)) {
            let other = holder(conn, line).await?;
            verdicts[line.entry] = verdict_of_kept_out(line, other)?;
        }
    }
    let tails: Vec<&Line<'_>> = standing(&lines, &verdicts).filter(|l| l.head.is_none()).collect();
    if !tails.is_empty() {
        let inserted = conn.insert_lines(&tails, writing).await?;
        if inserted.len() != tails.len() {
            let why = "a further serial's value appeared between the probe and the insert";
            return Err(LedgerError::Conflict(why.into()));
        }
    }
    fill_gaps(conn, &lines, &verdicts).await?;
    Ok(Judged { lines, verdicts })
}

/// What became of a line that a unique key kept out.
///
/// # Errors
/// `Fault` where no row holds its number or its value: a key that is not the journal's kept it out,
/// and would keep others out as well.
fn verdict_of_kept_out(line: &Line<'_>, other: Option<Vec<u8>>) -> Result<Verdict, LedgerError> {
    match other {
        // Its own row, in whichever counter.
        Some(own) if own == line.allocation_id => Ok(Verdict::Known),
        Some(other) => Ok(Verdict::Collided { other: Some(other) }),
        None => Err(LedgerError::Fault(
            "a unique key of journal that this program does not know keeps rows out".into(),
        )),
    }
}

/// Lines of entries that are still to be written, or were.
pub(crate) fn standing<'l, 'a, 'v>(
    lines: &'l [Line<'a>],
    verdicts: &'v [Verdict],
) -> impl Iterator<Item = &'l Line<'a>> + use<'l, 'a, 'v> {
    lines.iter().filter(|line| verdicts[line.entry] == Verdict::Written)
}

/// Finds entries that repeat or overlap each other within the batch.
fn judge_within(lines: &[Line<'_>], verdicts: &mut [Verdict]) {
    let mut before: Option<&Line<'_>> = None;
    for line in lines {
        if verdicts[line.entry] != Verdict::Written {
            continue;
        }
        match before.filter(|before| before.extent.counter_id == line.extent.counter_id) {
            Some(before) if before.extent.last >= line.extent.first => {
                verdicts[line.entry] =
                    verdict_against(line, before.extent.first, Some(before.allocation_id.to_vec()));
            }
            _ => before = Some(line),
        }
    }
}

/// A line overlaps a row that begins at `first`: its own, or another allocation's.
pub(crate) fn verdict_against(
    line: &Line<'_>,
    first: i64,
    allocation_id: Option<Vec<u8>>,
) -> Verdict {
    if first == line.extent.first && allocation_id.as_deref() == Some(line.allocation_id) {
        Verdict::Known
    } else {
        Verdict::Collided { other: allocation_id }
    }
}

/// Finds entries whose values are in the journal. One probe per counter is enough as long as the
/// whole batch lies above what is there, which is the rule; then one per line.
async fn judge_neighbours(
    conn: &mut Conn,
    lines: &[Line<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    let touched = touched_counters(conn, Table::Journal, lines, verdicts).await?;
    if touched.is_empty() {
        return Ok(());
    }
    let probed: Vec<&Line<'_>> = standing(lines, verdicts)
        .filter(|line| touched.contains(&line.extent.counter_id))
        .collect();
    let extents: Vec<Extent> = probed.iter().map(|line| line.extent).collect();
    let neighbours = conn.neighbours(Table::Journal, &extents).await?;
    for (line, neighbour) in probed.into_iter().zip(neighbours) {
        if let Some(neighbour) = neighbour.filter(|n| n.last >= line.extent.first) {
            verdicts[line.entry] = verdict_against(line, neighbour.first, neighbour.allocation_id);
        }
    }
    Ok(())
}

/// An entry whose own row moved to an archive is known: its values meet a segment. Its document
/// distinguishes it from another allocation of the value, which has the same number; without one it
/// is reported as a collision.
async fn judge_archived(
    conn: &mut Conn,
    lines: &[Line<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    for line in lines {
        let (Verdict::Collided { .. }, Some(head)) = (&verdicts[line.entry], &line.head) else {
            continue;
        };
        let Extent { counter_id, first, .. } = line.extent;
        let document = (head.document_id, line.project);
        let name = ArchivedName::of(head.number, document, (counter_id, first));
        if name.document_hash.is_some() && archive::is_archived(conn, name).await? {
            verdicts[line.entry] = Verdict::Known;
        }
    }
    Ok(())
}

/// Counters of whose rows some reach into the values of the batch.
async fn touched_counters(
    conn: &mut Conn,
    table: Table,
    lines: &[Line<'_>],
    verdicts: &[Verdict],
) -> Result<HashSet<i64>, LedgerError> {
    let mut whole: HashMap<i64, Extent> = HashMap::new();
    for line in standing(lines, verdicts).filter(|line| !line.is_above) {
        let extent = whole.entry(line.extent.counter_id).or_insert(line.extent);
        extent.first = extent.first.min(line.extent.first);
        extent.last = extent.last.max(line.extent.last);
    }
    if whole.is_empty() {
        return Ok(HashSet::new());
    }
    let extents: Vec<Extent> = whole.into_values().collect();
    let neighbours = conn.neighbours(table, &extents).await?;
    let touched = extents.iter().zip(neighbours).filter(|(extent, neighbour)| {
        neighbour.as_ref().is_some_and(|neighbour| neighbour.last >= extent.first)
    });
    Ok(touched.map(|(extent, _)| extent.counter_id).collect())
}

/// The allocation that has the number, or else the value, of a line.
async fn holder(conn: &mut Conn, line: &Line<'_>) -> Result<Option<Vec<u8>>, LedgerError> {
    let Some(head) = &line.head else {
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
    Ok(of_value.bind(line.extent.counter_id).bind(line.extent.first).fetch_optional(conn).await?)
}

/// Removes from the gap register what was written: a late row explains its values.
async fn fill_gaps(
    conn: &mut Conn,
    lines: &[Line<'_>],
    verdicts: &[Verdict],
) -> Result<(), LedgerError> {
    let touched = touched_counters(conn, Table::Gap, lines, verdicts).await?;
    for line in standing(lines, verdicts) {
        if touched.contains(&line.extent.counter_id) {
            gaps::shrink(conn, line.extent).await?;
        }
    }
    Ok(())
}
