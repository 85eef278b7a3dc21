//! Opens a SQLite ledger: folder, file, durability, migrations.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use numerator_runtime::clock::SharedClock;
use numerator_runtime::owned::remedy;
use sqlx::migrate::{Migrate as _, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _};

use super::SqliteEngine;
use super::life::SqlitePools;
use super::mark::MarkFile;
use super::place::Place;
use super::private;
use crate::engine::Engine;
use crate::protocol::holding::agree;
use crate::schema::{Migrated, Schema};
use crate::store::{Lasting, Store};
use crate::{LedgerError, LedgerSettings, Migrate};

pub(super) static MIGRATIONS: Migrator = sqlx_macros::migrate!("../../migrations/sqlite");

/// A statement that takes longer is a line of the log, for the analysis of single statements.
const SLOW_STATEMENT: Duration = Duration::from_secs(1);

/// How much longer a caller waits for the one writing connection than that one for other processes,
/// so that the waits of callers behind it do not end first.
const ACQUIRE_TIME: Duration = Duration::from_secs(10);

/// Room for the pages that rows of the journal and its indexes go to: a few for each row, all over
/// the file.
const WRITER_CACHE_KIB: u32 = 32 * 1024;

/// Opens the file at `path`, creating it and its folder; sets it up where it is empty, and brings
/// its schema up to date where the settings say so.
pub(crate) async fn open(
    path: &Path,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<(Box<dyn Engine>, Option<Migrated>), LedgerError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(settings.lock_timeout)
        .log_slow_statements("debug".parse().expect("a level"), SLOW_STATEMENT);
    let acquire_timeout = settings.lock_timeout + ACQUIRE_TIME;
    // Switching a fresh file to WAL does not wait for other processes, and migrations have no lock
    // on this engine: both happen under a separate lock. It ends with the file handle.
    let lock = lock_beside(path.to_path_buf()).await?;
    let mark = MarkFile::beside(path);
    must_not_be_gone(path, &mark)?;
    keep_private(path)?;
    let place = Arc::new(Place::of(path));
    let [of_writer, of_readers] = [Arc::clone(&place), place];
    let writer = SqlitePoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(acquire_timeout)
        // There is no peer that could be gone.
        .test_before_acquire(false)
        // A full disk makes SQLite roll a transaction back. The client then counts it as open for
        // ever, and would refuse to begin another one: such a connection is closed.
        .before_acquire(move |conn, meta| {
            let is_sound = !conn.is_in_transaction() && of_writer.is_of(meta.age);
            Box::pin(async move { Ok(is_sound) })
        })
        .connect_with(
            options
                .clone()
                .pragma("cache_size", format!("-{WRITER_CACHE_KIB}"))
                // The undo data of a statement over many rows is kept in memory, not in a file.
                .pragma("temp_store", "memory"),
        )
        .await?;
    let reader = SqlitePoolOptions::new()
        .max_connections(settings.connections_max.max(1))
        .test_before_acquire(false)
        .acquire_timeout(acquire_timeout)
        .before_acquire(move |_, meta| {
            let is_sound = of_readers.is_of(meta.age);
            Box::pin(async move { Ok(is_sound) })
        })
        .connect_lazy_with(options.create_if_missing(false).read_only(true));
    let ledger = path.to_owned();
    let pools = Arc::new(SqlitePools { ledger, writer, reader, mark: Arc::new(mark) });
    let opened = set_up(&pools, settings, clock).await;
    if opened.is_err() {
        pools.end().await;
    }
    drop(lock);
    let (store, migrated) = opened?;
    Ok((Box::new(SqliteEngine { store: Arc::new(store), pools }), migrated))
}

/// Takes the file for a ledger, or makes one of it. The lock file is held.
async fn set_up(
    pools: &Arc<SqlitePools>,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<(Store, Option<Migrated>), LedgerError> {
    let SqlitePools { ledger, writer, mark, .. } = &**pools;
    must_show_what_was_agreed(writer, ledger, mark).await?;
    let migrated = bring_up_to_date(writer, settings.migrate).await?;
    // From now on a missing file is a lost ledger.
    writer.set_connect_options((*writer.connect_options()).clone().create_if_missing(false));
    let lasting = Lasting { mac_key: settings.mac_key, ..Lasting::default() };
    let store = Store::new(Arc::clone(pools) as _, clock, lasting);
    agree(&store).await?;
    if migrated.is_some() {
        // A file that is moved without its log shows it, and is held (F38).
        pools.fold().await;
    }
    Ok((store, migrated))
}

/// Makes the file where it is missing, so that only its owner may read it; the files next to it get
/// the same rights from its client.
fn keep_private(path: &Path) -> Result<(), LedgerError> {
    let made = private::make(path);
    private::tighten(path);
    let cannot = |error: std::io::Error| {
        let cause = format!("database.url: {}: {error}{}", path.display(), remedy(&error, path));
        LedgerError::Unreachable { cause, maybe_written: false }
    };
    made.map_err(cannot)
}

/// Refuses to begin anew where a ledger was: every number of it would come again (F25). An empty
/// file is what a client leaves that has opened a lost one.
pub(super) fn must_not_be_gone(path: &Path, mark: &MarkFile) -> Result<(), LedgerError> {
    let is_there = std::fs::metadata(path).is_ok_and(|found| found.len() > 0);
    if is_there || !mark.path().exists() { Ok(()) } else { Err(gone(path, mark)) }
}

/// The same of a file that is no ledger, or has nothing agreed on in it: a client that opens an
/// empty file makes pages of it.
async fn must_show_what_was_agreed(
    writer: &SqlitePool,
    path: &Path,
    mark: &MarkFile,
) -> Result<(), LedgerError> {
    if !mark.path().exists() {
        return Ok(());
    }
    let table = "select count(*) from sqlite_master where name = 'incarnation'";
    let tables: i64 = sqlx::query_scalar(table).fetch_one(writer).await?;
    let rows: i64 = match tables {
        0 => 0,
        _ => sqlx::query_scalar("select count(*) from incarnation").fetch_one(writer).await?,
    };
    if rows > 0 { Ok(()) } else { Err(gone(path, mark)) }
}

fn gone(path: &Path, mark: &MarkFile) -> LedgerError {
    let (ledger, mark) = (path.display(), mark.path().display());
    LedgerError::Refused(format!(
        "database.url: {ledger} is gone, and {mark} says that it has issued numbers, which a new \
         one would issue again; put the ledger back, or delete {mark} to begin anew"
    ))
}

/// Runs the migrations that are missing, where that is allowed; their effect, if any ran. The lock
/// file is held: no other process does.
async fn bring_up_to_date(
    writer: &SqlitePool,
    migrate: Migrate,
) -> Result<Option<Migrated>, LedgerError> {
    let mut connection = writer.acquire().await?;
    let count = "select count(*) from sqlite_master where name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(count).fetch_one(&mut *connection).await?;
    let applied = match tables {
        0 => Vec::new(),
        _ => connection.list_applied_migrations("_sqlx_migrations").await?,
    };
    let migrated = Schema::of(&MIGRATIONS, &applied)?.is_behind(&MIGRATIONS, migrate)?;
    if migrated.is_some() {
        MIGRATIONS.run_direct(None, &mut *connection, false).await?;
    }
    Ok(migrated)
}

/// Creates the folder and waits for the lock file next to the ledger.
pub(super) async fn lock_beside(ledger: PathBuf) -> Result<File, LedgerError> {
    let lock = move || {
        let mut name = ledger.clone().into_os_string();
        name.push(".lock");
        let name = PathBuf::from(name);
        let locked = || {
            if let Some(folder) = ledger.parent() {
                private::make_folder(folder)?;
            }
            let file = private::open(&name, &ledger)?;
            file.lock()?;
            Ok(file)
        };
        locked().map_err(|error: std::io::Error| {
            format!("database.url: {}: {error}{}", name.display(), remedy(&error, &name))
        })
    };
    let cannot = |cause: String| LedgerError::Unreachable { cause, maybe_written: false };
    match tokio::task::spawn_blocking(lock).await {
        Ok(locked) => locked.map_err(cannot),
        Err(stopped) => Err(cannot(stopped.to_string())),
    }
}
