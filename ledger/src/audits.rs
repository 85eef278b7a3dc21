//! What the ledger shows those who check it, a bounded page at a time, and what they may note.
//!
//! Part of the ledger's interface, apart from the journal's because nothing here takes a value, and
//! nobody waits for it: work that may be long goes in slices that commit one by one (F31).

use async_trait::async_trait;

use uuid::Uuid;

use super::{
    Acknowledgement, Audited, Entry, LedgerError, Nobodys, Totals, Unsettled, ValueOf, Written,
};

/// What every engine can show of itself.
#[async_trait]
pub trait Audits: Send + Sync + 'static {
    /// Looks through the next slice of what is unsettled, at most about `rows_max` rows of the
    /// journal: values of closed epochs, or the last date of a family. False when nothing is left
    /// to be looked at. What is unsettled in partitions that are held stays so.
    async fn settle_slice(&self, rows_max: u32) -> Result<bool, LedgerError>;

    /// What is unsettled, oldest first, at most `limit`.
    async fn unsettled(&self, limit: u32) -> Result<Vec<Unsettled>, LedgerError>;

    /// Looks at the values of a counter in (`after`, `upto`], at about `rows_max` rows of the
    /// ledger: how far it came, and what stands nowhere or twice.
    async fn audit(
        &self,
        counter_id: i64,
        after: i64,
        upto: i64,
        rows_max: u32,
    ) -> Result<Audited, LedgerError>;

    /// Rows of the journal behind one, up to those of a counter, at most `limit`; on request only
    /// those of several numbers.
    async fn written(
        &self,
        after: ValueOf,
        upto_counter: i64,
        ranges_only: bool,
        limit: u32,
    ) -> Result<Vec<Written>, LedgerError>;

    /// Which allocations hold numbers, each in its scope, as the first of theirs.
    async fn holders(
        &self,
        numbers: &[(String, String)],
    ) -> Result<Vec<(String, String, Uuid)>, LedgerError>;

    /// The newest number of at most `counters_max` counters of each series, with the code of its
    /// series; those of the greatest keys.
    async fn newest_numbers(&self, counters_max: u32)
    -> Result<Vec<(String, String)>, LedgerError>;

    /// Notes a number that another allocation holds too, behind the back of the unique keys, among
    /// the collisions. Safe to repeat.
    async fn note_twice(&self, number: &Entry, other: Uuid) -> Result<(), LedgerError>;

    /// Rejected records of counters that the ledger does not have, but for those acknowledged,
    /// newest first, at most `limit`.
    async fn nobodys(&self, limit: u32) -> Result<Vec<Nobodys>, LedgerError>;

    /// Marks an allocation's collisions and rejected records as explained; how many were not yet.
    /// Who said so, and why, stands beside them and among the events.
    async fn acknowledge_finding(&self, explained: &Acknowledgement) -> Result<u64, LedgerError>;

    /// Sizes of the ledger at the price of a look: exact as far as ten thousand rows, beyond that
    /// what the engine knows about the table.
    async fn sizes(&self) -> Result<Totals, LedgerError>;
}
