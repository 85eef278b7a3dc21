//! `verify --from`: what is new is proved, and what was left out is named.

use serde_json::Value;
use sqlx::AssertSqlSafe;
use testkit::load;
use testkit::postgres::Postgres;

use crate::deployment::Deployment;

/// Goal: whatever is wrong with what is new is found, and nothing is reported of what is old.
/// Method: rows of both are removed, and a row in between is no border.
async fn is_proved(deployment: &Deployment, sql: impl AsyncFn(&str)) {
    deployment.apply_load_series();
    let file = deployment.series_file("SIDE", "S-{SEQ:6}", "");
    deployment.apply(&[file]);
    for _ in 0..5 {
        deployment.ok(&["next", "LOAD"]);
        deployment.ok(&["next", "SIDE"]);
    }
    let service = deployment.serve();
    load::documents(&service.url, 1, 5).await;
    assert!(service.terminate());
    let found = deployment.ok(&["find", "--number", "L-00000006", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    let from = found["numbers"][0]["issued_at"].as_str().expect("its time").to_owned();
    // No process is there that could journal what is missing.
    let at_once = ["--patience", "1ms"];
    let look = || deployment.verify_with(&[&at_once[..], &["--from", from.as_str()]].concat());
    let (is_clean, report) = look();
    assert!(is_clean && report["values"] == 5 && report["left_alone"] == 10, "{report}");
    let said = deployment.ok(&["verify", "--from", &from]);
    assert!(said.trim_end().ends_with("10 of before were left alone"), "{said}");
    let to_come = deployment.run(&["verify", "--from", "2999-01-01"]);
    assert_eq!(to_come.status.code(), Some(1), "{to_come:?}");
    // Everything from before the first number on is the whole.
    let (is_clean, report) = deployment.verify_with(&["--from", "2000-01-01"]);
    assert!(is_clean && report["values"] == 15 && report["left_alone"] == 0, "{report}");
    // The one that is left out is old: the whole finds it.
    sql("delete from journal where first_value = 3").await;
    assert!(look().0, "what is old is left alone");
    assert!(!deployment.verify_with(&at_once).0);
    for (act, finding) in [
        // Right after the last old one, within, and at the end.
        ("delete from journal where first_value = 6", "missing"),
        ("update journal set number = 'L-00000099' where first_value = 8", "misread"),
        ("delete from journal where first_value = 10", "missing"),
    ] {
        sql("create table kept as select * from journal").await;
        sql(act).await;
        let (is_clean, report) = look();
        let found = report[finding].as_array().map_or(0, Vec::len);
        assert!(!is_clean && found == 1, "{act}: {report}");
        sql("delete from journal").await;
        sql("insert into journal select * from kept").await;
        sql("drop table kept").await;
        assert!(look().0, "as it was before");
    }
    // A counter without anything new is examined after its last row.
    sql("delete from journal where number = 'S-000005'").await;
    let (is_clean, report) = look();
    assert!(!is_clean && report["missing"][0]["first"] == 5, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn from_a_time_on_what_is_new_is_proved_and_what_was_left_alone_is_told() {
    let embedded = Deployment::embedded();
    let url = embedded.database_url().to_owned();
    is_proved(&embedded, async |statements: &str| {
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        let statements = testkit::forge::sqlite(statements);
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(&pool).await.unwrap();
        pool.close().await;
    })
    .await;
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("since"), None);
    is_proved(&deployment, async |statements: &str| {
        let statements = testkit::forge::postgres(statements);
        postgres.sql(&format!("set search_path = since; {statements}"));
    })
    .await;
}
