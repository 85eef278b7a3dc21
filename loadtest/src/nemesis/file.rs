//! A ledger in a SQLite file: read beside its users, copied, put back, locked.

use std::path::PathBuf;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tempfile::TempDir;

/// Rows that are read in one piece.
const PAGE_ROWS: usize = 20_000;

/// Longest wait for the write lock while others write.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// The file, in a folder of its own.
pub(super) struct LedgerFile {
    folder: TempDir,
    /// Holds the write lock.
    locking: Option<SqliteConnection>,
}

impl LedgerFile {
    /// None is there until the program makes it.
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

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new().filename(self.path("")).busy_timeout(LOCK_WAIT)
    }

    /// Gives each row of a query, as texts; page by page, so that few are in memory.
    pub(super) fn rows(&self, query: &str, mut each: impl FnMut(&[&str])) {
        for page in 0.. {
            let skipped = page * PAGE_ROWS;
            let rows = self.read(&format!("{query} limit {PAGE_ROWS} offset {skipped}"));
            for row in &rows {
                each(&row.iter().map(String::as_str).collect::<Vec<_>>());
            }
            if rows.len() < PAGE_ROWS {
                return;
            }
        }
    }

    fn read(&self, query: &str) -> Vec<Vec<String>> {
        wait(async {
            let mut connection = self.options().read_only(true).connect().await?;
            let rows = sqlx::query(AssertSqlSafe(query)).fetch_all(&mut connection).await?;
            rows.iter().map(texts).collect()
        })
    }

    /// Copies it beside its users, as a backup would.
    pub(super) fn copy(&self) {
        let copy = self.path(".copy");
        let _ = std::fs::remove_file(&copy);
        wait(async {
            let mut connection = self.options().connect().await?;
            let copied = format!("vacuum into '{}'", copy.display());
            sqlx::query(AssertSqlSafe(copied)).execute(&mut connection).await.map(drop)
        });
    }

    /// Puts the last copy in its place, and what belongs to the file of before out of the way.
    pub(super) fn put_back(&self) {
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(self.path(end));
        }
        std::fs::rename(self.path(".copy"), self.path("")).expect("the copy is put back");
    }

    /// Takes the write lock, as another program that writes for long would.
    pub(super) async fn lock(&mut self) {
        let mut connection = self.options().connect().await.expect("the file opens");
        let begun = sqlx::query("begin immediate").execute(&mut connection).await;
        begun.expect("the lock is had before its wait ends");
        self.locking = Some(connection);
    }

    /// Gives the write lock back; nothing was written under it.
    pub(super) fn unlock(&mut self) {
        self.locking = None;
    }
}

fn texts(row: &SqliteRow) -> Result<Vec<String>, sqlx::Error> {
    let text = |i| row.try_get_unchecked::<Option<String>, _>(i).map(Option::unwrap_or_default);
    (0..row.len()).map(text).collect()
}

/// Waits for the engine on a thread of its own: the caller may already be inside a runtime.
fn wait<T: Send>(work: impl Future<Output = Result<T, sqlx::Error>> + Send) -> T {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work).expect("the file is read")
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("the engine answers"))
}
