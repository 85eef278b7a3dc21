//! What the ledger knows of `{SNOWFLAKE}` ids: who holds which node number, and up to which time.

use std::time::Duration;

use async_trait::async_trait;
use numerator_base::node::NodeId;

use super::LedgerError;

/// The longest time by which a lease may reach beyond the holder's clock.
pub const SNOWFLAKE_LEASE_MAX: Duration = Duration::from_secs(60);

/// A node number and the times that its holder may put into ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnowflakeLease {
    /// The number, below `NODE_NUMBERS`.
    pub node_number: u16,
    /// Who holds it.
    pub holder: NodeId,
    /// The first millisecond that no earlier holder may have used, of UTC since 1970.
    pub from_ms: i64,
    /// The first millisecond that the holder may not use.
    pub until_ms: i64,
}

/// A node number that a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldNumber {
    /// The number, below `NODE_NUMBERS`.
    pub node_number: u16,
    /// Who holds it.
    pub holder: NodeId,
    /// The first millisecond that the holder may not use, of UTC since 1970.
    pub until_ms: i64,
}

/// Leases of node numbers (F23). What a call returns is committed; after an unknown outcome the
/// ledger may show a later `until_ms` than the holder knows, never an earlier one.
#[async_trait]
pub trait SnowflakeLedger: Send + Sync + 'static {
    /// Gives a node the free number that was used the longest time ago, from where its last holder
    /// ended (or `now_ms`, where that is later) and for so long; `None` while all are held. Not
    /// safe to repeat: after an unknown outcome a number stays held until the node has left.
    async fn lease_snowflakes(
        &self,
        node: NodeId,
        now_ms: i64,
        lease: Duration,
    ) -> Result<Option<SnowflakeLease>, LedgerError>;

    /// Moves the end of a lease to `until_ms`, never back; the lease as it is then, or `None` where
    /// the holder does not have it any more. Safe to repeat.
    async fn extend_snowflakes(
        &self,
        lease: &SnowflakeLease,
        until_ms: i64,
    ) -> Result<Option<SnowflakeLease>, LedgerError>;

    /// The node numbers that nodes hold now, by number: those whose node has neither left nor was
    /// adopted.
    async fn held_snowflakes(&self) -> Result<Vec<HeldNumber>, LedgerError>;

    /// Ends a lease at `until_ms`, the first millisecond that was not used: the next holder need
    /// not wait for what nobody used. Does nothing where the holder does not have it any more.
    async fn return_snowflakes(
        &self,
        lease: &SnowflakeLease,
        until_ms: i64,
    ) -> Result<(), LedgerError>;
}
