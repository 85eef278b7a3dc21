//! A removal of a series and its first counter at the row of the series.

use numerator::ledger::{At, Closing, CounterSpec, Owner, PartitionState, SeriesRemoval};

use super::super::world::spec;
use super::{Scene, let_go};

/// A removal and a first counter that wait for the row of one series together: whichever gets it,
/// no series that is removed has a counter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_and_a_first_counter_that_wait_for_one_series_never_both_succeed() {
    for removal_first in [true, false] {
        let mut scene = Scene::set().await;
        let world = &scene.world;
        let change = super::super::setup::change("S", "{SEQ:3}");
        let series = world.ledger.series().apply(&[change]).await.unwrap().remove(0);
        let old = At { partition: series.partition, epoch: 0 };
        let next = world.ledger.bump(old, PartitionState::Open, world.node, "t").await.unwrap();
        let at = At { partition: series.partition, epoch: next.unwrap() };
        world.claim(at, Closing::Exact, &Owner::Database).await;
        let held = scene.hold("select 1 from series for update").await;
        let (series_id, version) = (series.series_id, series.version);
        let spec = CounterSpec { series_id, version, ..spec("k") };
        let removal = SeriesRemoval {
            series_id,
            expected: None,
            removed_by: "me".into(),
            reason: "a mistake".into(),
            removed_at_us: 1,
        };
        let (one, other, node) =
            (scene.world.another().await, scene.world.another().await, scene.world.node);
        let own = spec.clone();
        let removing = async move { one.series().remove(node, &removal).await.is_ok() };
        let seeding = async move { other.seed(at, node, &[own]).await.is_ok() };
        let (removed, seeded) = if removal_first {
            let removing = tokio::spawn(removing);
            scene.wait(1, &removing).await;
            let seeding = tokio::spawn(seeding);
            scene.wait(2, &seeding).await;
            let_go(held).await;
            (removing.await.unwrap(), seeding.await.unwrap())
        } else {
            let seeding = tokio::spawn(seeding);
            scene.wait(1, &seeding).await;
            let removing = tokio::spawn(removing);
            scene.wait(2, &removing).await;
            let_go(held).await;
            (removing.await.unwrap(), seeding.await.unwrap())
        };
        assert!(removed != seeded, "removed: {removed}, seeded: {seeded}");
        let counter =
            scene.world.ledger.counters().get(series_id, &spec.serial, &spec.key).await.unwrap();
        assert_eq!(counter.is_some(), seeded);
    }
}
