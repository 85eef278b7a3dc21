//! The stage of the tests of faults and of the shapes of Redis: a ledger, two nodes of the service
//! on one Redis, a load; and what must hold when it is over.

mod spread;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::{Program, Service};

use crate::deployment::{Deployment, program, program_with};
use spread::{CODES, Spread, series_file};

/// Numbers of each series before the first fault, and after each.
const SOME: u64 = 40;

/// The schema of the ledger.
const SCHEMA: &str = "ledger";

/// Partitions that Redis may own.
const PARTITIONS: u32 = 8;

/// Beats after which every other node has seen that a node moves.
const BEATS_SEEN: u64 = 4;

/// Longest wait for what a test waits for.
const LIMIT: Duration = Duration::from_secs(30);

/// A ledger, two nodes, and a load on both.
pub(crate) struct Stage {
    postgres: Postgres,
    deployment: Deployment,
    /// The first node's own, if it has one: it lasts as long as the node.
    _apart: Option<Deployment>,
    nodes: Vec<Service>,
    load: Spread,
    dead: Vec<Service>,
}

/// One node's links to the stores.
pub(crate) struct Links {
    pub(crate) redis: Proxy,
    pub(crate) ledger: Proxy,
}

/// Settings of nodes that go back to Redis soon, however often they had to leave it.
fn deployment(program: Program, database_url: &str, redis_url: &str, recovery: &str) -> Deployment {
    let mut deployment = Deployment::of(program, database_url, Some(redis_url));
    // Continues the section of the URL.
    deployment.extra =
        format!("return_after = \"1s\"\n[recovery]\nper_minute_max = 100\n{recovery}");
    deployment
}

impl Stage {
    /// Starts everything on a Redis and waits until every series is served.
    pub(crate) async fn start(redis_url: &str) -> Self {
        Self::set(redis_url, "", |_| None).await
    }

    /// The same; the first node reaches Redis and the ledger over links of its own.
    pub(crate) async fn start_linked(redis: &Redis) -> (Self, Links) {
        Self::start_linked_with(redis, "").await
    }

    /// The same; with more settings in the section `recovery`.
    pub(crate) async fn start_linked_with(redis: &Redis, recovery: &str) -> (Self, Links) {
        let (mut links, url) = (None, redis.url());
        let stage = Self::set(&url, recovery, |postgres| {
            let link =
                Links { redis: Proxy::start(redis.port()), ledger: Proxy::start(postgres.port()) };
            let url = postgres.url_by(link.ledger.port(), SCHEMA);
            let first = deployment(program(), &url, &link.redis.redis_url(), recovery);
            links = Some(link);
            Some(first)
        });
        let stage = stage.await;
        (stage, links.expect("set above"))
    }

    /// The same; the first node's program is started with further environment variables.
    pub(crate) async fn start_with_variables(redis: &Redis, variables: &[String]) -> Self {
        Self::set(&redis.url(), "", |postgres| {
            let url = postgres.url(SCHEMA);
            Some(deployment(program_with(variables), &url, &redis.url(), ""))
        })
        .await
    }

    async fn set(
        redis_url: &str,
        recovery: &str,
        first: impl FnOnce(&Postgres) -> Option<Deployment>,
    ) -> Self {
        let postgres = Postgres::start();
        let deployment = deployment(program(), &postgres.url(SCHEMA), redis_url, recovery);
        let file = deployment.path("series.toml");
        std::fs::write(&file, series_file()).expect("series file");
        deployment.apply(&[file]);
        let apart = first(&postgres);
        let nodes = vec![apart.as_ref().unwrap_or(&deployment).serve(), deployment.serve()];
        let load = Spread::start(nodes.iter().map(|node| node.url.clone()).collect());
        let stage = Stage { postgres, deployment, _apart: apart, nodes, load, dead: Vec::new() };
        stage.advance().await;
        stage
    }

    /// Kills a node; its callers ask the others.
    pub(crate) fn kill_a_node(&mut self) {
        let mut node = self.nodes.remove(0);
        node.kill();
        self.dead.push(node);
    }

    /// Starts one more node, which callers ask too.
    pub(crate) fn add_a_node(&mut self) {
        let node = self.deployment.serve();
        self.load.ask_too(node.url.clone());
        self.nodes.push(node);
    }

    /// Starts a new node, then ends the oldest, as a rolling restart does.
    pub(crate) async fn replace_a_node(&mut self) {
        self.add_a_node();
        let oldest = self.nodes.remove(0);
        self.load.ask_no_more(&oldest.url);
        let ended = tokio::task::spawn_blocking(move || oldest.terminate()).await.unwrap();
        assert!(ended, "a node that is asked to end does");
    }

    /// Sends a signal to the first node.
    pub(crate) fn signal_a_node(&self, name: &str) {
        self.nodes[0].signal(name);
    }

    /// Waits until the first node is adopted in this many partitions.
    pub(crate) async fn adopted_in(&self, partitions: usize) {
        let count = "select count(*) from ledger.participant where state = 'adopted'";
        self.shows(count, |adopted| adopted >= partitions as u64).await;
    }

    /// Waits until all have seen a node beat that slept: it is behind the others' beats.
    pub(crate) async fn woke(&self) {
        let lowest = "select min(beat) from ledger.node where left_at_us is null";
        let asleep: u64 = self.postgres.sql(lowest).parse().unwrap();
        self.shows(lowest, |beat| beat >= asleep + BEATS_SEEN).await;
    }

    /// How many identities the nodes have had.
    pub(crate) fn identities(&self) -> u64 {
        self.postgres.sql("select count(*) from ledger.node").parse().unwrap()
    }

    /// Waits until every other partition is open in a later epoch.
    pub(crate) async fn recovered_but(&self, partition: u32, before: u64) {
        let late = format!(
            "select count(*) from ledger.partition where partition_id < {PARTITIONS} \
             and partition_id <> {partition} and (epoch <= {before} or state <> 'open')"
        );
        self.shows(&late, |late| late == 0).await;
    }

    /// Blocks every change of the owner of a partition, until the guard is dropped.
    pub(crate) async fn hold(&self, partition: u32) -> impl Drop + use<> {
        let pool = sqlx::PgPool::connect(&self.postgres.url(SCHEMA)).await.unwrap();
        let mut holder = pool.begin().await.unwrap();
        let lock = "select 1 from partition where partition_id = $1 for update";
        let lock = sqlx::query(lock).bind(i32::try_from(partition).unwrap());
        lock.execute(&mut *holder).await.unwrap();
        holder
    }

    /// Waits until a figure of the ledger is as it should be.
    async fn shows(&self, figure: &str, is_there: impl Fn(u64) -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !is_there(self.postgres.sql(figure).parse().unwrap()) {
            assert!(Instant::now() < deadline, "{figure}: {}", self.troubles());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the dead nodes are adopted and retired.
    pub(crate) async fn adopted(&self) {
        self.registered(self.nodes.len()).await;
    }

    /// Waits until all partitions are open for this owner: `redis` or `database`.
    pub(crate) async fn owned_by(&self, owner: &str) {
        let others = format!(
            "select count(*) from ledger.partition \
             where partition_id < {PARTITIONS} and (owner <> '{owner}' or state <> 'open')"
        );
        self.shows(&others, |others| others == 0).await;
    }

    /// Kills everything at once and starts it again; new nodes take the places of the old.
    pub(crate) fn kill_everything(&mut self, redis: &mut Redis) {
        let count = self.nodes.len();
        for _ in 0..count {
            self.kill_a_node();
        }
        redis.kill();
        self.postgres.kill();
        self.postgres.restart();
        redis.restart();
        for _ in 0..count {
            self.add_a_node();
        }
    }

    /// Waits until the ledger shows this many nodes that have neither left nor been adopted.
    pub(crate) async fn registered(&self, nodes: usize) {
        let count = "select count(*) from ledger.node \
                     where left_at_us is null and adopted_at_us is null";
        self.shows(count, |count| count == nodes as u64).await;
    }

    /// How many epochs were closed, without the first.
    pub(crate) fn recoveries(&self) -> u64 {
        let count = "select count(*) from ledger.closed_epoch where epoch > 0";
        self.postgres.sql(count).parse().unwrap()
    }

    /// Waits until a call of this script by the first node has ended, well or not.
    pub(crate) async fn called(&self, verb: &str) {
        let deadline = Instant::now() + LIMIT;
        let none = format!("numerator_redis_call_seconds_count{{verb=\"{verb}\"}} 0\n");
        let url = format!("{}/metrics", self.nodes[0].url);
        while testkit::get(&url).await.unwrap().text().await.unwrap().contains(&none) {
            assert!(Instant::now() < deadline, "no call of {verb}: {}", self.troubles());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a caller was refused.
    pub(crate) async fn refused(&self) {
        let deadline = Instant::now() + LIMIT;
        while self.load.refusals() == 0 {
            assert!(Instant::now() < deadline, "nobody is refused: {}", self.troubles());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Minutes between the earliest and the latest time of issue in the journal.
    pub(crate) fn spread_of_journal_minutes(&self) -> i64 {
        let select = "select (max(issued_at_us) - min(issued_at_us)) / 60000000 \
                      from ledger.journal";
        self.postgres.sql(select).parse().unwrap()
    }

    /// The partition of each series.
    pub(crate) fn partitions(&self) -> Vec<u32> {
        let rows =
            self.postgres.sql("select distinct type_code, partition_id from ledger.journal_row");
        let found: BTreeMap<&str, u32> = rows
            .lines()
            .filter_map(|row| row.split_once('|'))
            .map(|(code, partition)| (code, partition.parse().unwrap()))
            .collect();
        CODES.iter().map(|code| found[code]).collect()
    }

    /// The epoch of a partition.
    pub(crate) fn epoch(&self, partition: u32) -> u64 {
        let select = format!("select epoch from ledger.partition where partition_id = {partition}");
        self.postgres.sql(&select).parse().unwrap()
    }

    /// Waits until every series got some more numbers.
    pub(crate) async fn advance(&self) {
        self.advance_some(|_| true).await;
    }

    /// Waits until each of the series that `which` names got some more numbers.
    pub(crate) async fn advance_some(&self, which: impl Fn(usize) -> bool) {
        if let Err(late) = self.load.advance(SOME, which).await {
            panic!("no numbers for {late:?}: {}", self.troubles());
        }
    }

    /// The warnings and errors of the nodes.
    fn troubles(&self) -> String {
        let logs: String = self.nodes.iter().map(Service::log).collect();
        logs.lines().filter(|line| !line.contains(" INFO ")).collect::<Vec<_>>().join("\n")
    }

    /// Waits until Redis owns everything (again), then ends the load and the nodes: each number
    /// came once and is in the journal under its document, the ledger is clean, and nothing is
    /// unaccounted for.
    pub(crate) async fn close(self, what: &str) -> Outcome {
        self.owned_by("redis").await;
        let outcome = self.end(what, true).await;
        assert!(!outcome.gaps.contains("unaccounted"), "and yet: {}", outcome.gaps);
        outcome
    }

    /// The same after a node was silent when Redis lost everything: what it may hold is in the gap
    /// register, and leaves it again once the node is back.
    pub(crate) async fn close_after_silence(self, what: &str) -> Outcome {
        self.owned_by("redis").await;
        self.end(what, true).await
    }

    /// The same after a node died with the data set that held its outbox: records of numbers that
    /// were handed out may be lost, and they are in the gap register.
    pub(crate) async fn close_after_double_failure(self, what: &str) -> Outcome {
        self.end(what, false).await
    }

    async fn end(self, what: &str, is_complete: bool) -> Outcome {
        let Stage { postgres, deployment, nodes, load, dead, _apart } = self;
        drop(dead);
        let seen = load.finish().await;
        seen.assert_no_duplicate();
        for node in nodes {
            let log = node.log();
            assert!(node.terminate(), "the node does not end well: {log}");
        }
        let rows = postgres.sql("select document_id, number from ledger.journal");
        let journal: BTreeSet<(&str, &str)> =
            rows.lines().filter_map(|row| row.split_once('|')).collect();
        for (document, number) in &seen.numbers {
            let is_there = journal.contains(&(document.as_str(), number.as_str()));
            assert!(is_there || !is_complete, "{document}: {number} is not in the journal");
        }
        deployment.assert_clean();
        let gaps = postgres.sql(
            "select reason || ' ' || sum((last_value - first_value) / step + 1) \
             from ledger.gap group by reason",
        );
        println!(
            "{what}: {} numbers, longest stall {:?}, failures {:?}, gaps {gaps:?}",
            seen.numbers.len(),
            seen.longest_stall,
            seen.failures
        );
        Outcome {
            gaps,
            failures: seen.failures.values().sum(),
            refusals: seen.failures.iter().filter(|(status, _)| **status != 0).map(|f| f.1).sum(),
            failed_twice: seen.failed_twice,
        }
    }
}

/// The result of a load.
pub(crate) struct Outcome {
    /// Values in the gap register by reason; empty: none.
    pub(crate) gaps: String,
    /// Requests without a number.
    pub(crate) failures: u64,
    /// Those among them that were answered.
    pub(crate) refusals: u64,
    /// Requests whose first retry failed too.
    pub(crate) failed_twice: u64,
}
