//! What the ledger knows of documents: their numbers, and the revisions of those.
//!
//! Part of the ledger's interface, apart from the journal's because nothing here depends on an
//! epoch or an owner, and nothing takes a value.

use async_trait::async_trait;

use super::{
    JournalRow, LedgerError, NewRevision, Position, Revised, Revision, SeriesVersion, ValueOf,
};

/// What every engine can show of documents.
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

    /// One version of a series, active or not: an issued number is explained by the version that
    /// it was made with.
    async fn series_version(
        &self,
        series_id: i64,
        version: u32,
    ) -> Result<Option<SeriesVersion>, LedgerError>;

    /// The latest document date that a family of counters has given numbers to: the counters of a
    /// series' first serial that differ in their period alone; their key is the family's but for
    /// that.
    async fn last_date(
        &self,
        series_id: i64,
        serial: &str,
        family: &str,
    ) -> Result<Option<String>, LedgerError>;

    /// Writes a revision of a journaled number (R2.10). Safe to repeat. Its text is unique in its
    /// scope among all numbers and revisions, whoever writes at the same time.
    ///
    /// # Errors
    /// `Refused` where the journal does not have the number.
    async fn revise(&self, revision: &NewRevision) -> Result<Revised, LedgerError>;

    /// The revisions of numbers, each number's oldest first.
    async fn revisions_of(&self, numbers: &[ValueOf]) -> Result<Vec<Revision>, LedgerError>;

    /// Revisions with this text, of whatever scope, oldest first, at most `limit`.
    async fn revisions_named(&self, number: &str, limit: u32)
    -> Result<Vec<Revision>, LedgerError>;

    /// Revisions whose number the journal does not have, or whose own text it does not hold, at
    /// most `limit`: there are none unless somebody else wrote into the ledger.
    async fn stray_revisions(&self, limit: u32) -> Result<Vec<Revision>, LedgerError>;
}
