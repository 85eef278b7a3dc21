//! The stored constant part of a number, such as `BX20240115%s`: how systems that write rule
//! expressions name their counters. Rendered from a draft, and read back to the counter key.
//!
//! Reads and writes text alone: the value of such a counter is in that system's own table.

use std::sync::Arc;

use thiserror::Error;

use super::origin::origins;
use super::template::Part;
use super::{CounterKey, Draft, ParseError, Parsed, Series, TEXT_CHARS_MAX, TemplateError};

/// Represents a serial in the text that is read: no value and no literal holds it.
const SERIAL: char = '\u{1}';

impl Draft {
    /// The constant part: the number with `%s` for each serial, and `%%` for a percent sign.
    #[must_use]
    pub fn rule_format(&self) -> String {
        self.partial.rule_format()
    }
}

/// Reads the constant parts of one series.
#[derive(Debug)]
pub struct RuleFormats {
    /// The series with a literal [`SERIAL`] in place of each serial.
    shadow: Series,
}

/// A text that is not a constant part of the series.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleFormatError {
    /// Longer than any number.
    #[error("longer than {TEXT_CHARS_MAX} characters: not the constant part of a number")]
    TooLong,
    /// A percent sign that is neither `%s` nor `%%`.
    #[error("character {position}: write %s for a serial, %% for a percent sign")]
    Percent {
        /// Which character, counted from 1.
        position: usize,
    },
    /// The text departs from the template.
    #[error("character {position}: expected {expected}")]
    Departs {
        /// The first character that fits no reading, counted from 1.
        position: usize,
        /// What the template has there.
        expected: String,
    },
    /// Each part fits alone, but not together.
    #[error("the parts contradict each other: a repeated value differs or there is no such day")]
    Contradicts,
    /// More than one reading.
    #[error("it can be read in more than one way; the template does not determine its parts")]
    Ambiguous,
    /// The text does not say everything that the series counts by.
    #[error("it does not show everything that the series counts by; its counter is not determined")]
    Undetermined,
}

impl RuleFormats {
    /// A reader of the constant parts of a series.
    ///
    /// # Errors
    /// None for a series that was compiled before.
    pub fn of(series: &Series) -> Result<Self, TemplateError> {
        let mut shadow = Series::compile(series.definition.clone())?
            .with_reference(Arc::clone(&series.reference));
        for part in &mut shadow.parts {
            if matches!(part, Part::Serial { .. }) {
                *part = Part::Literal(SERIAL.into());
            }
        }
        Ok(RuleFormats { shadow })
    }

    /// The counter that a constant part names: the key that the first serial of such numbers is
    /// taken from.
    ///
    /// # Errors
    /// [`RuleFormatError`] names where the text departs from the series, or what it leaves open.
    pub fn counter_key(&self, rule_format: &str) -> Result<CounterKey, RuleFormatError> {
        let parsed = self.parse(rule_format)?;
        let mut keys = origins(&self.shadow, &parsed);
        match (keys.pop(), keys.is_empty()) {
            (Some(key), true) => Ok(key),
            _ => Err(RuleFormatError::Undetermined),
        }
    }

    /// What a constant part shows: all that a number shows except the values of its serials.
    ///
    /// # Errors
    /// Like [`RuleFormats::counter_key`], except that what the text leaves open is not an error.
    pub fn parse(&self, rule_format: &str) -> Result<Parsed, RuleFormatError> {
        let (text, places) = unescape(rule_format)?;
        let parsed = self.shadow.parse(&text).map_err(|error| match error {
            ParseError::TooLong => RuleFormatError::TooLong,
            ParseError::Contradicts { .. } => RuleFormatError::Contradicts,
            ParseError::Ambiguous { .. } => RuleFormatError::Ambiguous,
            ParseError::Departs { position, expected, .. }
            | ParseError::Check { position, expected, .. } => {
                // Each sign pair before the place was one character of the text that was read.
                let pairs = places.iter().take_while(|place| **place < position).count();
                let expected = expected.replace(&format!("{:?}", SERIAL.to_string()), "%s");
                RuleFormatError::Departs { position: position + pairs, expected }
            }
        })?;
        Ok(Parsed { serials: Vec::new(), ..parsed })
    }
}

/// The text with [`SERIAL`] for `%s` and a single percent sign for `%%`; and which of its
/// characters, counted from 1, were such a pair.
fn unescape(rule_format: &str) -> Result<(String, Vec<usize>), RuleFormatError> {
    let mut text = String::with_capacity(rule_format.len());
    let (mut places, mut read) = (Vec::new(), 0);
    let mut chars = rule_format.chars().enumerate();
    while let Some((index, character)) = chars.next() {
        read += 1;
        if character == '%' {
            text.push(match chars.next() {
                Some((_, 's')) => SERIAL,
                Some((_, '%')) => '%',
                _ => return Err(RuleFormatError::Percent { position: index + 1 }),
            });
            places.push(read);
        } else if character == SERIAL {
            let expected = "printable text".into();
            return Err(RuleFormatError::Departs { position: index + 1, expected });
        } else {
            text.push(character);
        }
    }
    Ok((text, places))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{inputs, series};
    use super::super::{Reset, VariableDefinition};
    use super::*;

    fn bx() -> Series {
        series(|definition| {
            definition.template = "BX{DATE:yyyyMMdd}{SEQ:4}".into();
            definition.serials[0].reset = Reset::Day;
        })
    }

    #[test]
    fn the_stored_constant_part_is_the_identity_of_its_counter() {
        let series = bx();
        let request = inputs("T", "", "2024-01-15", &[]);
        let draft = series.draft(&request, crate::testing::NOW).expect("draft");
        assert_eq!(draft.rule_format(), "BX20240115%s");
        let key = RuleFormats::of(&series).expect("compiles").counter_key("BX20240115%s");
        assert_eq!(key.as_ref(), Ok(&draft.keys[0]));
        assert_eq!(key.expect("read").to_string(), "day=2024-01-15");
        let parsed = RuleFormats::of(&series).expect("compiles").parse("BX20240115%s");
        let date = Some("2024-01-15".to_owned());
        assert_eq!(parsed, Ok(Parsed { date, ..Parsed::default() }));
    }

    /// A variable, then the serial, then the variable again: in a number the serial's digits could
    /// belong to the values, in the constant part its place is marked.
    fn marked() -> Series {
        series(|definition| {
            definition.template = "{A}{SEQ:2}{B}%".into();
            for name in ["A", "B"] {
                definition.variables.insert(name.into(), VariableDefinition::default());
                definition.serials[0].counter.push(name.into());
            }
        })
    }

    #[test]
    fn digits_beside_a_serial_and_percent_signs_are_read_back() {
        let series = marked();
        let request = inputs("T", "", "", &[("A", "1%2"), ("B", "单34")]);
        let draft = series.draft(&request, crate::testing::NOW).expect("draft");
        assert_eq!(draft.rule_format(), "1%%2%s单34%%");
        let formats = RuleFormats::of(&series).expect("compiles");
        assert_eq!(formats.counter_key("1%%2%s单34%%"), Ok(draft.keys[0].clone()));
    }

    #[test]
    fn text_that_is_no_constant_part_is_refused_at_its_place() {
        use RuleFormatError::{Ambiguous, Contradicts, Departs, Percent, TooLong, Undetermined};
        let formats = RuleFormats::of(&bx()).expect("compiles");
        let refused = |text: &str| formats.counter_key(text).expect_err(text);
        assert_eq!(refused("BX20240115%d"), Percent { position: 11 });
        assert_eq!(refused("BX20240115%"), Percent { position: 11 });
        assert_eq!(refused("BX20240230%s"), Contradicts);
        assert_eq!(refused(&"%s".repeat(40_000)), TooLong);
        let departs = |text: &str| match refused(text) {
            Departs { position, expected } => (position, expected),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(departs("BX202401150001"), (11, "%s".into()));
        assert_eq!(departs("BX20240115%s%s"), (13, "the end".into()));
        assert_eq!(departs("BX20240115\u{1}").0, 11);
        assert_eq!(departs("B%%20240115%s"), (1, "\"BX\"".into()));
        let formats = RuleFormats::of(&marked()).expect("compiles");
        assert!(formats.counter_key("A%sB%s%%").is_err());
        let open = series(|definition| {
            definition.template = "{SEQ:4}{A}{B}".into();
            for name in ["A", "B"] {
                definition.variables.insert(name.into(), VariableDefinition::default());
            }
        });
        let open = RuleFormats::of(&open).expect("compiles");
        assert_eq!(open.counter_key("%sABC"), Err(Ambiguous));
        let hidden = series(|definition| {
            definition.template = "{YEAR}{SEQ:4}".into();
            definition.serials[0].reset = Reset::Day;
        });
        let hidden = RuleFormats::of(&hidden).expect("compiles");
        assert_eq!(hidden.counter_key("2024%s"), Err(Undetermined));
    }
}
