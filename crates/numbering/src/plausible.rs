//! Which dates and values a series takes without an explicit setting: a date far from the present,
//! or a value that looks like another, is usually a mistake.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::error::excerpt;
use super::period::day_text;
use super::{InputError, SeriesDefinition};

/// Most years on either side.
pub(super) const YEARS_MAX: u16 = 9_998;

/// How many years ahead of A.D. the Buddhist era counts.
const BUDDHIST_YEARS: i16 = 543;

/// How far from the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateSpan {
    /// This many years, written `5y`.
    Years(u16),
    /// This many days, written `400d`.
    Days(u16),
}

impl DateSpan {
    fn span(self) -> Span {
        match self {
            DateSpan::Years(years) => i32::from(years).years(),
            DateSpan::Days(days) => i32::from(days).days(),
        }
    }
}

impl fmt::Display for DateSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DateSpan::Years(years) => write!(f, "{years}y"),
            DateSpan::Days(days) => write!(f, "{days}d"),
        }
    }
}

impl FromStr for DateSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |unit: char| text.strip_suffix(unit).and_then(|count| count.parse().ok());
        let years = || read('y').filter(|years| *years <= YEARS_MAX).map(DateSpan::Years);
        let wanted = || {
            let given = excerpt(text);
            format!("{given:?} is no span: write years, such as 5y (at most {YEARS_MAX}), or 400d")
        };
        years().or_else(|| read('d').map(DateSpan::Days)).ok_or_else(wanted)
    }
}

impl Serialize for DateSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DateSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Which document dates a series takes, around the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentDate {
    /// How far back (5 years if not given).
    #[serde(default = "DocumentDate::past")]
    pub past: DateSpan,
    /// How far ahead (1 year if not given).
    #[serde(default = "DocumentDate::future")]
    pub future: DateSpan,
}

/// The same as earlier releases wrote it. A stored version that has neither means this one's
/// defaults, as it did when it was saved.
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
    /// It takes them: each counts separately.
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
}

impl From<PlausibleDates> for DocumentDate {
    fn from(dates: PlausibleDates) -> Self {
        let (past, future) = (dates.years_back, dates.years_ahead);
        DocumentDate { past: DateSpan::Years(past), future: DateSpan::Years(future) }
    }
}

impl Default for DocumentDate {
    fn default() -> Self {
        DocumentDate { past: Self::past(), future: Self::future() }
    }
}

impl DocumentDate {
    fn past() -> DateSpan {
        DateSpan::Years(5)
    }

    fn future() -> DateSpan {
        DateSpan::Years(1)
    }

    /// What is plausible of a number that was issued elsewhere.
    pub(super) fn widest() -> Self {
        PlausibleDates::default().into()
    }

    /// What a series takes.
    pub(super) fn of(definition: &SeriesDefinition) -> Self {
        let SeriesDefinition { document_date, dates, .. } = definition;
        document_date.unwrap_or_else(|| dates.unwrap_or_default().into())
    }

    /// Refuses a date that is further from the present.
    pub(super) fn check(self, given: &str, date: Date, today: Date) -> Result<(), InputError> {
        let bounds = self.around(today);
        let remedy = "correct the year, or have the series take more with `document_date`";
        check(given, date, (today, bounds), ("this series", remedy))
    }

    /// The same for a number that was issued elsewhere, which may be old: the bounds of an import,
    /// or those of the series if it takes more.
    pub(super) fn check_issued(
        self,
        given: &str,
        date: Date,
        today: Date,
    ) -> Result<(), InputError> {
        let ((first, last), (from, upto)) = (Self::widest().around(today), self.around(today));
        let bounds = (first.min(from), last.max(upto));
        let remedy = "100 years back and 10 ahead, unless the series takes more: correct the year";
        check(given, date, (today, bounds), ("an import", remedy))
    }

    /// The first day and the last.
    fn around(self, today: Date) -> (Date, Date) {
        let first = today.saturating_sub(self.past.span());
        (first, today.saturating_add(self.future.span()))
    }
}

/// Refuses a date beyond these bounds. A year of another era is reported as such.
fn check(
    given: &str,
    date: Date,
    (today, (first, last)): (Date, (Date, Date)),
    (who, remedy): (&'static str, &str),
) -> Result<(), InputError> {
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
        remedy.to_owned()
    };
    let (given, first, last) = (excerpt(given), day_text(first), day_text(last));
    Err(InputError::ImplausibleDate { who, given, first, last, remedy })
}

/// Why a series may not be closed, in the microsecond `now_us` since 1970, before the day that it
/// names; `None`: it may. A day further ahead than any document may be dated closes it for all of
/// them, and is a year of another era.
#[must_use]
pub fn flaw_of_closing(definition: &SeriesDefinition, now_us: i64) -> Option<String> {
    let text = definition.closed_before.as_ref()?;
    let now = Timestamp::from_microsecond(now_us).ok()?;
    let (day, today) = (text.parse().ok()?, now.to_zoned(TimeZone::UTC).date());
    let flaw =
        DocumentDate::of(definition).check(text, day, today).err().filter(|_| day > today)?;
    Some(format!("closed_before: {flaw}"))
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn dates_near_the_present_are_taken_and_others_are_told_with_what_helps() {
        let today = date(2025, 6, 30);
        let former = DocumentDate::of(&SeriesDefinition::default());
        let check = |date: Date| former.check("d", date, today);
        for taken in [today, date(1925, 6, 30), date(2035, 6, 30), date(2024, 2, 29)] {
            assert_eq!(check(taken), Ok(()), "{taken}");
        }
        for (wrong, says) in [
            (date(2062, 1, 1), "have the series take more with `document_date`"),
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
        let wide = DocumentDate::from(wide);
        assert_eq!(wide.check("d", date(9999, 12, 31), today), Ok(()));
        assert_eq!(wide.check("d", date(1, 1, 1), today), Ok(()));
    }

    /// A definition written now without bounds takes five years back and one ahead.
    #[test]
    fn what_says_nothing_from_now_on_takes_five_years_back_and_one_ahead() {
        let stored = SeriesDefinition::default();
        let written = stored.clone().says_its_dates();
        assert_eq!(written.document_date, Some(DocumentDate::default()));
        assert_eq!(written.clone().says_its_dates(), written);
        let former = SeriesDefinition { dates: Some(PlausibleDates::default()), ..stored };
        assert_eq!(former.clone().says_its_dates(), former, "it says them in the former words");
        let today = date(2025, 6, 30);
        let takes = DocumentDate::of(&written);
        for taken in [date(2020, 6, 30), date(2026, 6, 30)] {
            assert_eq!(takes.check("d", taken, today), Ok(()), "{taken}");
        }
        for (wrong, says) in [
            (date(2020, 6, 29), "from 2020-06-30 to 2026-06-30"),
            (date(2026, 7, 1), "with `document_date`"),
            (date(2568, 6, 30), "write 2025 for B.E. 2568"),
            (date(9999, 12, 31), "correct the year"),
            (date(1, 1, 1), "correct the year"),
        ] {
            let refused = takes.check("d", wrong, today).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn a_span_is_years_or_days() {
        for text in ["5y", "0y", "9998y", "400d", "0d"] {
            assert_eq!(text.parse::<DateSpan>().map(|span| span.to_string()), Ok(text.into()));
        }
        for wrong in ["", "5", "y", "9999y", "5 y", "-1d", "5m", "70000d", "๕y"] {
            let told = wrong.parse::<DateSpan>().unwrap_err();
            assert!(told.contains("such as 5y"), "{told}");
        }
        let read = |text: &str| toml::from_str::<DocumentDate>(text);
        let half = DocumentDate { past: DateSpan::Days(90), future: DateSpan::Years(1) };
        assert_eq!(read("past = \"90d\""), Ok(half));
        assert!(read("past = \"5x\"").unwrap_err().to_string().contains("such as 5y"));
        assert!(read("back = \"5y\"").is_err());
    }
}
