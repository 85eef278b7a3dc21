//! Limits that all nodes share: how far ahead of now each schedule is. Nothing here concerns a
//! number; a limit that is lost starts anew.

use super::call::{Call, Verb};
use super::reply::expect;
use super::{CounterError, Keys, Redis};

/// Most limits that one call shares.
pub const LIMITS_MAX: usize = 500;

impl Redis {
    /// Adds what a node admitted, in microseconds, to schedules of a partition, and reads how far
    /// ahead of now each is, with what all nodes admitted. A schedule is at most two minutes ahead
    /// and expires once it is over. A repeated call adds again.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn share_limits(
        &self,
        keys: &Keys,
        partition: u32,
        used: &[(String, u64)],
    ) -> Result<Vec<u64>, CounterError> {
        let used = &used[..used.len().min(LIMITS_MAX)];
        let Some((first, _)) = used.first() else { return Ok(Vec::new()) };
        let echo = format!("limit {partition} {first}");
        let names = used.iter().map(|(name, _)| keys.limit(partition, name)).collect();
        let args: Vec<String> = used.iter().map(|(_, used_us)| used_us.to_string()).collect();
        let call = Call::new(Verb::Limit, echo, names, args);
        let count = used.len();
        self.ask(&call, |call, value| {
            let mut parts = expect(call, value)?;
            let ahead_us = (0..count).map(|_| parts.number()).collect::<Result<_, _>>()?;
            parts.end()?;
            Ok(ahead_us)
        })
        .await
    }
}
