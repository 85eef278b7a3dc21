//! Ids: how they are shown, checked and read back, and what counts the numbers of a series that
//! shows nothing else.

use jiff::Timestamp;

use super::super::testing::{compile, inputs, serial, series};
use super::super::*;

const NOW: &str = "2025-12-02T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().expect("a time")
}

fn id(serial: u16) -> Snowflake {
    Snowflake::at(now().as_millisecond(), 513, serial).expect("in time")
}

/// A number with an id that was drawn for it.
fn issue(series: &Series, values: &[u64]) -> String {
    let request = inputs("T", "", "2025-12-02", &[]);
    let mut draft = series.draft(&request, now()).expect("draft");
    draft.snowflake.expect("shown").put(&mut draft.partial, id(42));
    let partial = PartialNumber::parse(&draft.partial.to_text()).expect("its own text");
    assert_eq!(partial, draft.partial, "an id is text like any other");
    partial.fill(values).expect("fits")
}

#[test]
fn a_series_of_ids_alone_counts_its_numbers_by_day() {
    let series = series(|d| (d.template, d.serials) = ("ID-{SNOWFLAKE}".into(), Vec::new()));
    assert_eq!(series.serials().len(), 1);
    assert_eq!(series.serials()[0].max, NUMBER_MAX);
    let draft = series.draft(&inputs("T", "", "2025-12-02", &[]), now()).expect("draft");
    assert_eq!(draft.keys[0].to_string(), "day=2025-12-02");
    let number = issue(&series, &[7]);
    assert_eq!(number, format!("ID-{}", id(42)));
    let parsed = series.parse(&number).expect("reads back");
    assert_eq!((parsed.snowflake, parsed.serials.len()), (Some(id(42)), 0));
    assert_eq!(parsed.date, None, "when an id was drawn is not the document's date");
    assert!(series.origins(&parsed).is_empty());
}

#[test]
fn an_id_may_stand_beside_serials_dates_and_a_check() {
    let series = series(|d| {
        d.template = "{YEAR}{SNOWFLAKE}{SEQ:3}{CHECK:damm}".into();
    });
    let number = issue(&series, &[7]);
    assert!(number.starts_with(&format!("2025{}007", id(42))), "{number}");
    let parsed = series.parse(&number).expect("reads back");
    assert_eq!((parsed.snowflake, parsed.serials[0].value), (Some(id(42)), 7));
    assert_eq!(parsed.snowflake.expect("shown").time().to_string(), NOW);
    // The check is that of the id that was drawn.
    let other = number.replace(&id(42).to_string(), &id(43).to_string());
    assert!(matches!(series.parse(&other), Err(ParseError::Check { .. })), "{other}");
}

#[test]
fn a_preview_shows_an_id_of_now_that_nobody_draws() {
    let series = series(|d| (d.template, d.serials) = ("{SNOWFLAKE}".into(), Vec::new()));
    let draft = series.draft(&inputs("T", "", "2025-12-02", &[]), now()).expect("draft");
    let parsed = series.parse(&draft.partial.fill(&[1]).expect("fits")).expect("reads back");
    let shown = parsed.snowflake.expect("shown");
    assert_eq!((shown.time().to_string(), shown.node_number()), (NOW.to_owned(), 0));
}

#[test]
fn a_revision_keeps_the_id() {
    let series = series(|d| {
        (d.template, d.serials) = ("{SNOWFLAKE}-{REV}".into(), Vec::new());
        let label = VariableDefinition { default: Some("A".into()), ..Default::default() };
        d.variables.insert("REV".into(), label);
    });
    let number = issue(&series, &[7]);
    let request = inputs("T", "", "2025-12-02", &[]);
    let original = Original { inputs: &request, values: &[7], number: &number };
    let revised = series.revise(&original, "B").expect("revised");
    assert_eq!(revised.number, format!("{}-B", id(42)));
}

#[test]
fn what_an_id_cannot_be_is_refused() {
    for (template, reason) in [
        ("{SNOWFLAKE:19}", "write {SNOWFLAKE}"),
        ("{SNOWFLAKE}-{SNOWFLAKE}", "one id"),
        ("{CHECK:luhn}{SNOWFLAKE}", "behind {SEQ} or {SNOWFLAKE}"),
    ] {
        let error = compile(|d| (d.template, d.serials) = (template.into(), Vec::new()));
        let error = error.expect_err(template).to_string();
        assert!(error.contains(reason), "{template}: {error}");
    }
    let hidden = compile(|d| {
        d.template = "{SNOWFLAKE}-{SEQ:3}".into();
        d.serials.push(serial("LOT"));
    });
    assert!(hidden.is_err(), "a declared serial is shown, whatever else is");
}

#[test]
fn a_serial_that_comes_to_a_series_of_ids_is_another_counter() {
    let ids = series(|d| (d.template, d.serials) = ("{SNOWFLAKE}".into(), Vec::new()));
    assert_eq!(check_change(&ids, &ids), Ok(()));
    let longer = series(|d| d.template = "{SNOWFLAKE}{SEQ:3}".into());
    assert_eq!(check_change(&ids, &longer), Ok(()), "its numbers are longer");
    let counted = series(|d| d.template = "{SEQ:15}{DATE:yyyy}".into());
    let field = "serials[0]".into();
    assert_eq!(check_change(&ids, &counted), Err(ChangeError::Counters { field }));
}

#[test]
fn a_series_of_ids_survives_its_file_without_serials() {
    let text = "[[series]]\ncode = \"X\"\nname = \"X\"\ntemplate = \"{SNOWFLAKE}\"\n\
                serves = { types = [\"X\"] }\n";
    let definitions = read_series(text).expect("a series");
    let again = serde_json::to_value(&definitions[0]).expect("JSON");
    assert!(again.get("serials").is_none(), "{again}");
    let series = Series::compile(definitions[0].clone()).expect("compiles");
    assert_eq!(series.serials()[0].name, "SNOWFLAKE");
}
