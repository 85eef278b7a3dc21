//! On which document dates a series serves its types: from a day on, before a day, or both. A
//! successor takes over on a day that an administrator chose, in the time zone that both share.
//!
//! Decides which series serves a request, and nothing else: a later version may have other days, so
//! no proof relies on them.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;

use super::date::document_time;
use super::field::{at, syntax};
use super::template_error::FieldFlaw;
use super::{InputError, Inputs, Series, SeriesDefinition, Serves, TemplateError};

/// The zone of a series that names none.
const UTC: &str = "UTC";

/// Consecutive days; both ends open: all days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// The first one.
    from: Option<Date>,
    /// The first one after them.
    before: Option<Date>,
}

impl Window {
    /// The days of a definition.
    ///
    /// # Errors
    /// When one is not a day, or there is no day between them.
    pub(super) fn compile(serves: &Serves) -> Result<Self, TemplateError> {
        let day = |field, text: &Option<String>| match text {
            Some(text) if day(text).is_none() => {
                syntax(field, text, "a day such as 2026-01-01, without a time")
            }
            text => Ok(text.as_deref().and_then(day)),
        };
        let from = day("serves.dated_from", &serves.dated_from)?;
        let before = day("serves.dated_before", &serves.dated_before)?;
        match (&serves.dated_from, &serves.dated_before) {
            (Some(first), Some(end)) if from >= before => {
                let flaw = FieldFlaw::NoDays { from: first.clone(), before: end.clone() };
                at("serves.dated_before", flaw)
            }
            _ => Ok(Window { from, before }),
        }
    }

    /// The same for one that need not compile: more days, in doubt.
    pub(super) fn of(serves: &Serves) -> Self {
        Self::compile(serves).unwrap_or_default()
    }

    /// Whether these are all days.
    pub(super) fn is_all(self) -> bool {
        self == Window::default()
    }

    /// Whether a day is one of them.
    pub(super) fn holds(self, day: Date) -> bool {
        self.from.is_none_or(|from| from <= day) && self.before.is_none_or(|before| day < before)
    }

    /// The days that both have; `None` if there are none.
    pub(super) fn common(self, other: Self) -> Option<Self> {
        let from = self.from.max(other.from);
        let before = match (self.before, other.before) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let is_empty = from.zip(before).is_some_and(|(from, before)| from >= before);
        (!is_empty).then_some(Window { from, before })
    }

    /// Whether all days of another one are among these.
    pub(super) fn covers(self, other: Self) -> bool {
        self.common(other) == Some(other)
    }

    /// These days in pieces, each of which some others cover as a whole or not at all.
    pub(super) fn pieces(self, others: impl Iterator<Item = Self>) -> Vec<Self> {
        let ends = others.flat_map(|other| [other.from, other.before]).flatten();
        let mut cuts: Vec<Date> = ends.filter(|end| self.is_cut_at(*end)).collect();
        cuts.sort_unstable();
        cuts.dedup();
        let mut pieces = Vec::with_capacity(cuts.len() + 1);
        let mut from = self.from;
        for cut in cuts {
            pieces.push(Window { from, before: Some(cut) });
            from = Some(cut);
        }
        pieces.push(Window { from, ..self });
        pieces
    }

    /// Whether a day begins a piece of these days that is not the first.
    fn is_cut_at(self, day: Date) -> bool {
        self.holds(day) && self.from != Some(day)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.before) {
            (Some(from), Some(before)) => write!(f, "from {from} on and before {before}"),
            (Some(from), None) => write!(f, "from {from} on"),
            (None, Some(before)) => write!(f, "before {before}"),
            (None, None) => f.write_str("of any day"),
        }
    }
}

/// A day as definitions write it. A date-time would be read as its day, and say more than it means.
pub(super) fn day(text: &str) -> Option<Date> {
    text.parse().ok().filter(|day: &Date| day.to_string() == *text)
}

/// The name of the zone in which a definition reads dates.
pub(super) fn zone_name(definition: &SeriesDefinition) -> &str {
    definition.timezone.as_deref().unwrap_or(UTC)
}

/// If a definition serves some days only: these, and the zone in which they begin.
pub(super) fn days_of(definition: &SeriesDefinition) -> Option<(Window, &str)> {
    let window = Window::of(&definition.serves);
    (!window.is_all()).then(|| (window, zone_name(definition)))
}

impl Series {
    /// The document's date as the series reads it, in its own zone; that of now if the request
    /// names none.
    ///
    /// # Errors
    /// When a text is not a date.
    pub fn document_day(&self, inputs: &Inputs, now: Timestamp) -> Result<Date, InputError> {
        let time = document_time(inputs.date.as_deref(), &self.zone, now, false);
        time.map(jiff::civil::DateTime::date)
    }

    /// Whether it serves documents of the request's date. One that it cannot read decides nothing:
    /// the draft refuses it.
    pub(super) fn serves_day_of(&self, inputs: &Inputs, now: Timestamp) -> bool {
        self.window.is_all()
            || self.document_day(inputs, now).map_or(true, |day| self.window.holds(day))
    }

    /// Whether it serves documents of some days alone.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        !self.window.is_all()
    }

    /// The moments at which it begins and ends to serve requests without a date, if any.
    pub fn turns(&self) -> impl Iterator<Item = Timestamp> + use<> {
        let Window { from, before } = self.window;
        let zone = self.zone.clone();
        let begins = move |day: Date| Some(day.to_zoned(zone.clone()).ok()?.timestamp());
        from.into_iter().chain(before).filter_map(begins)
    }

    /// The document date that is nearest to now of those that it serves; `None`: now.
    pub(super) fn nearest_date(&self, now: Timestamp) -> Option<String> {
        let today = self.zone.to_datetime(now).date();
        let Window { from, before } = self.window;
        let last = before.filter(|before| *before <= today).and_then(|day| day.yesterday().ok());
        let nearest = last.or(from.filter(|from| today < *from))?;
        // A plain date has no time of day.
        let begins = nearest.to_zoned(self.zone.clone()).ok().filter(|_| self.time_needed);
        Some(begins.map_or_else(|| nearest.to_string(), |begins| begins.timestamp().to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{definition, inputs, series};
    use super::super::{RuleError, choose};
    use super::*;

    fn serving(from: Option<&str>, before: Option<&str>, zone: &str) -> Series {
        series(|definition| {
            definition.serves.dated_from = from.map(Into::into);
            definition.serves.dated_before = before.map(Into::into);
            definition.timezone = Some(zone.into());
        })
    }

    #[test]
    fn a_year_turns_at_midnight_of_the_series_wherever_the_request_comes_from() {
        let turn = Some("2026-01-01");
        // Midnight of each zone in UTC, and the offset of a far-away one.
        for (zone, midnight, far) in [
            ("Asia/Bangkok", "2025-12-31T17:00:00Z", "2025-12-31T12:00:00-05:00"),
            ("Asia/Taipei", "2025-12-31T16:00:00Z", "2026-01-01T02:00:00+10:00"),
            ("America/New_York", "2026-01-01T05:00:00Z", "2026-01-01T12:00:00+07:00"),
        ] {
            let both = [serving(None, turn, zone), serving(turn, None, zone)];
            let now: Timestamp = midnight.parse().expect("a time");
            let just_before = now - jiff::SignedDuration::from_millis(1);
            let asked = |date: &str, now| choose(&both, &inputs("T", "", date, &[]), now);
            let undated = Inputs { date: None, ..inputs("T", "", "", &[]) };
            assert_eq!(choose(&both, &undated, just_before), Ok(0), "{zone}");
            assert_eq!(choose(&both, &undated, now), Ok(1), "{zone}");
            assert_eq!(asked(midnight, just_before), Ok(1), "{zone}");
            assert_eq!(asked(&just_before.to_string(), now), Ok(0), "{zone}");
            assert_eq!(asked(far, just_before), Ok(1), "{zone}");
            // A plain date is that day wherever it is now.
            assert_eq!(asked("2025-12-31", now), Ok(0), "{zone}");
            assert_eq!(asked("2026-01-01", just_before), Ok(1), "{zone}");
            // A text that is not a date is refused as such, and not as a type without numbering.
            let chosen = asked("soon", now).expect("any");
            let refused = both[chosen].draft(&inputs("T", "", "soon", &[]), now);
            assert!(matches!(refused, Err(InputError::InvalidDate { .. })), "{refused:?}");
        }
    }

    #[test]
    fn days_between_two_series_are_of_nobody_and_the_refusal_names_both() {
        let offers = [
            serving(None, Some("2025-12-01"), "UTC"),
            serving(Some("2026-01-01"), Some("2027-01-01"), "UTC"),
        ];
        let now = "2025-12-24T00:00:00Z".parse().expect("a time");
        let refused = choose(&offers, &inputs("T", "", "2025-12-24", &[]), now);
        let Err(RuleError::TypeNotConfigured { hint, .. }) = refused else { panic!("{refused:?}") };
        assert!(
            hint.contains("for dates before 2025-12-01")
                && hint.contains("for dates from 2026-01-01 on and before 2027-01-01"),
            "{hint}"
        );
    }

    #[test]
    fn days_of_which_there_is_none_and_what_is_no_day_are_refused_by_their_field() {
        for (from, before, field) in [
            (Some("2026-01-01"), Some("2026-01-01"), "serves.dated_before"),
            (Some("2026-01-02"), Some("2026-01-01"), "serves.dated_before"),
            (Some("2026"), None, "serves.dated_from"),
            (None, Some("2026-01-01T00:00:00Z"), "serves.dated_before"),
        ] {
            let mut definition = definition();
            definition.serves.dated_from = from.map(Into::into);
            definition.serves.dated_before = before.map(Into::into);
            let refused = Series::compile(definition).expect_err(field).to_string();
            assert!(refused.contains(field), "{refused}");
        }
    }
}
