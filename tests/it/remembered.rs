//! The effect of a retry once its number is journaled: Redis knows no more than that there is one.

use std::time::{Duration, Instant};

use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for the outbox to be emptied; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// A service that has issued a document's number, journaled it and emptied its outbox.
async fn journaled(redis: &Redis, deployment: &Deployment) -> (Service, String) {
    deployment.apply_load_series();
    let service = deployment.serve();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "d1").await;
    assert_eq!(status, 201, "{body}");
    let deadline = Instant::now() + LIMIT;
    while !redis.cli(&["keys", "*:outbox:*"]).trim().is_empty() {
        assert!(Instant::now() < deadline, "the outbox is not emptied: {}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    (service, body["document_number"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_retry_of_a_journaled_number_gets_it_from_the_journal() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    let (service, number) = journaled(&redis, &deployment).await;
    let client = testkit::client();
    for _ in 0..2 {
        let (status, body) = load::take(&client, &service.url, "d1").await;
        assert_eq!((status, body["document_number"].as_str()), (200, Some(&*number)), "{body}");
        assert_eq!(body["replayed"], true, "{body}");
    }
}

#[tokio::test]
async fn a_retry_whose_number_the_journal_lost_is_refused_at_once_and_gets_no_other() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    let (service, _) = journaled(&redis, &deployment).await;
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let forget = sqlx::AssertSqlSafe(testkit::forge::sqlite("delete from journal"));
    sqlx::raw_sql(forget).execute(&pool).await.unwrap();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "d1").await;
    assert_eq!(status, 503, "{body}");
    assert!(body["code"] == "number-not-journaled", "{body}");
    assert_eq!((&body["retryable"], &body["number_taken"]), (&true.into(), &"maybe".into()));
    assert!(service.log().contains("is not in the journal"), "{}", service.log());
    // Others are not delayed.
    let (status, body) = load::take(&client, &service.url, "d2").await;
    assert_eq!(status, 201, "{body}");
}

/// Redis knows that the number was taken, but not which one it is.
#[tokio::test]
async fn a_retry_of_a_journaled_number_is_told_that_it_may_be_taken_while_the_ledger_is_away() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("away"), Some(&redis.url()));
    let (service, _) = journaled(&redis, &deployment).await;
    postgres.kill();
    let (status, body) = load::take(&testkit::client(), &service.url, "d1").await;
    assert_eq!((status, &body["number_taken"]), (503, &"maybe".into()), "{body}");
}

/// Goal: processes never forget for each other: their window is the ledger's (F29). Method: a
/// second process with another window, next to the first and once that has left.
#[tokio::test]
async fn a_process_with_another_window_is_refused_while_others_are_there_and_changes_it_alone() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let url = postgres.url("windows");
    let window = |window: &str| {
        let mut deployment = Deployment::new(&url, Some(&redis.url()));
        deployment.extra = format!("[idempotency]\nwindow = \"{window}\"\n");
        deployment
    };
    let (day, week) = (window("1d"), window("7d"));
    day.apply_load_series();
    let service = day.serve();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "d1").await;
    assert_eq!(status, 201, "{body}");
    let differs = "idempotency.window is 7d here but 1d in the ledger";
    let mut refused = week.launch();
    assert!(!refused.has_ended_well());
    assert!(refused.log().contains(differs), "{}", refused.log());
    let refused = week.run(&["next", "LOAD"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && told.contains(differs), "{told}");
    // A read-only command needs no window.
    assert_ne!(week.status(&[]).0, 2);
    assert!(service.terminate());
    let refused = week.run(&["next", "LOAD"]);
    assert_eq!(refused.status.code(), Some(1), "a command changes nothing");
    let service = week.serve();
    let (status, again) = load::take(&client, &service.url, "d1").await;
    assert_eq!((status, &again["document_number"]), (200, &body["document_number"]), "{again}");
    assert_eq!(day.run(&["next", "LOAD"]).status.code(), Some(1));
}
