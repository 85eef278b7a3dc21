//! Removing committed entries from the outbox, and by that way looking after a quiet epoch.
//!
//! An outbox is never trimmed past the first record that is not committed (F16). A lane without
//! requests asks once in a while whether its epoch still stands: what was lost meanwhile is healed
//! before the next request, and readiness tells the truth.

use std::time::Duration;

use tokio::time::Instant;

use super::lane::{Lane, Suspicion};
use super::redis_path::{Course, leave};
use super::seat::Seat;
use crate::counter::Trimmed;

/// The outbox is trimmed at the latest when so many flights are committed…
const TRIM_FLIGHTS: u64 = 64;
/// …or, in a quiet lane, so long after the last trim.
const TRIM_PERIOD: Duration = Duration::from_millis(100);
/// How often a quiet lane with nothing to trim looks after its epoch.
const PATROL_PERIOD: Duration = Duration::from_secs(1);

impl Lane {
    /// Whether enough is committed, or it is long enough since the last look.
    pub(super) fn trim_is_due(&self, seat: &Seat) -> bool {
        let behind = self.progress.borrow().saturating_sub(seat.trimmed);
        let quiet = self.waiting.is_empty() && self.next_trim(seat) <= Instant::now();
        behind >= TRIM_FLIGHTS || quiet
    }

    /// When a quiet lane should trim or look.
    pub(super) fn next_trim(&self, seat: &Seat) -> Instant {
        let behind = *self.progress.borrow() > seat.trimmed;
        seat.trimmed_at + if behind { TRIM_PERIOD } else { PATROL_PERIOD }
    }

    /// Removes committed entries from this node's outbox.
    pub(super) async fn trim(&mut self, seat: &mut Seat) -> Course {
        let Some(redis) = self.context.redis.clone() else { return Course::Stay };
        let upto = *self.progress.borrow();
        let guard = seat.guard(0);
        seat.trimmed_at = Instant::now();
        let confirmed = self.context.ledger.confirmed(seat.node);
        let confirmed =
            confirmed.and_then(|said| serde_json::to_string(&said).ok()).unwrap_or_default();
        match redis.trim(&self.context.keys, &guard, upto, &confirmed).await {
            Ok(Trimmed::Removed(_)) => {
                seat.trimmed = upto;
                self.well();
                Course::Stay
            }
            Ok(Trimmed::Fenced) => leave(seat, "fenced while trimming the outbox".into()),
            Ok(Trimmed::Barred) => Course::Leave(Suspicion::barred(seat.at)),
            Err(error) => self.without_redis(seat, seat.trimmed_at, &error).await,
        }
    }
}
