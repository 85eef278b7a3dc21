//! A registration by hand, and what gives its document another number at the same moment.

use std::sync::Arc;

use numerator::ledger::{DocumentHas, NumberByHand, Registering};

use super::Scene;
use crate::ledger_contract::assignments::{once_series, order};

/// Goal: a number that Redis took for the document is found although the journal has it only once
/// the registration has looked. Method: the registration waits for the row of its partition, which
/// comes to the database meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registration_finds_what_redis_took_until_the_partition_came_to_the_database() {
    let mut scene = Scene::set().await;
    let series = once_series(&scene.world).await;
    let taken = scene.taken_by_redis(&series, "sheet").await;
    let by_hand = NumberByHand {
        order: order(&series, Some("sheet"), 1),
        number: "k-1".into(),
        value: 1,
        is_as_written: false,
        is_narrowed: false,
        returns: true,
        reason: "written on paper".into(),
    };
    let held = scene.hold("select 1 from partition for update").await;
    let (ledger, node) = (Arc::clone(&scene.world.ledger), scene.world.node);
    let registering = tokio::spawn(async move { ledger.imports().register(node, &by_hand).await });
    scene.wait(1, &registering).await;
    scene.comes_to_database(held, &taken).await;
    let outcome = registering.await.unwrap().unwrap();
    let Registering::DocumentHas(DocumentHas::Number(entry)) = outcome else {
        panic!("a second number: {outcome:?}")
    };
    assert_eq!(entry.number, taken.number);
}
