//! What a part of a number can look like, and what it shows. The one place of the proof that knows
//! the kinds of parts: a new kind needs an answer here, and nowhere else.

use super::super::check::Check;
use super::super::figure::Figure;
use super::super::pattern::DateField;
use super::super::series::Dimension;
use super::super::served::{ORIGINATORS, SUB_TYPE};
use super::super::snowflake::SNOWFLAKE_DIGITS;
use super::super::template::Part;
use super::super::value::ValueRule;
use super::super::{NUMBER_MAX, Series, Style};
use super::moments;

/// The texts that a part can show. May hold more than the part ever shows, never less.
#[derive(Clone, Debug)]
pub(super) enum Language {
    /// One of these texts.
    OneOf(Vec<String>),
    /// Any value of the rule.
    Value(ValueRule),
    /// A number from `least` to `most`.
    Number {
        /// The smallest, which has no more digits than `width`.
        least: u64,
        /// The largest.
        most: u64,
        /// Least digits; smaller numbers have leading zeros.
        width: usize,
    },
    /// Letters A to Z, from so many to so many.
    Letters {
        /// Least letters.
        least: usize,
        /// Most letters.
        most: usize,
    },
}

/// What a part tells about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Nothing: it is the same in every number.
    Nothing,
    /// The value of a serial.
    Serial(usize),
    /// A dimension.
    Dimension(Dimension),
    /// The phase.
    Phase,
    /// An id that no two numbers share.
    Id,
    /// A field of the date.
    Date(DateField),
}

/// Which languages are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Whatever a part may ever show: for proofs.
    Everything,
    /// Dates of the years around now, values that the serials reach, ids of times to come, and
    /// codes that are listed: for examples.
    Likely,
}

/// An id of the year 2025: none was drawn before.
const LIKELY_ID: u64 = 662_082_630_451_200_000;

/// How many values of a serial with steps are tried in examples, at each number of digits.
const LIKELY_VALUES: u64 = 40;

/// The texts of a part; `types` are those that the series is looked at for.
pub(super) fn language(series: &Series, part: &Part, types: &[String], reach: Reach) -> Language {
    match part {
        Part::Literal(text) => Language::OneOf(vec![text.clone()]),
        Part::Serial { serial, figure } => {
            let serial = &series.serials[*serial];
            match (reach, figure.style) {
                (Reach::Likely, _) if serial.step > 1 || serial.start > 1 => {
                    let values = likely(serial.start, serial.step, serial.max);
                    let shown = |value| {
                        let mut text = String::new();
                        figure.push(&mut text, value).then_some(text)
                    };
                    Language::OneOf(values.into_iter().filter_map(shown).collect())
                }
                (_, Style::Digits) => {
                    Language::Number { least: 1, most: serial.max, width: figure.width }
                }
                (_, Style::Letters) => {
                    Language::Letters { least: figure.width, most: figure.chars(serial.max) }
                }
            }
        }
        Part::Phase => Language::Value(ValueRule::printable()),
        Part::Snowflake => {
            let least = if reach == Reach::Likely { LIKELY_ID } else { 0 };
            Language::Number { least, most: i64::MAX.unsigned_abs(), width: SNOWFLAKE_DIGITS }
        }
        Part::Check(Check::Mod37) => {
            Language::OneOf(('0'..='9').chain('A'..='Z').map(String::from).collect())
        }
        Part::Check(check) => {
            let most = if check.width() == 1 { 9 } else { 99 };
            Language::Number { least: 0, most, width: check.width() }
        }
        Part::Variable(index) => match (reach, listed(series, *index)) {
            (Reach::Likely, Some(codes)) => Language::OneOf(codes),
            _ => Language::Value(series.variables[*index].rule.clone()),
        },
        // A table has whatever codes it is given: new rows, and other codes of those there are.
        Part::Project | Part::Type(_) if reach == Reach::Everything && tabled(series, part) => {
            Language::Value(ValueRule::printable())
        }
        Part::Project if series.definition.serves.projects.is_empty() => {
            Language::Value(ValueRule::printable())
        }
        Part::Project => Language::OneOf(series.definition.serves.projects.clone()),
        Part::Type(_) => Language::OneOf(types.to_vec()),
        Part::Date(field) => match (reach, field.is_time()) {
            (Reach::Likely, false) => Language::OneOf(moments::shown(*field)),
            _ => {
                let (least, most) = field.bounds();
                let most = u64::try_from(most).unwrap_or(NUMBER_MAX);
                Language::Number { least: u64::from(least != 0), most, width: field.width() }
            }
        },
    }
}

/// Originators or sub types that a series lists, if a variable holds them and may show any.
fn listed(series: &Series, variable: usize) -> Option<Vec<String>> {
    let (variable, serves) = (&series.variables[variable], &series.definition.serves);
    let codes = match variable.name.as_str() {
        SUB_TYPE => &serves.sub_types,
        name if ORIGINATORS.contains(&name) => &serves.originators,
        _ => return None,
    };
    let fits = |code: &&String| variable.rule.check("", code).is_ok();
    let codes: Vec<String> = codes.iter().filter(fits).cloned().collect();
    (!codes.is_empty()).then_some(codes)
}

/// Whether a part shows codes of a table.
fn tabled(series: &Series, part: &Part) -> bool {
    matches!(shows(part), Shows::Dimension(dimension) if series.table_of(dimension).is_some())
}

/// What a part tells.
pub(super) fn shows(part: &Part) -> Shows {
    match part {
        // Check characters follow from what stands to their left.
        Part::Literal(_) | Part::Check(_) => Shows::Nothing,
        Part::Phase => Shows::Phase,
        Part::Snowflake => Shows::Id,
        Part::Serial { serial, .. } => Shows::Serial(*serial),
        Part::Variable(index) => Shows::Dimension(Dimension::Variable(*index)),
        Part::Project => Shows::Dimension(Dimension::Project),
        Part::Type(_) => Shows::Dimension(Dimension::Type),
        Part::Date(field) => Shows::Date(*field),
    }
}

/// The text that every number of a series begins with.
pub(super) fn head(series: &Series) -> &str {
    match series.parts.first() {
        Some(Part::Literal(text)) => text,
        _ => "",
    }
}

/// The value of a serial that a part shows.
pub(super) fn serial_value(part: &Part, shown: &str) -> Option<u64> {
    match part {
        Part::Serial { figure, .. } => figure.read(&shown.chars().collect::<Vec<_>>()),
        _ => None,
    }
}

/// A part as an administrator knows it.
pub(super) fn name(series: &Series, part: &Part) -> String {
    match part {
        Part::Literal(text) => format!("{text:?}"),
        Part::Serial { serial, .. } => format!("serial {}", series.serials[*serial].name),
        Part::Variable(index) => format!("{{{}}}", series.variables[*index].name),
        Part::Project => "{PROJECT}".into(),
        Part::Type(token) => format!("{{{token}}}"),
        Part::Phase => "{PHASE}".into(),
        Part::Snowflake => "{SNOWFLAKE}".into(),
        Part::Date(_) => "the date".into(),
        Part::Check(_) => "{CHECK}".into(),
    }
}

/// Values that a serial reaches: some of each number of digits, the last ones among them.
fn likely(start: u64, step: u64, max: u64) -> Vec<u64> {
    let mut values = Vec::new();
    let digits = u32::try_from(Figure::PLAIN.chars(start)).unwrap_or(1);
    let (mut from, mut power) = (start, 10_u64.pow(digits));
    while from <= max {
        let most = max.min(power - 1);
        let count = (most - from) / step + 1;
        let some = (0..count.min(LIKELY_VALUES)).chain(count.saturating_sub(LIKELY_VALUES)..count);
        values.extend(some.map(|index| from + index * step));
        from = from.saturating_add(count * step);
        while power <= from {
            power = power.saturating_mul(10);
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::super::super::Snowflake;
    use super::*;

    #[test]
    fn likely_ids_are_of_times_to_come() {
        let digits: Vec<char> = format!("{LIKELY_ID:019}").chars().collect();
        let first = Snowflake::read(&digits).expect("an id");
        assert_eq!(first.time().to_string(), "2025-01-01T00:00:00Z");
    }

    #[test]
    fn likely_values_lie_on_the_step_and_within_the_maximum() {
        assert_eq!(likely(5, 7, 40), [5, 12, 19, 26, 33, 40]);
        assert_eq!(likely(1000, 1000, 2500), [1000, 2000]);
        let many = likely(3, 10, NUMBER_MAX);
        assert!(many.len() < 2000 && many.iter().all(|value| value % 10 == 3));
        assert!(many.iter().any(|value| Figure::PLAIN.chars(*value) == 16));
    }
}
