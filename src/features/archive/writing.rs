//! Writes rows to a file, reads it back, and has the ledger note it. Removes no row.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use anyhow::{Context as _, bail};
use jiff::Timestamp;

use super::columns::{GROUP_ROWS_MAX, RowReader, RowWriter};
use super::folder::{Folder, sha256_of};
use super::manifest::Manifest;
use super::moving::Moving;
use crate::ledger::{ArchiveFile, ArchivedRow, NewArchiveFile, SharedLedger};

/// Rows per query.
const PAGE_ROWS: u32 = 5_000;
/// Counters per query.
const PAGE_COUNTERS: u32 = 500;

/// Where to continue: the rows after this value of this counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    counter_id: i64,
    /// Rows of the counter up to here are done; none: all of them.
    value: Option<i64>,
}

impl Place {
    pub(super) const BEGIN: Place = Place { counter_id: i64::MIN, value: None };
}

/// A file in the making.
struct Making {
    writer: RowWriter<BufWriter<File>>,
    /// Over all rows so far, each over those before it.
    digest: [u8; 32],
    rows: u64,
    last_issued_us: i64,
    group: Vec<ArchivedRow>,
}

impl Making {
    /// Adds rows; writes the groups that are full.
    async fn add(mut self, rows: Vec<ArchivedRow>) -> anyhow::Result<Self> {
        self.group.extend(rows);
        let full = self.group.len() / GROUP_ROWS_MAX * GROUP_ROWS_MAX;
        if full == 0 {
            return Ok(self);
        }
        let rest = self.group.split_off(full);
        let groups = std::mem::replace(&mut self.group, rest);
        self.write(groups).await
    }

    async fn write(mut self, rows: Vec<ArchivedRow>) -> anyhow::Result<Self> {
        let writing = tokio::task::spawn_blocking(move || {
            for group in rows.chunks(GROUP_ROWS_MAX) {
                self.writer.write(group)?;
                for row in group {
                    self.digest = row.digest(&self.digest);
                    self.last_issued_us = self.last_issued_us.max(row.issued_at_us);
                }
                self.rows += group.len() as u64;
            }
            Ok(self)
        });
        writing.await.context("writing ended early")?
    }
}

/// Writes the next rows to a file of the folder, and has the ledger note it; `None` if there are
/// none. A failure leaves no file.
pub(super) async fn write(
    ledger: &SharedLedger,
    folder: &Folder,
    moving: &Moving<'_>,
    place: &mut Place,
) -> anyhow::Result<Option<ArchiveFile>> {
    let name = folder.new_name();
    let written = write_to(ledger, folder, moving, place, &name).await;
    if !matches!(written, Ok(Some(_))) {
        folder.remove_partial(&name);
    }
    let written = written.with_context(|| format!("archiving to {}", folder.path().display()))?;
    let Some(new) = written else { return Ok(None) };
    // From here on the ledger may know the file, whatever its answer.
    Ok(Some(ledger.archive().begin(&new).await?))
}

async fn write_to(
    ledger: &SharedLedger,
    folder: &Folder,
    moving: &Moving<'_>,
    place: &mut Place,
    name: &str,
) -> anyhow::Result<Option<NewArchiveFile>> {
    let file = folder.make(name)?;
    let mut making = Making {
        writer: RowWriter::begin(BufWriter::new(file))?,
        digest: [0; 32],
        rows: 0,
        last_issued_us: i64::MIN,
        group: Vec::new(),
    };
    while making.rows + (making.group.len() as u64) < moving.file_rows_max {
        let Some(rows) = next_rows(ledger, moving.before_us, place).await? else { break };
        making = making.add(rows).await?;
        (moving.progress)(making.rows, None);
    }
    let rest = std::mem::take(&mut making.group);
    let Making { writer, digest, rows, last_issued_us, .. } = making.write(rest).await?;
    if rows == 0 {
        return Ok(None);
    }
    let path = folder.partial(name);
    let reading = tokio::task::spawn_blocking(move || -> anyhow::Result<[u8; 32]> {
        let mut buffer = writer.end()?;
        buffer.flush()?;
        buffer.get_ref().sync_all()?;
        drop(buffer);
        let reader = RowReader::open(File::open(&path)?)?;
        let mut read = [0; 32];
        for group in 0..reader.groups() {
            read = reader.read(group)?.iter().fold(read, |read, row| row.digest(&read));
        }
        if read != digest {
            bail!("the file does not read back as it was written; nothing was changed");
        }
        sha256_of(&path)
    });
    let sha256 = reading.await.context("reading back ended early")??;
    let manifest = Manifest::new(
        (name, &sha256, rows),
        (text_of(moving.before_us)?, text_of(last_issued_us)?),
        (moving.by, text_of(moving.clock.now_us())?),
    );
    let new = NewArchiveFile {
        name: name.to_owned(),
        sha256: sha256.to_vec(),
        rows,
        manifest: manifest.signed(moving.key)?,
        before_us: moving.before_us,
        last_issued_us,
        written_by: moving.by.to_owned(),
    };
    folder.sync()?;
    Ok(Some(new))
}

fn text_of(at_us: i64) -> anyhow::Result<String> {
    Ok(Timestamp::from_microsecond(at_us)?.to_string())
}

/// The next rows that may move, some or none of them; `None` if all were examined.
async fn next_rows(
    ledger: &SharedLedger,
    before_us: i64,
    place: &mut Place,
) -> anyhow::Result<Option<Vec<ArchivedRow>>> {
    if let Place { counter_id, value: Some(value) } = *place {
        let (rows, next) =
            ledger.archive().archivable(counter_id, value, before_us, PAGE_ROWS).await?;
        place.value = next;
        return Ok(Some(rows));
    }
    // Most counters whose oldest row is old have few such rows.
    let counters =
        ledger.archive().archivable_counters(place.counter_id, before_us, PAGE_COUNTERS).await?;
    if counters.is_empty() {
        return Ok(None);
    }
    let mut all = Vec::new();
    for counter_id in counters {
        let (rows, next) =
            ledger.archive().archivable(counter_id, -1, before_us, PAGE_ROWS).await?;
        all.extend(rows);
        *place = Place { counter_id, value: next };
        if next.is_some() || all.len() >= PAGE_ROWS as usize {
            break;
        }
    }
    Ok(Some(all))
}
