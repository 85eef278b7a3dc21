//! The acknowledgements that a worker still has to give: one for each epoch of Redis in which its
//! process took part (F5). Knows no ledger; the worker asks it what to report there.

use crate::node::NodeId;

/// Epochs in which this process took part, and under which identity: each waits for an
/// acknowledgement when it ends.
#[derive(Debug, Default)]
pub(super) struct PendingAcknowledgements {
    joined: Vec<(u64, NodeId)>,
    /// Joining had no answer: the ledger may have entered it, and it sent no flight there.
    unsure: Option<(u64, NodeId)>,
}

impl PendingAcknowledgements {
    /// Takes part in an epoch.
    pub(super) fn join(&mut self, epoch: u64, node: NodeId) {
        self.unsure = None;
        if !self.joined.contains(&(epoch, node)) {
            self.joined.push((epoch, node));
        }
    }

    /// May have been entered in an epoch.
    pub(super) fn may_join(&mut self, epoch: u64, node: NodeId) {
        // The identity that took part first answers for what it handed out, not as one that never
        // sent a flight.
        if !self.joined.contains(&(epoch, node)) {
            self.unsure = Some((epoch, node));
        }
    }

    /// Epochs before this one need no acknowledgement any more.
    pub(super) fn forget_before(&mut self, epoch: u64) {
        self.joined.retain(|joined| joined.0 >= epoch);
        self.unsure.take_if(|unsure| unsure.0 < epoch);
    }

    /// The ledger knows that an uncertain participant never sent a flight.
    pub(super) fn clear_unsure(&mut self) {
        self.unsure = None;
    }

    /// Under which identities this process took part in an epoch.
    #[must_use]
    pub(super) fn joined_in(&self, epoch: u64) -> Vec<NodeId> {
        let of_epoch = self.joined.iter().filter(|joined| joined.0 == epoch);
        of_epoch.map(|joined| joined.1).collect()
    }

    /// Under which identity it may have been entered in an epoch in which it never sent a flight.
    #[must_use]
    pub(super) fn unsure_in(&self, epoch: u64) -> Option<NodeId> {
        self.unsure.filter(|unsure| unsure.0 == epoch).map(|unsure| unsure.1)
    }

    /// Whether no epoch in which it took part waits for it.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.joined.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_part_is_not_unsure_of_it_and_who_learns_that_it_joined_neither() {
        let (mut pending, node, other) =
            (PendingAcknowledgements::default(), NodeId::random(), NodeId::random());
        pending.may_join(3, node);
        assert_eq!((pending.unsure_in(3), pending.unsure_in(2)), (Some(node), None));
        pending.join(3, node);
        pending.may_join(3, node);
        assert_eq!((pending.unsure_in(3), pending.joined_in(3)), (None, vec![node]));
        pending.may_join(4, other);
        pending.forget_before(4);
        assert!(pending.is_empty() && pending.unsure_in(4) == Some(other));
        pending.forget_before(5);
        assert_eq!(pending.unsure_in(4), None);
    }
}
