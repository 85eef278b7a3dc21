//! What those who check the ledger ask, page by page. Takes nothing.

use async_trait::async_trait;

use super::{Engine, metered, unsettled};
use crate::ledger::patience::Patience;
use crate::ledger::{Audits, LedgerError, Unsettled};

#[async_trait]
impl Audits for Engine {
    async fn settle_slice(&self, rows_max: u32) -> Result<bool, LedgerError> {
        // Bounded by its rows; but a slow disk must not cost others their connections.
        search!(self, store => unsettled::settle_slice(&store, rows_max))
    }

    async fn unsettled(&self, limit: u32) -> Result<Vec<Unsettled>, LedgerError> {
        call!(self, store => unsettled::list(&store, limit))
    }
}
