//! Moves old rows of the journal to files: one file at a time, then segments that replace its rows,
//! some at a time. Continues where an interrupted one stopped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::folder::Folder;
use super::looking::{files, open_as};
use super::writing::{Place, write};
use crate::backoff::Backoff;
use crate::clock::SharedClock;
use crate::engine::sealing::AuditKey;
use crate::ledger::{ArchiveFile, ArchivedRow, ArchivedRun, LedgerError, SharedLedger};
use crate::node::NodeId;

/// Most rows of a segment, and the fewest that are removed in one transaction: their counters are
/// locked meanwhile.
pub const STEP_ROWS: usize = 2_000;
/// How often a counter that is locked, or being settled, is tried again.
const ATTEMPTS: u32 = 20;

/// What to move, and who moves it.
pub struct Moving<'m> {
    /// Rows that were issued and written before this time.
    pub before_us: i64,
    /// The user who does it, for the record.
    pub by: &'m str,
    /// The key that signs the manifests.
    pub key: Option<&'m AuditKey>,
    /// The time.
    pub clock: SharedClock,
    /// About how many rows a file has, at most.
    pub file_rows_max: u64,
    /// How many rows are removed in one step: [`STEP_ROWS`], except in tests.
    pub step_rows: usize,
    /// Called with how many rows of a file were written, and then with how many were removed.
    pub progress: &'m (dyn Fn(u64, Option<u64>) + Sync),
}

/// The result of a move.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Names of the files, the continued one first.
    pub files: Vec<String>,
    /// Rows that made room.
    pub rows: u64,
}

/// Moves all that may move. It may be ended at any time: the next archiver continues what it began.
///
/// # Errors
/// A ledger or a folder that fails, a file that does not match the ledger, another archiver.
pub async fn archive(
    ledger: &SharedLedger,
    folder: &Folder,
    moving: &Moving<'_>,
) -> anyhow::Result<Moved> {
    // Its entries in the ledger name it; it does not join as a node.
    let node = NodeId::random();
    let mut moved = Moved::default();
    if let Some(begun) = ledger.archive().under_way().await? {
        moved.rows += make_room(ledger, folder, moving, node, &begun).await?;
        moved.files.push(begun.file.name);
    }
    tidy(ledger, folder).await?;
    let mut place = Place::BEGIN;
    while let Some(written) = write(ledger, folder, moving, &mut place).await? {
        moved.rows += make_room(ledger, folder, moving, node, &written).await?;
        moved.files.push(written.file.name);
    }
    Ok(moved)
}

/// Removes the leftovers of files that the ledger never knew.
async fn tidy(ledger: &SharedLedger, folder: &Folder) -> anyhow::Result<()> {
    let known: BTreeSet<String> =
        files(ledger).await?.into_iter().map(|file| file.file.name).collect();
    folder.tidy(|name| known.contains(name))
}

/// Removes the rows of a file in favour of segments; returns how many.
async fn make_room(
    ledger: &SharedLedger,
    folder: &Folder,
    moving: &Moving<'_>,
    node: NodeId,
    of: &ArchiveFile,
) -> anyhow::Result<u64> {
    let name = &of.file.name;
    let path = folder.file(name);
    let shown = path.display();
    if !path.exists() && !folder.partial(name).exists() {
        bail!(
            "{shown} is not there, and its rows are making room: archive to the folder that holds \
             it; where it is lost, `numerator archive delete {name}` gives it up as long as no row \
             of it made room"
        );
    }
    (moving.progress)(0, Some(of.file.rows));
    folder.publish(name, &of.file.manifest)?;
    let (opened, sha256) = (path.clone(), numbering::hexadecimal(&of.file.sha256));
    let opening = tokio::task::spawn_blocking(move || open_as(&opened, &sha256));
    let reader = Arc::new(opening.await??);
    let (mut gone, mut done) = (0, 0);
    let mut rest: Vec<ArchivedRow> = Vec::new();
    for group in 0..reader.groups() {
        let reader = Arc::clone(&reader);
        let rows = tokio::task::spawn_blocking(move || reader.read(group)).await?;
        rest.extend(rows.with_context(|| format!("{shown}"))?);
        // A run may go on in the next group.
        while rest.len() >= 2 * moving.step_rows {
            gone += step(ledger, moving, node, of, &mut rest, &mut done).await?;
        }
    }
    while !rest.is_empty() {
        gone += step(ledger, moving, node, of, &mut rest, &mut done).await?;
    }
    ledger.archive().end(of).await?;
    Ok(gone)
}

/// Some runs of the first rows.
async fn step(
    ledger: &SharedLedger,
    moving: &Moving<'_>,
    node: NodeId,
    of: &ArchiveFile,
    rest: &mut Vec<ArchivedRow>,
    done: &mut u64,
) -> anyhow::Result<u64> {
    let (mut runs, mut taken) = (Vec::new(), 0);
    while taken < moving.step_rows.min(rest.len()) {
        let rows = &rest[taken..];
        let rows = &rows[..ArchivedRun::length(rows, moving.step_rows)];
        runs.push(ArchivedRun::of(rows).context("the file holds rows that are none")?);
        taken += rows.len();
    }
    rest.drain(..taken);
    let gone = with_retries(ledger, of, node, moving.by, &runs).await?;
    *done += taken as u64;
    (moving.progress)(*done, Some(of.file.rows));
    Ok(gone)
}

async fn with_retries(
    ledger: &SharedLedger,
    of: &ArchiveFile,
    node: NodeId,
    by: &str,
    runs: &[ArchivedRun],
) -> anyhow::Result<u64> {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));
    loop {
        match ledger.archive().make_room(of, node, by, runs).await {
            // Safe to repeat after an unknown outcome, too.
            Err(
                LedgerError::LockTimeout { .. }
                | LedgerError::Conflict(_)
                | LedgerError::Unreachable { .. }
                | LedgerError::Fault(_),
            ) if backoff.attempts() < ATTEMPTS => backoff.wait().await,
            outcome => {
                return outcome.context(
                    "nothing is lost; what is begun is gone on with when it is archived again",
                );
            }
        }
    }
}
