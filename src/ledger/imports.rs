//! How another system's numbers come into the ledger (R9.5).
//!
//! Part of the ledger's interface, apart from the journal's because no path of ours took these
//! numbers: nothing here touches a counter that anybody uses.

use async_trait::async_trait;

use super::{Imported, ImportedCounter, ImportedEntries, LedgerError};
use crate::node::NodeId;

/// What every engine can take in.
#[async_trait]
pub trait Imports: Send + Sync + 'static {
    /// Makes counters that the ledger does not know and journals what another system has issued of
    /// them, in one transaction (R9.5): all or nothing. Values up to a counter's highest that do
    /// not come along become gaps. Safe while services run: a new counter's first touch goes on
    /// above its highest. Of a counter that is there, only values can come that an earlier import
    /// left open; its row is not touched. Holds up only who needs one of the new counters, at the
    /// end; on SQLite whoever writes. One import at a time, at most eleven minutes on PostgreSQL.
    /// Not safe to repeat: once done, everything is there.
    ///
    /// # Errors
    /// `Refused` where more of a counter that is there would come, a number or a value is
    /// journaled, a series has just been changed, its partition is held, or the entries end with
    /// an error.
    async fn import(
        &self,
        node: NodeId,
        counters: &[ImportedCounter],
        chunks: &mut ImportedEntries<'_>,
    ) -> Result<Imported, LedgerError>;

    /// Whether each number stands in the journal within its scope.
    async fn issued(&self, numbers: &[(String, String)]) -> Result<Vec<bool>, LedgerError>;
}
