//! A ledger in a SQLite file: read while others use it, copied, restored, locked.

use std::path::PathBuf;

use sqlx::sqlite::SqliteConnection;
use tempfile::TempDir;

use crate::sqlite;

/// Rows that are read at a time.
const PAGE_ROWS: usize = 20_000;

/// The file, in a folder of its own.
pub(super) struct LedgerFile {
    folder: TempDir,
    /// Holds the write lock.
    locking: Option<SqliteConnection>,
}

impl LedgerFile {
    /// The file does not exist until the program makes it.
    pub(super) fn within_a_new_folder() -> Self {
        LedgerFile { folder: tempfile::tempdir().expect("temporary folder"), locking: None }
    }

    /// Where the program finds it.
    pub(super) fn url(&self) -> String {
        format!("sqlite:{}", self.path("").display())
    }

    fn path(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("numerator.db{end}"))
    }

    /// Returns each row of a query, as texts; page by page, so that few are in memory.
    pub(super) fn rows(&self, query: &str, mut each: impl FnMut(&[&str])) {
        for page in 0.. {
            let skipped = page * PAGE_ROWS;
            let rows = sqlite::read(
                &self.path(""),
                &format!("{query} limit {PAGE_ROWS} offset {skipped}"),
            );
            for row in &rows {
                each(&row.iter().map(String::as_str).collect::<Vec<_>>());
            }
            if rows.len() < PAGE_ROWS {
                return;
            }
        }
    }

    /// Copies it while others use it, as a backup would.
    pub(super) fn copy(&self) {
        let copy = self.path(".copy");
        let _ = std::fs::remove_file(&copy);
        sqlite::run(&self.path(""), &format!("vacuum into '{}'", copy.display()));
    }

    /// Restores the last copy, and moves the files of the earlier state out of the way.
    pub(super) fn put_back(&self) {
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(self.path(end));
        }
        std::fs::rename(self.path(".copy"), self.path("")).expect("the copy is put back");
    }

    /// Where a program finds the last copy.
    pub(super) fn url_of_copy(&self) -> String {
        format!("sqlite:{}", self.path(".copy").display())
    }

    /// Reduces a copy that programs have worked with to one file.
    pub(super) fn settle_copy(&self) {
        sqlite::run(&self.path(".copy"), "pragma wal_checkpoint(truncate)");
        for end in [".copy-wal", ".copy-shm", ".copy.mark"] {
            let _ = std::fs::remove_file(self.path(end));
        }
    }

    /// Moves the file, and only that, away and back: the files next to it are lost.
    pub(super) fn move_alone(&self) {
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(self.path(end));
        }
    }

    /// Takes the write lock, as another program with a long write would.
    pub(super) async fn lock(&mut self) {
        self.locking = Some(sqlite::lock(&self.path("")).await);
    }

    /// Releases the write lock; nothing was written under it.
    pub(super) fn unlock(&mut self) {
        self.locking = None;
    }
}
