//! Epochs of which this process has decided that they end, without anything being amiss: so that
//! counters of periods past become those of an older epoch, which may go.
//!
//! A wish, and only of this process: its partition worker leads the recovery like any other, and an
//! epoch that has ended already is nobody's wish any more.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ledger::At;

/// The epoch that is to end, by partition; 0: none is.
#[derive(Debug)]
pub struct PlannedEnds(Vec<AtomicU64>);

impl PlannedEnds {
    /// None, of so many partitions.
    #[must_use]
    pub fn none(partitions: u32) -> Self {
        PlannedEnds((0..partitions).map(|_| AtomicU64::new(0)).collect())
    }

    /// Has the partition worker end an epoch.
    pub(crate) fn plan(&self, at: At) {
        self.of(at).store(at.epoch, Ordering::Release);
    }

    /// Whether an epoch is to end.
    pub(crate) fn is_planned(&self, at: At) -> bool {
        at.epoch > 0 && self.of(at).load(Ordering::Acquire) == at.epoch
    }

    /// Takes the wish over: it is tried once, and a later look decides anew.
    pub(crate) fn take(&self, at: At) -> bool {
        let (of, order) = (self.of(at), Ordering::AcqRel);
        at.epoch > 0 && of.compare_exchange(at.epoch, 0, order, Ordering::Acquire).is_ok()
    }

    fn of(&self, at: At) -> &AtomicU64 {
        &self.0[at.partition as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_for_one_epoch_and_taken_once() {
        let ends = PlannedEnds::none(2);
        let at = |partition, epoch| At { partition, epoch };
        assert!(!ends.is_planned(at(1, 0)) && !ends.take(at(1, 0)), "nothing is wished");
        ends.plan(at(1, 7));
        assert!(ends.is_planned(at(1, 7)));
        assert!(!ends.is_planned(at(1, 8)) && !ends.is_planned(at(0, 7)));
        assert!(!ends.take(at(1, 8)) && ends.take(at(1, 7)) && !ends.take(at(1, 7)));
        assert!(!ends.is_planned(at(1, 7)));
    }
}
