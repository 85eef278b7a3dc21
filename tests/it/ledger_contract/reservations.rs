//! Reservations: one document holds a number at a time, and one that is confirmed for good,
//! whatever becomes of time, processes and the ledger.

mod acts;
mod blocks;
mod lost;
mod named;
mod pools;
mod sweeps;

pub(super) use acts::*;
pub(super) use blocks::*;
pub(super) use lost::*;
pub(super) use named::*;
pub(super) use pools::*;
pub(super) use sweeps::*;

use numerator::ledger::{
    AccountRequest, Accounted, ActOutcome, Acted, At, Closing, CounterFilter, EntryKind, GapReason,
    LedgerError, NewRevision, Owner, Reservation, ReservationAct, ReservationFinding,
    ReservationStanding, ReservationsSwept, Revised, TakeOutcome, TakeRequest, ValueOf,
};
use uuid::Uuid;

use super::changes;
use super::documents::{dated, take};
use super::world::{LOCK_WAIT, NOW_US, World, order, order_of, record, spec};

ledger_contract! {
    reservations {
        returned_values_are_taken_first_the_lowest_before_all
        a_reserved_value_is_in_each_sum_once_wherever_it_stands
        a_text_is_held_by_one_whoever_comes_first
        where_dates_are_kept_nothing_returns
        what_two_people_pass_over_is_left_behind
        nothing_is_reserved_beside_a_process_that_knows_no_reservation
        what_is_wrong_with_reservations_is_found
        many_at_once_hold_each_number_once
    }
}

/// An hour, in microseconds.
pub(super) const HOUR_US: i64 = 3_600_000_000;

/// An order that reserves its number.
pub(super) fn reserving(order: TakeRequest) -> TakeRequest {
    TakeRequest { reserve_us: Some(HOUR_US), ..order }
}

fn first(order: &numerator::ledger::Entry) -> u64 {
    order.taken[0].range.first
}

impl World {
    /// Takes one order as the ledger answers it.
    pub(super) async fn outcome(&self, at: At, order: TakeRequest) -> TakeOutcome {
        take(self, at, &[order]).await.remove(0)
    }

    /// Reserves a number that must be new.
    pub(super) async fn reserve(&self, at: At, order: TakeRequest) -> Reservation {
        match self.outcome(at, reserving(order)).await {
            TakeOutcome::Reserved(reservation) => *reservation,
            other => panic!("not reserved: {other:?}"),
        }
    }

    pub(super) async fn act(&self, id: Uuid, act: ReservationAct) -> Acted {
        self.ledger.reservations().act(self.node, id, &act, "u").await.unwrap()
    }

    pub(super) async fn confirm(&self, reservation: &Reservation) -> ActOutcome {
        self.act(reservation.id(), ReservationAct::Confirm).await.outcome
    }

    pub(super) async fn cancel(&self, reservation: &Reservation) -> ActOutcome {
        self.act(reservation.id(), ReservationAct::Cancel { reason: None }).await.outcome
    }

    /// The time of all reservations of a document, or of all, is over.
    pub(super) async fn let_expire(&self, document: &str) {
        let of = format!("document_id = '{document}' or '{document}' = '*'");
        self.sql(&format!("update reservation set expires_at_us = 1 where {of}")).await;
    }

    pub(super) async fn sweep(&self) -> ReservationsSwept {
        let swept = self.ledger.reservations().sweep(self.node).await.unwrap();
        assert_eq!((swept.failed, swept.collided), (0, 0), "{swept:?}");
        swept
    }

    pub(super) async fn findings(&self) -> Vec<ReservationFinding> {
        self.ledger.audits().reservation_findings(10).await.unwrap()
    }

    /// Every value stands once, and reservations are as counters count them.
    pub(super) async fn is_whole(&self) {
        self.verify().await;
        assert_eq!(self.findings().await, []);
    }
}

pub(super) async fn returned_values_are_taken_first_the_lowest_before_all(world: World) {
    let at = world.database_epoch().await;
    let held = [world.reserve(at, order("a")).await, world.reserve(at, order("b")).await];
    let kept = world.reserve(at, order("c")).await;
    assert_eq!([first(&held[0].entry), first(&held[1].entry), first(&kept.entry)], [1, 2, 3]);
    assert_eq!(kept.expires_at_us - kept.reserved_at_us, HOUR_US);
    let id = kept.entry.taken[0].counter_id;
    // The higher one comes back first.
    assert_eq!(world.cancel(&held[1]).await, ActOutcome::Done);
    assert_eq!(world.sweep().await, ReservationsSwept { cancelled: 1, ..Default::default() });
    world.let_expire("a").await;
    assert_eq!(world.sweep().await, ReservationsSwept { expired: 1, ..Default::default() });
    let returned = |value| (value, value, "Returned".to_owned());
    assert_eq!(world.gaps(id).await, [returned(1), returned(2)]);
    // A range takes none of them, nor does a serial whose first value is higher.
    let range = TakeRequest { count: 2, ..order("range") };
    assert_eq!(first(&world.take(at, range).await), 4);
    let higher = TakeRequest {
        specs: vec![numerator::ledger::CounterSpec { start: 2, ..spec("k") }],
        ..order("higher")
    };
    assert_eq!(first(&world.take(at, higher).await), 2);
    let again = world.take(at, order("d")).await;
    assert_eq!((first(&again), &*again.number), (1, "d-001"));
    assert_eq!(first(&world.take(at, order("e")).await), 6);
    assert_eq!(world.gaps(id).await, []);
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.returned, counter.reissued, counter.taken), (2, 2, 6));
    assert_eq!(world.confirm(&kept).await, ActOutcome::Done);
    assert_eq!(world.sweep().await, ReservationsSwept { issued: 1, ..Default::default() });
    // Several of one batch, reserved and issued: each its own, the lowest first.
    let orders = ["f", "g"].map(|document| reserving(order(document)));
    for outcome in take(&world, at, &orders).await {
        let TakeOutcome::Reserved(reservation) = outcome else { panic!("{outcome:?}") };
        world.cancel(&reservation).await;
    }
    world.sweep().await;
    let orders = [order("h"), reserving(order("i")), order("j")];
    let outcomes = take(&world, at, &orders).await;
    let values: Vec<u64> = outcomes
        .iter()
        .map(|outcome| match outcome {
            TakeOutcome::Taken(entry) => first(entry),
            TakeOutcome::Reserved(reservation) => first(&reservation.entry),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, [7, 8, 9]);
    world.is_whole().await;
}

async fn listed(world: &World) -> Vec<(EntryKind, i64)> {
    let filter = CounterFilter { series_id: Some(7), ..CounterFilter::default() };
    let asked =
        AccountRequest { filter, counters_max: 10, rows_max: 1_000, entries_max: 100, seen: None };
    let Accounted::Whole(accounts) = world.ledger.register().accounts(&asked).await.unwrap() else {
        panic!("too many")
    };
    let account = &accounts[0];
    assert_eq!(account.tally.sum(), account.values(), "{account:?}");
    account.entries.iter().map(|entry| (entry.kind, entry.run.first)).collect()
}

pub(super) async fn a_reserved_value_is_in_each_sum_once_wherever_it_stands(world: World) {
    let at = world.database_epoch().await;
    world.take(at, order("a")).await;
    let held = [world.reserve(at, order("b")).await, world.reserve(at, order("c")).await];
    let lasting = world.reserve(at, order("d")).await;
    world.take(at, order("e")).await;
    let id = lasting.entry.taken[0].counter_id;
    assert_eq!(listed(&world).await, [2, 3, 4].map(|value| (EntryKind::Reserved, value)));
    world.is_whole().await;
    // Their epoch ends, and the next one looks for what it lost.
    let next = world.next_epoch(Closing::Exact, Owner::Database).await;
    world.take(next, order("f")).await;
    while world.ledger.settle_slice(1).await.unwrap() {}
    assert_eq!(world.gaps(id).await, [], "what is reserved is not lost");
    assert_eq!(world.confirm(&held[0]).await, ActOutcome::Done);
    assert_eq!(world.cancel(&held[1]).await, ActOutcome::Done);
    assert_eq!(listed(&world).await, [2, 3, 4].map(|value| (EntryKind::Reserved, value)));
    world.sweep().await;
    let returned = EntryKind::Gap(GapReason::Returned);
    assert_eq!(listed(&world).await, [(returned, 3), (EntryKind::Reserved, 4)]);
    world.is_whole().await;
    // What returned below the epoch's start counts for no value that the epoch misses.
    assert_eq!(first(&world.take(next, order("g")).await), 3);
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.start, counter.taken, counter.journaled), (5, 6, 1));
    let last = world.next_epoch(Closing::Exact, Owner::Database).await;
    world.take(last, order("h")).await;
    while world.ledger.settle_slice(1).await.unwrap() {}
    assert_eq!(world.confirm(&lasting).await, ActOutcome::Done);
    world.sweep().await;
    assert_eq!((listed(&world).await, world.gaps(id).await), (vec![], vec![]));
    let unsettled = world.ledger.unsettled(10).await.unwrap();
    assert!(unsettled.is_empty(), "{unsettled:?}");
    world.is_whole().await;
}

/// An order on another counter that renders the text `same-001`.
fn same_text(key: &str, document: &str) -> TakeRequest {
    let mut record = record(document);
    record.mask = "same-{0:3}".into();
    record.counter_keys = vec![key.into()];
    TakeRequest { specs: vec![spec(key)], ..order_of(record) }
}

pub(super) async fn a_text_is_held_by_one_whoever_comes_first(world: World) {
    let at = world.database_epoch().await;
    let collided = || TakeOutcome::Collided { number: "same-001".into() };
    let held = world.reserve(at, same_text("one", "a")).await;
    // Neither a number, nor another reservation, nor a revision, nor a record gets its text.
    assert_eq!(world.outcome(at, same_text("two", "b")).await, collided());
    assert_eq!(world.outcome(at, reserving(same_text("three", "c"))).await, collided());
    let of = world.take(at, order("d")).await;
    let revision = NewRevision {
        of: ValueOf { counter_id: of.taken[0].counter_id, value: 1 },
        allocation_id: of.record.allocation_id,
        rev: "B".into(),
        number: "same-001".into(),
        user_id: "u".into(),
        ip_address: None,
        reason: None,
        revised_at_us: NOW_US,
    };
    let revised = world.ledger.register().revise(&revision).await.unwrap();
    assert!(matches!(revised, Revised::Collided), "{revised:?}");
    assert_eq!(world.confirm(&held).await, ActOutcome::Done);
    world.sweep().await;
    // What the journal has is not reserved: its value is spent.
    assert_eq!(world.outcome(at, reserving(same_text("four", "e"))).await, collided());
    // A value that came back is spent as well where its text is another's by now.
    assert_eq!(world.outcome(at, same_text("five", "f")).await, collided());
    let back = world.reserve(at, same_text("five", "g")).await;
    assert_eq!(back.entry.number, "same-002");
    world.cancel(&back).await;
    world.sweep().await;
    let taken = world.outcome(at, same_text("one", "h")).await;
    assert!(matches!(taken, TakeOutcome::Taken(_)), "{taken:?}");
    let twice = TakeOutcome::Collided { number: "same-002".into() };
    assert_eq!(world.outcome(at, same_text("five", "i")).await, twice);
    let spent = |value| (value, value, "Collided".to_owned());
    assert_eq!(world.gaps(back.entry.taken[0].counter_id).await, [spent(1), spent(2)]);
    world.is_whole().await;
}

pub(super) async fn where_dates_are_kept_nothing_returns(world: World) {
    let at = world.database_epoch().await;
    let cancelled = world.reserve(at, dated("a", "2026-01-05")).await;
    let expired = world.reserve(at, dated("b", "2026-01-06")).await;
    let id = cancelled.entry.taken[0].counter_id;
    // The date counts from the reservation on.
    let outcome = world.outcome(at, dated("c", "2026-01-05")).await;
    assert!(matches!(outcome, TakeOutcome::BeforeLast { .. }), "{outcome:?}");
    world.cancel(&cancelled).await;
    world.let_expire("b").await;
    world.sweep().await;
    let gaps = [(1, 1, "Cancelled".to_owned()), (2, 2, "Expired".to_owned())];
    assert_eq!(world.gaps(id).await, gaps);
    assert_eq!(first(&world.take(at, dated("d", "2026-01-06")).await), 3);
    for (reservation, end) in [(&cancelled, "Cancelled"), (&expired, "Expired")] {
        let found = world.ledger.reservations().get(reservation.id()).await.unwrap();
        let ReservationStanding::Ended(ended) = found else { panic!("{found:?}") };
        assert_eq!(format!("{:?}", ended.end), end);
        assert_eq!((&ended.number, &*ended.user_id), (&reservation.entry.number, "u"));
    }
    world.is_whole().await;
}

pub(super) async fn what_two_people_pass_over_is_left_behind(world: World) {
    let at = world.database_epoch().await;
    let back = world.reserve(at, order("a")).await;
    let late = world.reserve(at, order("b")).await;
    let kept = world.reserve(at, order("c")).await;
    world.cancel(&back).await;
    world.sweep().await;
    let id = back.entry.taken[0].counter_id;
    let asked = changes::ask(&world, &changes::next(id, 10)).await;
    changes::approve(&world.ledger, &asked, "bert").await.unwrap();
    // One that ends only now lies below as well.
    world.cancel(&late).await;
    world.confirm(&kept).await;
    world.sweep().await;
    assert_eq!(first(&world.take(at, order("d")).await), 10);
    let gaps = world.gaps(id).await;
    let reasons = [(1, 1, "Skipped"), (2, 2, "Cancelled"), (4, 9, "Skipped")];
    assert_eq!(gaps, reasons.map(|(from, to, reason)| (from, to, reason.to_owned())));
    world.is_whole().await;
}

pub(super) async fn nothing_is_reserved_beside_a_process_that_knows_no_reservation(world: World) {
    let at = world.database_epoch().await;
    let older = numerator::node::NodeId::random();
    world.join(older).await;
    let of_it = |set: &str| format!("update node set {set} where schema < 10");
    let ours = format!("update node set schema = 0 where node_id <> {}", id_of(&world));
    world.sql(&ours).await;
    assert_eq!(world.outcome(at, reserving(order("a"))).await, TakeOutcome::BesideOlder);
    assert_eq!(first(&world.take(at, order("b")).await), 1, "nothing was taken");
    world.sql(&of_it("left_at_us = 1")).await;
    assert_eq!(first(&world.reserve(at, order("a")).await.entry), 2);
    world.is_whole().await;
}

/// The node of a world as a literal of its engine.
fn id_of(world: &World) -> String {
    let hex = world.node.0.simple().to_string();
    if world.ledger.engine() == "sqlite" { format!("x'{hex}'") } else { format!("'\\x{hex}'") }
}

pub(super) async fn what_is_wrong_with_reservations_is_found(world: World) {
    let at = world.database_epoch().await;
    let confirmed = world.reserve(at, order("a")).await;
    let back = world.reserve(at, order("b")).await;
    let above = world.reserve(at, order("c")).await;
    let counter_id = above.entry.taken[0].counter_id;
    world.confirm(&confirmed).await;
    world.cancel(&back).await;
    assert_eq!(world.findings().await, [], "all is well");
    world.sweep().await;
    world.sql("update counter set returned = returned + 2").await;
    world.sql("update reservation set first_value = 7, last_value = 7").await;
    world
        .sql(
            "update reservation set state = 'confirmed', changed_at_us = 1, changed_by = 'x'
             where document_id = 'c'",
        )
        .await;
    let (reservation_id, number) = (above.id(), above.entry.number.clone());
    let found = world.findings().await;
    assert_eq!(
        found,
        [
            ReservationFinding::Pool { counter_id, counted: 3, registered: 1 },
            ReservationFinding::AboveTaken { counter_id, value: 7 },
            ReservationFinding::NotJournaled { reservation_id, number },
        ]
    );
    let counts = world.ledger.reservations().counts().await.unwrap();
    assert!(counts.confirmed == 1 && counts.confirmed_for_us > 0, "{counts:?}");
}

/// What each of several workers does with its reservations, by turns.
const TURNS: usize = 12;

pub(super) async fn many_at_once_hold_each_number_once(world: World) {
    let at = world.database_epoch().await;
    let mut workers = Vec::new();
    for worker in 0..4 {
        let (ledger, node) = (world.another().await, world.node);
        workers.push(tokio::spawn(async move {
            let mut confirmed = Vec::new();
            for turn in 0..TURNS {
                let orders = [reserving(order(&format!("d{worker}-{turn}")))];
                let outcome = loop {
                    match ledger.take(at, node, &orders, LOCK_WAIT).await {
                        Err(LedgerError::Conflict(_) | LedgerError::LockTimeout { .. }) => {}
                        taken => break taken.unwrap().outcomes.remove(0),
                    }
                };
                let TakeOutcome::Reserved(reservation) = outcome else { panic!("{outcome:?}") };
                let act = match (worker + turn) % 3 {
                    0 => ReservationAct::Cancel { reason: Some("given up".into()) },
                    _ => ReservationAct::Confirm,
                };
                let acted = ledger.reservations().act(node, reservation.id(), &act, "u").await;
                assert_eq!(acted.unwrap().outcome, ActOutcome::Done);
                if act == ReservationAct::Confirm {
                    confirmed.push((reservation.entry.record.document_id.clone(), reservation));
                }
                // Others may hold the counter: what fails now is done by another sweep.
                ledger.reservations().sweep(node).await.unwrap();
            }
            confirmed
        }));
    }
    let mut confirmed = Vec::new();
    for worker in workers {
        confirmed.extend(worker.await.unwrap());
    }
    world.sweep().await;
    let mut values: Vec<u64> = confirmed.iter().map(|(_, one)| first(&one.entry)).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), confirmed.len(), "a number was confirmed twice");
    for (document, reservation) in confirmed {
        let rows = world.ledger.register().numbers_of(&document.unwrap(), None, 10).await.unwrap();
        let numbers: Vec<_> = rows.iter().map(|row| &row.entry.number).collect();
        assert_eq!(numbers, [&reservation.entry.number]);
    }
    // What came back is issued before anything new: no hole is left.
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    for filling in 0..counter.returned - counter.reissued {
        world.take(at, order(&format!("filling-{filling}"))).await;
    }
    assert_eq!(world.gaps(counter.counter_id).await, []);
    world.is_whole().await;
}
