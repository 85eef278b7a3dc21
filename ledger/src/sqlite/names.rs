//! Locks on names, which nobody needs here: there is one writer, and no moment between its look and
//! its commit. Nor have statements or transactions a limit of time.

use async_trait::async_trait;
use numerator_base::node::NodeId;
use sqlx::sqlite::SqliteConnection;

use crate::LedgerError;
use crate::dialect::{Locks, Moment};

#[async_trait]
impl Locks for SqliteConnection {
    async fn lock_names(&mut self, _sorted: &[i64]) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Nobody to wait for: who begins to take while another epoch opens sees that it did.
    async fn share_names(&mut self, _sorted: &[i64]) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn lock_incarnation(&mut self) -> Result<(), LedgerError> {
        Ok(())
    }

    /// Nothing comes while a transaction writes.
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

    async fn allow_import(&mut self) -> Result<(), LedgerError> {
        Ok(())
    }
}
