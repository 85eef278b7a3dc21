//! The first steps of a new user: a report that writes nothing, series of one's own and no others,
//! and correct messages.

use serde_json::{Value, json};

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

/// How many series the ledger has.
async fn series_there(deployment: &Deployment) -> i64 {
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let count = sqlx::query_scalar("select count(*) from series").fetch_one(&pool).await.unwrap();
    pool.close().await;
    count
}

fn detail(report: &Value, index: usize) -> String {
    report["problems"][index]["detail"].as_str().unwrap_or_default().to_owned()
}

/// Goal: a report changes nothing, not even an empty ledger. Method: the report of a list that the
/// built-in series read, on an empty ledger.
#[tokio::test]
async fn a_report_on_an_empty_ledger_reads_by_the_series_it_would_get_and_saves_none() {
    let deployment = Deployment::embedded();
    let list = file(&deployment, "list.csv", "number,date\nSPO-20240122-001,2024-01-22\n");
    for _ in 0..2 {
        let report = imported(&deployment, &[&list]);
        assert_eq!(
            (&report["numbers"], &report["applied"]),
            (&1.into(), &false.into()),
            "{report}"
        );
        assert_eq!(series_there(&deployment).await, 0, "nothing is written");
    }
    assert_eq!(imported(&deployment, &[&list, "--apply"])["applied"], true);
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-002\n");
}

/// Goal: an import that is not made saves no series either. Method: a list that does not exist, one
/// with a line that no series reads, and read-only commands, on an empty ledger.
#[tokio::test]
async fn what_imports_nothing_and_what_only_looks_saves_no_series() {
    let deployment = Deployment::embedded();
    let wrong = "number,date\nSPO-20240122-001,2024-01-22\nSPO/1,2024-01-22\n";
    let wrong = file(&deployment, "wrong.csv", wrong);
    for list in ["missing.csv", &*wrong] {
        assert!(!deployment.run(&["import", list, "--apply"]).status.success(), "{list}");
        assert_eq!(series_there(&deployment).await, 0, "{list}");
    }
    for look in [
        &["statement", "--series", "SPO", "--period", "2024"][..],
        &["parse", "SPO-20240122-001"],
        &["find", "--number", "SPO-20240122-001"],
        &["counters"],
        &["series", "explain", "--type", "SPO"],
    ] {
        // For a number that is not found the report says so.
        let is_answered = look[0] != "find";
        assert_eq!(deployment.run(look).status.success(), is_answered, "{look:?}");
        assert_eq!(series_there(&deployment).await, 0, "{look:?}");
    }
}

/// Goal: a user with series of their own gets no others, not even for a file with a mistake.
#[tokio::test]
async fn who_has_tried_series_of_their_own_gets_no_others() {
    let wrong = "[[series]]\ncode = \"RFA\"\nname = \"RFA\"\ntemplate = \"RFA-{NOPE}\"\n\
                 serves = { types = [\"RFA\"] }\nserials = [{}]\n";
    let ambiguous = "[[series]]\ncode = \"RFA\"\nname = \"RFA\"\ntemplate = \"RFA-{SEQ:4}\"\n\
                     serves = { types = [\"RFA\"] }\nserials = [{ reset = \"year\" }]\n";
    for mistake in [wrong, ambiguous, "[[series"] {
        let deployment = Deployment::embedded();
        let path = file(&deployment, "rfa.toml", mistake);
        assert!(!deployment.run(&["series", "apply", &path]).status.success());
        let output = deployment.run(&["next", "RFA"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "no series is there: {error}");
        assert_eq!(series_there(&deployment).await, 0, "{mistake}");
        let mended = mistake.replace("{NOPE}", "{SEQ:4}");
        let mended = mended.replace(", reset", "").replace("reset = \"year\"", "");
        if mended.starts_with("[[series]]") {
            let path = file(&deployment, "rfa.toml", &mended);
            let saved = deployment.ok(&["series", "apply", &path]);
            assert!(saved.contains("RFA version 1 saved"), "{saved}");
            assert_eq!(deployment.ok(&["next", "RFA"]), "RFA-0001\n");
        }
        assert!(series_there(&deployment).await <= 1);
    }
    // Nor if there is no reason.
    let deployment = Deployment::embedded();
    let sound = ambiguous.replace(" reset = \"year\" ", "");
    let path = file(&deployment, "rfa.toml", &sound);
    assert!(!deployment.run(&["series", "apply", &path, "--reason", ""]).status.success());
    assert!(!deployment.run(&["next", "SPO"]).status.success());
    assert_eq!(series_there(&deployment).await, 0);
    // A command that only reads gets what the setting says.
    let deployment = Deployment::embedded();
    assert!(deployment.ok(&["series", "list"]).contains("SPO"));
}

/// Goal: numbers of a closed year are added only after that was reported and requested.
#[test]
fn numbers_of_a_closed_period_are_added_only_where_that_is_asked_for() {
    let deployment = Deployment::embedded();
    let series = "[[series]]\ncode = \"INV\"\nname = \"INV\"\n\
                  template = \"INV-{YEAR}-{SEQ:4}\"\nclosed_before = \"2025-01-01\"\n\
                  document_date = { past = \"30y\", future = \"5y\" }\n\
                  serves = { types = [\"INV\"] }\nserials = [{ reset = \"year\" }]\n";
    let path = file(&deployment, "inv.toml", series);
    deployment.ok(&["series", "apply", &path]);
    let text = "number,date\nINV-2024-0001,2024-05-01\nINV-2025-0001,2025-05-01\n";
    let list = file(&deployment, "list.csv", text);
    for arguments in [&[&*list][..], &[&list, "--apply"]] {
        let (code, report, _) = import(&deployment, arguments);
        assert_eq!((code, problems(&report)), (1, vec![("line 2".into(), "closed".into())]));
        let why = detail(&report, 0);
        for part in ["2024-05-01", "closed", "2025-01-01", "--into-closed"] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }
    let report = imported(&deployment, &[&list, "--into-closed", "--apply"]);
    assert_eq!((&report["numbers"], &report["into_closed"]), (&json!(2), &json!(1)), "{report}");
    deployment.assert_clean();
}

/// Goal: the reason that excludes a line is reported exactly, with the bounds of an import and not
/// of a request.
#[test]
fn what_keeps_a_line_out_is_said_as_it_is() {
    let deployment = Deployment::embedded();
    for (code, template, serial) in [
        ("L", "L{YEAR}-{SEQ:3}", "reset = \"year\""),
        ("YY", "{DATE:yy}-{SEQ:3}", "reset = \"year\""),
        ("N", "N-{SEQ:1}", "overflow = \"widen\""),
    ] {
        let text = format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{template}\"\n\
             serves = {{ types = [\"{code}\"] }}\nserials = [{{ {serial} }}]\n"
        );
        let path = file(&deployment, "one.toml", &text);
        deployment.ok(&["series", "apply", &path]);
    }
    let told = |text: &str, series: &str| {
        let list = file(&deployment, "list.csv", text);
        let (_, report, _) = import(&deployment, &[&list, "--series", series]);
        detail(&report, 0)
    };
    let bounds = told("number\nL1900-003\n", "L");
    for part in ["an import takes", "100 years", "10"] {
        assert!(bounds.contains(part), "{part}: {bounds}");
    }
    assert!(!bounds.contains("have the series take more"), "{bounds}");
    let said = told("number,date\n98-123,1998-05-05\n", "YY");
    assert!(said.contains("1998") && !said.contains("a column may say it"), "{said}");
    let twice = told("number\nN-1\nN-2\nN-1\n", "N");
    assert!(twice.contains("line 2") && !twice.contains("counter ,"), "{twice}");
    let open = told("number,date\nL2024-003,2024-05-01\nL2024-003,2024-05-01\n", "L");
    assert!(open.contains("line 2") && open.contains("year=2024"), "{open}");
}
