//! Which fields of a date determine the period of a counter.
//!
//! Examines every day of 29 years. If days show the same and lie in different periods, some such
//! days are of one year; of two consecutive years, if a fiscal year or a year of weeks is shown; or
//! of any two years, if no year is shown. Two consecutive years differ from others by the weekday
//! that they begin with, and by which of them is a leap year. Each kind begins once in 28 years,
//! the last of them in the 28th: its second year is the 29th. The tests count the kinds.

use std::sync::LazyLock;

use foldhash::HashMap;
use jiff::civil::{Date, DateTime, date};
use jiff::{SignedDuration, ToSpan};

use super::super::Reset;
use super::super::pattern::{DateField, Era};
use super::super::period::FiscalYear;
use super::effort::Effort;

/// The first day examined: a year near the present, so that examples look familiar.
pub(super) const FIRST_DAY: Date = date(2025, 1, 1);

/// How many years are examined: those after which the calendar repeats, and the one that follows
/// the last of them.
pub(super) const YEARS: i32 = 28 + 1;

/// Every day examined, at noon, which every day has wherever clocks are changed.
static DAYS: LazyLock<Vec<DateTime>> = LazyLock::new(|| {
    let end = FIRST_DAY.saturating_add(YEARS.years());
    let days = FIRST_DAY.series(1.day()).take_while(|day| *day < end);
    days.map(|day| day.at(12, 0, 0, 0)).collect()
});

/// Any moment, the same in every run.
pub(super) fn first() -> DateTime {
    DAYS[0]
}

/// Fields among those shown that determine the period of a counter, as few as are easily found.
/// Each version of a series reads a fiscal year as it defines it.
///
/// Spends effort for each day that it examines; its result is void if the effort is spent.
///
/// # Errors
/// Two moments that show the same and lie in different periods.
pub(super) fn determining(
    reset: Reset,
    fiscal: [FiscalYear; 2],
    shown: &[DateField],
    effort: &Effort<'_>,
) -> Result<Vec<DateField>, [DateTime; 2]> {
    let of_day = fiscal.map(|fiscal| fields_of_day(reset, fiscal));
    if of_day[0].is_empty() {
        return Ok(Vec::new());
    }
    if let Some(days) = apart(&of_day, shown, effort) {
        return Err(days);
    }
    let mut keys = shown.to_vec();
    // The last fields are usually the finest: try without them first.
    for index in (0..keys.len()).rev() {
        let mut fewer = keys.clone();
        fewer.remove(index);
        if apart(&of_day, &fewer, effort).is_none() {
            keys = fewer;
        }
    }
    for (field, unit) in &TIMES[..times_of(reset)] {
        if !shown.contains(field) {
            return Err([first(), first().saturating_add(*unit)]);
        }
        keys.push(*field);
    }
    Ok(keys)
}

/// The fields of the time of day, each with one unit of it.
const TIMES: [(DateField, SignedDuration); 3] = [
    (DateField::Hour, SignedDuration::from_secs(3_600)),
    (DateField::Minute, SignedDuration::from_secs(60)),
    (DateField::Second, SignedDuration::from_secs(1)),
];

/// The number of fields that name a period.
fn times_of(reset: Reset) -> usize {
    match reset {
        Reset::Hour => 1,
        Reset::Minute => 2,
        Reset::Second => 3,
        _ => 0,
    }
}

/// The fields that name the day, or the longer time, that a period is or lies in.
fn fields_of_day(reset: Reset, fiscal: FiscalYear) -> Vec<DateField> {
    use DateField::{Day, FiscalYear, Month, Quarter, Week, WeekYear, Year};
    const YEAR: DateField = Year(Era::Common);
    match reset {
        Reset::None | Reset::Phase => vec![],
        Reset::Second | Reset::Minute | Reset::Hour | Reset::Day => vec![YEAR, Month, Day],
        Reset::Week => vec![WeekYear, Week],
        Reset::Month => vec![YEAR, Month],
        Reset::Quarter => vec![YEAR, Quarter],
        Reset::Year => vec![YEAR],
        Reset::FiscalYear => vec![FiscalYear(Era::Common, fiscal)],
    }
}

/// What a day shows in some fields.
type Shown = Vec<Option<i64>>;

/// Two days that show the same and lie in different periods. The result is meaningless if the
/// effort does not suffice.
fn apart(
    of_day: &[Vec<DateField>; 2],
    shown: &[DateField],
    effort: &Effort<'_>,
) -> Option<[DateTime; 2]> {
    let fiscal = if of_day[0] == of_day[1] { &of_day[..1] } else { &of_day[..] };
    if let [fields] = fiscal
        && fields.iter().all(|field| shown.contains(field))
    {
        return None;
    }
    let mut known: HashMap<Shown, (DateTime, Shown)> = HashMap::default();
    let mut shows = Vec::new();
    for (at, fields) in DAYS.iter().flat_map(|at| fiscal.iter().map(move |fields| (*at, fields))) {
        // Half a step for each field of a day, and as much for the day.
        if !effort.spend(1 + shown.len() / 2) {
            return None;
        }
        shows.clear();
        shows.extend(shown.iter().map(|field| field.value(at)));
        let period = || fields.iter().map(|field| field.value(at));
        match known.get(&shows) {
            Some((like, other)) if period().ne(other.iter().copied()) => return Some([*like, at]),
            Some(_) => {}
            None => {
                known.insert(shows.clone(), (at, period().collect()));
            }
        }
    }
    None
}
