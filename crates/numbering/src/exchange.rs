//! Exchange serials: the names by which systems refer to their calls to each other. Three kinds of
//! fixed width, distinguished by their length. Owns their layout; takes no number: the three series
//! of `hivenet-serials.toml` do, and their templates repeat this layout.

use std::fmt;

use jiff::civil::{Date, Time};
use thiserror::Error;

use super::error::excerpt;

/// The kinds of exchange serials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// Names one transaction in all systems that take part in it: 28 characters.
    Unified,
    /// Names one step of it in the system that runs the step: 30 characters.
    System,
    /// Names one call of an interface: 39 characters.
    Interface,
}

/// The parts of an exchange serial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangePart {
    /// The system that made it, 5 letters or digits.
    System,
    /// Its module, 3 letters or digits.
    Module,
    /// The instance of the server, 2 digits.
    Instance,
    /// The system that is called, 5 letters or digits.
    Target,
    /// The day, 8 digits.
    Day,
    /// The second, 14 digits.
    Second,
    /// The running value, of this many digits.
    Sequence(usize),
}

use ExchangePart::{Day, Instance, Module, Second, Sequence, System, Target};

impl ExchangePart {
    /// Its name in bodies and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            System => "system",
            Module => "module",
            Instance => "instance",
            Target => "target",
            Day | Second => "date",
            Sequence(_) => "sequence",
        }
    }

    /// Its width in characters.
    #[must_use]
    pub fn width(self) -> usize {
        match self {
            System | Target => 5,
            Module => 3,
            Instance => 2,
            Day => 8,
            Second => 14,
            Sequence(digits) => digits,
        }
    }

    fn takes(self, character: char) -> bool {
        match self {
            System | Module | Target => character.is_ascii_alphanumeric(),
            Instance | Day | Second | Sequence(_) => character.is_ascii_digit(),
        }
    }

    fn alphabet(self) -> &'static str {
        match self {
            System | Module | Target => "a digit or an unaccented letter",
            Instance | Day | Second | Sequence(_) => "a digit",
        }
    }

    /// Checks the text of a part that a caller names alone.
    ///
    /// # Errors
    /// What is wrong with it; positions count from 1 within the part.
    pub fn check(self, text: &str) -> Result<(), ExchangeError> {
        let chars = text.chars().count();
        if chars != self.width() {
            return Err(ExchangeError::Width { part: self, chars });
        }
        self.check_alphabet(text, 1)
    }

    /// Checks the characters of a part that begins at a position.
    fn check_alphabet(self, text: &str, from: usize) -> Result<(), ExchangeError> {
        match (from..).zip(text.chars()).find(|(_, character)| !self.takes(*character)) {
            None => Ok(()),
            Some((position, character)) => {
                Err(ExchangeError::Character { part: self, position, character })
            }
        }
    }
}

/// A text that is not an exchange serial, or not a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExchangeError {
    /// Too long or too short as a whole.
    #[error(
        "has {chars} characters, but {article} serial has exactly {}: {}",
        kind.chars(), kind.layout(),
        article = kind.with_article()
    )]
    Length {
        /// What it should have been.
        kind: ExchangeKind,
        /// Its length in characters.
        chars: usize,
    },
    /// A part of another width.
    #[error("has {chars} characters, but `{}` has exactly {}", part.name(), part.width())]
    Width {
        /// The part.
        part: ExchangePart,
        /// Its length in characters.
        chars: usize,
    },
    /// A character in the wrong place.
    #[error(
        "character {position}, {character:?}, is not allowed in `{}`; write {}",
        part.name(), part.alphabet()
    )]
    Character {
        /// The part.
        part: ExchangePart,
        /// Which character, counted from 1.
        position: usize,
        /// The character.
        character: char,
    },
    /// Digits that are not a date, or not a time of day.
    #[error(
        "characters {position} to {}, {digits:?}, are no {}",
        position + digits.len() - 1,
        if digits.len() == 8 { "date (yyyyMMdd)" } else { "date and time (yyyyMMddHHmmss)" }
    )]
    Date {
        /// Where they begin, counted from 1.
        position: usize,
        /// The digits.
        digits: String,
    },
    /// The running value 0: serials count from 1.
    #[error("characters {position} and on are the sequence 0; sequences begin at 1")]
    Zero {
        /// Where it begins, counted from 1.
        position: usize,
    },
}

impl ExchangeKind {
    /// All kinds.
    pub const ALL: [ExchangeKind; 3] =
        [ExchangeKind::Unified, ExchangeKind::System, ExchangeKind::Interface];

    /// Its name in paths and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ExchangeKind::Unified => "unified",
            ExchangeKind::System => "system",
            ExchangeKind::Interface => "interface",
        }
    }

    fn with_article(self) -> &'static str {
        match self {
            ExchangeKind::Unified => "a unified",
            ExchangeKind::System => "a system",
            ExchangeKind::Interface => "an interface",
        }
    }

    /// Code of its series, which is also the document type that the series serves.
    #[must_use]
    pub fn type_code(self) -> &'static str {
        match self {
            ExchangeKind::Unified => "UNIFIED-SERIAL",
            ExchangeKind::System => "SYSTEM-SERIAL",
            ExchangeKind::Interface => "INTERFACE-SERIAL",
        }
    }

    /// The template that its series must have.
    #[must_use]
    pub fn template(self) -> &'static str {
        match self {
            ExchangeKind::Unified => "{SYSTEM:5}{MODULE:3}{INSTANCE:2}{DATE:yyyyMMdd}{SEQ:10}",
            ExchangeKind::System => "{SYSTEM:5}{MODULE:3}{INSTANCE:2}{DATE:yyyyMMdd}{SEQ:12}",
            ExchangeKind::Interface => {
                "{SYSTEM:5}{MODULE:3}{INSTANCE:2}{TARGET:5}{DATE:yyyyMMddHHmmss}{SEQ:10}"
            }
        }
    }

    /// Its parts from left to right.
    #[must_use]
    pub fn parts(self) -> &'static [ExchangePart] {
        match self {
            ExchangeKind::Unified => &[System, Module, Instance, Day, Sequence(10)],
            ExchangeKind::System => &[System, Module, Instance, Day, Sequence(12)],
            ExchangeKind::Interface => &[System, Module, Instance, Target, Second, Sequence(10)],
        }
    }

    /// Its length in characters.
    #[must_use]
    pub fn chars(self) -> usize {
        self.parts().iter().map(|part| part.width()).sum()
    }

    /// Its parts with their widths, for messages.
    fn layout(self) -> String {
        let parts = self.parts().iter();
        let told: Vec<String> =
            parts.map(|part| format!("{} {}", part.name(), part.width())).collect();
        told.join(", ")
    }
}

impl fmt::Display for ExchangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An exchange serial, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeSerial {
    /// Which kind.
    pub kind: ExchangeKind,
    /// The system that made it.
    pub system: String,
    /// Its module.
    pub module: String,
    /// The instance of the server.
    pub instance: String,
    /// The system that is called, for an interface serial.
    pub target: Option<String>,
    /// The day.
    pub date: Date,
    /// The time of day, for an interface serial.
    pub time: Option<Time>,
    /// The running value, at least 1.
    pub sequence: u64,
}

impl ExchangeSerial {
    /// Reads a serial of one kind.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn parse(kind: ExchangeKind, text: &str) -> Result<Self, ExchangeError> {
        let chars = text.chars().count();
        if chars != kind.chars() {
            return Err(ExchangeError::Length { kind, chars });
        }
        let mut serial = ExchangeSerial {
            kind,
            system: String::new(),
            module: String::new(),
            instance: String::new(),
            target: None,
            date: Date::ZERO,
            time: None,
            sequence: 0,
        };
        let (mut rest, mut position) = (text, 1);
        for part in kind.parts() {
            let end = rest.char_indices().nth(part.width()).map_or(rest.len(), |(at, _)| at);
            let (own, after) = rest.split_at(end);
            part.check_alphabet(own, position)?;
            serial.set(*part, own, position)?;
            (rest, position) = (after, position + part.width());
        }
        Ok(serial)
    }

    /// Takes the text of a part, whose characters are known to be right.
    fn set(
        &mut self,
        part: ExchangePart,
        text: &str,
        position: usize,
    ) -> Result<(), ExchangeError> {
        let no_date = || ExchangeError::Date { position, digits: excerpt(text) };
        match part {
            System => self.system = text.into(),
            Module => self.module = text.into(),
            Instance => self.instance = text.into(),
            Target => self.target = Some(text.into()),
            Day => self.date = date(text).ok_or_else(no_date)?,
            Second => {
                self.date = date(&text[..8]).ok_or_else(no_date)?;
                self.time = Some(time(&text[8..]).ok_or_else(no_date)?);
            }
            Sequence(_) => {
                self.sequence = text.parse().expect("at most 12 digits");
                if self.sequence == 0 {
                    return Err(ExchangeError::Zero { position });
                }
            }
        }
        Ok(())
    }
}

/// The day of `yyyyMMdd`.
fn date(digits: &str) -> Option<Date> {
    let year = digits[..4].parse().ok().filter(|year| *year > 0)?;
    Date::new(year, digits[4..6].parse().ok()?, digits[6..].parse().ok()?).ok()
}

/// The time of day of `HHmmss`.
fn time(digits: &str) -> Option<Time> {
    let (hour, minute) = (digits[..2].parse().ok()?, digits[2..4].parse().ok()?);
    Time::new(hour, minute, digits[4..].parse().ok()?, 0).ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil;
    use proptest::prelude::*;

    use super::*;
    use crate::{Inputs, Series, builtin_series};

    const UNIFIED: &str = "C0001A0101201507100123456789";

    #[test]
    fn the_example_of_the_standard_is_read() {
        let read = ExchangeSerial::parse(ExchangeKind::Unified, UNIFIED).expect("a serial");
        assert_eq!((&*read.system, &*read.module, &*read.instance), ("C0001", "A01", "01"));
        assert_eq!((read.date, read.time), (civil::date(2015, 7, 10), None));
        assert_eq!((read.target, read.sequence), (None, 123_456_789));
    }

    #[test]
    fn a_text_that_is_no_serial_is_refused_where_it_departs() {
        use ExchangeKind::{Interface, System, Unified};
        for (kind, text, told) in [
            (Unified, "", "has 0 characters, but a unified serial has exactly 28: system 5,"),
            (System, UNIFIED, "has 28 characters, but a system serial has exactly 30:"),
            (Interface, UNIFIED, "but an interface serial has exactly 39:"),
            (Unified, "C000-A0101201507100123456789", "character 5, '-', is not allowed in `sys"),
            (Unified, "C0001A01X1201507100123456789", "character 9, 'X', is not allowed in `ins"),
            (Unified, "C0001กขค01201507100123456789", "character 6, 'ก', is not allowed in `mod"),
            (
                Unified,
                "C0001A0101201502290123456789",
                "characters 11 to 18, \"20150229\", are no d",
            ),
            (
                Unified,
                "C0001A0101000007100123456789",
                "characters 11 to 18, \"00000710\", are no d",
            ),
            (Unified, "C0001A0101201507100000000000", "characters 19 and on are the sequence 0"),
            (
                Interface,
                "C0001A0101D0002201507102400000000000001",
                "characters 16 to 29, \"20150710240000\", are no date and time",
            ),
        ] {
            let error = ExchangeSerial::parse(kind, text).expect_err(text).to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_part_has_its_width_and_its_characters() {
        assert_eq!(System.check("C0001"), Ok(()));
        assert_eq!(Instance.check("01"), Ok(()));
        for (part, text) in [(System, "C001"), (Instance, "1"), (Instance, "A1"), (Module, "é01")]
        {
            assert!(part.check(text).is_err(), "{text}");
        }
    }

    /// Goal: the series make what this module reads. Method: draft a number of each and read it.
    #[test]
    fn the_series_render_the_layout_and_count_by_system_module_instance_and_day() {
        let definitions = builtin_series();
        for kind in ExchangeKind::ALL {
            let of_kind =
                |definition: &&crate::SeriesDefinition| definition.code == kind.type_code();
            let definition = definitions.iter().find(of_kind).expect("built in");
            assert_eq!(definition.template, kind.template());
            let series = Series::compile(definition.clone()).expect("compiles");
            let mut context = vec![("SYSTEM", "C0001"), ("MODULE", "A01"), ("INSTANCE", "01")];
            if kind == ExchangeKind::Interface {
                context.push(("TARGET", "D0002"));
            }
            let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            let inputs = Inputs {
                type_code: kind.type_code().into(),
                // Midnight in Shanghai has passed, in UTC it has not.
                date: Some("2015-07-09T17:30:05Z".into()),
                context: context.into_iter().map(own).collect(),
                ..Inputs::default()
            };
            let draft = series.draft(&inputs, crate::testing::NOW).expect("drafted");
            let key = "SYSTEM=C0001;MODULE=A01;INSTANCE=01;day=2015-07-10";
            assert_eq!(draft.keys[0].to_string(), key);
            let number = draft.partial.fill(&[123_456_789]).expect("fits");
            assert_eq!(number.len(), kind.chars());
            let read = ExchangeSerial::parse(kind, &number).expect("read back");
            assert_eq!((read.date, read.sequence), (civil::date(2015, 7, 10), 123_456_789));
            if kind == ExchangeKind::Unified {
                assert_eq!(number, UNIFIED);
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,45}", digits in "[0-9]{28}") {
            for kind in ExchangeKind::ALL {
                let _ = ExchangeSerial::parse(kind, &text);
                let _ = ExchangeSerial::parse(kind, &digits);
            }
        }
    }
}
