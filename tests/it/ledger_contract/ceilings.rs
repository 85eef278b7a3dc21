//! Which counters continue above their ceilings: those whose own epoch was closed there, and those
//! that were lifted since (F32).

use numerator::ledger::{Closing, CounterSpec};

use super::world::{World, at, entry, range, spec};

pub(super) async fn a_counter_goes_on_above_its_ceiling_after_a_close_at_the_ceiling(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    world.append(&[range(old, counter_id, 1, 3), entry(old, counter_id, 5)]).await;
    let new = world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(world.seed(new, &spec("k")).await, (counter_id, 10, 20));
    let lost = |first, last| (first, last, "Unaccounted".to_owned());
    assert_eq!(world.gaps(counter_id).await, [lost(4, 4), lost(6, 10)]);
    world.verify().await;
}

pub(super) async fn an_untouched_counter_remembers_the_ceiling_over_later_exact_closes(
    world: World,
) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    world.append(&[range(old, counter_id, 1, 3)]).await;
    world.redis_epoch(Closing::Ceiling).await;
    world.redis_epoch(Closing::Exact).await;
    let last = world.database_epoch().await;
    assert_eq!(
        world.seed(last, &CounterSpec { headroom: 0, ..spec("k") }).await,
        (counter_id, 10, 10)
    );
    assert_eq!(world.gaps(counter_id).await, [(4, 10, "Unaccounted".to_owned())]);
}

/// F32: a node that was silent in the later epoch had accounted for all of the one before it.
pub(super) async fn an_untouched_counter_loses_nothing_by_a_later_close_at_the_ceiling(
    world: World,
) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (cold, ..) = world.seed(old, &spec("cold")).await;
    world.append(&[range(old, cold, 1, 3)]).await;
    let second = world.redis_epoch(Closing::Exact).await;
    let (lost, ..) = world.seed(second, &spec("lost")).await;
    world.redis_epoch(Closing::Ceiling).await;
    let last = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(last, &spec("cold")).await, (cold, 3, 13));
    assert_eq!(world.gaps(cold).await, []);
    assert_eq!(world.seed(last, &spec("lost")).await, (lost, 10, 20));
}

pub(super) async fn what_was_lifted_goes_on_above_its_ceiling_whatever_is_closed_later(
    world: World,
) {
    let old = world.redis_epoch(Closing::Exact).await;
    world.seed(old, &spec("released")).await;
    let epoch = world.redis_epoch(Closing::Exact).await.epoch;
    world.ledger.hold_all(&[], "c").await.unwrap();
    world.ledger.release(at(epoch + 1), 0).await.unwrap();
    let world = world.anew().await;
    world.redis_epoch(Closing::Exact).await;
    world.redis_epoch(Closing::Ceiling).await;
    let next = world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(world.seed(next, &spec("released")).await.1, 10);

    let own = world.redis_epoch(Closing::Exact).await;
    let (cold, ..) = world.seed(own, &spec("cold")).await;
    world.redis_epoch(Closing::Exact).await;
    let last = world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(world.seed(last, &spec("cold")).await, (cold, 0, 10));
}
