//! Returned values and live reservations beside numbers that are taken and journaled: who gets
//! which, and what is left.

use numerator::ledger::{
    ActOutcome, At, Closing, Counter, CounterSpec, Entry, Reservation, ReservationStanding,
    ReservationsSwept, TakeOutcome, TakeRequest,
};

use super::{first, reserving, same_text};
use crate::ledger_contract::changes;
use crate::ledger_contract::documents::take;
use crate::ledger_contract::world::{World, entry, order, spec, with};

ledger_contract! {
    reservations {
        what_came_back_is_taken_from_below_and_never_by_a_range
        a_value_that_fits_is_found_behind_any_that_do_not
        versions_of_one_batch_take_what_fits_each
        a_collision_out_of_the_pool_is_spent_and_counted_once
        a_collision_beside_it_takes_nothing_from_a_plain_number
        a_record_with_a_reserved_text_collides_and_neither_is_lost
        a_retry_whose_reservation_has_ended_gets_one_of_another_id
        a_retry_whose_reservation_is_confirmed_gets_its_number
        what_ends_below_a_lift_that_left_no_gap_stays_behind
    }
}

/// Reserves and cancels numbers for orders: their values come back.
async fn give_back(world: &World, at: At, orders: impl IntoIterator<Item = TakeRequest>) {
    let mut held = Vec::new();
    for order in orders {
        held.push(world.reserve(at, order).await);
    }
    for reservation in &held {
        assert_eq!(world.cancel(reservation).await, ActOutcome::Done);
    }
    let cancelled = held.len() as u64;
    assert_eq!(world.sweep().await, ReservationsSwept { cancelled, ..Default::default() });
}

/// Orders on the counter `k` whose values come back.
fn backs(count: usize) -> impl Iterator<Item = TakeRequest> {
    (0..count).map(|number| order(&format!("back-{number}")))
}

/// The same order by another spec.
fn by(order: TakeRequest, spec: &CounterSpec) -> TakeRequest {
    TakeRequest { specs: vec![spec.clone()], ..order }
}

/// What a preview shows of the pool.
async fn shown(world: &World, spec: &CounterSpec) -> Option<u64> {
    let lowest = world.ledger.counters().lowest_returned(spec).await.unwrap();
    lowest.map(|lowest| u64::try_from(lowest).unwrap())
}

/// Takes a number out of the pool, which must be the one that was shown.
async fn take_shown(world: &World, at: At, document: &str, spec: &CounterSpec) -> u64 {
    let value = shown(world, spec).await;
    let taken = world.take(at, by(order(document), spec)).await;
    assert_eq!(value, Some(first(&taken)), "{spec:?}");
    first(&taken)
}

async fn counter(world: &World, key: &str) -> Counter {
    world.ledger.counters().get(7, "SEQ", key).await.unwrap().unwrap()
}

pub(in crate::ledger_contract) async fn what_came_back_is_taken_from_below_and_never_by_a_range(
    world: World,
) {
    let at = world.database_epoch().await;
    assert_eq!(shown(&world, &spec("k")).await, None, "there is no counter yet");
    give_back(&world, at, backs(3)).await;
    let range = TakeRequest { count: 2, ..order("range") };
    assert_eq!(first(&world.take(at, range).await), 4);
    assert_eq!(take_shown(&world, at, "a", &spec("k")).await, 1);
    // A reservation takes it as a number does.
    assert_eq!(shown(&world, &spec("k")).await, Some(2));
    assert_eq!(first(&world.reserve(at, order("b")).await.entry), 2);
    assert_eq!(take_shown(&world, at, "c", &spec("k")).await, 3);
    assert_eq!(shown(&world, &spec("k")).await, None);
    assert_eq!(first(&world.take(at, order("d")).await), 6);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_value_that_fits_is_found_behind_any_that_do_not(
    world: World,
) {
    let at = world.database_epoch().await;
    give_back(&world, at, backs(5)).await;
    let raised = CounterSpec { start: 4, ..spec("k") };
    assert_eq!(take_shown(&world, at, "raised", &raised).await, 4);
    let ending = CounterSpec { start: 2, max: 2, ..spec("k") };
    assert_eq!(take_shown(&world, at, "ending", &ending).await, 2);
    assert_eq!(shown(&world, &ending).await, None);
    // 1, 3 and 5 are left, and none of them is on another step.
    let wide = CounterSpec { step: 5, ..spec("k") };
    assert_eq!(shown(&world, &wide).await, None);
    assert_eq!(first(&world.take(at, by(order("wide"), &wide)).await), 10);
    give_back(&world, at, [by(order("wide-back"), &wide)]).await;
    assert_eq!(take_shown(&world, at, "wide-again", &wide).await, 15);
    for (document, value) in [("a", 1), ("b", 3), ("c", 5)] {
        assert_eq!(take_shown(&world, at, document, &spec("k")).await, value);
    }
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn versions_of_one_batch_take_what_fits_each(world: World) {
    let at = world.database_epoch().await;
    give_back(&world, at, backs(4)).await;
    let raised = CounterSpec { start: 3, ..spec("k") };
    let orders = [
        by(order("a"), &raised),
        order("b"),
        reserving(by(order("c"), &raised)),
        order("d"),
        by(order("e"), &raised),
    ];
    let mut values = Vec::new();
    for outcome in take(&world, at, &orders).await {
        match outcome {
            TakeOutcome::Taken(entry) => values.push(first(&entry)),
            TakeOutcome::Reserved(reservation) => values.push(first(&reservation.entry)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(values, [3, 1, 4, 2, 5]);
    world.is_whole().await;
}

/// Puts a value of the counter `one` into its pool whose text the counter `two` takes.
async fn meet(world: &World, at: At, round: u32) {
    give_back(world, at, [same_text("one", &format!("back-{round}"))]).await;
    let other = world.outcome(at, same_text("two", &format!("other-{round}"))).await;
    assert!(matches!(other, TakeOutcome::Taken(_)), "{other:?}");
}

pub(in crate::ledger_contract) async fn a_collision_out_of_the_pool_is_spent_and_counted_once(
    world: World,
) {
    let at = world.database_epoch().await;
    let collided = |number: &str| TakeOutcome::Collided { number: number.into() };
    meet(&world, at, 1).await;
    assert_eq!(world.outcome(at, same_text("one", "a")).await, collided("same-001"));
    meet(&world, at, 2).await;
    let reserving_it = reserving(same_text("one", "b"));
    assert_eq!(world.outcome(at, reserving_it).await, collided("same-002"));
    let row = counter(&world, "one").await;
    assert_eq!((row.returned, row.reissued, row.taken), (2, 2, 2));
    let spent = |value| (value, value, "Collided".to_owned());
    assert_eq!(world.gaps(row.counter_id).await, [spent(1), spent(2)]);
    // What was remembered of it is what the ledger shows: the next take finds nothing amiss.
    assert_eq!(first(&world.take(at, free_text("c")).await), 3);
    world.is_whole().await;
}

/// An order on the counter `one` whose text is nobody else's.
fn free_text(document: &str) -> TakeRequest {
    let mut order = same_text("one", document);
    std::sync::Arc::make_mut(&mut order.record).mask = format!("{document}-{{0:3}}");
    order
}

pub(in crate::ledger_contract) async fn a_collision_beside_it_takes_nothing_from_a_plain_number(
    world: World,
) {
    let at = world.database_epoch().await;
    meet(&world, at, 1).await;
    let orders =
        [reserving(same_text("one", "a")), free_text("b"), reserving(free_text("c")), order("d")];
    let outcomes = take(&world, at, &orders).await;
    let [
        TakeOutcome::Collided { number },
        TakeOutcome::Taken(plain),
        TakeOutcome::Reserved(held),
        _,
    ] = &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert_eq!((&**number, first(plain), first(&held.entry)), ("same-001", 2, 3));
    assert!(matches!(&outcomes[3], TakeOutcome::Taken(other) if first(other) == 1));
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_record_with_a_reserved_text_collides_and_neither_is_lost(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve(at, same_text("one", "a")).await;
    let next = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(next, &spec("two")).await;
    let same = with(entry(next, id, 1), |record| record.mask = "same-{0:3}".into());
    let same = Entry { number: "same-001".into(), ..same };
    let beside = entry(next, id, 2);
    let appended = world.ledger.append(world.node, &[same.clone(), beside]).await.unwrap();
    assert_eq!((appended.written, appended.collisions), (1, vec![same.record.allocation_id]));
    let noted = world.ledger.register().collisions(10).await.unwrap();
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert_eq!(
        (&*noted[0].number, noted[0].allocation_id, noted[0].other_allocation_id),
        ("same-001", same.record.allocation_id, Some(held.id()))
    );
    assert_eq!(world.confirm(&held).await, ActOutcome::Done);
    assert_eq!(world.sweep().await, ReservationsSwept { issued: 1, ..Default::default() });
    let rows = world.ledger.register().numbers_of("a", None, 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| &*row.entry.number).collect::<Vec<_>>(), ["same-001"]);
    world.is_whole().await;
}

async fn reserved(world: &World, at: At, order: &TakeRequest) -> Reservation {
    match world.outcome(at, order.clone()).await {
        TakeOutcome::Reserved(reservation) => *reservation,
        other => panic!("not reserved: {other:?}"),
    }
}

pub(in crate::ledger_contract) async fn a_retry_whose_reservation_has_ended_gets_one_of_another_id(
    world: World,
) {
    let at = world.database_epoch().await;
    let order = reserving(order("a"));
    let made = reserved(&world, at, &order).await;
    // A caller that was told of it gives it up before its own request is tried again.
    assert_eq!(world.cancel(&made).await, ActOutcome::Done);
    let retry = TakeRequest { retry_count: 1, ..order };
    let next = reserved(&world, at, &retry).await;
    assert_ne!(next.id(), made.id());
    assert_eq!(first(&next.entry), 1, "the value came back");
    // A reservation that waits under the id of one that was cancelled would be of an older ledger.
    let found = world.ledger.reservations().get(next.id()).await.unwrap();
    assert!(matches!(&found, ReservationStanding::Live(it) if it.id() == next.id()), "{found:?}");
    let found = world.ledger.reservations().get(made.id()).await.unwrap();
    assert!(matches!(found, ReservationStanding::Ended(_)), "{found:?}");
    // Its document finds it.
    let again = TakeRequest { retry_count: 2, ..retry };
    let TakeOutcome::Found(found) = world.outcome(at, again).await else { panic!("not found") };
    assert_eq!(found.reserved_by_document.as_deref().map(Reservation::id), Some(next.id()));
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_retry_whose_reservation_is_confirmed_gets_its_number(
    world: World,
) {
    let at = world.database_epoch().await;
    let order = reserving(order("a"));
    let made = reserved(&world, at, &order).await;
    assert_eq!(world.confirm(&made).await, ActOutcome::Done);
    let retry = TakeRequest { retry_count: 1, ..order };
    // Before its row is in the journal, and after.
    for _ in 0..2 {
        let outcome = world.outcome(at, retry.clone()).await;
        let TakeOutcome::Taken(issued) = &outcome else { panic!("{outcome:?}") };
        assert_eq!(issued.number, made.entry.number);
        world.sweep().await;
    }
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_ends_below_a_lift_that_left_no_gap_stays_behind(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve(at, order("a")).await;
    let id = held.entry.taken[0].counter_id;
    // The very next value: nothing is skipped.
    let asked = changes::ask(&world, &changes::next(id, 2)).await;
    changes::approve(&world.ledger, &asked, "bert").await.unwrap();
    assert_eq!(world.cancel(&held).await, ActOutcome::Done);
    world.sweep().await;
    assert_eq!(world.gaps(id).await, [(1, 1, "Cancelled".to_owned())]);
    assert_eq!(first(&world.take(at, order("b")).await), 2);
    // One that is made above comes back as ever.
    give_back(&world, at, [order("c")]).await;
    assert_eq!(first(&world.take(at, order("d")).await), 3);
    world.is_whole().await;
}
