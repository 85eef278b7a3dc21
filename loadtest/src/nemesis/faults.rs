//! How each kind of fault is applied to the servers, and how it ends.

use std::time::{Duration, Instant};

use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;

use super::check::COUNTERS;
use super::kinds::{Kind, Target};
use super::ledger::SCHEMA;
use super::plan::{Fault, NODES};
use super::world::{Links, REDIS_OPTIONS, World};

/// How long a master may take to forget its last replica: it looks once a second.
const IDENTITY_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// How long the load may take to touch each counter.
const COUNTERS_LIMIT: Duration = Duration::from_secs(60);

/// How long the adoption of a dead node may take.
const ADOPTION_LIMIT: Duration = Duration::from_secs(20);

/// How long a replica or a standby lags behind before it is promoted, and how old a copy is.
pub(super) const LAG: Duration = Duration::from_millis(200);

impl World {
    /// Applies it.
    pub(super) async fn inject(&mut self, fault: &Fault) {
        let node = fault.node;
        match fault.kind {
            Kind::NodeKilled => self.nodes[node].service.kill(),
            Kind::NodePaused => self.nodes[node].service.signal("STOP"),
            Kind::NodeRestarted => self.nodes[node].service.signal("TERM"),
            Kind::Flushed => self.redis().flushall(),
            Kind::RedisRestarted | Kind::RedisRestartedEmpty | Kind::RedisAway => {
                self.redis_mut().kill();
            }
            Kind::RedisPaused => self.redis().signal("STOP"),
            Kind::RedisFull => self.limit_memory("noeviction"),
            Kind::RedisEvicts => self.limit_memory("allkeys-random"),
            Kind::FailOver => self.fail_over(Duration::ZERO).await,
            Kind::StaleFailOver => self.fail_over(LAG).await,
            Kind::ReplicaAttached => {
                let replica = Redis::start_with(&REDIS_OPTIONS);
                replica.follow(self.redis());
                self.replica = Some(replica);
                self.redis().cli(&["config", "set", "repl-backlog-ttl", "1"]);
            }
            Kind::CounterDeleted => self.on_one_key("nbr:*:c:*", fault.pick, &["del"], &[]),
            Kind::CounterLowered => {
                self.on_one_key("nbr:*:c:*", fault.pick, &["hset"], &["value", "1"]);
            }
            Kind::OutboxDeleted => self.on_one_key("nbr:*:outbox:*", fault.pick, &["del"], &[]),
            Kind::RedisLinkCut | Kind::LedgerLinkCut => self.link(fault).cut(),
            Kind::RedisLinkDown | Kind::LedgerLinkDown => self.link(fault).refuse(),
            Kind::RedisLinkSlow | Kind::LedgerLinkSlow => self.link(fault).delay(fault.delay),
            Kind::RedisAnswersLost | Kind::LedgerAnswersLost => self.link(fault).swallow_answers(),
            Kind::RedisUnreachable => self.links_to_redis().for_each(Proxy::refuse),
            Kind::LedgerRestarted => self.ledger.server().kill(),
            Kind::LedgerFailsOver => self.ledger_fails_over().await,
            Kind::LedgerPutBack => {
                self.rest().await;
                self.ledger.server().dump(SCHEMA);
                tokio::time::sleep(LAG).await;
                self.ledger.server().put_back(SCHEMA);
            }
            Kind::FileLocked => self.ledger.file().lock().await,
            Kind::FileReplaced => {
                self.copy_file().await;
                self.ledger.file().put_back();
            }
            Kind::FilePutBack | Kind::FilePutBackFlushed => {
                self.copy_file().await;
                self.terminate();
                self.nodes.iter_mut().for_each(|node| node.service.kill());
                self.ledger.file().put_back();
                if fault.kind == Kind::FilePutBackFlushed {
                    self.redis().flushall();
                }
            }
            Kind::EverythingKilled | Kind::EverythingKilledEmpty => {
                self.nodes.iter_mut().for_each(|node| node.service.kill());
                self.redis.iter_mut().for_each(Redis::kill);
                self.ledger.kill();
            }
            Kind::SleeperReleased => self.fall_asleep(node).await,
            Kind::BranchPutBack => self.put_branch_back().await,
            Kind::FileBranch => self.put_branched_file_back().await,
            Kind::FileMoved => self.move_file(),
            Kind::ClockAhead => self.set_clock_ahead(node),
            Kind::RightsGone => self.revoke_journal(),
            Kind::TablesAway => self.take_tables_away(),
            Kind::JournalLocked => self.lock_journal(fault.hold),
            Kind::NodeWithoutRedis => self.link(fault).refuse(),
        }
    }

    /// Repairs servers and links; the recovery of the nodes is up to them.
    pub(super) fn heal(&mut self, fault: &Fault) {
        let node = fault.node;
        match fault.kind {
            Kind::NodeKilled => self.launch(node),
            Kind::NodePaused => self.nodes[node].service.signal("CONT"),
            Kind::NodeRestarted => {
                self.nodes[node].service.has_ended_well();
                self.launch(node);
            }
            Kind::RedisRestarted | Kind::RedisAway => self.redis_mut().restart(),
            Kind::RedisRestartedEmpty => self.redis_mut().restart_empty(),
            Kind::RedisPaused => self.redis().signal("CONT"),
            Kind::RedisFull | Kind::RedisEvicts => {
                let unlimited = ["maxmemory", "0", "maxmemory-policy", "noeviction"];
                self.redis().cli(&[&["config", "set"], &unlimited[..]].concat());
            }
            Kind::ReplicaAttached => self.detach_replica(),
            Kind::RedisLinkDown
            | Kind::RedisLinkSlow
            | Kind::RedisAnswersLost
            | Kind::NodeWithoutRedis
            | Kind::LedgerLinkDown
            | Kind::LedgerLinkSlow
            | Kind::LedgerAnswersLost => self.link(fault).forward(),
            Kind::RedisUnreachable => self.links_to_redis().for_each(Proxy::forward),
            Kind::LedgerRestarted => self.ledger.server().restart(),
            Kind::SleeperReleased => self.nodes[node].service.signal("CONT"),
            Kind::FileMoved => (0..NODES).for_each(|node| self.launch(node)),
            Kind::ClockAhead => {
                self.nodes[node].service.kill();
                self.launch(node);
            }
            Kind::RightsGone => self.grant_journal(),
            Kind::TablesAway => self.bring_tables_back(),
            Kind::FileLocked => self.ledger.file().unlock(),
            Kind::FilePutBack | Kind::FilePutBackFlushed => {
                (0..NODES).for_each(|node| self.launch(node));
            }
            Kind::EverythingKilled | Kind::EverythingKilledEmpty => {
                self.ledger.restart();
                if fault.kind == Kind::EverythingKilled {
                    self.redis.iter_mut().for_each(Redis::restart);
                } else {
                    self.redis_mut().restart_empty();
                }
                (0..NODES).for_each(|node| self.launch(node));
            }
            Kind::Flushed
            | Kind::FailOver
            | Kind::StaleFailOver
            | Kind::CounterDeleted
            | Kind::CounterLowered
            | Kind::OutboxDeleted
            | Kind::RedisLinkCut
            | Kind::LedgerFailsOver
            | Kind::LedgerPutBack
            | Kind::FileReplaced
            | Kind::BranchPutBack
            | Kind::FileBranch
            // The session that holds it ends on its own.
            | Kind::JournalLocked
            | Kind::LedgerLinkCut => {}
        }
    }

    /// The link that a fault of a link works on.
    fn link(&self, fault: &Fault) -> &Proxy {
        let Links { to_redis, to_ledger, .. } = &self.nodes[fault.node].links;
        let is_to_redis = fault.kind.target() == Target::RedisLink;
        let link = if is_to_redis { to_redis } else { to_ledger };
        link.as_ref().expect("a plan has faults of links that there are")
    }

    /// The links of all nodes to Redis.
    fn links_to_redis(&self) -> impl Iterator<Item = &Proxy> {
        self.nodes.iter().filter_map(|node| node.links.to_redis.as_ref())
    }

    /// Ends the replica, and waits until the master has taken another identity for it: the
    /// consequences belong to this fault.
    fn detach_replica(&mut self) {
        let identity = |redis: &Redis| {
            let info = redis.cli(&["info", "replication"]);
            info.lines().find(|line| line.starts_with("master_replid:")).map(str::to_owned)
        };
        let before = identity(self.redis());
        self.replica = None;
        let deadline = Instant::now() + IDENTITY_LIMIT;
        while identity(self.redis()) == before && Instant::now() < deadline {
            std::thread::park_timeout(POLL);
        }
        self.redis().cli(&["config", "set", "repl-backlog-ttl", "3600"]);
    }

    /// Makes a replica the master while the old master dies; the replica is `lag` behind.
    async fn fail_over(&mut self, lag: Duration) {
        let replica = Redis::start_with(&REDIS_OPTIONS);
        replica.follow(self.redis());
        if lag > Duration::ZERO {
            self.redis().hold_replicas_back();
            tokio::time::sleep(lag).await;
        } else {
            self.redis().wait_for_copy(&replica);
        }
        self.redis_mut().kill();
        replica.promote();
        self.point_to(replica);
    }

    /// Makes a standby the primary while the old one dies; it lacks the latest commits.
    async fn ledger_fails_over(&mut self) {
        let standby = self.standby_that_lags().await;
        self.promote(standby);
    }

    /// A standby that lacks the latest commits.
    pub(super) async fn standby_that_lags(&mut self) -> Postgres {
        self.rest().await;
        let primary = self.ledger.server();
        let standby = primary.start_standby();
        standby.catch_up(primary);
        standby.fall_behind();
        tokio::time::sleep(LAG).await;
        standby
    }

    /// Makes it the primary while the old one dies.
    pub(super) fn promote(&mut self, standby: Postgres) {
        self.ledger.server().kill();
        standby.promote();
        self.point_to_ledger(standby);
    }

    /// Waits until every dead node is adopted, and one heartbeat longer. An adoption is not
    /// reported again: if the ledger forgets one, it waits for an operator, though all nodes live.
    pub(super) async fn rest(&self) {
        let dead = format!(
            "select 'too many' from {{}}.node where left_at_us is null and adopted_at_us is null \
             having count(*) > {NODES}"
        );
        let deadline = Instant::now() + ADOPTION_LIMIT;
        while !self.ledger.list(&dead).is_empty() && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
        }
        tokio::time::sleep(LAG).await;
    }

    /// Waits until every counter has begun: one that begins after a copy would be unknown to it.
    pub(super) async fn begin_counters(&self) {
        let deadline = Instant::now() + COUNTERS_LIMIT;
        let all = COUNTERS.to_string();
        while self.ledger.list("select count(*) from {}.counter") != all {
            assert!(Instant::now() < deadline, "not every counter has begun");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Copies the file, and lets numbers be issued that the copy lacks. It has all counters.
    async fn copy_file(&mut self) {
        self.begin_counters().await;
        self.ledger.file().copy();
        tokio::time::sleep(LAG).await;
    }

    /// Less memory than is in use.
    fn limit_memory(&self, policy: &str) {
        self.redis().cli(&["config", "set", "maxmemory", "1mb", "maxmemory-policy", policy]);
    }

    /// Runs a command on one of the keys that fit; without one there is nothing to do.
    fn on_one_key(&self, pattern: &str, pick: usize, command: &[&str], arguments: &[&str]) {
        let listing = self.redis().cli(&["--scan", "--pattern", pattern]);
        let mut keys: Vec<&str> = listing.lines().filter(|key| !key.is_empty()).collect();
        keys.sort_unstable();
        if !keys.is_empty() {
            let key = keys[pick % keys.len()];
            self.redis().cli(&[command, &[key], arguments].concat());
        }
    }
}
