//! The servers of a drill: three nodes, Redis, PostgreSQL, and a proxy on each link between them.
//!
//! Starts and restarts them; what is done to them is `faults`. A node that ended is started again,
//! as a supervisor would.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use harness::postgres::Postgres;
use harness::proxy::Proxy;
use harness::redis::Redis;
use harness::service::{Deployment, Service};

use super::load::{Addresses, POLICIES, SERIES};
use super::plan::NODES;
use super::progress::Progress;
use crate::program;

/// The schema that holds the ledger.
pub(super) const SCHEMA: &str = "drill";

/// Options of every Redis: what it has answered, it finds again after a crash.
pub(super) const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Settings of the nodes: silence and return are noticed sooner, so that more faults fit into a
/// drill, and that one recovery follows the other is what a drill is for.
const SETTINGS: [&str; 5] = [
    "node.heartbeat=100ms",
    "node.ttl=1s",
    "redis.return_after=500ms",
    "recovery.per_minute_max=100",
    // What is shown of a log is its end: not one line per request.
    "log.filter=info,numerator::http::gate=error",
];

/// How long an operator waits for a ledger that went back to go on by itself, on a machine that
/// runs everything at once.
const AGREE_LIMIT: Duration = Duration::from_secs(30);

/// Numbers that an operator leaves out above each counter: more than a drill issues.
const MARGIN: &str = "1000000";

/// How soon everything must be in order again after a fault has ended.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// How often it is looked whether the ledger is held: each look starts a process.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

const POLL: Duration = Duration::from_millis(20);

/// One node and its links.
pub(super) struct Node {
    deployment: Deployment,
    pub(super) service: Service,
    pub(super) to_redis: Proxy,
    pub(super) to_ledger: Proxy,
}

/// Everything that runs.
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) redis: Redis,
    /// A replica that is attached for a while.
    pub(super) replica: Option<Redis>,
    pub(super) postgres: Postgres,
    /// Commands go straight to Redis, and to the ledger by a link that no fault meets.
    operator: Deployment,
    operator_to_ledger: Proxy,
    addresses: Arc<Addresses>,
    /// Nodes that ended without being told to, and were started again.
    pub(super) restarts: u64,
    /// How often an operator released a ledger that went back.
    pub(super) releases: u64,
}

impl World {
    /// Starts everything and applies the series.
    pub(super) fn start() -> Self {
        let postgres = Postgres::start();
        let redis = Redis::start_with(&REDIS_OPTIONS);
        let operator_to_ledger = Proxy::start(postgres.port());
        let operators_url = postgres.url_by(operator_to_ledger.port(), SCHEMA);
        let operator = Deployment::new(program(&SETTINGS), &operators_url, Some(&redis.url()));
        apply_series(&operator);
        let start = |_| {
            let to_redis = Proxy::start(redis.port());
            let to_ledger = Proxy::start(postgres.port());
            let database_url = postgres.url_by(to_ledger.port(), SCHEMA);
            let deployment =
                Deployment::new(program(&SETTINGS), &database_url, Some(&to_redis.redis_url()));
            let service = deployment.serve();
            Node { deployment, service, to_redis, to_ledger }
        };
        let nodes: Vec<Node> = (0..NODES).map(start).collect();
        let addresses = std::array::from_fn(|i| nodes[i].service.url.clone());
        World {
            nodes,
            redis,
            replica: None,
            postgres,
            operator,
            operator_to_ledger,
            addresses: Arc::new(RwLock::new(addresses)),
            restarts: 0,
            releases: 0,
        }
    }

    /// Where the nodes listen, kept up to date.
    pub(super) fn addresses(&self) -> Arc<Addresses> {
        Arc::clone(&self.addresses)
    }

    /// Starts a node whose process is gone; it may not be ready yet.
    pub(super) fn launch(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.service = node.deployment.launch();
        let mut addresses = self.addresses.write().expect("no holder of this lock panics");
        addresses[index] = node.service.url.clone();
    }

    /// Puts another Redis behind all links.
    pub(super) fn point_to(&mut self, redis: Redis) {
        for node in &self.nodes {
            node.to_redis.retarget(redis.port());
        }
        self.redis = redis;
    }

    /// Puts another PostgreSQL behind all links.
    pub(super) fn point_to_ledger(&mut self, postgres: Postgres) {
        for node in &self.nodes {
            node.to_ledger.retarget(postgres.port());
        }
        self.operator_to_ledger.retarget(postgres.port());
        self.postgres = postgres;
    }

    /// Does what the runbook says of a ledger that is held and does not go on by itself.
    fn release(&mut self) {
        self.releases += 1;
        // Redis may be another one by now, or away: the margin covers what it knows.
        let arguments =
            ["reconcile", "--ledger-restored", "--without-redis", "--apply", "--margin", MARGIN];
        self.operator.run(&arguments);
    }

    /// Waits until every node answers for every series again, and the ledger shows no partition in
    /// recovery or on the database and no node that is gone.
    ///
    /// # Errors
    /// What is still out of order after the limit.
    pub(super) async fn settle(&mut self, progress: &Progress) -> Result<(), String> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        let healed_us = progress.now_us();
        let (mut held_since, mut looked_at) = (None, Instant::now());
        loop {
            for index in 0..self.nodes.len() {
                if !self.nodes[index].service.is_running() {
                    self.restarts += 1;
                    self.launch(index);
                }
            }
            let answers = progress.all_answered_since(healed_us);
            if answers {
                held_since = None;
            } else if looked_at.elapsed() > LOOK_PERIOD {
                looked_at = Instant::now();
                held_since = self.is_held().then(|| held_since.unwrap_or(looked_at));
            }
            if held_since.is_some_and(|since: Instant| since.elapsed() > AGREE_LIMIT) {
                self.release();
                held_since = None;
            }
            // Asked only once it is likely: each question starts a process.
            let disorder = if answers { self.disorder() } else { "no answer".to_owned() };
            if disorder.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{disorder}; partitions now: {}", self.partitions()));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    fn is_held(&self) -> bool {
        let held = format!("select count(*) from {SCHEMA}.partition where state = 'held'");
        self.postgres.sql(&held) != "0"
    }

    /// What is not as it should be. The last partition is of gapless series, and always on the
    /// database.
    fn disorder(&self) -> String {
        self.postgres.sql(&format!(
            "select 'partition ' || partition_id || ' is ' || state from {SCHEMA}.partition \
             where state <> 'open' union all \
             select 'partition ' || partition_id || ' is on the database' \
             from {SCHEMA}.partition where owner = 'database' and partition_id < \
             (select partitions from {SCHEMA}.deployment) union all \
             select count(*) || ' nodes' from {SCHEMA}.node \
             where left_at_us is null and adopted_at_us is null having count(*) <> {NODES}"
        ))
    }

    fn partitions(&self) -> String {
        let columns =
            "partition_id || ' ' || state || ' ' || owner || ' ' || epoch || ' ' || cause";
        self.postgres.sql(&format!(
            "select string_agg({columns}, ', ' order by partition_id) from {SCHEMA}.partition \
             where epoch > 0"
        ))
    }

    /// Gives the rows of a query on the ledger; `{}` in it stands for the schema.
    pub(super) fn rows(&self, query: &str, each: impl FnMut(&[&str])) {
        self.postgres.rows(&query.replace("{}", SCHEMA), each);
    }

    /// Runs `numerator verify`: whether it exits 0, and what it says.
    pub(super) fn verify(&self) -> (bool, String) {
        let (is_clean, report) = self.operator.verify();
        (is_clean, report.to_string())
    }

    /// Asks all nodes to end; those that did not end well.
    pub(super) fn terminate(&mut self) -> Vec<usize> {
        for node in &self.nodes {
            node.service.signal("TERM");
        }
        let ended = |(i, node): (usize, &mut Node)| (!node.service.has_ended_well()).then_some(i);
        self.nodes.iter_mut().enumerate().filter_map(ended).collect()
    }

    /// The end of a node's log.
    pub(super) fn log_tail(&self, index: usize, lines: usize) -> String {
        let log = self.nodes[index].service.log();
        let all: Vec<&str> = log.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// One series per type, each with a counter for every line, that never resets.
fn apply_series(operator: &Deployment) {
    let text: String = SERIES
        .iter()
        .zip(POLICIES)
        .map(|(code, policy)| {
            let letter = &code[..1];
            format!(
                "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\npolicy = \"{policy}\"\n\
                 template = \"{letter}{{LINE}}-{{SEQ:9}}\"\n\
                 serves = {{ types = [\"{code}\"] }}\n[series.variables]\n\
                 LINE = {{ required = true, alphabet = \"0-9\", width = 3 }}\n\
                 [[series.serials]]\ncounter = [\"type\", \"LINE\"]\n"
            )
        })
        .collect();
    let file = operator.path("drill.toml");
    std::fs::write(&file, text).expect("series file");
    operator.apply(&[file]);
}
