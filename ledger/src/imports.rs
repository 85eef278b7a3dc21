//! How another system's numbers come into the ledger (R9.5).
//!
//! Part of the ledger's interface, apart from the journal's because no path of ours took these
//! numbers: nothing here touches a counter while anybody else can take from it.

use async_trait::async_trait;
use numerator_base::node::NodeId;

use super::{Imported, ImportedCounter, ImportedEntries, ImportedVersion, LedgerError};

/// What every engine can take in.
#[async_trait]
pub trait Imports: Send + Sync + 'static {
    /// Brings counters up to what another system has issued of them and journals its numbers, in
    /// one transaction (R9.5): all or nothing. Values up to a counter's highest that do not come
    /// along become gaps. Safe while services run: the first touch of a counter that is new goes
    /// on above its highest. One that is there is lifted to its highest while its row is locked;
    /// of the values up to where it stands, only those can come that an earlier import left open.
    /// Holds up who needs one of the counters that are new or lifted, and on SQLite whoever writes.
    /// Earlier versions that a series does not know come before the one in force, which stays so:
    /// what is saved later is proved against them. One import at a time, at most eleven minutes on
    /// PostgreSQL. Not safe to repeat: once done, everything is there.
    ///
    /// # Errors
    /// `Refused` where Redis counts a counter that is to be lifted, or owns a partition that gets
    /// documents, one of these got a number meanwhile, a number or a value is
    /// journaled or was given up, a series has just been changed, its partition is held, another
    /// series shows what an earlier version has issued, or the entries end with an error.
    async fn import(
        &self,
        node: NodeId,
        counters: &[ImportedCounter],
        earlier: &[ImportedVersion],
        chunks: &mut ImportedEntries<'_>,
    ) -> Result<Imported, LedgerError>;

    /// Whether each number stands in the journal within its scope.
    async fn issued(&self, numbers: &[(String, String)]) -> Result<Vec<bool>, LedgerError>;
}
