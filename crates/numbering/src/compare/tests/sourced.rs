//! The comparison of series whose numbers show what a source gives: two numbers that differ in it,
//! and in every serial, are proved to differ in their texts, within a version and across versions.
//! All small templates are tried, and every number of each.

use std::collections::BTreeMap;

use super::super::super::*;
use super::notation::prove;

/// Values of one or two signs, which run into each other if nothing separates them.
const VALUES: [&str; 6] = ["0", "1", "00", "01", "10", "11"];

/// The elements of templates.
const PARTS: [&str; 6] = ["{ERP}", "{B}", "{SEQ:1}", "-", "1", "{ERP:2}"];

fn definition(template: &str, source: Option<&str>) -> SeriesDefinition {
    let (mut definition, mut variables) = (testing::definition(), BTreeMap::new());
    for (name, source) in [("ERP", source), ("B", None)] {
        let variable = VariableDefinition {
            source: source.map(str::to_owned),
            alphabet: Some("01".into()),
            width_max: Some(2),
            required: source.is_none(),
            ..VariableDefinition::default()
        };
        variables.insert(name.to_owned(), variable);
    }
    definition.template = template.into();
    (definition.policy, definition.variables) = (Policy::Gapless, variables);
    definition.serials.retain(|_| template.contains("{SEQ"));
    if let Some(serial) = definition.serials.first_mut() {
        serial.max = Some(3);
    }
    definition
}

/// Two numbers of one text that differ in what the source gave, and in the value of the serial.
fn collision(series: &Series) -> Option<String> {
    let values = if series.definition().serials.is_empty() { 1..=1 } else { 1..=3_u64 };
    let mut known: BTreeMap<String, Vec<(&str, u64)>> = BTreeMap::new();
    for (erp, b) in VALUES.iter().flat_map(|erp| VALUES.iter().map(move |b| (*erp, *b))) {
        let request = testing::inputs("T", "", "2025-12-02", &[("B", b)]);
        let Ok(draft) = series.draft_answered(&request, erp, testing::NOW) else { continue };
        for value in values.clone() {
            let text = draft.partial.fill(&[value]).expect("fits");
            let all = known.entry(text.clone()).or_default();
            let is_counted = !series.definition().serials.is_empty();
            if all.iter().any(|(other, its)| *other != erp && (!is_counted || *its != value)) {
                return Some(format!("{text}: {erp} {value}, {all:?}"));
            }
            all.push((erp, value));
        }
    }
    None
}

#[test]
fn no_two_values_of_a_source_make_one_text_in_a_series_that_is_proved() {
    let mut tally = [0; 3];
    for code in 0..PARTS.len().pow(4) {
        let parts: Vec<&str> =
            (0..4).map(|place| PARTS[code / PARTS.len().pow(place) % PARTS.len()]).collect();
        let template = format!("HT{}", parts.concat());
        let Ok(series) = Series::compile(definition(&template, Some("erp"))) else { continue };
        let (proved, found) = (prove(&series).is_ok(), collision(&series));
        assert!(!proved || found.is_none(), "{template} is proved: {found:?}");
        tally[if proved { 0 } else { 1 + usize::from(found.is_none()) }] += 1;
    }
    let [proved, refused, in_doubt] = tally;
    println!("{proved} proved, {refused} refused with a collision, {in_doubt} without one");
    assert!(proved > 50 && refused > in_doubt);
}

/// What one source gives is no identity of what another gives, or of what requests bring.
#[test]
fn a_version_of_another_source_and_another_series_of_the_same_one_need_another_text() {
    let saved = |before: &SeriesDefinition, next: &SeriesDefinition| {
        let earlier = [EarlierVersion { version: 1, definition: before.clone() }];
        let (saved, none) = ([next.clone()], GiveUp::default());
        prove_saved(&saved, &Default::default(), |_| true, &earlier, &[], &none).is_ok()
    };
    let (erp, sap) = (definition("HT{ERP}", Some("erp")), definition("HT{ERP}", Some("sap")));
    assert!(saved(&erp, &erp), "the same numbers");
    let longer = definition("HT{ERP}-{B}", Some("erp"));
    assert!(saved(&erp, &longer), "one source, and a sign that it never gives");
    assert!(!saved(&erp, &sap));
    assert!(saved(&erp, &definition("S{ERP}", Some("sap"))));
    let requested = definition("HT{ERP}{SEQ:1}", None);
    assert!(!saved(&requested, &erp) && !saved(&erp, &requested));
    let other = SeriesDefinition { code: "b".into(), ..erp.clone() };
    let other = SeriesDefinition {
        serves: Serves { types: vec!["U".into()], ..Serves::default() },
        ..other
    };
    let both = [erp, other];
    let none = GiveUp::default();
    assert!(prove_saved(&both, &Default::default(), |_| true, &[], &[], &none).is_err());
}
