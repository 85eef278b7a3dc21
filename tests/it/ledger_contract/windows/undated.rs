//! Since when requests near a turn have been asked (F40), and what each process reports to know.

use futures_util::future::join_all;
use numerator::ledger::undated_names;
use numerator::node::NodeId;

use super::super::setup::change;
use super::super::world::{NOW_US, World};

ledger_contract! {
    windows {
        a_request_is_dated_by_the_moment_since_when_it_is_asked
        one_document_under_two_keys_at_once_is_dated_once
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
    let ask =
        async |names: &[i64], now_us: i64| ledger.asked_at(names, now_us, NOW_US, DAY_US).await;
    let both = names(Some("k"), Some("d"));
    assert_eq!(ask(&both, 5).await.unwrap(), 5);
    // By whichever of its names, earlier or later by another clock.
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
    // Many concurrent calls get the same.
    let many = names(Some("many"), Some("many"));
    let asking = (0..20).map(|now_us| ask(&many, 100 + now_us));
    let told: Vec<i64> = join_all(asking).await.into_iter().map(Result::unwrap).collect();
    assert!(told.iter().all(|at| *at == told[0]), "{told:?}");
    // What was asked at a turn within the window is still asked; before that, it was another one.
    let at = async |turn_us| ledger.asked_at(&both, 50, turn_us, DAY_US).await.unwrap();
    assert_eq!(at(NOW_US + DAY_US).await, 5);
    assert_eq!(at(NOW_US + DAY_US + 1).await, 50);
    assert_eq!(ask(&both, 9).await.unwrap(), 50, "of a turn that is later to somebody else");
    // At a much later turn those of this one are removed.
    let (early, late) = (names(Some("early"), None), names(Some("late"), None));
    assert_eq!(ask(&early, 7).await.unwrap(), 7);
    let asked = ledger.asked_at(&late, 51, NOW_US + 41 * DAY_US, DAY_US).await.unwrap();
    assert_eq!((asked, ask(&early, 9).await.unwrap()), (51, 9));
}

/// The other request has named its moment, and has not committed yet. A file has one writer: there
/// it has.
pub(in crate::ledger_contract) async fn one_document_under_two_keys_at_once_is_dated_once(
    world: World,
) {
    let names = |key| undated_names(7, "u", key, Some("d"), None);
    let ledger = world.another().await;
    let asking =
        async |key, now_us| ledger.asked_at(&names(key), now_us, NOW_US, DAY_US).await.unwrap();
    if world.ledger.engine() == "sqlite" {
        assert_eq!((asking(Some("k1"), 5).await, asking(Some("k2"), 9).await), (5, 5));
    } else {
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        let mut other = pool.begin().await.unwrap();
        for name in names(Some("k1")).into_iter().rev() {
            let insert = "insert into undated_request (name, asked_at_us, turn_us) \
                          values ($1, 5, $2)";
            sqlx::query(insert).bind(name).bind(NOW_US).execute(&mut *other).await.unwrap();
        }
        let (ledger, of) = (world.another().await, names(Some("k2")));
        let late =
            tokio::spawn(async move { ledger.asked_at(&of, 9, NOW_US, DAY_US).await.unwrap() });
        assert!(world.meets_lock(&pool, &late).await, "it does not wait");
        other.commit().await.unwrap();
        assert_eq!(late.await.unwrap(), 5);
    }
    // Its retry, by its key as by its document.
    assert_eq!((asking(Some("k2"), 9).await, asking(None, 9).await), (5, 5));
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
    ledger.series().apply(&[change("A", "A-{SEQ:3}")]).await.unwrap();
    let after = ledger.stamps().await.unwrap();
    assert_eq!(ledger.unaware(&after, None).await.unwrap(), 2);
    assert_eq!(ledger.unaware(&after, Some(world.node)).await.unwrap(), 1);
    ledger.note_known(world.node, &after).await.unwrap();
    assert_eq!(ledger.unaware(&after, None).await.unwrap(), 1);
    // A node that left is not waited for.
    ledger.nodes().leave(other).await.unwrap();
    assert_eq!(ledger.unaware(&after, None).await.unwrap(), 0);
}
