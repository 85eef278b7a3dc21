//! What the proof must know of calendars: every day is found by what it shows, and a year that
//! stands for another one has its days.

use jiff::civil::{Date, date};

use super::super::super::pattern::{DateField, Era};
use super::super::super::period::FiscalYear;
use super::super::moments::{find, like};

/// Years that are leap years or not, of all weekdays, at both ends of the calendar.
const YEARS: [i16; 14] =
    [1, 4, 100, 400, 1_896, 1_900, 2_000, 2_024, 2_025, 2_026, 2_032, 2_099, 9_996, 9_998];

/// Days at both ends of a year and of February, and some between.
fn days(year: i16) -> impl Iterator<Item = Date> {
    let first = date(year, 1, 1);
    let all = (0..first.days_in_year()).map(move |day| (day, first));
    let some = all.filter(|(day, first)| {
        day % 41 == 0 || *day < 4 || (57..61).contains(day) || first.days_in_year() - day < 5
    });
    some.map(|(day, first)| first.saturating_add(jiff::Span::new().days(day)))
}

#[test]
fn every_day_is_found_by_each_of_its_fields_together() {
    use DateField::{
        Day, DayOfYear, FiscalStart, FiscalYear as Fiscal, Month, Week, WeekYear, Year,
    };
    let april = FiscalYear::starting_in(Some(4));
    for day in YEARS.into_iter().flat_map(days) {
        let at = day.at(12, 0, 0, 0);
        for fields in [
            &[Year(Era::Common), Month, Day][..],
            &[Year(Era::Buddhist), DayOfYear],
            &[WeekYear, Week, Day],
            &[Fiscal(Era::Common, april), DayOfYear],
            &[FiscalStart(Era::Common, april), Month, Day],
            &[Month, Day, DayOfYear],
        ] {
            let shown: Option<Vec<(DateField, i64)>> =
                fields.iter().map(|field| Some((*field, field.value(at)?))).collect();
            let Some(shown) = shown else { continue };
            let found = find(&shown).unwrap_or_else(|| panic!("{day} {shown:?}"));
            assert!(shown.iter().all(|(field, value)| field.value(found) == Some(*value)), "{day}");
        }
    }
}

#[test]
fn a_moment_is_found_to_the_millisecond() {
    use DateField::{Hour, Millisecond, Minute, Second};
    for (hour, minute, second, millisecond) in [(0, 0, 0, 0), (9, 5, 7, 250), (23, 59, 59, 999)] {
        let shown = [(Hour, hour), (Minute, minute), (Second, second), (Millisecond, millisecond)];
        let found = find(&shown).expect("there is such a moment");
        assert!(shown.iter().all(|(field, value)| field.value(found) == Some(*value)), "{found}");
    }
}

#[test]
fn a_year_that_stands_for_another_has_its_days_and_those_beside_it() {
    // What other fields tell of a day, with the years that they name set off from the year.
    let told = |day: Date, year: i16| {
        let week = day.iso_week_date();
        (day.month(), day.day(), day.day_of_year(), week.week(), week.year() - year)
    };
    for year in (2..9_998).step_by(97).chain([1_900, 2_000, 2_024, 2_100]) {
        let near = like(DateField::Year(Era::Common), i64::from(year));
        let near = i16::try_from(near).expect("a year");
        assert!(near == year || (2_025..2_081).contains(&near), "{year} {near}");
        for beside in [-1, 0, 1] {
            let of = |year: i16| {
                // No year that is named after another one begins before its February.
                let first = date(year + beside, if beside < 0 { 2 } else { 1 }, 1);
                let days = first.series(jiff::Span::new().days(1));
                let days = days.take_while(|day| day.year() == first.year());
                days.map(|day| told(day, year)).collect::<Vec<_>>()
            };
            assert!(of(year) == of(near), "{year} {near} {beside}");
        }
    }
}
