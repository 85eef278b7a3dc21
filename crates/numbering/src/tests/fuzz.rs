//! No text makes the readers of this room panic, and what they accept is coherent. Bolero makes the
//! texts: of the words of each language, so that most come far, with raw characters between them.
//!
//! A failure prints `BOLERO_RANDOM_SEED`; `BOLERO_RANDOM_TEST_TIME_MS` is the time of each test.

use std::time::Duration;

use super::super::testing::{compile, definition, inputs};
use super::super::*;

/// Time of each test if the environment names none: short, for runs of all tests.
const GLANCE: Duration = Duration::from_millis(400);

/// Most words of a text: more than any bound of the language allows.
const WORDS_MAX: usize = 1024;

/// Marks, digits of other scripts, invisible characters, and letters that combine.
const RAW: [&str; 16] = [
    "\u{301}", "\u{e34}", "\u{200b}", "\u{0}", "\u{1}", "\u{ffff}", "๑", "１", "é", "e", " ", "\n",
    "\"", "\\", "%", "𝟙",
];

/// Calls `check` with texts of these words, separated by blanks.
fn fuzz(words: &str, check: impl Fn(&str) + std::panic::RefUnwindSafe) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let text = |bytes: &[u8]| -> String {
        let all = words.len() + RAW.len();
        let word = |byte: &u8| match usize::from(*byte) % all {
            index if index < words.len() => words[index],
            index => RAW[index - words.len()],
        };
        // Most texts are as long as what is usually read; some are longer than any bound.
        let Some((first, rest)) = bytes.split_first() else { return String::new() };
        let count = if *first < 224 { usize::from(*first % 32) } else { WORDS_MAX };
        rest.iter().take(count).map(word).collect()
    };
    bolero::check!()
        .with_max_len(WORDS_MAX)
        .with_test_time(GLANCE)
        .for_each(|bytes: &[u8]| check(&text(bytes)));
}

fn builtin() -> Vec<Series> {
    builtin_series().into_iter().map(|d| Series::compile(d).expect("sound")).collect()
}

#[test]
fn no_template_makes_compiling_or_drafting_panic() {
    let words = "
        {SEQ:3} { } {{ }} SEQ DATE YEAR PREFIX PROJECT CORR_TYPE A 单位 : 3 15 yyyy MM dd
        HHmm ww YYYY Q ' - ก {DATE: {YEAR: B.E. ROC {A} {单位:2} {PROJECT}";
    fuzz(words, |template| {
        let compiled = compile(|definition| {
            definition.template = template.into();
            definition.prefix = Some("P".into());
            for name in ["A", "单位"] {
                definition.variables.insert(name.into(), VariableDefinition::default());
            }
        });
        let Ok(series) = compiled else { return };
        let request = inputs("T", "P", "", &[("A", "a"), ("单位", "财务")]);
        let Ok(draft) = series.draft(&request, testing::NOW) else { return };
        let most: Vec<u64> = series.serials().iter().map(|serial| serial.max).collect();
        let number =
            draft.partial.fill(&most).expect("a draft takes every value up to the largest");
        assert!(number.chars().count() <= TEXT_CHARS_MAX, "{number}");
        match series.parse(&number) {
            Ok(parsed) => assert_eq!(parsed.serials[0].value, most[0], "{number}"),
            Err(ParseError::Ambiguous { .. }) => {}
            Err(error) => panic!("{number}: {error}"),
        }
    });
}

#[test]
fn no_text_makes_reading_numbers_panic() {
    let series = builtin();
    let formats: Vec<RuleFormats> =
        series.iter().map(|series| RuleFormats::of(series).expect("compiles")).collect();
    let words = "
        SPO- 20240122 -001 - 0001 2568 คคง. สคฉ.3 LCBP3-C2 -RFA- TER RPT A HT 财务部 000001
        BX20240115 %s %% C0001A0101 P0002 20150710 0123456789 235959 9 2025";
    fuzz(words, |text| {
        for kind in ExchangeKind::ALL {
            let reads = |series: &&Series| series.definition().code == kind.type_code();
            let series = series.iter().find(reads).expect("built in");
            let read = (ExchangeSerial::parse(kind, text).is_ok(), series.parse(text).is_ok());
            assert_eq!(read.0, read.1, "{kind:?} and its series read alike: {text}");
        }
        for (series, formats) in series.iter().zip(&formats) {
            if let Ok(parsed) = series.parse(text) {
                assert_eq!(parsed.serials.len(), series.serials().len(), "{text}");
                assert!(parsed.serials.iter().all(|serial| serial.value <= NUMBER_MAX), "{text}");
                for key in series.origins(&parsed) {
                    assert_eq!(CounterKey::parse(&key.to_string()), Some(key), "{text}");
                }
            }
            if let Ok(key) = formats.counter_key(text) {
                assert_eq!(CounterKey::parse(&key.to_string()), Some(key), "{text}");
            }
        }
    });
}

#[test]
fn no_request_makes_drafting_panic() {
    let series = builtin();
    let words = "
        2024 - 02 29 T 23:59 :60 Z +07:00 9999 0000 ก A é";
    fuzz(words, |text| {
        for series in &series {
            let definition = series.definition();
            let names = definition.variables.keys();
            for context in ["A", text] {
                let context = names.clone().map(|name| (name.clone(), context.into())).collect();
                let (date, project) = (Some(text.into()), Some(text.into()));
                let type_code = definition.serves.types[0].clone();
                let phase = Some(text.into());
                let request =
                    Inputs { type_code, project, date, phase, context, ..Inputs::default() };
                let Ok(draft) = series.draft(&request, testing::NOW) else { continue };
                assert_eq!(
                    PartialNumber::parse(&draft.partial.to_text()),
                    Ok(draft.partial),
                    "{text}"
                );
                assert_eq!(draft.document_date.len(), 10, "{text}");
            }
        }
    });
}

#[test]
fn no_text_makes_reading_expressions_panic() {
    let words = r##"
        [ ] { } , : "key":"const" "key":"time" "key":"variable" "key":"serial"
        "value":"HT" "value":"yyyyMMdd" "value":"1(6)" "value":"单位" "value":"
        "label":"x" 1(6) yyyy null 1e9 [{ }] },{ \u0301 {"key":"serial","value":"1(3)"}
        {"key":"variable","value":"A"} {"key":"const","value":"{"}
        {"key":"time","value":"yy"}"##;
    fuzz(words, |json| {
        // A loose text is rarely JSON: the same words once more as the elements of an array.
        for json in [json, &format!("[{}]", json.replace("}{", "},{"))] {
            let Ok(expression) = Expression::parse(json) else { continue };
            let Ok(made) = expression.define(definition()) else { continue };
            let series = Series::compile(made).expect("what was defined compiles");
            let said = Expression::of(&series).expect("what came from an expression is one");
            let again = said.define(definition()).expect("it is sound");
            assert_eq!(again.serials, series.definition().serials, "{json}");
        }
    });
}

#[test]
fn only_one_text_is_read_as_a_partial_number_and_as_a_counter_key() {
    let words = r##"
        {0:3} {1} {{ }} { } 0 7 8 : 15 16 = ; \ a ก"##;
    fuzz(words, |text| {
        if let Ok(partial) = PartialNumber::parse(text) {
            assert_eq!(partial.to_text(), text);
            assert!(partial.fill(&[1; 8]).is_ok(), "{text}");
        }
        if let Some(key) = CounterKey::parse(text) {
            assert_eq!(key.to_string(), text);
        }
    });
}
