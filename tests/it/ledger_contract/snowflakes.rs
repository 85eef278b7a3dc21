//! Leases of node numbers: one holder at a time, and times that no two holders share.

use std::collections::BTreeSet;
use std::time::Duration;

use numerator::ledger::{SNOWFLAKE_LEASE_MAX, SnowflakeLease};
use numerator::node::NodeId;

use super::world::{NOW_US, World, at};

const NOW_MS: i64 = NOW_US / 1_000;
const LEASE: Duration = Duration::from_secs(10);
const LEASE_MS: i64 = 10_000;

impl World {
    async fn lease(&self, node: NodeId, now_ms: i64) -> Option<SnowflakeLease> {
        self.ledger.snowflakes().lease(node, now_ms, LEASE).await.unwrap()
    }

    /// Another node, registered.
    async fn another_node(&self) -> NodeId {
        let node = NodeId::random();
        self.join(node).await;
        node
    }

    /// Leases every number that is free.
    async fn lease_all(&self, node: NodeId, now_ms: i64) -> Vec<SnowflakeLease> {
        let mut leases = Vec::new();
        while let Some(lease) = self.lease(node, now_ms).await {
            leases.push(lease);
        }
        leases
    }
}

pub(super) async fn a_node_number_has_one_holder_until_it_has_left_or_was_adopted(world: World) {
    let all = world.lease_all(world.node, NOW_MS).await;
    let numbers: BTreeSet<u16> = all.iter().map(|lease| lease.node_number).collect();
    assert_eq!((all.len(), numbers.len()), (1024, 1024));
    let (left, adopted) = (world.another_node().await, world.another_node().await);
    assert_eq!(world.lease(left, NOW_MS).await, None, "all are held");
    world.ledger.nodes().leave(world.node).await.unwrap();
    let first = world.lease(left, NOW_MS).await.expect("free");
    let second = world.lease(adopted, NOW_MS).await.expect("free");
    assert_ne!(first.node_number, second.node_number);
    world.lease_all(adopted, NOW_MS).await;
    assert!(world.ledger.nodes().retire(adopted, 0).await.unwrap());
    let third = world.another_node().await;
    let numbers = world.lease_all(third, NOW_MS).await;
    assert_eq!(numbers.len(), 1023, "all but that of the node that is there");
}

pub(super) async fn nodes_that_lease_at_once_get_numbers_of_their_own(world: World) {
    let mut leasing = Vec::new();
    for _ in 0..8 {
        let (ledger, node) = (world.ledger.clone(), world.another_node().await);
        let lease = async move { ledger.snowflakes().lease(node, NOW_MS, LEASE).await.unwrap() };
        leasing.push(tokio::spawn(lease));
    }
    let mut numbers = BTreeSet::new();
    for lease in leasing {
        numbers.insert(lease.await.unwrap().expect("free").node_number);
    }
    assert_eq!(numbers.len(), 8);
}

pub(super) async fn whoever_takes_a_number_over_starts_where_its_last_holder_ends(world: World) {
    let (first, next) = (world.node, world.another_node().await);
    let held = world.lease_all(first, NOW_MS).await;
    assert!(held.iter().all(|lease| lease.from_ms == NOW_MS));
    let extended = world.ledger.snowflakes().extend(&held[5], NOW_MS + 15_000).await.unwrap();
    let extended = extended.expect("held");
    assert_eq!((extended.from_ms, extended.until_ms), (NOW_MS, NOW_MS + 15_000));
    world.ledger.nodes().leave(first).await.unwrap();
    // Its clock is an hour behind; the ledger does not care.
    let taken = world.lease_all(next, NOW_MS - 3_600_000).await;
    assert_eq!(taken.len(), 1024);
    for lease in &taken {
        let before = held.iter().find(|held| held.node_number == lease.node_number).unwrap();
        let until_ms = if before == &held[5] { extended.until_ms } else { before.until_ms };
        assert_eq!((lease.from_ms, lease.until_ms), (until_ms, until_ms + LEASE_MS));
    }
    assert_eq!(taken[1023].node_number, held[5].node_number, "the one used last comes last");
    for lease in [&held[0], &extended] {
        let late = world.ledger.snowflakes().extend(lease, NOW_MS + 60_000).await.unwrap();
        assert_eq!(late, None, "awake again, it has nothing to extend");
        world.ledger.snowflakes().give_back(lease, NOW_MS).await.unwrap();
    }
    let mine = world.ledger.snowflakes().extend(&taken[0], 0).await.unwrap();
    assert_eq!(mine, Some(taken[0]), "an end never moves back");
}

pub(super) async fn a_lease_that_is_returned_ends_where_it_was_used(world: World) {
    let (first, next) = (world.node, world.another_node().await);
    let held = world.lease_all(first, NOW_MS).await;
    world.ledger.snowflakes().give_back(&held[7], NOW_MS + 3).await.unwrap();
    world.ledger.snowflakes().give_back(&held[8], NOW_MS + 2 * LEASE_MS).await.unwrap();
    world.ledger.nodes().leave(first).await.unwrap();
    let lease = world.lease(next, NOW_MS).await.expect("free");
    assert_eq!((lease.node_number, lease.from_ms), (held[7].node_number, NOW_MS + 3));
    let other = world.lease(next, NOW_MS).await.expect("free");
    assert_eq!(other.from_ms, NOW_MS + LEASE_MS, "never later than it ended anyway");
}

pub(super) async fn a_lease_that_the_ledger_has_forgotten_is_not_extended(world: World) {
    let lease = world.lease(world.node, NOW_MS).await.expect("free");
    let forgotten = SnowflakeLease { until_ms: lease.until_ms + 1, ..lease };
    let end = NOW_MS + 2 * LEASE_MS;
    assert_eq!(world.ledger.snowflakes().extend(&forgotten, end).await.unwrap(), None);
    assert!(world.ledger.snowflakes().extend(&lease, end).await.unwrap().is_some());
}

pub(super) async fn a_ledger_that_went_back_leases_nothing_that_it_may_have_leased(world: World) {
    let held = world.lease(world.node, NOW_MS).await.expect("free");
    assert!(world.ledger.hold_all(&[at(7)], "a test").await.unwrap() > 0);
    let unknown_ms = NOW_MS + i64::try_from(SNOWFLAKE_LEASE_MAX.as_millis()).unwrap();
    let next = world.another_node().await;
    let lease = world.lease(next, NOW_MS).await.expect("free");
    assert_eq!(lease.from_ms, unknown_ms);
    let mine = world.ledger.snowflakes().extend(&held, NOW_MS + LEASE_MS).await.unwrap();
    assert!(mine.is_some(), "what it knows it still knows");
}
