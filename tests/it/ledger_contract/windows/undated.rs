//! Since when requests near a turn are asked (F40), and what each process says that it knows.

use futures_util::future::join_all;
use numerator::ledger::undated_names;
use numerator::node::NodeId;

use super::super::setup::change;
use super::super::world::{NOW_US, World};

ledger_contract! {
    windows {
        a_request_is_dated_by_the_moment_since_when_it_is_asked
        whoever_saves_hears_which_processes_do_not_know
    }
}

const DAY_US: i64 = 86_400_000_000;

pub(in crate::ledger_contract) async fn a_request_is_dated_by_the_moment_since_when_it_is_asked(
    world: World,
) {
    let ledger = &world.ledger;
    let names =
        |key: Option<&str>, document: Option<&str>| undated_names(7, "u", key, document, None);
    let ask = async |names: &[i64], now_us: i64| ledger.asked_at(names, now_us, NOW_US).await;
    let both = names(Some("k"), Some("d"));
    assert_eq!(ask(&both, 5).await.unwrap(), 5);
    // By whichever of its names, earlier or later by somebody's clock.
    for (names, now_us) in [
        (both.clone(), 9),
        (both.clone(), 1),
        (names(Some("k"), None), 9),
        (names(None, Some("d")), 9),
        (names(Some("other"), Some("d")), 9),
        (names(Some("other"), None), 3),
    ] {
        assert_eq!(ask(&names, now_us).await.unwrap(), 5, "{now_us}");
    }
    // Other callers, series and payloads ask something else; the key comes first.
    let other = |family, user, again| undated_names(family, user, Some("k"), Some("d"), again);
    assert_eq!(ask(&other(8, "u", None), 6).await.unwrap(), 6);
    assert_eq!(ask(&undated_names(7, "v", Some("k"), None, None), 7).await.unwrap(), 7);
    assert_eq!(ask(&other(7, "v", None), 8).await.unwrap(), 7);
    assert_eq!(ask(&undated_names(7, "u", None, Some("d"), Some("p")), 8).await.unwrap(), 8);
    // Of many at once all hear the same.
    let names = names(Some("many"), Some("many"));
    let asking = (0..20).map(|now_us| ask(&names, 100 + now_us));
    let told: Vec<i64> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
    assert!(told.iter().all(|at| *at == told[0]), "{told:?}");
    // At a much later turn those of this one go.
    let late = undated_names(7, "u", Some("late"), None, None);
    assert_eq!(ledger.asked_at(&late, 50, NOW_US + 39 * DAY_US).await.unwrap(), 50);
    assert_eq!(ask(&both, 9).await.unwrap(), 5);
    assert_eq!(ledger.asked_at(&late, 51, NOW_US + 41 * DAY_US).await.unwrap(), 50);
    assert_eq!(ask(&both, 9).await.unwrap(), 9);
}

pub(in crate::ledger_contract) async fn whoever_saves_hears_which_processes_do_not_know(
    world: World,
) {
    let ledger = &world.ledger;
    let other = NodeId::random();
    world.join(other).await;
    let before = ledger.stamps().await.unwrap();
    ledger.note_known(world.node, &before).await.unwrap();
    assert_eq!(ledger.unaware(&before, None).await.unwrap(), 0, "the other one says nothing yet");
    ledger.note_known(other, &before).await.unwrap();
    ledger.apply_series(&[change("A", "A-{SEQ:3}")]).await.unwrap();
    let after = ledger.stamps().await.unwrap();
    assert_eq!(ledger.unaware(&after, None).await.unwrap(), 2);
    assert_eq!(ledger.unaware(&after, Some(world.node)).await.unwrap(), 1);
    ledger.note_known(world.node, &after).await.unwrap();
    assert_eq!(ledger.unaware(&after, None).await.unwrap(), 1);
    // Who has left is not waited for.
    ledger.leave(other).await.unwrap();
    assert_eq!(ledger.unaware(&after, None).await.unwrap(), 0);
}
