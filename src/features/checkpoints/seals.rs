//! Compares the journal's rows with the seals of their batches: one pass over the rows in their
//! physical order, whatever that is. Keeps the rows of batches that are not complete yet, and a bit
//! for each complete batch. The number of rows that a batch claims only shows when it may be
//! complete: what counts is whether its rows are those that were sealed. A seal covers a batch as a
//! whole: if a batch lacks rows, its other rows are not compared.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use super::report::{Findings, Place};
use super::segments::Segment;
use crate::engine::sealing::checkpoint::Part;
use crate::ledger::{LedgerError, SealedBatch, SealedRow, SharedLedger};

/// Slices that are read ahead: some 10 MiB each.
const SLICES_AHEAD: usize = 2;

/// Ids, each a bit.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<i64, u64>);

impl Ids {
    /// Adds one; false if it was present.
    pub(super) fn insert(&mut self, id: i64) -> bool {
        let bits = self.0.entry(id >> 6).or_default();
        let bit = 1_u64 << (id & 63);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.0.get(&(id >> 6)).is_some_and(|bits| bits & (1 << (id & 63)) != 0)
    }
}

/// A batch whose rows have not all been read.
#[derive(Debug)]
struct Pending {
    batch: SealedBatch,
    rows: Vec<(i64, i64, Vec<u8>)>,
    is_broken: bool,
}

impl Pending {
    fn of(batch: SealedBatch) -> Self {
        let rows = usize::try_from(batch.line_count).unwrap_or(0).min(4_096);
        Pending { batch, rows: Vec::with_capacity(rows), is_broken: false }
    }

    /// Whether its rows so far are those that were sealed.
    fn is_sound(&mut self) -> bool {
        let rows = std::mem::take(&mut self.rows);
        !self.is_broken && self.batch.seal_of(rows).as_slice() == self.batch.seal
    }
}

/// The results of the pass so far.
#[derive(Debug, Default)]
pub(super) struct Seals {
    /// Rows compared, and those whose batches are not complete yet.
    pub(super) rows: u64,
    pending: HashMap<i64, Pending>,
    /// Batches that were whole, sound or not.
    met: Ids,
    /// Batches whose rows are those that were sealed.
    pub(super) sound: Ids,
    /// Existing batches that no checkpoint binds yet.
    pub(super) unbound: Ids,
    /// Segments by counter and first value.
    pub(super) segments: BTreeMap<(i64, i64), Segment>,
}

/// A batch that lacks rows.
pub(super) struct Incomplete {
    pub(super) batch_id: i64,
    pub(super) missing: u64,
    /// Rows that exist, and that its seal cannot be compared with.
    pub(super) met: u64,
    pub(super) why: String,
}

impl Seals {
    /// Whether a row of a batch was read.
    pub(super) fn has_met(&self, batch_id: i64) -> bool {
        self.met.contains(batch_id)
    }

    fn knows(&self, batch_id: i64) -> bool {
        self.met.contains(batch_id) || self.pending.contains_key(&batch_id)
    }

    /// Takes the rows of a slice; `batches` are theirs, as far as they are new and exist.
    fn take_in(&mut self, slice: Vec<SealedRow>, batches: Vec<SealedBatch>, found: &mut Findings) {
        for batch in batches {
            self.pending.insert(batch.batch_id, Pending::of(batch));
        }
        for row in slice {
            self.take_in_row(row, found);
        }
    }

    fn take_in_row(&mut self, row: SealedRow, found: &mut Findings) {
        if row.says_more {
            let why = "says something beside its batch, in columns that seals do not cover";
            found.add(Place::Journal, format!("{} {why}", name_of(&row)));
        }
        if let Some(stands_for) = &row.stands_for {
            let segment = Segment::of(row.batch_id, stands_for.clone());
            self.segments.insert((row.counter_id, row.first), segment);
        }
        let batch_id = row.batch_id;
        if self.met.contains(batch_id) {
            found.add(Place::Batch(batch_id), format!("has a row more: {}", name_of(&row)));
            return;
        }
        let Some(pending) = self.pending.get_mut(&batch_id) else {
            let why = format!("points to batch {batch_id}, which is not there");
            found.add(Place::Journal, format!("{} {why}", name_of(&row)));
            return;
        };
        self.rows += 1;
        if row.bytes.is_none() {
            pending.is_broken = true;
            let why = "points to a user, an address or a kind that is not there";
            found.add(Place::Batch(batch_id), format!("{}: {why}", name_of(&row)));
        }
        pending.rows.push((row.counter_id, row.first, row.bytes.unwrap_or_default()));
        if i32::try_from(pending.rows.len()) == Ok(pending.batch.line_count) {
            self.met.insert(batch_id);
            let Some(mut whole) = self.pending.remove(&batch_id) else { return };
            if whole.is_sound() {
                self.sound.insert(batch_id);
            } else if !whole.is_broken {
                found.add(Place::Batch(batch_id), OTHER_ROWS.into());
            }
        }
    }

    /// Counts a row of a file for the segment that accounts for it, if there is one.
    fn is_archived(&mut self, row: &SealedRow, file: &str) -> bool {
        let before = self.segments.range_mut(..=(row.counter_id, row.first)).next_back();
        let of = before.filter(|((counter_id, _), segment)| {
            *counter_id == row.counter_id && segment.holds(row.first, file)
        });
        of.is_some_and(|(_, segment)| {
            segment.read += 1;
            true
        })
    }

    /// The batches that lack rows, whose others are not compared. Batches with another number of
    /// rows than they claim are findings.
    pub(super) fn end(&mut self, found: &mut Findings) -> Vec<Incomplete> {
        let mut incomplete = Vec::new();
        for (batch_id, mut pending) in std::mem::take(&mut self.pending) {
            self.met.insert(batch_id);
            let (met, all) = (pending.rows.len(), pending.batch.line_count);
            let missing = u64::try_from(all).unwrap_or(0).saturating_sub(met as u64);
            if pending.is_sound() {
                let why = format!("says that it has {all} rows, and was sealed with {met}");
                found.add(Place::Batch(batch_id), why);
                self.sound.insert(batch_id);
            } else if missing == 0 {
                // Less than none is missing.
                found.add(Place::Batch(batch_id), OTHER_ROWS.into());
            } else {
                let why = format!("has {met} of its {all} rows: the others were removed");
                self.rows -= met as u64;
                incomplete.push(Incomplete { batch_id, missing, met: met as u64, why });
            }
        }
        incomplete
    }
}

const OTHER_ROWS: &str = "its rows are not what was sealed: one was changed, or exchanged";

fn name_of(row: &SealedRow) -> String {
    format!("counter {} value {}", row.counter_id, row.first)
}

/// Rows of an archive, page by page, each page with the SHA-256 of its file in hexadecimal.
pub(super) type Archive<'a> =
    &'a mut (dyn FnMut() -> anyhow::Result<Option<(String, Vec<SealedRow>)>> + Send);

/// Compares all rows of batches after a part of a checkpoint with their seals, in one snapshot.
/// `last` is the part of the last checkpoint.
pub(super) async fn compare(
    ledger: &SharedLedger,
    (after, last): (i64, &Part),
    archive: Archive<'_>,
    found: &mut Findings,
    progress: &(impl Fn(i64, i64) + Sync),
) -> anyhow::Result<Seals> {
    let mut seals = Seals::default();
    let (to, slices) = mpsc::channel(SLICES_AHEAD);
    let (reader, between) = (Arc::clone(ledger), last.unbound());
    let walking = tokio::spawn(async move { reader.audits().walk_journal(to, between).await });
    let slices = stream::unfold(slices, async |mut slices| {
        let slice = slices.recv().await?;
        Some((slice, slices))
    });
    // The next ones are read while one is compared.
    let read = slices
        .map(|slice| tokio::task::spawn_blocking(move || (slice.rows(), slice.done, slice.of)));
    let mut read = std::pin::pin!(read.buffered(SLICES_AHEAD));
    // What earlier checkpoints bound is skipped; ids below 1 belong to no checkpoint.
    let is_of_these = |row: &SealedRow| row.batch_id > after || row.batch_id < 1;
    while let Some(slice) = read.next().await {
        let (rows, done, of) = slice.context("reading ended early")?;
        let rows = rows?.into_iter().filter(is_of_these).collect();
        progress(done, of);
        seals = take_in(ledger, seals, rows, found).await?;
    }
    for batch_id in walking.await.context("reading ended early")?? {
        seals.unbound.insert(batch_id);
    }
    while let Some((file, mut rows)) = archive()? {
        // A row that both a file and the ledger have is compared in the ledger. A segment may also
        // account for rows that are skipped: all of them are counted.
        rows.retain(|row| seals.is_archived(row, &file) && is_of_these(row));
        seals = take_in(ledger, seals, rows, found).await?;
    }
    Ok(seals)
}

/// Takes in rows with those of their batches that are new.
async fn take_in(
    ledger: &SharedLedger,
    mut seals: Seals,
    rows: Vec<SealedRow>,
    found: &mut Findings,
) -> Result<Seals, LedgerError> {
    let mut ids: Vec<i64> = rows.iter().map(|row| row.batch_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| !seals.knows(*id));
    let batches = ledger.checkpoints().batches_among(&ids).await?;
    let mut of_rows = std::mem::take(found);
    let comparing = tokio::task::spawn_blocking(move || {
        seals.take_in(rows, batches, &mut of_rows);
        (seals, of_rows)
    });
    let (seals, of_rows) = comparing.await.expect("comparing does not panic");
    *found = of_rows;
    Ok(seals)
}
