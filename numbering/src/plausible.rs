//! Which dates and values a series takes by itself, without being told: what is far from the
//! present or looks like something else is a mistake more often than not.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};

use super::error::excerpt;
use super::period::day_text;
use super::{InputError, SeriesDefinition};

/// Most years on either side.
pub(super) const YEARS_MAX: u16 = 9_998;

/// How many years ahead of A.D. the Buddhist era counts.
const BUDDHIST_YEARS: i16 = 543;

/// Which document dates a series takes, around the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlausibleDates {
    /// Years back (default 100).
    #[serde(default = "PlausibleDates::years_back")]
    pub years_back: u16,
    /// Years ahead (default 10).
    #[serde(default = "PlausibleDates::years_ahead")]
    pub years_ahead: u16,
}

/// Whether a series takes values that look like others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LookAlikes {
    /// It refuses them.
    #[default]
    Refuse,
    /// It takes them: each counts for itself.
    Allow,
}

impl LookAlikes {
    pub(super) fn are_refused(&self) -> bool {
        *self == LookAlikes::Refuse
    }
}

impl Default for PlausibleDates {
    fn default() -> Self {
        let (years_back, years_ahead) = (Self::years_back(), Self::years_ahead());
        PlausibleDates { years_back, years_ahead }
    }
}

impl PlausibleDates {
    fn years_back() -> u16 {
        100
    }

    fn years_ahead() -> u16 {
        10
    }

    /// Refuses a date that is further from the present.
    pub(super) fn check(self, given: &str, date: Date, today: Date) -> Result<(), InputError> {
        let first = today.saturating_sub(i32::from(self.years_back).years());
        let last = today.saturating_add(i32::from(self.years_ahead).years());
        if (first..=last).contains(&date) {
            return Ok(());
        }
        let year = date.year();
        let is_buddhist = date > last && {
            let meant = today.year() + BUDDHIST_YEARS;
            (meant - 100..=meant + 10).contains(&year)
        };
        let remedy = if is_buddhist {
            format!("years are those A.D., so write {} for B.E. {year}", year - BUDDHIST_YEARS)
        } else {
            "correct the year, or have the series take more with `dates`".into()
        };
        let (first, last) = (day_text(first), day_text(last));
        Err(InputError::ImplausibleDate { given: excerpt(given), first, last, remedy })
    }
}

/// Why a series may not be closed, in the microsecond `now_us` since 1970, before the day that it
/// names; `None`: it may. A day further ahead
/// than any document may be dated closes it for all of them, and is a year of another era.
#[must_use]
pub fn flaw_of_closing(definition: &SeriesDefinition, now_us: i64) -> Option<String> {
    let text = definition.closed_before.as_ref()?;
    let now = Timestamp::from_microsecond(now_us).ok()?;
    let (day, today) = (text.parse().ok()?, now.to_zoned(TimeZone::UTC).date());
    let dates = definition.dates.unwrap_or_default();
    let flaw = dates.check(text, day, today).err().filter(|_| day > today)?;
    Some(format!("closed_before: {flaw}"))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn dates_near_the_present_are_taken_and_others_are_told_with_what_helps() {
        let today = date(2025, 6, 30);
        let check = |date: Date| PlausibleDates::default().check("d", date, today);
        for taken in [today, date(1925, 6, 30), date(2035, 6, 30), date(2024, 2, 29)] {
            assert_eq!(check(taken), Ok(()), "{taken}");
        }
        for (wrong, says) in [
            (date(2062, 1, 1), "have the series take more with `dates`"),
            (date(9999, 12, 31), "from 1925-06-30 to 2035-06-30"),
            (date(1, 1, 1), "correct the year"),
            (date(2568, 6, 30), "write 2025 for B.E. 2568"),
        ] {
            let refused = check(wrong).unwrap_err();
            let told = (refused.slug(), refused.field());
            assert_eq!(told, ("invalid-date", "date".to_owned()), "{wrong}");
            assert!(refused.to_string().contains(says), "{refused}");
        }
        let closing = |day: &str| {
            let closed_before = Some(day.to_owned());
            let now: Timestamp = "2025-06-30T12:00:00Z".parse().expect("a time");
            let series = SeriesDefinition { closed_before, ..SeriesDefinition::default() };
            flaw_of_closing(&series, now.as_microsecond())
        };
        assert_eq!((closing("2026-01-01"), closing("0001-01-01")), (None, None));
        let told = closing("2569-01-01").expect("another era");
        assert!(told.starts_with("closed_before: ") && told.contains("write 2026"), "{told}");
        let wide = PlausibleDates { years_back: YEARS_MAX, years_ahead: YEARS_MAX };
        assert_eq!(wide.check("d", date(9999, 12, 31), today), Ok(()));
        assert_eq!(wide.check("d", date(1, 1, 1), today), Ok(()));
    }
}
