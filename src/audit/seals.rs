//! Compares the journal's rows with the seals of their batches: one pass over the rows as they lie,
//! whatever their order. Keeps the rows of batches that are not whole yet, and a bit for each batch
//! that was.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::report::{Findings, Place};
use crate::ledger::{LedgerError, SealedBatch, SealedRow, SharedLedger, StandsFor};

/// Slices that are read ahead: some 10 MiB each.
const SLICES_AHEAD: usize = 2;

/// Ids, each a bit.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<i64, u64>);

impl Ids {
    /// Adds one; false where it was there.
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

/// A batch whose rows have not all been met.
#[derive(Debug)]
struct Pending {
    batch: SealedBatch,
    rows: Vec<(i64, i64, Vec<u8>)>,
    is_broken: bool,
}

/// What the pass has come to know.
#[derive(Debug, Default)]
pub(super) struct Seals {
    /// Rows compared.
    pub(super) rows: u64,
    /// Rows of no sealed batch.
    pub(super) unsealed_rows: u64,
    pending: HashMap<i64, Pending>,
    /// Batches that were whole, sound or not.
    met: Ids,
    /// Segments by counter and first value.
    segments: BTreeMap<(i64, i64), StandsFor>,
    /// For how many rows they stand that were not read from an archive.
    pub(super) unread: u64,
}

/// A bound batch that lacks rows.
pub(super) struct Incomplete {
    pub(super) batch_id: i64,
    pub(super) missing: u64,
    pub(super) why: String,
}

impl Seals {
    /// Whether all rows of a batch were met.
    pub(super) fn has_met(&self, batch_id: i64) -> bool {
        self.met.contains(batch_id)
    }

    /// Takes in the rows of a slice; `batches` are theirs, as far as they are new and sealed.
    fn take_in(&mut self, slice: Vec<SealedRow>, batches: Vec<SealedBatch>, found: &mut Findings) {
        for batch in batches {
            let rows =
                Vec::with_capacity(usize::try_from(batch.line_count).unwrap_or(0).min(4_096));
            let pending = Pending { batch, rows, is_broken: false };
            self.pending.insert(pending.batch.batch_id, pending);
        }
        for row in slice {
            if let Some(stands_for) = row.stands_for {
                self.segments.insert((row.counter_id, row.first), stands_for);
                self.unread += stands_for.rows;
            }
            let Some(batch_id) = row.batch_id else {
                self.unsealed_rows += 1;
                continue;
            };
            if self.met.contains(batch_id) {
                found.add(Place::Batch(batch_id), format!("has a row more: {}", name_of(&row)));
                continue;
            }
            let Some(pending) = self.pending.get_mut(&batch_id) else {
                self.unsealed_rows += 1;
                continue;
            };
            self.rows += 1;
            match row.bytes {
                None => {
                    pending.is_broken = true;
                    let why = "points to a user, an address or a kind that is not there";
                    found.add(Place::Batch(batch_id), format!("{}: {why}", name_of(&row)));
                    pending.rows.push((row.counter_id, row.first, Vec::new()));
                }
                Some(bytes) => pending.rows.push((row.counter_id, row.first, bytes)),
            }
            if i32::try_from(pending.rows.len()) == Ok(pending.batch.line_count) {
                self.met.insert(batch_id);
                let Some(whole) = self.pending.remove(&batch_id) else { continue };
                if !whole.is_broken && whole.batch.seal_of(whole.rows) != *whole.batch.seal {
                    found.add(
                        Place::Batch(batch_id),
                        "its rows are not what was sealed: one was changed, or exchanged".into(),
                    );
                }
            }
        }
    }

    /// Whether a segment stands for a row of a file.
    fn is_archived(&self, row: &SealedRow, file: u64) -> bool {
        let before = self.segments.range(..=(row.counter_id, row.first)).next_back();
        before.is_some_and(|((counter_id, _), segment)| {
            *counter_id == row.counter_id && segment.last >= row.first && segment.file == file
        })
    }

    /// The bound batches that lack rows.
    pub(super) fn end(&mut self, is_bound: impl Fn(i64) -> bool) -> Vec<Incomplete> {
        let mut incomplete = Vec::new();
        for (batch_id, pending) in self.pending.drain().filter(|(id, _)| is_bound(*id)) {
            let (met, all) = (pending.rows.len(), pending.batch.line_count);
            self.met.insert(batch_id);
            let why = format!("has {met} of its {all} rows: the others were removed");
            let missing = u64::try_from(all).unwrap_or(0).saturating_sub(met as u64);
            incomplete.push(Incomplete { batch_id, missing, why });
        }
        incomplete
    }
}

fn name_of(row: &SealedRow) -> String {
    format!("counter {} value {}", row.counter_id, row.first)
}

/// Rows of an archive, page by page, each page with the beginning of its file's SHA-256.
pub(super) type Archive<'a> =
    &'a mut (dyn FnMut() -> anyhow::Result<Option<(u64, Vec<SealedRow>)>> + Send);

/// Compares all rows of batches above `after` with their seals. Rows that are written meanwhile may
/// be met in part.
pub(super) async fn compare(
    ledger: &SharedLedger,
    after: i64,
    archive: Archive<'_>,
    found: &mut Findings,
    progress: &(impl Fn(i64, i64) + Sync),
) -> anyhow::Result<Seals> {
    let mut seals = Seals::default();
    // What comes behind these is of batches that no checkpoint binds yet.
    let slices = ledger.journal_slices().await?;
    let texts = Arc::new(ledger.journal_texts().await?);
    // The database reads the next ones while one is compared.
    let reads = (0..slices).map(|slice| {
        let (ledger, texts) = (SharedLedger::clone(ledger), Arc::clone(&texts));
        tokio::spawn(async move { ledger.journal_slice(slice, &texts).await })
    });
    let mut reads = pin!(stream::iter(reads).buffered(SLICES_AHEAD));
    for slice in 0..slices {
        let Some(read) = reads.next().await else { break };
        let rows = read.expect("reading does not panic")?;
        let mut rows: Vec<SealedRow> =
            rows.into_iter().filter(|row| row.batch_id.is_none_or(|id| id > after)).collect();
        if rows.iter().any(|row| row.batch_id.is_some() && row.bytes.is_none()) {
            // Written since the texts were read, or not there at all.
            again(ledger, slice, &mut rows).await?;
        }
        progress(slice + 1, slices);
        seals = take_in(ledger, seals, rows, found).await?;
    }
    while let Some((file, mut rows)) = archive()? {
        // One that a file has and the ledger too is compared there.
        rows.retain(|row| {
            row.batch_id.is_some_and(|id| id > after) && seals.is_archived(row, file)
        });
        seals.unread = seals.unread.saturating_sub(rows.len() as u64);
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
    let mut ids: Vec<i64> = rows.iter().filter_map(|row| row.batch_id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| !seals.pending.contains_key(id) && !seals.met.contains(*id));
    let batches = ledger.sealed_batches(&ids).await?;
    let mut of_rows = std::mem::take(found);
    let comparing = tokio::task::spawn_blocking(move || {
        seals.take_in(rows, batches, &mut of_rows);
        (seals, of_rows)
    });
    let (seals, of_rows) = comparing.await.expect("comparing does not panic");
    *found = of_rows;
    Ok(seals)
}

/// Reads a slice again with the texts of now.
async fn again(
    ledger: &SharedLedger,
    slice: i64,
    rows: &mut [SealedRow],
) -> Result<(), LedgerError> {
    let texts = ledger.journal_texts().await?;
    let read = ledger.journal_slice(slice, &texts).await?;
    let mut known: HashMap<(i64, i64), Option<Vec<u8>>> =
        read.into_iter().map(|row| ((row.counter_id, row.first), row.bytes)).collect();
    for row in rows.iter_mut().filter(|row| row.bytes.is_none()) {
        row.bytes = known.remove(&(row.counter_id, row.first)).flatten();
    }
    Ok(())
}
