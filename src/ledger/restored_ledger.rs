//! What is done with a ledger that went back (F9, F25): it is held, told again, lifted, released.
//!
//! Part of the ledger's interface, apart from the others because nothing here trusts an epoch or
//! an id of the ledger's own.

use async_trait::async_trait;

use super::{Appended, At, Confirmed, Entry, LedgerError, Lift, Released};
use crate::node::NodeId;

/// What every engine can do once it has forgotten what it confirmed.
#[async_trait]
pub trait RestoredLedger: Send + Sync + 'static {
    /// Puts all partitions on `held` because one shows an epoch below the one that was `seen`: the
    /// ledger went back (F9). Compare-and-set, true only while it does. An operator ends it.
    async fn hold(&self, seen: At, cause: &str) -> Result<bool, LedgerError>;

    /// Puts all partitions on `held` because the caller knows that the ledger went back, and notes
    /// the highest epochs that it has seen; how many were not held before. Safe to repeat.
    async fn hold_all(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError>;

    /// What was confirmed to a node that registered through this handle.
    fn confirmed(&self, node: NodeId) -> Option<Confirmed>;

    /// Whether the ledger still has what it once confirmed to a node of whichever process. One
    /// that was held since has told its users, and has nothing to answer for.
    async fn remembers(&self, confirmed: &Confirmed) -> Result<bool, LedgerError>;

    /// Whether the ledger knows any counter of a partition.
    async fn has_counters(&self, partition: u32) -> Result<bool, LedgerError>;

    /// Journals what a ledger that went back may have forgotten; like `append`, but finds the
    /// counters by their names (an id may be another counter's now) and creates those that are
    /// missing. Fenced by nothing: what was handed out is always journaled.
    async fn journal_again(&self, node: NodeId, entries: &[Entry])
    -> Result<Appended, LedgerError>;

    /// Lifts ceilings of a held partition to what others know of its counters, creating those that
    /// the ledger has forgotten; how many were below. Never lowers one.
    ///
    /// # Errors
    /// `Refused` where the partition is not held; where a counter lives in another partition by
    /// now, which counts it again.
    async fn lift(&self, partition: u32, node: NodeId, lifts: &[Lift]) -> Result<u64, LedgerError>;

    /// Ends `held`: everything before `to.epoch` counts as closed at the ceiling, which is raised
    /// by `margin` numbers for each counter; the partition is open, and nobody owns it yet.
    async fn release(&self, to: At, margin: u64) -> Result<Released, LedgerError>;
}
