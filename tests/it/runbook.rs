//! Every command of the runbook's procedures, line by line, against real servers under load.
//!
//! A line that begins with `#` names what is done by other means; an unknown one fails the test, so
//! that page and test cannot part. What must hold afterwards holds after every procedure.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use harness::load::Running;
use harness::postgres::Postgres;
use harness::proxy::Proxy;
use harness::redis::Redis;
use harness::service::Service;

use crate::deployment::Deployment;

const RUNBOOK: &str = include_str!("../../docs/runbook.md");
const SCHEMA: &str = "runbook";
const LIMIT: Duration = Duration::from_secs(30);

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
    /// Where numbers move to.
    next: Deployment,
    nodes: Vec<Service>,
    load: Option<Running>,
    /// Whether a node was replaced before.
    is_upgraded: bool,
}

impl Scene {
    async fn start() -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start_durable());
        let to_redis = Proxy::start(redis.port());
        let of = |schema: &str| {
            let url = to_redis.redis_url();
            let mut deployment = Deployment::new(&postgres.url(schema), Some(&url));
            deployment.extra = "return_after = \"1s\"\n".into();
            deployment
        };
        let (deployment, next) = (of(SCHEMA), of("next"));
        deployment.apply_load_series();
        let file = deployment.path("year.toml");
        std::fs::write(&file, YEARLY).expect("series file");
        deployment.apply(&[file]);
        for (file, width) in [("series.toml", 8), ("wider.toml", 9)] {
            std::fs::write(deployment.path(file), load_series(width)).expect("series file");
        }
        let nodes = vec![deployment.serve(), deployment.serve()];
        let load = Running::start(&nodes[0].url, 4);
        load.reach(100).await;
        let load = Some(load);
        let (replica, is_upgraded) = (None, false);
        Scene { postgres, redis, replica, to_redis, deployment, next, nodes, load, is_upgraded }
    }

    /// Runs one line as a shell does.
    fn shell(&self, line: &str) {
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
        // psql wants the second equals sign encoded.
        let url = self.deployment.database_url().replace("search_path=", "search_path%3D");
        let path = std::env::var("PATH").expect("a search path");
        let output = Command::new("bash")
            .args(["-c", line])
            .current_dir(self.deployment.path(""))
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("DATABASE_URL", &url)
            .env("NUMERATOR_URL", self.nodes.first().map_or("", |node| node.url.as_str()))
            .output()
            .expect("bash runs");
        let expected = line.rsplit_once("# exits ").map_or(0, |(_, code)| code.parse().unwrap());
        let (out, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(expected), "{line}\n{out}\n{error}");
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
            "a node is stopped with SIGTERM and its next version started" => {
                let next = self.deployment.serve();
                let node = self.nodes.remove(0);
                let load = self.load.take().expect("a load");
                load.finish().await.assert_no_duplicate();
                assert!(node.terminate(), "a node that is told to end exits 0");
                // Documents of its own.
                let name = if self.is_upgraded { "second" } else { "first" };
                self.is_upgraded = true;
                self.load = Some(Running::start_as(&next.url, 4, name));
                self.nodes.push(next);
            }
            "the ledger is restored from its backup" => {
                self.postgres.back_up();
                self.go_on().await;
                self.postgres.restore();
                self.held().await;
            }
            "all nodes are stopped with SIGTERM" => {
                self.load.take().expect("a load").finish().await.assert_no_duplicate();
                for node in self.nodes.drain(..) {
                    assert!(node.terminate(), "a node that is told to end exits 0");
                }
            }
            other => panic!("the runbook says {other:?}, and this test does not know it"),
        }
        if self.load.is_some() && what != "Redis dies" && !what.contains("stops") {
            self.settled().await;
        }
    }

    /// Waits until the load got some more numbers.
    async fn go_on(&self) {
        let load = self.load.as_ref().expect("a load");
        load.reach(load.asked() + 50).await;
    }

    /// Waits until numbers go on, where none is held back.
    async fn settled(&self) {
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
             (select 1 from runbook.journal j where j.partition_id = p.partition_id)"
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
        let (clean, report) = self.deployment.verify();
        assert!(clean, "{report}");
    }
}

/// A series whose counter begins anew each year.
const YEARLY: &str = "[[series]]\ncode = \"RCV\"\nname = \"Receipts\"\n\
    template = \"RCV-{YEAR}-{SEQ:4}\"\nserves = { types = [\"RCV\"] }\n\
    [[series.serials]]\ncounter = [\"type\"]\nreset = \"year\"\n";

fn load_series(width: u8) -> String {
    format!(
        "[[series]]\ncode = \"LOAD\"\nname = \"LOAD\"\ntemplate = \"L-{{SEQ:{width}}}\"\n\
         serves = {{ types = [\"LOAD\"] }}\n[[series.serials]]\ncounter = [\"type\"]\n"
    )
}

async fn walk(title: &str) {
    let mut scene = Scene::start().await;
    let lines = commands(title);
    assert!(!lines.is_empty(), "{title} has no commands");
    for line in lines {
        match line.strip_prefix("# ") {
            Some(what) => scene.act(what).await,
            None => tokio::task::block_in_place(|| scene.shell(line)),
        }
    }
    scene.close().await;
}

/// A test for each procedure, and the list of all.
macro_rules! procedures {
    ($($name:ident: $title:literal,)*) => {
        const TITLES: &[&str] = &[$($title),*];
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                walk($title).await;
            }
        )*
    };
}

procedures! {
    redis_is_restarted_as_planned: "Planned restart of Redis",
    redis_is_lost: "Redis lost",
    redis_is_flushed: "Redis flushed",
    redis_fails_over_by_hand: "Fail-over to a replica",
    the_ledger_is_down: "Ledger down",
    nodes_are_upgraded_one_by_one: "Rolling upgrade",
    the_ledger_is_restored_from_a_backup: "Restore of a backup of the ledger",
    the_number_of_partitions_changes: "Change of the number of partitions",
    a_counter_is_nearly_exhausted: "Counter near exhaustion",
    a_duplicate_is_suspected: "Suspected duplicate",
    the_year_ends: "Year end",
}

#[test]
fn every_procedure_of_the_runbook_is_walked() {
    let (_, procedures) = RUNBOOK.split_once("\n## Procedures\n").expect("procedures");
    let procedures = procedures.split("\n## ").next().unwrap_or_default();
    let titles: Vec<&str> =
        procedures.split("\n### ").skip(1).filter_map(|section| section.lines().next()).collect();
    assert_eq!(titles, TITLES);
}
