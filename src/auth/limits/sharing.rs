//! How nodes share their limits through Redis.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use numbering::hexadecimal;

use super::gcra::WINDOW_US;
use super::{LimitKey, Limits};
use crate::redis::{CounterError, Keys, LIMITS_MAX, Redis};
use crate::task::{Stop, Task, Ticks};

/// How often a node shares what it admitted.
const PERIOD: Duration = Duration::from_millis(200);

/// Shares the limits of a node with those of the others, until it is stopped.
#[must_use]
pub fn share(limits: Arc<Limits>, redis: Redis, keys: Keys, partitions: u32) -> Task {
    Task::start("limits", async move |stop: Stop| {
        let mut ticks = Ticks::every(PERIOD, stop);
        while ticks.next().await {
            if let Err(error) = limits.share_once(&redis, &keys, partitions).await {
                // Each node keeps the limits on its own meanwhile.
                tracing::debug!(%error, "limits are not shared at the moment");
            }
        }
    })
}

impl Limits {
    /// Sends what was admitted since the last time, and takes over what the others admitted. What
    /// could not be sent is not sent later: by then it counts for little.
    async fn share_once(
        &self,
        redis: &Redis,
        keys: &Keys,
        partitions: u32,
    ) -> Result<(), CounterError> {
        let unshared = std::mem::take(&mut self.kept().unshared);
        let mut by_partition: HashMap<u32, Vec<(LimitKey, i64)>> = HashMap::new();
        for (key, used_us) in unshared {
            let hash = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
            by_partition.entry(hash % partitions).or_default().push((key, used_us));
        }
        for (partition, used) in by_partition {
            for part in used.chunks(LIMITS_MAX) {
                let told = part.iter().map(|(key, used_us)| {
                    let used_us = used_us.clamp(&0, &(2 * WINDOW_US)).unsigned_abs();
                    (hexadecimal(key), used_us)
                });
                let told: Vec<(String, u64)> = told.collect();
                let ahead = redis.share_limits(keys, partition, &told).await?;
                self.take_over(part, &ahead);
            }
        }
        Ok(())
    }

    /// Takes over how far ahead of now each schedule is that all nodes share.
    fn take_over(&self, told: &[(LimitKey, i64)], ahead_us: &[u64]) {
        let now_us = self.clock.now_us();
        let mut kept = self.kept();
        for ((key, _), ahead_us) in told.iter().zip(ahead_us) {
            let at_us = now_us.saturating_add(i64::try_from(*ahead_us).unwrap_or(2 * WINDOW_US));
            if let Some(scheduled_us) = kept.schedules.get_mut(key) {
                *scheduled_us = at_us.max(*scheduled_us);
            }
        }
    }
}
