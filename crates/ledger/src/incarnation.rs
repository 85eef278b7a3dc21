//! The continuous history of the ledger that a process knows: the ledger has an incarnation, as
//! Redis has one (F25).
//!
//! Never compared for order only: two branches of one ledger may draw the same number, or one a
//! later one, never the same nonce. The ledger's line shows what descends from what (F36).

use numerator_runtime::node::{NodeId, system_random};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The incarnation that users of a ledger agreed on; redrawn whenever its partitions are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incarnation {
    /// Rises with each that is drawn.
    pub(super) number: i64,
    /// Random.
    pub(super) nonce: Uuid,
}

impl Incarnation {
    /// The first of a ledger.
    pub(super) fn first() -> Self {
        Incarnation { number: 1, nonce: system_random() }
    }

    /// One that comes after these.
    pub(super) fn after(known: impl IntoIterator<Item = Incarnation>) -> Self {
        let highest = known.into_iter().map(|known| known.number).max();
        Incarnation { number: highest.unwrap_or(0) + 1, nonce: system_random() }
    }
}

/// The one incarnation to which several calls belong: the reads of one are true for the writes of
/// another. Each fails with `WentBack` in any other, and with `Unreachable` on a standby.
#[derive(Clone, Copy, Debug)]
pub struct OneIncarnation(pub(super) Incarnation);

/// The incarnation that a ledger shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The incarnation that was agreed on in it.
    pub(super) incarnation: Incarnation,
    /// Whether the ledger is in the life in which that was agreed.
    pub(super) is_present: bool,
    /// The last incarnation in an external witness, if the engine has one.
    pub(super) marked: Option<Incarnation>,
}

/// What a ledger has confirmed to a node, for a witness outside of it (F25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The node.
    pub node: NodeId,
    /// Its heartbeats.
    pub beat: i64,
    /// Batches that it journaled.
    pub batches: i64,
    /// Number of the ledger's incarnation in which it registered.
    pub incarnation: i64,
    /// The nonce that was drawn with it.
    pub nonce: Uuid,
    /// When the last of it was asked for, in microseconds of UTC.
    pub at_us: i64,
}
