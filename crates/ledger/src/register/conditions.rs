//! Conditions of searches on the rows `i` of the journal and the revisions `r` of their numbers:
//! texts and times, variables, and periods of series.

use unicode_normalization::UnicodeNormalization as _;

use crate::query::QueryBuilder;
use crate::{JournalFilter, SeriesPeriod};

/// Adds the number, its beginning and a part of it, and the time, each as a filter wants it of a
/// column.
pub(crate) fn push_text_and_time(
    query: &mut QueryBuilder<'_>,
    (number, time): (&str, &str),
    filter: &JournalFilter,
) {
    if let Some(wanted) = &filter.number {
        query.push(" and ").push(number).push(" = ").push_bind(wanted.clone());
    }
    if let Some(prefix) = &filter.number_prefix {
        query.push(" and ").push(number).push(" >= ").push_bind(prefix.clone());
        if let Some(end) = end_of(prefix) {
            query.push(" and ").push(number).push(" < ").push_bind(end);
        }
    }
    if let Some(part) = &filter.number_part {
        // Each engine has this one, and takes no character for another.
        query.push(" and replace(").push(number).push(", ").push_bind(part.clone());
        query.push(", '') <> ").push(number);
    }
    for (sign, bound) in [(" >= ", filter.from_us), (" < ", filter.until_us)] {
        if let Some(bound) = bound {
            query.push(" and ").push(time).push(sign).push_bind(bound);
        }
    }
}

/// Adds that a variable of one of these names has a value.
pub(crate) fn push_variable(query: &mut QueryBuilder<'_>, names: &[&str], value: &str) {
    let mut before = " and (";
    for name in names {
        for value in spellings(value) {
            // As the column contains it: within another text its quotes would be escaped.
            let (name, value) = (serde_json::Value::from(*name), serde_json::Value::from(value));
            query.push(before).push("replace(i.context, ").push_bind(format!("{name}:{value}"));
            query.push(", '') <> i.context");
            before = " or ";
        }
    }
    query.push(")");
}

/// Adds that a time is within the periods of some series.
pub(crate) fn push_periods(query: &mut QueryBuilder<'_>, time: &str, periods: &[SeriesPeriod]) {
    for SeriesPeriod { series, from_us, until_us } in periods {
        for (sign, bound) in [(" >= ", from_us), (" < ", until_us)] {
            let Some(bound) = bound else { continue };
            query.push(" and (").push(time).push(sign).push_bind(*bound);
            query.push(" or not (i.series_id").push_among(series.clone()).push("))");
        }
    }
}

/// A text of a request as the journal may have it: it keeps what was sent as it was.
pub(crate) fn spellings(text: &str) -> [String; 2] {
    [text.nfc().collect(), text.nfd().collect()]
}

/// The first text after all those that begin so; `None` where every later one does. Texts are
/// ordered by their bytes in each engine, which is the order of their characters.
fn end_of(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        // No text holds what lies between the two.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_first_text_that_does_not_begin_so() {
        for (prefix, end) in [
            ("A-1", Some("A-2")),
            ("ก", Some("ข")),
            ("a\u{d7ff}", Some("a\u{e000}")),
            ("a\u{10ffff}", Some("b")),
            ("\u{10ffff}", None),
        ] {
            assert_eq!(end_of(prefix).as_deref(), end, "{prefix}");
        }
    }
}
