//! `series apply --only-new` and `series check` with a ledger: what exists stays, and its tables
//! count.

use std::path::Path;

use testkit::postgres::Postgres;

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

const OWN: &str = "
[[series]]
code = 'INV'
name = 'Invoice'
template = 'INV-{SEQ:5}'
serves = { types = ['INV'] }
serials = [{ reset = 'none' }]
";

/// Names of the series that are there.
fn codes(deployment: &Deployment) -> Vec<String> {
    let listed: serde_json::Value =
        serde_json::from_str(&deployment.ok(&["series", "list", "--json"])).unwrap();
    let codes = listed.as_array().unwrap().iter();
    codes.map(|series| series["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_ledger_without_series_gets_those_of_the_setting_and_no_others() {
    let postgres = Postgres::start();
    for mut deployment in
        [Deployment::embedded(), Deployment::new(&postgres.url("own_series"), None)]
    {
        let folder = deployment.path("own");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("b.toml"), OWN).unwrap();
        std::fs::write(folder.join("notes.txt"), "no series").unwrap();
        let setting = |entries: &[&str]| format!("[series]\nload = {entries:?}\n");
        for (name, text, says) in [
            ("nothing.toml", None, "cannot be read"),
            ("broken.toml", Some("[[series]]\ncode = 1\n"), "cannot be used"),
        ] {
            let file = deployment.path(name);
            text.iter().for_each(|text| std::fs::write(&file, text).unwrap());
            deployment.extra = setting(&[file.to_str().unwrap()]);
            let refused = deployment.run(&["series", "list"]);
            let error = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(1), "{error}");
            let told = [name, says, "series.load names what"];
            assert!(told.iter().all(|told| error.contains(told)), "{error}");
        }
        deployment.extra = setting(&[folder.to_str().unwrap()]);
        assert_eq!(codes(&deployment), ["INV"]);
        assert_eq!(deployment.ok(&["next", "INV"]), "INV-00001\n");
        // A ledger with series keeps them whatever the setting says.
        std::fs::write(folder.join("b.toml"), "broken").unwrap();
        assert_eq!(codes(&deployment), ["INV"]);
    }
    let mut none = Deployment::embedded();
    none.extra = "[series]\nload = []\n".into();
    assert!(codes(&none).is_empty());
    none.extra = "[series]\nload = ['own/*.toml']\n".into();
    let refused = none.run(&["series", "list"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("series.load") && error.contains("\"own\""), "{error}");
}

#[test]
fn a_dry_run_of_apply_tells_what_apply_would_do_and_writes_nothing() {
    let deployment = Deployment::embedded();
    let dry_run = |file: &Path| {
        let output = deployment.run(&["series", "apply", "--dry-run", file.to_str().unwrap()]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let first = deployment.series_file("RUN", "RUN-{SEQ:4}", "");
    let (code, _, error) = dry_run(&first);
    assert!(code == Some(1) && error.contains("there is no ledger"), "{error}");
    assert!(!deployment.path("numerator.db").exists(), "a dry run makes no ledger");

    deployment.ok(&["series", "list"]);
    let (code, told, error) = dry_run(&first);
    let new = "RUN version 1 would be saved: a new series\n  its next number is RUN-0001\n";
    assert_eq!((code, &*told), (Some(0), new), "{error}");
    assert!(deployment.run(&["series", "show", "RUN"]).status.code() == Some(1), "not saved");
    deployment.apply(std::slice::from_ref(&first));
    let unused = deployment.series_file("RUN", "RUN-{SEQ:5}", "");
    let told = dry_run(&unused).1;
    let template = "  /definition/template: \"RUN-{SEQ:4}\" → \"RUN-{SEQ:5}\"\n";
    let next = "  its next number is RUN-00001 in the place of RUN-0001\n";
    let none = "RUN version 2 would be saved: it has no counters yet\n";
    assert_eq!(told, format!("{none}{template}{next}"));

    for document in ["a", "b"] {
        deployment.ok(&["next", "RUN", "--document", document]);
    }
    let told = dry_run(&unused).1;
    let next = "  its next number is RUN-00003 in the place of RUN-0003\n";
    let goes_on = "RUN version 2 would be saved: its 1 counter goes on\n";
    assert_eq!(told, format!("{goes_on}{template}{next}"));
    assert_eq!(
        dry_run(&deployment.series_file("RUN", "RUN-{SEQ:4}", "")).1,
        "RUN version 1 unchanged\n"
    );
    // What a check of the file alone cannot know: the series of another code has issued the text.
    let twin = deployment.series_file("TWIN", "RUN-{SEQ:4}", "");
    let file = twin.to_str().unwrap();
    let checked = deployment.run(&["series", "check", file]);
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && said.contains("series apply --dry-run"), "{said}");
    let (code, told, error) = dry_run(&twin);
    let applied = deployment.run(&["series", "apply", file]);
    assert_eq!((code, &*told, applied.status.code()), (Some(1), "", Some(1)), "{error}");
    assert_eq!(error, String::from_utf8_lossy(&applied.stderr), "the same refusal");
    let versions = deployment.ok(&["series", "versions", "RUN", "--json"]);
    assert_eq!(versions.matches("\"version\": 1").count(), 1, "{versions}");
    assert!(!versions.contains("\"version\": 2"), "nothing was saved: {versions}");
    let json = deployment.ok(&["series", "apply", "--dry-run", "--json", unused.to_str().unwrap()]);
    let told: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&told[0]["is_new"], &told[0]["saved"], &told[0]["counters"]),
        (&false.into(), &false.into(), &1.into()),
        "{json}"
    );
}
