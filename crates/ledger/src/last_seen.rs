//! Last-seen marks: what the ledger has confirmed to the nodes of this process. These are their
//! counts of heartbeats and of journaled batches, what was taken since ([`takes`]), and the
//! incarnation in which they registered. A ledger that shows less, or another incarnation, has gone
//! back (F9, F25, F34).
//!
//! Only rises. A node that was forgotten once stays forgotten: its process takes a new identity.

pub(super) mod takes;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard};

use numerator_runtime::node::NodeId;
use tokio::time::Instant;

use super::LedgerError;
use super::incarnation::{Confirmed, Incarnation};
use takes::ConfirmedTakes;

/// The marks of one node.
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

/// What was confirmed to one identity of this process.
#[derive(Clone, Copy, Debug)]
struct Confirmation {
    marks: Marks,
    /// When the last of them was asked for: the answer may be read a sleep later.
    at_us: i64,
    /// The incarnation in which it registered: it acts in no other.
    incarnation: Incarnation,
    /// Whether the ledger showed that it forgot more than these marks show.
    is_forgotten: bool,
}

/// The marks of every node that registered through this handle: one per identity that the process
/// took, few in its life.
#[derive(Debug, Default)]
pub(super) struct LastSeen {
    nodes: Mutex<HashMap<NodeId, Confirmation>>,
    takes: Mutex<ConfirmedTakes>,
    /// What this handle agreed on last: for callers that act as no node of their own.
    agreed: Mutex<Option<Incarnation>>,
    /// When something was last committed that no process reports again.
    changed_at: Mutex<Option<Instant>>,
    /// The highest stamps of series, of reference data and of tokens that were shown.
    shown: [AtomicI64; 3],
}

impl LastSeen {
    /// The confirmations to a node; `None` where it did not register through this handle. Read it
    /// before the statement that it is compared with: later confirmations do not count.
    pub(super) fn of(&self, node: NodeId) -> Option<Marks> {
        self.nodes().get(&node).map(|known| known.marks)
    }

    /// The same for a witness outside of the ledger.
    pub(super) fn confirmed(&self, node: NodeId) -> Option<Confirmed> {
        let Confirmation { marks, at_us, incarnation, .. } = *self.nodes().get(&node)?;
        let Marks { beat, batches } = marks;
        let Incarnation { number, nonce } = incarnation;
        Some(Confirmed { node, beat, batches, incarnation: number, nonce, at_us })
    }

    /// Notes that a node was registered, when that was asked for, and in which incarnation.
    pub(super) fn register(&self, node: NodeId, incarnation: Incarnation, at_us: i64) {
        let marks = Marks::default();
        let new = Confirmation { marks, at_us, incarnation, is_forgotten: false };
        self.nodes().entry(node).or_insert(new);
    }

    /// The incarnation in which a node registered through this handle.
    pub(super) fn registered_in(&self, node: NodeId) -> Option<Incarnation> {
        self.nodes().get(&node).map(|known| known.incarnation)
    }

    /// Notes a confirmation of the ledger to a node that registered through this handle, and when
    /// that was asked for.
    pub(super) fn confirm(&self, node: NodeId, confirmed: Marks, asked_at_us: i64) {
        let mut nodes = self.nodes();
        let Some(Confirmation { marks, at_us, .. }) = nodes.get_mut(&node) else { return };
        *at_us = asked_at_us.max(*at_us);
        marks.beat = marks.beat.max(confirmed.beat);
        marks.batches = marks.batches.max(confirmed.batches);
    }

    /// Notes that the ledger has forgotten its confirmations to a node, which no longer acts.
    pub(super) fn forget(&self, node: NodeId) {
        if let Some(known) = self.nodes().get_mut(&node) {
            known.is_forgotten = true;
        }
    }

    /// The outcome of what a node did; where the ledger was found to have gone back, the next
    /// heartbeat reports the loss even if no mark is missing.
    pub(super) fn or_forget<T>(
        &self,
        node: NodeId,
        outcome: Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        if matches!(outcome, Err(LedgerError::WentBack(_))) {
            self.forget(node);
        }
        outcome
    }

    /// Forgets every node of the incarnation that was last agreed on: what was asked for none of
    /// them shows the loss.
    pub(super) fn forget_agreed(&self) {
        let Some(agreed) = self.agreed() else { return };
        for known in self.nodes().values_mut() {
            known.is_forgotten |= known.incarnation == agreed;
        }
    }

    /// The database path's confirmations to this process since its last confirmed heartbeat.
    pub(super) fn takes(&self) -> MutexGuard<'_, ConfirmedTakes> {
        self.takes.lock().expect("no holder of this lock panics")
    }

    /// Notes what was agreed on: former identities act no more. What was taken before is kept until
    /// the ledger has received it (F35).
    pub(super) fn agree(&self, incarnation: Incarnation) {
        *self.agreed.lock().expect("no holder of this lock panics") = Some(incarnation);
    }

    /// What was confirmed to the nodes that registered in an incarnation, and when. A node whose
    /// ledger showed that it forgot more than these marks has a heartbeat that is higher by one.
    pub(super) fn confirmed_in(&self, incarnation: Incarnation) -> Vec<(NodeId, Marks, i64)> {
        let nodes = self.nodes();
        let of = nodes.iter().filter(|(_, known)| known.incarnation == incarnation);
        of.map(|(node, known)| {
            let more = i64::from(known.is_forgotten);
            let Marks { beat, batches } = known.marks;
            (*node, Marks { beat: beat + more, batches }, known.at_us)
        })
        .collect()
    }

    /// The incarnation that was last agreed on.
    pub(super) fn agreed(&self) -> Option<Incarnation> {
        *self.agreed.lock().expect("no holder of this lock panics")
    }

    /// The incarnation that must be in force for a transaction of a node; without a node of this
    /// handle the one that was last agreed on.
    ///
    /// # Errors
    /// `WentBack` where none was agreed on, or the node is forgotten.
    pub(super) fn required(&self, node: Option<NodeId>) -> Result<Incarnation, LedgerError> {
        let went_back = |why: &str| LedgerError::WentBack(why.into());
        let known = node.and_then(|node| self.nodes().get(&node).copied());
        if known.is_some_and(|known| known.is_forgotten) {
            return Err(went_back("it has forgotten what it confirmed to the node"));
        }
        let of_node = known.map(|known| known.incarnation);
        of_node.or_else(|| self.agreed()).ok_or_else(|| went_back("nothing was agreed on"))
    }

    /// Notes that something was committed that no process reports again.
    pub(super) fn note_change(&self) {
        *self.changed_at.lock().expect("no holder of this lock panics") = Some(Instant::now());
    }

    /// When that was, last.
    pub(super) fn changed_at(&self) -> Option<Instant> {
        *self.changed_at.lock().expect("no holder of this lock panics")
    }

    /// Notes a stamp of the series (0), of the reference data (1) or of the tokens (2).
    pub(super) fn show(&self, place: usize, stamp: i64) {
        self.shown[place].fetch_max(stamp, Ordering::Relaxed);
    }

    /// The highest of each.
    pub(super) fn shown(&self) -> [i64; 3] {
        [0, 1, 2].map(|place| self.shown[place].load(Ordering::Relaxed))
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<NodeId, Confirmation>> {
        self.nodes.lock().expect("no holder of this lock panics")
    }
}
