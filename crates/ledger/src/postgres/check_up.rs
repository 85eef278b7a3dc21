//! How a PostgreSQL server keeps commits, as far as a session of the program may see it.

use sqlx::PgPool;
use sqlx_macros::FromRow;

use crate::{LedgerCheckup, LedgerConfigWarning, LedgerError};

/// Settings of a session, and standbys of its server.
#[derive(FromRow)]
struct Settings {
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    standbys: i64,
    hidden: i64,
}

/// The settings that this session may see.
pub(super) async fn check_up(connections: &PgPool) -> Result<LedgerCheckup, LedgerError> {
    // A base backup under way is no standby yet. Without the right to see them all, the rows of
    // others' sessions are there without content.
    let row: Settings = sqlx::query_as(
        "select current_setting('fsync') as fsync,
         current_setting('full_page_writes') as full_page_writes,
         current_setting('synchronous_commit') as synchronous_commit,
         count(*) filter (where sync_state = 'async' and state <> 'backup') as standbys,
         count(*) filter (where state is null) as hidden from pg_stat_replication",
    )
    .fetch_one(connections)
    .await?;
    let mut checkup = LedgerCheckup::default();
    let Settings { synchronous_commit: setting, standbys, hidden, .. } = row;
    if row.fsync == "off" {
        checkup.config_warnings.push(LedgerConfigWarning::NoFsync);
    }
    if row.full_page_writes == "off" {
        checkup.config_warnings.push(LedgerConfigWarning::NoFullPageWrites);
    }
    if matches!(&*setting, "off" | "local") {
        checkup.config_warnings.push(LedgerConfigWarning::LazyCommit { setting });
    }
    if standbys > 0 {
        checkup.config_warnings.push(LedgerConfigWarning::AsynchronousStandby { standbys });
    }
    if hidden > 0 {
        let why = "this user may not see whether commits wait for them; grant pg_monitor to it";
        checkup.unchecked.push(format!("{hidden} standbys: {why}"));
    }
    Ok(checkup)
}
