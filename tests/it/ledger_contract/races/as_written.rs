//! A number that is kept as written, and a save of a series that could render it, at the same
//! moment.

use std::sync::Arc;

use numerator::ledger::{LedgerError, Registering, SeriesRefusal};

use super::acceptance::SERIES_LOCK;
use super::{Scene, let_go};
use crate::ledger_contract::by_hand::number_as_written;
use crate::ledger_contract::imports::series;
use crate::ledger_contract::setup::change;

/// Goal: a number is not kept beside a save that it does not see. Method: a save that is under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_is_kept_as_written_while_a_series_is_saved() {
    let scene = Scene::set().await;
    let series = series(&scene.world).await;
    scene.world.database_epoch().await;
    let imports = || scene.world.ledger.imports();
    let new = number_as_written(&series, "paper", "OTHER/001");
    let saving = scene.hold(SERIES_LOCK).await;
    let refused = imports().register(scene.world.node, &new).await;
    assert!(matches!(refused, Err(LedgerError::LockTimeout { .. })), "{refused:?}");
    let_go(saving).await;
    let kept = imports().register(scene.world.node, &new).await.unwrap();
    assert!(matches!(kept, Registering::Written(_)), "{kept:?}");
    scene.world.is_whole().await;
}

/// Goal: a save sees the number that was being kept before it began. Method: it waits for a number
/// that waits for its counter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_series_is_saved_once_a_number_as_written_is_kept_that_began_before() {
    let mut scene = Scene::set().await;
    let series = series(&scene.world).await;
    scene.world.database_epoch().await;
    let held = scene.hold("lock table counter in share row exclusive mode").await;
    let (ledger, node) = (Arc::clone(&scene.world.ledger), scene.world.node);
    let new = number_as_written(&series, "paper", "OTHER/001");
    let keep = tokio::spawn(async move { ledger.imports().register(node, &new).await });
    scene.wait(1, &keep).await;
    let ledger = scene.world.another().await;
    let changes = [change("OTHER", "OTHER/{SEQ:3}")];
    let save = tokio::spawn(async move { ledger.series().apply(&changes).await });
    scene.wait(2, &save).await;
    assert!(!save.is_finished(), "a series was saved beside a number as written");
    let_go(held).await;
    let kept = keep.await.unwrap().unwrap();
    assert!(matches!(kept, Registering::Written(_)), "{kept:?}");
    let refused = save.await.unwrap();
    let is_seen = matches!(&refused, Err(LedgerError::Series(SeriesRefusal::ReadsKept { .. })));
    assert!(is_seen, "{refused:?}");
    scene.world.is_whole().await;
}

/// Goal: what was looked at before the transaction is still so in it. Method: a save between both,
/// while the transaction waits at its begin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_number_is_kept_where_a_series_was_saved_since_its_look() {
    let mut scene = Scene::set().await;
    let series = series(&scene.world).await;
    scene.world.database_epoch().await;
    let held = scene.hold("lock table node in access exclusive mode").await;
    let (ledger, node) = (Arc::clone(&scene.world.ledger), scene.world.node);
    let new = number_as_written(&series, "paper", "OTHER/001");
    let again = new.clone();
    let keep = tokio::spawn(async move { ledger.imports().register(node, &new).await });
    scene.wait(1, &keep).await;
    let changes = [change("OTHER", "OTHER/{SEQ:3}")];
    scene.world.ledger.series().apply(&changes).await.unwrap();
    let_go(held).await;
    let refused = keep.await.unwrap();
    let is_late = matches!(
        &refused,
        Err(LedgerError::LockTimeout { cause, .. }) if cause.contains("saved at this moment")
    );
    assert!(is_late, "{refused:?}");
    let refused = scene.world.ledger.imports().register(node, &again).await.unwrap();
    assert_eq!(refused, Registering::Readable { code: "OTHER".into(), version: 1 });
}
