//! Which counters a number may have come from: the way back from a text to its counter keys.
//!
//! A number need not show everything that its counter counts by. What it leaves out is tried with
//! every value that the series itself names, so an origin is a candidate: a caller that follows one
//! checks that the number is really there.

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};

use super::draft::ABSENT;
use super::period::FiscalYear;
use super::series::{Dimension, Variable};
use super::template::Part;
use super::{CounterKey, Parsed, Reset, Series};

/// Most candidates of one number; a series with more is not followed back.
const ORIGINS_MAX: usize = 64;

/// Candidates for the counter of the first serial; none if the number leaves its period open.
pub(super) fn origins(series: &Series, parsed: &Parsed) -> Vec<CounterKey> {
    let Some(rule) = series.counters.first() else { return Vec::new() };
    let Some(period) = period(rule.reset, series.fiscal, parsed) else { return Vec::new() };
    let mut keys = vec![CounterKey { parts: Vec::new() }];
    for dimension in &rule.dimensions {
        let (name, values) = values(series, parsed, *dimension);
        if keys.len() * values.len() > ORIGINS_MAX {
            return Vec::new();
        }
        let with = |key: &CounterKey, value: &String| {
            let mut parts = key.parts.clone();
            parts.push((name.clone(), value.clone()));
            CounterKey { parts }
        };
        let longer = keys.iter().flat_map(|key| values.iter().map(move |value| with(key, value)));
        keys = longer.collect();
    }
    for key in &mut keys {
        key.parts.extend(period.clone());
    }
    keys
}

/// Whether one of [`origins`] is the counter for certain. What a number leaves out follows from the
/// series only if that names all its types or projects: a variable may have had another value than
/// its default.
pub(super) fn is_told(series: &Series, parsed: &Parsed) -> bool {
    let Some(rule) = series.counters.first() else { return true };
    let is_named = |dimension: &Dimension| {
        let serves = &series.definition.serves;
        let is_listed = match dimension {
            Dimension::Project => !series.served.projects.is_empty(),
            Dimension::Type => !series.served.types_shown.is_empty() && !serves.default,
            Dimension::Variable(_) => false,
        };
        is_listed || shown_code(series, parsed, *dimension).is_some()
    };
    period(rule.reset, series.fiscal, parsed).is_some()
        && rule.dimensions.iter().all(is_named)
        && !origins(series, parsed).is_empty()
}

/// The parts of the key of the first serial's counter that a number shows, as keys hold them.
pub(super) fn shown(series: &Series, parsed: &Parsed) -> Vec<(String, String)> {
    let Some(rule) = series.counters.first() else { return Vec::new() };
    let of_dimension = |dimension: &Dimension| {
        let code = shown_code(series, parsed, *dimension)?;
        let value = match series.table_of(*dimension) {
            None => code,
            Some(table) => series.reference.by_code(table, &code)?.id.clone(),
        };
        Some((series.key_name(*dimension), value))
    };
    let dimensions = rule.dimensions.iter().filter_map(of_dimension);
    dimensions.chain(period(rule.reset, series.fiscal, parsed).flatten()).collect()
}

/// The code that a number shows of a dimension.
fn shown_code(series: &Series, parsed: &Parsed, dimension: Dimension) -> Option<String> {
    let shown = |name: &str| parsed.variables.get(name).cloned();
    match dimension {
        Dimension::Project => shown("PROJECT"),
        Dimension::Type => series.parts.iter().find_map(|part| match part {
            Part::Type(name) => shown(name),
            _ => None,
        }),
        Dimension::Variable(index) => shown(&series.variables[index].name),
    }
}

/// Document types that a number may be of.
pub(super) fn types(series: &Series, parsed: &Parsed) -> Vec<String> {
    codes(series, parsed, Dimension::Type).unwrap_or_default()
}

/// Possible values of a dimension, as numbers show them; `None` if nothing names any.
fn codes(series: &Series, parsed: &Parsed, dimension: Dimension) -> Option<Vec<String>> {
    let shown = shown_code(series, parsed, dimension).map(|value| vec![value]);
    let listed = |values: &[String]| (!values.is_empty()).then(|| values.to_vec());
    shown.or_else(|| match dimension {
        Dimension::Project => listed(&series.served.projects),
        Dimension::Type => listed(&series.served.types_shown),
        Dimension::Variable(index) => {
            let Variable { default, .. } = &series.variables[index];
            default.clone().map(|default| vec![default])
        }
    })
}

/// Name and possible values of a dimension, as counter keys hold them.
fn values(series: &Series, parsed: &Parsed, dimension: Dimension) -> (String, Vec<String>) {
    let codes = codes(series, parsed, dimension);
    let values = match (codes, series.table_of(dimension)) {
        (None, None) => vec![ABSENT.to_owned()],
        (Some(codes), None) => codes,
        (Some(codes), Some(table)) => {
            let id = |code: &String| {
                let row = series.reference.by_code(table, code);
                row.map_or_else(|| ABSENT.to_owned(), |row| row.id.clone())
            };
            let mut ids: Vec<String> = codes.iter().map(id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        }
        // Nothing determines it: any of the table, or none.
        (None, Some(table)) => {
            let ids = series.reference.rows(table).map(|row| row.id.clone());
            ids.chain([ABSENT.to_owned()]).collect()
        }
    };
    (series.key_name(dimension), values)
}

/// The part of the key that names the period; the outer `None` if the number shows too little.
fn period(reset: Reset, fiscal: FiscalYear, parsed: &Parsed) -> Option<Option<(String, String)>> {
    let (name, value) = match (reset, parsed.fiscal_year) {
        (Reset::None, _) => return Some(None),
        (Reset::Phase, _) => ("phase", parsed.variables.get("PHASE")?.clone()),
        (Reset::FiscalYear, Some(year)) => FiscalYear::period(year),
        _ => {
            let (first, last) = extent(parsed.date.as_deref()?, parsed.time.as_deref())?;
            let period = reset.period(first, fiscal)?;
            // Coarser than the period: it began or ended in between.
            (reset.period(last, fiscal)? == period).then_some(period)?
        }
    };
    Some(Some((name.to_owned(), value)))
}

/// First and last moment of what a number shows of its date and time.
fn extent(date: &str, time: Option<&str>) -> Option<(DateTime, DateTime)> {
    let (first, last) = days(date)?;
    let time = time.filter(|_| first == last).unwrap_or_default();
    let at = |whole: &str| -> Option<Time> {
        format!("{time}{}", whole.get(time.len()..)?).parse().ok()
    };
    Some((first.to_datetime(at("00:00:00.000")?), last.to_datetime(at("23:59:59.999")?)))
}

/// First and last day of a date as far as it is shown; see [`Parsed::date`].
fn days(date: &str) -> Option<(Date, Date)> {
    if let Ok(day) = date.parse::<Date>() {
        return Some((day, day));
    }
    let year: i16 = date.get(..4)?.parse().ok()?;
    let part: Option<i8> = date.get(6..).and_then(|part| part.parse().ok());
    let months = match date.get(4..6) {
        None => (1, 12),
        Some("-Q") => (3 * part? - 2, 3 * part?),
        Some("-W") => {
            let day = |weekday| ISOWeekDate::new(year, part?, weekday).ok().map(ISOWeekDate::date);
            return Some((day(Weekday::Monday)?, day(Weekday::Sunday)?));
        }
        Some(_) => {
            let month = date.get(5..)?.parse().ok()?;
            (month, month)
        }
    };
    let first = |month| Date::new(year, month, 1).ok();
    Some((first(months.0)?, first(months.1)?.last_of_month()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{inputs, series};
    use super::super::{SeriesDefinition, VariableDefinition};
    use super::*;

    fn origins_of(number: &str, edit: impl FnOnce(&mut SeriesDefinition)) -> Vec<String> {
        let series = series(edit);
        let parsed = series.parse(number).expect("a number of the series");
        series.origins(&parsed).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_number_that_shows_all_names_its_counter() {
        let keys = origins_of("P1-T-A-2024-0007", |definition| {
            definition.template = "{PROJECT}-{CORR_TYPE}-{DISCIPLINE}-{YEAR}-{SEQ:4}".into();
            definition.variables.insert("DISCIPLINE".into(), VariableDefinition::default());
            definition.serials[0].counter =
                ["type", "project", "DISCIPLINE"].map(Into::into).into();
            definition.serials[0].reset = Reset::Year;
        });
        assert_eq!(keys, ["type=T;project=P1;DISCIPLINE=A;year=2024"]);
    }

    #[test]
    fn what_a_number_leaves_out_is_tried_as_the_series_names_it() {
        let keys = origins_of("007", |definition| {
            definition.serves.types = vec!["T".into(), "U".into()];
            definition.serves.projects = vec!["P1".into(), "P2".into()];
            let default = Some("X".into());
            let variable = VariableDefinition { default, ..VariableDefinition::default() };
            definition.variables.insert("AREA".into(), variable);
            definition.variables.insert("ZONE".into(), VariableDefinition::default());
            definition.serials[0].counter =
                ["type", "project", "AREA", "ZONE"].map(Into::into).into();
        });
        let expected = [
            "type=T;project=P1;AREA=X;ZONE=0",
            "type=T;project=P2;AREA=X;ZONE=0",
            "type=U;project=P1;AREA=X;ZONE=0",
            "type=U;project=P2;AREA=X;ZONE=0",
        ];
        assert_eq!(keys, expected);
        let many = origins_of("007", |definition| {
            definition.serves.types = (0..=ORIGINS_MAX).map(|index| format!("T{index}")).collect();
            definition.serials[0].counter = vec!["type".into()];
        });
        assert!(many.is_empty(), "too many to try");
    }

    #[test]
    fn a_period_is_told_where_the_date_is_fine_enough() {
        for (reset, date, expected) in [
            (Reset::Day, "2024-02-29", Some("2024-02-29")),
            (Reset::Day, "2024-02", None),
            (Reset::Week, "2024-02-29", Some("2024-W09")),
            (Reset::Week, "2024-W09", Some("2024-W09")),
            (Reset::Week, "2024-02", None),
            (Reset::Month, "2024-02-29", Some("2024-02")),
            (Reset::Month, "2024-02", Some("2024-02")),
            (Reset::Month, "2024-W08", Some("2024-02")),
            (Reset::Month, "2024-W09", None),
            (Reset::Month, "2024-Q1", None),
            (Reset::Month, "2024", None),
            (Reset::Quarter, "2024-Q1", Some("2024-Q1")),
            (Reset::Quarter, "2024-12", Some("2024-Q4")),
            (Reset::Quarter, "2024", None),
            (Reset::Year, "2024-02-29", Some("2024")),
            (Reset::Year, "2024-Q1", Some("2024")),
            (Reset::Year, "2024", Some("2024")),
            (Reset::Year, "2024-W02", Some("2024")),
            // The year of a week is not always the year of its days.
            (Reset::Year, "2025-W01", None),
            (Reset::FiscalYear, "2024-03", Some("2024")),
            (Reset::FiscalYear, "2024-Q2", Some("2025")),
            (Reset::FiscalYear, "2024", None),
            (Reset::Phase, "2024", None),
        ] {
            let shown = parsed(Some(date), None);
            assert_eq!(told(reset, &shown).flatten().as_deref(), expected, "{reset:?} {date}");
        }
        assert_eq!(told(Reset::None, &parsed(None, None)), Some(None));
        assert_eq!(told(Reset::Year, &parsed(None, None)), None);
    }

    #[test]
    fn a_time_of_day_is_told_where_it_is_fine_enough() {
        for (reset, time, expected) in [
            (Reset::Hour, Some("09"), Some("2024-02-29T09")),
            (Reset::Hour, Some("09:05:07.250"), Some("2024-02-29T09")),
            (Reset::Minute, Some("09"), None),
            (Reset::Minute, Some("09:05"), Some("2024-02-29T09:05")),
            (Reset::Second, Some("09:05"), None),
            (Reset::Second, Some("09:05:07"), Some("2024-02-29T09:05:07")),
            (Reset::Hour, None, None),
        ] {
            let shown = parsed(Some("2024-02-29"), time);
            assert_eq!(told(reset, &shown).flatten().as_deref(), expected, "{reset:?} {time:?}");
        }
        assert_eq!(told(Reset::Hour, &parsed(Some("2024-02"), Some("09"))), None);
    }

    #[test]
    fn a_fiscal_year_and_a_phase_are_told_where_they_are_shown() {
        let mut shown = parsed(None, None);
        shown.fiscal_year = Some(2026);
        shown.variables.insert("PHASE".into(), "P2".into());
        let value = |reset| told(reset, &shown).flatten();
        assert_eq!(value(Reset::FiscalYear).as_deref(), Some("2026"));
        assert_eq!(value(Reset::Phase).as_deref(), Some("P2"));
    }

    fn parsed(date: Option<&str>, time: Option<&str>) -> Parsed {
        let (date, time) = (date.map(Into::into), time.map(Into::into));
        let (variables, serials) = Default::default();
        Parsed { variables, date, time, fiscal_year: None, snowflake: None, serials }
    }

    fn told(reset: Reset, parsed: &Parsed) -> Option<Option<String>> {
        let period = period(reset, FiscalYear { start_month: 4 }, parsed)?;
        Some(period.map(|(_, value)| value))
    }

    #[test]
    fn the_counter_that_a_request_takes_from_is_among_the_origins_of_its_number() {
        let request = inputs("SPO", "", "2024-01-22", &[]);
        let definitions = super::super::builtin_series();
        let spo = definitions.into_iter().find(|definition| definition.code == "SPO");
        let spo = Series::compile(spo.expect("built in")).expect("compiles");
        let draft = spo.draft(&request, crate::testing::NOW).expect("draft");
        let parsed = spo.parse(&draft.partial.fill(&[7]).expect("fits")).expect("reads back");
        assert_eq!(spo.origins(&parsed), draft.keys);
    }
}
