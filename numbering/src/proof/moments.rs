//! Which periods the shown fields of a date tell apart.
//!
//! Looks at every day of 56 years: two rounds of the 28 years after which weekdays and leap years
//! repeat. Two days that show the same in longer time do so in this time too: the fields that name
//! a year name it once, and all others repeat with the rounds.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use jiff::civil::{Date, DateTime, date};
use jiff::{SignedDuration, ToSpan};

use super::super::pattern::DateField;
use super::super::template::Part;
use super::super::{Reset, Series};

/// The first day looked at: a year near the present, so that examples look familiar.
const FIRST_DAY: Date = date(2025, 1, 1);

/// How many years are looked at.
const YEARS: i32 = 56;

/// Every day looked at, at noon.
static DAYS: LazyLock<Vec<DateTime>> = LazyLock::new(|| {
    let end = FIRST_DAY.saturating_add(YEARS.years());
    let days = FIRST_DAY.series(1.day()).take_while(|day| *day < end);
    days.map(noon).collect()
});

/// A time of day that every day has, wherever clocks are changed.
fn noon(day: Date) -> DateTime {
    day.at(12, 0, 0, 0)
}

/// Steps from noon that change one unit of the time of day each, in seconds.
const STEPS_S: [i64; 4] = [0, 1, 60, 3_600];

/// Any moment, the same in every run.
pub(super) fn first() -> DateTime {
    noon(FIRST_DAY)
}

/// The fields of the date that a series shows, each once.
pub(super) fn fields(series: &Series) -> Vec<DateField> {
    let mut fields: Vec<DateField> = Vec::new();
    for part in &series.parts {
        if let Part::Date(field) = part
            && !fields.contains(field)
        {
            fields.push(*field);
        }
    }
    fields
}

/// The texts of a field in the time looked at.
pub(super) fn shown(field: DateField) -> Vec<String> {
    let values: BTreeSet<i64> = DAYS.iter().filter_map(|at| field.value(*at)).collect();
    values.into_iter().map(|value| format!("{value:0width$}", width = field.width())).collect()
}

/// The period of a serial's counter at a moment.
pub(super) fn period(series: &Series, serial: usize, at: DateTime) -> Option<String> {
    series.counters[serial].reset.period(at, series.fiscal).map(|(_, value)| value)
}

/// Fields that determine the period of a serial's counter, as few as are easily found; `None` where
/// all that are shown do not determine it. A phase is no time.
pub(super) fn keys(series: &Series, serial: usize) -> Option<Vec<DateField>> {
    if matches!(series.counters[serial].reset, Reset::None | Reset::Phase) {
        return Some(Vec::new());
    }
    let mut keys = fields(series);
    if apart(series, &[serial], &keys).is_some() {
        return None;
    }
    // The last fields are the finest, as a rule: without them first.
    for index in (0..keys.len()).rev() {
        let mut fewer = keys.clone();
        fewer.remove(index);
        if apart(series, &[serial], &fewer).is_none() {
            keys = fewer;
        }
    }
    Some(keys)
}

/// Two moments that show the same and lie in different periods of each of these serials' counters.
pub(super) fn apart(
    series: &Series,
    serials: &[usize],
    shown: &[DateField],
) -> Option<(DateTime, DateTime)> {
    let mut firsts: HashMap<Vec<Option<i64>>, Vec<DateTime>> = HashMap::new();
    let periods = |at| serials.iter().map(move |serial| period(series, *serial, at));
    let by_time = serials.iter().any(|serial| series.counters[*serial].reset.is_time());
    let steps = if by_time { &STEPS_S[..] } else { &STEPS_S[..1] };
    let times = |day: &DateTime| {
        let day = *day;
        steps.iter().map(move |seconds| day.saturating_add(SignedDuration::from_secs(*seconds)))
    };
    for at in DAYS.iter().flat_map(times) {
        let shows: Vec<Option<i64>> = shown.iter().map(|field| field.value(at)).collect();
        let like = firsts.entry(shows).or_default();
        let differs = |before: &&DateTime| periods(**before).zip(periods(at)).all(|(a, b)| a != b);
        if let Some(before) = like.iter().find(differs) {
            return Some((*before, at));
        }
        // One moment of each group of periods is enough to compare with; a few tell the rest.
        if like.len() < LIKE_MAX && like.iter().all(|before| !periods(*before).eq(periods(at))) {
            like.push(at);
        }
    }
    None
}

/// Days ahead within which another period is looked for, and years.
const DAYS_AHEAD: i64 = 370;
const YEARS_AHEAD: i32 = 28;

/// A moment that shows what `at` shows and is a wanted one; near it, if there is one.
pub(super) fn other(
    series: &Series,
    at: DateTime,
    is_wanted: impl Fn(DateTime) -> bool,
) -> Option<DateTime> {
    let times = STEPS_S.iter().map(|seconds| SignedDuration::from_secs(*seconds));
    let days = (1..=DAYS_AHEAD).map(|days| SignedDuration::from_hours(24 * days));
    let near = times.chain(days).filter_map(|further| at.checked_add(further).ok());
    let years = (1..=YEARS_AHEAD).filter_map(|years| at.checked_add(years.years()).ok());
    let shown = fields(series);
    let shows_same =
        |other: &DateTime| shown.iter().all(|field| field.value(*other) == field.value(at));
    near.chain(years).find(|other| shows_same(other) && is_wanted(*other))
}

/// Most moments that show the same and are kept to be compared with.
const LIKE_MAX: usize = 16;

/// Whether a field tells a year, of whatever kind.
pub(super) fn names_year(field: DateField) -> bool {
    year_of(field, 1).is_some()
}

/// What a field that tells a year shows near the present.
pub(super) fn near(field: DateField) -> Option<i64> {
    let of_first = year_of(field, 1)?;
    Some(i64::from(FIRST_DAY.year()) - of_first + 1)
}

/// The year that a field tells of, or one beside it.
pub(super) fn year_of(field: DateField, value: i64) -> Option<i64> {
    let fiscal = field.fiscal_year(value).map(|(_, year)| year.into());
    let week = (field == DateField::WeekYear).then_some(value);
    field.common_year(value).or(fiscal).or(week)
}

/// For a field that tells a year the value of a year near the present that has the same days, and
/// has them before it and behind; the value itself where there is none.
pub(super) fn like(field: DateField, value: i64) -> i64 {
    let days = |year: i64| {
        let first = |year: i64| Date::new(i16::try_from(year).ok()?, 1, 1).ok();
        let years = [first(year - 1)?, first(year)?, first(year + 1)?];
        Some((years[0].weekday(), years.map(Date::days_in_year)))
    };
    let Some(year) = year_of(field, value) else { return value };
    let Some(same) = days(year) else { return value };
    let first = i64::from(FIRST_DAY.year());
    let mut near = first..first + i64::from(YEARS);
    near.find(|near| days(*near) == Some(same)).map_or(value, |near| value + near - year)
}

/// A moment that shows these values; `None` only if there is none.
pub(super) fn find(fields: &[(DateField, i64)]) -> Option<DateTime> {
    let shows =
        |at: &DateTime| fields.iter().all(|(field, value)| field.value(*at) == Some(*value));
    let of_day = |at: &DateTime| {
        let days = fields.iter().filter(|(field, _)| !field.is_time());
        days.clone().all(|(field, value)| field.value(*at) == Some(*value))
    };
    let day = match fields.iter().find_map(|(field, value)| year_of(*field, *value)) {
        None => DAYS.iter().copied().find(of_day),
        Some(year) => {
            // A fiscal year may begin in the calendar year before, the year of weeks a few days
            // before it, and end as many after it.
            let years = [year, year - 1, year + 1].into_iter().filter(|year| *year >= 1);
            let firsts = years.filter_map(|year| Date::new(i16::try_from(year).ok()?, 1, 1).ok());
            let days = |first: Date| {
                first.series(1.day()).take(first.days_in_year().unsigned_abs().into())
            };
            firsts.flat_map(days).map(noon).find(of_day)
        }
    }?;
    let of = |wanted, otherwise| {
        let shown = fields.iter().find(|(field, _)| *field == wanted);
        i32::try_from(shown.map_or(otherwise, |(_, value)| *value)).ok()
    };
    let small = |wanted, otherwise| i8::try_from(of(wanted, otherwise)?).ok();
    let subsecond = of(DateField::Millisecond, 0)? * 1_000_000;
    let hour = small(DateField::Hour, 12)?;
    let (minute, second) = (small(DateField::Minute, 0)?, small(DateField::Second, 0)?);
    let at = DateTime::new(day.year(), day.month(), day.day(), hour, minute, second, subsecond);
    at.ok().filter(shows)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::series;
    use super::*;

    fn of(reset: Reset, pattern: &str) -> Series {
        series(|definition| {
            definition.template = format!("{pattern}-{{SEQ:3}}");
            definition.serials[0].reset = reset;
            definition.fiscal_year_start = Some(4);
        })
    }

    #[test]
    fn fields_that_determine_the_period_are_found() {
        use DateField::{Day, DayOfYear, Month, Week, WeekYear};
        let year = fields(&of(Reset::None, "{YEAR}"))[0];
        let fiscal = fields(&of(Reset::None, "{FY}"))[0];
        for (reset, pattern, expected) in [
            (Reset::None, "{YEAR}", Some(vec![])),
            (Reset::Year, "{YEAR}", Some(vec![year])),
            (Reset::Year, "{DATE:yyyyMMdd}", Some(vec![year])),
            (Reset::Year, "{DATE:MMdd}", None),
            (Reset::Year, "{DATE:YYYY'W'ww}", None),
            (Reset::Year, "{DATE:yyMM}", Some(vec![DateField::YearOfCentury])),
            (Reset::Month, "{DATE:yyyyMMdd}", Some(vec![year, Month])),
            (Reset::Month, "{DATE:yyyyDDD}", Some(vec![year, DayOfYear])),
            (Reset::Month, "{DATE:YYYYww}", None),
            (Reset::Month, "{DATE:yyyyQ}", None),
            (Reset::Quarter, "{DATE:yyyyQ}", Some(vec![year, DateField::Quarter])),
            (Reset::Quarter, "{DATE:yyyyMM}", Some(vec![year, Month])),
            (Reset::Week, "{DATE:YYYYww}", Some(vec![WeekYear, Week])),
            (Reset::Week, "{DATE:yyyyMM}", None),
            (Reset::FiscalYear, "{YEAR}", None),
            (Reset::FiscalYear, "{DATE:yyyyMM}", Some(vec![year, Month])),
            (Reset::FiscalYear, "{FY}", Some(vec![fiscal])),
            (Reset::Year, "{FY}", None),
            (Reset::Hour, "{DATE:yyyyMMdd}", None),
            (Reset::Hour, "{DATE:yyyyMMddHH}", Some(vec![year, Month, Day, DateField::Hour])),
            (Reset::Second, "{DATE:yyyyMMddHHmm}", None),
            (Reset::Second, "{DATE:yyyyMMddHH-ss}", None),
            (Reset::Phase, "{YEAR}", Some(vec![])),
            (Reset::Day, "{DATE:yyyyMMdd}", Some(vec![year, Month, Day])),
            (Reset::Day, "{DATE:yyyyMM}", None),
            (Reset::Day, "{DATE:YYYYww}", None),
            // The days of one week have different days of the month.
            (Reset::Day, "{DATE:YYYYwwddMM}", Some(vec![WeekYear, Week, Day])),
        ] {
            assert_eq!(keys(&of(reset, pattern), 0), expected, "{reset:?} {pattern}");
        }
    }

    #[test]
    fn a_moment_is_found_by_what_it_shows() {
        let month = find(&[(DateField::Month, 2), (DateField::Day, 29)]).expect("a leap day");
        assert_eq!(month.date(), date(2028, 2, 29));
        let year = fields(&of(Reset::None, "{YEAR:B.E.}"))[0];
        let shown = [(year, 2400), (DateField::DayOfYear, 60), (DateField::Hour, 9)];
        assert_eq!(find(&shown), Some(date(1857, 3, 1).at(9, 0, 0, 0)));
        assert_eq!(find(&[(DateField::Month, 2), (DateField::Day, 30)]), None);
        assert_eq!(find(&[(DateField::Hour, 24)]), None);
        let fiscal = fields(&of(Reset::None, "{FY}"))[0];
        let shown = [(fiscal, 2020), (DateField::Month, 5)];
        assert_eq!(find(&shown), Some(date(2019, 5, 1).at(12, 0, 0, 0)));
        let shown = [(DateField::WeekYear, 1992), (DateField::Week, 53), (DateField::Month, 1)];
        assert_eq!(find(&shown), Some(date(1993, 1, 1).at(12, 0, 0, 0)));
    }
}
