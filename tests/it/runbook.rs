//! Every command of the runbook's procedures, and of its parts for alerts, line by line, against
//! real servers under load.
//!
//! A line that begins with `#` names what is done by other means; an unknown one fails the test, so
//! that page and test cannot diverge. What a line's comment quotes must occur in what the line
//! prints. The promises hold after every procedure.

mod acts;
mod promise;
mod set;

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;
use promise::{A_NODE_THAT_IS_GONE, Promise};
use set::{Blind, YEARLY, load_series, titles};

const RUNBOOK: &str = include_str!("../../docs/runbook.md");
const SCHEMA: &str = "runbook";
const LIMIT: Duration = Duration::from_secs(30);

/// Pause before a line is run again that does not show yet what it should.
const PAUSE: Duration = Duration::from_millis(100);

/// The first line of the settings, which goes on in those of Redis.
const RETURN_AFTER: &str = "return_after = \"1s\"\n";

/// The commands of a procedure: the lines of its blocks.
fn commands(title: &str) -> Vec<&'static str> {
    let sections = RUNBOOK.split("\n### ").skip(1);
    let mut found = sections.filter_map(|section| section.strip_prefix(title)?.strip_prefix('\n'));
    let section = found.next().unwrap_or_else(|| panic!("the runbook has no {title:?}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    lines.filter(|line| !line.trim().is_empty()).collect()
}

/// Two nodes on PostgreSQL and Redis, under load, and what a shell of an operator knows.
struct Scene {
    postgres: Postgres,
    redis: Redis,
    replica: Option<Redis>,
    to_redis: Proxy,
    deployment: Deployment,
    /// The earlier one, if its settings were changed.
    before: Option<Deployment>,
    /// Where numbers move to.
    next: Deployment,
    nodes: Vec<Service>,
    /// Where the first of them was, for when none is left.
    first_url: String,
    /// What its callers show.
    token: String,
    load: Option<Running>,
    /// Whether a node was replaced before.
    is_upgraded: bool,
    /// Holds the rows of counters.
    holder: Option<sqlx::Transaction<'static, sqlx::Postgres>>,
    /// Holds locks in another database.
    elsewhere: Option<sqlx::Transaction<'static, sqlx::Postgres>>,
    /// The first cell of what a line last listed.
    first_cell: Mutex<String>,
    blind: Option<Blind>,
}

impl Scene {
    async fn start() -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start_durable());
        let to_redis = Proxy::start(redis.port());
        let of = |schema: &str| {
            let url = to_redis.redis_url();
            let mut deployment = Deployment::new(&postgres.url(schema), Some(&url));
            deployment.extra = RETURN_AFTER.into();
            deployment
        };
        let (mut deployment, next) = (of(SCHEMA), of("next"));
        let new = deployment.ok(&["token", "create", "operator", "--for-settings", "--json"]);
        let new: Value = serde_json::from_str(&new).expect("a token");
        let tokens = format!("[[auth.tokens]]\nname = \"operator\"\nsha256 = {}\n", new["sha256"]);
        deployment.extra += &tokens;
        let token = new["token"].as_str().expect("a token").to_owned();
        deployment.apply_load_series();
        let file = deployment.path("year.toml");
        std::fs::write(&file, YEARLY).expect("series file");
        deployment.apply(&[file]);
        for (file, width) in [("series.toml", 8), ("wider.toml", 9)] {
            std::fs::write(deployment.path(file), load_series(width)).expect("series file");
        }
        let nodes = vec![deployment.serve(), deployment.serve()];
        let load = Running::start_calm(&nodes[0].url, 4, "doc", &token);
        load.reach(100).await;
        let load = Some(load);
        Scene {
            postgres,
            redis,
            replica: None,
            to_redis,
            deployment,
            before: None,
            next,
            first_url: nodes[0].url.clone(),
            nodes,
            token,
            load,
            is_upgraded: false,
            holder: None,
            elsewhere: None,
            first_cell: Mutex::default(),
            blind: None,
        }
    }

    /// Runs one line, again while it does not show what it should: nodes take their time.
    fn shell(&self, line: &str) {
        self.lay_out();
        let promise = Promise::of(line);
        let deadline = Instant::now() + LIMIT;
        loop {
            let (code, output) = self.run(line);
            let as_promised = code == Some(promise.exit);
            assert!(
                as_promised || line.starts_with("numerator status"),
                "{line}\nexits {code:?}\n{output}"
            );
            let broken = promise.broken_by(&output);
            if as_promised && broken.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{line}\n{code:?} breaks {broken:?}\n{output}");
            // Between two looks: what is waited for needs the processor too.
            std::thread::park_timeout(PAUSE);
        }
    }

    /// Puts the programs where a shell finds them.
    fn lay_out(&self) {
        let bin = self.deployment.path("bin");
        std::fs::create_dir_all(&bin).expect("folder");
        let others = ["--setting", "partitions=16", "--setting", "redis.prefix=next"];
        for (name, deployment, further) in
            [("numerator", &self.deployment, &[][..]), ("numerator-new", &self.next, &others)]
        {
            let command = deployment.command(further);
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let words: Vec<String> = words.map(|word| format!("{word:?}")).collect();
            let script = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
            std::fs::write(bin.join(name), script).expect("script");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(bin.join(name), executable).expect("script");
        }
    }

    /// Runs one line as a shell does: exit code and output.
    fn run(&self, line: &str) -> (Option<i32>, String) {
        // psql requires the second equals sign to be encoded.
        let url = self.deployment.database_url().replace("search_path=", "search_path%3D");
        let path = std::env::var("PATH").expect("a search path");
        let output = Command::new("bash")
            .args(["-c", line])
            .current_dir(self.deployment.path(""))
            .env("PATH", format!("{}:{path}", self.deployment.path("bin").display()))
            .env("DATABASE_URL", &url)
            .env("REDIS_URL", self.to_redis.redis_url())
            .env("NUMERATOR_TOKEN", &self.token)
            .env("PID", &*self.first_cell.lock().expect("not poisoned"))
            .env("NUMERATOR_URL", self.nodes.first().map_or(&self.first_url, |node| &node.url))
            .output()
            .expect("bash runs");
        let (out, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let mut cells = out.lines().filter_map(|line| line.split_once(" | "));
        if let Some((cell, _)) = cells.nth(1) {
            cell.trim().clone_into(&mut self.first_cell.lock().expect("not poisoned"));
        }
        (output.status.code(), format!("{out}\n{error}"))
    }

    /// What is done by other means.
    async fn act(&mut self, what: &str) {
        match what {
            "restart Redis" => self.redis.restart(),
            "Redis dies" => {
                self.redis.kill();
                self.owned_by("database").await;
            }
            "Redis comes back empty" => {
                self.redis.restart_empty();
                self.owned_by("redis").await;
            }
            "Redis comes back with its data" => {
                self.redis.restart();
                self.owned_by("redis").await;
            }
            "Redis is flushed" => self.redis.flushall(),
            "the replica is promoted and redis.url leads to it" => {
                let replica = Redis::start_durable();
                replica.follow(&self.redis);
                self.redis.wait_for_copy(&replica);
                self.redis.kill();
                replica.promote();
                self.to_redis.retarget(replica.port());
                self.replica = Some(replica);
            }
            "PostgreSQL stops" => self.postgres.kill(),
            "PostgreSQL starts" => {
                self.postgres.restart();
                self.go_on().await;
            }
            "the ledger is restored from its backup" => {
                self.postgres.sql(A_NODE_THAT_IS_GONE);
                self.postgres.back_up();
                let rows = self.postgres.sql("select count(*) from runbook.journal");
                self.go_on().await;
                // Redis works without the ledger: only what that has confirmed can be forgotten.
                self.until(&format!("select count(*) > {rows} from runbook.journal"), "t").await;
                self.postgres.restore();
                self.held().await;
            }
            "a session holds the rows of counters" => {
                self.hold_elsewhere().await;
                self.hold_counters().await;
            }
            "the session that held them is gone" => self.holder_is_gone().await,
            "redis.url leads to another Redis, which is empty" => {
                let other = Redis::start_durable();
                self.to_redis.retarget(other.port());
                self.replica = Some(other);
            }
            "redis.url is taken out of the settings" => self.take_redis_out(),
            "a token is written into the database past the program" => {
                let hash = "ab".repeat(32);
                self.postgres.sql(&format!(
                    "insert into runbook.token (name, sha256, roles, series, projects, \
                     created_by, created_at_us) values ('intruder', '\\x{hash}', \
                     '[\"super-admin\"]', '[]', '[]', 'operator', 0); \
                     update runbook.token_stamp set stamp = stamp + 1"
                ));
            }
            other => self.act_on_nodes(other).await,
        }
        let is_calm = self.holder.is_none() && what != "Redis dies" && !what.contains("stops");
        if self.load.is_some() && is_calm {
            self.come_to_rest().await;
        }
    }

    /// Waits until the ledger shows this many nodes that have neither left nor been adopted.
    async fn registered(&self, nodes: usize) {
        let count = "select count(*) from runbook.node \
                     where left_at_us is null and adopted_at_us is null";
        self.until(count, &nodes.to_string()).await;
    }

    /// Waits until the load got some more numbers.
    async fn go_on(&self) {
        let load = self.load.as_ref().expect("a load");
        load.reach(load.asked() + 50).await;
    }

    /// Waits until numbers continue, if none is held back.
    async fn come_to_rest(&self) {
        let held = "select count(*) from runbook.partition where state = 'held'";
        if self.postgres.sql(held) == "0" {
            self.go_on().await;
        }
    }

    async fn held(&self) {
        self.until("select count(*) from runbook.partition where state <> 'held'", "0").await;
    }

    async fn owned_by(&self, owner: &str) {
        let others = format!(
            "select count(*) from runbook.partition p \
             where (owner <> '{owner}' or state <> 'open') and exists \
             (select 1 from runbook.journal_row j where j.partition_id = p.partition_id)"
        );
        self.until(&others, "0").await;
    }

    async fn until(&self, query: &str, shows: &str) {
        let deadline = Instant::now() + LIMIT;
        while self.postgres.sql(query) != shows {
            assert!(Instant::now() < deadline, "{query}: not {shows}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Every number came once, the nodes end well, and the ledger is clean.
    async fn close(mut self) {
        if let Some(load) = self.load.take() {
            load.finish().await.assert_no_duplicate();
        }
        for node in self.nodes.drain(..) {
            let log = node.log();
            assert!(node.terminate(), "the node does not end well: {log}");
        }
        self.deployment.assert_clean();
    }
}

/// Walks through parts, one after the other.
async fn walk(titles: &[&str]) {
    let mut scene = Scene::start().await;
    for title in titles {
        let lines = commands(title);
        assert!(!lines.is_empty(), "{title} has no commands");
        for line in lines {
            match line.strip_prefix("# ") {
                Some(what) => scene.act(what).await,
                None => tokio::task::block_in_place(|| scene.shell(line)),
            }
        }
    }
    scene.close().await;
}

/// Tests that walk through the parts of a chapter, and the list of all that they walk through.
macro_rules! walks {
    ($list:ident { $($name:ident: $($title:literal),+;)* }) => {
        const $list: &[&str] = &[$($($title),+),*];
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                walk(&[$($title),+]).await;
            }
        )*
    };
}

walks! { PROCEDURES {
    redis_is_restarted_as_planned: "Planned restart of Redis";
    redis_is_lost: "Redis lost";
    another_redis_takes_its_place: "Another Redis";
    redis_is_turned_off_for_good: "Redis off for good";
    redis_is_flushed: "Redis flushed";
    redis_fails_over_by_hand: "Fail-over to a replica";
    the_ledger_is_down: "Ledger down";
    nodes_are_upgraded_one_by_one: "Rolling upgrade";
    the_ledger_is_restored_from_a_backup: "Restore of a backup of the ledger";
    the_number_of_partitions_changes: "Change of the number of partitions";
    a_counter_is_nearly_exhausted: "Counter near exhaustion";
    a_duplicate_is_suspected: "Suspected duplicate";
    the_year_ends_and_tokens_are_lost: "Year end", "A leaked token", "A lost super admin",
        "A wrong approval";
} }

walks! { ALERTS {
    an_alert_says_that_redis_is_unavailable: "Redis unavailable",
        "The database has the numbers for long";
    alerts_say_that_a_process_is_of_no_use: "A process does not reach Redis",
        "A process does not issue";
    alerts_say_that_the_ledger_is_away: "Ledger unavailable", "Ceiling room is low";
    alerts_say_that_something_is_slow_or_odd: "Lock failures", "Long waits", "Many retries",
        "Requests fail", "A suspected duplicate", "A rejected record",
        "A token that no event tells of", "The journal lags",
        "A counter is nearly full", "A clock is off", "Idempotency records are shed",
        "Availability is low", "The error budget burns", "A certificate or a token ends",
        "No checkpoint is made", "Work in the background fails", "A reservation stands still";
    an_alert_says_that_nothing_is_issued: "Nothing is issued";
    an_alert_says_that_a_process_is_missing: "A process is missing";
    an_alert_says_that_a_recovery_stands_still: "A recovery stands still";
    an_alert_says_that_an_epoch_closed_at_the_ceiling: "Closed at the ceiling";
} }

#[test]
fn every_procedure_and_every_part_for_an_alert_is_walked() {
    assert_eq!(titles(RUNBOOK, "Procedures"), PROCEDURES);
    let (mut walked, mut parts) = (ALERTS.to_vec(), titles(RUNBOOK, "Alerts"));
    walked.sort_unstable();
    parts.sort_unstable();
    assert_eq!(parts, walked);
}
