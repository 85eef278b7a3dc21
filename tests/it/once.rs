//! A document is numbered once, forever: beyond the window of idempotency, on every path.
//!
//! Windows end in two ways here. If the database takes the numbers, the journal's rows are made
//! older than any. If Redis does, the window is a second, and a document of a series that forgets
//! shows by its second number that it is over.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

/// Longest wait for a window of a second to be over; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Makes every number of a journal older than a window may be (400 days).
const AGE: &str = "update journal set issued_at_us = issued_at_us - 70000000000000";

async fn ask(service: &Service, type_code: &str, document: &str, more: Value) -> (u16, Value) {
    let mut body = json!({ "type": type_code, "date": "2024-01-22" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    post(&testkit::client(), &url, &body).await
}

async fn take(service: &Service, type_code: &str, document: &str) -> (u16, Value) {
    ask(service, type_code, document, json!({})).await
}

/// Saves series of these types, each with settings of its own.
fn apply(deployment: &Deployment, series: &[(&str, &str)]) {
    let file = |(code, settings): &(&str, &str)| {
        deployment.series_file(code, &format!("{code}-{{SEQ:4}}"), settings)
    };
    deployment.apply(&series.iter().map(file).collect::<Vec<_>>());
}

/// A document's number whose window is over is found again, is shown to another payload, and
/// another one is taken only if that is requested.
async fn is_numbered_once(service: &Service, type_code: &str) {
    let number = |value: u32| json!(format!("{type_code}-{value:04}"));
    let (status, body) = take(service, type_code, "d1").await;
    assert_eq!((status, &body["document_number"]), (200, &number(1)), "{body}");
    assert_eq!(body["replayed"], true, "{body}");
    let other = json!({ "date": "2024-01-23" });
    let (status, body) = ask(service, type_code, "d1", other).await;
    assert_eq!((status, &body["code"]), (409, &"document-already-numbered".into()), "{body}");
    let told = body["detail"].as_str().unwrap();
    assert!(told.contains(number(1).as_str().unwrap()), "{told}");
    let another = json!({ "date": "2024-01-23", "again": true });
    let (status, body) = ask(service, type_code, "d1", another.clone()).await;
    assert_eq!((status, &body["document_number"]), (201, &number(2)), "{body}");
    let (status, body) = ask(service, type_code, "d1", another).await;
    assert_eq!((status, &body["document_number"]), (200, &number(2)), "{body}");
    let (status, body) = take(service, type_code, "d2").await;
    assert_eq!((status, &body["document_number"]), (201, &number(3)), "{body}");
}

/// A fast series without the setting remembers for a window: the document gets another number.
async fn is_forgotten(service: &Service, type_code: &str) {
    let (status, body) = take(service, type_code, "d1").await;
    assert_eq!(status, 201, "{body}");
}

/// What the database numbered is found whatever its age.
async fn numbered_once_without_redis(deployment: &Deployment, age: impl AsyncFnOnce()) {
    let kept = ("KEPT", "once_per_document = true");
    let lost = ("LOST", "policy = \"gapless\"\nonce_per_document = false");
    let (gapless, fast) = (("GAPLESS", "policy = \"gapless\""), ("FAST", ""));
    apply(deployment, &[gapless, fast, ("SURE", "policy = \"durable\""), kept, lost]);
    let service = deployment.serve();
    for type_code in ["GAPLESS", "SURE", "KEPT", "FAST", "LOST"] {
        let (status, body) = take(&service, type_code, "d1").await;
        assert_eq!(status, 201, "{body}");
    }
    age().await;
    for type_code in ["GAPLESS", "SURE", "KEPT"] {
        is_numbered_once(&service, type_code).await;
    }
    is_forgotten(&service, "FAST").await;
    is_forgotten(&service, "LOST").await;
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn once_a_document_is_numbered_for_ever_where_the_database_takes_the_numbers() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("once"), None);
    let age = async || {
        let age = testkit::forge::postgres(AGE);
        postgres.sql(&format!("set search_path = once; {age}"));
    };
    numbered_once_without_redis(&deployment, age).await;
    let deployment = Deployment::embedded();
    let age = async || {
        let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(testkit::forge::sqlite(AGE)))
            .execute(&pool)
            .await
            .unwrap();
        pool.close().await;
    };
    numbered_once_without_redis(&deployment, age).await;
}

/// The earlier series: nothing in them says how often a document is numbered.
#[tokio::test]
async fn once_a_gapless_series_that_says_nothing_numbers_a_document_for_ever() {
    let deployment = Deployment::embedded();
    apply(&deployment, &[("GAPLESS", "policy = \"gapless\"")]);
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let stored: String =
        sqlx::query_scalar("select definition from series_version").fetch_one(&pool).await.unwrap();
    assert!(!stored.contains("once_per_document"), "{stored}");
    let service = deployment.serve();
    let (status, body) = take(&service, "GAPLESS", "d1").await;
    assert_eq!(status, 201, "{body}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(testkit::forge::sqlite(AGE))).execute(&pool).await.unwrap();
    is_numbered_once(&service, "GAPLESS").await;
}

/// The same series under Redis, whose records last for a second.
fn of_a_second(database_url: &str, redis: &Redis) -> Deployment {
    let mut deployment = Deployment::new(database_url, Some(&redis.url()));
    deployment.extra = "[idempotency]\nwindow = \"1s\"\n".into();
    let kept = ("KEPT", "once_per_document = true");
    let lost = ("LOST", "policy = \"durable\"\nonce_per_document = false");
    apply(&deployment, &[("SURE", "policy = \"durable\""), kept, ("FAST", ""), lost]);
    deployment
}

/// Waits until a series that forgets gives a document another number.
async fn reach_end_of_window(service: &Service, type_code: &str, document: &str) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let (status, body) = take(service, type_code, document).await;
        if status == 201 {
            return;
        }
        assert_eq!(status, 200, "{body}");
        assert!(Instant::now() < deadline, "the window does not end: {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn once_a_document_is_numbered_for_ever_where_redis_takes_the_numbers() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = of_a_second(&postgres.url("once"), &redis);
    let service = deployment.serve();
    for type_code in ["SURE", "KEPT", "FAST", "LOST"] {
        let (status, body) = take(&service, type_code, "d1").await;
        assert_eq!((status, &body["path"]), (201, &"redis".into()), "{body}");
    }
    reach_end_of_window(&service, "FAST", "d1").await;
    reach_end_of_window(&service, "LOST", "d1").await;
    for type_code in ["SURE", "KEPT"] {
        is_numbered_once(&service, type_code).await;
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: the question to the journal leaves no gap between two requests of a document. Method: two
/// processes, each asked four times for each of many documents, all at once, among them documents
/// whose window is over.
#[tokio::test]
async fn once_two_processes_that_are_asked_at_once_give_a_document_one_number() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = of_a_second(&postgres.url("once"), &redis);
    let (one, two) = (deployment.serve(), deployment.serve());
    let mut expected = std::collections::BTreeMap::new();
    for document in 0..20 {
        let name = format!("old-{document}");
        let (status, body) = take(&one, "KEPT", &name).await;
        assert_eq!(status, 201, "{body}");
        expected.insert(name, body["document_number"].clone());
    }
    let (status, body) = take(&one, "FAST", "last").await;
    assert_eq!(status, 201, "{body}");
    reach_end_of_window(&one, "FAST", "last").await;
    let mut asking = Vec::new();
    for document in 0..20 {
        for kind in ["old", "new"] {
            for (index, service) in [&one, &two].into_iter().cycle().take(8).enumerate() {
                let (url, name) = (service.url.clone(), format!("{kind}-{document}"));
                asking.push(tokio::spawn(async move {
                    let url = format!("{url}/api/v1/documents/{name}/generate-number");
                    let body = json!({ "type": "KEPT", "date": "2024-01-22" });
                    let (status, body) = post(&testkit::client(), &url, &body).await;
                    assert!(matches!(status, 200 | 201), "request {index}: {body}");
                    (name, body["document_number"].clone())
                }));
            }
        }
    }
    for asked in asking {
        let (name, number) = asked.await.unwrap();
        let known = expected.entry(name.clone()).or_insert_with(|| number.clone());
        assert_eq!(*known, number, "{name} has two numbers");
    }
    assert!(one.terminate() && two.terminate());
    let rows = postgres.sql("select count(*) from once.journal where number like 'KEPT-%'");
    assert_eq!(rows, "40");
    deployment.assert_clean();
}

/// Its cost besides time: a new document needs the ledger.
#[tokio::test]
async fn once_a_new_document_needs_the_ledger_and_is_refused_before_anything_is_taken() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("once"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 1000\n[idempotency]\nwindow = \"1s\"\n".into();
    apply(&deployment, &[("KEPT", "once_per_document = true"), ("FAST", "")]);
    let service = deployment.serve();
    for type_code in ["KEPT", "FAST"] {
        let (status, body) = take(&service, type_code, "d1").await;
        assert_eq!(status, 201, "{body}");
    }
    reach_end_of_window(&service, "FAST", "d1").await;
    postgres.kill();
    let (status, body) = take(&service, "KEPT", "d2").await;
    assert!(status >= 500, "{status} {body}");
    assert_eq!((&body["number_taken"], &body["retryable"]), (&"no".into(), &true.into()), "{body}");
    let (status, body) = take(&service, "FAST", "d2").await;
    assert_eq!((status, &body["document_number"]), (201, &"FAST-0003".into()), "{body}");
    postgres.restart();
    let deadline = Instant::now() + LIMIT;
    loop {
        let (status, body) = take(&service, "KEPT", "d2").await;
        if status == 201 {
            assert_eq!(body["document_number"], "KEPT-0002", "{body}");
            break;
        }
        assert!(Instant::now() < deadline, "not answered again: {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(service.terminate());
}

#[test]
fn once_the_setting_is_told_and_what_is_shown_changes_nothing() {
    let deployment = Deployment::embedded();
    let series = [
        ("GAPLESS", "policy = \"gapless\"", true),
        ("SURE", "policy = \"durable\"", true),
        ("FAST", "", false),
        ("KEPT", "once_per_document = true", true),
        ("LOST", "policy = \"durable\"\nonce_per_document = false", false),
    ];
    apply(&deployment, &series.map(|(code, settings, _)| (code, settings)));
    for (code, _, is_once) in series {
        let shown = deployment.ok(&["series", "show", code]);
        assert!(shown.contains(&format!("once_per_document = {is_once}")), "{shown}");
        let file = deployment.path("shown.toml");
        std::fs::write(&file, &shown).unwrap();
        let applied = deployment.ok(&["series", "apply", &file.display().to_string()]);
        assert!(applied.contains(&format!("{code} version 1 unchanged")), "{applied}");
        let told = deployment.ok(&["series", "show", code, "--json"]);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["once_per_document"], is_once, "{told}");
    }
    // A used series may change it, as it may change what costs no number.
    deployment.ok(&["next", "FAST"]);
    apply(&deployment, &[("FAST", "once_per_document = true")]);
    assert!(deployment.ok(&["series", "show", "FAST"]).contains("once_per_document = true"));
    let file = deployment.series_file("FAST", "FAST-{SEQ:4}", "once_per_document = \"ever\"");
    let output = deployment.run(&["series", "apply", &file.display().to_string()]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("line 5, column 21: series FAST: `once_per_document` must be true or"),
        "{told}"
    );
}
