//! What is counted by series. Codes are bounded by the configuration, and here once more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use metrics::Counter;

use super::definitions::{ISSUED, REPLAYED};

/// Series that have a label of their own; those met later share [`OTHER`].
const SERIES_LABELS_MAX: usize = 200;

/// Label of the series beyond the bound.
const OTHER: &str = "other";

/// Counters of one series.
#[derive(Debug)]
pub struct SeriesMeter {
    /// Numbers issued by flights to Redis.
    pub issued_redis: Counter,
    /// Numbers issued by transactions of the ledger.
    pub issued_database: Counter,
    /// Requests answered with an earlier number.
    pub replayed: Counter,
}

/// The counters of all series that were met.
#[derive(Debug, Default)]
pub(super) struct SeriesMeters(Mutex<HashMap<String, Arc<SeriesMeter>>>);

impl SeriesMeters {
    /// The counters of a series.
    pub(super) fn of(&self, code: &str) -> Arc<SeriesMeter> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let label = match all.get(code) {
            Some(known) => return Arc::clone(known),
            None if all.len() < SERIES_LABELS_MAX => code,
            None => OTHER,
        };
        Arc::clone(all.entry(label.to_owned()).or_insert_with(|| {
            Arc::new(SeriesMeter {
                issued_redis: ISSUED.counter(&[label, "redis"]),
                issued_database: ISSUED.counter(&[label, "database"]),
                replayed: REPLAYED.counter(&[label]),
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_beyond_the_bound_share_one_label() {
        let meters = SeriesMeters::default();
        for number in 0..SERIES_LABELS_MAX {
            meters.of(&format!("S{number}"));
        }
        let (one, another) = (meters.of("late"), meters.of("later"));
        assert!(Arc::ptr_eq(&one, &another));
        assert!(Arc::ptr_eq(&meters.of(OTHER), &one));
        assert!(!Arc::ptr_eq(&meters.of("S0"), &one), "those that came before keep their own");
        assert_eq!(meters.0.lock().expect("not poisoned").len(), SERIES_LABELS_MAX + 1);
    }
}
