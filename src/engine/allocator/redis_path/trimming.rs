//! Removes committed entries from the outbox, and thereby checks a quiet epoch.
//!
//! An outbox is never trimmed past the first record that is not committed (F16). A worker without
//! requests asks once in a while whether its epoch is still open: what was lost meanwhile is healed
//! before the next request, and readiness shows the truth.

use std::time::Duration;

use tokio::time::Instant;

use super::{EpochLease, Outcome};
use crate::engine::allocator::intake::Intake;
use crate::redis::Trimmed;

/// The outbox is trimmed at the latest when so many flights are committed…
const TRIM_FLIGHTS: u64 = 64;
/// …or, in a quiet worker, so long after the last trim.
const TRIM_PERIOD: Duration = Duration::from_millis(100);
/// How often a quiet worker with nothing to trim looks after its epoch.
const PATROL_PERIOD: Duration = Duration::from_secs(1);

impl EpochLease {
    /// Whether enough is committed, or it is long enough since the last poll.
    pub(super) fn trim_is_due(&self, intake: &Intake) -> bool {
        let behind = intake.handed_out.committed().saturating_sub(self.trimmed);
        let quiet = intake.waiting() == 0 && self.next_trim(intake) <= Instant::now();
        behind >= TRIM_FLIGHTS || quiet
    }

    /// When a quiet worker should trim or look.
    pub(crate) fn next_trim(&self, intake: &Intake) -> Instant {
        let behind = intake.handed_out.committed() > self.trimmed;
        self.trimmed_at + if behind { TRIM_PERIOD } else { PATROL_PERIOD }
    }

    /// Removes committed entries from this node's outbox.
    pub(super) async fn trim(&mut self, intake: &mut Intake) -> Outcome {
        let upto = intake.handed_out.committed();
        let guard = self.guard(0);
        self.trimmed_at = Instant::now();
        let confirmed = self.context.ledger.confirmed(self.node);
        let confirmed =
            confirmed.and_then(|said| serde_json::to_string(&said).ok()).unwrap_or_default();
        match self.redis.trim(&self.context.keys, &guard, upto, &confirmed).await {
            Ok(Trimmed::Removed(_)) => {
                self.trimmed = upto;
                intake.well();
                Ok(())
            }
            Ok(Trimmed::Fenced) => Err(self.doubt("fenced while trimming the outbox".into())),
            Ok(Trimmed::Barred) => Err(self.barred()),
            Err(error) => self.without_redis(intake, self.trimmed_at, &error).await,
        }
    }
}
