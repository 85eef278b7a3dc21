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
    /// Notes a problem whose first line is to be found. `place`: of the serial.
    pub(super) fn note(&mut self, report: &mut Report, reading: &Reading, place: usize, line: u64) {
        let value = value(reading, place);
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
            let Ok(reading) = reader.read(&row) else { continue };
            for place in 0..reading.values.len() {
                for told in self.met.remove(&value(&reading, place)).into_iter().flatten() {
                    let problem = &mut report.problems[told];
                    problem.detail = format!("line {} has {} already", row.line, problem.detail);
                }
            }
        }
        Ok(())
    }
}

fn value(reading: &Reading, place: usize) -> Value {
    let key = reading.draft.keys.get(place).map(ToString::to_string).unwrap_or_default();
    (reading.code().to_owned(), place, key, reading.values[place])
}
