//! Periods: when a new counter begins. A reset is a new counter, never an overwrite.
//!
//! A period is named by the wall time of the series. If the end of summer time repeats an hour,
//! both have one name and so one counter: no value comes twice.

use jiff::civil::{Date, DateTime};

use super::Reset;
use super::serial_format::push_padded;

/// A day as `yyyy-mm-dd`. Every draft has one: written digit by digit, which is several times as
/// fast as the formatting machinery.
pub(super) fn day_text(date: Date) -> String {
    let mut text = String::with_capacity("yyyy-mm-dd".len());
    push_padded(&mut text, u64::from(date.year().unsigned_abs()), 4);
    for part in [date.month(), date.day()] {
        text.push('-');
        push_padded(&mut text, u64::from(part.unsigned_abs()), 2);
    }
    text
}

/// The fiscal year of a series: the month in which it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FiscalYear {
    /// 1 to 12.
    pub(super) start_month: i8,
}

impl FiscalYear {
    /// One that begins in a month that was checked; the calendar year without one.
    pub(super) fn starting_in(month: Option<u8>) -> Self {
        let start_month = month.and_then(|month| i8::try_from(month).ok()).unwrap_or(1);
        FiscalYear { start_month }
    }

    /// The fiscal year of a month: the calendar year in which it ends.
    pub(super) fn of(self, year: i16, month: i8) -> i16 {
        // The year 9999 is the last one, and 10000 fits.
        year + i16::from(self.start_month > 1 && month >= self.start_month)
    }

    /// Name and value of the fiscal year that ends in a calendar year, as in a counter key.
    pub(super) fn period(year: i16) -> (&'static str, String) {
        ("fiscal-year", format!("{year:04}"))
    }

    /// How many calendar years before its end it begins.
    pub(super) fn years_before(self) -> i16 {
        i16::from(self.start_month > 1)
    }
}

/// Name and value of the period of a counter that restarts with `reset`, at a wall time of its
/// series; `None` if time does not reset it. `fiscal_year_start`: see
/// [`super::SeriesDefinition::fiscal_year_start`].
#[must_use]
pub fn period_of(
    reset: Reset,
    at: DateTime,
    fiscal_year_start: Option<u8>,
) -> Option<(&'static str, String)> {
    reset.period(at, FiscalYear::starting_in(fiscal_year_start))
}

impl Reset {
    /// Whether it needs a time of day.
    pub(super) fn is_time(self) -> bool {
        matches!(self, Reset::Second | Reset::Minute | Reset::Hour)
    }

    /// Name and value of the period that a time lies in, the last part of the counter key; `None`
    /// for a counter that no time resets. Always the common calendar, whatever era is shown.
    pub(super) fn period(self, at: DateTime, fiscal: FiscalYear) -> Option<(&'static str, String)> {
        let (year, month) = (at.year(), at.month());
        Some(match self {
            Reset::None | Reset::Phase => return None,
            Reset::Second => ("second", at.strftime("%Y-%m-%dT%H:%M:%S").to_string()),
            Reset::Minute => ("minute", at.strftime("%Y-%m-%dT%H:%M").to_string()),
            Reset::Hour => ("hour", at.strftime("%Y-%m-%dT%H").to_string()),
            Reset::Day => ("day", day_text(at.date())),
            Reset::Week => {
                let week = at.date().iso_week_date();
                ("week", format!("{:04}-W{:02}", week.year(), week.week()))
            }
            Reset::Month => ("month", format!("{year:04}-{month:02}")),
            Reset::Quarter => ("quarter", format!("{year:04}-Q{}", (month - 1) / 3 + 1)),
            Reset::Year => ("year", format!("{year:04}")),
            Reset::FiscalYear => FiscalYear::period(fiscal.of(year, month)),
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::datetime;

    use super::*;

    fn period(reset: Reset, start_month: i8, at: DateTime) -> Option<(&'static str, String)> {
        reset.period(at, FiscalYear { start_month })
    }

    #[test]
    fn a_period_is_named_by_its_time() {
        let at = datetime(2024, 2, 29, 9, 5, 7, 250_000_000);
        assert_eq!(period(Reset::None, 1, at), None);
        for (reset, name, value) in [
            (Reset::Second, "second", "2024-02-29T09:05:07"),
            (Reset::Minute, "minute", "2024-02-29T09:05"),
            (Reset::Hour, "hour", "2024-02-29T09"),
            (Reset::Day, "day", "2024-02-29"),
            (Reset::Week, "week", "2024-W09"),
            (Reset::Month, "month", "2024-02"),
            (Reset::Quarter, "quarter", "2024-Q1"),
            (Reset::Year, "year", "2024"),
            (Reset::FiscalYear, "fiscal-year", "2024"),
        ] {
            assert_eq!(period(reset, 1, at), Some((name, value.to_owned())));
        }
    }

    #[test]
    fn a_period_ends_with_its_last_second() {
        for (reset, last, value, next) in [
            (Reset::Hour, datetime(2024, 2, 28, 23, 59, 59, 0), "2024-02-28T23", "2024-02-29T00"),
            (Reset::Day, datetime(2024, 2, 28, 23, 59, 59, 0), "2024-02-28", "2024-02-29"),
            (Reset::Day, datetime(2023, 2, 28, 23, 59, 59, 0), "2023-02-28", "2023-03-01"),
            // The week belongs to the year of its Thursday.
            (Reset::Week, datetime(2024, 12, 29, 23, 59, 59, 0), "2024-W52", "2025-W01"),
            (Reset::Week, datetime(2021, 1, 3, 23, 59, 59, 0), "2020-W53", "2021-W01"),
            (Reset::Month, datetime(2024, 2, 29, 23, 59, 59, 0), "2024-02", "2024-03"),
            (Reset::Quarter, datetime(2024, 3, 31, 23, 59, 59, 0), "2024-Q1", "2024-Q2"),
            (Reset::Quarter, datetime(2024, 12, 31, 23, 59, 59, 0), "2024-Q4", "2025-Q1"),
            (Reset::Year, datetime(2024, 12, 31, 23, 59, 59, 0), "2024", "2025"),
            (Reset::FiscalYear, datetime(2025, 3, 31, 23, 59, 59, 0), "2025", "2026"),
        ] {
            let told = |at| period(reset, 4, at).map(|(_, value)| value);
            assert_eq!(told(last).as_deref(), Some(value), "{reset:?}");
            let after = last.checked_add(jiff::SignedDuration::from_secs(1)).unwrap();
            assert_eq!(told(after).as_deref(), Some(next), "{reset:?}");
        }
    }

    #[test]
    fn a_fiscal_year_is_named_by_the_year_in_which_it_ends() {
        for (start_month, at, year) in [
            (1, (2025, 1), 2025),
            (1, (2025, 12), 2025),
            (4, (2025, 3), 2025),
            (4, (2025, 4), 2026),
            (10, (2025, 9), 2025),
            (10, (2025, 10), 2026),
            (12, (2025, 11), 2025),
            (12, (2025, 12), 2026),
        ] {
            assert_eq!(FiscalYear { start_month }.of(at.0, at.1), year, "{start_month} {at:?}");
        }
    }

    #[test]
    fn an_hour_that_the_end_of_summer_time_repeats_is_one_period() {
        let zone = jiff::tz::TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap();
        let hour = |at: &str| {
            period(Reset::Hour, 1, zone.to_datetime(at.parse().unwrap())).map(|(_, value)| value)
        };
        let (first, again) = ("2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z");
        assert_eq!(hour(first).as_deref(), Some("2025-10-26T02"));
        assert_eq!(hour(again), hour(first));
        assert_eq!(hour("2025-10-26T02:30:00Z").as_deref(), Some("2025-10-26T03"));
    }
}
