//! Blocks that meet what others have: documents with numbers, texts of other counters; and one of
//! the most numbers.

use numerator::ledger::{
    Assigning, BLOCK_MAX, BlockOutcome, NO_END_US, NewAct, NewAssignment, ReservationStanding,
    SeriesVersion, TakeOutcome, TakeRequest, UsedFlaw,
};

use super::{block, is_done, list, order_on, same_texts};
use crate::ledger_contract::imports::{series, spec_of};
use crate::ledger_contract::lives::act_of;
use crate::ledger_contract::shelf::Shelf;
use crate::ledger_contract::world::{World, order_of, record, spec};

ledger_contract! {
    reservations {
        a_repeated_hand_back_finds_its_numbers
        a_document_of_a_range_gets_no_number_of_a_block
        a_document_whose_number_is_archived_gets_none_of_a_block
        a_number_that_another_has_is_not_handed_back
        a_text_that_is_met_spends_its_own_value_as_collided
        a_block_of_the_most_numbers_is_handed_back
    }
}

/// Goal: a process that only repeats a hand-back has its numbers to keep (L9).
pub(in crate::ledger_contract) async fn a_repeated_hand_back_finds_its_numbers(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 4)).await;
    world.sql("create table kept as select * from reservation").await;
    let used = [("b-004", "x"), ("b-002", "y")];
    let outcome = world.hand_back(&held, &used).await;
    let BlockOutcome::Done { entries: done, .. } = outcome else { panic!("{outcome:?}") };
    let other = world.another().await;
    let again = other.reservations().hand_back(world.node, &list(&held, &used)).await.unwrap();
    let BlockOutcome::Repeated { entries, .. } = again else { panic!("{again:?}") };
    let mut found: Vec<_> = entries
        .iter()
        .map(|entry| (entry.record.allocation_id, &*entry.number, &entry.record.document_id))
        .collect();
    found.sort_unstable_by_key(|(_, number, _)| *number);
    let done: Vec<_> = done
        .iter()
        .map(|entry| (entry.record.allocation_id, &*entry.number, &entry.record.document_id))
        .collect();
    assert_eq!(found, done);
    // It knows them from now on: they are nobody else's in a ledger that goes back.
    world.sql("insert into reservation select * from kept").await;
    let other_list = list(&held, &[("b-002", "z")]);
    let outcome = other.reservations().hand_back(world.node, &other_list).await;
    assert!(matches!(outcome, Err(numerator::ledger::LedgerError::WentBack(_))), "{outcome:?}");
}

/// An order of numbers of a series, for no document.
fn of_series(series: &SeriesVersion, count: u64) -> TakeRequest {
    let mut record = record("none");
    record.series_id = series.series_id;
    record.mask = "k-{0}".into();
    (record.document_id, record.idempotency_key) = (None, Some(format!("key-{count}")));
    TakeRequest { specs: vec![spec_of(series, "k")], count, ..order_of(record) }
}

pub(in crate::ledger_contract) async fn a_document_of_a_range_gets_no_number_of_a_block(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let ten = world.take(at, of_series(&series, 10)).await;
    let new = NewAssignment {
        act: NewAct { number: "k-4".into(), ..act_of(&ten, 4, None) },
        series_id: series.series_id,
        project: None,
        taken_by: ten.record.user_id.clone(),
        document_id: "sheet".into(),
        documents: numbering::DocumentsOf::Series,
    };
    let assigned = world.ledger.life().assign(world.node, &new).await.unwrap();
    assert!(matches!(assigned, Assigning::Written(_)), "{assigned:?}");
    let order = TakeRequest { reserve_us: Some(NO_END_US), ..of_series(&series, 3) };
    let held = world.reserve_block(at, order).await;
    let outcome = world.hand_back(&held, &[("k-11", "other"), ("k-12", "sheet")]).await;
    assert_eq!(outcome, BlockOutcome::Flawed { place: 1, flaw: UsedFlaw::Numbered });
    assert!(is_done(&world.hand_back(&held, &[("k-11", "other")]).await));
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_document_whose_number_is_archived_gets_none_of_a_block(
    world: World,
) {
    let shelf = Shelf::of(world).await;
    let world = &shelf.kit.world;
    let at = world.database_epoch().await;
    world.take(at, order_of(record("once"))).await;
    let file = shelf.archive().await.files[0].clone();
    let held = world.reserve_block(at, block("book", 3)).await;
    let outcome = world.hand_back(&held, &[("b-014", "once")]).await;
    let flaw = UsedFlaw::DocumentArchived { file };
    assert_eq!(outcome, BlockOutcome::Flawed { place: 0, flaw });
    assert!(is_done(&world.hand_back(&held, &[("b-014", "x")]).await));
}

/// Method: the text of a number of the block is not held any more, and another counter shows it.
pub(in crate::ledger_contract) async fn a_number_that_another_has_is_not_handed_back(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    world.sql("delete from block_number where value = 2").await;
    let first = world.outcome(at, same_texts("two", "a")).await;
    assert_eq!(first, TakeOutcome::Collided { number: "b-001".into() });
    assert_eq!(world.take(at, same_texts("two", "b")).await.number, "b-002");
    let outcome = world.hand_back(&held, &[("b-001", "x"), ("b-002", "y")]).await;
    assert_eq!(outcome, BlockOutcome::Flawed { place: 1, flaw: UsedFlaw::Collided });
    // Nothing was done.
    let live = world.ledger.reservations().get(held.id()).await.unwrap();
    assert!(matches!(live, ReservationStanding::Live(_)), "{live:?}");
    assert_eq!(world.gaps(held.entry.taken[0].counter_id).await, []);
    assert!(is_done(&world.hand_back(&held, &[("b-001", "x"), ("b-003", "y")]).await));
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_text_that_is_met_spends_its_own_value_as_collided(
    world: World,
) {
    let at = world.database_epoch().await;
    world.take(at, order_on("four", "z-{0:3}", "e")).await;
    assert_eq!(world.take(at, order_on("four", "m-{0:3}", "f")).await.number, "m-002");
    let block_on = |key: &str| {
        let mut texts = (*order_on("three", "m-{0:3}", "g").record).clone();
        (texts.document_id, texts.idempotency_key) = (None, Some(key.to_owned()));
        let (specs, reserve_us) = (vec![spec("three")], Some(NO_END_US));
        TakeRequest { specs, reserve_us, count: 4, ..order_of(texts) }
    };
    // The text that was met is named, though it is not the first.
    let outcome = world.outcome(at, block_on("book-1")).await;
    assert_eq!(outcome, TakeOutcome::Collided { number: "m-002".into() });
    let counter = world.ledger.counters().get(7, "SEQ", "three").await.unwrap().unwrap();
    let gaps = [(1, 1, "Cancelled"), (2, 2, "Collided"), (3, 4, "Cancelled")];
    let gaps = gaps.map(|(from, to, reason)| (from, to, reason.to_owned()));
    assert_eq!(world.gaps(counter.counter_id).await, gaps);
    // The next one is made above.
    let held = world.reserve_block(at, block_on("book-2")).await;
    assert_eq!(held.entry.number, "m-005");
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_block_of_the_most_numbers_is_handed_back(world: World) {
    let at = world.database_epoch().await;
    let large = |key: &str| {
        let order = block(key, BLOCK_MAX);
        let mut record = (*order.record).clone();
        record.mask = "w-{0:4}".into();
        TakeRequest { record: std::sync::Arc::new(record), ..order }
    };
    let (all, none) =
        (world.reserve_block(at, large("all")).await, world.reserve_block(at, large("none")).await);
    let texts: Vec<(String, String)> =
        (1..=BLOCK_MAX).map(|value| (format!("w-{value:04}"), format!("d{value}"))).collect();
    let used: Vec<(&str, &str)> =
        texts.iter().map(|(number, document)| (&**number, &**document)).collect();
    let outcome = world.hand_back(&all, &used).await;
    let BlockOutcome::Done { ended, entries } = outcome else { panic!("it is handed back") };
    let back = ended.handed_back.unwrap();
    assert_eq!((back.used, back.returned, back.spent), (BLOCK_MAX, 0, 0));
    assert_eq!(entries.len() as u64, BLOCK_MAX);
    let outcome = world.hand_back(&all, &used).await;
    let BlockOutcome::Repeated { entries, .. } = outcome else { panic!("it was handed back") };
    assert_eq!(entries.len() as u64, BLOCK_MAX);
    let outcome = world.hand_back(&none, &[]).await;
    let BlockOutcome::Done { ended, .. } = outcome else { panic!("it is handed back") };
    assert_eq!(ended.handed_back.unwrap().returned, BLOCK_MAX);
    world.is_whole().await;
}
