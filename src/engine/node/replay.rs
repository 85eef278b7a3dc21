//! The state of this process's replay into an incarnation of the ledger in which it has not
//! reported, which it does before anything else there (F35).
//!
//! Whether it saw the hold makes no difference: a process that slept through hold and release
//! reports late. Its records are journaled again by the names of their counters, and counters
//! continue above what it took. Only then it takes an identity there, without which it neither
//! takes, seeds, joins nor answers. What another allocation has meanwhile is a collision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use uuid::Uuid;

use crate::engine::journal::Replayed;
use crate::ledger::{At, Owner, Partition, PartitionState};

/// The state of the replays.
#[derive(Debug, Default)]
pub(super) struct Replay {
    /// In which incarnation, and its result.
    pub(super) replayed: Mutex<Option<(Uuid, Replayed)>>,
    /// Partitions with replayed records that Redis may not have counted, until it is known which
    /// epoch was open then. Kept over attempts that fail: the next one finds the records replayed.
    owed: Mutex<BTreeSet<u32>>,
    /// Epochs of Redis that were open when records were replayed that Redis did not count, by
    /// partition.
    outdated: Mutex<BTreeMap<u32, u64>>,
}

impl Replay {
    /// Records were replayed in these partitions that Redis may not have counted.
    pub(super) fn owe(&self, partitions: impl IntoIterator<Item = u32>) {
        self.owed.lock().expect("no holder of this lock panics").extend(partitions);
    }

    /// Whether the epochs of some are not noted.
    pub(super) fn owes(&self) -> bool {
        !self.owed.lock().expect("no holder of this lock panics").is_empty()
    }

    /// Notes the open epochs of Redis, as they were read after the replay.
    pub(super) fn note_outdated(&self, rows: &[Partition]) {
        let owed = std::mem::take(&mut *self.owed.lock().expect("no holder of this lock panics"));
        let mut outdated = self.outdated.lock().expect("no holder of this lock panics");
        for row in rows.iter().filter(|row| owed.contains(&row.partition)) {
            let is_of_redis = matches!(row.owner, Owner::Redis { .. });
            if is_of_redis && row.state == PartitionState::Open {
                outdated.insert(row.partition, row.epoch);
            }
        }
    }

    pub(super) fn is_outdated(&self, at: At) -> bool {
        let outdated = self.outdated.lock().expect("no holder of this lock panics");
        outdated.get(&at.partition) == Some(&at.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Wanted;

    fn row(partition: u32, epoch: u64, state: PartitionState, owner: Owner) -> Partition {
        Partition {
            partition,
            epoch,
            state,
            owner,
            last_closing: None,
            last_ceiling_epoch: 0,
            lifted_epoch: 0,
            actor: None,
            cause: String::new(),
            wanted: Wanted::Auto,
            is_lent: false,
            lender: None,
            tall_epoch: 0,
            seen_epoch: 0,
            vouched_epoch: 0,
            changed_at_us: 0,
        }
    }

    /// Goal: a replay that fails half-way has written something all the same: the next one, which
    /// finds all of it known, still has the epoch end.
    #[test]
    fn what_a_telling_owes_stays_over_the_tries_that_fail() {
        let redis = || Owner::Redis { incarnation: "a".repeat(40) };
        let replay = Replay::default();
        replay.owe([0, 1, 2, 3]);
        // Counters are waited for, or the ledger does not show the state of its partitions. The
        // next replay raises nothing.
        replay.owe([]);
        assert!(replay.owes());
        replay.note_outdated(&[
            row(0, 7, PartitionState::Open, redis()),
            row(1, 7, PartitionState::Open, Owner::Database),
            row(2, 7, PartitionState::Held, redis()),
            row(3, 9, PartitionState::Open, redis()),
            row(4, 7, PartitionState::Open, redis()),
        ]);
        let outdated = |partition, epoch| replay.is_outdated(At { partition, epoch });
        assert_eq!(
            [0, 1, 2, 3, 4].map(|partition| outdated(partition, 7)),
            [true, false, false, false, false]
        );
        assert!(outdated(3, 9) && !replay.owes());
    }
}
