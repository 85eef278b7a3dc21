//! The end of a hold and callers' own transactions that were open before it.

use std::time::Duration;

use numerator::ledger::{
    At, LedgerError, LedgerSettings, Released, Reservation, SharedLedger, open,
};
use sqlx::postgres::PgConnection;

use super::{Scene, let_go};
use crate::ledger_contract::world::{PARTITION, World, order};

/// How long a hasty process waits for a lock.
const HASTY: Duration = Duration::from_millis(50);

/// Another process that waits so long for locks, and holds the ledger.
async fn holder(world: &World, lock_timeout: Duration) -> SharedLedger {
    let settings = LedgerSettings { connections_max: 2, lock_timeout, ..LedgerSettings::default() };
    let other = open(&world.url, settings, world.clock.clone()).await.unwrap();
    other.hold_all(&[], "test").await.unwrap();
    other
}

async fn release(ledger: &SharedLedger) -> Result<Released, LedgerError> {
    let partitions = ledger.partitions().await?;
    let epoch = partitions[PARTITION as usize].epoch + 2;
    ledger.release(At { partition: PARTITION, epoch }, 0).await
}

/// A caller's open transaction that has confirmed its reservation.
async fn confirming(scene: &Scene, document: &str) -> PgConnection {
    let confirm = "update reservation set state = 'confirmed', changed_at_us = reserved_at_us,
                   changed_by = 'sql:test' where document_id =";
    scene.hold(format!("{confirm} '{document}'")).await
}

async fn live(ledger: &SharedLedger) -> Vec<Reservation> {
    ledger.reservations().page(None, 10).await.unwrap()
}

/// Goal: what a caller confirms as a hold ends stays its own; nothing is left out because it is
/// locked (L11). Method: its transaction ends while the release waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_hold_waits_for_what_callers_confirm() {
    for commits in [true, false] {
        let mut scene = Scene::set().await;
        let at = scene.world.database_epoch().await;
        let open = scene.world.reserve(at, order("open")).await;
        scene.world.reserve(at, order("other")).await;
        let mut caller = confirming(&scene, "open").await;
        let other = holder(&scene.world, LedgerSettings::default().lock_timeout).await;
        let releasing = std::sync::Arc::clone(&other);
        let call = tokio::spawn(async move { release(&releasing).await });
        scene.wait(1, &call).await;
        assert!(!call.is_finished(), "it waits");
        if commits {
            let_go(caller).await;
        } else {
            sqlx::raw_sql("rollback").execute(&mut caller).await.unwrap();
        }
        assert_eq!(call.await.unwrap().unwrap(), Released::Released);
        let left: Vec<_> = live(&other).await.iter().map(Reservation::id).collect();
        let expected = if commits { vec![open.id()] } else { Vec::new() };
        assert_eq!(left, expected);
    }
}

/// Goal: a caller's transaction that does not end keeps the hold as it is, whole, and the error
/// says what to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_hold_does_nothing_by_halves() {
    let scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    scene.world.reserve(at, order("other")).await;
    scene.world.reserve(at, order("open")).await;
    let caller = confirming(&scene, "open").await;
    let other = holder(&scene.world, HASTY).await;
    let error = release(&other).await.expect_err("the row is locked");
    assert!(matches!(error, LedgerError::LockTimeout { .. }), "{error}");
    assert!(error.to_string().contains("commit it or end it"), "{error}");
    assert_eq!(live(&other).await.len(), 2, "nothing is spent");
    let_go(caller).await;
    assert_eq!(release(&other).await.unwrap(), Released::Released);
    assert_eq!(live(&other).await.len(), 1, "what was confirmed stays");
}
