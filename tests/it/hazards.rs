//! A dangerous configuration of Redis is reported, with the remedy, in every shape, without delay.

use std::time::{Duration, Instant};

use numerator::redis::{Checkup, Redis, RedisSettings};
use testkit::cluster::Cluster;
use testkit::postgres::{Postgres, STANDBY};
use testkit::redis::Redis as Server;
use testkit::sentinel::Sentinels;

use crate::deployment::Deployment;
use crate::load::open;

/// Longest wait for an answer or a line; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Checks until all of `masters` masters answer.
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
    checkup.config_warnings.iter().map(numerator::redis::ConfigWarning::name).collect()
}

#[tokio::test]
async fn a_server_that_may_lose_data_shows_each_hazard_until_its_cure_is_applied() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let [checkup] = &checkups(server.url(), 1).await[..] else { panic!("one master") };
    assert_eq!(names(checkup), ["eviction", "no-append-only-file"]);
    assert!(checkup.config_warnings[1].to_string().contains("loses everything"), "{checkup:?}");
    assert_eq!(server.cli(&["config", "set", "save", "3600 1"]), "OK");
    assert_eq!(server.cli(&["config", "set", "maxmemory-policy", "noeviction"]), "OK");
    let [checkup] = &checkups(server.url(), 1).await[..] else { panic!("one master") };
    assert!(
        checkup.config_warnings[0].to_string().contains("newer than its last snapshot"),
        "{checkup:?}"
    );
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
    let dangerous: Vec<_> = checkups.iter().filter(|c| !c.config_warnings.is_empty()).collect();
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
        let mut events = ledger.events().list(100).await.unwrap();
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
    let (_, status) = deployment.status(&["--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let shown = &status["redis_servers"][0];
    assert_eq!(shown["server"], format!("127.0.0.1:{}", server.port()), "{status}");
    assert_eq!(shown["hazards"][0]["hazard"], "eviction", "{status}");
    let (_, text) = deployment.status(&[]);
    assert!(text.contains("cure: CONFIG SET appendonly yes"), "{text}");
    assert!(service.terminate());
}

/// The value of a gauge of hazards.
async fn hazard(url: &str, name: &str) -> Option<String> {
    let text = testkit::get(format!("{url}/metrics")).await.unwrap().text().await.unwrap();
    let series = format!("numerator_ledger_hazard{{hazard=\"{name}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)).map(str::to_owned)
}

#[tokio::test]
async fn a_ledger_whose_standby_commits_do_not_wait_for_is_told_until_it_is_synchronous() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("hazards"), None);
    deployment.extra = "[metrics]\nperiod = \"1s\"\n".into();
    let ledger = open(&deployment).await;
    let names = async || {
        let checkup = ledger.check_up().await.unwrap();
        assert_eq!(checkup.unchecked, [""; 0]);
        checkup
            .config_warnings
            .iter()
            .map(numerator::ledger::LedgerConfigWarning::name)
            .collect::<Vec<_>>()
    };
    assert_eq!(names().await, [""; 0], "without a standby none is asked for");
    let _standby = postgres.start_standby();
    assert_eq!(names().await, ["asynchronous-standby"]);
    let (_, text) = deployment.status(&[]);
    assert!(text.contains("1 standbys for which no commit waits"), "{text}");
    assert!(text.contains("synchronous_standby_names"), "{text}");
    let service = deployment.serve();
    let shown = async |value: &str| {
        let deadline = Instant::now() + LIMIT;
        while hazard(&service.url, "asynchronous-standby").await.as_deref() != Some(value) {
            assert!(Instant::now() < deadline, "the metric does not get to {value}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    shown("1").await;

    postgres.sql(&format!("alter system set synchronous_standby_names = '{STANDBY}'"));
    postgres.sql("select pg_reload_conf()");
    shown("0").await;
    assert_eq!(names().await, [""; 0]);
    // A user's setting cancels the effect of such a wait.
    postgres.sql("alter role postgres set synchronous_commit = 'local'");
    let again = open(&deployment).await.check_up().await.unwrap();
    let told: Vec<String> = again.config_warnings.iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].contains("synchronous_commit is local"), "{told:?}");
    assert!(service.terminate());
}

#[tokio::test]
async fn a_user_that_may_not_see_the_standbys_is_told_what_it_lacks() {
    let postgres = Postgres::start();
    let url = postgres.empty_url("unseen").replace("postgres@", "clerk@");
    postgres.sql("create role clerk login; grant all on schema unseen to clerk");
    let _standby = postgres.start_standby();
    let ledger = open(&Deployment::new(&url, None)).await;
    let checkup = ledger.check_up().await.unwrap();
    assert_eq!(checkup.config_warnings, []);
    assert!(checkup.unchecked[0].contains("grant pg_monitor"), "{checkup:?}");
    postgres.sql("grant pg_monitor to clerk");
    assert_eq!(ledger.check_up().await.unwrap().config_warnings.len(), 1);
}
