//! Which period the time elements of an expression name, and so when its counters begin anew. The
//! one place to extend when counters learn to reset more often.

use super::super::Reset;
use super::super::pattern::DateField;

/// The finest period that the fields name together: a new one shows in the text exactly when a new
/// counter begins. The culprit and the reason where no reset does that.
pub(super) fn reset_of(fields: &[DateField]) -> Result<Reset, (DateField, &'static str)> {
    use DateField::{Day, DayOfYear, Month, Quarter, Week, WeekYear};
    let find = |wanted: fn(&DateField) -> bool| fields.iter().copied().find(wanted);
    let year = find(|f| matches!(f, DateField::Year(_) | DateField::YearOfCentury)).is_some();
    let month = find(|f| *f == Month);
    let day = find(|f| matches!(f, Day | DayOfYear));
    let whole_day =
        year && (fields.contains(&DayOfYear) || (month.is_some() && fields.contains(&Day)));
    if let Some(time) = find(|f| f.is_time()) {
        return Err((time, "no counter begins anew by the time of day; show the day at most"));
    }
    if whole_day {
        return Ok(Reset::Day);
    }
    if let Some(day) = day {
        return Err((day, "a day without year and month comes again; show yyyyMMdd"));
    }
    if let Some(week) = find(|f| matches!(f, Week | WeekYear)) {
        return Err((week, "no counter begins anew by the week; show yyyyMMdd or yyyyMM"));
    }
    match (year, month) {
        (true, Some(_)) => return Ok(Reset::Month),
        (false, Some(month)) => {
            return Err((month, "a month without its year comes again; show yyyyMM"));
        }
        (_, None) => {}
    }
    if let Some(quarter) = find(|f| *f == Quarter) {
        return Err((quarter, "no counter begins anew by the quarter; show yyyyMM or yyyy"));
    }
    Ok(if year { Reset::Year } else { Reset::None })
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
            ("yyyyMMddHH", DateField::Hour),
            ("HHmm", DateField::Hour),
            ("yyyyMMddss", DateField::Second),
            ("YYYYww", DateField::WeekYear),
            ("yyyyMMYYYYww", DateField::WeekYear),
            ("yyyyQ", DateField::Quarter),
            ("Q", DateField::Quarter),
        ] {
            assert_eq!(reset(pattern), Err(culprit), "{pattern}");
        }
    }
}
