//! The sweep: how much one transaction ends, what it passes over, where it goes on.

use numerator::ledger::{
    ActOutcome, At, LedgerError, Reservation, ReservationsSwept, TakeOutcome, TakeRequest,
};

use super::reserving;
use crate::ledger_contract::documents::take;
use crate::ledger_contract::imports;
use crate::ledger_contract::world::{NOW_US, World, order, order_of, record, spec};

ledger_contract! {
    reservations {
        what_is_over_ends_in_large_transactions_each_once
        neighbours_that_end_together_are_one_gap
        one_that_the_journal_refuses_keeps_no_other_from_its_end
        one_that_cannot_be_read_keeps_no_other_from_its_end
        where_all_are_refused_few_transactions_find_out
        a_sweep_goes_on_behind_the_last_one_and_begins_anew
        sweepers_at_once_end_each_once
        what_an_import_passes_over_is_left_behind
        what_is_asked_for_ends_first_however_much_is_due
    }
}

/// As many as one transaction ends.
const BATCH: usize = 500;

/// For how long a refused one is passed over, in microseconds.
const PASSED_OVER_US: i64 = 5_000_000;

fn first(reservation: &Reservation) -> u64 {
    reservation.entry.taken[0].range.first
}

impl World {
    /// Reserves so many numbers of the counter `k` at once.
    async fn reserve_many(&self, at: At, count: usize) -> Vec<Reservation> {
        let orders: Vec<_> =
            (0..count).map(|place| reserving(order(&format!("many-{place}")))).collect();
        let outcomes = take(self, at, &orders).await.into_iter();
        let reserved = outcomes.map(|outcome| match outcome {
            TakeOutcome::Reserved(reservation) => *reservation,
            other => panic!("not reserved: {other:?}"),
        });
        reserved.collect()
    }

    /// Reserves a number of a counter that is over.
    async fn reserve_over(&self, at: At, key: &str, document: &str) -> Reservation {
        let mut record = record(document);
        record.counter_keys = vec![key.into()];
        let order = TakeRequest { specs: vec![spec(key)], ..order_of(record) };
        let reservation = self.reserve(at, order).await;
        self.let_expire(document).await;
        reservation
    }

    /// A sweep, whatever it could not do.
    async fn sweep_once(&self) -> ReservationsSwept {
        self.ledger.reservations().sweep(self.node).await.unwrap()
    }

    /// The documents that still have a reservation.
    async fn holders(&self) -> Vec<String> {
        let live = self.ledger.reservations().page(None, 1_000).await.unwrap();
        let documents = live.iter().filter_map(|live| live.entry.record.document_id.clone());
        let mut documents: Vec<_> = documents.collect();
        documents.sort();
        documents
    }

    /// How many rows of `life` there are.
    async fn ends(&self) -> i64 {
        let text = "select count(*) from life";
        if self.ledger.engine() == "sqlite" {
            let pool = sqlx::SqlitePool::connect(&self.url).await.unwrap();
            sqlx::query_scalar(text).fetch_one(&pool).await.unwrap()
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            sqlx::query_scalar(text).fetch_one(&pool).await.unwrap()
        }
    }
}

pub(in crate::ledger_contract) async fn what_is_over_ends_in_large_transactions_each_once(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_many(at, BATCH + 1).await;
    let id = held[0].entry.taken[0].counter_id;
    world.let_expire("*").await;
    let most = BATCH as u64;
    let expected = ReservationsSwept { expired: most, unfinished: 1, ..Default::default() };
    assert_eq!(world.sweep().await, expected);
    assert_eq!(world.ends().await, BATCH as i64);
    assert_eq!(world.sweep().await, ReservationsSwept { expired: 1, ..Default::default() });
    assert_eq!(world.sweep().await, ReservationsSwept::default());
    assert_eq!(world.ends().await, held.len() as i64);
    let returned = |first, last| (first, last, "Returned".to_owned());
    assert_eq!(world.gaps(id).await, [returned(1, most), returned(most + 1, most + 1)]);
    for reservation in [&held[0], &held[BATCH]] {
        assert_eq!(world.confirm(reservation).await, ActOutcome::Expired);
    }
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn neighbours_that_end_together_are_one_gap(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_many(at, 7).await;
    let id = held[0].entry.taken[0].counter_id;
    let at_value = |value: u64| held.iter().find(|one| first(one) == value).expect("a value");
    // The third is confirmed; the sixth is cancelled; the seventh goes on.
    world.confirm(at_value(3)).await;
    world.cancel(at_value(6)).await;
    for value in [1, 2, 4, 5] {
        let document = at_value(value).entry.record.document_id.clone().expect("a document");
        world.let_expire(&document).await;
    }
    let expected = ReservationsSwept { issued: 1, cancelled: 1, expired: 4, ..Default::default() };
    assert_eq!(world.sweep().await, expected);
    let returned = |first, last| (first, last, "Returned".to_owned());
    assert_eq!(world.gaps(id).await, [returned(1, 2), returned(4, 6)]);
    world.is_whole().await;
    // Three at once: a whole run, and the beginning of another.
    let orders = ["a", "b", "c"].map(order);
    let taken = take(&world, at, &orders).await.into_iter().map(|outcome| match outcome {
        TakeOutcome::Taken(entry) => entry.taken[0].range.first,
        other => panic!("not taken: {other:?}"),
    });
    assert_eq!(taken.collect::<Vec<_>>(), [1, 2, 4]);
    assert_eq!(world.gaps(id).await, [returned(5, 6)]);
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.returned, counter.reissued, counter.taken), (5, 3, 7));
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn one_that_the_journal_refuses_keeps_no_other_from_its_end(
    world: World,
) {
    let at = world.database_epoch().await;
    let good = world.reserve(at, order("good")).await;
    let bad = world.reserve(at, order("bad")).await;
    let given_up = world.reserve(at, order("given-up")).await;
    world.reserve(at, order("over")).await;
    world.confirm(&good).await;
    world.confirm(&bad).await;
    world.cancel(&given_up).await;
    world.let_expire("over").await;
    world.refuse("journal", "new.document_id = 'bad'").await;
    let expected =
        ReservationsSwept { issued: 1, cancelled: 1, expired: 1, refused: 1, ..Default::default() };
    assert_eq!(world.sweep().await, expected);
    assert_eq!(world.holders().await, ["bad"], "it neither ends nor is lost");
    assert_eq!(world.ends().await, 2);
    // It keeps its number, and is not tried again at once.
    assert_eq!(world.confirm(&bad).await, ActOutcome::Repeated);
    assert_eq!(world.sweep().await, ReservationsSwept::default());
    world.clock.set(NOW_US + PASSED_OVER_US + 1);
    let expected = ReservationsSwept { refused: 1, ..Default::default() };
    assert_eq!(world.sweep().await, expected, "it may be accepted by now");
    world.allow("journal").await;
    world.clock.set(NOW_US + 3 * PASSED_OVER_US);
    assert_eq!(world.sweep().await, ReservationsSwept { issued: 1, ..Default::default() });
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn one_that_cannot_be_read_keeps_no_other_from_its_end(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_many(at, 5).await;
    world.reserve(at, order("bad")).await;
    world.let_expire("*").await;
    world.sql("update reservation set raw = '[]' where document_id = 'bad'").await;
    let expected = ReservationsSwept { expired: 5, refused: 1, ..Default::default() };
    assert_eq!(world.sweep().await, expected);
    assert_eq!(world.ends().await, held.len() as i64);
    assert_eq!(world.sweep().await, ReservationsSwept::default());
    let counts = world.ledger.reservations().counts().await.unwrap();
    assert_eq!(counts.reserved, 1, "it stays");
}

pub(in crate::ledger_contract) async fn where_all_are_refused_few_transactions_find_out(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_many(at, 20).await;
    for reservation in &held {
        world.confirm(reservation).await;
    }
    world.refuse("journal", "new.counter_id > 0").await;
    let swept = world.sweep_once().await;
    assert_eq!((swept.issued, swept.failed, swept.refused), (0, 1, 5), "{swept:?}");
    world.allow("journal").await;
    let swept = world.sweep().await;
    assert_eq!((swept.issued, swept.refused), (15, 0), "{swept:?}");
    world.clock.set(NOW_US + PASSED_OVER_US + 1);
    assert_eq!(world.sweep().await.issued, 5);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn a_sweep_goes_on_behind_the_last_one_and_begins_anew(
    world: World,
) {
    let at = world.database_epoch().await;
    for key in ["a", "b", "c"] {
        world.reserve_over(at, key, key).await;
    }
    let sweep_one = async || world.ledger.reservations().sweep_some(world.node, 1).await.unwrap();
    let expired = ReservationsSwept { expired: 1, ..Default::default() };
    assert_eq!(sweep_one().await, expired);
    assert_eq!(world.holders().await, ["b", "c"]);
    // The first one has work again: the others come before it.
    world.reserve_over(at, "a", "again").await;
    assert_eq!(sweep_one().await, expired);
    assert_eq!(world.holders().await, ["again", "c"]);
    assert_eq!(sweep_one().await, expired);
    assert_eq!(world.holders().await, ["again"]);
    assert_eq!(sweep_one().await, expired);
    assert_eq!(sweep_one().await, ReservationsSwept::default());
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn sweepers_at_once_end_each_once(world: World) {
    let at = world.database_epoch().await;
    let held = world.reserve_many(at, BATCH + 100).await;
    for reservation in held.iter().step_by(20) {
        world.confirm(reservation).await;
    }
    world.sql("update reservation set expires_at_us = 1 where state = 'reserved'").await;
    let mut sweepers = Vec::new();
    for _ in 0..2 {
        let (ledger, node) = (world.another().await, world.node);
        sweepers.push(tokio::spawn(async move {
            let (mut issued, mut expired) = (0, 0);
            while !ledger.reservations().page(None, 1).await.unwrap().is_empty() {
                match ledger.reservations().sweep(node).await {
                    Ok(swept) => {
                        issued += swept.issued;
                        expired += swept.expired;
                    }
                    Err(LedgerError::LockTimeout { .. } | LedgerError::Conflict(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            (issued, expired)
        }));
    }
    let (mut issued, mut expired) = (0, 0);
    for sweeper in sweepers {
        let (of_issued, of_expired) = sweeper.await.unwrap();
        issued += of_issued;
        expired += of_expired;
    }
    let confirmed = held.len().div_ceil(20) as u64;
    assert_eq!((issued, expired), (confirmed, held.len() as u64 - confirmed));
    assert_eq!(world.ends().await.cast_unsigned(), expired);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_an_import_passes_over_is_left_behind(world: World) {
    let series = imports::series(&world).await;
    let at = world.database_epoch().await;
    let of_series = |document: &str| {
        let mut record = record(document);
        (record.series_id, record.version) = (series.series_id, series.version);
        TakeRequest { specs: vec![imports::spec_of(&series, "k")], ..order_of(record) }
    };
    let back = world.reserve(at, of_series("back")).await;
    let late = world.reserve(at, of_series("late")).await;
    let kept = world.reserve(at, of_series("kept")).await;
    world.cancel(&back).await;
    world.sweep().await;
    let chunks = vec![Ok(vec![imports::number(&series, "k", 10)])];
    let imported = imports::import(&world, &[imports::counter(&series, "k", 10)], chunks).await;
    assert_eq!(imported.unwrap(), 1);
    // One that ends only now lies below as well.
    world.cancel(&late).await;
    world.confirm(&kept).await;
    world.sweep().await;
    let next = world.take(at, of_series("next")).await;
    assert_eq!(next.taken[0].range.first, 11);
    let reasons = [(1, 1, "Skipped"), (2, 2, "Cancelled"), (4, 9, "BeforeImport")];
    let expected = reasons.map(|(from, to, reason)| (from, to, reason.to_owned()));
    assert_eq!(world.gaps(back.entry.taken[0].counter_id).await, expected);
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_is_asked_for_ends_first_however_much_is_due(
    world: World,
) {
    let at = world.database_epoch().await;
    let held = world.reserve_many(at, BATCH + 1).await;
    world.let_expire("*").await;
    let highest = held.iter().max_by_key(|held| first(held)).unwrap();
    let document = highest.entry.record.document_id.clone().unwrap();
    let again = world.reserve(at, order(&document)).await;
    assert_ne!(again.id(), highest.id());
    assert_eq!(first(&again), first(highest), "it alone came back");
    assert_eq!(world.holders().await.len(), BATCH + 1);
    world.is_whole().await;
}
