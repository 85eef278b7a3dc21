//! How many reservations are live, as this process has counted them last: a bound for new ones.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// See the module.
#[derive(Debug, Default)]
pub struct LiveReservations {
    of_series: Mutex<HashMap<i64, u64>>,
    /// Notified where a caller has confirmed or cancelled one: a sweep has work.
    due: Notify,
    /// Whether a caller of this process ever has.
    has_acted: AtomicBool,
}

impl LiveReservations {
    /// Takes over what was counted.
    pub(crate) fn note(&self, of_series: Vec<(i64, u64)>) {
        let mut known = self.of_series.lock().expect("no holder of this lock panics");
        *known = of_series.into_iter().collect();
    }

    /// How many a series had at the last count.
    pub(crate) fn of(&self, series_id: i64) -> u64 {
        let known = self.of_series.lock().expect("no holder of this lock panics");
        known.get(&series_id).copied().unwrap_or(0)
    }

    /// Says that a sweep has work.
    pub(crate) fn urge(&self) {
        self.has_acted.store(true, Ordering::Release);
        self.due.notify_one();
    }

    /// Whether a caller of this process has confirmed or cancelled one.
    pub(crate) fn has_acted(&self) -> bool {
        self.has_acted.load(Ordering::Acquire)
    }

    /// Waits for that.
    pub(crate) async fn urged(&self) {
        self.due.notified().await;
    }
}
