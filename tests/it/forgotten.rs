//! Idempotency records that vanish from Redis alone while their numbers still wait for the journal:
//! the journal is asked once it has them, and never before (F28).

use std::time::{Duration, Instant};

use numerator::ledger::PartitionState;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;
use crate::load::open;
use crate::operations::load_partition;

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Deletes every bucket of idempotency records, as an eviction of what expires would.
fn delete_buckets(redis: &Redis) {
    let keys = redis.cli(&["--raw", "keys", "*:records:[0-9]*"]);
    assert!(!keys.is_empty(), "nothing is remembered");
    for key in keys.lines() {
        assert_eq!(redis.cli(&["del", key]).trim(), "1");
    }
}

/// Goal: a retry whose record vanished gets its number although the journal does not have it yet.
/// Method: the counter's row is locked, so that the number waits for the journal; its bucket is
/// deleted; the row is released once the epoch ends. `is_young`: Redis has lost everything before,
/// so that each missing record is asked for anyway.
async fn retry_finds_its_number(is_young: bool) {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("forgotten"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let client = testkit::client();
    if is_young {
        assert_eq!(load::take(&client, &service.url, "before").await.0, 201);
        redis.flushall();
    }
    assert_eq!(load::take(&client, &service.url, "first").await.0, 201);
    let pool = sqlx::PgPool::connect(&postgres.url("forgotten")).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    let hold = "select taken from counter where key = 'type=LOAD' for update";
    sqlx::query(hold).fetch_one(&mut *holder).await.unwrap();
    let (status, before) = load::take(&client, &service.url, "second").await;
    assert_eq!(status, 201, "{before}");

    let ledger = open(&deployment).await;
    let epoch = load_partition(&ledger).await.epoch;
    delete_buckets(&redis);
    let url = service.url.clone();
    let retry = tokio::spawn(async move { load::take(&client, &url, "second").await });
    let deadline = Instant::now() + LIMIT;
    while load_partition(&ledger).await.state != PartitionState::Recovering && !retry.is_finished()
    {
        assert!(Instant::now() < deadline, "nothing happens: {}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    holder.rollback().await.unwrap();
    let (status, after) = retry.await.unwrap();
    let number = &before["document_number"];
    assert_eq!((status, &after["document_number"]), (200, number), "{after} {}", service.log());

    // What vanished is over with its epoch: later requests end no other one.
    let client = testkit::client();
    for document in ["first", "second", "third"] {
        let (status, body) = load::take(&client, &service.url, document).await;
        assert_eq!(status, if document == "third" { 201 } else { 200 }, "{body}");
    }
    assert_eq!(load_partition(&ledger).await.epoch, epoch + 1, "{}", service.log());
    assert!(service.terminate());
    let (clean, report) = deployment.verify();
    assert!(clean && report["totals"]["gaps"] == 0, "{report}");
}

#[tokio::test]
async fn forgotten_a_retry_whose_record_vanished_gets_the_number_that_waits_for_the_journal() {
    retry_finds_its_number(false).await;
}

#[tokio::test]
async fn forgotten_the_same_where_redis_has_lost_everything_within_the_window() {
    retry_finds_its_number(true).await;
}
