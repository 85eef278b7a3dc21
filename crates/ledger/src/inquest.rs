//! What the processes of a ledger that went back say to each other through it, so that it may go on
//! by itself (F25).
//!
//! Words only: who may say them, and what follows, is the statements' business.

use numerator_runtime::node::NodeId;

use super::At;

/// What a process says once it hands nothing out any more and has reported again what it remembers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its identity of now.
    pub node: NodeId,
    /// Every identity that it took.
    pub identities: Vec<NodeId>,
    /// Whether it has reported again all that was confirmed to it and may be forgotten here.
    pub is_complete: bool,
    /// What it has seen.
    pub known: Known,
}

/// What somebody knows beside the ledger that went back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Epochs, the highest of each partition.
    pub epochs: Vec<At>,
    /// Nodes.
    pub nodes: Vec<NodeId>,
}

/// How far an inquest is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Nobody asks: an operator decides, or it is over.
    NoInquest,
    /// Nodes that have not reported, and those that do not remember enough. While one of them is
    /// gone for good, an operator decides.
    Waits {
        /// Not heard of yet.
        missing: Vec<NodeId>,
        /// Heard of, and not enough.
        incomplete: Vec<NodeId>,
    },
    /// All partitions are open again.
    Agreed,
}
