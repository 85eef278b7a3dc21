//! The pages for administrators describe what the code does. Of the reference: its series are
//! sound, and its tables show what the code shows. Of the tutorial: its series give the numbers
//! that it promises, and are refused as it says.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::testing::{self, definition, inputs, serial, series};
use super::super::*;
use super::vectors::{Counters, Vector};

const PAGE: &str = include_str!("../../../../docs/numbering.md");
const TUTORIAL: &str = include_str!("../../../../docs/numbering-tutorial.md");

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
    assert_eq!(series_of(PAGE).len(), 5);
}

#[test]
fn every_token_of_the_page_shows_what_the_page_says() {
    let rows = table("| token | shows | meaning |");
    assert_eq!(rows.len(), 32);
    for row in rows {
        let (token, shown) = (code(row[0])[0], code(row[1])[0]);
        // Every number needs its serial: after the token if that is none, before a check.
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

/// A step of the tutorial, in the order of its text.
#[derive(Default)]
struct Walk {
    counters: Counters,
    rows: Vec<ReferenceRow>,
    /// What is numbered now, and as which version.
    version: (u32, Vec<SeriesDefinition>),
    /// The last number, with its request.
    last: Option<(Inputs, String)>,
    /// Why the series above is refused.
    refusal: Option<String>,
    /// Requests and refusals.
    seen: [usize; 2],
}

impl Walk {
    /// The series, of which numbers may have been issued, become these.
    fn apply(&mut self, toml: &str) {
        let definitions = read_series(toml).unwrap();
        assert_eq!(self.refusal_of(&definitions), None, "{toml}");
        let tables = self.tables();
        let compile = |definition: &SeriesDefinition| {
            let series = Series::compile(definition.clone()).unwrap();
            series.with_reference(Arc::clone(&tables))
        };
        self.counters.series = definitions.iter().map(compile).collect();
        self.version = (self.version.0 + 1, definitions);
    }

    /// Why these may not follow the present series.
    fn refusal_of(&self, definitions: &[SeriesDefinition]) -> Option<String> {
        let (version, before) = &self.version;
        for (earlier, next) in before.iter().zip(definitions) {
            let [earlier, next] = [earlier, next].map(|one| Series::compile(one.clone()).unwrap());
            if let Err(error) = check_change(&earlier, &next) {
                return Some(error.to_string());
            }
        }
        let earlier = |definition: &SeriesDefinition| EarlierVersion {
            version: *version,
            definition: definition.clone(),
        };
        let earlier: Vec<_> = before.iter().map(earlier).collect();
        let proved =
            prove_saved(definitions, &self.tables(), |_| true, &earlier, &[], &GiveUp::default());
        proved.err().map(|error| error.to_string())
    }

    fn tables(&self) -> Arc<ReferenceData> {
        Arc::new(ReferenceData::new(self.rows.iter().cloned(), []))
    }

    /// Rows of a table are imported; a code that changes becomes a former one.
    fn import(&mut self, table: &str, csv: &str) {
        for line in csv.lines().skip(1) {
            let [id, code, name, active] = line.split(',').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let before = self.rows.iter().position(|row| row.id == id);
            let before = before.map(|at| self.rows.remove(at));
            let former = before.map(|row| [row.former_codes, vec![row.code]].concat());
            let former_codes = former.unwrap_or_default();
            let row = testing::reference(table, id, code, active == "true");
            self.rows.push(ReferenceRow { name: name.into(), former_codes, ..row });
        }
        let (tables, series) = (self.tables(), std::mem::take(&mut self.counters.series));
        let with_tables = series.into_iter().map(|one| one.with_reference(Arc::clone(&tables)));
        self.counters.series = with_tables.collect();
    }

    /// A fenced block.
    fn block(&mut self, language: &str, text: &str) {
        match language {
            "toml" => self.apply(text),
            "toml refused" => {
                let refusal = self.refusal_of(&read_series(text).unwrap());
                self.refusal = Some(refusal.unwrap_or_else(|| panic!("is proved: {text}")));
            }
            "text" => {
                let refusal = self.refusal.take().expect("a refused series");
                let words: Vec<&str> = text.split_whitespace().collect();
                assert_eq!(words.join(" "), refusal);
                self.seen[1] += 1;
            }
            "sh" => {}
            csv => self.import(csv.strip_prefix("csv ").expect("a language"), text),
        }
    }

    /// The answer to the request of a row: its number, or the slug of its refusal.
    fn answer(&mut self, request: &str) -> String {
        self.seen[0] += 1;
        let json: serde_json::Value = serde_json::from_str(request).unwrap();
        if let Some(rev) = json["rev"].as_str() {
            let (issued, number) = self.last.as_ref().expect("a number to revise");
            let series = &self.counters.series[0];
            let read = series.parse(number).unwrap().serials;
            let values: Vec<u64> = read.iter().map(|serial| serial.value).collect();
            let original = Original { inputs: issued, values: &values, number };
            return series.revise(&original, rev).unwrap().number;
        }
        let vector: Vector = serde_json::from_value(json).unwrap();
        match self.counters.take(&vector, true) {
            Ok((number, _)) => {
                self.last = Some((vector.inputs(), number.clone()));
                number
            }
            Err((slug, _)) => slug,
        }
    }
}

#[test]
fn every_step_of_the_tutorial_gives_the_numbers_and_the_refusals_that_it_promises() {
    let mut seen = Vec::new();
    for step in TUTORIAL.split("\n## ").filter(|step| step.starts_with(char::is_numeric)) {
        let mut walk = Walk::default();
        // Texts alternate with blocks between the fences.
        for (at, piece) in step.split("\n```").enumerate() {
            if at % 2 == 1 {
                let (language, text) = piece.split_once('\n').unwrap();
                walk.block(language, text);
                continue;
            }
            for row in piece.lines().filter(|line| line.starts_with("| `{\"")) {
                let [request, promised] = code(row)[..] else { panic!("{row}") };
                assert_eq!(walk.answer(request), promised, "{row}");
            }
        }
        assert!(walk.seen[0] > 0 && walk.refusal.is_none(), "{step}");
        seen.push(walk.seen);
    }
    let sum = |at: usize| seen.iter().map(|seen| seen[at]).sum::<usize>();
    assert_eq!((seen.len(), sum(0), sum(1)), (11, 55, 3));
}
