//! Which counters a number may have come from: the way back from a text to its counter keys.
//!
//! A number need not show everything that its counter counts by. What it leaves out is tried with
//! every value that the series itself names, so an origin is a candidate: whoever follows one
//! checks that the number is really there.

use jiff::civil::Date;

use super::draft::ABSENT;
use super::series::{Dimension, Variable};
use super::template::Part;
use super::{CounterKey, Parsed, Reset, Series};

/// Most candidates of one number; a series with more is not followed back.
const ORIGINS_MAX: usize = 64;

/// Candidates for the counter of the first serial; none where the number cannot tell its period.
pub(super) fn origins(series: &Series, parsed: &Parsed) -> Vec<CounterKey> {
    let Some(rule) = series.counters.first() else { return Vec::new() };
    let Some(period) = period(rule.reset, parsed.date.as_deref()) else { return Vec::new() };
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

/// Document types that a number may be of.
pub(super) fn types(series: &Series, parsed: &Parsed) -> Vec<String> {
    codes(series, parsed, Dimension::Type).unwrap_or_default()
}

/// Possible values of a dimension, as numbers show them; `None` where nothing names any.
fn codes(series: &Series, parsed: &Parsed, dimension: Dimension) -> Option<Vec<String>> {
    let shown = |name: &str| parsed.variables.get(name).map(|value| vec![value.clone()]);
    let listed = |values: &Vec<String>| (!values.is_empty()).then(|| values.clone());
    match dimension {
        Dimension::Project => shown("PROJECT").or_else(|| listed(&series.served.projects)),
        Dimension::Type => {
            let token = series.parts.iter().find_map(|part| match part {
                Part::Type(name) => shown(name),
                _ => None,
            });
            token.or_else(|| listed(&series.served.types_shown))
        }
        Dimension::Variable(index) => {
            let Variable { name, default, .. } = &series.variables[index];
            shown(name).or_else(|| default.clone().map(|default| vec![default]))
        }
    }
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
        // Nothing says which: any of the table, or none.
        (None, Some(table)) => {
            let ids = series.reference.rows(table).map(|row| row.id.clone());
            ids.chain([ABSENT.to_owned()]).collect()
        }
    };
    (series.key_name(dimension), values)
}

/// The part of the key that names the period; the outer `None` where the date shown is too coarse.
fn period(reset: Reset, date: Option<&str>) -> Option<Option<(String, String)>> {
    if reset == Reset::None {
        return Some(None);
    }
    let date = date?;
    let first_day = match reset {
        Reset::Month => format!("{}-01", date.get(..7)?),
        // The year of a week is not always the year of its days.
        Reset::Year if !date.contains('W') => format!("{}-01-01", date.get(..4)?),
        _ => date.to_owned(),
    };
    let first_day: Date = first_day.parse().ok()?;
    Some(reset.period(first_day).map(|(name, value)| (name.to_owned(), value)))
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
            (Reset::None, None, Some(None)),
            (Reset::Day, Some("2024-02-29"), Some(Some("2024-02-29"))),
            (Reset::Day, Some("2024-02"), None),
            (Reset::Month, Some("2024-02-29"), Some(Some("2024-02"))),
            (Reset::Month, Some("2024-02"), Some(Some("2024-02"))),
            (Reset::Month, Some("2024-Q1"), None),
            (Reset::Month, Some("2024"), None),
            (Reset::Year, Some("2024-02-29"), Some(Some("2024"))),
            (Reset::Year, Some("2024-Q1"), Some(Some("2024"))),
            (Reset::Year, Some("2024"), Some(Some("2024"))),
            (Reset::Year, Some("2024-W01"), None),
            (Reset::Year, None, None),
        ] {
            let told = period(reset, date).map(|period| period.map(|(_, value)| value));
            assert_eq!(told, expected.map(|value| value.map(Into::into)), "{reset:?} {date:?}");
        }
    }

    #[test]
    fn the_counter_that_a_request_takes_from_is_among_the_origins_of_its_number() {
        let request = inputs("SPO", "", "2024-01-22", &[]);
        let definitions = super::super::builtin_series();
        let spo = definitions.into_iter().find(|definition| definition.code == "SPO");
        let spo = Series::compile(spo.expect("built in")).expect("compiles");
        let draft = spo.draft(&request, jiff::Timestamp::UNIX_EPOCH).expect("draft");
        let parsed = spo.parse(&draft.mask.fill(&[7]).expect("fits")).expect("reads back");
        assert_eq!(spo.origins(&parsed), draft.keys);
    }
}
