//! What the ledger has confirmed to the nodes of this process: how often they beat, how many
//! batches they journaled. A ledger that shows less has gone back (F9).
//!
//! Only rises. A node that was forgotten once stays forgotten: its process takes a new identity.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::node::NodeId;

/// What is known of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Its heartbeat counter.
    pub(super) beat: i64,
    /// Batches that it journaled.
    pub(super) batches: i64,
}

impl Marks {
    /// Whether nothing of `confirmed` is missing here.
    pub(super) fn reach(self, confirmed: Marks) -> bool {
        self.beat >= confirmed.beat && self.batches >= confirmed.batches
    }
}

/// The marks of every node that registered through this handle: one per identity that the process
/// took, few in its life.
#[derive(Debug, Default)]
pub(super) struct Witness(Mutex<HashMap<NodeId, Marks>>);

impl Witness {
    /// What was confirmed to a node; `None` where it did not register through this handle. Read it
    /// before the statement that it is compared with: what is confirmed meanwhile does not count.
    pub(super) fn of(&self, node: NodeId) -> Option<Marks> {
        self.marks().get(&node).copied()
    }

    /// Notes what the ledger has confirmed to a node.
    pub(super) fn confirm(&self, node: NodeId, confirmed: Marks) {
        let mut marks = self.marks();
        let known = marks.entry(node).or_default();
        known.beat = known.beat.max(confirmed.beat);
        known.batches = known.batches.max(confirmed.batches);
    }

    fn marks(&self) -> std::sync::MutexGuard<'_, HashMap<NodeId, Marks>> {
        self.0.lock().expect("no holder of this lock panics")
    }
}
