//! The language reference for administrators says what the code does: its series are sound, its
//! tables show what the code shows, and its recipes give the numbers that they promise.

use jiff::Timestamp;

use super::super::testing::{definition, inputs, serial, series};
use super::super::*;
use super::vectors::{Counters, Vector};

const PAGE: &str = include_str!("../../../docs/numbering.md");

/// The date of the request that the tables are of.
const DATE: &str = "2025-12-02T09:05:07.250+07:00";

/// The series of every TOML block of a text, block by block.
fn series_of(text: &str) -> Vec<Vec<SeriesDefinition>> {
    let blocks = text.split("```toml\n").skip(1).map(|block| {
        let (toml, _) = block.split_once("```").unwrap();
        read_series(toml).unwrap_or_else(|error| panic!("{error}\n{toml}"))
    });
    blocks.collect()
}

/// The cells of the rows of the table with this head.
fn table(head: &str) -> Vec<Vec<&str>> {
    let (_, rest) = PAGE.split_once(head).unwrap_or_else(|| panic!("no table {head}"));
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The code spans of a cell.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The series that the tables are of, with a template.
fn shown_by(template: &str, edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    series(|definition| {
        definition.template = template.into();
        definition.fiscal_year_start = Some(10);
        definition.prefix = Some("SPO".into());
        definition.timezone = Some("Asia/Bangkok".into());
        definition.serves.types = vec!["RFA".into()];
        for name in ["ORIGINATOR", "SUB_TYPE", "REV"] {
            definition.variables.insert(name.into(), VariableDefinition::default());
        }
        edit(definition);
    })
}

/// The request that the tables are of.
fn drafted(series: &Series, phase: Option<&str>) -> Draft {
    let context = [("ORIGINATOR", "คคง."), ("SUB_TYPE", "21"), ("REV", "A")];
    let phase = phase.map(Into::into);
    let request = Inputs { phase, ..inputs("RFA", "LCBP3-C2", DATE, &context) };
    let now: Timestamp = DATE.parse().unwrap();
    series.draft(&request, now).unwrap()
}

/// A value as a serial's word in series files.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_json::from_value(text.into()).unwrap()
}

#[test]
fn every_series_of_the_page_is_sound() {
    assert_eq!(series_of(PAGE).len(), 10);
}

#[test]
fn every_token_of_the_page_shows_what_the_page_says() {
    let rows = table("| token | shows | meaning |");
    assert_eq!(rows.len(), 32);
    for row in rows {
        let (token, shown) = (code(row[0])[0], code(row[1])[0]);
        // Every number needs its serial: behind the token if that is none, before a check.
        let (template, shown) = if token.contains("CHECK") {
            (format!("{{SEQ}}{token}"), format!("42{shown}"))
        } else if token.contains("SEQ") {
            (token.into(), shown.into())
        } else {
            (format!("{token}/{{SEQ}}"), format!("{shown}/42"))
        };
        let series = shown_by(&template, |definition| {
            definition.serials = vec![serial(if token.contains("LOT") { "LOT" } else { "SEQ" })];
        });
        let draft = drafted(&series, (token == "{PHASE}").then_some("P2"));
        assert_eq!(draft.partial.fill(&[42]).unwrap(), shown, "{token}");
    }
}

#[test]
fn every_value_of_the_page_is_written_as_the_page_says() {
    let head = "| `style` | `overflow` | token | 1 | 26 | 27 | 702 | 1000 |";
    let values: Vec<u64> = head.split(['|', ' ']).filter_map(|cell| cell.parse().ok()).collect();
    let rows = table(head);
    assert_eq!((values.len(), rows.len()), (5, 5));
    for row in rows {
        let series = shown_by(code(row[2])[0], |definition| {
            definition.serials[0].style = word(code(row[0])[0]);
            definition.serials[0].overflow = word(code(row[1])[0]);
        });
        let partial = drafted(&series, None).partial;
        for (value, cell) in values.iter().zip(&row[3..]) {
            let fits = *value <= series.serials()[0].max;
            let shown = fits.then(|| partial.fill(&[*value]).unwrap());
            assert_eq!(shown.as_deref(), code(cell).first().copied(), "{row:?} {value}");
            assert_eq!(*cell == "refused", !fits, "{row:?} {value}");
        }
    }
}

#[test]
fn every_reset_of_the_page_names_its_counters_as_the_page_says() {
    let rows = table("| `reset` | in the counter's name | begins |");
    assert_eq!(rows.len(), 11);
    for row in rows {
        let reset: Reset = word(code(row[0])[0]);
        let series = shown_by("{SEQ}", |definition| definition.serials[0].reset = reset);
        let key = drafted(&series, (reset == Reset::Phase).then_some("P2")).keys[0].to_string();
        assert_eq!(key, code(row[1]).first().copied().unwrap_or_default(), "{reset:?}");
    }
}

#[test]
fn time_elements_of_the_page_reset_as_the_page_says() {
    let rows = table("| time elements | `reset` |");
    assert_eq!(rows.len(), 9);
    for row in rows {
        let reset: Reset = word(code(row[1])[0]);
        let mut patterns: Vec<Option<&str>> = code(row[0]).into_iter().map(Some).collect();
        if row[0] == "none" {
            patterns.push(None);
        }
        assert!(!patterns.is_empty(), "{row:?}");
        for pattern in patterns {
            let element = |key, value| serde_json::json!({ "key": key, "value": value });
            let time = pattern.map(|pattern| element("time", pattern));
            let elements = time.into_iter().chain([element("serial", "1(3)")]);
            let json = serde_json::Value::from_iter(elements).to_string();
            let head = definition();
            let made = Expression::parse(&json).unwrap().define(head).unwrap();
            assert_eq!(made.serials[0].reset, reset, "{pattern:?}");
        }
    }
}

/// What the row of a recipe is answered with: its number, or the slug of its refusal.
fn answer(counters: &mut Counters, last: &mut Option<(Inputs, String)>, request: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(request).unwrap();
    if let Some(rev) = json["rev"].as_str() {
        let (issued, number) = last.as_ref().expect("a number to revise");
        let series = &counters.series[0];
        let read = series.parse(number).unwrap().serials;
        let values: Vec<u64> = read.iter().map(|serial| serial.value).collect();
        let original = Original { inputs: issued, values: &values, number };
        return series.revise(&original, rev).unwrap().number;
    }
    let vector: Vector = serde_json::from_value(json).unwrap();
    match counters.take(&vector, true) {
        Ok((number, _)) => {
            *last = Some((vector.inputs(), number.clone()));
            number
        }
        Err((slug, _)) => slug,
    }
}

#[test]
fn every_recipe_gives_the_numbers_that_it_promises() {
    let (_, recipes) = PAGE.split_once("\n## Recipes\n").unwrap();
    let (recipes, _) = recipes.split_once("\n## ").unwrap();
    let mut count = 0;
    for recipe in recipes.split("\n### ").skip(1) {
        let definitions = series_of(recipe).remove(0);
        let compile = |definition| Series::compile(definition).unwrap();
        let series = definitions.into_iter().map(compile).collect();
        let (mut counters, mut last) = (Counters::of(series), None);
        let rows = recipe.lines().filter(|line| line.starts_with("| `{\""));
        let before = count;
        for row in rows {
            let [request, promised] = code(row)[..] else { panic!("{row}") };
            assert_eq!(answer(&mut counters, &mut last, request), promised, "{row}");
            count += 1;
        }
        assert!(count > before, "{recipe}");
    }
    assert_eq!(count, 22);
}
