//! `fallback on|off`.

use numerator::ledger::{Owner, Wanted};
use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{end_without_a_gap, json, load_partition, ok};
use crate::deployment::Deployment;
use crate::load::open;

#[tokio::test]
async fn fallback_under_load_on_two_services_fails_no_request_and_leaves_no_gap() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("fallback"), Some(&redis.url()));
    deployment.extra = "return_after = \"1s\"\n".into();
    deployment.apply_load_series();
    let (one, other) = (deployment.serve(), deployment.serve());
    let ledger = open(&deployment).await;
    let loads =
        [Running::start_as(&one.url, 8, "first"), Running::start_as(&other.url, 8, "second")];
    let go_on = async || {
        for load in &loads {
            load.reach(load.asked() + 300).await;
        }
    };
    go_on().await;
    assert!(matches!(load_partition(&ledger).await.owner, Owner::Redis { .. }));

    for changed in [8, 0] {
        let on = ok(&deployment, &["fallback", "on"]);
        assert_eq!(on["changed"].as_array().unwrap().len(), changed, "{on}");
        let is_there = |row: &serde_json::Value| row["owner"] == "database";
        assert!(on["partitions"].as_array().unwrap().iter().all(is_there), "{on}");
        assert_eq!(on["service_runs"], true, "{on}");
    }
    let events = ok(&deployment, &["events", "--limit", "1000"]);
    let is_wish = |row: &&serde_json::Value| row["event"] == "fallback-wanted";
    let wanted = events.as_array().unwrap().iter().filter(is_wish).count();
    assert_eq!(wanted, 8, "one event per partition, none for the repeat");
    go_on().await;
    assert_eq!(load_partition(&ledger).await.owner, Owner::Database);

    let off = ok(&deployment, &["fallback", "off"]);
    assert!(off["note"].as_str().unwrap().contains("1s"), "{off}");
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while load_partition(&ledger).await.owner == Owner::Database {
        assert!(tokio::time::Instant::now() < deadline, "redis does not return: {}", one.log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    go_on().await;
    end_without_a_gap(&deployment, loads, [one, other]).await;
}

#[tokio::test]
async fn fallback_without_a_service_takes_effect_with_the_next_one() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    let ledger = open(&deployment).await;
    let before = ledger.partitions().await.unwrap();
    let dry = ok(&deployment, &["fallback", "on", "--dry-run"]);
    assert_eq!(dry["changed"].as_array().unwrap().len(), 8, "{dry}");
    assert_eq!(ledger.partitions().await.unwrap(), before, "nothing is written");
    let events = async || {
        let mut events = ledger.events().list(10).await.unwrap();
        events.retain(|event| event.kind != "series-changed");
        events
    };
    assert_eq!(events().await, []);

    let partition = load_partition(&ledger).await.partition;
    let number = partition.to_string();
    let arguments = ["fallback", "on", "--partition", &number, "--user", "auditor"];
    let on = ok(&deployment, &arguments);
    assert_eq!(on["changed"], serde_json::json!([partition]), "{on}");
    assert_eq!(on["service_runs"], false, "{on}");
    let events = events().await;
    assert_eq!((events.len(), &*events[0].kind), (1, "fallback-wanted"));
    assert_eq!(events[0].detail["user"], "auditor");
    let wanted = ledger.partitions().await.unwrap();
    let wanted: Vec<u32> = wanted
        .iter()
        .filter(|row| row.wanted == Wanted::Database)
        .map(|row| row.partition)
        .collect();
    assert_eq!(wanted, [partition]);

    let out = deployment.ok(&["next", "LOAD", "--json"]);
    assert!(out.contains("\"database\""), "{out}");
    ok(&deployment, &["fallback", "off"]);
    let (code, _) = json(&deployment, &["fallback", "off"]);
    assert_eq!(code, 0, "a repeat is harmless");
    let refused = deployment.run(&["fallback", "on", "--partition", "99"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("0 to 8"));
    let gapless = deployment.run(&["fallback", "on", "--partition", "8"]);
    assert!(String::from_utf8_lossy(&gapless.stderr).contains("gapless"));
}
