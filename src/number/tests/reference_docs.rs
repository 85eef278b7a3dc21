//! The language reference for administrators says what the code does: its series are sound, and its
//! table of tokens shows what the tokens show.

use jiff::Timestamp;

use super::super::testing::{inputs, serial, series};
use super::super::*;

const PAGE: &str = include_str!("../../../docs/numbering.md");

#[test]
fn every_series_of_the_page_is_sound() {
    let blocks: Vec<&str> = PAGE.split("```toml\n").skip(1).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let (toml, _) = block.split_once("```").unwrap();
        read_series(toml).unwrap_or_else(|error| panic!("{error}\n{toml}"));
    }
}

#[test]
fn every_token_of_the_page_shows_what_the_page_says() {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `{")).map(|line| {
        let mut cells = line.split('`');
        (format!("{{{}", cells.next().unwrap()), cells.nth(1).unwrap())
    });
    let rows: Vec<(String, &str)> = rows.collect();
    assert_eq!(rows.len(), 29);
    for (token, shown) in rows {
        // Every number needs its serial: behind the token if that is none, before a check.
        let (template, shown) = if token.contains("CHECK") {
            (format!("{{SEQ}}{token}"), format!("42{shown}"))
        } else if token.contains("SEQ") {
            (token.clone(), shown.into())
        } else {
            (format!("{token}/{{SEQ}}"), format!("{shown}/42"))
        };
        let series = series(|definition| {
            definition.template = template;
            definition.fiscal_year_start = Some(10);
            definition.prefix = Some("SPO".into());
            definition.timezone = Some("Asia/Bangkok".into());
            definition.serves.types = vec!["RFA".into()];
            definition.serials = vec![serial(if token.contains("LOT") { "LOT" } else { "SEQ" })];
            for name in ["ORIGINATOR", "SUB_TYPE", "REV"] {
                definition.variables.insert(name.into(), VariableDefinition::default());
            }
        });
        let context = [("ORIGINATOR", "คคง."), ("SUB_TYPE", "21"), ("REV", "A")];
        let date = "2025-12-02T09:05:07.250+07:00";
        let phase = (token == "{PHASE}").then(|| "P2".into());
        let request = Inputs { phase, ..inputs("RFA", "LCBP3-C2", date, &context) };
        let draft = series.draft(&request, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(draft.mask.fill(&[42]).unwrap(), shown, "{token}");
    }
}
