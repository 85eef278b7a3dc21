//! A ledger that went back is agreed on again only by all nodes that may have been confirmed
//! anything that it lacks (F25). The going back is a hold here: what matters is who reports what.

use numerator::ledger::{
    Agreement, At, Closing, Known, NewNode, Owner, PartitionState, Released, Report, SharedLedger,
};
use numerator::node::NodeId;

use super::world::{LOCK_WAIT, NOW_US, PARTITION, World, at, order};

const ALL: &str = "the ledger went back";

/// A process that existed before the ledger went back.
struct Process {
    ledger: SharedLedger,
    was: NodeId,
    is: NodeId,
}

impl Process {
    async fn join(ledger: SharedLedger) -> Process {
        let was = register(&ledger).await;
        Process { ledger, was, is: was }
    }

    /// Notices, and takes another identity.
    async fn inquire(&mut self) {
        self.ledger.inquire(&[], ALL).await.unwrap();
        self.is = register(&self.ledger).await;
    }

    fn report(&self) -> Report {
        let (node, identities) = (self.is, vec![self.was, self.is]);
        Report { node, identities, is_complete: true, known: Known::default() }
    }

    async fn say(&self, report: &Report) -> bool {
        self.ledger.report(report).await.unwrap()
    }

    async fn agree(&self) -> Agreement {
        self.ledger.agree(self.is, &Known::default()).await.unwrap()
    }
}

async fn register(ledger: &SharedLedger) -> NodeId {
    let node_id = NodeId::random();
    let (label, version) = ("test".to_owned(), "0".to_owned());
    let new = NewNode { node_id, label, version, started_at_us: NOW_US };
    ledger.nodes().register(&new).await.unwrap();
    node_id
}

/// A branch of the ledger that its users were led to drew a nonce of its own.
async fn another_branch(world: &World) {
    let sql = if world.ledger.engine() == "sqlite" {
        "update incarnation set nonce = randomblob(16)"
    } else {
        "update incarnation set nonce = decode(repeat('ab', 16), 'hex')"
    };
    world.sql(sql).await;
}

fn waits(missing: &[NodeId], incomplete: &[NodeId]) -> Agreement {
    let sorted = |nodes: &[NodeId]| {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes
    };
    Agreement::Waits { missing: sorted(missing), incomplete: sorted(incomplete) }
}

/// The world's own node and another process; the first has left.
async fn two(world: &World) -> [Process; 2] {
    world.ledger.nodes().leave(world.node).await.unwrap();
    [Process::join(world.another().await).await, Process::join(world.another().await).await]
}

pub(super) async fn once_all_have_told_the_partitions_are_open_and_closed_exact(world: World) {
    let open = world.database_epoch().await;
    world.take(open, order("a")).await;
    let [mut one, mut other] = two(&world).await;
    one.inquire().await;
    other.inquire().await;
    assert_eq!(one.agree().await, waits(&[one.was, other.was], &[]));
    assert!(one.say(&one.report()).await);
    assert_eq!(one.agree().await, waits(&[other.was], &[]));
    // It has seen a higher epoch than the ledger shows now.
    let epochs = vec![At { partition: PARTITION, epoch: open.epoch + 3 }];
    let known = Known { epochs, nodes: vec![one.was] };
    assert!(other.say(&Report { known, ..other.report() }).await);
    assert_eq!(other.agree().await, Agreement::Agreed);
    assert_eq!(one.agree().await, Agreement::NoCheck, "it is over");

    let row = world.partition().await;
    assert_eq!((row.epoch, row.state), (open.epoch + 4, PartitionState::Open));
    assert_eq!((row.owner, row.last_closing), (Owner::None, Some(Closing::Exact)));
    for epoch in [open.epoch, open.epoch + 3] {
        let closed = world.ledger.closed_epoch(at(epoch), None).await.unwrap().unwrap();
        assert_eq!((closed.at.epoch, closed.closing), (epoch, Closing::Exact));
    }
    // The next number follows the last: no ceiling is skipped.
    let world = World { ledger: one.ledger, node: one.is, ..world };
    let next = world.database_epoch().await;
    let orders = [order("b")];
    let taken = world.ledger.take(next, world.node, &orders, LOCK_WAIT).await.unwrap();
    assert_eq!(taken.outcomes.len(), 1);
    assert_eq!(world.ledger.register().gaps(&Default::default()).await.unwrap(), []);
}

pub(super) async fn one_that_does_not_remember_enough_leaves_it_to_an_operator(world: World) {
    let [mut one, mut other] = two(&world).await;
    one.inquire().await;
    other.inquire().await;
    let report = other.report();
    assert!(one.say(&one.report()).await);
    assert!(other.say(&Report { is_complete: false, ..report.clone() }).await);
    assert_eq!(one.agree().await, waits(&[], &report.identities));
    // From the first partition that an operator releases on only the operator decides.
    let row = world.partition().await;
    let to = At { partition: PARTITION, epoch: row.epoch + 1 };
    assert_eq!(one.ledger.release(to, 0).await.unwrap(), Released::Released);
    assert!(!other.say(&report).await && one.agree().await == Agreement::NoCheck);
}

/// Goal: no close is `exact` with an unaccounted participant. Method: a node that took part is
/// adopted and retired, but what it left was not whole.
pub(super) async fn who_was_adopted_by_halves_is_waited_for(world: World) {
    let halves = NodeId::random();
    world.join(halves).await;
    let open = world.redis_epoch(Closing::Exact).await;
    let [mut one, mut other] = two(&world).await;
    assert!(world.ledger.participate(open, halves).await.unwrap());
    world.ledger.adopt(open, halves, &[], false).await.unwrap();
    let nodes = world.ledger.nodes().list().await.unwrap();
    let beat = nodes.iter().find(|node| node.node_id == halves).unwrap().beat;
    assert!(world.ledger.nodes().retire(halves, beat).await.unwrap());
    one.inquire().await;
    other.inquire().await;
    assert!(one.say(&one.report()).await && other.say(&other.report()).await);
    assert_eq!(one.agree().await, waits(&[halves], &[]), "it leaves it to an operator");
}

pub(super) async fn whom_a_reporter_or_redis_has_met_is_waited_for(world: World) {
    let [mut one, mut other] = two(&world).await;
    let lost = NodeId::random();
    one.inquire().await;
    other.inquire().await;
    let known = Known { nodes: vec![lost, other.was, world.node], ..Known::default() };
    assert!(one.say(&Report { known, ..one.report() }).await);
    assert!(other.say(&other.report()).await);
    // The ledger has forgotten its registration; the node that left it knows of that.
    assert_eq!(one.agree().await, waits(&[lost], &[]));
    let report = other.report();
    let identities = [report.identities.clone(), vec![lost]].concat();
    assert!(other.say(&Report { identities, ..report }).await, "it was an identity of this one");
    let sender = NodeId::random();
    let known = Known { nodes: vec![sender], ..Known::default() };
    assert_eq!(one.ledger.agree(one.is, &known).await.unwrap(), waits(&[sender], &[]));
    assert_eq!(one.agree().await, Agreement::Agreed);
}

pub(super) async fn who_is_taken_for_dead_meanwhile_is_waited_for_all_the_same(world: World) {
    let [mut one, other] = two(&world).await;
    one.inquire().await;
    assert!(one.say(&one.report()).await);
    assert!(one.ledger.nodes().retire(other.was, 0).await.unwrap());
    assert_eq!(one.agree().await, waits(&[other.was], &[]));
    // Nor does another inquest forget it.
    let mut again = Process { was: one.is, ..Process::join(world.another().await).await };
    another_branch(&world).await;
    again.inquire().await;
    let identities = vec![one.was, one.is, again.was, again.is];
    assert!(again.say(&Report { identities, ..again.report() }).await);
    match again.agree().await {
        Agreement::Waits { missing, .. } => assert!(missing.contains(&other.was), "{missing:?}"),
        agreed => panic!("{agreed:?}"),
    }
}

pub(super) async fn what_an_operator_holds_nobody_else_releases(world: World) {
    let [mut one, other] = two(&world).await;
    assert_eq!(other.ledger.hold_all(&[], "an operator").await.unwrap(), 5);
    one.inquire().await;
    assert!(!one.say(&one.report()).await);
    assert_eq!(one.agree().await, Agreement::NoCheck);
    // Nor if the ledger goes back once more while it is held.
    another_branch(&world).await;
    one.inquire().await;
    assert!(!one.say(&one.report()).await);
}

pub(super) async fn an_operators_hold_ends_a_quorum_check(world: World) {
    let [mut one, mut other] = two(&world).await;
    one.inquire().await;
    assert!(one.say(&one.report()).await);
    world.another().await.hold_all(&[], "an operator").await.unwrap();
    other.inquire().await;
    assert!(!other.say(&other.report()).await);
    assert_eq!(other.agree().await, Agreement::NoCheck);
}

pub(super) async fn who_is_led_back_to_a_server_that_lives_on_asks_nobody_there(world: World) {
    let [mut one, mut other] = two(&world).await;
    one.inquire().await;
    other.inquire().await;
    assert!(one.say(&one.report()).await && other.say(&other.report()).await);
    assert_eq!(one.agree().await, Agreement::Agreed);
    // The old primary, which was not stopped: another nonce, agreed on in its own life.
    let old = if world.ledger.engine() == "sqlite" {
        "update incarnation set number = 1, nonce = randomblob(16)"
    } else {
        "update incarnation set number = 1, nonce = decode(repeat('ab', 16), 'hex'), \
         born = (pg_current_xact_id()::text::numeric % 4294967296)::bigint"
    };
    world.sql(old).await;
    one.inquire().await;
    // A file that is behind the mark next to it lives no life of its own.
    let is_a_server = world.ledger.fails_over();
    assert_eq!(one.say(&one.report()).await, !is_a_server, "others may have gone on elsewhere");
    assert_eq!(world.partition().await.state, PartitionState::Held);
}

pub(super) async fn where_nobody_is_left_who_was_there_an_operator_decides(world: World) {
    let [one, other] = two(&world).await;
    one.ledger.nodes().leave(one.was).await.unwrap();
    other.ledger.nodes().leave(other.was).await.unwrap();
    let ledger = world.another().await;
    ledger.inquire(&[], ALL).await.unwrap();
    let newcomer = Process::join(ledger).await;
    assert!(newcomer.say(&newcomer.report()).await);
    assert_eq!(newcomer.agree().await, waits(&[], &[]));
}
