//! Looks at the file of a SQLite ledger: by connections that read, and that make no file next to it
//! but the index of a log that lacks one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use numerator_runtime::clock::SharedClock;
use numerator_runtime::owned::remedy;
use sqlx::migrate::Migrate as _;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};

use super::SqliteEngine;
use super::life::SqlitePools;
use super::mark::MarkFile;
use super::open::{MIGRATIONS, must_not_be_gone};
use crate::look::EngineInspection;
use crate::schema::Schema;
use crate::store::{Lasting, Store};
use crate::{LedgerError, LedgerSettings};

/// Looks at the file at `path`. A missing file is a ledger that is still to be set up, unless a
/// mark shows that one was.
///
/// # Errors
/// A file that may not be read.
pub(crate) async fn look(
    path: &Path,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<EngineInspection, LedgerError> {
    let mark = MarkFile::beside(path);
    let refusal = must_not_be_gone(path, &mark).err();
    let is_there = match std::fs::File::open(path) {
        Ok(file) => file.metadata().is_ok_and(|found| found.len() > 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => {
            let cause =
                format!("database.url: {}: {error}{}", path.display(), remedy(&error, path));
            return Err(LedgerError::Unreachable { cause, maybe_written: false });
        }
    };
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        // No process has the file open, so a client's index next to it would have no use. A log
        // that was copied with the file must be read, and needs its index.
        .immutable(!beside(path, "-shm").exists() && !has_log(path))
        .busy_timeout(settings.lock_timeout);
    let pool = || {
        let pool = SqlitePoolOptions::new().max_connections(2).test_before_acquire(false);
        pool.connect_lazy_with(options.clone())
    };
    let (writer, reader) = (pool(), pool());
    let schema = if is_there { standing(&reader).await } else { Ok(Schema::Empty) };
    let pools = SqlitePools { ledger: path.to_owned(), writer, reader, mark: Arc::new(mark) };
    let pools = Arc::new(pools);
    let store = Store::new(Arc::clone(&pools) as _, clock, Lasting::default());
    let engine = SqliteEngine { store: Arc::new(store), pools };
    Ok(EngineInspection { engine: Box::new(engine), schema, refusal, server: None })
}

async fn standing(reader: &SqlitePool) -> Result<Schema, LedgerError> {
    let mut connection = reader.acquire().await?;
    let count = "select count(*) from sqlite_master where name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(count).fetch_one(&mut *connection).await?;
    let applied = match tables {
        0 => Vec::new(),
        _ => connection.list_applied_migrations("_sqlx_migrations").await?,
    };
    Schema::of(&MIGRATIONS, &applied)
}

/// Whether a non-empty log is next to it.
fn has_log(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
