//! Blocks of a ledger that goes back. The going back is done with plain SQL.

use numerator::ledger::{
    BlockOutcome, LedgerError, ReservationAct, ReservationEnd, ReservationStanding, TakeOutcome,
};
use numerator::node::NodeId;
use uuid::Uuid;

use super::super::lost::{another_node, end_elsewhere, release, went_back};
use super::super::{first, reserving};
use super::{block, is_done, list};
use crate::ledger_contract::world::{LOCK_WAIT, World, order};

ledger_contract! {
    reservations {
        who_ends_a_hold_spends_blocks
        a_used_number_that_is_told_again_ends_its_block
        a_value_that_went_to_another_is_not_handed_back_again
        no_value_of_a_forgotten_block_is_confirmed_for_another
        nothing_is_handed_back_where_its_counter_forgot_numbers
        no_earlier_reservation_of_a_used_document_is_live_again
    }
}

pub(in crate::ledger_contract) async fn who_ends_a_hold_spends_blocks(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    let after = release(&world).await;
    let id = held.entry.taken[0].counter_id;
    assert_eq!(after.gaps(id).await, [(1, 3, "Unaccounted".to_owned())]);
    assert_eq!(after.end(&held).await, Some(ReservationEnd::Lost));
    let outcome = after.hand_back(&held, &[("b-001", "x")]).await;
    assert!(matches!(outcome, BlockOutcome::Refused(ReservationStanding::Ended(_))), "{outcome:?}");
    after.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_used_number_that_is_told_again_ends_its_block(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 4)).await;
    let id = held.entry.taken[0].counter_id;
    // As it was handed back before the ledger forgot that.
    let mut told = held.entry.clone();
    let record = std::sync::Arc::make_mut(&mut told.record);
    (record.allocation_id, record.document_id) = (Uuid::new_v4(), Some("x".to_owned()));
    record.idempotency_key = None;
    told.number = "b-002".into();
    (told.taken[0].range.first, told.taken[0].range.last) = (2, 2);
    let other = world.another().await;
    let appended = other.journal_again(world.node, &[told]).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (1, 0));
    assert_eq!(world.end(&held).await, Some(ReservationEnd::Lost));
    let spent = |first, last| (first, last, "Unaccounted".to_owned());
    assert_eq!(world.gaps(id).await, [spent(1, 1), spent(3, 4)]);
    world.is_whole().await;
}

/// Another process on the same ledger, which knows nothing of what this one saw.
async fn another_process(world: &World) -> World {
    let (ledger, url) = (world.another().await, world.url.clone());
    let other = World { ledger, url, clock: world.clock.clone(), node: NodeId::random() };
    other.join(other.node).await;
    other
}

pub(in crate::ledger_contract) async fn a_value_that_went_to_another_is_not_handed_back_again(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    world.sql("create table kept as select * from reservation").await;
    // Another process ends it; this one gives a value of it to another document.
    let other = another_process(&world).await;
    assert!(is_done(&other.hand_back(&held, &[("b-001", "x")]).await));
    assert_eq!(first(&world.take(at, order("a")).await), 2);
    // The ledger goes back, and the block is live again.
    world.sql("insert into reservation select * from kept").await;
    for used in [&[][..], &[("b-002", "y")]] {
        let order = list(&held, used);
        let outcome = world.ledger.reservations().hand_back(world.node, &order).await;
        assert!(matches!(outcome, Err(LedgerError::WentBack(_))), "{used:?}: {outcome:?}");
    }
}

/// Goal: each value of a block is known, and not its first one alone (L12). Method: the ledger
/// forgets the block, and another process reserves its values for documents.
pub(in crate::ledger_contract) async fn no_value_of_a_forgotten_block_is_confirmed_for_another(
    world: World,
) {
    let at = world.database_epoch().await;
    world.reserve_block(at, block("book", 3)).await;
    world.sql("delete from reservation").await;
    world.sql("delete from block_number").await;
    world.sql("update counter set taken = 0, ceiling = 0").await;
    let other = another_process(&world).await;
    for document in ["a", "b", "c"] {
        let held = other.reserve(at, order(document)).await;
        let node = another_node(&world).await;
        let confirm = ReservationAct::Confirm;
        let acted = world.ledger.reservations().act(node, held.id(), &confirm, "u").await;
        assert!(went_back(&acted), "{document}: {acted:?}");
        assert!(went_back(&world.ledger.reservations().get(held.id()).await), "{document}");
    }
}

/// Method: what is forgotten is only reserved, so that the counter alone shows it.
pub(in crate::ledger_contract) async fn nothing_is_handed_back_where_its_counter_forgot_numbers(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    world.reserve(at, order("a")).await;
    world.sql("delete from reservation where document_id = 'a'").await;
    world.sql("update counter set taken = 3, ceiling = 3").await;
    let back = list(&held, &[("b-001", "x")]);
    let outcome = world.ledger.reservations().hand_back(world.node, &back).await;
    assert!(went_back(&outcome), "{outcome:?}");
    let node = another_node(&world).await;
    let given_up =
        world.ledger.reservations().cancel_block(node, held.id(), ("the book is lost", "u")).await;
    assert!(went_back(&given_up), "{given_up:?}");
}

/// Method: another process takes the value, so that only the document shows the loss.
pub(in crate::ledger_contract) async fn no_earlier_reservation_of_a_used_document_is_live_again(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_block(at, block("book", 3)).await;
    let earlier = world.reserve(at, order("x")).await;
    world.sql("create table kept as select * from reservation where document_id = 'x'").await;
    let other = end_elsewhere(&world, &earlier).await;
    let taken = other.take(at, world.node, &[order("y")], LOCK_WAIT).await.unwrap();
    let TakeOutcome::Taken(entry) = &taken.outcomes[0] else { panic!("{taken:?}") };
    assert_eq!(entry.taken, earlier.entry.taken);
    assert!(is_done(&world.hand_back(&held, &[("b-001", "x")]).await));
    world.sql("insert into reservation select * from kept").await;
    assert!(went_back(&world.ledger.reservations().get(earlier.id()).await));
    let again = [reserving(order("x"))];
    let node = another_node(&world).await;
    assert!(went_back(&world.ledger.take(at, node, &again, LOCK_WAIT).await));
}
