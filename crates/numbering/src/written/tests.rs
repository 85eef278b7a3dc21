//! The error for a value of another kind, and that every field of a series has its form.

use serde::Deserialize;
use serde_json::json;

use super::super::expression::Beside;
use super::super::{SERIES_FORMS, SeriesDefinition, SeriesFileError, read_series};
use super::shape::every_field_has_its_form;
use super::*;

#[test]
fn every_field_of_a_series_says_how_it_is_written() {
    for notation in [Notation::Toml, Notation::Json] {
        let fields = every_field_has_its_form::<SeriesDefinition>(SERIES_FORMS, notation);
        assert!(fields > 50, "only {fields} fields were looked at");
        assert!(every_field_has_its_form::<Beside>(SERIES_FORMS, notation) > 2);
    }
}

/// The error that a file reports for a line in its series.
fn told(line: &str) -> String {
    let file = format!(
        "[[series]]\ncode = \"A\"\nname = \"A\"\ntemplate = \"A-{{SEQ:3}}\"\n{line}\n\
         serves = {{ types = [\"A\"] }}\nserials = [{{}}]\n"
    );
    match read_series(&file) {
        Ok(_) => String::new(),
        Err(SeriesFileError::Syntax { place, reason }) => format!("{place}: {reason}"),
        Err(other) => panic!("{line}: {other}"),
    }
}

#[test]
fn a_setting_of_another_kind_is_told_as_it_is_written() {
    let at = |column| format!("line 5, column {column}: series A: ");
    for (line, column, says) in [
        (
            "fiscal_year_start = \"April\"",
            21,
            "`fiscal_year_start` must be a month, 1 to 12, not \"April\"; write fiscal_year_start \
             = 4",
        ),
        ("fiscal_year_start = -4", 21, "must be a month, 1 to 12, not -4"),
        ("fiscal_year_start = 400", 21, "must be a month, 1 to 12, not 400"),
        (
            "document_date = \"5y\"",
            17,
            "`document_date` must be how far back and how far ahead, not \"5y\"; \
             write document_date = { past = \"5y\", future = \"1y\" }",
        ),
        (
            "document_date = { past = 5 }",
            26,
            "`document_date.past` must be years or days in quotes, not 5",
        ),
        (
            "closed_before = 2025",
            17,
            "must be a date in quotes, not 2025; write closed_before = \"2025-01-01\"",
        ),
        ("policy = \"slow\"", 10, "must be one of `fast`, `durable`, `gapless`, not \"slow\""),
        ("policy = true", 10, "must be one of `fast`, `durable`, `gapless`, not true"),
        ("unique_within = \"project\"", 17, "; write a list: [\"project\"]"),
        ("unique_within = [1]", 18, "`unique_within[0]` must be text in quotes, not 1"),
        (
            "references = [\"projects\"]",
            14,
            "; write one table without the brackets of a list around it: references =",
        ),
        (
            "variables = { V = { width = \"3\" } }",
            29,
            "`variables.V.width` must be a number of characters, not \"3\"",
        ),
        ("variables = { V = 3 }", 19, "`variables.V` must be a table, not 3"),
        ("colour = 4", 1, "unknown field `colour`; known are code,"),
        ("timezon = \"UTC\"", 1, "unknown field `timezon`; did you mean `timezone`?"),
    ] {
        let told = told(line);
        assert!(told.starts_with(&at(column)) && told.contains(says), "{line}: {told}");
    }
    // A bare date of TOML is that date.
    assert_eq!(told("closed_before = 2025-01-01"), "");
}

#[test]
fn the_same_is_told_in_the_notation_of_what_was_sent() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is only read")]
    struct Wanted {
        document_date: super::super::DocumentDate,
        limit: Option<u32>,
    }

    let told = |value: Value, notation| {
        let misfit = read_written::<Wanted>(&value).expect_err("another kind");
        (
            misfit.path(),
            misfit.say(
                &[
                    ("Wanted.document_date", "two spans", "{ past = \"5y\", future = \"1y\" }"),
                    ("limit", "", "100"),
                ],
                notation,
            ),
        )
    };
    let (field, said) = told(json!({ "document_date": "5y" }), Notation::Json);
    let says = "`document_date` must be two spans, not \"5y\"; write \"document_date\": \
                { \"past\": \"5y\", \"future\": \"1y\" }";
    assert_eq!((&*field, &*said), ("document_date", says));
    let (_, said) = told(json!({ "limit": "all" }), Notation::Query);
    assert_eq!(said, "`limit` must be a whole number from 0 on, not \"all\"; write limit=100");
    let (field, said) = told(json!({}), Notation::Json);
    assert!(
        field == "document_date" && said.starts_with("`document_date` is missing; write"),
        "{said}"
    );
    let (_, said) = told(json!([]), Notation::Json);
    assert_eq!(said, "must be an object, not a list");
}
