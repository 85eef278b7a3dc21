//! Puts a date together from the fields that a number shows, as far as they determine it. Reads no
//! clock: a date that is not shown is not guessed.

use jiff::civil::{Date, ISOWeekDate, Weekday};

use super::pattern::DateField;
use super::period::FiscalYear;

/// A leap year, for days whose year is not shown.
const LEAP_YEAR: i16 = 2000;

/// What date fields show together, each part as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// The date in text.
    pub(super) date: Option<String>,
    /// The time of day in text.
    pub(super) time: Option<String>,
    /// The common year in which the fiscal year shown ends.
    pub(super) fiscal_year: Option<i16>,
}

/// Puts fields together; `None` if they contradict each other or name a day that does not exist.
pub(super) fn assemble(fields: &[(DateField, i64)]) -> Option<Moment> {
    let agree = |(field, value): &(DateField, i64)| value_of(fields, *field) == Some(*value);
    if !fields.iter().all(agree) {
        return None;
    }
    let mut years = fields.iter().filter_map(|(field, shown)| field.fiscal_year(*shown));
    let fiscal = years.next();
    if years.any(|other| Some(other) != fiscal) {
        return None;
    }
    let date = date(fields, fiscal)?;
    Some(Moment { date, time: time(fields), fiscal_year: fiscal.map(|(_, year)| year) })
}

/// The value of the first field of that kind.
fn value_of(fields: &[(DateField, i64)], wanted: DateField) -> Option<i64> {
    fields.iter().find(|(field, _)| *field == wanted).map(|(_, value)| *value)
}

/// The common year, from the field that determines it best; the inner `None` if no year is shown,
/// the outer one if two eras name different years.
fn year(fields: &[(DateField, i64)]) -> Option<Option<i16>> {
    let full = fields.iter().filter(|(field, _)| matches!(field, DateField::Year(_)));
    let short = fields.iter().filter(|(field, _)| matches!(field, DateField::YearOfCentury));
    let Some((field, shown)) = full.chain(short).next() else { return Some(None) };
    let year = i16::try_from(field.common_year(*shown)?).ok()?;
    let at = Date::new(year, 1, 1).ok()?.to_datetime(jiff::civil::Time::midnight());
    let agrees = |(other, value): &(DateField, i64)| match other {
        DateField::Year(_) | DateField::YearOfCentury => other.value(at) == Some(*value),
        _ => true,
    };
    (year >= 1 && fields.iter().all(agrees)).then_some(Some(year))
}

/// The calendar year if a fiscal year is shown too: the year of that fiscal year that contains the
/// months shown. The outer `None` if none contains them.
fn year_within(
    (fiscal, end): (FiscalYear, i16),
    year: Option<i16>,
    month: Option<i8>,
    quarter: Option<i8>,
) -> Option<Option<i16>> {
    let months = match (month, quarter) {
        (Some(month), _) => month..=month,
        (None, Some(quarter)) => 3 * quarter - 2..=3 * quarter,
        (None, None) => 1..=12,
    };
    let holds = |year: i16| year >= 1 && months.clone().any(|month| fiscal.of(year, month) == end);
    match year {
        Some(year) => holds(year).then_some(Some(year)),
        None => match (holds(end - fiscal.years_before()), holds(end)) {
            (false, false) => None,
            (true, true) if fiscal.years_before() > 0 => Some(None),
            (false, true) | (true, true) => Some(Some(end)),
            (true, false) => Some(Some(end - fiscal.years_before())),
        },
    }
}

/// The date, as far as it is shown; the outer `None` if the fields contradict each other.
fn date(fields: &[(DateField, i64)], fiscal: Option<(FiscalYear, i16)>) -> Option<Option<String>> {
    let small = |field| value_of(fields, field).and_then(|value| i8::try_from(value).ok());
    let (month, day) = (small(DateField::Month), small(DateField::Day));
    let quarter = small(DateField::Quarter);
    let mut year = year(fields)?;
    if let Some(fiscal) = fiscal {
        year = year_within(fiscal, year, month, quarter)?;
    }
    let day_of_year = value_of(fields, DateField::DayOfYear).map(i16::try_from);
    let whole = match (year, month, day, day_of_year) {
        (Some(year), Some(month), Some(day), _) => Some(Date::new(year, month, day).ok()?),
        (Some(year), _, _, Some(of_year)) => {
            Some(Date::new(year, 1, 1).ok()?.with().day_of_year(of_year.ok()?).build().ok()?)
        }
        _ => None,
    };
    // A whole day determines every other field, however few of them made it.
    if let Some(date) = whole {
        let at = date.to_datetime(jiff::civil::Time::midnight());
        let agrees =
            |(field, value): &(DateField, i64)| field.is_time() || field.value(at) == Some(*value);
        return fields.iter().all(agrees).then(|| Some(date.to_string()));
    }
    // Without a year, 29 February may exist.
    if let (Some(month), Some(day)) = (month, day) {
        Date::new(LEAP_YEAR, month, day).ok()?;
    }
    if let (Some(month), Some(quarter)) = (month, quarter)
        && (month - 1) / 3 + 1 != quarter
    {
        return None;
    }
    let week = match (value_of(fields, DateField::WeekYear), small(DateField::Week)) {
        (Some(year), Some(week)) => {
            let year = i16::try_from(year).ok()?;
            // Not every year has a week 53.
            ISOWeekDate::new(year, week, Weekday::Monday).ok()?;
            Some(format!("{year:04}-W{week:02}"))
        }
        _ => None,
    };
    // The most exact of the remaining forms.
    Some(match (year, month, quarter) {
        (Some(year), Some(month), _) => Some(format!("{year:04}-{month:02}")),
        (Some(year), None, Some(quarter)) => Some(format!("{year:04}-Q{quarter}")),
        (Some(year), None, None) => week.or_else(|| Some(format!("{year:04}"))),
        (None, _, _) => week,
    })
}

/// The time of day, from the hour to the finest field without a break.
fn time(fields: &[(DateField, i64)]) -> Option<String> {
    let mut text = format!("{:02}", value_of(fields, DateField::Hour)?);
    for (separator, field) in
        [(':', DateField::Minute), (':', DateField::Second), ('.', DateField::Millisecond)]
    {
        let Some(value) = value_of(fields, field) else { break };
        text.push(separator);
        text.push_str(&format!("{value:0width$}", width = field.width()));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Era, PatternPiece, parse_pattern};
    use super::*;

    fn read(pattern: &str, values: &[i64]) -> Option<Moment> {
        let field = |piece| match piece {
            PatternPiece::Field(field) => Some(field),
            PatternPiece::Literal(_) => None,
        };
        let fields = parse_pattern(pattern).unwrap().into_iter().filter_map(field);
        assemble(&fields.zip(values.iter().copied()).collect::<Vec<_>>())
    }

    #[test]
    fn dates_come_back_as_far_as_they_are_shown() {
        for (pattern, values, date, time) in [
            ("yyyyMMdd", vec![2024, 2, 29], Some("2024-02-29"), None),
            ("yyMMdd", vec![25, 12, 2], Some("2025-12-02"), None),
            ("yyyyDDD", vec![2024, 366], Some("2024-12-31"), None),
            ("yyyyMM", vec![2024, 2], Some("2024-02"), None),
            ("yyyyQ", vec![2024, 4], Some("2024-Q4"), None),
            ("yyyy", vec![2024], Some("2024"), None),
            ("YYYYww", vec![2020, 53], Some("2020-W53"), None),
            ("MMdd", vec![2, 29], None, None),
            ("HHmm", vec![9, 5], None, Some("09:05")),
            ("HHmmssSSS", vec![9, 5, 7, 30], None, Some("09:05:07.030")),
            ("yyyyMMddYYYYww", vec![2024, 12, 30, 2025, 1], Some("2024-12-30"), None),
        ] {
            let (date, time) = (date.map(String::from), time.map(String::from));
            let expected = Moment { date, time, fiscal_year: None };
            assert_eq!(read(pattern, &values), Some(expected), "{pattern} {values:?}");
        }
    }

    #[test]
    fn a_fiscal_year_tells_the_year_of_its_months() {
        use DateField::{Day, FiscalStart, FiscalYear as End, Month, Quarter, Year};
        let of = |start_month| FiscalYear { start_month };
        let (april, calendar) = (End(Era::Common, of(4)), End(Era::Common, of(1)));
        let thai = End(Era::Buddhist, of(10));
        for (fields, date) in [
            (&[(april, 2026)][..], None),
            (&[(calendar, 2026)], Some("2026")),
            (&[(april, 2026), (Month, 3)], Some("2026-03")),
            (&[(april, 2026), (Month, 4)], Some("2025-04")),
            (&[(april, 2026), (Quarter, 1)], Some("2026-Q1")),
            (&[(april, 2026), (Quarter, 2)], Some("2025-Q2")),
            (&[(thai, 2569), (Month, 10), (Day, 1)], Some("2025-10-01")),
            (&[(april, 2025), (Month, 2), (Day, 28)], Some("2025-02-28")),
            (&[(april, 2026), (Year(Era::Common), 2025)], Some("2025")),
            (&[(FiscalStart(Era::Common, of(4)), 2025), (april, 2026)], None),
        ] {
            let moment = assemble(fields).unwrap();
            assert_eq!(moment.date.as_deref(), date, "{fields:?}");
            assert!(moment.fiscal_year.is_some(), "{fields:?}");
        }
        for fields in [
            &[(april, 2026), (Year(Era::Common), 2024)][..],
            &[(april, 2026), (Year(Era::Common), 2025), (Month, 3)],
            &[(april, 2025), (Month, 2), (Day, 29)],
            &[(FiscalStart(Era::Common, of(4)), 2026), (april, 2026)],
            &[(calendar, 2026), (Year(Era::Common), 2025)],
        ] {
            assert_eq!(assemble(fields), None, "{fields:?}");
        }
    }

    #[test]
    fn a_day_that_does_not_exist_is_no_reading() {
        for (pattern, values) in [
            ("yyyyMMdd", vec![2023, 2, 29]),
            ("yyyyDDD", vec![2023, 366]),
            ("MMdd", vec![4, 31]),
            ("YYYYww", vec![2021, 53]),
            ("yyyyMMQ", vec![2024, 2, 2]),
            ("yyyyMMddQ", vec![2024, 2, 1, 2]),
            ("MMQ", vec![12, 1]),
            ("yyyy-yyyy", vec![2024, 2025]),
        ] {
            assert_eq!(read(pattern, &values), None, "{pattern} {values:?}");
        }
    }

    #[test]
    fn years_of_two_eras_must_be_the_same_year() {
        let (common, buddhist) = (DateField::Year(Era::Common), DateField::Year(Era::Buddhist));
        let both = |a, b| assemble(&[(common, a), (buddhist, b)])?.date;
        assert_eq!(both(2025, 2568).as_deref(), Some("2025"));
        assert_eq!(both(2025, 2567), None);
        assert_eq!(assemble(&[(buddhist, 500)]), None);
        assert_eq!(assemble(&[(common, 2025), (DateField::YearOfCentury, 24)]), None);
    }
}
