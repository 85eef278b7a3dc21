//! Blocks: several numbers of one counter that are used where no process sees it. One never ends by
//! time, and each of its numbers is a document's or nobody's once it is handed back.

mod going_back;
mod meetings;

pub(in crate::ledger_contract) use going_back::*;
pub(in crate::ledger_contract) use meetings::*;

use numerator::ledger::{
    ActOutcome, At, BlockOutcome, Closing, CounterSpec, HandBack, NO_END_US, NewRevision, Owner,
    Reservation, ReservationAct, ReservationEnd, ReservationStanding, ReservationsSwept,
    ReservedFilter, Revised, TakeOutcome, TakeRequest, UsedFlaw, UsedNumber, ValueOf,
};
use numerator::node::NodeId;
use uuid::Uuid;

use super::{first, id_of, reserving};
use crate::ledger_contract::changes;
use crate::ledger_contract::documents::dated;
use crate::ledger_contract::world::{NOW_US, World, order, order_of, record, spec};

ledger_contract! {
    reservations {
        a_block_is_handed_back_once_with_what_was_used
        a_block_never_ends_by_time_nor_by_an_act_on_its_row
        a_list_with_a_flaw_changes_nothing
        a_block_that_is_given_up_is_spent_as_a_whole
        where_dates_are_kept_no_number_of_a_block_returns
        what_is_handed_back_below_a_lift_stays_behind
        a_value_of_a_block_is_in_each_sum_once
        no_text_of_a_block_is_anothers
        no_block_is_reserved_beside_a_process_that_knows_none
        a_block_larger_than_what_is_left_takes_nothing
        while_its_partition_is_held_a_block_does_not_end
    }
}

/// An order of a block on the counter `k`, whose numbers are `b-001` and so on.
pub(in crate::ledger_contract) fn block(key: &str, count: u64) -> TakeRequest {
    let mut record = record("b");
    (record.document_id, record.idempotency_key) = (None, Some(key.to_owned()));
    TakeRequest { count, reserve_us: Some(NO_END_US), ..order_of(record) }
}

/// What is handed back of a block, as (number, document).
pub(in crate::ledger_contract) fn list(block: &Reservation, used: &[(&str, &str)]) -> HandBack {
    let used = used.iter().map(|(number, document)| UsedNumber {
        number: (*number).to_owned(),
        document_id: (*document).to_owned(),
    });
    let documents = numbering::DocumentsOf::Series;
    HandBack { id: block.id(), used: used.collect(), documents, by: "u".to_owned() }
}

impl World {
    /// Reserves a block that must be new.
    pub(in crate::ledger_contract) async fn reserve_block(
        &self,
        at: At,
        order: TakeRequest,
    ) -> Reservation {
        match self.outcome(at, order).await {
            TakeOutcome::Reserved(reservation) => *reservation,
            other => panic!("not reserved: {other:?}"),
        }
    }

    async fn hand_back(&self, block: &Reservation, used: &[(&str, &str)]) -> BlockOutcome {
        let order = list(block, used);
        self.ledger.reservations().hand_back(self.node, &order).await.unwrap()
    }

    async fn cancel_block(&self, block: &Reservation) -> ActOutcome {
        let reservations = self.ledger.reservations();
        let acted = reservations.cancel_block(self.node, block.id(), ("the book is lost", "u"));
        acted.await.unwrap().outcome
    }

    /// How a reservation ended.
    async fn end(&self, block: &Reservation) -> Option<ReservationEnd> {
        match self.ledger.reservations().get(block.id()).await.unwrap() {
            ReservationStanding::Ended(ended) => Some(ended.end),
            _ => None,
        }
    }
}

fn is_done(outcome: &BlockOutcome) -> bool {
    matches!(outcome, BlockOutcome::Done { .. })
}

pub(in crate::ledger_contract) async fn a_block_is_handed_back_once_with_what_was_used(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 5)).await;
    let counter_id = held.entry.taken[0].counter_id;
    let range = held.entry.taken[0].range;
    assert_eq!((range.first, range.last, &*held.entry.number), (1, 5, "b-001"));
    let found = world.outcome(at, block("book", 5)).await;
    let TakeOutcome::Found(found) = found else { panic!("{found:?}") };
    assert_eq!(found.reserved_by_key.map(|found| found.id()), Some(held.id()));
    // Another document's number lies above it.
    assert_eq!(first(&world.take(at, order("beside")).await), 6);
    let used = [("b-004", "x"), ("b-002", "y")];
    let outcome = world.hand_back(&held, &used).await;
    let BlockOutcome::Done { ended, entries } = outcome else { panic!("{outcome:?}") };
    let told: Vec<_> = entries
        .iter()
        .map(|entry| (first(entry), &*entry.number, entry.record.document_id.as_deref()))
        .collect();
    assert_eq!(told, [(2, "b-002", Some("y")), (4, "b-004", Some("x"))]);
    let handed_back = ended.handed_back.clone().unwrap();
    assert_eq!((handed_back.used, handed_back.returned, handed_back.spent), (2, 3, 0));
    let returned = |value| (value, value, "Returned".to_owned());
    assert_eq!(world.gaps(counter_id).await, [1, 3, 5].map(returned));
    // Each is found by its document, and no other number is given to that.
    let again = world.outcome(at, order("x")).await;
    let TakeOutcome::Found(found) = again else { panic!("{again:?}") };
    assert_eq!(found.by_document.map(|entry| entry.number), Some("b-004".to_owned()));
    // The same list again, in another order, finds what it did; another one does not.
    let again = world.hand_back(&held, &[used[1], used[0]]).await;
    let BlockOutcome::Repeated { ended: again, .. } = again else { panic!("{again:?}") };
    assert_eq!(again.handed_back, ended.handed_back);
    let other = world.hand_back(&held, &used[..1]).await;
    let BlockOutcome::Refused(ReservationStanding::Ended(other)) = other else {
        panic!("{other:?}")
    };
    assert_eq!(other.end, ReservationEnd::HandedBack);
    assert_eq!(world.confirm(&held).await, ActOutcome::HandedBack);
    assert_eq!(world.cancel(&held).await, ActOutcome::HandedBack);
    assert_eq!(world.cancel_block(&held).await, ActOutcome::HandedBack);
    // What was not used is next, the lowest before all.
    assert_eq!(first(&world.take(at, order("d")).await), 1);
    assert_eq!(first(&world.take(at, order("e")).await), 3);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_block_never_ends_by_time_nor_by_an_act_on_its_row(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 2)).await;
    assert!(held.is_block() && held.ends_at_us().is_none() && !held.is_due());
    assert_eq!(world.confirm(&held).await, ActOutcome::IsBlock);
    assert_eq!(world.cancel(&held).await, ActOutcome::IsBlock);
    assert_eq!(world.sweep().await, ReservationsSwept::default());
    let counts = world.ledger.reservations().counts().await.unwrap();
    assert_eq!((counts.reserved, counts.over_for_us), (1, 0));
    // One that is over beside it is still told.
    world.reserve(at, order("a")).await;
    world.let_expire("a").await;
    assert!(world.ledger.reservations().counts().await.unwrap().over_for_us > 0);
    world.sweep().await;
    assert_eq!(world.end(&held).await, None);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_list_with_a_flaw_changes_nothing(world: World) {
    let at = world.database_epoch().await;
    world.take(at, order("numbered")).await;
    world.reserve(at, order("holds")).await;
    let held = world.reserve_block(at, block("book", 3)).await;
    for (used, flaw) in [
        (
            [("b-003", "x"), ("b-006", "y")],
            UsedFlaw::Outside { first: "b-003".to_owned(), last: "b-005".to_owned() },
        ),
        ([("b-003", "x"), ("b-003", "y")], UsedFlaw::NumberTwice { earlier: 0 }),
        ([("b-003", "x"), ("b-004", "x")], UsedFlaw::DocumentTwice { earlier: 0 }),
        ([("b-003", "x"), ("b-004", "numbered")], UsedFlaw::Numbered),
        ([("b-003", "x"), ("b-004", "holds")], UsedFlaw::DocumentReserved),
    ] {
        let outcome = world.hand_back(&held, &used).await;
        assert_eq!(outcome, BlockOutcome::Flawed { place: 1, flaw }, "{used:?}");
    }
    let live = world.ledger.reservations().get(held.id()).await.unwrap();
    assert!(matches!(live, ReservationStanding::Live(_)), "{live:?}");
    assert_eq!(world.gaps(held.entry.taken[0].counter_id).await, []);
    // A reservation that is over holds nothing.
    world.let_expire("holds").await;
    let outcome = world.hand_back(&held, &[("b-003", "x"), ("b-004", "holds")]).await;
    assert!(is_done(&outcome), "{outcome:?}");
    // A single number is no block.
    let single = world.reserve(at, order("single")).await;
    let outcome = world.hand_back(&single, &[]).await;
    assert!(matches!(outcome, BlockOutcome::Refused(ReservationStanding::Live(_))), "{outcome:?}");
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_block_that_is_given_up_is_spent_as_a_whole(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 4)).await;
    assert_eq!(world.cancel_block(&held).await, ActOutcome::Done);
    assert_eq!(world.cancel_block(&held).await, ActOutcome::Repeated);
    let counter_id = held.entry.taken[0].counter_id;
    assert_eq!(world.gaps(counter_id).await, [(1, 4, "Cancelled".to_owned())]);
    let outcome = world.hand_back(&held, &[]).await;
    assert!(matches!(outcome, BlockOutcome::Refused(ReservationStanding::Ended(_))), "{outcome:?}");
    assert_eq!(world.end(&held).await, Some(ReservationEnd::Cancelled));
    assert_eq!(first(&world.take(at, order("next")).await), 5, "none of it comes again");
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn where_dates_are_kept_no_number_of_a_block_returns(
    world: World,
) {
    let at = world.database_epoch().await;
    let single = dated("a", "2026-01-05");
    let mut record = (*single.record).clone();
    (record.document_id, record.idempotency_key) = (None, Some("book".to_owned()));
    let (family, specs) = (single.family.clone(), single.specs.clone());
    let reserve_us = Some(NO_END_US);
    let order = TakeRequest { family, specs, count: 3, reserve_us, ..order_of(record) };
    let held = world.reserve_block(at, order).await;
    // The date counts from the reservation on.
    let outcome = world.outcome(at, dated("c", "2026-01-04")).await;
    assert!(matches!(outcome, TakeOutcome::BeforeLast { .. }), "{outcome:?}");
    assert!(is_done(&world.hand_back(&held, &[("2026-01-002", "x")]).await));
    let spent = |value| (value, value, "Cancelled".to_owned());
    assert_eq!(world.gaps(held.entry.taken[0].counter_id).await, [spent(1), spent(3)]);
    assert_eq!(first(&world.take(at, dated("d", "2026-01-06")).await), 4);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_is_handed_back_below_a_lift_stays_behind(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    let id = held.entry.taken[0].counter_id;
    let asked = changes::ask(&world, &changes::next(id, 10)).await;
    changes::approve(&world.ledger, &asked, "bert").await.unwrap();
    assert!(is_done(&world.hand_back(&held, &[("b-002", "x")]).await));
    assert_eq!(first(&world.take(at, order("next")).await), 10);
    let gaps = [(1, 1, "Cancelled"), (3, 3, "Cancelled"), (4, 9, "Skipped")];
    let gaps = gaps.map(|(from, to, reason)| (from, to, reason.to_owned()));
    assert_eq!(world.gaps(id).await, gaps);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_value_of_a_block_is_in_each_sum_once(world: World) {
    let at = world.database_epoch().await;
    world.take(at, order("a")).await;
    let held = world.reserve_block(at, block("book", 4)).await;
    world.take(at, order("b")).await;
    let id = held.entry.taken[0].counter_id;
    let listed = super::listed(&world).await;
    assert_eq!(listed, [(numerator::ledger::EntryKind::Reserved, 2)]);
    world.is_whole().await;
    // Its epoch ends, and the next one looks for what it lost.
    let next = world.next_epoch(Closing::Exact, Owner::Database).await;
    world.take(next, order("c")).await;
    while world.ledger.settle_slice(1).await.unwrap() {}
    assert_eq!(world.gaps(id).await, [], "what is reserved is not lost");
    assert!(is_done(&world.hand_back(&held, &[("b-003", "x"), ("b-005", "y")]).await));
    let returned = |value| (value, value, "Returned".to_owned());
    assert_eq!(world.gaps(id).await, [returned(2), returned(4)]);
    super::listed(&world).await;
    let last = world.next_epoch(Closing::Exact, Owner::Database).await;
    assert_eq!(first(&world.take(last, order("d")).await), 2);
    while world.ledger.settle_slice(1).await.unwrap() {}
    world.is_whole().await;
}

/// An order on another counter, with its mask.
fn order_on(key: &str, mask: &str, document: &str) -> TakeRequest {
    let mut record = record(document);
    record.mask = mask.into();
    record.counter_keys = vec![key.into()];
    TakeRequest { specs: vec![spec(key)], ..order_of(record) }
}

/// An order on another counter whose numbers are `b-001` and so on.
fn same_texts(key: &str, document: &str) -> TakeRequest {
    order_on(key, "b-{0:3}", document)
}

pub(in crate::ledger_contract) async fn no_text_of_a_block_is_anothers(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 4)).await;
    let collided = |number: &str| TakeOutcome::Collided { number: number.to_owned() };
    // Neither a number, nor a reservation, nor a revision gets one.
    assert_eq!(world.outcome(at, same_texts("two", "a")).await, collided("b-001"));
    assert_eq!(world.outcome(at, same_texts("two", "b")).await, collided("b-002"));
    assert_eq!(world.outcome(at, reserving(same_texts("two", "c"))).await, collided("b-003"));
    let of = world.take(at, order("d")).await;
    let revision = NewRevision {
        of: ValueOf { counter_id: of.taken[0].counter_id, value: 5 },
        allocation_id: of.record.allocation_id,
        rev: "B".into(),
        number: "b-004".into(),
        user_id: "u".into(),
        ip_address: None,
        reason: None,
        revised_at_us: NOW_US,
    };
    let revised = world.ledger.register().revise(&revision).await.unwrap();
    assert!(matches!(revised, Revised::Collided), "{revised:?}");
    // Each is found, and says whose it is.
    let filter = ReservedFilter { number: "b-003".into(), limit: 9, ..ReservedFilter::default() };
    let found = world.ledger.reservations().named(&filter).await.unwrap();
    let ids: Vec<Uuid> = found.iter().map(|named| named.reservation.id()).collect();
    assert_eq!(ids, [held.id()]);
    // What comes back is free, for a revision as well.
    assert!(is_done(&world.hand_back(&held, &[("b-001", "x")]).await));
    assert!(world.ledger.reservations().named(&filter).await.unwrap().is_empty());
    let revised = world.ledger.register().revise(&revision).await.unwrap();
    assert!(matches!(revised, Revised::Written(_)), "{revised:?}");
}

pub(in crate::ledger_contract) async fn no_block_is_reserved_beside_a_process_that_knows_none(
    world: World,
) {
    let at = world.database_epoch().await;
    world.join(NodeId::random()).await;
    let others = format!("node_id <> {}", id_of(&world));
    world.sql(&format!("update node set schema = 14 where {others}")).await;
    assert_eq!(world.outcome(at, block("book", 3)).await, TakeOutcome::BesideOlder);
    assert_eq!(first(&world.reserve(at, order("a")).await.entry), 1, "nothing was taken");
    world.sql(&format!("update node set left_at_us = 1 where {others}")).await;
    world.reserve_block(at, block("book", 3)).await;
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_block_larger_than_what_is_left_takes_nothing(
    world: World,
) {
    let at = world.database_epoch().await;
    let of = |key: &str, count| {
        let specs = vec![CounterSpec { max: 7, ..spec("k") }];
        TakeRequest { specs, ..block(key, count) }
    };
    world.take(at, order("a")).await;
    assert_eq!(world.outcome(at, of("one", 7)).await, TakeOutcome::TooFew { left: 6 });
    world.reserve_block(at, of("two", 6)).await;
    assert_eq!(world.outcome(at, of("three", 2)).await, TakeOutcome::Exhausted { serial: 0 });
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn while_its_partition_is_held_a_block_does_not_end(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    world.sql("update partition set state = 'held' where partition_id = 2").await;
    assert_eq!(world.hand_back(&held, &[]).await, BlockOutcome::Held);
    assert_eq!(world.cancel_block(&held).await, ActOutcome::Held);
    let act = ReservationAct::Cancel { reason: None };
    assert_eq!(world.act(held.id(), act).await.outcome, ActOutcome::IsBlock);
    world.sql("update partition set state = 'open' where partition_id = 2").await;
    assert!(is_done(&world.hand_back(&held, &[]).await));
    world.is_whole().await;
}
