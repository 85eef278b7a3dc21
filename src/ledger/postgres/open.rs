//! Opens a PostgreSQL ledger: session limits, durability checks, migrations.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

use super::Store;
use crate::clock::SharedClock;
use crate::ledger::{LedgerError, SharedLedger};

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// How long a caller waits for a connection of the pool.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// What every session sets: no wait without a bound (F14, R6.2). A process stopped between two
/// statements loses its locks after two seconds; a dead one's connection is noticed by keepalives.
/// Compiling statements as short as these costs more than it saves.
const SESSION: [(&str, &str); 11] = [
    ("application_name", "numerator"),
    ("default_transaction_isolation", "read committed"),
    ("lock_timeout", "10s"),
    ("statement_timeout", "15s"),
    ("idle_in_transaction_session_timeout", "2s"),
    ("tcp_keepalives_idle", "5"),
    ("tcp_keepalives_interval", "2"),
    ("tcp_keepalives_count", "3"),
    ("tcp_user_timeout", "10s"),
    ("timezone", "UTC"),
    ("jit", "off"),
];

/// Opens the database that `url` names and brings its schema up to date.
pub(in crate::ledger) async fn open(
    url: &str,
    connections_max: u32,
    clock: SharedClock,
) -> Result<SharedLedger, LedgerError> {
    let options = PgConnectOptions::from_str(url)
        .map_err(|e| LedgerError::Refused(format!("database.url: {e}")))?
        .options(SESSION);
    let pool = PgPoolOptions::new()
        .max_connections(connections_max.max(2))
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options)
        .await?;
    require_durable_commits(&pool).await?;
    // sqlx holds an advisory lock meanwhile: processes that start together wait for each other.
    MIGRATIONS.run(&pool).await.map_err(LedgerError::from)?;
    Ok(Arc::new(Store { writer: pool.clone(), reader: pool, clock }))
}

/// The ledger must not lose a commit (F9).
async fn require_durable_commits(pool: &PgPool) -> Result<(), LedgerError> {
    for (setting, statement) in
        [("fsync", "show fsync"), ("synchronous_commit", "show synchronous_commit")]
    {
        let value: String = sqlx::query_scalar(statement).fetch_one(pool).await?;
        if value == "off" {
            return Err(LedgerError::Refused(format!(
                "PostgreSQL runs with {setting} = off and may lose a commit, after which numbers \
                 would be issued twice; set {setting} = on"
            )));
        }
    }
    Ok(())
}
