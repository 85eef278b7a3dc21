//! The messages between the processes of a ledger that went back, sent through it, so that it may
//! continue automatically (F25).
//!
//! Data only: who may send them, and what follows, is the statements' business.

use numerator_runtime::node::NodeId;

use super::At;

/// The report of a process that issues nothing any more and has repeated what it remembers.
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

/// The knowledge outside the ledger that went back.
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
    /// No inquest is open: an operator decides, or it is over.
    NoCheck,
    /// Nodes that have not reported, and those that do not remember enough. While one of them is
    /// gone for good, an operator decides.
    Waits {
        /// Not reported yet.
        missing: Vec<NodeId>,
        /// Reported, and not enough.
        incomplete: Vec<NodeId>,
    },
    /// All partitions are open again.
    Agreed,
}
