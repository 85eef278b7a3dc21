//! Removing committed entries from the outbox, and by that way looking after a quiet epoch.
//!
//! An outbox is never trimmed past the first record that is not committed (F16). A worker without
//! requests asks once in a while whether its epoch still stands: what was lost meanwhile is healed
//! before the next request, and readiness shows the truth.

use std::time::Duration;

use tokio::time::Instant;

use super::epoch_lease::EpochLease;
use super::redis_path::{Course, leave};
use super::worker::{PartitionWorker, Suspicion};
use crate::counter::Trimmed;

/// The outbox is trimmed at the latest when so many flights are committed…
const TRIM_FLIGHTS: u64 = 64;
/// …or, in a quiet worker, so long after the last trim.
const TRIM_PERIOD: Duration = Duration::from_millis(100);
/// How often a quiet worker with nothing to trim looks after its epoch.
const PATROL_PERIOD: Duration = Duration::from_secs(1);

impl PartitionWorker {
    /// Whether enough is committed, or it is long enough since the last look.
    pub(super) fn trim_is_due(&self, lease: &EpochLease) -> bool {
        let behind = self.progress.borrow().saturating_sub(lease.trimmed);
        let quiet = self.waiting.is_empty() && self.next_trim(lease) <= Instant::now();
        behind >= TRIM_FLIGHTS || quiet
    }

    /// When a quiet worker should trim or look.
    pub(super) fn next_trim(&self, lease: &EpochLease) -> Instant {
        let behind = *self.progress.borrow() > lease.trimmed;
        lease.trimmed_at + if behind { TRIM_PERIOD } else { PATROL_PERIOD }
    }

    /// Removes committed entries from this node's outbox.
    pub(super) async fn trim(&mut self, lease: &mut EpochLease) -> Course {
        let Some(redis) = self.context.redis.clone() else { return Course::Stay };
        let upto = *self.progress.borrow();
        let guard = lease.guard(0);
        lease.trimmed_at = Instant::now();
        let confirmed = self.context.ledger.confirmed(lease.node);
        let confirmed =
            confirmed.and_then(|said| serde_json::to_string(&said).ok()).unwrap_or_default();
        match redis.trim(&self.context.keys, &guard, upto, &confirmed).await {
            Ok(Trimmed::Removed(_)) => {
                lease.trimmed = upto;
                self.well();
                Course::Stay
            }
            Ok(Trimmed::Fenced) => leave(lease, "fenced while trimming the outbox".into()),
            Ok(Trimmed::Barred) => Course::Leave(Suspicion::barred(lease.at)),
            Err(error) => self.without_redis(lease, lease.trimmed_at, &error).await,
        }
    }
}
