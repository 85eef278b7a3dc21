//! What a number by hand leaves as it was: values that come back below it, and what this process
//! remembers for a ledger that goes back. The going back is done with plain SQL.

use numerator::ledger::{
    AccountRequest, Accounted, At, CounterFilter, LedgerError, NumberByHand, PassedOver,
    Registering, SeriesVersion, ValueOf,
};
use numerator::node::NodeId;

use super::{by_hand, next, order, register, value, written};
use crate::ledger_contract::imports::series;
use crate::ledger_contract::world::{LOCK_WAIT, World};

ledger_contract! {
    by_hand {
        a_registration_that_is_forgotten_is_noticed
        a_forgotten_registration_gives_no_value_back
        a_registration_is_looked_for_behind_a_heartbeat
        what_is_reserved_below_a_number_by_hand_comes_back
        what_came_back_below_a_number_by_hand_comes_back_again
        a_number_by_hand_goes_no_further_than_to_a_raised_start
        what_passed_over_a_value_is_found_behind_a_hundred
        an_account_counts_numbers_by_hand_beyond_its_list
    }
}

fn went_back<T>(result: &Result<T, LedgerError>) -> bool {
    matches!(result, Err(LedgerError::WentBack(_)))
}

/// Goal: neither a take nor a registration goes on from what the ledger shows.
async fn nothing_is_given(world: &World, at: At, series: &SeriesVersion) {
    let registrar = NodeId::random();
    world.join(registrar).await;
    let new = by_hand(series, "late", 6);
    assert!(went_back(&world.ledger.imports().register(registrar, &new).await));
    let orders = [order(series, "next")];
    assert!(went_back(&world.ledger.take(at, world.node, &orders, LOCK_WAIT).await));
    let reported = world.ledger.nodes().heartbeat(world.node, None).await;
    assert!(went_back(&reported), "it is reported");
}

pub(in crate::ledger_contract) async fn a_registration_that_is_forgotten_is_noticed(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    assert_eq!(next(&world, at, &series, "a").await, 1);
    written(&world, &by_hand(&series, "paper", 5)).await;
    world.sql("delete from journal where path = 'registered'").await;
    world.sql("delete from gap").await;
    let back = "update counter set start_value = 0, taken = 1, ceiling = 1, journaled = 1,
                returned = 0";
    world.sql(back).await;
    Box::pin(nothing_is_given(&world, at, &series)).await;
}

pub(in crate::ledger_contract) async fn a_forgotten_registration_gives_no_value_back(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let back = world.reserve(at, order(&series, "back")).await;
    assert_eq!(next(&world, at, &series, "a").await, 2);
    world.cancel(&back).await;
    world.sweep().await;
    written(&world, &by_hand(&series, "paper", 1)).await;
    world.sql("delete from journal where path = 'registered'").await;
    let returned = "insert into gap (counter_id, first_value, last_value, step, reason, epoch,
                    noted_at_us) select counter_id, 1, 1, 1, 'returned', epoch, 1 from counter";
    world.sql(returned).await;
    world.sql("update counter set reissued = 0").await;
    Box::pin(nothing_is_given(&world, at, &series)).await;
}

pub(in crate::ledger_contract) async fn a_registration_is_looked_for_behind_a_heartbeat(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    written(&world, &by_hand(&series, "paper", 1)).await;
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    assert!(world.ledger.has_unproven_takes());
    world.ledger.check_takes().await.unwrap();
    assert!(!world.ledger.has_unproven_takes(), "it is found, and let go");
    written(&world, &by_hand(&series, "other", 2)).await;
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    world.sql("delete from journal where number = 'k-2'").await;
    assert!(went_back(&world.ledger.check_takes().await));
}

pub(in crate::ledger_contract) async fn what_is_reserved_below_a_number_by_hand_comes_back(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let held = world.reserve(at, order(&series, "held")).await;
    assert_eq!(value(&held.entry), 1);
    let registered = written(&world, &by_hand(&series, "paper", 4)).await;
    let passed = PassedOver { first: 2, last: 3, count: 2, is_returned: true };
    assert_eq!(registered.row.passed_over, Some(passed));
    world.cancel(&held).await;
    world.sweep().await;
    for (document, expected) in [("a", 1), ("b", 2), ("c", 3), ("d", 5)] {
        assert_eq!(next(&world, at, &series, document).await, expected, "{document}");
    }
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_came_back_below_a_number_by_hand_comes_back_again(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let back = world.reserve(at, order(&series, "back")).await;
    world.cancel(&back).await;
    world.sweep().await;
    written(&world, &by_hand(&series, "paper", 2)).await;
    let again = world.reserve(at, order(&series, "again")).await;
    assert_eq!(value(&again.entry), 1);
    world.cancel(&again).await;
    world.sweep().await;
    assert_eq!(next(&world, at, &series, "a").await, 1);
    assert_eq!(next(&world, at, &series, "b").await, 3);
    world.is_whole().await;
}

/// Method: the same series by a higher `start`, as a later version has it.
pub(in crate::ledger_contract) async fn a_number_by_hand_goes_no_further_than_to_a_raised_start(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    assert_eq!(next(&world, at, &series, "a").await, 1);
    let back = world.reserve(at, order(&series, "back")).await;
    let counter_id = back.entry.taken[0].counter_id;
    world.cancel(&back).await;
    world.sweep().await;
    let from = |start, value| {
        let mut new = by_hand(&series, "paper", value);
        new.order.specs[0].start = start;
        new
    };
    let refused = register(&world, &from(10, 12)).await;
    assert_eq!(refused, Registering::BelowStart { counter_id, next: 3, start: 10, step: 1 });
    assert_eq!(world.gaps(counter_id).await, [(2, 2, "Returned".to_owned())]);
    // Its counter has come to the start: what lies below that is kept as well.
    written(&world, &from(3, 5)).await;
    for (document, expected) in [("b", 2), ("c", 3), ("d", 4), ("e", 6)] {
        assert_eq!(next(&world, at, &series, document).await, expected, "{document}");
    }
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_passed_over_a_value_is_found_behind_a_hundred(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    let new = NumberByHand { returns: false, ..by_hand(&series, "paper", 103) };
    let registered = written(&world, &new).await;
    for value in 2..103 {
        let found = written(&world, &by_hand(&series, &format!("d{value}"), value)).await;
        assert_eq!(found.row.passed_over, None);
    }
    let skipped = ValueOf { value: 1, ..registered.row.of };
    let by = world.ledger.life().passed_over_by(skipped).await.unwrap();
    assert_eq!(by.map(|row| row.life_id), Some(registered.row.life_id));
}

pub(in crate::ledger_contract) async fn an_account_counts_numbers_by_hand_beyond_its_list(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    for value in 1..4 {
        written(&world, &by_hand(&series, &format!("d{value}"), value)).await;
    }
    for (entries_max, listed, further) in [(2, 2, 1), (3, 3, 0)] {
        let asked = AccountRequest {
            filter: CounterFilter { series_id: Some(series.series_id), ..CounterFilter::default() },
            counters_max: 10,
            rows_max: 1_000,
            entries_max,
            seen: None,
        };
        let told = world.ledger.register().accounts(&asked).await.unwrap();
        let Accounted::Whole(accounts) = told else { panic!("{told:?}") };
        assert_eq!((accounts[0].by_hand.len(), accounts[0].further_by_hand), (listed, further));
    }
}
