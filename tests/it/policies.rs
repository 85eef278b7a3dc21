//! What each policy of a series promises, on real servers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::load::post;
use crate::harness::postgres::Postgres;
use crate::harness::redis::Redis;
use crate::harness::service::Deployment;

/// How long an answer is watched not to come.
const HELD_BACK: Duration = Duration::from_millis(700);
/// How soon an answer comes once nothing keeps it back.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Asks for one number of a type.
async fn take(url: &str, type_code: &str, document: &str) -> (u16, Value) {
    let route = format!("{url}/api/v1/documents/{document}/generate-number");
    post(&reqwest::Client::new(), &route, &json!({ "type": type_code })).await
}

/// The same in a task of its own.
fn taking(
    url: &str,
    type_code: &'static str,
    document: &'static str,
) -> tokio::task::JoinHandle<(u16, Value)> {
    let url = url.to_owned();
    tokio::spawn(async move { take(&url, type_code, document).await })
}

/// A fast series `FAST` and a durable one `SURE`, both warm.
async fn fast_and_durable(deployment: &mut Deployment) -> crate::harness::service::Service {
    deployment.extra = "[ceiling]\nstep_min = 1000\n".into();
    let durable = deployment.series_file("SURE", "S-{SEQ:4}", "policy = \"durable\"");
    let fast = deployment.series_file("FAST", "F-{SEQ:4}", "");
    deployment.apply(&[durable, fast]);
    let service = deployment.serve();
    for (type_code, number) in [("FAST", "F-0001"), ("SURE", "S-0001")] {
        let (status, body) = take(&service.url, type_code, "one").await;
        assert_eq!((status, &body["document_number"]), (201, &number.into()), "{body}");
    }
    service
}

#[tokio::test]
async fn policies_a_durable_number_is_in_the_journal_when_it_is_answered_a_fast_one_need_not() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("durable"), Some(&redis.url()));
    let service = fast_and_durable(&mut deployment).await;
    postgres.kill();
    let mut first = taking(&service.url, "SURE", "two");
    let mut replay = taking(&service.url, "SURE", "one");
    let (status, body) = take(&service.url, "FAST", "two").await;
    assert_eq!((status, &body["document_number"]), (201, &"F-0002".into()), "{body}");
    for waiting in [&mut first, &mut replay] {
        let answered = tokio::time::timeout(HELD_BACK, waiting).await;
        assert!(answered.is_err(), "answered before it was journaled: {answered:?}");
    }
    postgres.restart();
    let answered = tokio::time::timeout(ANSWER_LIMIT, first).await.unwrap().unwrap();
    let rows = postgres.sql("select count(*) from durable.journal where number = 'S-0002'");
    assert_eq!((answered.0, &answered.1["document_number"]), (201, &"S-0002".into()));
    assert_eq!(rows, "1", "the number is answered before its row is there");
    let (status, body) = tokio::time::timeout(ANSWER_LIMIT, replay).await.unwrap().unwrap();
    assert_eq!((status, &body["document_number"]), (200, &"S-0001".into()), "{body}");
    assert!(service.terminate());
    let (clean, report) = deployment.verify();
    assert!(clean, "{report}");
}

#[tokio::test]
async fn policies_a_durable_request_that_runs_out_of_time_says_maybe_and_its_retry_finds_it() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("late"), Some(&redis.url()));
    deployment.http = "time_limit = \"1s\"\n".into();
    let service = fast_and_durable(&mut deployment).await;
    postgres.kill();
    let (status, problem) = take(&service.url, "SURE", "two").await;
    assert_eq!((status, &problem["number_taken"]), (503, &"maybe".into()), "{problem}");
    assert_eq!(problem["retryable"], true, "{problem}");
    postgres.restart();
    let deadline = tokio::time::Instant::now() + ANSWER_LIMIT;
    let number = loop {
        let (status, body) = take(&service.url, "SURE", "two").await;
        if status == 200 {
            break body["document_number"].clone();
        }
        assert_eq!((status, &body["number_taken"]), (503, &"maybe".into()), "{body}");
        assert!(tokio::time::Instant::now() < deadline, "never answered: {body}");
    };
    assert_eq!(number, "S-0002");
    assert!(service.terminate());
    let (clean, report) = deployment.verify();
    assert!(clean, "{report}");
}
