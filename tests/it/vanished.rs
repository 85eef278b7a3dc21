//! A ledger whose connections die without a word: no answer, no reset, nothing.

use std::time::{Duration, Instant};

use crate::deployment::Deployment;
use crate::load::open;
use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;

const CONNECTIONS: usize = 16;

/// Long enough for a busy machine, short enough for a test.
const SETTINGS: &str = "[journal]\nqueue_max = 100000\n[ceiling]\nstep_min = 100000\n";

/// The deployment's ledger behind a proxy. The sections of the database come first.
fn behind(proxy: &Proxy, url: &str, direct_port: u16, redis: Option<&str>) -> Deployment {
    let url = url.replace(&format!(":{direct_port}/"), &format!(":{}/", proxy.port()));
    let mut deployment = Deployment::new(&url, redis);
    deployment.database = "lock_timeout = \"200ms\"\n".into();
    deployment.extra = SETTINGS.into();
    deployment
}

#[tokio::test]
async fn vanished_connections_of_the_ledger_are_replaced_and_the_journal_goes_on() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let proxy = Proxy::start(postgres.port());
    let url = postgres.url("vanished");
    let deployment = behind(&proxy, &url, postgres.port(), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(500).await;
    for round in 0..2 {
        let asked = load.asked();
        proxy.forget_present();
        load.reach(asked + 200).await;
        // Whatever was handed out up to here gets into the journal automatically.
        let handed = load.asked();
        let started = Instant::now();
        let journaled = || postgres.sql("select count(*) from vanished.journal");
        while journaled().parse::<u64>().unwrap() < handed - CONNECTIONS as u64 {
            let log = service.log();
            assert!(started.elapsed() < Duration::from_secs(20), "the journal stands still: {log}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        println!("round {round}: the journal goes on after {:?}", started.elapsed());
    }
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "{:?}", seen.failures);
    seen.assert_contiguous(seen.numbers.len());
    assert!(service.terminate());
    assert_eq!(
        open(&deployment).await.register().totals().await.unwrap().journal,
        seen.numbers.len() as u64
    );
    deployment.assert_clean();
}

#[tokio::test]
async fn vanished_connections_leave_no_duplicate_on_the_database_path() {
    let postgres = Postgres::start();
    let proxy = Proxy::start(postgres.port());
    let url = postgres.url("vanished");
    let deployment = behind(&proxy, &url, postgres.port(), None);
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(300).await;
    for _ in 0..2 {
        proxy.forget_present();
        let asked = load.asked();
        let goes_on = tokio::time::timeout(Duration::from_secs(40), load.reach(asked + 300)).await;
        assert!(goes_on.is_ok(), "issuing does not go on: {}", service.log());
    }
    let seen = load.finish().await;
    println!("failures {:?}, longest stall {:?}", seen.failures, seen.longest_stall);
    seen.assert_no_duplicate();
    assert!(service.terminate());
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["gaps"], 0, "{report}");
}

#[tokio::test]
async fn readiness_follows_a_ledger_that_takes_the_numbers_without_a_request() {
    let mut postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("ready"), None);
    let service = deployment.serve();
    let client = testkit::client();
    let becomes = async |wanted: u16| {
        let started = Instant::now();
        let url = format!("{}/readyz", service.url);
        while client.get(&url).send().await.unwrap().status() != wanted {
            assert!(started.elapsed() < Duration::from_secs(30), "not {wanted}: {}", service.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    becomes(200).await;
    postgres.kill();
    becomes(503).await;
    postgres.restart();
    becomes(200).await;
}
