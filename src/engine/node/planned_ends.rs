//! Epochs that this process wants to end without a fault: so that counters of past periods become
//! those of an older epoch, which may be removed, or so that ceilings far above their counters
//! disappear.
//!
//! A wish, and only of this process: its partition worker leads the recovery like any other, and
//! the wish is void once the epoch has ended.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ledger::At;

/// Why an epoch ends without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedEnd {
    /// It has very many counters.
    Counters,
    /// A ceiling is far above its counter.
    Ceilings,
}

impl PlannedEnd {
    const ALL: [PlannedEnd; 2] = [PlannedEnd::Counters, PlannedEnd::Ceilings];

    /// As the record names it.
    pub(crate) fn cause(self) -> &'static str {
        match self {
            PlannedEnd::Counters => "planned: many counters of periods past are in redis",
            PlannedEnd::Ceilings => "planned: ceilings are far above their counters",
        }
    }

    /// The wish as a number; 0 is none.
    fn of(self, at: At) -> u64 {
        at.epoch * 2 + self as u64
    }
}

/// The epoch that is to end and why, by partition.
#[derive(Debug)]
pub struct PlannedEnds(Vec<AtomicU64>);

impl PlannedEnds {
    /// None, of so many partitions.
    #[must_use]
    pub fn none(partitions: u32) -> Self {
        PlannedEnds((0..partitions).map(|_| AtomicU64::new(0)).collect())
    }

    /// Has the partition worker end an epoch.
    pub(crate) fn plan(&self, at: At, why: PlannedEnd) {
        self.of(at).store(why.of(at), Ordering::Release);
    }

    /// Whether an epoch is to end.
    pub(crate) fn is_planned(&self, at: At) -> bool {
        at.epoch > 0 && self.of(at).load(Ordering::Acquire) / 2 == at.epoch
    }

    /// Takes the wish over: it is tried once, and a later poll decides anew.
    pub(crate) fn take(&self, at: At) -> Option<PlannedEnd> {
        let (of, order) = (self.of(at), Ordering::AcqRel);
        let is_taken = |why: &PlannedEnd| {
            at.epoch > 0 && of.compare_exchange(why.of(at), 0, order, Ordering::Acquire).is_ok()
        };
        PlannedEnd::ALL.into_iter().find(is_taken)
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
        assert!(!ends.is_planned(at(1, 0)) && ends.take(at(1, 0)).is_none(), "nothing is wished");
        for why in PlannedEnd::ALL {
            ends.plan(at(1, 7), why);
            assert!(ends.is_planned(at(1, 7)));
            assert!(!ends.is_planned(at(1, 8)) && !ends.is_planned(at(0, 7)));
            assert_eq!([8, 7, 7].map(|epoch| ends.take(at(1, epoch))), [None, Some(why), None]);
            assert!(!ends.is_planned(at(1, 7)));
        }
    }
}
