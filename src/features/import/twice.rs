//! Values that a list has twice, with the line of the first one: found by reading the list again,
//! because no plan keeps a line for each number.

use std::collections::HashMap;

use super::ImportError;
use super::reading::{Reader, Reading};
use super::report::{Problem, ProblemKind, Report};
use super::rows::Rows;

/// A value: the code of its series, the place of its serial, its counter's key.
type Value = (String, usize, String, u64);

/// Values that occurred before.
#[derive(Default)]
pub(super) struct Twice {
    /// Each with the places of its problems in the report.
    met: HashMap<Value, Vec<usize>>,
}

impl Twice {
    /// Notes a problem whose first line is to be found. `twice`: the place of the serial, and the
    /// value.
    pub(super) fn note(
        &mut self,
        report: &mut Report,
        reading: &Reading,
        twice: (usize, u64),
        line: u64,
    ) {
        let value = value(reading, twice.0, twice.1);
        let (code, _, key, number) = &value;
        let counter = if key.is_empty() { String::new() } else { format!(", counter {key}") };
        let detail = format!("value {number} of series {code}{counter}");
        let told = report.problems.len();
        report.add(Problem::of_line(line, Some(&reading.number), ProblemKind::Twice, detail));
        // Unlisted problems get no line.
        if report.problems.len() > told {
            self.met.entry(value).or_default().push(told);
        }
    }

    /// The problems whose value a number has in a serial, which is its first.
    fn met_by(&mut self, reading: &Reading, place: usize) -> Vec<usize> {
        let step = reading.served.series.serials().get(place).map_or(1, |serial| serial.step);
        let range = reading.range(place, step);
        if range.first == range.last {
            return self.met.remove(&value(reading, place, range.first)).unwrap_or_default();
        }
        // Of a range, those that were met may be fewer than its values.
        let (code, _, key, _) = value(reading, place, range.first);
        let of_it = |(of, at, counter, value): &Value| {
            (of, *at, counter) == (&code, place, &key)
                && (range.first..=range.last).contains(value)
                && (value - range.first).is_multiple_of(range.step)
        };
        let values: Vec<Value> = self.met.keys().filter(|met| of_it(met)).cloned().collect();
        values.iter().filter_map(|value| self.met.remove(value)).flatten().collect()
    }

    /// Adds the line of the first one to each problem.
    pub(super) fn tell(
        mut self,
        mut rows: Rows,
        reader: &Reader<'_>,
        report: &mut Report,
    ) -> Result<(), ImportError> {
        while !self.met.is_empty() {
            let Some(row) = rows.next()? else { break };
            let Ok(row) = row else { continue };
            if row.extra.is_of_counter() {
                continue;
            }
            let Ok(reading) = reader.read(&row) else { continue };
            for place in 0..reading.values.len() {
                for told in self.met_by(&reading, place) {
                    let problem = &mut report.problems[told];
                    problem.detail = format!("line {} has {} already", row.line, problem.detail);
                }
            }
        }
        Ok(())
    }
}

/// A value of a serial of a number.
fn value(reading: &Reading, place: usize, value: u64) -> Value {
    let key = reading.draft.keys.get(place).map(ToString::to_string).unwrap_or_default();
    (reading.code().to_owned(), place, key, value)
}
