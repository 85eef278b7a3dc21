//! The fullest counters, as lines of Prometheus's text format.
//!
//! Their labels change as counters come and go, and a recorder never forgets a label. These few
//! gauges are therefore kept here and replaced as a whole.

use std::sync::{Mutex, PoisonError};

use super::definitions::{COUNTER_EXHAUSTION, COUNTER_USED};
use super::lines::{head, line};

/// How full a counter is.
#[derive(Clone, Debug, PartialEq)]
pub struct Fullness {
    /// Code of its series.
    pub series: String,
    /// Name of its serial.
    pub serial: String,
    /// The counter key's text.
    pub key: String,
    /// Share of its values that are taken.
    pub used_ratio: f64,
    /// Seconds until none is left, at its present rate; infinite if it does not move.
    pub exhaustion_seconds: f64,
}

/// The fullest counters at present.
#[derive(Debug, Default)]
pub(super) struct Fullest(Mutex<Vec<Fullness>>);

impl Fullest {
    /// Replaces them all.
    pub(super) fn replace(&self, counters: Vec<Fullness>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }

    /// Appends their lines.
    pub(super) fn render(&self, text: &mut String) {
        let counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (definition, value) in [
            (COUNTER_USED, (|counter| counter.used_ratio) as fn(&Fullness) -> f64),
            (COUNTER_EXHAUSTION, |counter| counter.exhaustion_seconds),
        ] {
            head(text, &definition);
            for counter in counters.iter() {
                let values = [&counter.series, &counter.serial, &counter.key];
                line(text, &definition, &values.map(String::as_str), value(counter));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_a_line_with_its_labels_escaped() {
        let fullest = Fullest::default();
        let counter = Fullness {
            series: "S".into(),
            serial: "SEQ".into(),
            key: "type=\"a\\b\"\nc".into(),
            used_ratio: 0.5,
            exhaustion_seconds: f64::INFINITY,
        };
        fullest.replace(vec![counter]);
        let mut text = String::new();
        fullest.render(&mut text);
        let labels = r#"{series="S",serial="SEQ",key="type=\"a\\b\"\nc"}"#;
        for line in [
            "# TYPE numerator_counter_used_ratio gauge".to_owned(),
            format!("numerator_counter_used_ratio{labels} 0.5"),
            format!("numerator_counter_exhaustion_seconds{labels} +Inf"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing from\n{text}");
        }
        fullest.replace(Vec::new());
        let mut text = String::new();
        fullest.render(&mut text);
        assert!(!text.contains("SEQ"), "what is full no more is forgotten");
    }
}
