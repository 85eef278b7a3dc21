//! What this process tells an incarnation of the ledger in which it has not reported, before it
//! does anything else there (F35).
//!
//! It makes no difference whether it saw the hold: a process that slept through hold and release is
//! one that reports late. Its records are journaled again by the names of their counters, and
//! counters go on above what it took. Only then it takes an identity there, without which it
//! neither takes, seeds, joins nor answers. What another allocation has meanwhile is a collision.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use uuid::Uuid;

use super::{Context, Membership};
use crate::engine::journal::Told;
use crate::ledger::{At, LedgerError, Owner, Partition, PartitionState};
use crate::node::NodeId;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// In which incarnation, and what came of it.
    told: Mutex<Option<(Uuid, Told)>>,
    /// Partitions of which something was told that Redis may not have counted, until it is known
    /// which epoch was open then. Kept over tries that fail: the next one finds it told.
    owed: Mutex<BTreeSet<u32>>,
    /// Epochs of Redis that were open when something was told that Redis did not count, by
    /// partition.
    outdated: Mutex<BTreeMap<u32, u64>>,
}

impl Telling {
    /// Something was told of these partitions that Redis may not have counted.
    fn owe(&self, partitions: impl IntoIterator<Item = u32>) {
        self.owed.lock().expect("no holder of this lock panics").extend(partitions);
    }

    /// Whether the epochs of some are not noted.
    fn owes(&self) -> bool {
        !self.owed.lock().expect("no holder of this lock panics").is_empty()
    }

    /// Notes the epochs of Redis that are open, as they were read after that was told.
    fn note_outdated(&self, rows: &[Partition]) {
        let owed = std::mem::take(&mut *self.owed.lock().expect("no holder of this lock panics"));
        let mut outdated = self.outdated.lock().expect("no holder of this lock panics");
        for row in rows.iter().filter(|row| owed.contains(&row.partition)) {
            let is_of_redis = matches!(row.owner, Owner::Redis { .. });
            if is_of_redis && row.state == PartitionState::Open {
                outdated.insert(row.partition, row.epoch);
            }
        }
    }

    fn is_outdated(&self, at: At) -> bool {
        let outdated = self.outdated.lock().expect("no holder of this lock panics");
        outdated.get(&at.partition) == Some(&at.epoch)
    }
}

impl Membership {
    /// Tells the incarnation that was agreed on last what is remembered of the ones before. Safe to
    /// repeat.
    ///
    /// # Errors
    /// When the ledger does not answer, or somebody holds a counter of what is told: to be called
    /// again, and nothing done in that incarnation before.
    pub(super) async fn tell(&self, context: &Context, node: NodeId) -> Result<Told, LedgerError> {
        let away = |cause: &str| LedgerError::Unreachable {
            cause: cause.to_owned(),
            maybe_written: false,
        };
        let told = context.journal.tell_again().await.map_err(|_| away("the journal has ended"))?;
        // Before anything can fail.
        self.telling.owe(told.partitions.iter().copied());
        if told.waiting > 0 {
            return Err(away("somebody holds counters of what is to be told"));
        }
        self.telling.owe(context.ledger.tell_takes(node).await?);
        if self.telling.owes() {
            // Redis counts on below it, and knows none of its documents.
            self.telling.note_outdated(&context.ledger.partitions().await?);
        }
        Ok(told)
    }

    /// Notes that everything was told in the incarnation of this name.
    pub(super) fn note_told(&self, nonce: Uuid, told: Told) {
        *self.telling.told.lock().expect("no holder of this lock panics") = Some((nonce, told));
    }

    /// What came of telling it in that incarnation; `None` where that is not done.
    pub(super) fn told(&self, nonce: Uuid) -> Option<Told> {
        let told = self.telling.told.lock().expect("no holder of this lock panics");
        told.as_ref().filter(|(of, _)| *of == nonce).map(|(_, told)| told.clone())
    }

    /// Whether this epoch of Redis began below what was told since: it ends before this process
    /// takes part in it, and the next one asks the journal for documents.
    pub(crate) fn is_outdated(&self, at: At) -> bool {
        self.telling.is_outdated(at)
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

    /// Goal: a telling that fails half-way has told something all the same: the next one, to which
    /// all of it is known, still has the epoch end.
    #[test]
    fn what_a_telling_owes_stays_over_the_tries_that_fail() {
        let redis = || Owner::Redis { incarnation: "a".repeat(40) };
        let telling = Telling::default();
        telling.owe([0, 1, 2, 3]);
        // Counters are waited for, or the ledger does not say how its partitions stand. The next
        // telling raises nothing.
        telling.owe([]);
        assert!(telling.owes());
        telling.note_outdated(&[
            row(0, 7, PartitionState::Open, redis()),
            row(1, 7, PartitionState::Open, Owner::Database),
            row(2, 7, PartitionState::Held, redis()),
            row(3, 9, PartitionState::Open, redis()),
            row(4, 7, PartitionState::Open, redis()),
        ]);
        let outdated = |partition, epoch| telling.is_outdated(At { partition, epoch });
        assert_eq!(
            [0, 1, 2, 3, 4].map(|partition| outdated(partition, 7)),
            [true, false, false, false, false]
        );
        assert!(outdated(3, 9) && !telling.owes());
    }
}
