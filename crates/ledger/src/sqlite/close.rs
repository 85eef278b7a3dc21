//! The end of a SQLite ledger: the last process leaves one file, so that a copy of it has all that
//! was confirmed (F38).
//!
//! SQLite writes the log (`-wal`) back and removes it as the last connection to a file ends, if
//! that one may write. So readers end first, the writer last, and processes end one after the
//! other, each under the lock file: of two that end at the same time neither takes the other for
//! one that stays. The mark stays.

use std::path::PathBuf;
use std::time::Duration;

use sqlx::Row as _;
use tokio::time::timeout;

use super::life::SqlitePools;
use super::open::lock_beside;

/// Longest wait for the lock file: a later holder opens the ledger, and ends after us.
const LOCK_TIME: Duration = Duration::from_secs(2);

impl SqlitePools {
    /// Ends the connections as one of several processes.
    pub(super) async fn close(&self) {
        // Where the ledger is gone no new one is made.
        let lock = match self.ledger.exists() {
            true => timeout(LOCK_TIME, lock_beside(self.ledger.clone())).await.ok(),
            false => None,
        };
        self.end().await;
        drop(lock);
    }

    /// Ends the connections. The lock file is held.
    pub(super) async fn end(&self) {
        self.reader.close().await;
        self.fold().await;
        self.writer.close().await;
        let mut log = self.ledger.clone().into_os_string();
        log.push("-wal");
        let log = PathBuf::from(log);
        if std::fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
            let log = log.display();
            tracing::info!(%log, "another process has the ledger open: it is copied by `.backup`");
        }
    }

    /// Writes the log back to the file, as far as no reader uses the older pages. Waits for no
    /// other connection: a wait here would keep others from writing.
    pub(super) async fn fold(&self) {
        let fold = async {
            let mut writer = self.writer.acquire().await?;
            let waits: i64 =
                sqlx::query_scalar("pragma busy_timeout").fetch_one(&mut *writer).await?;
            sqlx::query("pragma busy_timeout = 0").execute(&mut *writer).await?;
            let folded =
                sqlx::query("pragma wal_checkpoint(truncate)").fetch_one(&mut *writer).await;
            let waits = sqlx::AssertSqlSafe(format!("pragma busy_timeout = {waits}"));
            sqlx::query(waits).execute(&mut *writer).await?;
            let folded = folded?;
            Ok::<(i64, i64), sqlx::Error>((folded.try_get(1)?, folded.try_get(2)?))
        };
        match fold.await {
            Ok((pages, written)) if written < pages => {
                tracing::debug!(pages, written, "somebody reads what was before");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the log of the ledger is not written back"),
        }
    }
}
