//! What the ledger knows of `{SNOWFLAKE}` ids: the holders of node numbers, and up to which time.

use std::time::Duration;

use numerator_runtime::node::NodeId;

/// The longest time by which a lease may reach beyond the holder's clock.
pub const SNOWFLAKE_LEASE_MAX: Duration = Duration::from_secs(60);

/// A node number and the times that its holder may put into ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnowflakeLease {
    /// The number, below `NODE_NUMBERS`.
    pub node_number: u16,
    /// The node that holds it.
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
    /// The node that holds it.
    pub holder: NodeId,
    /// The first millisecond that the holder may not use, of UTC since 1970.
    pub until_ms: i64,
}
