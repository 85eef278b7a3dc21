//! What each check of the proof must not let pass where rules keep two series apart: another one
//! that seems to win over one of them, and does not in every request.

use std::sync::Arc;

use super::super::super::testing::reference;
use super::super::super::{
    ReferenceData, ReferenceRow, References, Series, SeriesDefinition, VariableDefinition, prove,
};
use super::guards::digits;
use super::traps::{compile, strings};

/// A series of the type `T` and some projects, which it knows by the ids of a table.
fn of(code: &str, table: Option<&str>, projects: &[&str]) -> SeriesDefinition {
    let series = compile(|definition| {
        definition.code = code.into();
        definition.serves.projects = strings(projects);
        let project = table.map(str::to_owned);
        definition.references = References { project, ..References::default() };
        definition.variables.insert("N".into(), digits(1));
    });
    series.definition().clone()
}

/// The same for another type.
fn for_type(type_code: &str, definition: SeriesDefinition) -> SeriesDefinition {
    let mut definition = definition;
    definition.serves.types = strings(&[type_code]);
    definition
}

fn scoped(definition: SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition { unique_within: strings(&["project"]), ..definition }
}

/// Whether the first is proved beside the second, and the second beside the first, whatever third
/// series is active.
fn proved(rows: &[ReferenceRow], all: [SeriesDefinition; 3]) -> [bool; 2] {
    let data = Arc::new(ReferenceData::new(rows.to_vec(), []));
    let all: Vec<Series> = all
        .into_iter()
        .map(|definition| Series::compile(definition).expect("compiles"))
        .map(|series| series.with_reference(Arc::clone(&data)))
        .collect();
    [[0, 1, 2], [1, 0, 2]].map(|at| prove(&all[at[0]], &[&all[at[1]], &all[at[2]]], &[]).is_ok())
}

/// That the third series, which seems to take all requests of the first, does not keep the first
/// from being refused beside the second.
#[track_caller]
fn assert_meet(rows: &[ReferenceRow], all: [SeriesDefinition; 3]) {
    assert_eq!(proved(rows, all), [false, false]);
}

/// Another text than the other two.
fn apart(definition: SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition { template: "OTHER-{SEQ:3}".into(), ..definition }
}

#[test]
fn one_that_wins_for_all_requests_keeps_two_apart() {
    let (a, b) = (of("a", None, &["P"]), for_type("U", of("b", None, &[])));
    assert_eq!(proved(&[], [a.clone(), b.clone(), apart(of("c", None, &["P"]))]), [true, true]);
    // A default wins over no rule.
    let mut default = apart(of("c", None, &["P"]));
    default.serves.default = true;
    assert_meet(&[], [a.clone(), b.clone(), default]);
    assert_meet(&[], [a, b, apart(of("c", None, &["Q"]))]);
}

#[test]
fn one_that_names_projects_by_another_table_takes_no_request_by_an_id() {
    let rows = [
        reference("projects", "1", "P", true),
        reference("projects", "Q", "R", true),
        reference("works", "2", "P", true),
    ];
    let (table, b) = (Some("projects"), for_type("U", of("b", None, &[])));
    let a = of("a", table, &["P"]);
    for (other, is_proved) in [(table, true), (Some("works"), false), (None, false)] {
        let all = [a.clone(), b.clone(), apart(of("c", other, &["P"]))];
        assert_eq!(proved(&rows, all), [is_proved; 2], "{other:?}");
    }
    // A code that is the id of another row, and one that has no row.
    assert_meet(&rows, [of("a", table, &["R"]), b.clone(), apart(of("c", None, &["Q"]))]);
    assert_meet(&rows, [a, b, apart(of("c", table, &["1"]))]);
}

#[test]
fn a_project_is_one_for_both_only_by_one_table() {
    let rows = [reference("projects", "1", "P", true)];
    let by_id = scoped(of("a", Some("projects"), &["P"]));
    let by_code = scoped(for_type("U", of("b", None, &["P"])));
    let none = apart(for_type("V", of("c", None, &[])));
    assert_meet(&rows, [by_id.clone(), by_code, none.clone()]);
    // A code without a row may become that of row 1.
    let other_code = scoped(for_type("U", of("b", None, &["Q"])));
    assert_meet(&rows, [by_id, other_code, none]);
}

#[test]
fn each_project_of_one_series_may_be_asked_of_one_for_any() {
    let a = scoped(of("a", None, &[]));
    let b = scoped(for_type("U", of("b", None, &["P", "Q"])));
    let of_p = |code: &str| apart(scoped(for_type("U", of(code, None, &["P"]))));
    assert_meet(&[], [a.clone(), b.clone(), of_p("c")]);
    let mut both = of_p("c");
    both.serves.projects = strings(&["P", "Q"]);
    assert_eq!(proved(&[], [a, b, both]), [true, true]);
}

#[test]
fn a_project_that_memberships_give_is_the_same_only_where_both_look_at_the_same() {
    let member = |code: &str, projects: &[&str], edit: &dyn Fn(&mut SeriesDefinition)| {
        let mut definition = scoped(of(code, Some("projects"), projects));
        definition.references.membership = true;
        let originator = VariableDefinition {
            required: true,
            reference: Some("organizations".into()),
            ..VariableDefinition::default()
        };
        definition.variables.insert("ORIGINATOR".into(), originator);
        edit(&mut definition);
        definition
    };
    let originator = |definition: &mut SeriesDefinition, edit: &dyn Fn(&mut VariableDefinition)| {
        edit(definition.variables.get_mut("ORIGINATOR").expect("declared"));
    };
    let rows = [
        reference("projects", "1", "P", true),
        reference("organizations", "1", "O", true),
        reference("others", "1", "O", true),
    ];
    let none = apart(for_type("V", of("c", None, &[])));
    let beside =
        |any: SeriesDefinition, of_p: SeriesDefinition| proved(&rows, [any, of_p, none.clone()]);
    let any = member("a", &[], &|_| ());
    assert_eq!(beside(any.clone(), member("b", &["P"], &|_| ())), [true, true]);
    // A default is not what the choice of a series looks at.
    let by_default = member("a", &[], &|definition| {
        originator(definition, &|o| (o.required, o.default) = (false, Some("O".into())));
    });
    assert_eq!(beside(by_default, member("b", &["P"], &|_| ())), [false, false]);
    let edits: [&dyn Fn(&mut SeriesDefinition); 2] =
        [&|definition| definition.references.membership = false, &|definition| {
            originator(definition, &|o| o.reference = Some("others".into()));
        }];
    for (index, edit) in edits.into_iter().enumerate() {
        assert_eq!(beside(any.clone(), member("b", &["P"], edit)), [false, false], "{index}");
    }
}

#[test]
fn one_that_knows_no_originators_by_ids_takes_none_that_is_sent_by_one() {
    // The series knows the originator by two names, one of which is of a table. Row 1 is `Y` now.
    let row = reference("organizations", "1", "Y", true);
    let row = ReferenceRow { former_codes: vec!["X".into()], ..row };
    let originators = |definition: &mut SeriesDefinition, names: &[(&str, bool)]| {
        definition.serves.originators = strings(&["X"]);
        for (name, is_of_table) in names {
            let table = is_of_table.then(|| "organizations".to_owned());
            let declared = VariableDefinition { reference: table, ..VariableDefinition::default() };
            definition.variables.insert((*name).into(), declared);
        }
    };
    let (mut a, mut c) = (of("a", None, &[]), apart(of("c", None, &[])));
    originators(&mut a, &[("ORIGINATOR", true), ("ORG_CODE", false)]);
    originators(&mut c, &[("ORIGINATOR", false)]);
    assert_meet(&[row], [a, for_type("U", of("b", None, &[])), c]);
}
