//! How long each kind of part may be when a text is read back: every possible length, as the places
//! after it.

use super::Snowflake;
use super::parse::Places;
use super::pattern::DateField;
use super::serial_format::{SERIAL_CHARS_MAX, SerialFormat, number};
use super::snowflake::SNOWFLAKE_DIGITS;
use super::value::ValueRule;

/// The place after `length` characters.
pub(super) fn bit(length: usize) -> Places {
    1 << (length - 1)
}

/// The length of `text`, if the rest begins with it.
pub(super) fn prefix(rest: &[char], text: &str) -> Option<usize> {
    let length = text.chars().count();
    let same = rest.len() >= length && text.chars().zip(rest).all(|(a, b)| a == *b);
    same.then_some(length)
}

/// The width, if the rest begins with this many ASCII digits: digits of other scripts look
/// different and would be another text for the same value.
fn digits(rest: &[char], width: usize) -> Option<usize> {
    let digits = rest.get(..width)?;
    digits.iter().all(char::is_ascii_digit).then_some(width)
}

/// The width of a date field, if its value can exist.
pub(super) fn date_field(rest: &[char], field: DateField) -> Option<usize> {
    let width = digits(rest, field.width())?;
    let (least, most) = field.bounds();
    let shown = i64::try_from(number(&rest[..width])?).ok()?;
    (least..=most).contains(&shown).then_some(width)
}

/// The id that the rest begins with.
pub(super) fn snowflake(rest: &[char]) -> Option<Snowflake> {
    Snowflake::read(rest.get(..SNOWFLAKE_DIGITS)?)
}

/// Every length that a serial's value may have.
pub(super) fn serial(rest: &[char], format: SerialFormat) -> Places {
    let most = rest.len().min(SERIAL_CHARS_MAX);
    let lengths = (format.width..=most).filter(|length| format.read(&rest[..*length]).is_some());
    lengths.fold(0, |places, length| places | bit(length))
}

/// Every length that the rule of a variable accepts.
pub(super) fn value(rest: &[char], rule: &ValueRule) -> Places {
    let (least, most) = rule.widths();
    let mut places = 0;
    for (index, character) in rest.iter().take(most).enumerate() {
        if !rule.takes(*character, index == 0) {
            break;
        }
        if index + 1 >= least && *character != ' ' {
            places |= bit(index + 1);
        }
    }
    places
}

/// The lengths of the known values that the rest begins with: types and projects are lists, which
/// keeps their tokens readable whatever characters they hold.
pub(super) fn one_of(rest: &[char], values: &[String]) -> Places {
    let lengths = values.iter().filter_map(|value| prefix(rest, value));
    lengths.fold(0, |places, length| places | bit(length))
}
