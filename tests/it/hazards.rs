//! A Redis that is set up dangerously is told, with the cure, in every shape; nothing waits for it.

use std::time::{Duration, Instant};

use harness::cluster::Cluster;
use harness::redis::Redis as Server;
use harness::sentinel::Sentinels;
use numerator::counter::{Checkup, Redis, RedisSettings};

use crate::deployment::Deployment;
use crate::load::open;

/// Longest wait for an answer or a line; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Checks up until all of so many masters answer.
async fn checkups(url: String, masters: usize) -> Vec<Checkup> {
    let reconnect_max = Duration::from_millis(50);
    let settings = RedisSettings { url, command_timeout: Duration::from_secs(2), reconnect_max };
    let redis = Redis::start(&settings).unwrap();
    let deadline = Instant::now() + LIMIT;
    loop {
        let checkups = redis.check_up().await;
        if checkups.len() == masters && checkups.iter().all(|checkup| checkup.was_answered) {
            redis.stop().await;
            return checkups;
        }
        assert!(Instant::now() < deadline, "{checkups:?}");
    }
}

fn names(checkup: &Checkup) -> Vec<&'static str> {
    checkup.hazards.iter().map(numerator::counter::Hazard::name).collect()
}

#[tokio::test]
async fn a_server_that_may_lose_data_shows_each_hazard_until_its_cure_is_applied() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let [checkup] = &checkups(server.url(), 1).await[..] else { panic!("one master") };
    assert_eq!(names(checkup), ["eviction", "no-append-only-file"]);
    assert!(checkup.hazards[1].to_string().contains("loses everything"), "{checkup:?}");
    assert_eq!(server.cli(&["config", "set", "save", "3600 1"]), "OK");
    assert_eq!(server.cli(&["config", "set", "maxmemory-policy", "noeviction"]), "OK");
    let [checkup] = &checkups(server.url(), 1).await[..] else { panic!("one master") };
    assert!(checkup.hazards[0].to_string().contains("newer than its last snapshot"), "{checkup:?}");
    assert_eq!(server.cli(&["config", "set", "appendonly", "yes"]), "OK");
    assert_eq!(server.cli(&["config", "set", "appendfsync", "no"]), "OK");
    assert_eq!(names(&checkups(server.url(), 1).await[0]), ["lazy-append-only-file"]);
    assert_eq!(server.cli(&["config", "set", "appendfsync", "everysec"]), "OK");
    let [checkup] = &checkups(server.url(), 1).await[..] else { panic!("one master") };
    assert_eq!((names(checkup), &checkup.unchecked[..]), (vec![], &[][..]));
}

#[tokio::test]
async fn what_a_managed_server_refuses_to_tell_could_not_be_checked() {
    let server = Server::start_durable();
    assert_eq!(server.cli(&["acl", "setuser", "default", "-config"]), "OK");
    let [checkup] = &checkups(server.url(), 1).await[..] else { panic!("one master") };
    assert_eq!(names(checkup), [""; 0]);
    assert!(checkup.unchecked[0].starts_with("appendfsync: NOPERM"), "{checkup:?}");
}

#[tokio::test]
async fn the_master_behind_sentinels_is_checked_and_wants_its_replicas_to_count() {
    let master = Server::start_durable();
    let replica = master.start_replica(&[]);
    let sentinels = Sentinels::start(&master, 1);
    let [checkup] = &checkups(sentinels.url(), 1).await[..] else { panic!("one master") };
    assert_eq!(checkup.server, format!("127.0.0.1:{}", master.port()));
    assert_eq!(names(checkup), ["no-min-replicas"]);
    assert_eq!(master.cli(&["config", "set", "min-replicas-to-write", "1"]), "OK");
    assert_eq!(names(&checkups(sentinels.url(), 1).await[0]), [""; 0]);
    drop(replica);
}

#[tokio::test]
async fn every_master_of_a_cluster_is_checked() {
    let cluster = Cluster::start(&["--appendonly", "yes"]);
    let odd = &cluster.masters[1];
    assert_eq!(odd.cli(&["config", "set", "maxmemory-policy", "volatile-ttl"]), "OK");
    let checkups = checkups(cluster.url(), 3).await;
    let dangerous: Vec<_> = checkups.iter().filter(|c| !c.hazards.is_empty()).collect();
    let [checkup] = &dangerous[..] else { panic!("{checkups:?}") };
    assert_eq!(checkup.server, format!("127.0.0.1:{}", odd.port()));
    assert_eq!(names(checkup), ["eviction"]);
}

#[tokio::test]
async fn a_service_serves_on_a_dangerous_redis_and_tells_log_ledger_and_status() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let deployment = Deployment::sqlite(Some(&server.url()));
    let service = deployment.serve();
    let ledger = open(&deployment).await;
    let deadline = Instant::now() + LIMIT;
    let events = loop {
        let mut events = ledger.events(100).await.unwrap();
        events.retain(|event| event.kind == "redis-hazard");
        if events.len() == 2 {
            break events;
        }
        assert!(Instant::now() < deadline, "{}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let told = events.iter().map(|event| event.detail["hazard"].as_str().unwrap());
    assert_eq!(told.collect::<Vec<_>>(), ["no-append-only-file", "eviction"], "newest first");
    assert!(service.log().contains("CONFIG SET maxmemory-policy noeviction"), "{}", service.log());
    let status = deployment.ok(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let shown = &status["redis_servers"][0];
    assert_eq!(shown["server"], format!("127.0.0.1:{}", server.port()), "{status}");
    assert_eq!(shown["hazards"][0]["hazard"], "eviction", "{status}");
    let text = deployment.ok(&["status"]);
    assert!(text.contains("cure: CONFIG SET appendonly yes"), "{text}");
    assert!(service.terminate());
}
