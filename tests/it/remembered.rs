//! What a retry meets once its number is journaled: Redis knows no more than that there is one.

use std::time::{Duration, Instant};

use harness::load;
use harness::redis::Redis;
use harness::service::Service;

use crate::deployment::Deployment;

/// Longest wait for the outbox to be emptied; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// A service that has issued a document's number, journaled it and emptied its outbox.
async fn journaled(redis: &Redis, deployment: &Deployment) -> (Service, String) {
    deployment.apply_load_series();
    let service = deployment.serve();
    let client = reqwest::Client::new();
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
    let client = reqwest::Client::new();
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
    sqlx::query("delete from journal").execute(&pool).await.unwrap();
    let client = reqwest::Client::new();
    let (status, body) = load::take(&client, &service.url, "d1").await;
    assert_eq!(status, 503, "{body}");
    assert!(body["type"].as_str().unwrap().ends_with("number-not-journaled"), "{body}");
    assert_eq!((&body["retryable"], &body["number_taken"]), (&true.into(), &"maybe".into()));
    assert!(service.log().contains("is not in the journal"), "{}", service.log());
    // Others are not kept waiting.
    let (status, body) = load::take(&client, &service.url, "d2").await;
    assert_eq!(status, 201, "{body}");
}
