//! Looks for ceilings far above their counters, which a burst has left there: should a process and
//! the data of Redis be lost together, all up to the ceiling would be a gap.
//!
//! Lowers none: what Redis gives out by a ceiling is out of the ledger's reach while the epoch
//! lasts. The epoch ends by plan instead, exact like any recovery that no fault forces, and each
//! counter gets a new ceiling at its first touch in the next one. Untouched ones are resolved, so
//! that they have none. The process that has run the longest does the check. (A service that finds
//! such an epoch left by all others ends it as it joins: `allocator/joining.rs`.)

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::node::{Context, PlannedEnd};
use crate::ledger::{At, Counter, LedgerError, Owner, Partition, PartitionState, TALL_ROOM_MIN};
use crate::task::{Task, Ticks};

/// Time between two checks whether this process is to check ceilings.
const PERIOD: Duration = Duration::from_secs(1);

/// Longest time between two polls of ceilings; else twice `ceiling.horizon`, by which it is judged
/// what a counter needs.
const POLLS_MAX: Duration = Duration::from_secs(600);

/// A ceiling is tall that leaves room for so many times `ceiling.step_min`,
const TALL_STEPS: u64 = 100;

/// and for so many times what the counter took in a `ceiling.horizon` of late.
const TALL_HORIZONS: f64 = 4.0;

/// Within this time no epoch ends by plan where nearly `recovery.per_minute_max` others have ended.
const MINUTE: Duration = Duration::from_secs(60);

/// Checks as long as the process runs.
pub(crate) fn watch_ceilings(context: Arc<Context>) -> Task {
    Task::start("ceilings", move |stop| async move {
        let period = (context.settings.ceiling_horizon * 2).clamp(PERIOD, POLLS_MAX);
        let mut ticks = Ticks::every(PERIOD, stop);
        let mut watch = CeilingWatch { context, before: HashMap::new(), looked_at: None };
        while ticks.next().await {
            if watch.looked_at.is_some_and(|at| at.elapsed() < period) {
                continue;
            }
            if let Err(error) = watch.poll().await {
                tracing::debug!(%error, "ceilings are looked at another time");
            }
        }
    })
}

struct CeilingWatch {
    context: Arc<Context>,
    /// Of tall counters at the last poll: epoch and value.
    before: HashMap<i64, (u64, i64)>,
    /// When that was; `None`: this process has not polled yet.
    looked_at: Option<Instant>,
}

impl CeilingWatch {
    async fn poll(&mut self) -> Result<(), LedgerError> {
        let rows = self.context.membership.news().borrow().clone();
        let served = |row: &&Partition| matches!(row.owner, Owner::Redis { .. });
        let healthy =
            |row: &Partition| self.context.redis_health.healthy_for(row.partition).is_some();
        // A process that does not see Redis would give the partition to the database.
        if !rows.iter().filter(served).all(healthy) {
            return Ok(());
        }
        let nodes = self.context.ledger.nodes().list().await?;
        if nodes.first().map(|node| node.node_id) != Some(self.context.membership.node()) {
            (self.before, self.looked_at) = (HashMap::new(), None);
            return Ok(());
        }
        let mut seen = HashMap::new();
        for row in rows.iter().filter(|row| row.tall_epoch > 0) {
            self.partition(row, &mut seen).await?;
        }
        (self.before, self.looked_at) = (seen, Some(Instant::now()));
        Ok(())
    }

    /// Checks one partition.
    async fn partition(
        &self,
        row: &Partition,
        seen: &mut HashMap<i64, (u64, i64)>,
    ) -> Result<(), LedgerError> {
        let (ledger, partition) = (&self.context.ledger, row.partition);
        let room_min = TALL_ROOM_MIN.max(self.context.settings.ceiling_step_min * TALL_STEPS);
        let tall = ledger.tall_counters(partition, room_min).await?;
        if tall.is_empty() && row.tall_epoch < row.epoch {
            return ledger.forget_tall(At { partition, epoch: row.tall_epoch }).await;
        }
        let mut needless = 0_u64;
        for counter in tall {
            if counter.epoch < row.epoch {
                // Does nothing to one whose epoch is not closed.
                ledger.settle(counter.counter_id).await?;
                continue;
            }
            needless += u64::from(self.is_needless(&counter));
            seen.insert(counter.counter_id, (counter.epoch, counter.taken));
        }
        if needless > 0 && self.may_end(row).await? {
            tracing::info!(partition, epoch = row.epoch, needless, "the epoch ends by plan");
            let at = At { partition, epoch: row.epoch };
            self.context.planned_ends.plan(at, PlannedEnd::Ceilings);
        }
        Ok(())
    }

    /// Whether a counter has far more room than it took numbers since the last poll.
    fn is_needless(&self, counter: &Counter) -> bool {
        let Some((epoch, taken)) = self.before.get(&counter.counter_id) else { return false };
        let Some(looked_at) = self.looked_at.filter(|_| *epoch == counter.epoch) else {
            return false;
        };
        let moved = counter.taken.abs_diff(*taken) / counter.step;
        let horizon = self.context.settings.ceiling_horizon;
        is_needless(counter.headroom(), moved, looked_at.elapsed(), horizon)
    }

    /// Whether an epoch may end by plan now: no participant is missing, whose outbox might be
    /// incomplete, and few others ended of late.
    async fn may_end(&self, row: &Partition) -> Result<bool, LedgerError> {
        let (context, partition) = (&self.context, row.partition);
        let is_served = matches!(row.owner, Owner::Redis { .. });
        if row.state != PartitionState::Open || !is_served || row.is_for_database() {
            return Ok(false);
        }
        if !context.unjournaled.cleared(partition, Duration::ZERO).await {
            return Ok(false);
        }
        if !few_have_ended(context, partition).await? {
            return Ok(false);
        }
        // Asked now: without the ledger the partition would wait for its next epoch.
        let rows = context.ledger.partitions().await?;
        let is_as_seen = |now: &Partition| {
            (now.partition, now.epoch, now.state) == (partition, row.epoch, row.state)
        };
        Ok(rows.iter().any(is_as_seen))
    }
}

/// Whether so few epochs of a partition have ended of late that one more is no reason to give it to
/// the database.
pub(crate) async fn few_have_ended(context: &Context, partition: u32) -> Result<bool, LedgerError> {
    let minute_us = i64::try_from(MINUTE.as_micros()).unwrap_or(i64::MAX);
    let since_us = context.clock.now_us().saturating_sub(minute_us);
    let ended = context.ledger.closings(partition, since_us).await?;
    Ok(ended + 1 < context.settings.recovery_per_minute_max)
}

/// Whether room for so many numbers is far more than a counter needs that moved by so many within
/// some time.
fn is_needless(room: u64, moved: u64, within: Duration, horizon: Duration) -> bool {
    let rate = moved as f64 / within.as_secs_f64().max(1.0);
    room as f64 > rate * horizon.as_secs_f64() * TALL_HORIZONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_needless_that_is_far_more_than_a_horizon_of_late() {
        let (minute, horizon) = (Duration::from_secs(60), Duration::from_secs(30));
        assert!(is_needless(1_000, 0, minute, horizon), "nobody takes any more");
        // A thousand a second: a ceiling of that rate stays, and one of a burst is removed.
        assert!(!is_needless(30_000, 60_000, minute, horizon));
        assert!(!is_needless(120_000, 60_000, minute, horizon));
        assert!(is_needless(120_001, 60_000, minute, horizon));
    }
}
