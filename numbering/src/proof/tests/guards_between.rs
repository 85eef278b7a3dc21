//! What each check of the proof must not let pass between two series: pairs that collide by that
//! alone.

use std::sync::Arc;

use super::super::super::testing::reference;
use super::super::super::{
    Ambiguity, EarlierVersion, ReferenceData, References, Series, SeriesDefinition,
    VariableDefinition, prove,
};
use super::guards::{assert_collides, digits, shifted};
use super::traps::{strings, variable};

/// A series of a code, for the type of that name.
fn of(code: &str, template: &str, edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    shifted(template, |definition| {
        definition.code = code.into();
        definition.serves.types = strings(&[code]);
        edit(definition);
    })
}

/// That both series are refused beside the other.
#[track_caller]
fn assert_meet(a: &Series, b: &Series) {
    assert_collides(a, &[b]);
    assert_collides(b, &[a]);
}

#[test]
fn a_prefix_that_goes_on_with_the_others_is_no_other_prefix() {
    let letters = |definition: &mut SeriesDefinition| {
        let letters = VariableDefinition { alphabet: Some("A-Z".into()), ..variable("", 2) };
        definition.variables.insert("A".into(), letters);
    };
    let (a, b) = (of("a", "A{A}-{SEQ:3}", letters), of("b", "AB-{SEQ:3}", |_| ()));
    assert_meet(&a, &b);
}

#[test]
fn types_are_one_for_both_only_where_the_scope_has_them() {
    let typed = |code: &str, template: &str, types: &[&str]| {
        of(code, template, |definition| definition.serves.types = strings(types))
    };
    let a = typed("a", "{CORR_TYPE}-{SEQ:3}", &["AB"]);
    let b = typed("b", "{CORR_TYPE}B-{SEQ:3}", &["A"]);
    assert_meet(&a, &b);
    let scoped = |code: &str, types: &[&str], projects: &[&str]| {
        of(code, "{CORR_TYPE}-{SEQ:3}", |definition| {
            definition.serves.types = strings(types);
            definition.serves.projects = strings(projects);
            definition.unique_within = strings(&["type"]);
        })
    };
    assert_meet(&scoped("a", &["T", "U"], &[]), &scoped("b", &["V", "U"], &["P"]));
}

#[test]
fn a_value_that_both_show_is_one_only_where_the_scope_has_it() {
    let of = |code: &str, template: &str, scope: &[&str]| {
        of(code, template, |definition| definition.unique_within = strings(scope))
    };
    assert_meet(&of("a", "{N}{SEQ:1}", &[]), &of("b", "{N}{SEQ:2}", &[]));
    let scoped = [of("a", "{N}{SEQ:1}", &["N"]), of("b", "{N}{SEQ:2}", &["N"])];
    assert_eq!(prove(&scoped[0], &[&scoped[1]], &[]), Ok(()));
}

#[test]
fn a_code_of_a_table_is_not_what_the_other_shows_of_the_same_scope() {
    let of = |code: &str, template: &str, tabled: bool| {
        of(code, template, |definition| {
            definition.unique_within = strings(&["project"]);
            let project = tabled.then(|| "projects".to_owned());
            definition.references = References { project, ..References::default() };
        })
    };
    let rows = [reference("projects", "1", "P", true)];
    let data = Arc::new(ReferenceData::new(rows, []));
    for (in_a, in_b) in [(true, false), (false, true), (true, true)] {
        let a = of("a", "{PROJECT}-{SEQ:3}", in_a).with_reference(Arc::clone(&data));
        let b = of("b", "{PROJECT}X-{SEQ:3}", in_b).with_reference(Arc::clone(&data));
        assert!(prove(&a, &[&b], &[]).is_err() && prove(&b, &[&a], &[]).is_err(), "{in_a} {in_b}");
    }
    let a = of("a", "{PROJECT}-{SEQ:3}", false);
    assert_eq!(prove(&a, &[&of("b", "{PROJECT}X-{SEQ:3}", false)], &[]), Ok(()));
}

#[test]
fn counters_of_earlier_versions_go_on_in_either_of_two_series() {
    let fives = of("fives", "{SEQ}5", |_| ());
    let tens = of("tens", "{SEQ}", |definition| {
        (definition.serials[0].start, definition.serials[0].step) = (10, 10);
    });
    let mut definition = tens.definition().clone();
    definition.serials[0].step = 5;
    let before = EarlierVersion { version: 1, definition: definition.clone() };
    definition.serials[0].step = 10;
    let same = EarlierVersion { version: 2, definition };
    // Whichever is looked at first, and whichever version it was.
    for earlier in [[before.clone(), same.clone()], [same, before]] {
        for (subject, other) in [(&fives, &tens), (&tens, &fives)] {
            assert_eq!(prove(subject, &[other], &[]), Ok(()));
            let refused = prove(subject, &[other], &earlier);
            assert!(matches!(refused, Err(Ambiguity::Collision { .. })), "{refused:?}");
        }
    }
}

#[test]
fn more_combinations_than_are_looked_at_are_no_proof() {
    // Of 40 types and 40 projects a third series takes what is looked at first.
    let codes = |sign: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{sign}{number:02}")).collect()
    };
    let of = |code: &str, types: usize, originators: &[&str]| {
        of(code, "{SEQ:3}", |definition| {
            definition.serves.types = codes("T", types);
            definition.serves.projects = codes("P", 40);
            definition.serves.originators = strings(originators);
            definition.unique_within = strings(&["type", "project"]);
            definition.variables.insert("ORIGINATOR".into(), variable("", 2));
        })
    };
    let (a, b) = (of("a", 40, &["X"]), of("b", 40, &["Y"]));
    let most = of("c", 39, &["X", "Y"]);
    assert!(prove(&a, &[&b, &most], &[]).is_err(), "the last type is left to both");
    let all = of("c", 40, &["X", "Y"]);
    assert_eq!(prove(&of("a", 20, &["X"]), &[&of("b", 20, &["Y"]), &all], &[]), Ok(()));
}

#[test]
fn a_value_that_begins_elsewhere_need_not_end_together() {
    // `1`, `22`, `2` and `12`, `22`: one scope, and a value that is read a place further.
    let of = |code: &str, template: &str| {
        of(code, template, |definition| {
            for (name, width) in [("A", 2), ("M", 1), ("N", 2)] {
                let fixed = VariableDefinition { width: Some(width), width_max: None, ..digits(2) };
                definition.variables.insert(name.into(), fixed);
            }
            definition.unique_within = strings(&["A"]);
        })
    };
    assert_meet(&of("a", "1{A}{M}-{SEQ:1}"), &of("b", "{N}{A}-{SEQ:1}"));
}

#[test]
fn a_scope_that_is_absent_or_is_not_in_the_alphabet_is_met_by_its_text() {
    let of = |code: &str, required: bool, alphabet: &str| {
        of(code, "{SEQ:3}", |definition| {
            let a = VariableDefinition {
                required,
                alphabet: Some(alphabet.into()),
                ..VariableDefinition::default()
            };
            definition.variables.insert("A".into(), a);
            definition.unique_within = strings(&["A"]);
        })
    };
    for (a, b) in [
        (of("a", false, "a-z"), of("b", true, "0")),
        (of("a", false, "a-c"), of("b", false, "x-z")),
        (of("a", false, "a-c"), of("b", false, "c-e")),
    ] {
        assert!(prove(&a, &[&b], &[]).is_err() && prove(&b, &[&a], &[]).is_err());
    }
    let apart = [of("a", true, "a-c"), of("b", false, "x-z")];
    assert_eq!(prove(&apart[0], &[&apart[1]], &[]), Ok(()));
}
