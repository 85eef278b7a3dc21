//! Releases in which Redis alone cannot show how far the counters came: each needs a margin.

use std::time::Duration;

use numerator::ledger::{At, Owner, Partition, PartitionState, SharedLedger};
use numerator::redis::{Frozen, Keys, RedisSettings};
use testkit::eventually::eventually;
use testkit::load;
use testkit::redis::Redis;
use testkit::service::Service;

use super::reach_journal;
use crate::deployment::Deployment;
use crate::load::open;

/// Numbers in the copy of the ledger, and after it.
const COPIED: u64 = 3;
const FORGOTTEN: u64 = 12;

/// A release of all partitions, which only the operator has held.
const RELEASE: [&str; 4] = ["reconcile", "--ledger-restored", "--hold", "--apply"];

/// A service on Redis, a copy of its ledger after the first numbers, and what was handed out.
struct Scene {
    redis: Redis,
    deployment: Deployment,
    service: Service,
    ledger: SharedLedger,
    seen: load::Seen,
}

impl Scene {
    async fn start() -> Self {
        let redis = Redis::start();
        let mut deployment = Deployment::sqlite(Some(&redis.url()));
        // Continues the section of the URL.
        deployment.extra = "return_after = \"100ms\"\n".into();
        deployment.apply_load_series();
        let service = deployment.serve();
        let seen = load::documents(&service.url, 1, COPIED).await;
        reach_journal(&deployment, COPIED).await;
        let ledger = open(&deployment).await;
        let scene = Scene { redis, deployment, service, ledger, seen };
        let pool = sqlx::SqlitePool::connect(scene.deployment.database_url()).await.unwrap();
        let copied = format!("vacuum into '{}'", scene.deployment.path("copy.db").display());
        sqlx::query(sqlx::AssertSqlSafe(copied)).execute(&pool).await.unwrap();
        pool.close().await;
        scene
    }

    /// Takes what the copy does not have.
    async fn take(&mut self) {
        let all = load::documents(&self.service.url, 1, COPIED + FORGOTTEN).await;
        let copied = self.seen.numbers.len();
        self.seen.numbers.extend(all.numbers.into_iter().skip(copied));
    }

    /// The partition of the series under load.
    async fn row(&self) -> Partition {
        let home = self.ledger.series().list().await.unwrap()[0].partition;
        let rows = self.ledger.partitions().await.unwrap();
        rows.into_iter().find(|row| row.partition == home).unwrap()
    }

    async fn reach(&self, is_there: impl Fn(&Partition) -> bool) {
        eventually(Duration::from_secs(20), async || {
            let row = self.row().await;
            let is_reached = row.state == PartitionState::Open && is_there(&row);
            is_reached.then_some(()).ok_or_else(|| format!("{row:?} {}", self.service.log()))
        })
        .await;
    }

    /// Ends the service and replaces the ledger by the copy.
    fn put_back(self) -> Ended {
        let Scene { redis, deployment, service, seen, .. } = self;
        assert!(service.terminate());
        let file = deployment.path("numerator.db");
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", file.display()));
        }
        std::fs::rename(deployment.path("copy.db"), file).unwrap();
        Ended { redis, deployment, seen }
    }
}

/// What is left: the restored ledger, and Redis.
struct Ended {
    redis: Redis,
    deployment: Deployment,
    seen: load::Seen,
}

impl Ended {
    /// No release without a margin, with the reason; with it no number comes twice.
    async fn assert_needs_a_margin(mut self, why: &str) {
        let output = self.deployment.run(&RELEASE);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "released without a margin");
        assert!(error.contains("--margin") && error.contains(why), "{error}");
        let looked = self.deployment.ok(&["reconcile", "--ledger-restored"]);
        assert!(looked.contains(why) && looked.contains("newest record"), "{looked}");
        let margin = FORGOTTEN.to_string();
        self.deployment.ok(&[&RELEASE[..], &["--margin", &margin]].concat());
        let service = self.deployment.serve();
        let load = load::Running::start_as(&service.url, 1, "after");
        load.reach(FORGOTTEN).await;
        self.seen.numbers.extend(load.finish().await.numbers);
        assert!(service.terminate());
        self.seen.assert_no_duplicate();
        self.deployment.assert_clean();
    }
}

/// Method: a planned restart of Redis by the book, between the copy and its return.
#[tokio::test]
async fn an_epoch_of_the_database_in_between_needs_a_margin() {
    let mut scene = Scene::start().await;
    scene.deployment.ok(&["fallback", "on"]);
    scene.take().await;
    scene.deployment.ok(&["fallback", "off"]);
    scene.reach(|row| matches!(row.owner, Owner::Redis { .. })).await;
    assert_eq!(scene.row().await.epoch, 3);
    scene.put_back().assert_needs_a_margin("only since epoch 3").await;
}

/// Method: Redis takes all numbers, but forgets; what was not touched since is in it no more.
#[tokio::test]
async fn a_redis_that_was_flushed_in_between_needs_a_margin() {
    let mut scene = Scene::start().await;
    scene.take().await;
    scene.redis.flushall();
    scene.deployment.ok(&["reconcile", "--new-epoch", "--apply"]);
    // The service may have noticed on its own.
    scene.reach(|row| row.epoch > 1).await;
    scene.put_back().assert_needs_a_margin("only since epoch").await;
}

/// Method: the database has the last numbers, while Redis continues to show its own epoch as open.
#[tokio::test]
async fn an_epoch_of_the_database_after_the_last_of_redis_needs_a_margin() {
    let mut scene = Scene::start().await;
    scene.deployment.ok(&["fallback", "on"]);
    scene.take().await;
    scene.put_back().assert_needs_a_margin("vouches").await;
}

/// Method: a node saw a later epoch than Redis; a release is given up after its seal.
#[tokio::test]
async fn a_release_that_was_given_up_needs_its_margin_again() {
    let scene = Scene::start().await;
    let At { partition, epoch } = at(&scene.row().await);
    let ended = scene.put_back();
    let ledger = open(&ended.deployment).await;
    ledger.hold_all(&[At { partition, epoch: epoch + 1 }], "test").await.unwrap();
    let apply = || {
        let output = ended.deployment.run(&["reconcile", "--ledger-restored", "--apply"]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_released, error) = apply();
    assert!(!is_released && error.contains("--margin"), "{error}");

    let (command_timeout, reconnect_max) = (Duration::from_secs(5), Duration::from_millis(50));
    let url = ended.redis.url();
    let settings = RedisSettings { url, command_timeout, reconnect_max };
    let redis = numerator::redis::Redis::start(&settings).unwrap();
    let pool = sqlx::SqlitePool::connect(ended.deployment.database_url()).await.unwrap();
    let (id, prefix): (Vec<u8>, String) =
        sqlx::query_as("select deployment_id, prefix from deployment")
            .fetch_one(&pool)
            .await
            .unwrap();
    let deployment = uuid::Uuid::from_slice(&id).unwrap().to_string();
    let sealed =
        redis.freeze(&Keys::new(&prefix), partition, &deployment, epoch + 2).await.unwrap();
    assert_eq!(sealed, Frozen::Frozen);
    redis.stop().await;
    let (is_released, error) = apply();
    assert!(!is_released && error.contains("--margin"), "the seal is read as redis's own: {error}");
}

fn at(row: &Partition) -> At {
    At { partition: row.partition, epoch: row.epoch }
}

/// A monitor that runs `verify` learns of a held ledger.
#[tokio::test]
async fn a_held_ledger_is_not_clean() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    deployment.assert_clean();
    open(&deployment).await.hold_all(&[], "test").await.unwrap();
    let (clean, report) = deployment.verify();
    assert!(!clean, "{report}");
    assert_eq!(report["held"].as_array().map(Vec::len), Some(9), "{report}");
    let output = deployment.run(&["verify"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("held") && text.contains("--ledger-restored"), "{text}");
}
