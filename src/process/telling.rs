//! What this process tells an incarnation of the ledger in which it has not reported, before it
//! does anything else there (F35).
//!
//! It makes no difference whether it saw the hold: a process that slept through hold and release is
//! one that reports late. Its records are journaled again by the names of their counters, and
//! counters go on above what it took. Only then it takes an identity there, without which it
//! neither takes, seeds, joins nor answers. What another allocation has meanwhile is a collision.

use std::collections::BTreeMap;
use std::sync::Mutex;

use uuid::Uuid;

use super::{Context, Membership};
use crate::journal::Told;
use crate::ledger::{At, LedgerError, Owner, PartitionState};
use crate::node::NodeId;

/// What was told.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// In which incarnation, and what came of it.
    told: Mutex<Option<(Uuid, Told)>>,
    /// Epochs of Redis that were open when something was told that Redis did not count, by
    /// partition.
    outdated: Mutex<BTreeMap<u32, u64>>,
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
        if told.waiting > 0 {
            return Err(away("somebody holds counters of what is to be told"));
        }
        let mut raised = context.ledger.tell_takes(node).await?;
        raised.extend(&told.partitions);
        if !raised.is_empty() {
            // Redis counts on below it, and knows none of its documents.
            let rows = context.ledger.partitions().await?;
            let mut outdated = self.telling.outdated.lock().expect("no holder panics");
            for row in rows.iter().filter(|row| raised.contains(&row.partition)) {
                let is_of_redis = matches!(row.owner, Owner::Redis { .. });
                if is_of_redis && row.state == PartitionState::Open {
                    outdated.insert(row.partition, row.epoch);
                }
            }
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
        let outdated = self.telling.outdated.lock().expect("no holder of this lock panics");
        outdated.get(&at.partition) == Some(&at.epoch)
    }
}
