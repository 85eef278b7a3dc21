//! Epochs: which node takes part, which ends one, which opens the next.

use numerator::clock::Clock;
use numerator::ledger::{
    Acknowledged, At, Blind, Claim, Closing, HealthReport, LedgerError, NodeReport, NodeWords,
    Owner, PartitionState, Wanted,
};
use numerator::node::NodeId;
use uuid::Uuid;

use super::world::{NOW_US, World, at, redis};

/// Two more nodes that take part in an epoch of Redis.
async fn participants(world: &World) -> (At, [NodeId; 2]) {
    let open = world.redis_epoch(Closing::Exact).await;
    let nodes = [NodeId::random(), NodeId::random()];
    for node in nodes {
        world.join(node).await;
        assert!(world.ledger.participate(open, node).await.unwrap());
    }
    (open, nodes)
}

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
    ledger.acknowledge(at(next), &[world.node]).await.unwrap();
    world.claim(at(next), Closing::Exact, &redis()).await;
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
    ledger.nodes().leave(left).await.unwrap();
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
            let claim = ledger.claim_open(at(1), node, false, &redis()).await.unwrap();
            (node, claim == Claim::Closed(Closing::Exact))
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
    world.claim(at(1), Closing::Exact, &redis()).await;
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
    world.claim(at(1), Closing::Exact, &redis()).await;
    let next = ledger.bump(at(1), PartitionState::Opening, other, "gone").await.unwrap();
    assert_eq!(next, Some(2));
    assert!(!ledger.opened(at(1), world.node).await.unwrap(), "its author comes too late");
    assert_eq!(world.partition().await.state, PartitionState::Recovering);
}

pub(super) async fn an_epoch_of_the_database_is_open_at_once(world: World) {
    let ledger = &world.ledger;
    ledger.bump(at(0), PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    let owner = Owner::Database;
    world.claim(at(1), Closing::Exact, &owner).await;
    let partition = world.partition().await;
    assert_eq!((partition.state, partition.owner), (PartitionState::Open, Owner::Database));
    assert_eq!(partition.last_closing, Some(Closing::Exact));
    let again = ledger.claim_open(at(1), world.node, true, &owner).await.unwrap();
    assert_eq!(again, Claim::Elsewhere);
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
    let open = world.redis_epoch(Closing::Exact).await;
    let ledger = &world.ledger;
    assert!(!ledger.hold(open, "nothing above the ledger was seen").await.unwrap());
    let seen = At { epoch: open.epoch + 1, ..open };
    assert!(ledger.hold(seen, "the ledger went back").await.unwrap());
    let partition = world.partition().await;
    assert_eq!((partition.state, partition.epoch), (PartitionState::Held, open.epoch));
    assert_eq!(partition.cause, "the ledger went back");
    let world = world.anew().await;
    let ledger = &world.ledger;
    for from in [PartitionState::Open, PartitionState::Held] {
        assert_eq!(ledger.bump(open, from, world.node, "c").await.unwrap(), None);
    }
    assert!(!ledger.participate(open, world.node).await.unwrap());
    let missing = At { partition: 99, epoch: 1 };
    assert!(!ledger.hold(missing, "c").await.unwrap());
    assert!(!ledger.participate(missing, world.node).await.unwrap());
}

pub(super) async fn an_epoch_closes_exact_once_every_participant_is_accounted_for(world: World) {
    let (open, [one, two]) = participants(&world).await;
    let three = NodeId::random();
    world.join(three).await;
    assert!(world.ledger.participate(open, three).await.unwrap());
    let (ledger, cause) = (&world.ledger, "test");
    let next = ledger.bump(open, PartitionState::Open, one, cause).await.unwrap().map(at).unwrap();
    let waiting = async || match ledger.claim_open(next, one, false, &redis()).await.unwrap() {
        Claim::Waiting(nodes) => nodes,
        other => panic!("{other:?}"),
    };
    assert_eq!(waiting().await.len(), 3);
    for _ in 0..2 {
        let acknowledged = ledger.acknowledge(next, &[one]).await.unwrap();
        assert_eq!(acknowledged, Acknowledged::Taken, "safe to repeat");
    }
    ledger.nodes().leave(two).await.unwrap();
    assert_eq!(waiting().await, [three]);
    ledger.adopt(open, three, &[], false).await.unwrap();
    assert_eq!(waiting().await, [three], "an outbox that is not whole accounts for nobody");
    ledger.adopt(open, three, &[], true).await.unwrap();
    world.claim(next, Closing::Exact, &redis()).await;
    let late = ledger.acknowledge(next, &[one]).await.unwrap();
    assert_eq!(late, Acknowledged::TooLate, "the epoch is closed");
}

pub(super) async fn an_epoch_closes_at_the_ceiling_only_if_somebody_is_missing(world: World) {
    let (open, [one, two]) = participants(&world).await;
    let ledger = &world.ledger;
    let next = ledger.bump(open, PartitionState::Open, one, "c").await.unwrap().map(at).unwrap();
    ledger.acknowledge(next, &[one]).await.unwrap();
    let waiting = ledger.claim_open(next, one, false, &redis()).await.unwrap();
    assert_eq!(waiting, Claim::Waiting(vec![two]));
    assert_eq!(world.partition().await.state, PartitionState::Recovering, "nothing is changed");
    let claim = ledger.claim_open(next, one, true, &redis()).await.unwrap();
    assert_eq!(claim, Claim::Closed(Closing::Ceiling));
    assert_eq!(world.partition().await.last_ceiling_epoch, open.epoch);
}

pub(super) async fn an_acknowledgement_counts_for_its_own_epoch_only(world: World) {
    let (open, [one, _]) = participants(&world).await;
    let ledger = &world.ledger;
    assert_eq!(ledger.acknowledge(open, &[one]).await.unwrap(), Acknowledged::TooLate, "open");
    let next = ledger.bump(open, PartitionState::Open, one, "c").await.unwrap().map(at).unwrap();
    let other = ledger.acknowledge(at(next.epoch + 1), &[one]).await.unwrap();
    assert_eq!(other, Acknowledged::TooLate, "not that one");
    let unknown = ledger.acknowledge(next, &[one, NodeId::random()]).await.unwrap();
    assert_eq!(unknown, Acknowledged::Forgotten, "the ledger does not know that it took part");
    let waiting = ledger.claim_open(next, one, false, &redis()).await.unwrap();
    assert!(matches!(waiting, Claim::Waiting(nodes) if nodes.len() == 2), "all or none");
}

pub(super) async fn an_epoch_of_the_database_closes_exact_without_a_barrier(world: World) {
    let open = world.database_epoch().await;
    let ledger = &world.ledger;
    assert!(ledger.participate(open, world.node).await.unwrap());
    let next = ledger.bump(open, PartitionState::Open, world.node, "c").await.unwrap().map(at);
    world.claim(next.unwrap(), Closing::Exact, &redis()).await;
}

pub(super) async fn an_operators_wish_stands_until_it_is_taken_back(world: World) {
    let ledger = &world.ledger;
    let wanted = async || {
        let partitions = ledger.partitions().await.unwrap();
        partitions.iter().filter(|row| row.wanted == Wanted::Database).count()
    };
    assert_eq!(ledger.want(Some(2), Wanted::Database).await.unwrap(), 1);
    assert_eq!(wanted().await, 1);
    let all = ledger.partitions().await.unwrap().len();
    let rest = u64::try_from(all - 1).unwrap();
    assert_eq!(ledger.want(None, Wanted::Database).await.unwrap(), rest);
    assert_eq!(ledger.want(None, Wanted::Database).await.unwrap(), 0, "nothing left to change");
    assert_eq!(wanted().await, all);
    ledger.want(None, Wanted::Auto).await.unwrap();
    assert_eq!(wanted().await, 0);
}

pub(super) async fn who_lent_a_partition_takes_it_back_and_no_operators_wish(world: World) {
    let ledger = &world.ledger;
    let (mine, other) = (Some(Uuid::new_v4()), Some(Uuid::new_v4()));
    let row = async || ledger.partitions().await.unwrap().remove(2);
    assert!(!row().await.is_for_database());
    assert!(ledger.lend(2, [None, mine]).await.unwrap());
    assert!(row().await.is_lent && row().await.is_for_database());
    assert!(!ledger.lend(2, [None, other]).await.unwrap(), "somebody has it");
    assert!(!ledger.lend(2, [other, None]).await.unwrap(), "it is not theirs");
    assert_eq!(ledger.want(Some(2), Wanted::Database).await.unwrap(), 1);
    assert!(ledger.lend(2, [mine, None]).await.unwrap());
    let after = row().await;
    assert!(!after.is_lent && after.wanted == Wanted::Database, "the wish stands: {after:?}");
    ledger.want(Some(2), Wanted::Auto).await.unwrap();
    assert!(ledger.lend(2, [None, mine]).await.unwrap());
    assert_eq!(ledger.want(None, Wanted::Auto).await.unwrap(), 1, "an operator ends a loan");
    assert!(!row().await.is_for_database());
    // A loan lasts no longer than its lender; one without a lender lasts until it is ended.
    let lender = NodeId::random();
    world.join(lender).await;
    assert!(ledger.lend_by(Some(lender), 2, [None, mine]).await.unwrap());
    assert!(ledger.lend(1, [None, other]).await.unwrap());
    assert_eq!(
        (row().await.lender, ledger.take_back_loans().await.unwrap()),
        (Some(lender), vec![])
    );
    assert!(ledger.nodes().retire(lender, 0).await.unwrap());
    assert_eq!(ledger.take_back_loans().await.unwrap(), [2]);
    assert!(!row().await.is_lent && row().await.lender.is_none());
    assert!(ledger.partitions().await.unwrap()[1].is_lent);
    assert!(!ledger.lend(2, [mine, None]).await.unwrap(), "and it is not given back twice");
}

pub(super) async fn recent_closings_are_counted(world: World) {
    let since_us = world.clock.now_us();
    for _ in 0..3 {
        world.redis_epoch(Closing::Exact).await;
    }
    let count = async |since_us| world.ledger.closings(2, since_us).await.unwrap();
    assert_eq!(count(since_us).await, 2, "the first use of a partition is no recovery");
    world.clock.set(since_us + 60_000_000);
    world.redis_epoch(Closing::Exact).await;
    assert_eq!(count(since_us).await, 3);
    assert_eq!(count(world.clock.now_us()).await, 1);
}

pub(super) async fn a_heartbeat_says_what_the_node_sees_of_redis(world: World) {
    let (ledger, node) = (&world.ledger, world.node);
    let said = async || {
        let node = ledger.nodes().list().await.unwrap().remove(0);
        (node.sight, node.words)
    };
    assert_eq!(said().await, (None, None));
    let sight = HealthReport::from([("a".repeat(40), [0, 2].into()), ("b".repeat(40), [1].into())]);
    let blind =
        Blind { partitions: [3].into(), since_us: NOW_US, why: "refused: \"password\"".into() };
    let words = NodeWords { blind: vec![blind], journal_records: 7, ..NodeWords::default() };
    let report = NodeReport { sight: sight.clone(), words: words.clone() };
    ledger.nodes().heartbeat(node, Some(&report)).await.unwrap();
    assert_eq!(said().await, (Some(sight), Some(words)));
    ledger.nodes().heartbeat(node, Some(&NodeReport::default())).await.unwrap();
    assert_eq!(said().await, (Some(HealthReport::new()), Some(NodeWords::default())));
    ledger.nodes().heartbeat(node, None).await.unwrap();
    assert_eq!(said().await, (None, None));
    let before = ledger.nodes().list().await.unwrap();
    ledger.nodes().takes_heartbeats(Some(node)).await.unwrap();
    ledger.nodes().takes_heartbeats(Some(NodeId::random())).await.unwrap();
    ledger.nodes().takes_heartbeats(None).await.unwrap();
    assert_eq!(ledger.nodes().list().await.unwrap(), before, "it is written as it stands");
}
