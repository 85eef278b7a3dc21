//! What numbers bring in addition to their counters: dates, ids, and inactive rows.

use testkit::postgres::Postgres;

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

fn chronology_follows(deployment: &Deployment) {
    let settings = "policy = \"gapless\"\nchronology = true";
    let months = deployment.series_file("MONTHS", "M-{DATE:yyyyMMdd}-{SEQ:4}", settings);
    let text = std::fs::read_to_string(&months).unwrap() + "reset = \"month\"\n";
    std::fs::write(&months, text).unwrap();
    let all = deployment.series_file("ALL", "A-{DATE:yyyyMMdd}-{SEQ:4}", settings);
    deployment.apply(&[months, all]);
    let next = |code: &str, date: &str| {
        let output = deployment.run(&["next", code, "--date", date]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(stderr),
        }
    };
    assert_eq!(next("MONTHS", "2024-01-15").as_deref(), Ok("M-20240115-0001"));
    assert_eq!(next("ALL", "2024-01-15").as_deref(), Ok("A-20240115-0001"));
    let list = "M-20240305-0002\nM-20240301-0001\nA-20240305-0007\n";
    let list = file(deployment, "march.txt", list);
    imported(deployment, &[&list, "--apply"]);
    for code in ["MONTHS", "ALL"] {
        let refused = next(code, "2024-02-10").expect_err("before the last number");
        assert!(refused.contains("2024-03-05"), "{refused}");
    }
    assert_eq!(next("MONTHS", "2024-03-05").as_deref(), Ok("M-20240305-0003"));
    assert_eq!(next("ALL", "2024-03-06").as_deref(), Ok("A-20240306-0008"));
    // Older numbers that follow later move no date back.
    let list = file(deployment, "february.txt", "M-20240210-0001\nA-20240210-0003\n");
    imported(deployment, &[&list, "--apply"]);
    let refused = next("ALL", "2024-03-05").expect_err("before the last number");
    assert!(refused.contains("2024-03-06"), "{refused}");
    deployment.assert_clean();
}

#[test]
fn chronology_counts_the_dates_of_imported_numbers_on_sqlite() {
    chronology_follows(&Deployment::embedded());
}

#[test]
fn chronology_counts_the_dates_of_imported_numbers_on_postgres() {
    let postgres = Postgres::start();
    chronology_follows(&Deployment::new(&postgres.url("chronology"), None));
}

#[test]
fn a_number_that_shows_an_id_keeps_it() {
    let deployment = Deployment::embedded();
    let with = deployment.series_file("WITH", "W{SNOWFLAKE}-{SEQ:4}", "");
    let alone = deployment.path("alone.toml");
    let text = "[[series]]\ncode = \"ALONE\"\nname = \"ALONE\"\ntemplate = \"T{SNOWFLAKE}\"\n\
                serves = { types = [\"ALONE\"] }\n";
    std::fs::write(&alone, text).unwrap();
    deployment.apply(&[with, alone]);
    let list = "number,document\nW0783514053115904000-0007,D7\nW0783514053115904001-0009,D9\n";
    let list = file(&deployment, "ids.csv", list);
    let report = imported(&deployment, &[&list, "--apply"]);
    assert_eq!((&report["numbers"], &report["counters"][0]["last"]), (&2.into(), &9.into()));
    let next = deployment.ok(&["next", "WITH"]);
    assert!(next.ends_with("-0010\n") && next.starts_with('W'), "{next}");
    let (clean, verified) = deployment.verify();
    assert!(clean && verified["totals"]["journal"] == 3, "{verified}");
    let (code, report, _) = import(&deployment, &[&list]);
    assert_eq!(code, 1, "{report}");
    assert!(problems(&report).iter().any(|(_, kind)| kind == "issued"), "{report}");
    // Its counter's value cannot be determined.
    let list = file(&deployment, "alone.txt", "T0783514053115904000\n");
    let (_, report, _) = import(&deployment, &[&list]);
    assert_eq!(problems(&report), [("line 1".to_owned(), "value".to_owned())], "{report}");
    let detail = report["problems"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("SNOWFLAKE") && detail.contains("not show"), "{detail}");
}

/// Goal: what was issued before something was deactivated can be imported afterwards. Method: an
/// organization, a type and a project that are inactive, and a former member.
#[test]
fn what_is_no_longer_active_can_be_moved_in() {
    let deployment = Deployment::embedded();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/reference");
    let example = |name: &str| folder.join(name).display().to_string();
    let tables = ["projects", "organizations", "types", "sub_types", "rfa_types", "disciplines"];
    let reference = |file: &str, rest: &[&str]| {
        deployment.ok(&[&["reference", "import", file][..], rest, &["--apply"]].concat())
    };
    for table in tables {
        reference(&example(&format!("{table}.csv")), &["--table", table]);
    }
    let members = ["--table", "organizations", "--of", "projects"];
    reference(&example("members.csv"), &members);
    deployment.apply(&[example("correspondence.toml").into()]);
    for (table, rows) in [
        ("types", "id,code,active\n6,LETTER,false\n"),
        ("organizations", "id,code,active\n22,คคง.,false\n"),
        ("projects", "id,code,active\n2,LCBP3-C2,false\n"),
    ] {
        reference(&file(&deployment, "rows.csv", rows), &["--table", table]);
    }
    let ended = file(&deployment, "ended.csv", "id,of_id,active\n22,2,false\n41,2,false\n");
    reference(&ended, &members);
    let list = file(&deployment, "letters.txt", "คคง.-สคฉ.3-0007-2567\nผรม.1-คคง.-0002-2567\n");
    // No request would get such a number now.
    let next = ["next", "LETTER", "--project", "LCBP3-C2", "--set", "ORIGINATOR=ผรม.1"];
    let next = [&next[..], &["--set", "RECIPIENT=สคฉ.3"]].concat();
    assert!(!deployment.run(&next).status.success());
    let of = ["--type", "LETTER", "--project", "LCBP3-C2"];
    let report = imported(&deployment, &[&[&*list][..], &of, &["--apply"]].concat());
    let key = &report["counters"][0]["counter_key"];
    assert_eq!(key, "project_id=2;ORIGINATOR_id=22;RECIPIENT_id=10;type_id=6;year=2024");
    let dump = "\
INSERT INTO document_number_counters (project_id, originator_organization_id, \
recipient_organization_id, correspondence_type_id, sub_type_id, rfa_type_id, discipline_id, \
current_year, last_number) VALUES (2, 22, 10, 6, 0, 0, 0, 2024, 9);\n\
INSERT INTO organizations (id, organization_code) VALUES (10,'สคฉ.3'),(22,'คคง.');\n\
INSERT INTO projects (id, project_code) VALUES (2,'LCBP3-C2');\n\
INSERT INTO correspondence_types (id, type_code) VALUES (6,'LETTER');\n";
    let dump = file(&deployment, "counters.sql", dump);
    let report = imported(&deployment, &[&dump, "--from-table", "--apply"]);
    assert_eq!(
        (&report["counters"][0]["stands_at"], &report["counters"][0]["last"]),
        (&7.into(), &9.into())
    );
    deployment.assert_clean();
}
