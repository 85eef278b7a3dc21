//! Two nodes that see less of the ledger, or of the time, than they believe: neither takes the
//! other for dead (F18), and a row that the ledger refuses stops neither (F13).
//!
//! Each node has a link of its own to PostgreSQL. What a node has seen is read from its heartbeat
//! counter, or from the server's own list of waiting sessions.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use testkit::load::{self, Running};
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

const SCHEMA: &str = "silences";
const CONNECTIONS: usize = 4;

/// The beat of the node that is furthest.
const HIGHEST: &str = "max(beat) from node where adopted_at_us is null";

/// How long a node may be silent, and how often it beats: a twelfth of that.
const TTL: Duration = Duration::from_secs(5);
const HEARTBEAT: Duration = Duration::from_millis(416);

/// How long something may take to show.
const LIMIT: Duration = Duration::from_secs(30);

/// Two nodes on one ledger and one Redis, both under load.
struct Pair {
    postgres: Postgres,
    nodes: [Deployment; 2],
    services: [Service; 2],
    links: [Proxy; 2],
    loads: [Running; 2],
    _redis: Redis,
}

impl Pair {
    async fn start() -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let links = [Proxy::start(postgres.port()), Proxy::start(postgres.port())];
        let nodes = [0, 1].map(|index: usize| {
            let url = postgres.url_by(links[index].port(), SCHEMA);
            let mut node = Deployment::new(&url, Some(&redis.url()));
            node.extra = format!("[node]\nttl = \"{}ms\"\n", TTL.as_millis());
            node
        });
        nodes[0].apply_load_series();
        let services = [nodes[0].serve(), nodes[1].serve()];
        let loads = [(0, "first"), (1, "second")].map(|(index, name): (usize, _)| {
            Running::start_as(&services[index].url, CONNECTIONS, name)
        });
        let pair = Pair { postgres, nodes, services, links, loads, _redis: redis };
        pair.advance().await;
        pair.beat(10).await;
        pair
    }

    /// Waits until both nodes answer their callers.
    async fn advance(&self) {
        for load in &self.loads {
            let asked = load.asked();
            load.reach(asked + 300).await;
        }
    }

    /// A figure of a table of the ledger.
    fn figure(&self, figure: &str) -> i64 {
        let sql = format!("set search_path = {SCHEMA}; select {figure}");
        self.postgres.sql(&sql).parse().unwrap()
    }

    /// Waits until a figure of the nodes is at least this high.
    async fn shows(&self, figure: &str, least: i64) {
        let started = Instant::now();
        while self.figure(figure) < least {
            assert!(started.elapsed() < LIMIT, "{figure} stays below {least}: {}", self.logs());
            tokio::time::sleep(HEARTBEAT / 5).await;
        }
    }

    /// Waits until each node has beaten this many times from now on.
    async fn beat(&self, times: i64) {
        self.shows("min(beat) from node where adopted_at_us is null", self.figure(HIGHEST) + times)
            .await;
    }

    fn logs(&self) -> String {
        self.services.iter().map(Service::log).collect()
    }

    /// Both nodes have their identities, are barred nowhere, and every number is journaled.
    async fn end_with(self, refused: i64) {
        self.advance().await;
        self.beat(10).await;
        let adopted = self.figure("count(*) from participant where state = 'adopted'");
        assert_eq!(adopted, 0, "partitions in which a living node was adopted: {}", self.logs());
        assert_eq!(self.figure("count(*) from node"), 2, "one took a new name: {}", self.logs());
        let Pair { nodes: _nodes, services, loads, postgres, links: _links, _redis } = self;
        let [first, second] = loads;
        let (mut seen, more) = (first.finish().await, second.finish().await);
        seen.numbers.extend(more.numbers);
        seen.assert_no_duplicate();
        for service in services {
            let ended = tokio::task::spawn_blocking(move || service.terminate()).await;
            assert!(ended.unwrap(), "the journal is drained");
        }
        let rejected = postgres.sql(&format!("select count(*) from {SCHEMA}.journal_rejected"));
        assert_eq!(rejected, refused.to_string());
        let mut journaled = HashSet::new();
        postgres.rows(&format!("select number from {SCHEMA}.journal"), |row| {
            journaled.insert(row[0].to_owned());
        });
        let is_missing = |number: &&String| !journaled.contains(*number);
        let missing: Vec<_> = seen.numbers.values().filter(is_missing).collect();
        assert_eq!(missing, [""; 0], "of {}", seen.numbers.len());
    }
}

/// Goal: a ledger that was unavailable to all makes no node dead. Method: the second node finds its
/// way back later than the first, which has not seen it beat for longer than its time-to-live.
#[tokio::test(flavor = "multi_thread")]
async fn faults_connections_to_the_ledger_hang_and_who_is_back_first_adopts_nobody() {
    let pair = Pair::start().await;
    let beat = pair.figure(HIGHEST);
    for link in &pair.links {
        link.swallow_all();
    }
    let away = Instant::now();
    while away.elapsed() < TTL * 3 / 2 {
        tokio::time::sleep(HEARTBEAT).await;
    }
    pair.links[0].forward();
    // It looks as often as it beats.
    pair.shows(HIGHEST, beat + 6).await;
    pair.links[1].forward();
    pair.end_with(0).await;
}

/// Goal: an observer that slept takes no node for dead that slept meanwhile. Method: both are
/// stopped for longer than a time-to-live; the first one looks for a while before the second wakes.
#[tokio::test(flavor = "multi_thread")]
async fn faults_an_observer_slept_and_who_slept_beside_it_is_alive() {
    let pair = Pair::start().await;
    for _ in 0..3 {
        let beat = pair.figure(HIGHEST);
        for service in &pair.services {
            service.signal("STOP");
        }
        let slept = Instant::now();
        while slept.elapsed() < TTL * 3 / 2 {
            tokio::time::sleep(HEARTBEAT).await;
        }
        pair.services[0].signal("CONT");
        pair.shows(HIGHEST, beat + 6).await;
        pair.services[1].signal("CONT");
        pair.beat(10).await;
    }
    pair.end_with(0).await;
}

/// Goal: a ledger that can be read and not written makes no node dead: every beat stops, the
/// observer's own as well. Method: a session that locks the rows of all nodes.
#[tokio::test(flavor = "multi_thread")]
async fn faults_no_heartbeat_can_be_written_and_nobody_is_adopted() {
    let pair = Pair::start().await;
    let mut holder = PgConnection::connect(&pair.postgres.url(SCHEMA)).await.unwrap();
    sqlx::raw_sql("begin; select 1 from node for update").execute(&mut holder).await.unwrap();
    let beat = pair.figure(HIGHEST);
    let held = Instant::now();
    while held.elapsed() < TTL * 2 {
        tokio::time::sleep(HEARTBEAT).await;
    }
    assert!(pair.figure(HIGHEST) <= beat + 1, "the beats stood still");
    sqlx::raw_sql("commit").execute(&mut holder).await.unwrap();
    pair.end_with(0).await;
}

/// Goal: rows that the ledger refuses are halved out of the batches of two nodes at once, and
/// exclude nothing else. Method: a constraint that some documents of both nodes break under load.
#[tokio::test(flavor = "multi_thread")]
async fn faults_the_ledger_refuses_rows_of_two_nodes_and_every_other_is_journaled() {
    let pair = Pair::start().await;
    let refuse = format!(
        "alter table {SCHEMA}.journal add constraint refuses \
         check (document_id not like 'bad-%') not valid"
    );
    pair.postgres.sql(&refuse);
    let client = testkit::client();
    for round in 0..4 {
        let asked = [0, 1].map(|index: usize| {
            let (client, url) = (client.clone(), pair.services[index].url.clone());
            async move { load::take(&client, &url, &format!("bad-{index}-{round}")).await }
        });
        for (status, body) in futures_of(asked).await {
            assert_eq!(status, 201, "{body}");
        }
        pair.advance().await;
    }
    pair.shows("count(*) from journal_rejected", 8).await;
    pair.end_with(8).await;
}

/// Both at once.
async fn futures_of<T>([one, other]: [impl Future<Output = T>; 2]) -> [T; 2] {
    let (one, other) = tokio::join!(one, other);
    [one, other]
}
