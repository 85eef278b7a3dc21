//! What the ledger knows of documents: their numbers.
//!
//! Part of the ledger's interface, apart from the journal's because nothing here depends on an
//! epoch or an owner, and nothing takes a value.

use async_trait::async_trait;

use super::{JournalRow, LedgerError, Position};

/// What every engine can tell of documents.
#[async_trait]
pub trait Documents: Send + Sync + 'static {
    /// The numbers of a document behind a position, oldest first, at most `limit` of them (1,000).
    /// A number just issued by the Redis path appears once it is journaled.
    async fn numbers_of(
        &self,
        document_id: &str,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<JournalRow>, LedgerError>;
}
