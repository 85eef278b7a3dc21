//! What is done with a ledger that went back (F9, F25): it is held, brought up to date, lifted,
//! released.
//!
//! Part of the ledger's interface, apart from the others because nothing here trusts an epoch or
//! an id of the ledger's own.

use async_trait::async_trait;
use numerator_base::node::NodeId;
use tokio::time::Instant;

use super::{
    Agreement, Appended, At, Confirmed, Entry, Known, LedgerError, Lift, Released, Report,
};

/// What every engine can do once it has forgotten what it confirmed.
#[async_trait]
pub trait RestoredLedger: Send + Sync + 'static {
    /// Puts all partitions on `held` because one shows an epoch below the one that was `seen`: the
    /// ledger went back (F9). Compare-and-set, true only while it does. An operator ends it.
    async fn hold(&self, seen: At, cause: &str) -> Result<bool, LedgerError>;

    /// Puts all partitions on `held` because the caller knows that the ledger went back, and notes
    /// the highest epochs that it has seen; how many were not held before. Safe to repeat.
    async fn hold_all(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError>;

    /// Whether a copy that lacks commits may take its place without anybody's hand: a standby that
    /// is promoted. Where not, an operator ends each hold.
    fn fails_over(&self) -> bool;

    /// Holds all partitions like [`RestoredLedger::hold_all`], because this process itself was
    /// confirmed what the ledger has forgotten, and asks all its users what was confirmed to them:
    /// once they all have reported, the ledger goes on by itself (F25). Begins no inquest where
    /// somebody else has drawn the incarnation, where an operator holds it, or at an older server
    /// that lives on.
    async fn inquire(&self, seen: &[At], cause: &str) -> Result<u64, LedgerError>;

    /// Tells an inquest what a process remembers; false where there is none in the incarnation in
    /// which its node registered. Safe to repeat: the last word counts.
    async fn report(&self, report: &Report) -> Result<bool, LedgerError>;

    /// Ends the inquest if every node was heard that may have been confirmed anything that this
    /// ledger lacks, by it, by a reporter or by the caller, and none was confirmed more than it has
    /// reported again: then all partitions are open, what came before is closed exact, and nobody
    /// owns them yet.
    async fn agree(&self, node: NodeId, known: &Known) -> Result<Agreement, LedgerError>;

    /// The heartbeats of nodes as the ledger shows them, also of those that left; `None` where it
    /// has no such node.
    async fn beats(&self, nodes: &[NodeId]) -> Result<Vec<Option<i64>>, LedgerError>;

    /// When something was last committed through this handle that no process reports again: a
    /// series, an import, a change by an operator.
    fn changed_at(&self) -> Option<Instant>;

    /// Whether the ledger has all series and reference data that it ever showed to this handle.
    async fn has_catalog(&self) -> Result<bool, LedgerError>;

    /// What was confirmed to a node that registered through this handle.
    fn confirmed(&self, node: NodeId) -> Option<Confirmed>;

    /// Whether the ledger still has what it once confirmed to a node of whichever process. One
    /// that was held since has answered its users, and has nothing to answer for.
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
