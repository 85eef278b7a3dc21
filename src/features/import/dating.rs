//! The date of a document that a list names: from its columns, from its number, or any that leads
//! to the same counter and the same text. Invents none where another would lead elsewhere.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::tz::TimeZone;
use numbering::{Draft, Inputs, Parsed, Series, SeriesDefinition, read_moment};

use super::reading::{Misfit, agreed, misfit};
use super::report::ProblemKind;
use super::rows::Row;
use crate::web::instant::zone_named;

/// Days whose only common period is "never": if a counter is the same on both, it does not depend
/// on the date.
const PROBES: [&str; 2] = ["2000-01-01", "2023-07-19"];

/// The zone that a series reads dates in; its definition has been compiled, so it is one.
pub(super) fn zone(definition: &SeriesDefinition) -> TimeZone {
    zone_named(definition.timezone.as_deref())
}

/// An instant as lists write it: with an offset, or in the zone of the series, with or without a
/// time of day.
pub(super) fn moment(text: &str, zone: &TimeZone) -> Result<Timestamp, Misfit> {
    let instant = read_moment(text);
    // With a refused offset, the text before it is not another instant.
    let is_civil = text.parse::<Timestamp>().is_err();
    let civil = || text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok();
    let found = instant.or_else(|| civil().filter(|_| is_civil).map(|zoned| zoned.timestamp()));
    let expected = "write 2025-12-02, 2025-12-02 09:30:00 or 2025-12-02T09:30:00+07:00";
    found.map_or_else(|| misfit(ProblemKind::Value, format!("column issued_at: {expected}")), Ok)
}

/// The search for the document's date.
pub(super) struct Dated<'a> {
    pub(super) series: &'a Series,
    /// The parts that the series reads in the text.
    pub(super) parsed: &'a Parsed,
    pub(super) now: Timestamp,
    /// The number in normal form C, or the text around its serials.
    pub(super) text: &'a str,
    /// One value per serial, if the text shows them.
    pub(super) values: Option<&'a [u64]>,
    /// Whether a column says the date.
    pub(super) date_is_said: bool,
}

impl Dated<'_> {
    /// The date in the row or the number; else any date that leads to the same counter and text as
    /// every other one that the number allows.
    pub(super) fn fit(
        &self,
        row: &Row,
        mut inputs: Inputs,
        issued_at: Option<Timestamp>,
        zone: &TimeZone,
    ) -> Result<(Inputs, Draft), Misfit> {
        let parsed = self.parsed;
        let whole = parsed.date.as_ref().filter(|date| date.len() == 10);
        let shown = match (whole, &parsed.time) {
            (Some(date), Some(time)) => Some(instant(date, time, zone)?),
            (Some(date), None) => Some(date.clone()),
            (None, _) => None,
        };
        if let (Some(said), Some(whole)) = (&row.date, whole) {
            // A date with an offset may be another day elsewhere: rendering shows it.
            let day = said.get(..10).map(str::to_owned);
            if said.len() == 10 {
                agreed("date", day.as_ref(), Some(whole))?;
            }
        }
        inputs.date = match (&row.date, &shown) {
            (Some(said), None) => Some(said.clone()),
            (Some(said), Some(_)) if said.len() != 10 => Some(said.clone()),
            (_, shown) => shown.clone(),
        };
        if inputs.date.is_some() {
            let draft = self.exact(&inputs)?;
            return Ok((inputs, draft));
        }
        if let Some(issued_at) = issued_at {
            inputs.date = Some(issued_at.to_string());
            if let Ok(draft) = self.exact(&inputs) {
                return Ok((inputs, draft));
            }
        }
        let ends = match (&parsed.date, parsed.fiscal_year) {
            (Some(date), _) => period(date),
            (None, Some(year)) => self.fiscal_year(year, &inputs),
            (None, None) => Some(PROBES.map(str::to_owned)),
        };
        let [first, last] = ends.map_or_else(|| needs_date(parsed), Ok)?;
        let draft = self.exact(&Inputs { date: Some(first.clone()), ..inputs.clone() })?;
        let other = self.exact(&Inputs { date: Some(last), ..inputs.clone() })?;
        if draft.keys != other.keys || draft.scope != other.scope {
            return needs_date(parsed);
        }
        inputs.date = (parsed.date.is_some() || parsed.fiscal_year.is_some()).then_some(first);
        let draft = self.exact(&inputs)?;
        Ok((inputs, draft))
    }

    /// First days of the first and of the last month of the fiscal year that a number shows.
    fn fiscal_year(&self, end: i16, inputs: &Inputs) -> Option<[String; 2]> {
        let months = [end.checked_sub(1)?, end]
            .into_iter()
            .flat_map(|year| (1..=12).map(move |month: i8| format!("{year:04}-{month:02}-01")));
        let shows = |date: &String| {
            let inputs = Inputs { date: Some(date.clone()), ..inputs.clone() };
            self.exact(&inputs).is_ok()
        };
        let shown: Vec<String> = months.filter(shows).collect();
        Some([shown.first()?.clone(), shown.last()?.clone()])
    }

    /// The draft of these inputs, if it renders the text.
    fn exact(&self, inputs: &Inputs) -> Result<Draft, Misfit> {
        let mut draft = self.series.draft_issued(inputs, self.now).map_err(|error| {
            let kind = match error.slug() {
                "missing-variable" | "time-required" => ProblemKind::Missing,
                _ => ProblemKind::Value,
            };
            let remedy = match error.slug() {
                "invalid-date" if self.date_is_said => "; the column date has said it",
                "invalid-date" if self.parsed.date.is_some() => "",
                _ => "; a column may say it",
            };
            Misfit::new(kind, format!("{error}{remedy}"))
        })?;
        if let (Some(place), Some(id)) = (draft.snowflake, self.parsed.snowflake) {
            place.put(&mut draft.partial, id);
        }
        let rendered = match self.values {
            Some(values) => draft.partial.fill(values),
            None => Ok(draft.rule_format()),
        };
        match rendered {
            Ok(rendered) if rendered == self.text => Ok(draft),
            Ok(rendered) => {
                let detail = format!("with what the columns say it would be {rendered:?}");
                misfit(ProblemKind::Contradiction, detail)
            }
            Err(error) => misfit(ProblemKind::Value, error.to_string()),
        }
    }
}

fn needs_date<T>(parsed: &Parsed) -> Result<T, Misfit> {
    let shows =
        parsed.date.as_ref().map_or_else(|| "no date".to_owned(), |date| format!("only {date}"));
    let detail = format!("it shows {shows}, too little to name its counter; add a column date");
    misfit(ProblemKind::Missing, detail)
}

/// First and last day of the part of its date that a number shows.
fn period(shown: &str) -> Option<[String; 2]> {
    let year: i16 = shown.get(..4)?.parse().ok()?;
    let ends: [Date; 2] = match (shown.get(5..6), shown.get(5..)) {
        (None, _) => [Date::new(year, 1, 1).ok()?, Date::new(year, 12, 31).ok()?],
        (Some("Q"), _) => {
            let quarter: i8 = shown.get(6..)?.parse().ok()?;
            let first = Date::new(year, quarter.checked_mul(3)?.checked_sub(2)?, 1).ok()?;
            [first, Date::new(year, quarter * 3, 1).ok()?.last_of_month()]
        }
        (Some("W"), _) => {
            let week: i8 = shown.get(6..)?.parse().ok()?;
            [Weekday::Monday, Weekday::Sunday]
                .map(|day| ISOWeekDate::new(year, week, day).map(ISOWeekDate::date))
                .into_iter()
                .collect::<Result<Vec<_>, _>>()
                .ok()?
                .try_into()
                .ok()?
        }
        (Some(_), Some(month)) => {
            let first = Date::new(year, month.parse().ok()?, 1).ok()?;
            [first, first.last_of_month()]
        }
        (Some(_), None) => return None,
    };
    Some(ends.map(|day| day.to_string()))
}

/// The instant that a number shows, in the zone of its series.
fn instant(date: &str, time: &str, zone: &TimeZone) -> Result<String, Misfit> {
    let parts: Vec<&str> = time.split(':').collect();
    let full = match parts.len() {
        1 => format!("{time}:00:00"),
        2 => format!("{time}:00"),
        _ => time.to_owned(),
    };
    let time = full.parse::<Time>().ok();
    let day = date.parse::<Date>().ok();
    let zoned =
        day.zip(time).and_then(|(day, time)| day.to_datetime(time).to_zoned(zone.clone()).ok());
    match zoned {
        Some(zoned) => Ok(zoned.timestamp().to_string()),
        None => misfit(ProblemKind::Value, format!("{date} {full} is no moment")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZoneDatabase;

    #[test]
    fn a_period_has_its_first_and_last_day() {
        for (shown, first, last) in [
            ("2024", "2024-01-01", "2024-12-31"),
            ("2024-02", "2024-02-01", "2024-02-29"),
            ("2024-Q1", "2024-01-01", "2024-03-31"),
            ("2024-Q4", "2024-10-01", "2024-12-31"),
            ("2020-W53", "2020-12-28", "2021-01-03"),
        ] {
            assert_eq!(period(shown), Some([first, last].map(str::to_owned)), "{shown}");
        }
        assert_eq!(period("2021-W54"), None);
    }

    #[test]
    fn a_moment_without_an_offset_is_one_of_the_series_zone() {
        let zone = TimeZoneDatabase::bundled().get("Asia/Taipei").expect("known");
        for (text, expected) in [
            ("2024-01-22", "2024-01-21T16:00:00Z"),
            ("2024-01-22 09:30", "2024-01-22T01:30:00Z"),
            ("2024-01-22 09:30:15", "2024-01-22T01:30:15Z"),
            ("2024-01-22T09:30:15+07:00", "2024-01-22T02:30:15Z"),
        ] {
            let read = moment(text, &zone).map(|moment| moment.to_string());
            assert_eq!(read.ok().as_deref(), Some(expected), "{text}");
        }
        for text in ["22.1.2024", "2024-01-22T09:30:15+19:00"] {
            let refused = moment(text, &zone).expect_err("refused");
            assert!(refused.detail.contains("issued_at"), "{}", refused.detail);
        }
    }

    #[test]
    fn a_time_of_day_is_one_of_the_series_zone() {
        let zone = TimeZoneDatabase::bundled().get("Asia/Bangkok").expect("known");
        for (time, expected) in [
            ("09", "2024-01-22T02:00:00Z"),
            ("09:30", "2024-01-22T02:30:00Z"),
            ("09:30:15.250", "2024-01-22T02:30:15.25Z"),
        ] {
            let read = instant("2024-01-22", time, &zone);
            assert_eq!(read.ok().as_deref(), Some(expected), "{time}");
        }
    }
}
