//! An assignment of a number of a range, and what gives its document another number at the same
//! moment.

use std::sync::Arc;

use numerator::ledger::{Assigning, DocumentHas};
use numerator::node::NodeId;

use super::{Scene, let_go};
use crate::ledger_contract::assignments::{new, once_series, order};
use crate::ledger_contract::imports::{counter, number, series};
use crate::ledger_contract::world::with;

/// An assignment that has looked for another number of its document, and waits as it writes for the
/// holder of this lock.
const LINGER: &str = "create function linger() returns trigger language plpgsql as $$ begin \
     perform pg_advisory_xact_lock(42); return new; end $$; \
     create trigger linger before insert on assignment for each row execute function linger()";

/// Goal: a number that Redis took for the document is found although the journal has it only once
/// the assignment has looked. Method: the assignment waits for the row of its partition, which
/// comes to the database meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assignment_finds_what_redis_took_until_the_partition_came_to_the_database() {
    let mut scene = Scene::set().await;
    let series = once_series(&scene.world).await;
    let at = scene.world.database_epoch().await;
    let range = scene.world.take(at, order(&series, None, 10)).await;
    let taken = scene.taken_by_redis(&series, "sheet").await;
    let held = scene.hold("select 1 from partition for update").await;
    let (ledger, node) = (Arc::clone(&scene.world.ledger), scene.world.node);
    let four = new(&range, 4, "sheet");
    let assigning = tokio::spawn(async move { ledger.life().assign(node, &four).await });
    scene.wait(1, &assigning).await;
    scene.comes_to_database(held, &taken).await;
    let outcome = assigning.await.unwrap().unwrap();
    let Assigning::DocumentHas(DocumentHas::Number(entry)) = outcome else {
        panic!("a second number: {outcome:?}")
    };
    assert_eq!(entry.number, taken.number);
}

/// Goal: an import does not commit beside an assignment to its document that had looked before
/// (F29). Method: an assignment that has looked, and is kept from its commit while the import runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_waits_for_an_assignment_to_its_document_and_is_undone() {
    let mut scene = Scene::set().await;
    let series = series(&scene.world).await;
    let at = scene.world.database_epoch().await;
    let range = scene.world.take(at, order(&series, None, 10)).await;
    sqlx::raw_sql(LINGER).execute(&mut scene.looks).await.unwrap();
    let held = scene.hold("select pg_advisory_xact_lock(42)").await;
    let (ledger, node) = (Arc::clone(&scene.world.ledger), scene.world.node);
    let four = new(&range, 4, "twice");
    let assigning = tokio::spawn(async move { ledger.life().assign(node, &four).await });
    scene.wait(1, &assigning).await;
    let ledger = scene.world.another().await;
    let counters = [counter(&series, "old", 1)];
    let entry = with(number(&series, "old", 1), |record| record.document_id = Some("twice".into()));
    let importing = tokio::spawn(async move {
        let chunks = &mut std::iter::once(Ok(vec![entry]));
        ledger.imports().add(NodeId::random(), &counters, &[], chunks).await
    });
    scene.wait(2, &importing).await;
    let_go(held).await;
    let outcome = assigning.await.unwrap().unwrap();
    assert!(matches!(outcome, Assigning::Written(_)), "{outcome:?}");
    let refused = importing.await.unwrap().expect_err("a second number").to_string();
    assert!(refused.contains("document twice got the number k-4 here meanwhile"), "{refused}");
    // What was assigned before is no reason.
    let entry = with(number(&series, "old", 1), |record| record.document_id = Some("twice".into()));
    let (ledger, counters) = (scene.world.another().await, [counter(&series, "old", 1)]);
    let chunks = &mut std::iter::once(Ok(vec![entry]));
    ledger.imports().add(NodeId::random(), &counters, &[], chunks).await.unwrap();
    scene.world.verify().await;
}
