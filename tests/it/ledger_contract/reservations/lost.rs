//! Reservations of a ledger that goes back. What was confirmed comes again; everything else that
//! was reserved or had returned is spent. The going back is done with plain SQL.

use numerator::ledger::{
    ActOutcome, At, Found, LedgerError, Released, Reservation, ReservationAct, ReservationStanding,
    SharedLedger, TakeOutcome,
};
use numerator::node::NodeId;

use super::reserving;
use crate::ledger_contract::world::{LOCK_WAIT, PARTITION, World, order, question, record};

ledger_contract! {
    reservations {
        who_ends_a_hold_spends_what_nobody_confirmed
        a_confirmed_number_is_told_again_and_ends_whoever_holds_it
        a_ledger_that_forgets_an_act_on_a_reservation_is_noticed
        a_reserved_value_that_is_forgotten_is_not_given_again
        a_value_that_was_only_found_reserved_is_not_given_again
        a_forgotten_reservation_is_noticed_behind_a_heartbeat
        an_earlier_reservation_of_a_value_is_not_live_again
        an_earlier_reservation_of_a_value_is_not_confirmed_again
        an_earlier_reservation_of_a_document_is_not_live_again
        what_another_process_does_to_reservations_is_no_loss
    }
}

pub(super) fn went_back<T>(result: &Result<T, LedgerError>) -> bool {
    matches!(result, Err(LedgerError::WentBack(_)))
}

/// Another process holds the ledger and releases it.
pub(super) async fn release(world: &World) -> World {
    let other = world.another().await;
    other.hold_all(&[], "test").await.unwrap();
    for row in other.partitions().await.unwrap() {
        let to = At { partition: row.partition, epoch: row.epoch + 2 };
        assert_eq!(other.release(to, 0).await.unwrap(), Released::Released);
    }
    let after = World {
        ledger: other,
        url: world.url.clone(),
        clock: world.clock.clone(),
        node: NodeId::random(),
    };
    after.join(after.node).await;
    after
}

pub(in crate::ledger_contract) async fn who_ends_a_hold_spends_what_nobody_confirmed(world: World) {
    let at = world.database_epoch().await;
    let live = world.reserve(at, order("live")).await;
    let over = world.reserve(at, order("over")).await;
    let back = world.reserve(at, order("back")).await;
    let confirmed = world.reserve(at, order("confirmed")).await;
    world.cancel(&back).await;
    world.sweep().await;
    world.confirm(&confirmed).await;
    world.let_expire("over").await;
    let id = live.entry.taken[0].counter_id;
    let after = release(&world).await;
    // Those that were reserved end together; the other one was a gap before.
    let spent = |first, last| (first, last, "Unaccounted".to_owned());
    assert_eq!(after.gaps(id).await, [spent(1, 2), spent(3, 3)]);
    for reservation in [&live, &over] {
        assert_eq!(after.confirm(reservation).await, ActOutcome::Lost);
        assert_eq!(after.cancel(reservation).await, ActOutcome::Repeated);
    }
    // What was confirmed is journaled in whichever epoch.
    after.sweep().await;
    assert_eq!(after.confirm(&confirmed).await, ActOutcome::Repeated);
    let open = after.database_epoch().await;
    let next = after.take(open, order("next")).await;
    assert_eq!(next.taken[0].range.first, 5, "nothing that was shown comes again");
    after.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_confirmed_number_is_told_again_and_ends_whoever_holds_it(
    world: World,
) {
    let at = world.database_epoch().await;
    let one = world.reserve(at, order("one")).await;
    world.confirm(&one).await;
    let told = one.issued();
    // The ledger forgets the confirmation: it is live there, or has ended and is another's by now.
    let forget = "update reservation set state = 'reserved', changed_at_us = null,
                  changed_by = null";
    world.sql(forget).await;
    let other = world.another().await;
    let appended = other.journal_again(world.node, std::slice::from_ref(&told)).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (1, 0));
    assert_eq!(other.reservations().page(None, 10).await.unwrap(), []);
    let two = world.reserve(at, order("two")).await;
    world.cancel(&two).await;
    world.sweep().await;
    let three = world.reserve(at, order("three")).await;
    assert_eq!(three.entry.taken, two.entry.taken);
    let appended = other.journal_again(world.node, &[two.issued()]).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (1, 0));
    let found = other.reservations().get(three.id()).await.unwrap();
    assert!(matches!(found, ReservationStanding::Ended(_)), "{found:?}");
    // A value that returned and was told again leaves the pool.
    let four = world.reserve(at, order("four")).await;
    world.cancel(&four).await;
    world.sweep().await;
    other.journal_again(world.node, &[four.issued()]).await.unwrap();
    let counter = other.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!(counter.returned, counter.reissued);
    // One who has confirmed it since is a duplicate, and said to be one.
    let five = world.reserve(at, order("five")).await;
    world.confirm(&five).await;
    let mut copy = five.issued();
    std::sync::Arc::make_mut(&mut copy.record).allocation_id = uuid::Uuid::new_v4();
    let appended = other.journal_again(world.node, &[copy]).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (0, 1));
    world.sweep().await;
    assert_eq!(world.confirm(&five).await, ActOutcome::Repeated);
    assert_eq!(world.findings().await, []);
}

pub(in crate::ledger_contract) async fn a_ledger_that_forgets_an_act_on_a_reservation_is_noticed(
    world: World,
) {
    let at = world.database_epoch().await;
    let forget = "update reservation set state = 'reserved', changed_at_us = null,
                  changed_by = null, expires_at_us = 1";
    let reservation = world.reserve(at, order("a")).await;
    world.confirm(&reservation).await;
    world.sql(forget).await;
    let (ledger, node, id) = (&world.ledger, world.node, reservation.id());
    // Neither a sweep, nor a take, nor the caller itself goes on from there.
    let swept = ledger.reservations().sweep(node).await.unwrap();
    assert_eq!((swept.failed, swept.expired), (1, 0));
    let again = [reserving(order("a"))];
    assert!(went_back(&ledger.take(at, node, &again, LOCK_WAIT).await));
    let cancel = ReservationAct::Cancel { reason: None };
    assert!(went_back(&ledger.reservations().act(node, id, &cancel, "u").await));
    assert!(went_back(&ledger.nodes().heartbeat(node, None).await), "it is reported");
    let left = world.another().await.reservations().page(None, 10).await.unwrap();
    assert_eq!(left.len(), 1, "nothing was done to it");
}

pub(in crate::ledger_contract) async fn a_reserved_value_that_is_forgotten_is_not_given_again(
    world: World,
) {
    let at = world.database_epoch().await;
    let id = world.take(at, order("a")).await.taken[0].counter_id;
    world.reserve(at, order("b")).await;
    let back = world.reserve(at, order("c")).await;
    world.cancel(&back).await;
    world.sweep().await;
    world.take(at, order("d")).await;
    // Heartbeats and their proof: what is journaled is known to be there, reserved values are not.
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    world.ledger.check_takes().await.unwrap();
    world.sql("delete from reservation").await;
    world.sql("delete from gap").await;
    world.sql("update counter set taken = 1, ceiling = 1, returned = 0, reissued = 0").await;
    let orders = [order("e")];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await;
    assert!(went_back(&taken), "{taken:?}");
    // A later incarnation learns how far the counter was shown.
    let raised = world.another().await;
    raised.hold_all(&[], "test").await.unwrap();
    assert_eq!(world.ledger.hold_all(&[], "test").await.unwrap(), 0);
    let told = NodeId::random();
    world.join(told).await;
    let partitions = world.ledger.report_takes(told).await.unwrap();
    assert_eq!(partitions, [PARTITION].into());
    let gaps = world.gaps(id).await;
    assert_eq!(gaps, [(2, 2, "Unaccounted".to_owned())], "the third one is journaled");
    let outcome = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!(outcome.taken, 3);
}

/// Goal: the same for a value that a process only found and showed (L10). Method: one process looks
/// at a reservation, one repeats its request, one looks for its document. Each reports alone: the
/// one that reserved them does not.
pub(in crate::ledger_contract) async fn a_value_that_was_only_found_reserved_is_not_given_again(
    world: World,
) {
    let at = world.database_epoch().await;
    let id = world.take(at, order("a")).await.taken[0].counter_id;
    let one = world.reserve(at, order("b")).await;
    let two = world.reserve(at, order("c")).await;
    let three = world.reserve(at, order("d")).await;
    let shown = |found: &Found| found.reserved_by_document.as_deref().map(Reservation::id);
    let looks = world.another().await;
    let standing = looks.reservations().get(one.id()).await.unwrap();
    assert!(matches!(standing, ReservationStanding::Live(_)), "{standing:?}");
    let repeats = world.another().await;
    let again = [reserving(order("c"))];
    let taken = repeats.take(at, world.node, &again, LOCK_WAIT).await.unwrap();
    let [TakeOutcome::Found(found)] = &taken.outcomes[..] else { panic!("{taken:?}") };
    assert_eq!(shown(found), Some(two.id()));
    let asks = world.another().await;
    let found = asks.replays(&[question(&record("d"))]).await.unwrap();
    assert_eq!(shown(&found[0]), Some(three.id()));
    world.sql("delete from reservation").await;
    world.sql("update counter set taken = 1, ceiling = 1").await;
    for (process, value) in [(&looks, 2), (&repeats, 3), (&asks, 4)] {
        process.hold_all(&[], "test").await.unwrap();
        let raised = process.report_takes(world.node).await.unwrap();
        assert_eq!(raised, [PARTITION].into(), "{value}");
        let counter = process.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
        assert_eq!(counter.taken, value);
    }
    world.ledger.hold_all(&[], "test").await.unwrap();
    let gaps = world.gaps(id).await;
    assert!(gaps.iter().all(|(.., reason)| reason == "Unaccounted"), "{gaps:?}");
    world.is_whole().await;
}

/// Goal: what is only reserved is in no row of the journal, and its loss is noticed
/// before a heartbeat is taken for its proof.
pub(in crate::ledger_contract) async fn a_forgotten_reservation_is_noticed_behind_a_heartbeat(
    world: World,
) {
    let at = world.database_epoch().await;
    world.reserve(at, order("a")).await;
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    assert!(world.ledger.has_unproven_takes());
    world.sql("delete from reservation").await;
    world.sql("update counter set taken = 0, ceiling = 0").await;
    assert!(went_back(&world.ledger.check_takes().await));
    assert!(world.ledger.has_unproven_takes(), "nothing is let go");
}

/// Copies what there is of reservations.
async fn copy(world: &World) {
    world.sql("create table earlier as select * from reservation").await;
}

/// Puts it back, of a counter that had only taken its first value: nothing has returned, and the
/// journal has no number.
async fn put_back(world: &World) {
    world.sql("delete from reservation").await;
    world.sql("insert into reservation select * from earlier").await;
    world.sql("delete from gap").await;
    world.sql("delete from journal").await;
    world.sql("update counter set taken = 1, ceiling = 1, returned = 0, reissued = 0").await;
}

/// Another process cancels and ends a reservation: this one hears nothing of it.
pub(super) async fn end_elsewhere(world: &World, reservation: &Reservation) -> SharedLedger {
    let (other, node) = (world.another().await, world.node);
    let cancel = ReservationAct::Cancel { reason: None };
    let acted = other.reservations().act(node, reservation.id(), &cancel, "u").await.unwrap();
    assert_eq!(acted.outcome, ActOutcome::Done);
    assert_eq!(other.reservations().sweep(node).await.unwrap().cancelled, 1);
    other
}

/// A node of this process to which nothing was forgotten.
pub(super) async fn another_node(world: &World) -> NodeId {
    let node = NodeId::random();
    world.join(node).await;
    node
}

/// Goal: a row that shows less than what this process knows is neither changed nor answered,
/// whatever comes to it.
async fn is_refused(world: &World, at: At, earlier: &Reservation) {
    let (ledger, id) = (&world.ledger, earlier.id());
    for act in [ReservationAct::Confirm, ReservationAct::Cancel { reason: None }] {
        let node = another_node(world).await;
        let acted = ledger.reservations().act(node, id, &act, "u").await;
        assert!(went_back(&acted), "{acted:?}");
        assert!(went_back(&ledger.nodes().heartbeat(node, None).await), "it is reported");
    }
    assert!(went_back(&ledger.reservations().get(id).await));
    let document = earlier.entry.record.document_id.as_deref().unwrap();
    let asked = [question(&record(document))];
    assert!(went_back(&ledger.replays(&asked).await));
    assert!(went_back(&ledger.ask(PARTITION, &asked).await));
    let again = [reserving(order(document))];
    let node = another_node(world).await;
    assert!(went_back(&ledger.take(at, node, &again, LOCK_WAIT).await));
    world.let_expire(document).await;
    let node = another_node(world).await;
    let swept = ledger.reservations().sweep(node).await.unwrap();
    assert_eq!((swept.failed, swept.expired), (1, 0));
    let left = world.another().await.reservations().page(None, 10).await.unwrap();
    let left: Vec<_> = left.iter().map(|live| (live.id(), live.state)).collect();
    assert_eq!(left, [(id, earlier.state)], "nothing was done to it");
}

/// The value of a reservation that ended is reserved for another document, and then earlier files
/// come back.
async fn value_comes_back(world: World, confirms: bool) {
    let at = world.database_epoch().await;
    let earlier = world.reserve(at, order("a")).await;
    copy(&world).await;
    end_elsewhere(&world, &earlier).await;
    let later = world.reserve(at, order("b")).await;
    assert_eq!(later.entry.taken, earlier.entry.taken);
    assert!(later.turn > earlier.turn);
    if confirms {
        assert_eq!(world.confirm(&later).await, ActOutcome::Done);
    }
    put_back(&world).await;
    Box::pin(is_refused(&world, at, &earlier)).await;
}

pub(in crate::ledger_contract) async fn an_earlier_reservation_of_a_value_is_not_live_again(
    world: World,
) {
    Box::pin(value_comes_back(world, false)).await;
}

pub(in crate::ledger_contract) async fn an_earlier_reservation_of_a_value_is_not_confirmed_again(
    world: World,
) {
    Box::pin(value_comes_back(world, true)).await;
}

/// Method: another process takes the value, so that only the document shows the loss.
pub(in crate::ledger_contract) async fn an_earlier_reservation_of_a_document_is_not_live_again(
    world: World,
) {
    let at = world.database_epoch().await;
    let earlier = world.reserve(at, order("a")).await;
    copy(&world).await;
    let other = end_elsewhere(&world, &earlier).await;
    let taken = other.take(at, world.node, &[order("b")], LOCK_WAIT).await.unwrap();
    let TakeOutcome::Taken(entry) = &taken.outcomes[0] else { panic!("{taken:?}") };
    assert_eq!(entry.taken, earlier.entry.taken);
    let later = world.reserve(at, order("a")).await;
    assert_ne!(later.entry.taken, earlier.entry.taken);
    put_back(&world).await;
    Box::pin(is_refused(&world, at, &earlier)).await;
}

pub(in crate::ledger_contract) async fn what_another_process_does_to_reservations_is_no_loss(
    world: World,
) {
    let at = world.database_epoch().await;
    let first = world.reserve(at, order("a")).await;
    let other = end_elsewhere(&world, &first).await;
    let taken = other.take(at, world.node, &[reserving(order("b"))], LOCK_WAIT).await.unwrap();
    let TakeOutcome::Reserved(second) = &taken.outcomes[0] else { panic!("{taken:?}") };
    assert_eq!(second.entry.taken, first.entry.taken);
    for reservation in [&first, &**second] {
        world.ledger.reservations().get(reservation.id()).await.unwrap();
    }
    assert_eq!(world.confirm(&first).await, ActOutcome::Cancelled);
    assert_eq!(world.confirm(second).await, ActOutcome::Done);
    assert_eq!(other.reservations().sweep(world.node).await.unwrap().issued, 1);
    assert_eq!(world.confirm(second).await, ActOutcome::Repeated);
    // Its document reserves anew, and another process confirms that.
    let third = world.reserve(at, order("a")).await;
    let confirmed = other.reservations();
    let acted = confirmed.act(world.node, third.id(), &ReservationAct::Confirm, "u").await.unwrap();
    assert_eq!(acted.outcome, ActOutcome::Done);
    assert_eq!(world.cancel(&third).await, ActOutcome::Confirmed);
    assert_eq!(world.sweep().await.issued, 1);
    let found = world.outcome(at, reserving(order("a"))).await;
    assert!(matches!(found, TakeOutcome::Found(_)), "{found:?}");
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    world.ledger.check_takes().await.unwrap();
    world.is_whole().await;
}
