//! What numbers bring along beside their counters: dates and ids.

use harness::postgres::Postgres;

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
    assert!(deployment.verify().0);
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
    // Its counter's value cannot be told.
    let list = file(&deployment, "alone.txt", "T0783514053115904000\n");
    let (_, report, _) = import(&deployment, &[&list]);
    assert_eq!(problems(&report), [("line 1".to_owned(), "value".to_owned())], "{report}");
    let detail = report["problems"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("SNOWFLAKE") && detail.contains("not show"), "{detail}");
}
