//! How SQLite keeps commits: as the program has set it, unless the place of its file prevents that.

use sqlx::SqlitePool;

use crate::{LedgerCheckup, LedgerConfigWarning, LedgerError};

/// `pragma synchronous` of a connection that waits for the disk at each commit.
const FULL: i64 = 2;

/// The settings of a connection that writes.
pub(super) async fn check_up(writer: &SqlitePool) -> Result<LedgerCheckup, LedgerError> {
    let level: i64 = sqlx::query_scalar("pragma synchronous").fetch_one(writer).await?;
    let mut checkup = LedgerCheckup::default();
    if level < FULL {
        checkup
            .config_warnings
            .push(LedgerConfigWarning::LazyCommit { setting: level.to_string() });
    }
    Ok(checkup)
}
