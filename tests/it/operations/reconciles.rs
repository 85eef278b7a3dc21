//! `reconcile`.

use numerator::ledger::{At, Closing, PartitionState};
use numerator::node::NodeId;
use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{end_without_a_gap, json, load_partition, ok};
use crate::deployment::Deployment;
use crate::load::open;

#[tokio::test]
async fn reconcile_carries_on_a_recovery_whose_leader_died() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    let ledger = open(&deployment).await;
    let row = load_partition(&ledger).await;
    let at = At { partition: row.partition, epoch: row.epoch };
    let leader = NodeId::random();
    let bumped = ledger.bump(at, PartitionState::Open, leader, "a leader that dies").await.unwrap();
    let standing = load_partition(&ledger).await;
    // Redis never owns that of the gapless series.
    let last = ledger.partitions().await.unwrap().pop().unwrap();
    let at = At { partition: last.partition, epoch: last.epoch };
    ledger.bump(at, last.state, leader, "a leader that dies").await.unwrap().unwrap();

    let dry = ok(&deployment, &["reconcile"]);
    assert_eq!(dry["recoveries"][0]["cause"], "a leader that dies", "{dry}");
    assert_eq!(dry["recoveries"][0]["state"], "recovering", "{dry}");
    assert_eq!(load_partition(&ledger).await, standing, "it only looks");
    let elsewhere = ((row.partition + 1) % 8).to_string();
    let other = ok(&deployment, &["reconcile", "--apply", "--partition", &elsewhere]);
    assert_eq!(other["recoveries"], serde_json::json!([]), "{other}");
    assert_eq!(load_partition(&ledger).await, standing, "another partition was asked for");

    let applied = ok(&deployment, &["reconcile", "--apply"]);
    assert_eq!(applied["recoveries"].as_array().unwrap().len(), 2, "{applied}");
    let row = load_partition(&ledger).await;
    assert_eq!((Some(row.epoch), row.state), (bumped, PartitionState::Open));
    assert_eq!(row.last_closing, Some(Closing::Exact));
    let again = ok(&deployment, &["reconcile", "--apply"]);
    assert_eq!((&again["recoveries"], &again["unsettled"]), (&serde_json::json!([]), &0.into()));
    assert_eq!(load_partition(&ledger).await, row, "nothing is left to do");
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000002\n");
}

#[tokio::test]
async fn a_new_epoch_under_load_closes_exact_without_a_failed_request() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("renewed"), Some(&redis.url()));
    deployment.apply_load_series();
    let (one, other) = (deployment.serve(), deployment.serve());
    let ledger = open(&deployment).await;
    let loads =
        [Running::start_as(&one.url, 8, "first"), Running::start_as(&other.url, 8, "second")];
    for load in &loads {
        load.reach(200).await;
    }
    let before = load_partition(&ledger).await;
    let partition = before.partition.to_string();
    let renewed =
        ok(&deployment, &["reconcile", "--new-epoch", "--partition", &partition, "--apply"]);
    assert_eq!(renewed["recoveries"][0]["closing"], "exact", "{renewed}");
    let row = load_partition(&ledger).await;
    assert!(row.epoch > before.epoch && row.last_ceiling_epoch == 0, "{row:?}");
    assert_eq!(row.owner, before.owner, "the same data set");
    for load in &loads {
        load.reach(load.asked() + 200).await;
    }
    end_without_a_gap(&deployment, loads, [one, other]).await;
}

#[tokio::test]
async fn a_new_epoch_on_a_redis_that_the_nodes_do_not_see_is_refused() {
    let (postgres, redis, stray) = (Postgres::start(), Redis::start(), Redis::start());
    let url = postgres.url("stray");
    let deployment = Deployment::new(&url, Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let ledger = open(&deployment).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    while ledger.nodes().list().await.unwrap()[0]
        .sight
        .as_ref()
        .is_none_or(numerator::ledger::HealthReport::is_empty)
    {
        assert!(tokio::time::Instant::now() < deadline, "no sight: {}", service.log());
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let before = load_partition(&ledger).await;
    let partition = before.partition.to_string();
    let astray = Deployment::new(&url, Some(&stray.url()));
    let arguments = ["reconcile", "--new-epoch", "--partition", &partition, "--apply"];
    let (code, refused) = json(&astray, &arguments);
    assert_eq!(code, 1, "{refused}");
    assert!(refused["problems"][0].as_str().unwrap().contains("another redis"), "{refused}");
    assert_eq!(load_partition(&ledger).await, before);
    let blind = Deployment::new(&url, None);
    let (code, refused) = json(&blind, &arguments);
    assert_eq!(code, 1, "{refused}");
    assert!(refused["problems"][0].as_str().unwrap().contains("set redis.url"), "{refused}");
    assert_eq!(load_partition(&ledger).await, before);
}
