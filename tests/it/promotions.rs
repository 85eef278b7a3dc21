//! A ledger that fails over to a standby that lags, with all processes alive and with none (F25):
//! the last commits are gone, less than a heartbeat of them, and nobody's own marks need be.

use std::time::Duration;

use harness::load;
use harness::postgres::Postgres;
use harness::proxy::Proxy;
use harness::redis::Redis;
use harness::service::Service;
use tokio::time::Instant;

use crate::deployment::{Deployment, program_with};
use crate::restored::{assert_clean, assert_held, copy_ledger, put_in_place};

/// The URL of a schema behind a proxy, which leads to the primary of the day.
fn behind(postgres: &Postgres, proxy: &Proxy) -> String {
    postgres.url_by(proxy.port(), "promoted")
}

/// How soon a process goes on after a release: with its next heartbeat, and a little later.
const LIMIT: Duration = Duration::from_secs(30);

/// What a document's request is answered once its service issues again.
async fn answer(service: &Service, document: &str) -> (u16, String) {
    let client = reqwest::Client::new();
    let deadline = Instant::now() + LIMIT;
    loop {
        let (status, body) = load::take(&client, &service.url, document).await;
        if let Some(number) = body["document_number"].as_str() {
            return (status, number.to_owned());
        }
        assert!(status == 503 && Instant::now() < deadline, "{status} {body} {}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Numbers for so many documents of a name, one after the other.
async fn numbers(service: &Service, name: &str, count: usize) -> Vec<String> {
    let mut numbers = Vec::new();
    for place in 0..count {
        let (status, number) = answer(service, &format!("{name}-{place}")).await;
        assert_eq!(status, 201, "{number}");
        numbers.push(number);
    }
    numbers
}

/// Numbers on a primary whose standby does not get the last of them; then that one is the ledger.
/// Another service lost nothing: it asked for nothing, and beats as before.
async fn the_standby_is_promoted(redis: Option<&Redis>, options: &[&str]) {
    let mut primary = Postgres::start();
    let proxy = Proxy::start(primary.port());
    let url = behind(&primary, &proxy);
    // No beat lies between: what is lost shows in no count.
    let program = program_with(&[
        "NUMERATOR__NODE__HEARTBEAT=4s".to_owned(),
        "NUMERATOR__NODE__TTL=20s".to_owned(),
    ]);
    let redis_url = redis.map(Redis::url);
    let deployment = Deployment::of(program, &url, redis_url.as_deref());
    deployment.apply_load_series();
    let (one, other) = (deployment.serve(), deployment.serve());
    let mut seen = numbers(&one, "before", 3).await;
    let standby = primary.start_standby();
    standby.catch_up(&primary);
    standby.fall_behind();
    seen.extend(numbers(&one, "lost", 2).await);
    primary.kill();
    standby.promote();
    proxy.retarget(standby.port());
    // Neither the one that lost commits nor the one that did not.
    assert_held(&other).await;
    assert_held(&one).await;
    let arguments = [&["reconcile", "--ledger-restored", "--apply", "--json"], options].concat();
    let released = deployment.ok(&arguments);
    assert!(released.contains("\"released\""), "{released}");
    // It has been told again what it lost: the documents have their numbers.
    for place in 0..2 {
        let told = answer(&other, &format!("lost-{place}")).await;
        assert_eq!(told, (200, seen[3 + place].clone()));
    }
    seen.extend(numbers(&other, "other", 3).await);
    seen.extend(numbers(&one, "after", 3).await);
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "{seen:?}");
    assert!(one.terminate() && other.terminate());
    assert_clean(&deployment);
    let journaled = standby.sql("select number from promoted.journal");
    let journaled: Vec<&str> = journaled.lines().collect();
    assert!(seen.iter().all(|number| journaled.contains(&&**number)), "{seen:?} {journaled:?}");
}

#[tokio::test]
async fn a_standby_that_lags_less_than_a_heartbeat_is_promoted_and_no_number_comes_twice() {
    the_standby_is_promoted(None, &["--margin", "0"]).await;
}

#[tokio::test]
async fn the_same_under_redis_where_the_seed_of_a_counter_is_among_what_was_lost() {
    let redis = Redis::start();
    the_standby_is_promoted(Some(&redis), &["--margin", "0"]).await;
}

/// Goal: a dump put in place while nothing ran is found by whoever comes first. Method: numbers
/// after the dump; the path has no witness but the ledger.
#[tokio::test]
async fn a_dump_put_back_while_nothing_ran_is_held_before_the_first_number() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("dumped"), None);
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    assert_eq!((next(), next()), ("L-00000001\n".into(), "L-00000002\n".into()));
    postgres.dump("dumped");
    assert_eq!(next(), "L-00000003\n");
    postgres.put_back("dumped");
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    let arguments = ["reconcile", "--ledger-restored", "--apply", "--margin", "1"];
    deployment.ok(&arguments);
    assert_eq!(next(), "L-00000004\n");
}

/// Goal: files of the same timeline tell nothing; what the last process left beside its data does.
#[tokio::test]
async fn files_put_back_while_nothing_ran_are_held_before_the_first_number() {
    let mut postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("files"), None);
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    assert_eq!((next(), next()), ("L-00000001\n".into(), "L-00000002\n".into()));
    postgres.back_up();
    assert_eq!(next(), "L-00000003\n");
    postgres.restore();
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "1"]);
    assert_eq!(next(), "L-00000004\n");
}

/// Goal: the embedded ledger has no server to ask, and its file may be copied by anybody. Method:
/// an older copy, then none at all.
#[tokio::test]
async fn an_older_file_put_back_while_nothing_ran_is_held_before_the_first_number() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    assert_eq!((next(), next()), ("L-00000001\n".into(), "L-00000002\n".into()));
    copy_ledger(&deployment, &copy).await;
    assert_eq!(next(), "L-00000003\n");
    put_in_place(&copy, &file);
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "1"]);
    assert_eq!(next(), "L-00000004\n");

    std::fs::remove_file(&file).unwrap();
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("numerator.db.mark"), "{says}");
    std::fs::remove_file(deployment.path("numerator.db.mark")).unwrap();
    deployment.apply_load_series();
    assert_eq!(next(), "L-00000001\n");
}
