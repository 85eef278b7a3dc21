//! What a walk through the runbook does by other means to processes and to holders of locks.

use std::time::{Duration, Instant};

use testkit::load::Running;

use super::set::Blind;
use super::{LIMIT, RETURN_AFTER, SCHEMA, Scene};
use crate::deployment::Deployment;

impl Scene {
    /// From here on new processes, and commands, know of no Redis.
    pub(super) fn take_redis_out(&mut self) {
        let url = self.deployment.database_url().to_owned();
        let mut without = Deployment::new(&url, None);
        without.extra = self.deployment.extra.replace(RETURN_AFTER, "");
        let before = std::mem::replace(&mut self.deployment, without);
        // Earlier processes have their files there.
        self.before = Some(before);
    }

    /// What is done to processes.
    pub(super) async fn act_on_nodes(&mut self, what: &str) {
        match what {
            "a node is stopped with SIGTERM and its next version started" => {
                let next = self.deployment.serve();
                let node = self.nodes.remove(0);
                let load = self.load.take().expect("a load");
                load.finish().await.assert_no_duplicate();
                assert!(node.terminate(), "a node that is told to end exits 0");
                // Documents of its own.
                let name = if self.is_upgraded { "second" } else { "first" };
                self.is_upgraded = true;
                self.load = Some(Running::start_calm(&next.url, 4, name, &self.token));
                self.nodes.push(next);
            }
            "all nodes are stopped with SIGTERM" => {
                self.load.take().expect("a load").finish().await.assert_no_duplicate();
                for node in self.nodes.drain(..) {
                    assert!(node.terminate(), "a node that is told to end exits 0");
                }
            }
            "a process is started whose redis.url leads nowhere" => {
                self.blind = Some(Blind::start(&self.deployment));
            }
            "that process is stopped" => self.blind.take().expect("one").stop(),
            "a process is started" => self.nodes.push(self.deployment.serve()),
            "a process dies" => {
                self.nodes.pop().expect("a node").kill();
                self.registered(self.nodes.len()).await;
            }
            "all processes die" => {
                self.nodes.drain(..).for_each(|mut node| node.kill());
                self.load.take().expect("a load").finish().await.assert_no_duplicate();
            }
            "a process dies, and Redis loses its data" => {
                self.nodes.pop().expect("a node").kill();
                self.redis.flushall();
                let closed = "select count(*) > 0 from runbook.closed_epoch \
                              where closing = 'ceiling'";
                self.until(closed, "t").await;
            }
            other => panic!("the runbook says {other:?}, and this test does not know it"),
        }
    }

    /// Locks the rows of all counters until `holder` ends, and waits until a session waits for it.
    pub(super) async fn hold_counters(&mut self) {
        let pool = sqlx::PgPool::connect(&self.postgres.url(SCHEMA)).await.expect("the ledger");
        let mut holder = pool.begin().await.expect("a transaction");
        let lock = sqlx::query("select 1 from counter for update").execute(&mut *holder);
        lock.await.expect("locked");
        self.holder = Some(holder);
        let waiting = "select count(*) > 0 from pg_stat_activity \
                       where datname = 'postgres' and cardinality(pg_blocking_pids(pid)) > 0";
        self.until(waiting, "t").await;
    }

    /// The same in another database of the server, which does not concern the ledger. It began
    /// earlier than all sessions here.
    pub(super) async fn hold_elsewhere(&mut self) {
        self.postgres.sql("create database elsewhere");
        let url = self.postgres.url(SCHEMA).replace("/postgres?", "/elsewhere?");
        let pool = sqlx::PgPool::connect(&url).await.expect("another database");
        let mut holder = pool.begin().await.expect("a transaction");
        let lock = "select pg_advisory_xact_lock(1)";
        sqlx::query(lock).execute(&mut *holder).await.expect("locked");
        self.elsewhere = Some(holder);
        tokio::spawn(async move { sqlx::query(lock).execute(&pool).await });
        let waiting = "select count(*) > 0 from pg_stat_activity \
                       where datname = 'elsewhere' and cardinality(pg_blocking_pids(pid)) > 0";
        self.until(waiting, "t").await;
    }

    /// The session that held rows of counters was ended, and the other one was not.
    pub(super) async fn holder_is_gone(&mut self) {
        // The server has ended its session: there is nothing to roll back.
        let (mut holder, deadline) =
            (self.holder.take().expect("a holder"), Instant::now() + LIMIT);
        while sqlx::query("select 1").execute(&mut *holder).await.is_ok() {
            assert!(Instant::now() < deadline, "it holds them still");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let mut elsewhere = self.elsewhere.take().expect("a holder");
        sqlx::query("select 1").execute(&mut *elsewhere).await.expect("it was left alone");
    }
}
