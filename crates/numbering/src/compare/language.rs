//! What a part of a number can look like, and what it shows. [`shows`] and [`fragment`] name each
//! kind of part, so that a new one does not compile without an answer. Which parts show the same is
//! decided in `pairing`, their names in `refusal`.

use super::super::check::Check;
use super::super::pattern::DateField;
use super::super::serial_format::SerialFormat;
use super::super::series::Dimension;
use super::super::snowflake::SNOWFLAKE_DIGITS;
use super::super::template::Part;
use super::super::value::ValueRule;
use super::super::{Series, Style};
use super::automaton::Fragment;
use super::chars::CharSet;
use super::requests::{Requests, axis_of};

/// The digits of every number.
const DIGITS: (char, char) = ('0', '9');

/// What a part shows of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Nothing beyond what the rest shows.
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

/// What a part shows.
pub(super) fn shows(part: &Part) -> Shows {
    match part {
        // Check characters follow from everything to their left.
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

/// The texts that a part can show in these requests, at least; `least`: the first value that each
/// serial may give.
pub(super) fn fragment(
    series: &Series,
    part: &Part,
    least: &[u64],
    requests: &Requests<'_>,
) -> Fragment {
    match part {
        Part::Literal(text) => Fragment::tree([text.as_str()]),
        Part::Serial { serial, format } => {
            let signs = if format.style == Style::Digits { DIGITS } else { ('A', 'Z') };
            let most = series.serials[*serial].max;
            let least = least[*serial].clamp(1, most);
            let (least, most) = (written(*format, least), written(*format, most));
            Fragment::between(signs, &least, &most, format.width)
        }
        Part::Date(field) => {
            let (least, most) = field.bounds();
            let written = |value: i64| format!("{value:0width$}", width = field.width());
            Fragment::between(DIGITS, &written(least), &written(most), field.width())
        }
        Part::Snowflake => {
            let written = |value: i64| format!("{value:0SNOWFLAKE_DIGITS$}");
            Fragment::between(DIGITS, &written(0), &written(i64::MAX), SNOWFLAKE_DIGITS)
        }
        Part::Check(check) => {
            let signs = [DIGITS, ('A', 'Z')];
            let signs = if *check == Check::Mod37 { &signs[..] } else { &signs[..1] };
            Fragment::chain(CharSet::within(signs), check.width())
        }
        Part::Phase => Fragment::value(&ValueRule::printable()),
        Part::Project => dimension(series, Dimension::Project, requests),
        Part::Type(_) => dimension(series, Dimension::Type, requests),
        Part::Variable(index) => dimension(series, Dimension::Variable(*index), requests),
    }
}

/// A value of a serial as a number shows it.
pub(super) fn written(format: SerialFormat, value: u64) -> String {
    let mut text = String::new();
    let fits = format.push(&mut text, value);
    assert!(fits, "a serial's values fit its format");
    text
}

/// The values that a dimension can have in these requests. A table may get any codes.
pub(super) fn dimension(
    series: &Series,
    dimension: Dimension,
    requests: &Requests<'_>,
) -> Fragment {
    let rule = rule_of(series, dimension);
    let codes = axis_of(series, dimension).and_then(|axis| requests.codes(axis));
    match codes.filter(|_| series.table_of(dimension).is_none()) {
        Some(codes) => {
            let fits = |code: &&str| rule.check("", code).is_ok();
            Fragment::tree(codes.iter().copied().filter(fits))
        }
        None => Fragment::value(&rule),
    }
}

/// Which values a dimension takes.
pub(super) fn rule_of(series: &Series, dimension: Dimension) -> ValueRule {
    match dimension {
        Dimension::Variable(index) => series.variables[index].rule.clone(),
        Dimension::Project | Dimension::Type => ValueRule::printable(),
    }
}

/// The name of a dimension in keys and scopes, with or without a table.
pub(super) fn name_of(series: &Series, dimension: Dimension) -> &str {
    match dimension {
        Dimension::Project => "project",
        Dimension::Type => "type",
        Dimension::Variable(index) => &series.variables[index].name,
    }
}

/// A part in the administrator's terms.
pub(super) fn part_name(series: &Series, part: &Part) -> String {
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
