//! `drain`.

use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{json, ok};
use crate::deployment::Deployment;
use crate::load::open;

/// Goal: what a dead node left is journaled without a service. Method: the ledger stops first, so
/// that what is issued then is only in the outbox when the node is killed.
#[tokio::test]
async fn drain_journals_what_a_killed_node_left() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("drain"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 5000\n[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let load = Running::start(&service.url, 16);
    load.reach(300).await;
    postgres.kill();
    let asked = load.asked();
    load.reach(asked + 300).await;
    service.kill();
    let seen = load.finish().await;
    postgres.restart();

    let ledger = open(&deployment).await;
    let nodes_before = ledger.nodes().list().await.unwrap();
    let (code, dry) = json(&deployment, &["drain"]);
    assert_eq!((code, &dry["drained"]), (1, &false.into()), "{dry}");
    let unjournaled = dry["outboxes"][0]["unjournaled"].as_u64().unwrap();
    assert!(unjournaled >= 200, "{dry}");
    assert_eq!(ledger.nodes().list().await.unwrap(), nodes_before, "nothing was written");
    let (clean, report) = {
        let (code, report) = json(&deployment, &["verify", "--patience", "300ms"]);
        (code == 0, report)
    };
    assert!(!clean && report["redis"]["unjournaled"][0]["unjournaled"] == unjournaled, "{report}");

    let applied = ok(&deployment, &["drain", "--apply"]);
    assert_eq!(applied["drained"], true, "{applied}");
    assert_eq!(applied["adoption"]["nodes"].as_array().unwrap().len(), 1, "{applied}");
    assert!(applied["adoption"]["written"].as_u64().unwrap() >= unjournaled, "{applied}");
    for arguments in [&["drain", "--apply"][..], &["drain"]] {
        let again = ok(&deployment, arguments);
        assert_eq!(again["outboxes"], serde_json::json!([]), "{again}");
        assert_eq!(again["adoption"]["written"], 0, "{again}");
    }
    seen.assert_no_duplicate();
    let report = deployment.assert_clean();
    assert!(report["totals"]["journal"].as_u64().unwrap() >= seen.numbers.len() as u64, "{report}");
    assert_eq!(report["redis"]["unjournaled"], serde_json::json!([]), "{report}");
}

/// What dead nodes had handed out is gone with the data of Redis: no outbox has it, and neither
/// does the journal.
#[tokio::test]
async fn drain_fails_while_a_silent_node_is_not_adopted() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("unadopted"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 5000\n[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let (mut one, mut other) = (deployment.serve(), deployment.serve());
    let load = Running::start(&one.url, 4);
    load.reach(100).await;
    postgres.kill();
    load.reach(load.asked() + 50).await;
    one.kill();
    other.kill();
    let seen = load.finish().await;
    postgres.restart();
    redis.flushall();

    let output = deployment.run(&["drain", "--apply", "--patience", "4s"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("not adopted") && stdout.contains("NOT DRAINED"), "{stdout}");
    assert!(stderr.contains("silent nodes are not adopted") && stderr.contains("start a node"));
    let node = deployment.serve();
    let drained = ok(&deployment, &["drain", "--apply", "--patience", "30s"]);
    assert_eq!((&drained["drained"], &drained["adoption"]["rest"]), (&true.into(), &0.into()));
    seen.assert_no_duplicate();
    assert!(node.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn drain_beside_a_service_waits_for_its_journal() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("waits"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, 16);
    load.reach(500).await;
    // The services stop taking numbers in Redis; then what is left there is journaled.
    ok(&deployment, &["fallback", "on"]);
    for _ in 0..2 {
        let drained = ok(&deployment, &["drain", "--apply"]);
        assert_eq!(drained["owned_by_redis"], serde_json::json!([]), "{drained}");
        let nodes = &drained["adoption"]["nodes"];
        assert_eq!(*nodes, serde_json::json!([]), "a node that beats is left alone: {drained}");
    }
    let asked = load.asked();
    load.reach(asked + 200).await;
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "{:?}", seen.failures);
    seen.assert_contiguous(seen.numbers.len());
    assert!(service.terminate());
}

#[tokio::test]
async fn drain_without_the_redis_that_owns_partitions_is_refused() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    let blind = Deployment::new(deployment.database_url(), None);
    let output = blind.run(&["drain"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("set redis.url"));
    let drained = ok(&deployment, &["drain"]);
    assert_eq!(drained["drained"], true, "{drained}");
}
