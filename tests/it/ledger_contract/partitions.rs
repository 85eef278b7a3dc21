//! Epochs: who takes part, who ends one, who opens the next.

use numerator::ledger::{At, Closing, LedgerError, Owner, PartitionState};
use numerator::node::NodeId;

use super::world::{NOW_US, World, at, redis};

pub(super) async fn a_node_participates_only_while_the_epoch_is_open(world: World) {
    let ledger = &world.ledger;
    let open = world.redis_epoch(Closing::Exact).await;
    assert!(ledger.participate(open, world.node).await.unwrap());
    assert!(ledger.participate(open, world.node).await.unwrap(), "safe to repeat");
    assert!(!ledger.participate(at(open.epoch - 1), world.node).await.unwrap(), "over");
    assert!(!ledger.participate(at(open.epoch + 1), world.node).await.unwrap(), "not yet");
    let next = ledger.bump(open, PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    assert!(!ledger.participate(open, world.node).await.unwrap(), "over");
    assert!(!ledger.participate(at(next), world.node).await.unwrap(), "recovering");
    assert!(ledger.claim_open(at(next), world.node, Closing::Exact, &redis()).await.unwrap());
    assert!(!ledger.participate(at(next), world.node).await.unwrap(), "opening");
    assert!(ledger.opened(at(next), world.node).await.unwrap());
    assert!(ledger.participate(at(next), world.node).await.unwrap());
}

pub(super) async fn a_node_that_left_or_was_adopted_does_not_come_back(world: World) {
    let (ledger, open) = (&world.ledger, world.redis_epoch(Closing::Exact).await);
    let [adopted, left, unknown] = [NodeId::random(), NodeId::random(), NodeId::random()];
    for node in [adopted, left] {
        world.join(node).await;
        assert!(ledger.participate(open, node).await.unwrap());
    }
    ledger.adopt(open, adopted, &[], true).await.unwrap();
    assert!(!ledger.participate(open, adopted).await.unwrap());
    ledger.leave(left).await.unwrap();
    for gone in [left, unknown] {
        let error = ledger.participate(open, gone).await.expect_err("gone");
        assert!(matches!(error, LedgerError::NodeGone(node) if node == gone), "{error}");
    }
}

pub(super) async fn a_bump_compares_epoch_and_state(world: World) {
    let (ledger, node) = (&world.ledger, world.node);
    let bump = |at, from| ledger.bump(at, from, node, "why");
    assert_eq!(bump(at(1), PartitionState::Open).await.unwrap(), None, "another epoch");
    assert_eq!(bump(at(0), PartitionState::Opening).await.unwrap(), None, "another state");
    assert_eq!(bump(at(0), PartitionState::Open).await.unwrap(), Some(1));
    assert_eq!(bump(at(0), PartitionState::Open).await.unwrap(), None, "done already");
    let partition = world.partition().await;
    assert_eq!((partition.epoch, partition.state), (1, PartitionState::Recovering));
    assert_eq!((partition.owner, partition.actor), (Owner::None, Some(node)));
    assert_eq!((&*partition.cause, partition.changed_at_us), ("why", NOW_US));
    let untouched = ledger.partitions().await.unwrap().remove(0);
    assert_eq!(untouched.epoch, 0, "other partitions stay");
}

pub(super) async fn an_epoch_is_not_bumped_before_the_one_before_it_is_closed(world: World) {
    let ledger = &world.ledger;
    ledger.bump(at(0), PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    for from in [PartitionState::Open, PartitionState::Recovering, PartitionState::Opening] {
        assert_eq!(ledger.bump(at(1), from, world.node, "c").await.unwrap(), None, "{from:?}");
    }
}

pub(super) async fn of_many_openers_one_claims_the_epoch(world: World) {
    world.ledger.bump(at(0), PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    let mut claims = Vec::new();
    for _ in 0..4 {
        let (ledger, node) = (world.another().await, NodeId::random());
        claims.push(tokio::spawn(async move {
            (node, ledger.claim_open(at(1), node, Closing::Exact, &redis()).await.unwrap())
        }));
    }
    let mut winners = Vec::new();
    for claim in claims {
        let (node, won) = claim.await.unwrap();
        winners.extend(won.then_some(node));
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(world.partition().await.actor, Some(winners[0]));
}

pub(super) async fn only_who_claimed_the_opening_reports_it_done(world: World) {
    let ledger = &world.ledger;
    ledger.bump(at(0), PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    assert!(!ledger.opened(at(1), world.node).await.unwrap(), "not claimed yet");
    assert!(ledger.claim_open(at(1), world.node, Closing::Exact, &redis()).await.unwrap());
    assert_eq!(world.partition().await.state, PartitionState::Opening);
    assert!(!ledger.opened(at(1), NodeId::random()).await.unwrap(), "another node");
    assert!(!ledger.opened(at(2), world.node).await.unwrap(), "another epoch");
    assert!(ledger.opened(at(1), world.node).await.unwrap());
    assert!(ledger.opened(at(1), world.node).await.unwrap(), "a lost answer is asked for again");
    let partition = world.partition().await;
    assert_eq!((partition.state, partition.actor), (PartitionState::Open, None));
    assert_eq!(partition.owner, redis());
}

pub(super) async fn an_opening_given_up_is_bumped(world: World) {
    let (ledger, other) = (&world.ledger, NodeId::random());
    ledger.bump(at(0), PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    ledger.claim_open(at(1), world.node, Closing::Exact, &redis()).await.unwrap();
    let next = ledger.bump(at(1), PartitionState::Opening, other, "gone").await.unwrap();
    assert_eq!(next, Some(2));
    assert!(!ledger.opened(at(1), world.node).await.unwrap(), "its author comes too late");
    assert_eq!(world.partition().await.state, PartitionState::Recovering);
}

pub(super) async fn an_epoch_of_the_database_is_open_at_once(world: World) {
    let ledger = &world.ledger;
    ledger.bump(at(0), PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    let owner = Owner::Database;
    assert!(ledger.claim_open(at(1), world.node, Closing::Exact, &owner).await.unwrap());
    let partition = world.partition().await;
    assert_eq!((partition.state, partition.owner), (PartitionState::Open, Owner::Database));
    assert_eq!(partition.last_closing, Some(Closing::Exact));
    assert!(!ledger.claim_open(at(1), world.node, Closing::Exact, &owner).await.unwrap());
}

pub(super) async fn the_last_epoch_closed_at_the_ceiling_is_remembered(world: World) {
    world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.partition().await.last_ceiling_epoch, 0);
    let second = world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(second, at(2));
    let partition = world.partition().await;
    let closed = (partition.last_closing, partition.last_ceiling_epoch);
    assert_eq!(closed, (Some(Closing::Ceiling), 1));
    world.redis_epoch(Closing::Exact).await;
    let partition = world.partition().await;
    let closed = (partition.last_closing, partition.last_ceiling_epoch);
    assert_eq!(closed, (Some(Closing::Exact), 1), "later exact closings do not forget it");
}

pub(super) async fn a_held_partition_is_not_bumped(world: World) {
    let ledger = &world.ledger;
    let open = world.redis_epoch(Closing::Exact).await;
    assert!(!ledger.hold(open, "nothing above the ledger was seen").await.unwrap());
    let seen = At { epoch: open.epoch + 1, ..open };
    assert!(ledger.hold(seen, "the ledger went back").await.unwrap());
    let partition = world.partition().await;
    assert_eq!((partition.state, partition.epoch), (PartitionState::Held, open.epoch));
    assert_eq!(partition.cause, "the ledger went back");
    for from in [PartitionState::Open, PartitionState::Held] {
        assert_eq!(ledger.bump(open, from, world.node, "c").await.unwrap(), None);
    }
    assert!(!ledger.participate(open, world.node).await.unwrap());
    let missing = At { partition: 99, epoch: 1 };
    assert!(!ledger.hold(missing, "c").await.unwrap());
    assert!(!ledger.participate(missing, world.node).await.unwrap());
}
