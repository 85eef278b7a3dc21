//! A process that slept while the ledger went back, was held and was released (F35): it reports
//! what it remembers before it takes, and its own numbers never come again.

use std::sync::Arc;

use numerator::clock::SystemClock;
use numerator::engine::node::{LastSeenFile, Membership, ProcessSettings};
use numerator::ledger::{LedgerError, Owner, Partition, PartitionState};
use numerator::node::system_random;
use testkit::eventually::eventually;
use testkit::redis::Redis;
use tokio::time::Instant;

use crate::deployment::Deployment;
use crate::load::open;
use crate::promotions::{LIMIT, Lagging, answer_of, numbers_of, says};
use crate::restored::{assert_held, copy_ledger, put_in_place};

/// A release whose margin is wider than what is lost.
const RELEASE: [&str; 5] = ["reconcile", "--ledger-restored", "--apply", "--margin", "100"];

/// What a process logs once the ledger has what it remembers.
const TOLD: &str = "the ledger got its newest records again";

/// Goal: numbers that a sleeper had answered are in the ledger once it is awake, and each retry
/// gets its own. Method: the primary is lost with its last commits while their process is stopped;
/// the standby is released by an operator before that process continues.
async fn a_sleeper_tells(redis: Option<&Redis>) {
    let mut lagging = Lagging::start(redis).await;
    lagging.one.signal("STOP");
    lagging.fail_over();
    assert_held(&lagging.other).await;
    lagging.deployment.ok(&RELEASE);
    let (_, first) = answer_of(&lagging.other, "LOAD", "first").await;
    assert!(first > lagging.seen[4], "the margin covers what is lost: {first}");
    lagging.seen.push(first);
    lagging.one.signal("CONT");
    says(&lagging.one, TOLD).await;
    for place in 0..2 {
        let again = answer_of(&lagging.one, "LOAD", &format!("lost-{place}")).await;
        assert_eq!(again, (200, lagging.seen[3 + place].clone()), "{}", lagging.one.log());
    }
    lagging.assert_well().await;
}

#[tokio::test]
async fn restored_a_sleeper_tells_the_ledger_of_the_database_path_what_it_lacks() {
    a_sleeper_tells(None).await;
}

#[tokio::test]
async fn restored_a_sleeper_under_redis_tells_the_ledger_what_it_lacks() {
    let redis = Redis::start();
    a_sleeper_tells(Some(&redis)).await;
}

/// Goal: if a counter began in the moment that is lost, no margin covers it. The sleeper's numbers
/// that were issued again meanwhile are reported as collisions, and no process issues another of
/// them. Method: as above; the first numbers of a series are among what is lost.
#[tokio::test]
async fn restored_a_sleeper_never_issues_its_own_numbers_again() {
    let mut lagging = Lagging::start(None).await;
    let mine = numbers_of(&lagging.one, "FRESH", "mine", 3).await;
    assert_eq!(mine, ["F-0001", "F-0002", "F-0003"]);
    lagging.one.signal("STOP");
    lagging.fail_over();
    assert_held(&lagging.other).await;
    lagging.deployment.ok(&RELEASE);
    // No process that is awake knows of the counter.
    assert_eq!(numbers_of(&lagging.other, "FRESH", "again", 1).await, ["F-0001"]);
    lagging.one.signal("CONT");
    says(&lagging.one, TOLD).await;
    assert!(lagging.one.log().contains("DUPLICATE"), "{}", lagging.one.log());
    let mut later = numbers_of(&lagging.one, "FRESH", "one", 2).await;
    later.extend(numbers_of(&lagging.other, "FRESH", "other", 2).await);
    later.sort();
    assert_eq!(later, ["F-0004", "F-0005", "F-0006", "F-0007"]);
    // What it reported is there: a retry gets what it got.
    assert_eq!(answer_of(&lagging.other, "FRESH", "mine-1").await, (200, "F-0002".into()));
    let Lagging { one, other, .. } = lagging;
    assert!(one.terminate() && other.terminate());
}

/// Waits until Redis owns every partition except that of gapless series.
async fn reach_redis(lagging: &Lagging) {
    let ledger = open(&lagging.deployment).await;
    eventually(LIMIT, async || {
        let rows = ledger.partitions().await.unwrap();
        let of_redis = |row: &&Partition| {
            row.state == PartitionState::Open && matches!(row.owner, Owner::Redis { .. })
        };
        let count = rows.iter().filter(of_redis).count();
        if count + 1 == rows.len() { Ok(()) } else { Err(format!("{rows:?}")) }
    })
    .await;
}

/// Goal: the same if Redis owns the partition by the time that the sleeper reports: Redis counts
/// below what is reported, so its epoch ends. Method: the numbers were taken from the database, and
/// Redis takes over after the release.
#[tokio::test]
async fn restored_an_epoch_of_redis_that_counts_below_what_a_sleeper_tells_ends() {
    let redis = Redis::start();
    let mut lagging = Lagging::start_in_database(&redis).await;
    let mine = numbers_of(&lagging.one, "FRESH", "mine", 3).await;
    assert_eq!(mine, ["F-0001", "F-0002", "F-0003"]);
    lagging.one.signal("STOP");
    lagging.fail_over();
    assert_held(&lagging.other).await;
    lagging.deployment.ok(&RELEASE);
    lagging.deployment.ok(&["fallback", "off"]);
    reach_redis(&lagging).await;
    assert_eq!(numbers_of(&lagging.other, "FRESH", "again", 1).await, ["F-0001"]);
    lagging.one.signal("CONT");
    says(&lagging.one, TOLD).await;
    let mut later = numbers_of(&lagging.one, "FRESH", "one", 2).await;
    later.extend(numbers_of(&lagging.other, "FRESH", "other", 2).await);
    later.sort();
    assert_eq!(later, ["F-0004", "F-0005", "F-0006", "F-0007"]);
    let Lagging { one, other, .. } = lagging;
    assert!(one.terminate() && other.terminate());
}

/// Goal: an answer that was under way while its process slept is discarded, if the ledger has been
/// held meanwhile. Method: the moment at which it was asked for is given.
#[tokio::test]
async fn restored_an_answer_of_before_a_sleep_is_compared_with_the_ledger_of_now() {
    let deployment = Deployment::sqlite(None);
    let (ledger, other) = (open(&deployment).await, open(&deployment).await);
    let last_seen_file = LastSeenFile::within(&deployment.path("data"), system_random());
    let bounds = ProcessSettings::default();
    let joining = Membership::join(ledger, Arc::new(SystemClock), last_seen_file, &bounds);
    let membership = joining.await.unwrap();
    let (node, now) = (membership.node(), Instant::now());
    let long_ago = now.checked_sub(bounds.node_ttl).expect("the machine runs for longer");
    membership.must_not_have_slept(long_ago, node).await.unwrap();
    other.hold_all(&[], "somebody says so").await.unwrap();
    membership.must_not_have_slept(now, node).await.unwrap();
    let late = membership.must_not_have_slept(long_ago, node).await;
    let is_in_doubt = matches!(late, Err(LedgerError::Unreachable { maybe_written: true, .. }));
    assert!(is_in_doubt, "{late:?}");
}

/// Goal: the same for the embedded ledger. Method: an older file replaces the ledger under two
/// services, of which the one that took the last numbers is stopped.
#[tokio::test]
async fn restored_a_sleeper_tells_the_file_that_was_put_back_what_it_lacks() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let (one, other) = (deployment.serve(), deployment.serve());
    let mut seen = numbers_of(&one, "LOAD", "before", 2).await;
    copy_ledger(&deployment, &copy).await;
    seen.extend(numbers_of(&one, "LOAD", "lost", 2).await);
    one.signal("STOP");
    put_in_place(&copy, &file);
    assert_held(&other).await;
    deployment.ok(&RELEASE);
    seen.extend(numbers_of(&other, "LOAD", "first", 1).await);
    one.signal("CONT");
    says(&one, TOLD).await;
    for place in 0..2 {
        let again = answer_of(&one, "LOAD", &format!("lost-{place}")).await;
        assert_eq!(again, (200, seen[2 + place].clone()), "{}", one.log());
    }
    seen.extend(numbers_of(&one, "LOAD", "after", 2).await);
    let all = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), all, "{seen:?}");
    assert!(one.terminate() && other.terminate());
    deployment.assert_clean();
}
