//! An archiver that runs during the load: moves what is old enough to files, again and again, and
//! is stopped at an arbitrary point about half of the time.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use numerator::clock::{Clock as _, SystemClock};
use numerator::engine::sealing::AuditKey;
use numerator::features::archive::{Folder, Moving, STEP_ROWS, archive, look};
use numerator::ledger::{JournalFilter, JournalRow, LedgerSettings, open};
use std::error::Error;

/// A younger row may be reported again by a node, or requested again by a caller.
const AGE_US: i64 = 75_000_000;

/// Rows of a file: several are written in a drill.
const FILE_ROWS: u64 = 20_000;

/// Pause between two archivers.
const PAUSE: Duration = Duration::from_secs(1);

/// How long one runs before it is stopped, at most.
const LIFE_MAX_MS: u64 = 2_000;

/// Where it moves rows to, and how the ledger is reached.
#[derive(Clone, Debug)]
pub(super) struct Archiver {
    folder: PathBuf,
    key: PathBuf,
    database_url: String,
}

impl Archiver {
    pub(super) fn new(folder: &Path, key: &Path, database_url: String) -> Self {
        Archiver { folder: folder.to_owned(), key: key.to_owned(), database_url }
    }

    /// Where the files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Archives until it is aborted. If the ledger is unavailable, the next run continues.
    pub(super) async fn run(self) {
        loop {
            let life = Duration::from_millis(fastrand::u64(..LIFE_MAX_MS));
            // A dropped run leaves its connections open, as a killed process does.
            let _ = tokio::time::timeout(life, self.once()).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Archives to the end; returns how many rows were moved.
    pub(super) async fn once(&self) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let pem = std::fs::read_to_string(&self.key)?;
        let key = AuditKey::read(&pem)?;
        let clock = Arc::new(SystemClock);
        let mac_key = Some(key.proof());
        let settings = LedgerSettings { connections_max: 2, mac_key, ..LedgerSettings::default() };
        let ledger = open(&self.database_url, settings, clock.clone()).await?;
        let folder = Folder::open_to_write(&self.folder, uuid::Uuid::nil())?;
        let moving = Moving {
            before_us: SystemClock.now_us() - AGE_US,
            by: "drill",
            key: Some(&key),
            clock,
            file_rows_max: FILE_ROWS,
            step_rows: STEP_ROWS,
            progress: &|_, _| (),
        };
        Ok(archive(&ledger, &folder, &moving).await?.rows)
    }

    /// The rows of all files; those of a file that the ledger forgot may also be in the journal.
    pub(super) fn rows(&self) -> Result<Vec<JournalRow>, Box<dyn Error + Send + Sync>> {
        let all = JournalFilter { limit: u32::MAX, ..JournalFilter::default() };
        let mut rows = Vec::new();
        for folder in [self.folder.clone(), self.aside()].iter().filter(|folder| folder.exists()) {
            let (found, _) = look(&Folder::open(folder)?, &all, None)?;
            rows.extend(found.into_iter().map(|found| found.row));
        }
        Ok(rows)
    }

    /// Where an operator puts files that the ledger forgot when it went back: in the folder each
    /// would be a finding.
    fn aside(&self) -> PathBuf {
        self.folder.with_extension("forgotten")
    }

    /// Moves files aside that the ledger does not name.
    pub(super) fn put_aside(&self, named: &HashSet<String>) -> std::io::Result<()> {
        if !self.folder.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(self.aside())?;
        for file in std::fs::read_dir(&self.folder)? {
            let name = file?.file_name().to_string_lossy().into_owned();
            let of = name.strip_suffix(".manifest.json").unwrap_or(&name);
            if of.ends_with(".parquet") && !named.contains(of) {
                std::fs::rename(self.folder.join(&name), self.aside().join(&name))?;
            }
        }
        Ok(())
    }
}
