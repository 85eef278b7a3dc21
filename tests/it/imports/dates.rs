//! What numbers bring along beside their counters: their dates.

use harness::postgres::Postgres;

use super::{file, imported};
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
