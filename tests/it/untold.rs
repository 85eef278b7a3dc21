//! What `status` and related commands report of a ledger that takes no heartbeats: no node is dead
//! because of that, and what could not be seen is named.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use testkit::eventually::eventually;
use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::{Deployment, program};
use crate::machine::SmallDisk;

/// How long something may take to show on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a command; its exit code, and what it prints.
fn run(deployment: &Deployment, arguments: &[&str]) -> (i32, String) {
    let output = deployment.run(arguments);
    let told =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    (output.status.code().unwrap(), told.join("\n"))
}

/// Waits until a command exits like this and prints this; returns its output.
async fn until(deployment: &Deployment, arguments: &[&str], code: i32, part: &str) -> String {
    eventually(LIMIT, async || match run(deployment, arguments) {
        (exit, told) if exit == code && told.contains(part) => Ok(told),
        (exit, told) => Err(format!("{arguments:?}: {exit}, not {code} with {part:?}: {told}")),
    })
    .await
}

/// What no command may report of processes that live.
fn assert_nobody_is_dead(told: &str) {
    for lie in ["no process runs", "silent", "no service runs", "all is well"] {
        assert!(!told.contains(lie), "{lie}: {told}");
    }
}

/// Goal: a PostgreSQL that only reads. Method: the server's own setting, under two services.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_dead_on_a_postgres_that_is_read_only() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("readonly"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let (one, other) = (deployment.serve(), deployment.serve());
    until(&deployment, &["status"], 0, "alive").await;
    let read_only = |switch: &str| {
        postgres.sql(&format!("alter system set default_transaction_read_only = {switch}"));
        postgres.sql("select pg_reload_conf()");
    };
    read_only("on");
    let page = until(&deployment, &["status"], 2, "cannot tell").await;
    assert_nobody_is_dead(&page);
    assert!(page.contains("read-only"), "{page}");
    let (code, told) = run(&deployment, &["status", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((code, &told["verdict"]), (2, &"cannot-tell".into()), "{told}");
    assert!(told["reasons"].to_string().contains("read-only"), "{told}");
    assert!(told["nodes"].as_array().unwrap().iter().all(|node| node["alive"].is_null()), "{told}");
    for command in
        [&["reconcile"][..], &["drain"], &["drain", "--apply"], &["reconcile", "--apply"]]
    {
        let (_, told) = run(&deployment, command);
        assert_nobody_is_dead(&told);
    }
    let (code, told) = run(&deployment, &["reconcile"]);
    assert!(code == 1 && told.contains("cannot tell"), "{code}: {told}");
    read_only("off");
    until(&deployment, &["status"], 0, "alive").await;
    let (code, _) = run(&deployment, &["reconcile"]);
    assert_eq!(code, 0);
    assert!(one.terminate() && other.terminate());
    until(&deployment, &["status"], 1, "no process runs").await;
}

/// Goal: a database in which no heartbeat can be written, for lack of room, though it is not
/// read-only. Method: a trigger that fails as a full disk does.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_dead_where_no_heartbeat_finds_room() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("room"), None);
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    let (_one, mut other) = (deployment.serve(), deployment.serve());
    until(&deployment, &["status"], 0, "all is well").await;
    full(&postgres, "room", "node", "update");
    let page = until(&deployment, &["status"], 2, "cannot tell").await;
    assert_nobody_is_dead(&page);
    assert!(page.contains("No space left"), "{page}");
    let (code, told) = run(&deployment, &["reconcile"]);
    assert!(code == 1 && told.contains("cannot tell"), "{code}: {told}");
    assert_nobody_is_dead(&told);
    postgres.sql("drop trigger full_disk on room.node");
    other.kill();
    // One node is dead now, and the other one handles that.
    until(&deployment, &["status"], 0, "all is well").await;
}

/// A table fails from now on as on a full disk.
fn full(postgres: &Postgres, schema: &str, table: &str, what: &str) {
    postgres.sql(&format!(
        "create or replace function {schema}.full_disk() returns trigger language plpgsql as \
         $$ begin raise exception 'could not extend file: No space left on device' \
         using errcode = '53100'; end $$; create trigger full_disk before {what} \
         on {schema}.{table} for each row execute function {schema}.full_disk()"
    ));
}

/// Goal: the journal's disk is full, and heartbeats continue. Method: the same trigger there, under
/// a load whose numbers Redis takes.
#[tokio::test(flavor = "multi_thread")]
async fn status_names_the_process_that_cannot_journal_and_why() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("behind"), Some(&redis.url()));
    deployment.apply_load_series();
    let gapless = deployment.series_file("GAP", "G-{SEQ:8}", "policy = \"gapless\"");
    deployment.apply(&[gapless]);
    let service = deployment.serve();
    let load = Running::start(&service.url, 4);
    load.reach(100).await;
    until(&deployment, &["status"], 0, "alive").await;
    full(&postgres, "behind", "journal", "insert");
    let page = until(&deployment, &["status"], 1, "No space left").await;
    assert!(page.contains(&format!("/{} ", service.id())), "{page}");
    let (code, told) = run(&deployment, &["status", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((code, &told["verdict"]), (1, &"something-to-do".into()), "{told}");
    postgres.sql("drop trigger full_disk on behind.journal");
    until(&deployment, &["status"], 0, "alive").await;
    load.finish().await.assert_no_duplicate();
    // Gapless alone: nothing lags, and callers are refused.
    full(&postgres, "behind", "journal", "insert");
    let client = testkit::client();
    let asked = serde_json::json!({ "type": "GAP" });
    let url = format!("{}/api/v1/documents/g1/generate-number", service.url);
    let (status, body) = testkit::load::post(&client, &url, &asked).await;
    assert!(status >= 500, "{status} {body}");
    until(&deployment, &["status"], 1, "No space left").await;
    postgres.sql("drop trigger full_disk on behind.journal");
    until(&deployment, &["status"], 0, "alive").await;
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a SQLite ledger whose disk is full, then one that may only be read. Method: a small file
/// system in memory, filled, then mounted anew.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_dead_on_a_sqlite_file_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path().join("disk")) else {
        println!("NOT RUN: a SQLite file that cannot be written (no tmpfs may be mounted)");
        return;
    };
    let url = format!("sqlite:{}", disk.path().join("ledger.db").display());
    let mut deployment = Deployment::of(program(), &url, None);
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let service = deployment.serve();
    until(&deployment, &["status"], 0, "all is well").await;
    disk.fill();
    let load = Running::start(&service.url, 2);
    let page = until(&deployment, &["status"], 2, "full").await;
    assert_nobody_is_dead(&page);
    let (code, told) = run(&deployment, &["reconcile"]);
    assert!(code == 1, "{told}");
    assert_nobody_is_dead(&told);
    disk.make_room();
    load.reach(50).await;
    until(&deployment, &["status"], 0, "all is well").await;
    load.finish().await.assert_no_duplicate();
    let remount = |how: &str| {
        let mount =
            Command::new("mount").args(["-o", &format!("remount,{how}")]).arg(disk.path()).output();
        assert!(mount.as_ref().is_ok_and(|done| done.status.success()), "{mount:?}");
    };
    assert!(service.terminate());
    remount("ro");
    for command in [&["status"][..], &["status", "--json"]] {
        let (code, told) = run(&deployment, command);
        assert!(code == 2 && told.to_lowercase().contains("read-only"), "{code}: {told}");
        assert_nobody_is_dead(&told);
    }
    remount("rw");
    deployment.assert_clean();
}
