//! A process that is asked to end does so in time, whichever store is silent, and loses nothing.

use std::time::{Duration, Instant};

use testkit::load;
use testkit::postgres::Postgres;
use testkit::process::free_port;
use testkit::proxy::Proxy;
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// `http.time_limit` and `allocator.stop_max` of these tests are 1 s and 3 s; the rest is for a
/// busy machine. One loop after the other would take four times as long as both.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Numbers before the store falls silent, and after.
const SOME: usize = 20;

/// How long what a node left may take to be adopted.
const ADOPTION_LIMIT: Duration = Duration::from_secs(30);

/// Which store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silent {
    Ledger,
    Redis,
}

/// Settings of nodes that end soon, and continue long without their ledger.
const SETTINGS: &str =
    "[allocator]\nstop_max = \"3s\"\n[ceiling]\nstep_min = 10000\n[node]\nttl = \"1s\"\n";

async fn ends_in_time(silent: Silent) {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let (to_ledger, to_redis) = (Proxy::start(postgres.port()), Proxy::start(redis.port()));
    let mut through = Deployment::new(
        &postgres.url_by(to_ledger.port(), "stopping"),
        Some(&to_redis.redis_url()),
    );
    through.http = "time_limit = \"1s\"\n".into();
    through.extra = SETTINGS.into();
    through.apply_load_series();
    let mut service = through.serve();
    let before = load::documents(&service.url, 4, SOME as u64).await;
    before.assert_contiguous(SOME);
    let client = testkit::client();
    let mut handed: Vec<String> = before.numbers.values().cloned().collect();
    match silent {
        Silent::Ledger => {
            to_ledger.swallow_all();
            // They wait in memory and in the outbox.
            for document in 0..SOME {
                let (status, body) =
                    load::take(&client, &service.url, &format!("l-{document}")).await;
                assert_eq!(status, 201, "{body}");
                handed.push(body["document_number"].as_str().unwrap().to_owned());
            }
        }
        Silent::Redis => to_redis.swallow_all(),
    }
    let told = Instant::now();
    service.signal("TERM");
    let ended_well = service.has_ended_well();
    let took = told.elapsed();
    assert!(!service.is_running(), "still there after {took:?}: {}", service.log());
    println!("{silent:?} silent: ended after {took:?}, well: {ended_well}");
    assert!(took < STOP_LIMIT, "{took:?}: {}", service.log());

    let mut direct = Deployment::new(&postgres.url("stopping"), Some(&redis.url()));
    direct.extra = SETTINGS.into();
    let other = direct.serve();
    let left = "select count(*) from stopping.node where left_at_us is null \
                and adopted_at_us is null";
    let deadline = Instant::now() + ADOPTION_LIMIT;
    while postgres.sql(left) != "1" {
        assert!(Instant::now() < deadline, "not adopted: {}", other.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for number in &handed {
        let there = format!("select count(*) from stopping.journal where number = '{number}'");
        assert_eq!(postgres.sql(&there), "1", "{number}");
    }
    let (status, body) = load::take(&client, &other.url, "afterwards").await;
    assert_eq!(status, 201, "{body}");
    assert!(!handed.contains(&body["document_number"].as_str().unwrap().to_owned()), "{body}");
    assert!(other.terminate());
    direct.assert_clean();
}

#[tokio::test]
async fn a_process_whose_ledger_is_silent_ends_in_time_and_its_records_are_adopted() {
    ends_in_time(Silent::Ledger).await;
}

#[tokio::test]
async fn a_process_whose_redis_is_silent_ends_in_time_and_its_records_are_journaled() {
    ends_in_time(Silent::Redis).await;
}

#[tokio::test]
async fn a_process_whose_sessions_were_ended_leaves_by_another() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("stopping"), None);
    deployment.apply_load_series();
    let mut service = deployment.serve();
    load::documents(&service.url, 4, SOME as u64).await.assert_contiguous(SOME);
    service.signal("STOP");
    postgres.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity \
         where backend_type = 'client backend' and pid <> pg_backend_pid()",
    );
    service.signal("TERM");
    service.signal("CONT");
    assert!(service.has_ended_well(), "{}", service.log());
    let left = "select count(*) from stopping.node where left_at_us is not null";
    assert_eq!(postgres.sql(left), "1");
}

#[tokio::test]
async fn a_process_that_drains_is_watched_until_it_has_left_and_is_not_ready() {
    let postgres = Postgres::start();
    let redis = Redis::start_durable();
    let health = format!("http://127.0.0.1:{}", free_port());
    let mut deployment = Deployment::new(&postgres.url("stopping"), Some(&redis.url()));
    deployment.http = format!("health_listen = \"{}\"\n", &health["http://".len()..]);
    // As long as the test may take: it ends when it has drained.
    deployment.extra = "[allocator]\nstop_max = \"120s\"\n".into();
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let pool = sqlx::PgPool::connect(&postgres.url("stopping")).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    let lock = "lock table journal in exclusive mode";
    sqlx::query(lock).execute(&mut *holder).await.unwrap();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "waiting").await;
    assert_eq!(status, 201, "{body}");

    service.signal("TERM");
    let deadline = Instant::now() + ADOPTION_LIMIT;
    let ready = format!("{health}/readyz");
    let told = loop {
        let answer = testkit::get(&ready).await.unwrap();
        if answer.status() == 503 {
            break answer.json::<serde_json::Value>().await.unwrap();
        }
        assert!(Instant::now() < deadline, "still ready: {}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(told["code"] == "stopping", "{told}");
    assert!(told["detail"].as_str().unwrap().contains("1 records wait"), "{told}");
    while testkit::get(format!("{}/healthz", service.url)).await.is_ok() {
        assert!(Instant::now() < deadline, "still accepts: {}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(testkit::get(format!("{health}/healthz")).await.unwrap().status(), 200);
    let metrics = testkit::get(format!("{health}/metrics")).await.unwrap().text().await.unwrap();
    for shown in ["numerator_journal_lag_records 1\n", "numerator_ready 0\n"] {
        assert!(metrics.contains(shown), "{shown}: {metrics}");
    }
    holder.rollback().await.unwrap();
    assert!(service.has_ended_well(), "{}", service.log());
    assert!(testkit::get(&ready).await.is_err(), "somebody answers for it");
    assert_eq!(postgres.sql("select count(*) from stopping.journal"), "1");
}
