//! Which period the time elements of an expression name, and so when its counters restart.

use super::super::Reset;
use super::super::pattern::DateField;

/// The finest period that the fields name together: a new one shows in the text exactly when a new
/// counter begins. If no reset does that, the culprit and the reason.
pub(super) fn reset_of(fields: &[DateField]) -> Result<Reset, (DateField, &'static str)> {
    use DateField::{Day, DayOfYear, Month, Quarter, Week, WeekYear};
    let shows = |field: DateField| fields.contains(&field);
    let find = |wanted: fn(&DateField) -> bool| fields.iter().copied().find(wanted);
    let year = find(|f| matches!(f, DateField::Year(_) | DateField::YearOfCentury)).is_some();
    if year && (shows(DayOfYear) || (shows(Month) && shows(Day))) {
        return time_of(fields);
    }
    if let Some(time) = find(|f| f.is_time()) {
        return Err((time, "a time of day without its day comes again; show yyyyMMdd before it"));
    }
    if let Some(day) = find(|f| matches!(f, Day | DayOfYear)) {
        return Err((day, "a day without year and month comes again; show yyyyMMdd"));
    }
    if shows(WeekYear) || shows(Week) {
        // A week is part of no month, and of no year but its own.
        let alone = shows(WeekYear) && shows(Week) && !year && !shows(Month) && !shows(Quarter);
        let why = "a week goes with its own year alone; show YYYYww, or yyyyMMdd";
        return if alone { Ok(Reset::Week) } else { Err((WeekYear, why)) };
    }
    match (year, shows(Month), shows(Quarter)) {
        (true, true, _) => Ok(Reset::Month),
        (true, false, true) => Ok(Reset::Quarter),
        (true, false, false) => Ok(Reset::Year),
        (false, true, _) => Err((Month, "a month without its year comes again; show yyyyMM")),
        (false, _, true) => Err((Quarter, "a quarter without its year comes again; show yyyyQ")),
        (false, false, false) => Ok(Reset::None),
    }
}

/// The finest part of the time of day that is shown as a whole.
fn time_of(fields: &[DateField]) -> Result<Reset, (DateField, &'static str)> {
    use DateField::{Hour, Millisecond, Minute, Second};
    let shows = |field: DateField| fields.contains(&field);
    if shows(Millisecond) {
        return Err((Millisecond, "no counter begins anew by the millisecond; show HHmmss"));
    }
    match (shows(Hour), shows(Minute), shows(Second)) {
        (false, false, false) => Ok(Reset::Day),
        (true, false, false) => Ok(Reset::Hour),
        (true, true, false) => Ok(Reset::Minute),
        (true, true, true) => Ok(Reset::Second),
        (_, false, true) => Err((Second, "a second without its minute comes again; show HHmmss")),
        (false, true, _) => Err((Minute, "a minute without its hour comes again; show HHmm")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::pattern::{PatternPiece, parse_pattern};
    use super::*;

    fn reset(pattern: &str) -> Result<Reset, DateField> {
        let field = |piece| match piece {
            PatternPiece::Field(field) => Some(field),
            PatternPiece::Literal(_) => None,
        };
        let fields: Vec<DateField> =
            parse_pattern(pattern).expect("a pattern").into_iter().filter_map(field).collect();
        reset_of(&fields).map_err(|(field, _)| field)
    }

    #[test]
    fn the_finest_part_that_is_shown_names_the_period() {
        assert_eq!(reset_of(&[]), Ok(Reset::None));
        for (pattern, expected) in [
            ("yyyy", Reset::Year),
            ("yy", Reset::Year),
            ("yyyyMM", Reset::Month),
            ("MM.yy", Reset::Month),
            ("yyyyMMQ", Reset::Month),
            ("yyyyMMdd", Reset::Day),
            ("ddMMyyyy", Reset::Day),
            ("yyyyDDD", Reset::Day),
            ("yyyyMMddYYYYww", Reset::Day),
            ("yyyyMMddHH", Reset::Hour),
            ("yyyyDDDHHmm", Reset::Minute),
            ("yyyyMMddHHmmss", Reset::Second),
            ("YYYYww", Reset::Week),
            ("yyyyQ", Reset::Quarter),
        ] {
            assert_eq!(reset(pattern), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn parts_that_come_again_or_that_no_counter_follows_are_named() {
        for (pattern, culprit) in [
            ("MM", DateField::Month),
            ("MMdd", DateField::Day),
            ("yyyydd", DateField::Day),
            ("DDD", DateField::DayOfYear),
            ("HHmm", DateField::Hour),
            ("yyyyMMHH", DateField::Hour),
            ("yyyyMMddss", DateField::Second),
            ("yyyyMMddmm", DateField::Minute),
            ("yyyyMMddHHmmssSSS", DateField::Millisecond),
            ("yyyyMMYYYYww", DateField::WeekYear),
            ("Q", DateField::Quarter),
        ] {
            assert_eq!(reset(pattern), Err(culprit), "{pattern}");
        }
    }
}
