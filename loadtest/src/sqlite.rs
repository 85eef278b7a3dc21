//! A SQLite file that a service may have open, read and locked from another process.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

/// Longest wait for the write lock while others write.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// Returns the rows of a query on a file, as texts; writes nothing.
///
/// # Panics
/// When the engine refuses.
pub(crate) fn read(path: &Path, query: &str) -> Vec<Vec<String>> {
    carry_out(&options(path).read_only(true), query)
}

/// Runs a statement on a file.
///
/// # Panics
/// When the engine refuses.
pub(crate) fn run(path: &Path, statement: &str) {
    carry_out(&options(path), statement);
}

/// Takes the write lock of a file, as another program with a long write would; it is released with
/// the connection.
///
/// # Panics
/// When the lock is not acquired in time.
pub(crate) async fn lock(path: &Path) -> SqliteConnection {
    let mut connection = options(path).connect().await.expect("the file opens");
    let begun = sqlx::query("begin immediate").execute(&mut connection).await;
    begun.expect("the lock is had before its wait ends");
    connection
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).busy_timeout(LOCK_WAIT)
}

/// On a thread of its own: the caller may already be inside a runtime.
fn carry_out(options: &SqliteConnectOptions, statement: &str) -> Vec<Vec<String>> {
    let work = async {
        let mut connection = options.connect().await?;
        let rows = sqlx::query(AssertSqlSafe(statement)).fetch_all(&mut connection).await?;
        rows.iter().map(texts).collect::<Result<_, sqlx::Error>>()
    };
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work).expect("the file is read")
    };
    std::thread::scope(|scope| scope.spawn(run).join().expect("the engine answers"))
}

fn texts(row: &SqliteRow) -> Result<Vec<String>, sqlx::Error> {
    let text = |i| row.try_get_unchecked::<Option<String>, _>(i).map(Option::unwrap_or_default);
    (0..row.len()).map(text).collect()
}
