//! A server that is reconfigured, while its services run, to confirm what is not on disk: they do
//! not rely on it (F41).

use std::time::Duration;

use testkit::eventually::eventually;
use testkit::load::{self, take};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;
use crate::load::open;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Numbers of each series, answered while the server may be lazy.
const NUMBERS: usize = 20;

/// Makes the server apply a setting; new sessions show it.
async fn set(postgres: &Postgres, setting: &str, value: &str) {
    postgres.sql(&format!("alter system set {setting} = '{value}'"));
    postgres.sql("select pg_reload_conf()");
    eventually(LIMIT, async || {
        let shown = postgres.sql(&format!("show {setting}"));
        if shown == value { Ok(()) } else { Err(shown) }
    })
    .await;
}

/// By the connections that all calls share (`GAP`), and by the journal's (`SURE`).
#[tokio::test]
async fn numbers_answered_while_the_server_commits_lazily_survive_its_crash() {
    let (mut postgres, mut redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.empty_url("lazy"), Some(&redis.url()));
    let gapless = deployment.series_file("GAP", "G-{SEQ:4}", "policy = \"gapless\"");
    let settings = "policy = \"durable\"\nonce_per_document = false";
    let durable = deployment.series_file("SURE", "S-{SEQ:4}", settings);
    deployment.apply(&[gapless, durable]);
    let mut service = deployment.serve();
    let client = testkit::client();
    let mut answered = Vec::new();
    for round in 0..=NUMBERS {
        for series in ["GAP", "SURE"] {
            let url = format!("{}/api/v1/documents/{series}-{round}/generate-number", service.url);
            let body = serde_json::json!({ "type": series });
            let (status, body) = load::post(&client, &url, &body).await;
            assert_eq!(status, 201, "{body}");
            answered.push(body["document_number"].as_str().unwrap().to_owned());
        }
        if round == 0 {
            // A wait that a session skips would last this long.
            set(&postgres, "wal_writer_delay", "10s").await;
            set(&postgres, "synchronous_commit", "off").await;
        }
    }
    postgres.kill();
    service.kill();
    redis.kill();
    postgres.restart();
    let journal = postgres.sql("select string_agg(number, ' ' order by number) from lazy.journal");
    let lost: Vec<_> = answered.iter().filter(|number| !journal.contains(*number)).collect();
    assert_eq!(lost, Vec::<&String>::new(), "answered, and not in the journal");
}

#[tokio::test]
async fn a_lazy_server_database_or_user_is_outranked_and_who_asks_for_it_in_the_url_is_refused() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.empty_url("ranks"), None);
    let hazards = async || open(&deployment).await.check_up().await.unwrap().config_warnings;
    for whose in ["system", "database postgres", "role postgres"] {
        postgres.sql(&format!("alter {whose} set synchronous_commit = 'off'"));
        postgres.sql("select pg_reload_conf()");
        assert_eq!(hazards().await, [], "{whose}");
    }
    // A weaker wait for standbys is the operator's decision, and reported as a hazard.
    postgres.sql("alter role postgres set synchronous_commit = 'local'");
    assert_eq!(hazards().await.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_made_less_safe_under_its_services_is_told_in_metrics_and_log() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.empty_url("unsafe"), None);
    deployment.extra = "[metrics]\nperiod = \"1s\"\n".into();
    deployment.apply_load_series();
    let service = deployment.serve();
    set(&postgres, "full_page_writes", "off").await;
    let gauge = "numerator_ledger_hazard{hazard=\"no-full-page-writes\"} 1";
    eventually(LIMIT, async || {
        let page = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
        let (page, log) = (page.text().await.unwrap(), service.log());
        let is_told = page.contains(gauge) && log.contains("hazard of the ledger");
        is_told.then_some(()).ok_or(log)
    })
    .await;
    let (status, body) = take(&testkit::client(), &service.url, "goes on").await;
    assert_eq!(status, 201, "{body}");
}
