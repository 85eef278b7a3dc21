//! Metrics by series. The number of codes is bounded by the configuration, and here once more.
//!
//! A recorder never forgets a label, and series that come and go would use up all of them: their
//! counters are kept and written here, and those of removed series are forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::Counter;

use super::definitions::{ISSUED, REPLAYED};
use super::lines::{head, line};

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
    /// The sum of these three.
    counts: [Arc<AtomicU64>; 3],
}

impl SeriesMeter {
    fn new() -> Self {
        let counts: [Arc<AtomicU64>; 3] = Default::default();
        let [issued_redis, issued_database, replayed] =
            counts.each_ref().map(|count| Counter::from_arc(Arc::clone(count)));
        SeriesMeter { issued_redis, issued_database, replayed, counts }
    }
}

/// The counters of all existing series, by their labels.
#[derive(Debug, Default)]
pub(super) struct SeriesMeters(Mutex<BTreeMap<String, Arc<SeriesMeter>>>);

impl SeriesMeters {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SeriesMeter>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of a series.
    pub(super) fn of(&self, code: &str) -> Arc<SeriesMeter> {
        let mut all = self.all();
        let label = match all.get(code) {
            Some(known) => return Arc::clone(known),
            None if all.len() < SERIES_LABELS_MAX => code,
            None => OTHER,
        };
        Arc::clone(all.entry(label.to_owned()).or_insert_with(|| Arc::new(SeriesMeter::new())))
    }

    /// Forgets all series but these.
    pub(super) fn keep(&self, codes: &BTreeSet<&str>) {
        // If each has a label of its own, there are no others.
        let are_others = codes.len() > SERIES_LABELS_MAX;
        let is_kept = |label: &str| codes.contains(label) || (are_others && label == OTHER);
        self.all().retain(|label, _| is_kept(label));
    }

    /// Appends their lines.
    pub(super) fn render(&self, text: &mut String) {
        let all = self.all();
        let count = |meter: &SeriesMeter, at: usize| {
            // No series counts up to where a float is no longer exact.
            meter.counts[at].load(Ordering::Relaxed) as f64
        };
        head(text, &ISSUED);
        for (label, meter) in &*all {
            line(text, &ISSUED, &[label, "redis"], count(meter, 0));
            line(text, &ISSUED, &[label, "database"], count(meter, 1));
        }
        head(text, &REPLAYED);
        for (label, meter) in &*all {
            line(text, &REPLAYED, &[label], count(meter, 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(meters: &SeriesMeters) -> String {
        let mut text = String::new();
        meters.render(&mut text);
        text
    }

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
        assert_eq!(meters.all().len(), SERIES_LABELS_MAX + 1);
    }

    #[test]
    fn series_that_are_removed_give_their_labels_back() {
        let meters = SeriesMeters::default();
        for number in 0..=SERIES_LABELS_MAX {
            meters.of(&format!("GONE{number}")).replayed.increment(1);
        }
        meters.of("GONE0").issued_database.increment(3);
        assert!(text(&meters).contains("numerator_replayed_total{series=\"other\"} 1\n"));
        meters.keep(&["GONE0", "REAL"].into());
        meters.of("REAL").issued_redis.increment(2);
        let text = text(&meters);
        for line in [
            "numerator_issued_total{series=\"GONE0\",path=\"database\"} 3\n",
            "numerator_issued_total{series=\"REAL\",path=\"redis\"} 2\n",
            "numerator_issued_total{series=\"REAL\",path=\"database\"} 0\n",
            "numerator_replayed_total{series=\"REAL\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing from\n{text}");
        }
        assert!(!text.contains("GONE1") && !text.contains(OTHER), "{text}");
    }
}
