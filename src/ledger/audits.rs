//! What the ledger tells those who check it, a bounded page at a time, and what they may note.
//!
//! Part of the ledger's interface, apart from the journal's because nothing here takes a value, and
//! nobody waits for it: work that may be long goes in slices that commit one by one (F31).

use async_trait::async_trait;

use super::{LedgerError, Unsettled};

/// What every engine can tell of itself.
#[async_trait]
pub trait Audits: Send + Sync + 'static {
    /// Looks through the next slice of what is unsettled, at most about `rows_max` rows of the
    /// journal: values of closed epochs, or the last date of a family. False when nothing is left
    /// to be looked at. What is unsettled in partitions that are held stays so.
    async fn settle_slice(&self, rows_max: u32) -> Result<bool, LedgerError>;

    /// What is unsettled, oldest first, at most `limit`.
    async fn unsettled(&self, limit: u32) -> Result<Vec<Unsettled>, LedgerError>;
}
