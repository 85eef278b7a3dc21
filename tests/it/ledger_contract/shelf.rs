//! A record under seal with a folder that its rows move to.

use std::path::{Path, PathBuf};

use numerator::features::archive::{Folder, Moved, Moving, SealedPages, archive, look};
use numerator::features::checkpoints::{AuditReport, Kept, Trust, verify};
use numerator::ledger::JournalFilter;

use super::sealed::Kit;
use super::world::{NOW_US, World};

/// The owner of the files.
pub(super) const DEPLOYMENT: uuid::Uuid = uuid::Uuid::from_u128(7 << 96);

/// All that is there.
pub(super) const BEFORE_US: i64 = NOW_US + 1;

/// A sealed ledger, and a folder to archive to.
pub(super) struct Shelf {
    pub(super) kit: Kit,
    folder: tempfile::TempDir,
}

impl Shelf {
    pub(super) async fn of(world: World) -> Self {
        Shelf { kit: Kit::of(world).await, folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) async fn try_archive(&self, before_us: i64) -> Result<Moved, String> {
        let folder =
            Folder::open_to_write(self.path(), DEPLOYMENT).map_err(|error| format!("{error:#}"))?;
        let moving = Moving {
            before_us,
            by: "keeper",
            key: Some(&self.kit.key),
            clock: self.kit.world.clock.clone(),
            file_rows_max: 1_000,
            step_rows: 100,
            progress: &|_, _| (),
        };
        let moved = archive(&self.kit.world.ledger, &folder, &moving).await;
        moved.map_err(|error| format!("{error:#}"))
    }

    /// Archives row by row, a few in a file, until its progress was reported this often; whether it
    /// ended there.
    pub(super) async fn archive_until(&self, steps: usize) -> bool {
        let (ledger, key) = (self.kit.world.ledger.clone(), self.kit.key.clone());
        let (path, clock) = (self.path().to_owned(), self.kit.world.clock.clone());
        let archiving = tokio::spawn(async move {
            let folder = Folder::open_to_write(&path, DEPLOYMENT).unwrap();
            let told = std::sync::atomic::AtomicUsize::new(0);
            let moving = Moving {
                before_us: BEFORE_US,
                by: "keeper",
                key: Some(&key),
                clock,
                file_rows_max: 3,
                step_rows: 1,
                progress: &|_, _| {
                    let so_often = told.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    assert!(so_often < steps, "ended here");
                },
            };
            archive(&ledger, &folder, &moving).await.unwrap();
        });
        archiving.await.is_err()
    }

    pub(super) async fn archive(&self) -> Moved {
        self.try_archive(BEFORE_US).await.unwrap()
    }

    /// Compares the record with its seals, with the archive's rows or without.
    pub(super) async fn report(&self, is_with_archive: bool) -> AuditReport {
        self.report_from(1, is_with_archive).await
    }

    /// The same from a checkpoint on.
    pub(super) async fn report_from(&self, from: i64, is_with_archive: bool) -> AuditReport {
        let ledger = &self.kit.world.ledger;
        let trust = Trust { keys: vec![self.kit.key.public()], from };
        let none: Option<Kept<std::io::Cursor<String>>> = None;
        let mut pages = match is_with_archive {
            false => None,
            true => {
                let folder = Folder::open(self.path()).unwrap();
                let pages = SealedPages::open(ledger, &folder, &trust.keys);
                Some(pages.await.unwrap())
            }
        };
        let mut rows = || pages.as_mut().map_or(Ok(None), SealedPages::next_page);
        verify(ledger, &trust, none, &mut rows, |_, _| ()).await.unwrap()
    }

    /// The allocation of a value of the first counter.
    pub(super) async fn allocation_of(&self, value: u64) -> uuid::Uuid {
        let row = self.kit.world.ledger.register().row_of(1, value).await.unwrap().unwrap();
        row.entry.record.allocation_id
    }

    /// What an insert with ids of its own says before its values.
    pub(super) fn own_ids(&self) -> &'static str {
        if self.kit.world.ledger.engine() == "sqlite" { "" } else { "overriding system value" }
    }

    /// How many rows the journal has.
    pub(super) async fn rows(&self) -> u64 {
        self.kit.world.ledger.register().totals().await.unwrap().journal
    }

    pub(super) fn files(&self, suffix: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            entries.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
        files.sort();
        files
    }

    pub(super) fn look(&self, filter: JournalFilter) -> Vec<String> {
        let folder = Folder::open(self.path()).unwrap();
        let (found, _) = look(&folder, &JournalFilter { limit: 100, ..filter }, None).unwrap();
        found.into_iter().map(|found| found.row.entry.number).collect()
    }
}
