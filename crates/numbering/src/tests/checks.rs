//! Check characters: which templates may have them, and the error for a wrong one.

use super::super::testing::{compile, inputs, series};
use super::super::*;

#[test]
fn a_check_that_would_overlook_something_is_refused_at_its_token() {
    for (template, position, hint) in [
        ("{SEQ:3}{CHECK}", 8, "{CHECK:luhn}"),
        ("{SEQ:3}{CHECK:LUHN}", 8, "{CHECK:damm}"),
        ("{YEAR}{CHECK:luhn}{SEQ:3}", 7, "behind {SEQ}"),
        ("{SEQ:3}{CHECK:luhn}{CHECK:damm}", 20, "one check already"),
        ("SPO-{SEQ:3}{CHECK:luhn}", 12, "\"SPO-\" to its left may show 'S'"),
        ("ค{SEQ:3}{CHECK:mod97-10}", 9, "'ค'"),
        ("{REV}{SEQ:3}{CHECK:mod37-36}", 13, "{REV} to its left may show 'a'"),
        ("{PHASE}{SEQ:3}{CHECK:mod37-36}", 15, "{PHASE}"),
        ("{PROJECT}{SEQ:3}{CHECK:damm}", 17, "{PROJECT}"),
        ("{CORR_TYPE}{SEQ:3}{CHECK:damm}", 19, "{CORR_TYPE} to its left may show 'T'"),
    ] {
        let error = compile(|definition| {
            definition.template = template.into();
            definition.variables.insert("REV".into(), VariableDefinition::default());
        })
        .unwrap_err();
        let TemplateError::Token { at, .. } = &error else { panic!("{template}: {error}") };
        assert_eq!(at.position, position, "{template}: {error}");
        assert!(error.to_string().contains(hint), "{template}: {error}");
    }
    let letters = |check: &str| {
        compile(|definition| {
            definition.template = format!("{{SEQ:3}}{{CHECK:{check}}}");
            definition.serials[0].style = Style::Letters;
        })
    };
    assert!(letters("mod37-36").is_ok());
    let error = letters("luhn").unwrap_err().to_string();
    assert!(error.contains("serial SEQ to its left may show 'A'"), "{error}");
}

#[test]
fn what_an_algorithm_reads_or_skips_may_stand_before_it() {
    for check in ["mod97-10", "mod37-36"] {
        let series = compile(|definition| {
            definition.serves.types = vec!["PO".into()];
            definition.serves.projects = vec!["P-1".into()];
            let alphabet = Some("A-Z0-9.".into());
            let variable = VariableDefinition { alphabet, ..VariableDefinition::default() };
            definition.variables.insert("AREA".into(), variable);
            definition.template =
                format!("{{PROJECT}}/{{CORR_TYPE}} {{AREA}}-{{SEQ:3}}-{{CHECK:{check}}}");
        });
        let series = series.unwrap();
        let request = inputs("PO", "P-1", "2024-02-29", &[("AREA", "N.7")]);
        let draft = series.draft(&request, testing::NOW).unwrap();
        let number = draft.partial.fill(&[1]).unwrap();
        assert_eq!(series.parse(&number).unwrap().variables["AREA"], "N.7", "{number}");
    }
}

#[test]
fn every_number_of_a_range_has_its_own_check() {
    let series = series(|definition| definition.template = "{SEQ:3}-{CHECK:damm}".into());
    let draft = series.draft(&inputs("T", "", "2024-02-29", &[]), testing::NOW).unwrap();
    let range = Range { first: 572, last: 574, step: 1 };
    let numbers: Vec<String> =
        range.values().map(|value| draft.partial.fill(&[value]).unwrap()).collect();
    assert_eq!(numbers[0], "572-4");
    for (number, value) in numbers.iter().zip(range.values()) {
        assert_eq!(series.parse(number).unwrap().serials[0].value, value);
    }
}

#[test]
fn a_wrong_check_is_refused_at_its_place() {
    let checked = series(|definition| definition.template = "N{SEQ:3}-{CHECK:mod37-36}".into());
    let number = checked.draft(&inputs("T", "", "2024-02-29", &[]), testing::NOW);
    let number = number.unwrap().partial.fill(&[7]).unwrap();
    assert!(checked.parse(&number).is_ok());
    let wrong = format!("{}{}", &number[..5], if number.ends_with('0') { '1' } else { '0' });
    match checked.parse(&wrong) {
        Err(ParseError::Check { position: 6, expected, .. }) => {
            assert!(number.ends_with(&expected));
        }
        other => panic!("{wrong}: {other:?}"),
    }
    let lower = checked.parse("N007-é").unwrap_err();
    assert!(matches!(lower, ParseError::Departs { position: 6, .. }), "{lower}");
}
