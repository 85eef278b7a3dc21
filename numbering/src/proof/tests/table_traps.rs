//! Traps of series that refer to tables: what a renaming or a new row would make collide.

use std::path::Path;
use std::slice::from_ref;
use std::sync::Arc;

use super::super::super::testing::{definition, reference};
use super::super::super::*;

/// A series that refers to tables of projects and types, whatever they have.
fn tabled(code: &str, edit: impl FnOnce(&mut SeriesDefinition)) -> SeriesDefinition {
    let mut definition = definition();
    definition.code = code.into();
    let (project, type_code) = (Some("projects".into()), Some("types".into()));
    definition.references = References { project, type_code, membership: false };
    definition.variables.insert("A".into(), VariableDefinition::default());
    edit(&mut definition);
    definition
}

/// The same series without its tables.
fn plain(definition: &SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition { references: References::default(), ..definition.clone() }
}

fn data(rows: Vec<ReferenceRow>) -> Arc<ReferenceData> {
    Arc::new(ReferenceData::new(rows, Vec::new()))
}

/// Types by their ids; the last code of each is its present one.
fn types(rows: &[(&str, &[&str])]) -> Arc<ReferenceData> {
    let row = |(id, codes): &(&str, &[&str])| {
        let (present, former) = codes.split_last().expect("a code");
        let former_codes = former.iter().map(ToString::to_string).collect();
        ReferenceRow { former_codes, ..reference("types", id, present, true) }
    };
    data(rows.iter().map(row).collect())
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Proves each of some series beside the others.
fn proved(definitions: &[SeriesDefinition], data: &Arc<ReferenceData>) -> Result<(), ProofError> {
    prove_saved(definitions, data, |_| true, &[], &[]).map(|_| ())
}

/// Why they are not proved.
fn refusal(definitions: &[SeriesDefinition], data: &Arc<ReferenceData>) -> String {
    proved(definitions, data).expect_err("not proved").to_string()
}

#[test]
fn a_code_of_a_table_may_be_any_text() {
    let listed = tabled("a", |definition| {
        definition.template = "{CORR_TYPE}{A}-{SEQ:3}".into();
        definition.serves.types = strings(&["T", "U"]);
        definition.serials[0].counter = strings(&["type", "A"]);
    });
    assert_eq!(proved(&[plain(&listed)], &Arc::default()), Ok(()));
    for data in [Arc::default(), types(&[("1", &["T"]), ("2", &["U"])])] {
        assert!(refusal(from_ref(&listed), &data).contains("{CORR_TYPE}"));
    }
    let project = tabled("a", |definition| {
        definition.template = "{PROJECT}{A}-{SEQ:3}".into();
        definition.serves.projects = strings(&["P", "Q"]);
        definition.serials[0].counter = strings(&["project", "A"]);
    });
    assert_eq!(proved(&[plain(&project)], &Arc::default()), Ok(()));
    assert!(refusal(&[project], &Arc::default()).contains("{PROJECT}"));
}

#[test]
fn a_project_of_the_scope_may_be_shown_by_another_code_tomorrow() {
    let alone = tabled("a", |definition| {
        definition.template = "{PROJECT}-{A}-{SEQ:3}".into();
        definition.unique_within = strings(&["project"]);
        definition.serials[0].counter = strings(&["project", "A"]);
    });
    assert_eq!(proved(&[plain(&alone)], &Arc::default()), Ok(()));
    // `P-1` and `2`; then the project is `P`, and `1-2`.
    let error = refusal(from_ref(&alone), &Arc::default());
    assert!(error.contains("a new row of projects is renamed from"), "{error}");
    assert!(error.contains("between them; the number can be read in two ways"), "{error}");
    let known = data(vec![reference("projects", "7", "P-1", true)]);
    let mut listed = alone.clone();
    listed.serves.projects = strings(&["P-1"]);
    let error = refusal(&[listed], &known);
    assert!(error.contains("row 7 of projects is renamed from"), "{error}");
    let mut bounded = alone;
    bounded.variables.get_mut("A").expect("declared").excluded = Some("-".into());
    assert_eq!(proved(&[bounded], &Arc::default()), Ok(()), "read from the right");

    let series = |code: &str, template: &str, type_code: &str| {
        tabled(code, |definition| {
            definition.template = template.into();
            definition.unique_within = strings(&["project"]);
            definition.serves.types = strings(&[type_code]);
        })
    };
    let two = [series("a", "{PROJECT}-{SEQ:3}", "T"), series("b", "{PROJECT}X-{SEQ:3}", "U")];
    assert_eq!(proved(&two.each_ref().map(plain), &Arc::default()), Ok(()));
    // `PX` in the one; renamed to `P`, and `PX` in the other.
    let error = refusal(&two, &types(&[("1", &["T"]), ("2", &["U"])]));
    assert!(error.contains("a new row of projects is renamed from"), "{error}");
}

#[test]
fn a_default_takes_types_that_it_does_not_list() {
    let default = tabled("a", |definition| {
        definition.serves.default = true;
        definition.serials[0].counter = strings(&["type"]);
    });
    assert_eq!(proved(&[plain(&default)], &Arc::default()), Ok(()), "one type");
    let error = refusal(from_ref(&default), &Arc::default());
    assert!(error.contains("type \"T\"") && error.contains("type \"TYPE-1\""), "{error}");
    assert!(error.contains("serial SEQ counts by type, which the number does not show"), "{error}");
    let mut scoped = default;
    scoped.unique_within = strings(&["type"]);
    assert_eq!(proved(&[scoped], &Arc::default()), Ok(()));
}

#[test]
fn two_types_of_a_table_are_two_once_both_have_rows() {
    let of = |code: &str, types: &[&str], default: bool| {
        tabled(code, |definition| {
            definition.serves.types = strings(types);
            definition.serves.default = default;
            definition.unique_within = strings(&["type"]);
        })
    };
    let two = [of("a", &["T"], false), of("b", &["U"], false)];
    assert_eq!(proved(&two, &types(&[("1", &["T"]), ("2", &["U", "V"])])), Ok(()));
    // Should `U` become the row of `T`, both series serve it equally well, and none does.
    assert_eq!(proved(&two, &types(&[("1", &["T"])])), Ok(()));
    assert_eq!(proved(&two, &Arc::default()), Ok(()));

    // Whoever wrote `U` meant the row that is `T` now, and the project decides.
    let mut projects = two.clone();
    projects[0].serves.projects = strings(&["P"]);
    let error = refusal(&projects, &types(&[("1", &["U", "T"])]));
    assert!(error.contains("within type_id=1; series a and b"), "{error}");
    // A row that was `T` becomes `U`, and the other way about.
    let error = refusal(&projects, &Arc::default());
    assert!(error.contains("would both get"), "{error}");

    // A rule wins over the default for its own row, and for no other.
    let beside = [of("a", &["T"], false), of("b", &["U"], true)];
    assert_eq!(proved(&beside, &types(&[("1", &["T"]), ("2", &["U"])])), Ok(()));
    // A row that the default served becomes `T`.
    let error = refusal(&beside, &types(&[("2", &["U"])]));
    assert!(error.contains("would both get"), "{error}");
    let mut narrow = beside;
    narrow[0].serves.projects = strings(&["P"]);
    refusal(&narrow, &types(&[("1", &["T"]), ("2", &["U"])]));
}

#[test]
fn two_types_of_a_table_that_are_shown_alike_are_one() {
    let of = |code: &str, type_code: &str, template: &str| {
        tabled(code, |definition| {
            definition.serves.types = strings(&[type_code]);
            definition.template = template.into();
        })
    };
    let known = types(&[("1", &["T"]), ("2", &["U"])]);
    let two = [of("a", "T", "{CORR_TYPE}-{SEQ:3}"), of("b", "U", "{CORR_TYPE}-{SEQ:3}")];
    assert_eq!(proved(&two, &known), Ok(()));
    assert_eq!(proved(&two, &Arc::default()), Ok(()), "a type that both name is a tie");
    // `UX`, and `U` before its X.
    let shifted = [two[0].clone(), of("b", "U", "{CORR_TYPE}X-{SEQ:3}")];
    let error = refusal(&shifted, &known);
    assert!(error.contains("is renamed from"), "{error}");
    // Who names T as well takes it in one project alone.
    let mut both = two;
    both[1].serves =
        Serves { types: strings(&["T", "U"]), projects: strings(&["P"]), ..both[1].serves.clone() };
    let error = refusal(&both, &known);
    assert!(error.contains("would both get"), "{error}");
}

#[test]
fn a_project_that_follows_from_memberships_is_not_what_a_rule_without_them_reads() {
    let of = |code: &str, projects: &[&str], membership: bool| {
        tabled(code, |definition| {
            definition.serves.projects = strings(projects);
            definition.unique_within = strings(&["project"]);
            definition.references.membership = membership;
            let originator = VariableDefinition {
                required: true,
                reference: Some("organizations".into()),
                ..VariableDefinition::default()
            };
            definition.variables.insert("ORIGINATOR".into(), originator);
        })
    };
    let rows = [reference("projects", "1", "P", true), reference("types", "1", "T", true)];
    let data = data(rows.into());
    let any = of("a", &[], true);
    assert_eq!(proved(&[any.clone(), of("b", &["P"], true)], &data), Ok(()));
    // Without a project the rule for P does not fit, and the other series finds P by itself.
    let error = refusal(&[any, of("b", &["P"], false)], &data);
    assert!(error.contains("project \"P\" by membership alone"), "{error}");
}

#[test]
fn one_scope_by_codes_and_by_ids_is_compared_as_one() {
    let of = |code: &str, template: &str, project: Option<&str>| {
        tabled(code, |definition| {
            definition.template = template.into();
            definition.serves.types = strings(&[code]);
            definition.unique_within = strings(&["project"]);
            definition.references =
                References { project: project.map(str::to_owned), ..References::default() };
        })
    };
    let says = "which one of them knows by its code and the other by an id, or by ids of another";
    let (by_code, by_id) = (of("a", "{SEQ:3}", None), of("b", "{SEQ:3}", Some("projects")));
    assert!(refusal(&[by_code, by_id.clone()], &Arc::default()).contains(says));
    // Ids of another table are compared with these all the same.
    refusal(&[of("a", "{SEQ:3}", Some("works")), by_id], &Arc::default());
    let apart = [of("a", "A{SEQ:3}", None), of("b", "B{SEQ:3}", Some("projects"))];
    assert_eq!(proved(&apart, &Arc::default()), Ok(()));
}

/// The rows of a table in `examples/reference`.
fn rows(table: &str) -> Vec<ReferenceRow> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/reference");
    let text = std::fs::read_to_string(folder.join(format!("{table}.csv"))).expect("ships");
    let row = |line: &str| {
        let mut fields = line.split(',');
        let (id, code) = (fields.next().expect("an id"), fields.next().expect("a code"));
        reference(table, id, code, true)
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn the_series_on_the_seed_data_are_proved_beside_those_that_ship() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/reference");
    let text = std::fs::read_to_string(folder.join("correspondence.toml")).expect("ships");
    let on_tables = read_series(&text).expect("reads");
    let is_replaced =
        |shipped: &SeriesDefinition| on_tables.iter().any(|other| other.code == shipped.code);
    let mut all: Vec<SeriesDefinition> =
        builtin_series().into_iter().filter(|shipped| !is_replaced(shipped)).collect();
    all.extend(on_tables);
    let tables = ["projects", "organizations", "types", "sub_types", "rfa_types", "disciplines"];
    let seed = data(tables.into_iter().flat_map(rows).collect());
    let saved = prove_saved(&all, &seed, |_| true, &[], &[]);
    assert_eq!(saved, Ok(Vec::new()), "none needs to be accepted");
}

#[test]
fn a_pair_that_would_need_the_code_0_is_refused_without_one() {
    // `A` is 200 and 0, since the second of its digits and the serial say so; no table has the
    // code 0, which stands for none in counters.
    let needs = tabled("a", |definition| {
        definition.template = "{CORR_TYPE}{SEQ:2}{A}{A}".into();
        definition.serves.types = strings(&["T"]);
        let declared = VariableDefinition {
            required: true,
            excluded: Some("1".into()),
            width_max: Some(3),
            reference: Some("organizations".into()),
            ..VariableDefinition::default()
        };
        definition.variables.insert("A".into(), declared);
        definition.unique_within = strings(&["project", "type"]);
        definition.serials[0].counter = strings(&["type", "A"]);
        definition.serials[0].max = Some(12);
    });
    let error = refusal(from_ref(&needs), &data(Vec::new()));
    assert!(error.contains("two readings"), "{error}");
}
