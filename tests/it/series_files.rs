//! `series apply --only-new` and `series check` beside a ledger: what is there stays, and its
//! tables count.

use std::path::Path;

use crate::deployment::Deployment;

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reference");
    folder.join(name).display().to_string()
}

#[test]
fn a_series_that_exists_stays_as_it_is_where_only_new_ones_are_applied() {
    let deployment = Deployment::embedded();
    let (mine, theirs) = (deployment.path("mine.toml"), deployment.path("theirs.toml"));
    let series = |code: &str, template: &str| {
        format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{template}\"\n\
             serves = {{ types = [\"{code}\"] }}\nserials = [{{ counter = [\"type\"] }}]\n"
        )
    };
    std::fs::write(&mine, series("CHANGED", "MINE-{SEQ:6}")).unwrap();
    deployment.apply(&[mine]);
    let both = series("CHANGED", "THEIRS-{SEQ:4}") + &series("ADDED", "ADDED-{SEQ:4}");
    std::fs::write(&theirs, both).unwrap();
    let theirs = theirs.to_str().unwrap();
    for saved in ["ADDED version 1 saved\n", "ADDED version 1 unchanged\n"] {
        let told = deployment.ok(&["series", "apply", "--only-new", theirs]);
        assert!(told.contains(saved) && told.contains("CHANGED version 1 unchanged"), "{told}");
    }
    assert!(deployment.ok(&["series", "show", "CHANGED"]).contains("MINE-{SEQ:6}"));
    deployment.ok(&["series", "apply", theirs]);
    assert!(deployment.ok(&["series", "show", "CHANGED"]).contains("THEIRS-{SEQ:4}"));
}

#[test]
fn a_check_looks_into_the_tables_of_a_ledger_that_is_there_and_says_where_none_is() {
    let deployment = Deployment::embedded();
    let check = ["series", "check", &example("correspondence.toml")];
    let output = deployment.run(&check);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no tables are looked into") && error.contains("no ledger"), "{error}");
    assert!(error.contains("or import the codes LETTER, TRANSMITTAL first"), "{error}");
    assert!(!deployment.path("numerator.db").exists(), "a check makes no ledger");
    for table in ["projects", "organizations", "types", "sub_types", "rfa_types", "disciplines"] {
        let file = example(&format!("{table}.csv"));
        deployment.ok(&["reference", "import", &file, "--table", table, "--apply"]);
    }
    let output = deployment.run(&check);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !error.contains("no tables"), "{error}");
}
