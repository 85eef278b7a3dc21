//! A `start` that a series in use has not reached: no number below it is issued silently, the
//! counter is moved by a command, and what is skipped is reported on the paper with its reason.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::forge;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

const REASON: &str = "the first three were a trial";

/// A series of one counter, or of one a year.
fn series(code: &str, serial: &str) -> String {
    format!(
        "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{code}-{{SEQ:6}}\"\n\
         serves = {{ types = [\"{code}\"] }}\nserials = [{{ {serial} }}]\n"
    )
}

fn write(deployment: &Deployment, code: &str, serial: &str) -> String {
    let file = deployment.path(&format!("{code}.toml"));
    std::fs::write(&file, series(code, serial)).unwrap();
    file.display().to_string()
}

/// A command that must be refused; its message.
fn refused(deployment: &Deployment, arguments: &[&str]) -> String {
    let output = deployment.run(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{arguments:?}: {error}");
    error
}

/// Goal: the steps after a trial: people raise `start`, learn where the counter is and how to move
/// it, move it alone, and continue from there. Method: an embedded ledger, by commands.
#[test]
fn a_start_above_a_used_counter_is_refused_and_a_command_moves_the_counter() {
    let deployment = Deployment::embedded();
    let file = write(&deployment, "INV", "start = 1");
    let saved = deployment.ok(&["series", "apply", &file]);
    assert!(saved.contains("its next number is INV-000001"), "{saved}");
    for number in ["INV-000001\n", "INV-000002\n", "INV-000003\n"] {
        assert_eq!(deployment.ok(&["next", "INV"]), number);
    }
    let file = write(&deployment, "INV", "start = 543");
    for arguments in [&["series", "apply", "--dry-run", &*file][..], &["series", "apply", &file]] {
        let told = refused(&deployment, arguments);
        for part in ["counter 1", "goes on with 4", "543", "numerator move-counter 1 --next 543"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    assert_eq!(deployment.ok(&["next", "INV"]), "INV-000004\n", "nothing is changed");

    let without = refused(&deployment, &["move-counter", "1", "--next", "543"]);
    assert!(without.contains("--reason"), "{without}");
    let below = refused(&deployment, &["move-counter", "1", "--next", "4", "--reason", REASON]);
    assert!(below.contains("least allowed value is 5"), "{below}");
    let moved = deployment.ok(&["move-counter", "1", "--next", "543", "--reason", REASON]);
    assert!(moved.contains("INV") && moved.contains("5 to 542"), "{moved}");
    let told = deployment.ok(&["series", "apply", "--dry-run", &file]);
    assert!(told.contains("its next number stays INV-000543"), "{told}");
    let told = deployment.ok(&["series", "apply", &file]);
    assert!(told.contains("version 2 saved") && told.contains("INV-000543"), "{told}");
    assert_eq!(deployment.ok(&["next", "INV"]), "INV-000543\n");
    assert_eq!(deployment.ok(&["preview", "INV"]), "INV-000544\n");
    told_on_the_paper(&deployment);
    imports_know_what_was_issued(&deployment);
    deployment.assert_clean();
}

/// What is skipped is reported with the request and its reason, and not as given to no document: a
/// paper book may have it.
fn told_on_the_paper(deployment: &Deployment) {
    for (language, says) in [
        ("th", "ข้ามไปตามคำขอที่ 1"),
        ("zh-Hans", "按第 1 号申请跳过"),
        ("zh-Hant", "按第 1 號申請略過"),
        ("en", "Passed over by request 1"),
    ] {
        let asked = ["statement", "--series", "INV", "--period", "2026", "--language", language];
        let told = deployment.ok(&asked);
        assert!(told.contains(says) && told.contains(REASON), "{told}");
        for denied in ["given to nobody", "从未发出", "從未發出", "ไม่เคยออกให้ผู้ใด"]
        {
            assert!(!told.contains(denied), "{told}");
        }
        assert!(told.contains("INV-000005"), "{told}");
    }
    let gaps = deployment.ok(&["gaps", "--explain", "--reason", "skipped"]);
    assert!(gaps.contains("request 1") && gaps.contains(REASON), "{gaps}");
}

/// A number below the start that was issued is reported as issued, and one that was not as skipped.
fn imports_know_what_was_issued(deployment: &Deployment) {
    let file = deployment.path("list.txt");
    std::fs::write(&file, "INV-000002\nINV-000542\n").unwrap();
    let output = deployment.run(&["import", "--json", file.to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kinds: Vec<_> =
        report["problems"].as_array().unwrap().iter().map(|it| it["kind"].clone()).collect();
    assert_eq!(kinds, [json!("issued"), json!("value")], "{report}");
    let why = report["problems"][1]["detail"].as_str().unwrap();
    assert!(why.contains("an earlier version") && why.contains("543"), "{why}");
}

/// Goal: counters of past years do not block a new start, and give nothing below it either.
#[test]
fn a_counter_of_a_year_that_is_over_gives_nothing_below_a_start_that_came_later() {
    let deployment = Deployment::embedded();
    let yearly = |start: &str| {
        let text = series("YR", &format!("reset = \"year\", {start}"))
            .replace("YR-{SEQ:6}", "YR-{YEAR}-{SEQ:6}");
        let file = deployment.path("YR.toml");
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    deployment.ok(&["series", "apply", &yearly("start = 1")]);
    assert_eq!(deployment.ok(&["next", "YR", "--date", "2024-03-01"]), "YR-2024-000001\n");
    deployment.ok(&["series", "apply", &yearly("start = 500")]);
    for arguments in
        [["next", "YR", "--date", "2024-03-01"], ["preview", "YR", "--date", "2024-03-01"]]
    {
        let told = refused(&deployment, &arguments);
        for part in ["counter-below-start", "counter 1", "2", "500", "move-counter 1 --next 500"] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
    assert_eq!(deployment.ok(&["next", "YR", "--date", "2025-03-01"]), "YR-2025-000500\n");
    deployment.ok(&["move-counter", "1", "--next", "500", "--reason", REASON]);
    assert_eq!(deployment.ok(&["next", "YR", "--date", "2024-03-02"]), "YR-2024-000500\n");
    deployment.assert_clean();
}

/// Goal: only counters that a version continues block it, of whichever version they are.
#[test]
fn counters_that_a_version_does_not_go_on_with_keep_no_start_out() {
    let deployment = Deployment::embedded();
    let version = |template: &str, serial: &str| {
        let text = series("TWO", serial).replace("TWO-{SEQ:6}", template);
        let file = deployment.path("TWO.toml");
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    deployment.ok(&["series", "apply", &version("A-{YEAR}-{SEQ:4}", "reset = \"year\"")]);
    for _ in 0..3 {
        deployment.ok(&["next", "TWO"]);
    }
    let anew = version("B-{SEQ:4}", "start = 1000");
    let saved = deployment.ok(&["series", "apply", &anew]);
    assert!(saved.contains("version 2 saved"), "{saved}");
    assert_eq!(deployment.ok(&["next", "TWO"]), "B-1000\n");
    // The counters of years continue in a later version still.
    let again = version("A-{YEAR}-{SEQ:4}", "start = 500, reset = \"year\"");
    let told = refused(&deployment, &["series", "apply", &again]);
    for part in ["counter 1 (year=", "goes on with 4", "`start` 1 first", "1 --next 500"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let first = version("A-{YEAR}-{SEQ:4}", "start = 1, reset = \"year\"");
    deployment.ok(&["series", "apply", &first]);
    deployment.ok(&["move-counter", "1", "--next", "500", "--reason", REASON]);
    let again = version("A-{YEAR}-{SEQ:4}", "start = 500, reset = \"year\"");
    deployment.ok(&["series", "apply", &again]);
    assert!(deployment.ok(&["next", "TWO"]).ends_with("-0500\n"));
    deployment.assert_clean();
}

/// Goal: the reported remedy works. Method: what the refusal says is done to the letter.
#[test]
fn where_start_and_step_change_together_the_value_that_is_told_is_one_to_move_to() {
    let deployment = Deployment::embedded();
    deployment.ok(&["series", "apply", &write(&deployment, "STEP", "start = 10, step = 10")]);
    for _ in 0..3 {
        deployment.ok(&["next", "STEP"]);
    }
    let next = write(&deployment, "STEP", "start = 545, step = 1");
    let told = refused(&deployment, &["series", "apply", &next]);
    assert!(told.contains("goes on with 40"), "{told}");
    let value = told.split("--next ").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(value, "560", "{told}");
    deployment.ok(&["move-counter", "1", "--next", value, "--reason", REASON]);
    let saved = deployment.ok(&["series", "apply", &next]);
    assert!(saved.contains("version 2 saved"), "{saved}");
    assert_eq!(deployment.ok(&["next", "STEP"]), "STEP-000551\n");
    deployment.assert_clean();
}

/// Goal: one block after another, each of which begins above the end of the one before.
#[test]
fn the_next_block_of_values_is_begun_by_moving_the_counter_there() {
    let deployment = Deployment::embedded();
    let block = |first: u64, last: u64| {
        write(&deployment, "BLK", &format!("start = {first}, max = {last}"))
    };
    deployment.ok(&["series", "apply", &block(1000, 1999)]);
    assert_eq!(deployment.ok(&["next", "BLK"]), "BLK-001000\n");
    let next = block(3000, 3999);
    let told = refused(&deployment, &["series", "apply", &next]);
    assert!(told.contains("goes on with 1001"), "{told}");
    // Beyond the block in force nothing is issued.
    deployment.ok(&["move-counter", "1", "--next", "3000", "--reason", REASON]);
    assert!(refused(&deployment, &["next", "BLK"]).contains("sequence-exhausted"));
    deployment.ok(&["series", "apply", &next]);
    assert_eq!(deployment.ok(&["next", "BLK"]), "BLK-003000\n");
    for (number, is_read) in
        [("BLK-001000", true), ("BLK-001999", true), ("BLK-002500", false), ("BLK-003999", true)]
    {
        assert_eq!(deployment.run(&["parse", number]).status.success(), is_read, "{number}");
    }
    let lower = refused(&deployment, &["series", "apply", &block(5000, 5999)]);
    assert!(lower.contains("goes on with 3001"), "{lower}");
    deployment.assert_clean();
}

/// Goal: a series that an earlier release saved with such a start gives nothing below it either, on
/// whichever path. Method: the stored version is changed as an earlier release would have saved it,
/// on the path of Redis and on that of the database.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_was_stored_above_a_counter_is_kept_by_whoever_counts() {
    let postgres = Postgres::start();
    for (schema, policy) in [("starts_fast", "fast"), ("starts_gapless", "gapless")] {
        // Each ledger has a Redis of its own: keys of another ledger are refused.
        let redis = Redis::start();
        let mut deployment = Deployment::new(&postgres.url(schema), Some(&redis.url()));
        deployment.extra = "return_after = \"1s\"\n".into();
        let file = deployment.path("LOAD.toml");
        let policy = format!("policy = \"{policy}\"\nserves =");
        let text = series("LOAD", "start = 1").replace("serves =", &policy);
        std::fs::write(&file, text).unwrap();
        deployment.apply(&[file]);
        let service = deployment.serve();
        let take = async |service: &str, document: &str| {
            let url = format!("{service}/api/v1/documents/{document}/generate-number");
            post(&testkit::client(), &url, &json!({ "type": "LOAD" })).await
        };
        for document in ["a", "b"] {
            assert_eq!(take(&service.url, document).await.0, 201);
        }
        eventually(Duration::from_secs(30), async || {
            let taken = postgres.sql(&format!("select max(taken) from {schema}.counter"));
            if taken == "2" { Ok(()) } else { Err(taken) }
        })
        .await;
        assert!(service.terminate());
        postgres.sql(&forge::postgres(&format!(
            "update {schema}.series_version set definition = \
             replace(definition::text, '\"name\":\"SEQ\",\"start\":1', \
             '\"name\":\"SEQ\",\"start\":50')"
        )));
        let service = deployment.serve();
        for document in ["c", "d"] {
            let (status, told) = take(&service.url, document).await;
            assert_eq!((status, &told["code"]), (409, &json!("counter-below-start")), "{told}");
            let why = told["detail"].as_str().unwrap();
            assert!(
                why.contains('3') && why.contains("50") && why.contains("move-counter"),
                "{why}"
            );
            assert_eq!(told["number_taken"], "no", "{told}");
        }
        let moved = deployment.ok(&["move-counter", "1", "--next", "50", "--reason", REASON]);
        assert!(moved.contains("3 to 49"), "{moved}");
        let (status, told) = take(&service.url, "e").await;
        assert_eq!((status, &told["document_number"]), (201, &json!("LOAD-000050")), "{told}");
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// If people have tokens, two of them answer for it as before.
#[test]
fn where_callers_have_tokens_no_command_moves_a_counter() {
    let mut deployment = Deployment::embedded();
    let file = write(&deployment, "INV", "start = 1");
    deployment.ok(&["series", "apply", &file]);
    deployment.ok(&["next", "INV"]);
    deployment.extra = "[auth]\nmode = \"on\"\n".into();
    deployment.ok(&["token", "create", "anna", "--role", "super-admin"]);
    let told = refused(&deployment, &["move-counter", "1", "--next", "9", "--reason", REASON]);
    assert!(told.contains("reset-counter") && told.contains("approve"), "{told}");
    assert_eq!(deployment.ok(&["next", "INV"]), "INV-000002\n");
    // If these settings ask no person for one.
    deployment.extra = "[auth]\nmode = \"off\"\n".into();
    let told = refused(&deployment, &["move-counter", "1", "--next", "9", "--reason", REASON]);
    for part in ["anna", "auth.mode", "token revoke"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// Goal: what a command asked for and did not complete cannot be completed over HTTP without a
/// token.
#[tokio::test(flavor = "multi_thread")]
async fn without_tokens_nobody_approves_over_http_what_a_command_has_left() {
    let deployment = Deployment::embedded();
    deployment.ok(&["series", "apply", &write(&deployment, "INV", "start = 1")]);
    deployment.ok(&["next", "INV"]);
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let left = "insert into change_request (series_id, counter_id, step, next_value, reason, \
                requested_by, requested_at_us, expires_at_us, state) \
                values (1, 1, 1, 50, 'a trial', 'maria@vm', 1, 9000000000000000, 'pending')";
    sqlx::raw_sql(left).execute(&pool).await.unwrap();
    pool.close().await;
    let service = deployment.serve();
    let path = "/api/v1/document-numbering/change-requests/1/approve";
    let (status, told) =
        post(&testkit::client(), &format!("{}{path}", service.url), &json!({})).await;
    assert_eq!((status, &told["code"]), (403, &json!("own-change")), "{told}");
    assert!(service.terminate());
    assert_eq!(deployment.ok(&["next", "INV"]), "INV-000002\n");
}
