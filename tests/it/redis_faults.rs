//! What happens to Redis itself: memory, eviction, a crash with its data kept, slow answers. The
//! database takes over where Redis refuses, and gives back.

use std::time::Duration;

use numerator::ledger::PartitionState;
use testkit::load::{self, Running};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;
use crate::load::open;
use crate::operations::load_partition;
use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_is_killed_and_comes_back_with_its_data_and_nothing_is_unaccounted_for() {
    let mut redis = Redis::start_durable();
    let stage = Stage::start(&redis.url()).await;
    for _ in 0..2 {
        redis.kill();
        redis.restart();
        stage.advance().await;
    }
    let outcome = stage.close("Redis killed, data kept").await;
    assert_eq!(outcome.failures, 0, "callers see latency, not errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_is_out_of_memory_and_the_database_takes_over() {
    let redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    redis.cli(&["config", "set", "maxmemory", "1"]);
    stage.owned_by("database").await;
    stage.advance().await;
    redis.cli(&["config", "set", "maxmemory", "0"]);
    let outcome = stage.close("Redis out of memory").await;
    assert_eq!(outcome.failures, 0, "callers see latency, not errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_evicts_keys_and_no_number_comes_twice() {
    let redis = Redis::start_with(&["--maxmemory-policy", "allkeys-random"]);
    let stage = Stage::start(&redis.url()).await;
    // Room for the data set as it is, minus a bit: each write now evicts another key.
    let info = redis.cli(&["info", "memory"]);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("memory");
    let used: u64 = used.trim().parse().expect("a number");
    redis.cli(&["config", "set", "maxmemory", &(used * 98 / 100).to_string()]);
    stage.advance().await;
    redis.cli(&["config", "set", "maxmemory", "0"]);
    stage.advance().await;
    let outcome = stage.close("keys evicted").await;
    assert_eq!(outcome.failures, 0, "callers see latency, not errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_answers_too_late_and_the_ghosts_of_flights_take_nothing() {
    let redis = Redis::start();
    let (stage, links) = Stage::start_linked(&redis).await;
    for _ in 0..2 {
        // Longer than `redis.command_timeout`: each call arrives after it was given up.
        links.redis.delay(Duration::from_millis(1_200));
        stage.advance().await;
        links.redis.forward();
        stage.advance().await;
    }
    stage.close("Redis slow for one node").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_is_flushed_again_and_again_and_the_database_takes_over() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("often"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, 16);
    let owner = "select owner from often.partition where partition_id = \
                 (select partition from often.series where code = 'LOAD')";
    let mut flushes = 0;
    while postgres.sql(owner) == "redis" {
        assert!(flushes < 10, "one recovery follows the other: {}", service.log());
        flushes += 1;
        redis.flushall();
        let asked = load.asked();
        load.reach(asked + 300).await;
    }
    assert!(flushes > 3, "three recoveries in a minute are not too many");
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "callers see latency, not errors: {:?}", seen.failures);
    seen.assert_contiguous(seen.numbers.len());
    assert!(service.terminate());
    crate::faults::assert_all_journaled(&open(&deployment).await, &seen).await;
    deployment.assert_clean();
}

#[tokio::test]
async fn faults_redis_is_flushed_while_the_journal_waits_for_a_lock_and_there_is_not_even_a_gap() {
    let barrier = Duration::from_millis(500);
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("late"), Some(&redis.url()));
    deployment.extra = "[recovery]\nbarrier_max = \"500ms\"\n".into();
    deployment.apply_load_series();
    let service = deployment.serve();
    load::documents(&service.url, 4, 20).await.assert_contiguous(20);
    let pool = sqlx::PgPool::connect(&postgres.url("late")).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    let hold = "select taken from counter where key = 'type=LOAD' for update";
    sqlx::query(hold).fetch_one(&mut *holder).await.unwrap();

    // These are handed out, and are in Redis and in the process only.
    let client = testkit::client();
    for document in ["late-1", "late-2"] {
        assert_eq!(load::take(&client, &service.url, document).await.0, 201);
    }
    redis.flushall();
    let (url, asking) = (service.url.clone(), client.clone());
    let asked = tokio::spawn(async move { load::take(&asking, &url, "afterwards").await });
    let ledger = open(&deployment).await;
    let partition = load_partition(&ledger).await.partition as usize;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while ledger.partitions().await.unwrap()[partition].state != PartitionState::Recovering {
        assert!(tokio::time::Instant::now() < deadline, "no recovery: {}", service.log());
    }
    // Longer than others would be waited for.
    tokio::time::sleep(barrier * 2).await;
    holder.rollback().await.unwrap();

    let (status, body) = asked.await.unwrap();
    assert_eq!((status, &body["document_number"]), (201, &"L-00000023".into()), "{body}");
    assert!(service.terminate());
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["gaps"], 0, "{report}");
}
