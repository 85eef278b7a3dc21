//! The servers of a drill: three nodes, their ledger, Redis where it is used, and a proxy on each
//! link between them.
//!
//! Starts and restarts them; faults are in `faults`. A node that ended is started again, as a
//! supervisor would.

use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::{Deployment, Program, Service};

use super::archiver::Archiver;
use super::asking::Addresses;
use super::beside::Surroundings;
use super::ledger::{Engine, Ledger, Stores};
use super::orders::{GAPLESS, LINE_DIGITS, POLICIES, TYPES};
use super::plan::NODES;
use super::progress::Progress;
use super::transactions::OwnTable;
use super::turn::Turn;
use crate::series;

/// Options of every Redis: what it has answered survives a crash.
pub(super) const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// Settings of the nodes: silence and return are noticed sooner, so that more faults fit into a
/// drill, and that one recovery follows the other is what a drill is for.
pub(super) const SETTINGS: [&str; 5] = [
    "node.ttl=1s",
    // All clocks of the drill are shifted by half an hour at most.
    "node.clock_offset_max=1h",
    "redis.return_after=500ms",
    "recovery.per_minute_max=100",
    // Only the end of a log is shown: not one line per request.
    "log.filter=info,numerator::web::middleware=error",
];

/// How long an operator waits for a ledger that went back to continue automatically, on a machine
/// that runs everything at once.
const AGREE_LIMIT: Duration = Duration::from_secs(30);

/// Numbers that an operator skips above each counter: more than a drill issues.
const MARGIN: &str = "1000000";

/// How soon everything must be in order again after a fault has ended.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// Pause between two checks whether the ledger is held: each check starts a process.
const POLL_PERIOD: Duration = Duration::from_millis(500);

const POLL: Duration = Duration::from_millis(20);

/// How much of a statement is shown, in characters.
const PAPER_CHARS: usize = 4_000;

/// Where commands are run, and the links from there.
pub(super) struct Links {
    deployment: Deployment,
    pub(super) to_redis: Option<Proxy>,
    pub(super) to_ledger: Option<Proxy>,
}

impl Links {
    /// `key` signs the record; if it does not exist there, it is made.
    fn start(ledger: &Ledger, redis: Option<&Redis>, key: &Path, turn: &Turn) -> Self {
        let to_redis = redis.map(|redis| Proxy::start(redis.port()));
        let to_ledger = ledger.link();
        let redis_url = to_redis.as_ref().map(Proxy::redis_url);
        let database_url = ledger.url(to_ledger.as_ref());
        let mut deployment = Deployment::new(turn.program(), &database_url, redis_url.as_deref());
        if !key.exists() {
            deployment.ok(&["audit", "keygen", &key.display().to_string()]);
        }
        deployment.extra = format!("[audit]\nkey = \"{}\"\ncheckpoint = \"1s\"\n", key.display());
        Links { deployment, to_redis, to_ledger }
    }
}

/// One node and its links.
pub(super) struct Node {
    pub(super) links: Links,
    pub(super) service: Service,
}

/// Everything that runs.
pub(super) struct World {
    pub(super) nodes: Vec<Node>,
    pub(super) redis: Option<Redis>,
    /// A replica that is attached for a while.
    pub(super) replica: Option<Redis>,
    pub(super) ledger: Ledger,
    pub(super) stores: Stores,
    /// When one series takes over from another.
    pub(super) turn: Turn,
    /// Commands reach both by links that no fault affects.
    operator: Links,
    /// Has the key with which all of them sign the record, and the archive.
    kept: TempDir,
    addresses: Arc<Addresses>,
    /// Nodes that ended without a request, and were started again.
    pub(super) restarts: u64,
    /// How often an operator released a ledger that went back.
    pub(super) releases: u64,
    /// How many of them waited for a node that died and lost its outbox: no node can report for it.
    pub(super) releases_for_dead: u64,
    /// Steps so far in which the ledger goes back and the processes agree on it.
    pub(super) agreed_steps: u32,
}

impl World {
    /// Starts everything and applies the series.
    pub(super) fn start(stores: Stores, turn: Turn) -> Self {
        let ledger = Ledger::start(stores.ledger);
        let redis = stores.has_redis.then(|| Redis::start_with(&REDIS_OPTIONS));
        let folder = tempfile::tempdir().expect("temporary folder");
        let key = folder.path().join("audit.pem");
        let operator = Links::start(&ledger, redis.as_ref(), &key, &turn);
        apply_series(&operator.deployment, &turn);
        let start = |_| {
            let links = Links::start(&ledger, redis.as_ref(), &key, &turn);
            let service = links.deployment.serve();
            Node { links, service }
        };
        let nodes: Vec<Node> = (0..NODES).map(start).collect();
        let addresses = std::array::from_fn(|i| nodes[i].service.url.clone());
        World {
            nodes,
            redis,
            replica: None,
            ledger,
            stores,
            turn,
            operator,
            kept: folder,
            addresses: Arc::new(RwLock::new(addresses)),
            restarts: 0,
            releases: 0,
            releases_for_dead: 0,
            agreed_steps: 0,
        }
    }

    /// Moves old rows to files, by the operator's link.
    pub(super) fn archiver(&self) -> Archiver {
        let (folder, key) = (self.kept.path().join("archive"), self.kept.path().join("audit.pem"));
        Archiver::new(&folder, &key, self.operator.deployment.database_url().to_owned())
    }

    /// What callers find beside the nodes; their table is made.
    pub(super) fn surroundings(&self) -> Surroundings {
        let url = self.operator.deployment.database_url();
        // A file has the clock of the process that writes.
        let ahead_us = match self.stores.ledger {
            Engine::Postgres => 0,
            Engine::Sqlite => self.turn.shift_us(),
        };
        Surroundings { own_table: OwnTable::make(&self.ledger, url), ahead_us }
    }

    /// The command-line options with which a command reads the archive, if there is one.
    fn with_archive(&self) -> Vec<String> {
        let archive = self.archiver();
        let folder = archive.folder();
        let options = ["--archive".to_owned(), folder.display().to_string()];
        if folder.exists() { options.to_vec() } else { Vec::new() }
    }

    /// Where the nodes listen, kept up to date.
    pub(super) fn addresses(&self) -> Arc<Addresses> {
        Arc::clone(&self.addresses)
    }

    /// The settings of the operator's commands, in addition to the stores.
    pub(super) fn operators_settings(&self) -> &String {
        &self.operator.deployment.extra
    }

    /// Starts a node as another program; it may refuse to start.
    pub(super) fn launch_as(&mut self, index: usize, program: Program) {
        let usual = std::mem::replace(&mut self.nodes[index].links.deployment.program, program);
        self.launch(index);
        self.nodes[index].links.deployment.program = usual;
    }

    /// Starts a node whose process is gone; it may not be ready yet.
    pub(super) fn launch(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.service = node.links.deployment.launch();
        let mut addresses = self.addresses.write().expect("no holder of this lock panics");
        addresses[index] = node.service.url.clone();
    }

    /// The Redis in use: a plan has faults of Redis only if there is one.
    pub(super) fn redis(&self) -> &Redis {
        self.redis.as_ref().expect("a Redis")
    }

    /// The same, to end and to start it.
    pub(super) fn redis_mut(&mut self) -> &mut Redis {
        self.redis.as_mut().expect("a Redis")
    }

    fn links(&self) -> impl Iterator<Item = &Links> {
        self.nodes.iter().map(|node| &node.links).chain([&self.operator])
    }

    /// Puts another Redis behind all links.
    pub(super) fn point_to(&mut self, redis: Redis) {
        for link in self.links().filter_map(|links| links.to_redis.as_ref()) {
            link.retarget(redis.port());
        }
        self.redis = Some(redis);
    }

    /// Puts another PostgreSQL behind all links.
    pub(super) fn point_to_ledger(&mut self, postgres: Postgres) {
        for link in self.links().filter_map(|links| links.to_ledger.as_ref()) {
            link.retarget(postgres.port());
        }
        self.ledger = Ledger::Postgres(postgres);
    }

    /// Follows the runbook for a ledger that is held and does not continue automatically.
    pub(super) fn release(&mut self) {
        self.releases += 1;
        self.releases_for_dead += u64::from(self.waits_for_dead());
        let arguments = ["reconcile", "--ledger-restored", "--apply", "--margin", MARGIN];
        if !self.operator.deployment.run(&arguments).status.success() {
            // Redis was emptied, or is another one by now: the margin covers what it knew.
            self.operator.deployment.run(&[&arguments[..], &["--without-redis"]].concat());
        }
    }

    /// Whether an inquest waits for a node that was adopted: it is on the roster only if its outbox
    /// was not whole.
    fn waits_for_dead(&self) -> bool {
        let roster = self.ledger.list("select roster from {}.inquest").replace('-', "");
        let (id, mut waits) = (self.ledger.node_id(), false);
        let adopted = format!("select {id} from {{}}.node where adopted_at_us is not null");
        self.ledger.rows(&adopted, |row| waits |= roster.contains(row[0]));
        waits
    }

    /// How long an operator waits for a ledger that went back to continue automatically: the
    /// operator who restored a file knows that it will not.
    fn agree_limit(&self) -> Duration {
        match self.stores.ledger {
            Engine::Postgres => AGREE_LIMIT,
            Engine::Sqlite => Duration::ZERO,
        }
    }

    /// Waits until every node answers for every series again, and the ledger shows no partition in
    /// recovery or on the database and no dead node.
    ///
    /// # Errors
    /// What is still out of order after the limit.
    pub(super) async fn come_to_rest(&mut self, progress: &Progress) -> Result<(), String> {
        let deadline = Instant::now() + SETTLE_LIMIT;
        let healed = progress.now();
        let (mut held_since, mut looked_at) = (None, Instant::now());
        loop {
            for index in 0..self.nodes.len() {
                if !self.nodes[index].service.is_running() {
                    self.restarts += 1;
                    self.launch(index);
                }
            }
            let answers = progress.all_answered_since(healed);
            if answers {
                held_since = None;
            } else if looked_at.elapsed() > POLL_PERIOD {
                looked_at = Instant::now();
                held_since = self.is_held().then(|| held_since.unwrap_or(looked_at));
            }
            if held_since.is_some_and(|since: Instant| since.elapsed() >= self.agree_limit()) {
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

    pub(super) fn is_held(&self) -> bool {
        self.ledger.list("select count(*) from {}.partition where state = 'held'") != "0"
    }

    /// What is not in order. The last partition is that of gapless series, and always on the
    /// database.
    fn disorder(&self) -> String {
        let mut disorder = self.ledger.list(&format!(
            "select 'partition ' || partition_id || ' is ' || state from {{}}.partition \
             where state <> 'open' union all \
             select count(*) || ' nodes' from {{}}.node \
             where left_at_us is null and adopted_at_us is null having count(*) <> {NODES}"
        ));
        if self.stores.has_redis {
            disorder += &self.ledger.list(
                "select 'partition ' || partition_id || ' is on the database' from {}.partition \
                 where owner = 'database' and partition_id < \
                 (select partitions from {}.deployment)",
            );
        }
        disorder
    }

    fn partitions(&self) -> String {
        self.ledger.list(
            "select partition_id || ' ' || state || ' ' || owner || ' ' || epoch || ' ' || cause \
             from {}.partition where epoch > 0 order by partition_id",
        )
    }

    /// Runs `numerator verify`: whether it exits 0, and its output.
    pub(super) fn verify(&self) -> (bool, String) {
        let archive = self.with_archive();
        let archive: Vec<&str> = archive.iter().map(String::as_str).collect();
        let (is_clean, report) = self.operator.deployment.verify_with(&archive);
        (is_clean, report.to_string())
    }

    /// Runs `numerator audit verify`: whether it exits 0, and its output.
    pub(super) fn audit(&self) -> (bool, String) {
        let archive = self.with_archive();
        let archive: Vec<&str> = archive.iter().map(String::as_str).collect();
        let output = self.operator.deployment.run(&[&["audit", "verify"], &archive[..]].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    /// Draws up the statement of the gapless series: whether it is complete, and its output.
    pub(super) fn statement(&self) -> (bool, String) {
        let year = &self.turn.day[..4];
        let arguments =
            ["statement", "--series", TYPES[GAPLESS], "--period", year, "--language", "en"];
        let output = self.operator.deployment.run(&[&arguments[..], &["--json"]].concat());
        let paper: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let is_complete = output.status.success() && paper["verdict"] == "complete";
        let said = [output.stdout, output.stderr].concat();
        (is_complete, String::from_utf8_lossy(&said).chars().take(PAPER_CHARS).collect())
    }

    /// Asks all nodes to end; returns those that did not end well.
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

/// One series per type, and those in turn, each with a counter for every line that never resets.
fn apply_series(operator: &Deployment, turn: &Turn) {
    let one = |(code, policy): (&&str, &str)| {
        let template = format!("{}{{LINE}}-{{SEQ:9}}", &code[..1]);
        series(code, &template, LINE_DIGITS, &format!("policy = \"{policy}\""))
    };
    let text: String = TYPES.iter().zip(POLICIES).map(one).collect();
    let text = text + &turn.series();
    let file = operator.path("drill.toml");
    std::fs::write(&file, text).expect("series file");
    operator.apply(&[file]);
}
