//! Reads a number back into its parts.
//!
//! Bounded whatever the text and the template: a text longer than any number is refused first; then
//! each part is tried once at each place; only places from which the end can be reached are walked,
//! with a limit on steps. A number with two readings is refused, never guessed.

use unicode_normalization::UnicodeNormalization;

use super::calendar::{Moment, assemble};
use super::check::Check;
use super::error::excerpt;
use super::lengths::{bit, date_field, one_of, prefix, serial, snowflake, value};
use super::serial_format::number;
use super::series::Variable;
use super::snowflake::SNOWFLAKE_DIGITS;
use super::template::Part;
use super::value::ValueRule;
use super::{ParseError, Parsed, ParsedSerial, Series, TEXT_CHARS_MAX};

/// Longest text worth normalising, in bytes: a character of normal form C is at most four of four
/// bytes before.
const BYTES_MAX: usize = 4 * 4 * TEXT_CHARS_MAX;

/// Most steps of the walk through the readings.
const STEPS_MAX: usize = 20_000;

/// Places in the text as bits: bit `n` is the place after character `n`, counted from 0. No part is
/// empty, so the place before the first character needs no bit.
pub(super) type Places = u128;

const _: () = assert!(TEXT_CHARS_MAX == Places::BITS as usize);

/// Which values of serials count as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueBounds {
    /// All that the template shows: another version may have had other bounds.
    Any,
    /// From the start of each serial to its largest value.
    Own,
}

/// Cheap bounds first, then the places, then the readings.
pub(super) fn parse(
    series: &Series,
    number: &str,
    values: ValueBounds,
) -> Result<Parsed, ParseError> {
    if number.len() > BYTES_MAX {
        return Err(ParseError::TooLong);
    }
    let text: Vec<char> = number.nfc().take(TEXT_CHARS_MAX + 1).collect();
    if text.len() > TEXT_CHARS_MAX {
        return Err(ParseError::TooLong);
    }
    let printable = ValueRule::printable();
    let matcher = Matcher { series, text: &text, values, printable };
    let mut walk = Walk {
        matcher: &matcher,
        edges: matcher.edges()?,
        spans: Vec::with_capacity(series.parts.len()),
        found: None,
        contradiction: None,
        steps: 0,
    };
    walk.step(0)?;
    let Walk { found, contradiction, .. } = walk;
    // Every place leads to the end, so if nothing was found, something contradicted.
    let (position, reason) = contradiction.unwrap_or_else(|| (1, "cannot be read".into()));
    found.map(|(parsed, _)| parsed).ok_or(ParseError::Contradicts { position, reason })
}

/// Finds where each part could end.
struct Matcher<'a> {
    series: &'a Series,
    text: &'a [char],
    values: ValueBounds,
    /// The rule of projects and phases.
    printable: ValueRule,
}

impl Matcher<'_> {
    /// For each part and place, the places where the part may end such that the rest still reads:
    /// `edges[part][from]`.
    fn edges(&self) -> Result<Vec<Vec<Places>>, ParseError> {
        let parts = &self.series.parts;
        let length = self.text.len();
        let mut edges = vec![vec![0; length + 1]; parts.len()];
        // Places after the parts so far, rising.
        let mut reached: Vec<usize> = vec![0];
        for (part, edges) in parts.iter().zip(&mut edges) {
            let mut next: Places = 0;
            for &from in &reached {
                edges[from] = self.ends(part, from);
                next |= edges[from];
            }
            if next == 0 {
                let furthest = reached.last().copied().unwrap_or(0);
                return Err(match part {
                    Part::Check(check) => self.wrong_check(furthest, *check),
                    _ => self.departs(furthest, self.describe(part)),
                });
            }
            reached = (1..=length).filter(|at| next & bit(*at) != 0).collect();
        }
        if reached.last() != Some(&length) {
            let furthest = reached.last().copied().unwrap_or(0);
            return Err(self.departs(furthest, "the end".into()));
        }
        // Backwards: keep only ends from which the rest of the text can be read.
        let mut alive = bit(length);
        for edges in edges.iter_mut().rev() {
            let mut before: Places = 0;
            for (from, ends) in edges.iter_mut().enumerate() {
                *ends &= alive;
                if *ends != 0 && from > 0 {
                    before |= bit(from);
                }
            }
            alive = before;
        }
        Ok(edges)
    }

    /// Where a part that begins at `from` may end.
    fn ends(&self, part: &Part, from: usize) -> Places {
        let rest = &self.text[from..];
        if rest.is_empty() {
            return 0;
        }
        let lengths = match part {
            Part::Literal(text) => prefix(rest, text),
            Part::Serial { format, .. } => return serial(rest, *format) << from,
            Part::Check(check) => {
                let (expected, width) = check.characters(self.text[..from].iter().copied());
                rest.starts_with(&expected[..width]).then_some(width)
            }
            Part::Date(field) => date_field(rest, *field),
            Part::Snowflake => snowflake(rest).map(|_| SNOWFLAKE_DIGITS),
            Part::Variable(index) => {
                return value(rest, &self.series.variables[*index].rule) << from;
            }
            Part::Project if self.series.served.projects.is_empty() => {
                return value(rest, &self.printable) << from;
            }
            Part::Phase => return value(rest, &self.printable) << from,
            Part::Project => return one_of(rest, &self.series.served.projects) << from,
            Part::Type(_) => return one_of(rest, &self.series.served.types_shown) << from,
        };
        lengths.map_or(0, |length| bit(from + length))
    }

    /// The error at the furthest place that any reading reached.
    fn departs(&self, at: usize, expected: String) -> ParseError {
        let found = match self.text.get(at) {
            Some(_) => format!("{:?}", self.text[at..].iter().take(20).collect::<String>()),
            None => "the end".into(),
        };
        ParseError::Departs { position: at + 1, expected, found }
    }

    /// The error at a check that does not match the text before it.
    fn wrong_check(&self, at: usize, check: Check) -> ParseError {
        let (expected, width) = check.characters(self.text[..at].iter().copied());
        let expected = expected[..width].iter().collect();
        match self.text.get(at..at + width) {
            Some(found) if found.iter().all(char::is_ascii_alphanumeric) => {
                ParseError::Check { position: at + 1, expected, found: found.iter().collect() }
            }
            _ => self.departs(at, format!("the check {expected}")),
        }
    }

    /// A part in words.
    fn describe(&self, part: &Part) -> String {
        match part {
            Part::Literal(text) => format!("{text:?}"),
            Part::Serial { serial, format } => {
                format!("serial {} {}", self.series.serials[*serial].name, format.describe())
            }
            Part::Phase => "the phase".into(),
            Part::Snowflake => format!("an id of {SNOWFLAKE_DIGITS} digits"),
            Part::Check(check) => format!("the check {}", check.name()),
            Part::Variable(index) => {
                let Variable { name, rule, .. } = &self.series.variables[*index];
                match rule.widths() {
                    (least, most) if least == most => format!("{name} of {most} characters"),
                    (_, most) => format!("{name} of 1 to {most} characters"),
                }
            }
            Part::Project => "the project".into(),
            Part::Type(_) => "the document type".into(),
            Part::Date(field) => format!("a date part of {} digits", field.width()),
        }
    }
}

/// Walks the remaining readings, depth first.
struct Walk<'a> {
    matcher: &'a Matcher<'a>,
    edges: Vec<Vec<Places>>,
    /// Begin and end of the parts so far.
    spans: Vec<(usize, usize)>,
    /// The reading so far, with begin and end of its parts.
    found: Option<(Parsed, Vec<(usize, usize)>)>,
    /// Place and kind of the first contradiction.
    contradiction: Option<(usize, String)>,
    steps: usize,
}

impl<'a> Walk<'a> {
    /// Tries every end of the next part, which begins at `from`.
    fn step(&mut self, from: usize) -> Result<(), ParseError> {
        self.steps += 1;
        let part = self.spans.len();
        if self.steps > STEPS_MAX {
            return Err(self.ambiguous(part.saturating_sub(1)));
        }
        if part == self.matcher.series.parts.len() {
            return self.reading();
        }
        let mut ends = self.edges[part][from];
        while ends != 0 {
            // The lowest place, which is then taken off the set.
            let end = ends.trailing_zeros() as usize + 1;
            ends &= ends - 1;
            match self.shown_before(part).filter(|before| *before != self.chars((from, end))) {
                None => {
                    self.spans.push((from, end));
                    self.step(end)?;
                    self.spans.pop();
                }
                Some(before) if self.contradiction.is_none() => {
                    let before = excerpt(&before.iter().collect::<String>());
                    let name = self.matcher.describe(&self.matcher.series.parts[part]);
                    let reason = format!("{name} was {before:?} before; write the same again");
                    self.contradiction = Some((from + 1, reason));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// What an earlier part shows that must equal this one.
    fn shown_before(&self, part: usize) -> Option<&'a [char]> {
        let parts = &self.matcher.series.parts;
        let same = |before: &Part| match (before, &parts[part]) {
            (Part::Variable(a), Part::Variable(b)) => a == b,
            (Part::Project, Part::Project)
            | (Part::Phase, Part::Phase)
            | (Part::Type(_), Part::Type(_)) => true,
            _ => false,
        };
        let before = parts[..part].iter().position(same);
        before.map(|index| self.chars(self.spans[index]))
    }

    /// The text of a span.
    fn chars(&self, (from, end): (usize, usize)) -> &'a [char] {
        &self.matcher.text[from..end]
    }

    /// Records the reading that is now complete.
    fn reading(&mut self) -> Result<(), ParseError> {
        let Some(parsed) = self.interpret() else {
            let told = self.contradiction.take().or_else(|| self.no_such_value());
            self.contradiction = told.or_else(|| self.no_such_date());
            return Ok(());
        };
        match &self.found {
            Some((found, spans)) if *found != parsed => {
                let differs = std::iter::zip(spans, &self.spans).position(|(a, b)| a != b);
                Err(self.ambiguous(differs.unwrap_or_default()))
            }
            Some(_) => Ok(()),
            None => {
                self.found = Some((parsed, self.spans.clone()));
                Ok(())
            }
        }
    }

    /// The error at a part that may end at several places.
    fn ambiguous(&self, part: usize) -> ParseError {
        let position = self.spans.get(part).map_or(1, |(from, _)| from + 1);
        let part = self.matcher.series.parts.get(part);
        let part = part.map_or_else(|| "a part".into(), |part| self.matcher.describe(part));
        ParseError::Ambiguous { position, part }
    }

    /// Where a serial is to which the reading gives an impossible value, and why.
    fn no_such_value(&self) -> Option<(usize, String)> {
        let serials = std::iter::zip(&self.matcher.series.parts, &self.spans);
        let mut wrong = serials.filter_map(|(part, span)| {
            let Part::Serial { serial, format } = part else { return None };
            let value = format.read(self.chars(*span))?;
            let super::Serial { name, start, max, .. } = &self.matcher.series.serials[*serial];
            let reason =
                format!("serial {name} shows {value}, and its values are {start} to {max}");
            (!self.may_have(*serial, value)).then_some((span.0 + 1, reason))
        });
        wrong.next()
    }

    /// Whether a value counts as one of a serial.
    fn may_have(&self, serial: usize, value: u64) -> bool {
        let super::Serial { start, max, .. } = &self.matcher.series.serials[serial];
        self.matcher.values == ValueBounds::Any || (*start..=*max).contains(&value)
    }

    /// Where the date parts of the reading begin, and what they show.
    fn no_such_date(&self) -> Option<(usize, String)> {
        let dates = std::iter::zip(&self.matcher.series.parts, &self.spans);
        let dates = dates.filter(|(part, _)| matches!(part, Part::Date(_)));
        let spans: Vec<(usize, usize)> = dates.map(|(_, span)| *span).collect();
        let (first, _) = spans.first()?;
        let shown = spans.iter().map(|span| self.chars(*span).iter().collect::<String>());
        let shown = shown.collect::<Vec<_>>().join(" ");
        Some((first + 1, format!("there is no date {shown}; correct it")))
    }

    /// The parts of the reading; `None` if its date does not exist.
    fn interpret(&self) -> Option<Parsed> {
        let serial = |serial: &super::Serial| ParsedSerial { name: serial.name.clone(), value: 0 };
        // One that is not shown has no value to read.
        let shown = &self.matcher.series.serials[..self.matcher.series.definition.serials.len()];
        let mut serials: Vec<ParsedSerial> = shown.iter().map(serial).collect();
        let mut id = None;
        let mut variables = std::collections::BTreeMap::new();
        let mut dates = Vec::new();
        for (part, span) in self.matcher.series.parts.iter().zip(&self.spans) {
            let shown = self.chars(*span);
            let name = match part {
                Part::Literal(_) | Part::Check(_) => continue,
                Part::Snowflake => {
                    id = Some(snowflake(shown)?);
                    continue;
                }
                Part::Serial { serial, format } => {
                    let value = format.read(shown)?;
                    if !self.may_have(*serial, value) {
                        return None;
                    }
                    serials[*serial].value = value;
                    continue;
                }
                Part::Date(field) => {
                    dates.push((*field, i64::try_from(number(shown)?).ok()?));
                    continue;
                }
                Part::Variable(index) => self.matcher.series.variables[*index].name.as_str(),
                Part::Project => "PROJECT",
                Part::Phase => "PHASE",
                Part::Type(name) => name,
            };
            variables.insert(name.to_owned(), shown.iter().collect());
        }
        let Moment { date, time, fiscal_year } = assemble(&dates)?;
        Some(Parsed { variables, date, time, fiscal_year, snowflake: id, serials })
    }
}
