//! A copy of the ledger that was held and released elsewhere, put in the place of a ledger that
//! continued (F36): it is another branch, however late its incarnation is, and an operator decides.

use std::path::Path;

use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;
use crate::load::open;
use crate::promotions::{LIMIT, numbers_of};
use crate::restored::{assert_held, assert_held_on_record, copy_ledger};

/// A release of a copy, as a trial whether a backup can be restored.
const REHEARSAL: [&str; 6] =
    ["reconcile", "--ledger-restored", "--hold", "--apply", "--margin", "0"];

/// A release that covers what the copy lacks.
const RELEASE: [&str; 5] = ["reconcile", "--ledger-restored", "--apply", "--margin", "10"];

/// Waits for two more heartbeats: what is confirmed after a copy can be missed.
async fn beat_twice(deployment: &Deployment) {
    let ledger = open(deployment).await;
    let highest = async || {
        let nodes = ledger.nodes().list().await.unwrap();
        nodes.iter().map(|node| node.beat).max().unwrap_or(0)
    };
    let before = highest().await;
    eventually(LIMIT, async || {
        let now = highest().await;
        if now < before + 2 { Err(format!("{before} {now}")) } else { Ok(()) }
    })
    .await;
}

/// A server on whose copy the ledger was released while this one continues, and what that issued.
struct Branched {
    production: Postgres,
    staging: Postgres,
    deployment: Deployment,
    service: Service,
    seen: Vec<String>,
}

impl Branched {
    async fn start() -> Self {
        let mut production = Postgres::start();
        let deployment = Deployment::new(&production.url("branch"), None);
        deployment.apply_load_series();
        let service = deployment.serve();
        let mut seen = numbers_of(&service, "LOAD", "before", 3).await;
        production.back_up();
        let staging = production.start_on_copy();
        let rehearsal = Deployment::new(&staging.url("branch"), None);
        rehearsal.ok(&REHEARSAL);
        seen.extend(numbers_of(&service, "LOAD", "on", 5).await);
        beat_twice(&deployment).await;
        Branched { production, staging, deployment, service, seen }
    }
}

/// Nothing that was issued comes again, once an operator has released the branch.
async fn assert_released(deployment: &Deployment, service: Service, mut seen: Vec<String>) {
    deployment.ok(&RELEASE);
    seen.extend(numbers_of(&service, "LOAD", "after", 3).await);
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "{seen:?}");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a running service that is led to the branch holds it. Method: the staging server's data
/// replaces production's.
#[tokio::test]
async fn restored_a_branch_that_takes_the_place_of_the_ledger_under_a_service_is_held() {
    let Branched { mut production, staging, deployment, service, seen } = Branched::start().await;
    production.take_data_of(staging);
    assert_held_on_record(&deployment, &service).await;
    assert_released(&deployment, service, seen).await;
}

/// Goal: the same while nothing runs: the next process knows by what the last one left next to its
/// data.
#[tokio::test]
async fn restored_a_branch_put_in_place_while_nothing_ran_is_held_before_the_first_number() {
    let Branched { mut production, staging, deployment, service, seen } = Branched::start().await;
    assert!(service.terminate());
    production.take_data_of(staging);
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    // Asked once more: the refusal has not given the branch to a process.
    let service = deployment.launch();
    assert_held(&service).await;
    assert_released(&deployment, service, seen).await;
}

/// Goal: a copy that lacks nothing is no branch: a ledger may be released where it was moved to.
/// Method: the copy is made once the service has ended, and released before it comes back.
#[tokio::test]
async fn restored_a_copy_that_lacks_nothing_goes_on_where_it_is_put() {
    let mut production = Postgres::start();
    let deployment = Deployment::new(&production.url("moved"), None);
    deployment.apply_load_series();
    let service = deployment.serve();
    let mut seen = numbers_of(&service, "LOAD", "before", 3).await;
    assert!(service.terminate());
    production.back_up();
    let staging = production.start_on_copy();
    let elsewhere = Deployment::new(&staging.url("moved"), None);
    elsewhere.ok(&REHEARSAL);
    production.take_data_of(staging);
    let service = deployment.serve();
    seen.extend(numbers_of(&service, "LOAD", "after", 1).await);
    assert_eq!(seen[3], "L-00000004", "{seen:?}");
    assert!(service.terminate());
}

/// Moves the copy to a place of its own and releases it there; returns its state.
async fn rehearse(copy: &Path) -> (Deployment, std::path::PathBuf) {
    let rehearsal = Deployment::embedded();
    let file = rehearsal.path("numerator.db");
    std::fs::rename(copy, &file).unwrap();
    rehearsal.ok(&REHEARSAL);
    let released = rehearsal.path("released.db");
    copy_ledger(&rehearsal, &released).await;
    (rehearsal, released)
}

/// Goal: the mark next to an embedded ledger knows its own line. Method: production's own mark
/// stays in place, its file is replaced by the one that was released elsewhere.
#[tokio::test]
async fn restored_a_file_that_was_released_elsewhere_is_held_beside_the_mark_of_another() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let mut seen = vec![next(), next()];
    copy_ledger(&deployment, &copy).await;
    seen.extend([next(), next()]);
    let (_rehearsal, released) = rehearse(&copy).await;
    crate::restored::put_in_place(&released, &file);
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    deployment.ok(&RELEASE);
    seen.push(next());
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 5, "{seen:?}");
}

/// Goal: a file from before two releases is held and released like any other: what is agreed on
/// then is later than all that its mark has seen. Method: a copy, two releases, the copy again.
#[tokio::test]
async fn restored_a_file_of_before_two_releases_is_held_and_can_be_released() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let mut seen = vec![next()];
    copy_ledger(&deployment, &copy).await;
    for _ in 0..2 {
        deployment.ok(&REHEARSAL);
        seen.push(next());
    }
    crate::restored::put_in_place(&copy, &file);
    assert!(!deployment.run(&["next", "LOAD"]).status.success());
    deployment.ok(&RELEASE);
    seen.push(next());
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// The same during a running service, whose file is replaced.
#[tokio::test]
async fn restored_a_file_that_was_released_elsewhere_is_held_under_a_running_service() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let service = deployment.serve();
    let mut seen = numbers_of(&service, "LOAD", "before", 2).await;
    copy_ledger(&deployment, &copy).await;
    let (_rehearsal, released) = rehearse(&copy).await;
    seen.extend(numbers_of(&service, "LOAD", "on", 3).await);
    beat_twice(&deployment).await;
    crate::restored::put_in_place(&released, &file);
    assert_held_on_record(&deployment, &service).await;
    assert_released(&deployment, service, seen).await;
}
