//! How often the same incident is reported: once a second, with the number of those that were not.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

/// Time between two events of one kind in one partition.
const PERIOD: Duration = Duration::from_secs(1);

/// When each kind of incident was last reported, by partition: as many as there are kinds and
/// partitions.
#[derive(Debug, Default)]
pub struct Incidents(Mutex<HashMap<(&'static str, u32), Told>>);

#[derive(Debug)]
struct Told {
    at: Instant,
    untold: u64,
}

impl Incidents {
    /// Whether an incident is to be reported now: then how many were not since the last one that
    /// was.
    pub(super) fn admit(&self, kind: &'static str, partition: u32) -> Option<u64> {
        let mut all = self.0.lock().expect("no holder of this lock panics");
        let now = Instant::now();
        let Some(told) = all.get_mut(&(kind, partition)) else {
            all.insert((kind, partition), Told { at: now, untold: 0 });
            return Some(0);
        };
        if now.duration_since(told.at) < PERIOD {
            told.untold += 1;
            return None;
        }
        told.at = now;
        Some(std::mem::take(&mut told.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_incidents_is_told_once_a_second_with_the_number_of_the_rest() {
        let incidents = Incidents::default();
        assert_eq!(incidents.admit("lock-timeout", 1), Some(0));
        assert_eq!(incidents.admit("version-conflict", 1), Some(0), "another kind");
        assert_eq!(incidents.admit("lock-timeout", 2), Some(0), "another partition");
        for _ in 0..5 {
            assert_eq!(incidents.admit("lock-timeout", 1), None);
        }
        tokio::time::advance(PERIOD).await;
        assert_eq!(incidents.admit("lock-timeout", 1), Some(5));
        assert_eq!(incidents.admit("lock-timeout", 1), None);
    }
}
