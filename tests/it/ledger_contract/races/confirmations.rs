//! The moment of what a ledger confirms to a node, if the answer comes late.

use numerator::clock::Clock;
use numerator::ledger::{Closing, LedgerError, NewNode};
use numerator::node::NodeId;

use super::super::world::{NOW_US, entry, spec};
use super::{Scene, let_go};

/// The time between a request and its answer.
const HOUR_US: i64 = 3_600_000_000;

/// Asks while the nodes are locked, and has the answer come an hour later.
async fn confirmed_late(
    scene: &mut Scene,
    node: NodeId,
    call: impl Future<Output = Result<(), LedgerError>> + Send + 'static,
) {
    let asked_at_us = scene.world.clock.now_us();
    let held = scene.hold("lock table node in access exclusive mode").await;
    let call = tokio::spawn(call);
    scene.wait(1, &call).await;
    scene.world.clock.set(asked_at_us + HOUR_US);
    let_go(held).await;
    call.await.unwrap().unwrap();
    assert_eq!(scene.world.ledger.confirmed(node).unwrap().at_us, asked_at_us);
}

/// Goal: a process that is stopped between its request and the answer finds that answer once the
/// ledger has failed over and was released: by the clock of then it would be of a branch (F36).
#[tokio::test]
async fn what_is_confirmed_is_of_the_moment_at_which_it_was_asked_for() {
    let mut scene = Scene::set().await;
    let epoch = scene.world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = scene.world.seed(epoch, &spec("c")).await;
    let node = NodeId::random();
    let (label, version) = ("test".to_owned(), "0".to_owned());
    let new = NewNode { node_id: node, label, version, started_at_us: NOW_US };
    let ledger = scene.world.ledger.clone();
    let call = async move { ledger.nodes().register(&new).await };
    confirmed_late(&mut scene, node, call).await;
    let ledger = scene.world.ledger.clone();
    let call = async move { ledger.nodes().heartbeat(node, None).await.map(drop) };
    confirmed_late(&mut scene, node, call).await;
    let ledger = scene.world.ledger.clone();
    let call = async move { ledger.append(node, &[entry(epoch, counter_id, 1)]).await.map(drop) };
    confirmed_late(&mut scene, node, call).await;
}
