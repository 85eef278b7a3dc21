//! Arithmetic of measurements: percentiles of latencies, medians over runs.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest latency that is distinguished from longer ones.
const LATENCY_MAX: Duration = Duration::from_secs(600);

/// Significant decimal digits of a latency.
const DIGITS: u8 = 3;

/// Latencies of one load, in a histogram of bounded size.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let most_ns = u64::try_from(LATENCY_MAX.as_nanos()).expect("ten minutes fit");
        let empty = Histogram::new_with_bounds(1_000, most_ns, DIGITS);
        Latencies(empty.expect("bounds in order, digits allowed"))
    }
}

impl Latencies {
    /// Records one; one above the longest counts as the longest.
    pub(crate) fn note(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(ns);
    }

    /// The latency that this many percent do not exceed, in milliseconds; 0 if there is none.
    pub(crate) fn percentile_ms(&self, percent: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let ns = self.0.value_at_quantile(percent / 100.0);
        Duration::from_nanos(ns).as_secs_f64() * 1e3
    }
}

/// The median of some figures: for an even number, the mean of the middle two; 0 if there are none.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_unstable_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => 0.0,
        count if count % 2 == 0 => f64::midpoint(figures[middle - 1], figures[middle]),
        _ => figures[middle],
    }
}

/// The mean of some figures; not a number if there are none.
#[expect(clippy::cast_precision_loss, reason = "some hundred figures")]
pub(crate) fn mean(figures: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = figures.len() as f64;
    figures.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([]).to_bits(), 0.0_f64.to_bits());
        assert_eq!(median([3.0]).to_bits(), 3.0_f64.to_bits());
        assert_eq!(median([9.0, 1.0, 4.0]).to_bits(), 4.0_f64.to_bits());
        assert_eq!(median([9.0, 1.0, 4.0, 5.0]).to_bits(), 4.5_f64.to_bits());
    }

    #[test]
    fn percentiles_are_right_to_three_digits() {
        let mut latencies = Latencies::default();
        for us in 1..=10_000 {
            latencies.note(Duration::from_micros(us));
        }
        for (percent, ms) in [(50.0, 5.0), (99.0, 9.9), (99.9, 9.99), (100.0, 10.0)] {
            let shown = latencies.percentile_ms(percent);
            assert!((shown - ms).abs() <= ms / 1_000.0, "p{percent}: {shown} ms, not {ms}");
        }
    }

    #[test]
    fn a_latency_past_the_bound_is_not_lost() {
        let mut latencies = Latencies::default();
        latencies.note(Duration::from_secs(3_600));
        assert!(latencies.percentile_ms(50.0) >= LATENCY_MAX.as_secs_f64() * 1e3);
        assert_eq!(Latencies::default().percentile_ms(99.0).to_bits(), 0.0_f64.to_bits());
    }
}
