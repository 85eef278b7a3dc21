//! The last process to end leaves a SQLite ledger in one file: a copy of it alone has every number
//! (F38).

use std::fs::metadata;
use std::process::Command;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};
use testkit::eventually::eventually;
use testkit::load::{self, Running};
use testkit::redis::Redis;
use testkit::service::SQLITE_FILE;

use crate::deployment::Deployment;
use crate::restored::assert_held;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Fewer than make SQLite write its log back automatically.
const FEW: usize = 3;

/// More than that.
const MANY: usize = 2_500;

/// Bytes in the log next to the ledger; 0 if there is none.
fn left_in_log(deployment: &Deployment) -> u64 {
    metadata(deployment.path(&format!("{SQLITE_FILE}-wal"))).map_or(0, |found| found.len())
}

/// A copy of the ledger's file, in a deployment of its own, with no other file.
fn moved(deployment: &Deployment) -> Deployment {
    let other = Deployment::embedded();
    std::fs::copy(deployment.path(SQLITE_FILE), other.path(SQLITE_FILE)).unwrap();
    other
}

/// Numbers in a ledger's file alone.
fn numbers(deployment: &Deployment) -> usize {
    let alone = moved(deployment);
    let mut command = Command::new("sqlite3");
    command.arg(alone.path(SQLITE_FILE)).arg("select count(*) from journal");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim().parse().unwrap_or_else(|_| panic!("{text}{output:?}"))
}

#[track_caller]
fn assert_one_file(deployment: &Deployment, count: usize) {
    assert_eq!(left_in_log(deployment), 0, "bytes in the log");
    assert_eq!(numbers(deployment), count, "numbers in the file alone");
}

/// A service on SQLite takes numbers and is ended by a signal.
async fn leaves_one_file(signal: &str, count: usize, redis: Option<&Redis>) -> Deployment {
    let deployment = Deployment::sqlite(redis.map(Redis::url).as_deref());
    deployment.apply_load_series();
    let mut service = deployment.serve();
    load::documents(&service.url, 4, count as u64).await.assert_contiguous(count);
    service.signal(signal);
    assert!(service.has_ended_well(), "{}", service.log());
    assert_one_file(&deployment, count);
    deployment
}

#[tokio::test]
async fn a_stopped_service_leaves_one_file_and_moved_alone_it_issues_no_number_again() {
    leaves_one_file("INT", FEW, None).await;
    leaves_one_file("TERM", FEW, Some(&Redis::start())).await;
    for count in [FEW, MANY] {
        let deployment = leaves_one_file("TERM", count, None).await;
        let other = moved(&deployment);
        let service = other.launch();
        assert_held(&service).await;
        other.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "0"]);
        let (status, body) = eventually(LIMIT, async || {
            let taken = load::take(&testkit::client(), &service.url, "moved").await;
            if taken.0 == 201 { Ok(taken) } else { Err(format!("{taken:?}")) }
        })
        .await;
        let next = format!("L-{:08}", count + 1);
        assert_eq!((status, &body["document_number"]), (201, &next.into()), "{body}");
        assert!(service.terminate());
    }
}

#[tokio::test]
async fn the_last_of_two_services_leaves_one_file_though_both_stop_under_load_or_at_once() {
    for at_once in [false, true] {
        let deployment = Deployment::embedded();
        deployment.apply_load_series();
        let mut services = [deployment.serve(), deployment.serve()];
        let load = [(&services[0], "a"), (&services[1], "b")]
            .map(|(service, name)| Running::start_as(&service.url, 4, name));
        for running in &load {
            running.reach(50).await;
        }
        for service in &mut services {
            service.signal("TERM");
            if !at_once {
                assert!(service.has_ended_well(), "{}", service.log());
            }
        }
        for service in &mut services {
            assert!(service.has_ended_well(), "{}", service.log());
        }
        drop(load);
        let journaled = deployment.assert_clean()["totals"]["journal"].as_u64().unwrap();
        assert!(journaled >= 100, "{journaled}");
        assert_one_file(&deployment, usize::try_from(journaled).unwrap());
    }
}

#[tokio::test]
async fn every_command_leaves_one_file_whether_it_succeeds_is_refused_or_interrupted() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    assert_eq!(left_in_log(&deployment), 0, "after `series apply`");
    let list = deployment.path("list.csv");
    std::fs::write(&list, "number\nL-00000009\nX-1\n").unwrap();
    let list = list.display().to_string();
    let mut count = 0;
    for (arguments, takes, succeeds) in [
        (&["next", "LOAD"][..], 1, true),
        (&["next", "LOAD", "--count", "7"], 1, true),
        (&["next", "NONE"], 0, false),
        (&["status"], 0, true),
        (&["verify"], 0, true),
        (&["events"], 0, true),
        (&["migrate"], 0, true),
        (&["reconcile", "--apply"], 0, true),
        (&["drain", "--apply"], 0, true),
        (&["series", "apply", "/nowhere.toml"], 0, false),
        (&["series", "show", "NONE"], 0, false),
        (&["import", &list, "--type", "LOAD"], 0, false),
        (&["counters"], 0, true),
    ] {
        let output = deployment.run(arguments);
        assert_eq!(output.status.success(), succeeds, "{arguments:?}: {output:?}");
        count += takes;
        assert_eq!(left_in_log(&deployment), 0, "after {arguments:?}");
        assert_eq!(numbers(&deployment), count, "after {arguments:?}");
    }
    for (signal, code) in [("INT", 0), ("TERM", 143)] {
        // Its numbers are in the log as long as the watch has the file open.
        let log = deployment.path("watch.log");
        let mut watch = deployment.start(&["status", "--watch", "100ms"], &log);
        eventually(LIMIT, async || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.contains("numerator status at").then_some(()).ok_or(text)
        })
        .await;
        deployment.ok(&["next", "LOAD"]);
        count += 1;
        watch.signal(signal);
        let ended = watch.wait(LIMIT).expect("it ends");
        assert_eq!(ended.code(), Some(code), "{signal}: {ended:?}");
        assert_one_file(&deployment, count);
    }
    // It reads standard input, and receives the signal nevertheless.
    let mut command = deployment.command(&["import", "-", "--type", "LOAD"]);
    let mut import = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    // A parent that waits for a process closes its input.
    let _input = import.stdin.take();
    eventually(LIMIT, async || {
        let is_open = metadata(deployment.path(&format!("{SQLITE_FILE}-shm"))).is_ok();
        is_open.then_some(()).ok_or("it has not opened the ledger".to_owned())
    })
    .await;
    deployment.ok(&["next", "LOAD"]);
    assert!(Command::new("kill").arg(import.id().to_string()).status().unwrap().success());
    assert_eq!(import.wait().unwrap().code(), Some(143));
    assert_one_file(&deployment, count + 1);
}

#[tokio::test]
async fn whoever_reads_keeps_the_log_and_the_next_command_after_it_leaves_one_file() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    let service = deployment.serve();
    let options = SqliteConnectOptions::new().filename(deployment.path(SQLITE_FILE));
    let mut reader: SqliteConnection = options.read_only(true).connect().await.unwrap();
    let mut tx = reader.begin().await.unwrap();
    let seen = "select count(*) from journal";
    assert_eq!(sqlx::query_scalar::<_, i64>(seen).fetch_one(&mut *tx).await.unwrap(), 1);
    load::documents(&service.url, 4, FEW as u64).await;
    assert!(service.terminate(), "nobody waits for a reader");
    assert_ne!(left_in_log(&deployment), 0);
    tx.rollback().await.unwrap();
    reader.close().await.unwrap();
    deployment.ok(&["status"]);
    assert_one_file(&deployment, FEW + 1);
}

#[tokio::test]
async fn a_file_that_a_killed_service_leaves_shows_without_its_log_and_mark_that_it_is_a_ledger() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let mut service = deployment.serve();
    load::documents(&service.url, 4, FEW as u64).await.assert_contiguous(FEW);
    service.kill();
    assert_ne!(left_in_log(&deployment), 0, "the numbers are there");
    let other = moved(&deployment);
    let service = other.launch();
    assert_held(&service).await;
}
