//! Ids of two processes, leases that run out, clocks that go back: on a lease of the test's own.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::*;
use crate::clock::ManualClock;
use crate::engine::node::{LastSeenFile, ProcessSettings};
use crate::ledger::{Deployment, LedgerSettings, SNOWFLAKE_LEASE_MAX};

const NOW_MS: i64 = 1_764_633_600_000;

/// Processes on one ledger, each with another clock.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        World { folder: tempfile::tempdir().expect("a folder") }
    }

    async fn process(&self) -> (Snowflakes, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::at(NOW_MS * 1_000));
        let url = format!("sqlite:{}", self.folder.path().join("ledger.db").display());
        let shared: SharedClock = clock.clone();
        let ledger = crate::ledger::open(&url, LedgerSettings::default(), Arc::clone(&shared));
        let ledger = ledger.await.expect("opens");
        let (deployment_id, prefix) = (Uuid::nil(), "nbr".to_owned());
        let wanted = Deployment { deployment_id, partitions: 1, prefix };
        ledger.deployment(&wanted).await.expect("set up");
        let last_seen_file = LastSeenFile::within(self.folder.path(), Uuid::nil());
        let (own, time) = (Arc::clone(&ledger), Arc::clone(&shared));
        let bounds = ProcessSettings::default();
        let membership = Membership::join(own, time, last_seen_file, &bounds).await.expect("joins");
        let settings = SnowflakeSettings::default();
        let retry_delay = Duration::from_millis(500);
        (Snowflakes::new(ledger, shared, membership, settings, retry_delay), clock)
    }
}

fn set(clock: &ManualClock, offset_ms: i64) {
    clock.set((NOW_MS + offset_ms) * 1_000);
}

#[tokio::test]
async fn processes_draw_under_numbers_of_their_own() {
    let world = World::new();
    let mut ids = BTreeSet::new();
    for node_number in 0..3 {
        let (process, _clock) = world.process().await;
        for serial in 0..10 {
            let id = process.draw().await.expect("drawn");
            let expected = (NOW_MS, node_number, serial);
            assert_eq!((id.time_ms(), id.node_number(), id.serial()), expected);
            ids.insert(id);
        }
    }
    assert_eq!(ids.len(), 30);
}

#[tokio::test]
async fn a_clock_that_is_behind_too_far_is_refused_and_one_that_is_not_is_waited_for() {
    let world = World::new();
    let (process, clock) = world.process().await;
    set(&clock, 5_000);
    let last = process.draw().await.expect("drawn");
    set(&clock, 3_000);
    assert_eq!(process.draw().await, Err(Unavailable::ClockBehind));
    set(&clock, 4_900);
    let waiting = tokio::spawn({
        let process = process.clone();
        async move { process.draw().await }
    });
    tokio::task::yield_now().await;
    set(&clock, 5_000);
    let id = waiting.await.expect("no panic").expect("drawn");
    assert!(last < id, "{last} {id}");
}

#[tokio::test]
async fn a_lease_that_was_slept_through_is_extended_and_one_that_was_lost_is_replaced() {
    let world = World::new();
    let (process, clock) = world.process().await;
    let first = process.draw().await.expect("drawn");
    set(&clock, 3_600_000);
    let awake = process.draw().await.expect("drawn");
    assert_eq!(awake.node_number(), first.node_number());
    // Gone from the ledger: others see it as dead, and its number as the last one to be used.
    process.0.ledger.nodes().leave(process.0.membership.node()).await.expect("left");
    let (other, _) = world.process().await;
    for _ in 0..1024 {
        let lease = SNOWFLAKE_LEASE_MAX;
        let (node, ledger) = (other.0.membership.node(), &other.0.ledger);
        let lease = ledger.snowflakes().lease(node, NOW_MS, lease).await.expect("asked");
        assert!(lease.is_some(), "each number once");
    }
    assert_eq!(other.draw().await, Err(Unavailable::NodeNumbers));
    assert!(process.draw().await.is_ok(), "what is committed may be used up");
    set(&clock, 7_200_000);
    assert_eq!(process.draw().await, Err(Unavailable::NodeNumbers));
}

#[tokio::test]
async fn a_process_that_stops_leaves_what_it_has_not_used() {
    let world = World::new();
    let (process, _clock) = world.process().await;
    let last = process.draw().await.expect("drawn");
    process.stop().await;
    process.0.ledger.nodes().leave(process.0.membership.node()).await.expect("left");
    let (other, _) = world.process().await;
    let (node, ledger) = (other.0.membership.node(), &other.0.ledger);
    let mut froms = Vec::new();
    for _ in 0..1024 {
        let lease = ledger.snowflakes().lease(node, 0, SNOWFLAKE_LEASE_MAX).await.expect("asked");
        froms.push(lease.expect("free").from_ms);
    }
    assert_eq!(froms.iter().max(), Some(&(last.time_ms() + 1)));
}
