//! Waiting between two attempts: doubles up to a bound, starts over after a success.

use std::time::Duration;

/// The waits of one repeated call.
#[derive(Clone, Debug)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
    attempts: u32,
}

impl Backoff {
    /// Waits from `min` to `max`.
    #[must_use]
    pub fn new(min: Duration, max: Duration) -> Self {
        Backoff { min, max, next: min, attempts: 0 }
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.next = self.min;
        self.attempts = 0;
    }

    /// Waits since the last success.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Waits once, longer each time.
    pub async fn wait(&mut self) {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        self.attempts += 1;
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_the_bound_and_start_over_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(30));
        let started = tokio::time::Instant::now();
        for _ in 0..4 {
            backoff.wait().await;
        }
        assert_eq!(started.elapsed(), Duration::from_millis(10 + 20 + 30 + 30));
        assert_eq!(backoff.attempts(), 4);
        backoff.reset();
        let started = tokio::time::Instant::now();
        backoff.wait().await;
        assert_eq!(started.elapsed(), Duration::from_millis(10));
    }
}
