//! Locks on names, which are not needed here: there is one writer, and no gap between its look and
//! its commit. Nor have statements or transactions a limit of time, except what looks through rows
//! for a request.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use numerator_runtime::node::NodeId;
use sqlx::sqlite::SqliteConnection;

use crate::LedgerError;
use crate::dialect::{Locks, Moment};

/// Steps of a statement between two looks at the time: well below a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

#[async_trait]
impl Locks for SqliteConnection {
    async fn lock_names(&mut self, _sorted: &[i64]) -> Result<(), LedgerError> {
        Ok(())
    }

    /// No wait: a take that begins while another epoch opens sees that it did.
    async fn share_names(&mut self, _sorted: &[i64]) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Nobody else writes meanwhile.
    async fn lock_own_name(&mut self, _name: i64) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn try_share_own_name(&mut self, _name: i64) -> Result<bool, LedgerError> {
        Ok(true)
    }

    async fn lock_incarnation(&mut self) -> Result<(), LedgerError> {
        Ok(())
    }

    /// A file has no clock.
    async fn server_now_us(&mut self) -> Result<Option<i64>, LedgerError> {
        Ok(None)
    }

    /// Nothing changes while a transaction writes.
    async fn moment(&mut self) -> Result<Moment, LedgerError> {
        Ok(Moment(0))
    }

    /// No question follows that statistics are needed for.
    async fn know_rows(&mut self) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Nothing was numbered meanwhile.
    async fn numbered_since(
        &mut self,
        _since: Moment,
        _node: NodeId,
        _counters: Vec<i64>,
    ) -> Result<Option<(String, String)>, LedgerError> {
        Ok(None)
    }

    async fn allow_long_search(&mut self) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn limit_search(&mut self, limit: Option<Duration>) -> Result<(), LedgerError> {
        let mut handle = self.lock_handle().await?;
        match limit {
            Some(limit) => {
                let end = Instant::now() + limit;
                handle.set_progress_handler(STEPS_BETWEEN_LOOKS, move || Instant::now() < end);
            }
            None => handle.remove_progress_handler(),
        }
        Ok(())
    }

    async fn allow_import(&mut self) -> Result<(), LedgerError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;

    use super::*;

    #[tokio::test]
    async fn what_looks_through_rows_ends_with_its_time() {
        let mut conn = SqliteConnection::connect(":memory:").await.expect("a database");
        let count = "with recursive n (i) as (select 1 union all select i + 1 from n
                     where i < 100000) select count(*) from n";
        conn.limit_search(Some(Duration::ZERO)).await.expect("set");
        let ended = sqlx::query(count).execute(&mut conn).await.map_err(LedgerError::from);
        assert!(matches!(ended, Err(LedgerError::LockTimeout { .. })), "{ended:?}");
        conn.limit_search(None).await.expect("taken away");
        sqlx::query(count).execute(&mut conn).await.expect("counted");
    }
}
