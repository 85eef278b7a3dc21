//! What `/metrics` shows of stores and nodes: their present state, not the last known one.

use std::time::{Duration, Instant};

use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for a figure; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Partitions that Redis may own.
const PARTITIONS: usize = 8;

/// The values of a metric whose labels contain some text; none if the service does not answer.
async fn values(service: &Service, metric: &str, labels: &str) -> Vec<f64> {
    let Ok(answer) = testkit::get(format!("{}/metrics", service.url)).await else {
        return Vec::new();
    };
    let text = answer.text().await.unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix(metric)?.rsplit_once(' '));
    lines
        .filter(|(found, _)| (found.is_empty() || found.starts_with('{')) && found.contains(labels))
        .map(|(_, value)| value.parse().unwrap())
        .collect()
}

/// Waits until the values are as they should be.
async fn shows(
    service: &Service,
    (metric, labels): (&str, &str),
    is_there: impl Fn(&[f64]) -> bool,
) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let found = values(service, metric, labels).await;
        if is_there(&found) {
            return;
        }
        assert!(Instant::now() < deadline, "{metric}{{{labels}}}: {found:?}\n{}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn outboxes_that_cannot_be_read_are_not_shown_as_they_last_were() {
    let redis = Redis::start_durable();
    let to_redis = Proxy::start(redis.port());
    let mut deployment = Deployment::sqlite(Some(&to_redis.redis_url()));
    // Eight waits for a silent Redis, one after another, would take longer than the limit.
    deployment.extra = "command_timeout = \"3s\"\n[metrics]\nperiod = \"100ms\"\n".into();
    let service = deployment.serve();
    let outboxes = ("numerator_outbox_entries", "");
    // The partition of gapless series has none: it is always known.
    let known = |values: &[f64]| values.iter().filter(|value| !value.is_nan()).count();
    shows(&service, outboxes, |values| known(values) == PARTITIONS + 1).await;
    to_redis.swallow_all();
    shows(&service, outboxes, |values| known(values) == 1 && values.len() == PARTITIONS + 1).await;
    to_redis.forward();
    shows(&service, outboxes, |values| known(values) == PARTITIONS + 1).await;
    assert!(service.terminate());
}

#[tokio::test]
async fn a_ledger_that_went_back_and_cannot_be_held_does_not_count_as_up() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("gauges"), None);
    deployment.database = "lock_timeout = \"200ms\"\n".into();
    let service = deployment.serve();
    shows(&service, ("numerator_ledger_up", ""), |values| values == [1.0]).await;
    let pool = sqlx::PgPool::connect(&postgres.url("gauges")).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("select 1 from partition for update").execute(&mut *holder).await.unwrap();
    postgres.sql("update gauges.node set beat = 0");
    shows(&service, ("numerator_ledger_up", ""), |values| values == [0.0]).await;
    assert!(service.log().contains("THE LEDGER WENT BACK"), "{}", service.log());
    holder.rollback().await.unwrap();
    shows(&service, ("numerator_ledger_up", ""), |values| values == [1.0]).await;
    shows(&service, ("numerator_ledger_went_back_total", ""), |values| values == [1.0]).await;
}

#[tokio::test]
async fn nodes_that_died_are_counted_by_those_that_live_and_by_nobody_who_cannot_see_them() {
    let mut postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("gauges"), None);
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    let (one, mut other) = (deployment.serve(), deployment.serve());
    let (alive, died) = (("numerator_nodes", "alive"), ("numerator_nodes_died_total", ""));
    shows(&one, alive, |values| values == [2.0]).await;
    assert_eq!(values(&one, died.0, died.1).await, [0.0]);
    other.kill();
    shows(&one, died, |values| values == [1.0]).await;
    shows(&one, alive, |values| values == [1.0]).await;
    postgres.kill();
    shows(&one, alive, |values| values.iter().all(|value| value.is_nan())).await;
    postgres.restart();
    shows(&one, alive, |values| values == [1.0]).await;
    assert!(one.terminate());
}

#[tokio::test]
async fn collisions_of_the_ledger_are_shown_by_processes_that_met_none() {
    let mut postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("gauges"), None);
    deployment.extra = "[metrics]\nperiod = \"100ms\"\n".into();
    let service = deployment.serve();
    let collisions = ("numerator_collisions", "");
    shows(&service, collisions, |values| values == [0.0]).await;
    postgres.sql(
        "insert into gauges.collision (counter_id, first_value, last_value, step, allocation_id, \
         number, raw, noted_at_us) values (1, 1, 1, 1, '\\x01', 'L-1', '{}', 0)",
    );
    shows(&service, collisions, |values| values == [1.0]).await;
    assert_eq!(values(&service, "numerator_duplicates_total", "").await, [0.0]);
    postgres.kill();
    shows(&service, collisions, |values| values.iter().all(|value| value.is_nan())).await;
    postgres.restart();
    shows(&service, collisions, |values| values == [1.0]).await;
    let started = values(&service, "process_start_time_seconds", "").await;
    let age = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64() - started[0];
    assert!((0.0..600.0).contains(&age), "{age}");
    assert!(service.terminate());
}
