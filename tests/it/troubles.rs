//! A long-held lock is one trouble, reported once: by one event as it begins and one as it is over,
//! and by one warning of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(40);

/// Series in partitions of their own, and a gapless one.
const SERIES: [&str; 4] = ["ONE", "TWO", "THREE", "GAPLESS"];

/// Warnings of a log but for those of slow requests, which are not of the lock.
fn warnings(service: &Service) -> Vec<String> {
    let log = service.log();
    let is_wanted = |line: &&str| line.contains(" WARN ") && !line.contains("slow request");
    log.lines().filter(is_wanted).map(str::to_owned).collect()
}

/// How many transactions did not get their locks in time.
async fn timeouts(service: &Service) -> f64 {
    let page =
        testkit::get(format!("{}/metrics", service.url)).await.unwrap().text().await.unwrap();
    let name = "numerator_lock_acquisitions_total{outcome=\"timeout\"} ";
    let line = page.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// The events of locks, the newest first: their details.
fn told(deployment: &Deployment) -> Vec<Value> {
    let events = deployment.ok(&["events", "--kind", "lock-timeout", "--json", "--limit", "1000"]);
    let events: Vec<Value> = serde_json::from_str(&events).unwrap();
    events.into_iter().map(|mut event| event["detail"].take()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_one_event_and_one_warning_however_many_wait_and_another_as_it_is_over() {
    let postgres = Postgres::start();
    let url = postgres.url("troubles");
    let mut deployment = Deployment::new(&url, None);
    deployment.database = "lock_timeout = \"1200ms\"\n".into();
    deployment.extra = "[retry]\ndelay = \"50ms\"\n".into();
    let files = SERIES.map(|code| {
        let policy = if code == "GAPLESS" { "policy = \"gapless\"" } else { "" };
        deployment.series_file(code, &format!("{code}-{{SEQ:6}}"), policy)
    });
    deployment.apply(&files);
    let service = deployment.serve();
    let client = testkit::client();
    let ask = async |client: &reqwest::Client, code: &str, number: u32| {
        let url = format!("{}/api/v1/documents/{code}-{number}/generate-number", service.url);
        post(client, &url, &json!({ "type": code })).await
    };
    for code in SERIES {
        assert_eq!(ask(&client, code, 0).await.0, 201);
    }
    let before = warnings(&service);
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("select 1 from counter for update").execute(&mut *holder).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let callers = SERIES.map(|code| {
        let (client, is_over) = (client.clone(), Arc::clone(&is_over));
        let url = format!("{}/api/v1/documents/{code}", service.url);
        tokio::spawn(async move {
            for number in 1.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let url = format!("{url}-{number}/generate-number");
                post(&client, &url, &json!({ "type": code })).await;
            }
        })
    });
    eventually(LIMIT, async || {
        let timeouts = timeouts(&service).await;
        if timeouts >= 16.0 { Ok(()) } else { Err(format!("{timeouts} only")) }
    })
    .await;
    let events = told(&deployment);
    assert_eq!(events.len(), 1, "events of one lock that is still held: {events:#?}");
    assert_eq!(events[0]["state"], "begun");
    let new: Vec<String> = warnings(&service).into_iter().skip(before.len()).collect();
    assert_eq!(new.len(), 1, "warnings of one lock: {new:#?}");
    assert!(new[0].contains("lock-timeout") && new[0].contains("counter"), "{new:?}");

    is_over.store(true, Ordering::Relaxed);
    holder.rollback().await.unwrap();
    for caller in callers {
        caller.await.unwrap();
    }
    eventually(LIMIT, async || {
        let events = told(&deployment);
        if events.len() == 2 { Ok(()) } else { Err(format!("{events:#?}")) }
    })
    .await;
    let over = &told(&deployment)[0];
    assert_eq!(over["state"], "over");
    assert!(over["untold"].as_u64() >= Some(10), "{over}");
    assert!(over["lasted_ms"].as_u64() >= Some(1_200), "{over}");
    assert!(over["partitions"].as_array().map(Vec::len) >= Some(2), "{over}");
    assert!(service.terminate());
}
