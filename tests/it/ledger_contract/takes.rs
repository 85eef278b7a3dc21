//! The database path.

use std::collections::BTreeSet;

use numerator::ledger::{
    Closing, CounterSpec, Entry, Found, JournalFilter, LedgerError, PartitionState, TakeOutcome,
    TakeRequest,
};

use super::world::{
    LOCK_WAIT, PARTITION, World, entry, order, order_of, question, record, spec, with,
};

fn first(entry: &Entry) -> u64 {
    entry.taken[0].range.first
}

pub(super) async fn numbers_follow_each_other_across_calls(world: World) {
    let at = world.database_epoch().await;
    let orders = [order("a"), order("b")];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    for (index, outcome) in taken.outcomes.iter().enumerate() {
        let TakeOutcome::Taken(entry) = outcome else { panic!("{outcome:?}") };
        assert_eq!((first(entry), entry.at), (index as u64 + 1, at));
    }
    let third = world.take(at, order("c")).await;
    assert_eq!((&*third.number, first(&third)), ("c-003", 3));
    let rows = world.ledger.register().find(&Default::default()).await.unwrap();
    assert!(rows.iter().any(|row| row.entry == third), "{rows:?}");
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.taken, counter.ceiling, counter.journaled), (3, 3, 3));
    assert_eq!(world.ledger.take(at, world.node, &[], LOCK_WAIT).await.unwrap().outcomes, []);
    world.verify().await;
}

pub(super) async fn a_range_is_taken_whole(world: World) {
    let at = world.database_epoch().await;
    let wide = CounterSpec { start: 10, step: 5, ..spec("k") };
    let order = TakeRequest { count: 1_000, specs: vec![wide], ..order("a") };
    let entry = world.take(at, order).await;
    let range = entry.taken[0].range;
    assert_eq!((range.first, range.last, range.step), (10, 5_005, 5));
    assert_eq!(entry.number, "a-010");
    let nothing = TakeRequest { count: 0, ..super::world::order("b") };
    let error = world.ledger.take(at, world.node, &[nothing], LOCK_WAIT).await.expect_err("none");
    assert!(matches!(error, LedgerError::Refused(_)), "{error}");
    world.verify().await;
}

/// Two serials of one counter key, as two versions of a series list them.
fn numbered(document: &str, serials: [&str; 2]) -> TakeRequest {
    let start = |name: &str| if name == "SEQ" { 1 } else { 7 };
    let spec = |name: &str| CounterSpec { serial: name.into(), start: start(name), ..spec("k") };
    let mut record = record(document);
    record.mask = format!("{document}-{{0:3}}-{{1:3}}");
    record.serials = serials.map(Into::into).into();
    record.counter_keys = ["k", "k"].map(Into::into).into();
    TakeRequest { specs: serials.map(spec).into(), ..order_of(record) }
}

pub(super) async fn serials_in_another_order_keep_their_counters(world: World) {
    let at = world.database_epoch().await;
    assert_eq!(world.take(at, numbered("a", ["SEQ", "LOT"])).await.number, "a-001-007");
    let changed = world.take(at, numbered("b", ["LOT", "SEQ"])).await;
    assert_eq!(changed.number, "b-008-002");
    let filter = JournalFilter { number: Some("b-008-002".into()), ..JournalFilter::default() };
    let found = world.ledger.register().find(&filter).await.unwrap();
    assert_eq!(found[0].entry.record.serials, ["LOT", "SEQ"]);
    let lot = world.ledger.counters().get(7, "LOT", "k").await.unwrap().unwrap();
    assert_eq!((lot.taken, lot.origin), (8, 6));
    let row = world.ledger.register().row_of(lot.counter_id, 7).await.unwrap();
    assert_eq!(row, None, "its first number stands under the serial that was first then");
    world.verify().await;
}

pub(super) async fn several_serials_are_taken_together_or_not_at_all(world: World) {
    let at = world.database_epoch().await;
    let both = |document: &str| {
        let mut record = record(document);
        record.mask = format!("{document}-{{0:3}}-{{1:2}}");
        record.serials.push("LOT".into());
        record.counter_keys.push("second".into());
        let second = CounterSpec { serial: "LOT".into(), start: 7, max: 8, ..spec("second") };
        TakeRequest { specs: vec![spec("k"), second], ..order_of(record) }
    };
    assert_eq!(world.take(at, both("a")).await.number, "a-001-07");
    assert_eq!(world.take(at, both("b")).await.number, "b-002-08");
    let taken =
        world.ledger.take(at, world.node, &[both("c"), order("d")], LOCK_WAIT).await.unwrap();
    assert_eq!(taken.outcomes[0], TakeOutcome::Exhausted { serial: 1 });
    let TakeOutcome::Taken(entry) = &taken.outcomes[1] else { panic!("{taken:?}") };
    assert_eq!(first(entry), 3, "the refused order took nothing");
    world.verify().await;
}

pub(super) async fn a_document_is_numbered_once(world: World) {
    let at = world.database_epoch().await;
    let mut keyed = record("a");
    keyed.idempotency_key = Some("key".into());
    let entry = world.take(at, order_of(keyed)).await;
    let mut retry = record("other");
    retry.idempotency_key = Some("key".into());
    let orders = [order("a"), order_of(retry)];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    let by_document = Found { by_document: Some(entry.clone()), by_key: None, ..Found::default() };
    let by_key = Found { by_key: Some(entry), by_document: None, ..Found::default() };
    assert_eq!(taken.outcomes, [TakeOutcome::Found(by_document), TakeOutcome::Found(by_key)]);
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 1);
}

pub(super) async fn orders_of_one_batch_under_one_key_get_one_number(world: World) {
    let at = world.database_epoch().await;
    let orders = [order("a"), order("b"), order("a")];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    let TakeOutcome::Taken(entry) = &taken.outcomes[0] else { panic!("{taken:?}") };
    let found = Found { by_document: Some(entry.clone()), by_key: None, ..Found::default() };
    assert_eq!(taken.outcomes[2], TakeOutcome::Found(found));
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 2);
}

pub(super) async fn again_gives_a_document_another_number(world: World) {
    let at = world.database_epoch().await;
    let again = || {
        let mut order = order("a");
        order.question.document_id = None;
        order
    };
    world.take(at, order("a")).await;
    let second = world.take(at, again()).await;
    assert_eq!(first(&second), 2);
    let orders = [again(), order("a")];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    let TakeOutcome::Taken(third) = &taken.outcomes[0] else { panic!("{taken:?}") };
    assert_eq!(first(third), 3);
    assert!(matches!(&taken.outcomes[1], TakeOutcome::Found(_)), "{taken:?}");
}

pub(super) async fn two_takers_of_one_document_get_one_number(world: World) {
    let at = world.database_epoch().await;
    for round in 0..10 {
        let document = format!("d{round}");
        let mut calls = Vec::new();
        for _ in 0..3 {
            let (ledger, node) = (world.another().await, world.node);
            let orders = [order(&document), order(&format!("{document}-{}", calls.len()))];
            calls.push(tokio::spawn(async move {
                ledger.take(at, node, &orders, LOCK_WAIT).await.unwrap()
            }));
        }
        let mut numbers = Vec::new();
        let mut took = 0;
        for call in calls {
            match call.await.unwrap().outcomes.swap_remove(0) {
                TakeOutcome::Taken(entry) => {
                    took += 1;
                    numbers.push(entry.number);
                }
                TakeOutcome::Found(found) => numbers.push(found.by_document.unwrap().number),
                other => panic!("{other:?}"),
            }
        }
        numbers.dedup();
        assert_eq!((numbers.len(), took), (1, 1), "{numbers:?}");
    }
    world.verify().await;
}

pub(super) async fn many_takers_of_one_counter_get_a_run_without_holes(world: World) {
    let at = world.database_epoch().await;
    let mut calls = Vec::new();
    for taker in 0..4 {
        let (ledger, node) = (world.another().await, world.node);
        calls.push(tokio::spawn(async move {
            let mut values = Vec::new();
            for batch in 0..10 {
                let orders: Vec<_> =
                    (0..5).map(|i| order(&format!("d{taker}-{batch}-{i}"))).collect();
                for outcome in ledger.take(at, node, &orders, LOCK_WAIT).await.unwrap().outcomes {
                    let TakeOutcome::Taken(entry) = outcome else { panic!("{outcome:?}") };
                    values.push(first(&entry));
                }
            }
            values
        }));
    }
    let mut values = BTreeSet::new();
    for call in calls {
        values.extend(call.await.unwrap());
    }
    assert_eq!(values, (1..=200).collect());
    world.verify().await;
}

pub(super) async fn an_exhausted_serial_takes_nothing(world: World) {
    let at = world.database_epoch().await;
    let limited = |document: &str, count| TakeRequest {
        count,
        specs: vec![CounterSpec { max: 3, ..spec("k") }],
        ..order(document)
    };
    let orders = [limited("a", 2), limited("b", 2), limited("c", 1), limited("d", 1)];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    let took: Vec<bool> =
        taken.outcomes.iter().map(|o| *o == TakeOutcome::Exhausted { serial: 0 }).collect();
    assert_eq!(took, [false, true, false, true]);
    // Past the width of its field, whatever the maximum says.
    let mut narrow = record("e");
    narrow.mask = "e-{0:1}".into();
    let wide =
        TakeRequest { specs: vec![CounterSpec { start: 10, ..spec("wide") }], ..order_of(narrow) };
    let taken = world.ledger.take(at, world.node, &[wide], LOCK_WAIT).await.unwrap();
    assert_eq!(taken.outcomes, [TakeOutcome::Exhausted { serial: 0 }]);
    world.verify().await;
}

pub(super) async fn a_number_that_another_has_is_spent_and_the_batch_goes_on(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (other, ..) = world.seed(old, &spec("other")).await;
    let mut taken_already = entry(old, other, 1);
    taken_already.number = "a-001".into();
    world.append(&[taken_already]).await;

    let at = world.database_epoch().await;
    let orders = [order("a"), order("b"), order("a")];
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    let collided = TakeOutcome::Collided { number: "a-001".into() };
    assert_eq!((&taken.outcomes[0], &taken.outcomes[2]), (&collided, &collided));
    let TakeOutcome::Taken(entry) = &taken.outcomes[1] else { panic!("{taken:?}") };
    assert_eq!(entry.number, "b-002");
    let counter_id = entry.taken[0].counter_id;
    assert_eq!(world.gaps(counter_id).await, [(1, 1, "Collided".to_owned())]);
    assert_eq!(
        world.ledger.register().collisions(10).await.unwrap(),
        [],
        "nothing was handed out twice"
    );
    assert_eq!(world.take(at, order("a")).await.number, "a-003");
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.taken, counter.ceiling, counter.journaled), (3, 3, 2));
    world.verify().await;
    let next = world.database_epoch().await;
    assert_eq!(world.seed(next, &CounterSpec { headroom: 0, ..spec("k") }).await.1, 3);
    assert_eq!(world.gaps(counter_id).await.len(), 1, "registered once");
}

pub(super) async fn a_number_of_two_serials_that_another_has_spends_both_values(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (other, ..) = world.seed(old, &spec("other")).await;
    let mut taken_already = entry(old, other, 1);
    taken_already.number = "a-001-007".into();
    world.append(&[taken_already]).await;

    let at = world.database_epoch().await;
    let orders = ["a", "b"].map(|document| numbered(document, ["SEQ", "LOT"]));
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap();
    assert_eq!(taken.outcomes[0], TakeOutcome::Collided { number: "a-001-007".into() });
    let TakeOutcome::Taken(entry) = &taken.outcomes[1] else { panic!("{taken:?}") };
    assert_eq!(entry.number, "b-002-008");
    for (serial, lost, taken) in [("SEQ", 1, 2), ("LOT", 7, 8)] {
        let counter = world.ledger.counters().get(7, serial, "k").await.unwrap().unwrap();
        assert_eq!((counter.taken, counter.ceiling, counter.journaled), (taken, taken, 1));
        let gaps = world.gaps(counter.counter_id).await;
        assert_eq!(gaps, [(lost, lost, "Collided".to_owned())], "{serial}");
    }
    world.verify().await;
}

pub(super) async fn a_batch_longer_than_a_statement_answers_each_order_with_its_own(world: World) {
    let at = world.database_epoch().await;
    let is_known = |place: usize| place % 7 == 3;
    let documents: Vec<String> = (0..300).map(|place| format!("d{place}")).collect();
    let known = documents.iter().enumerate().filter(|(place, _)| is_known(*place));
    let known: Vec<TakeRequest> = known.map(|(_, document)| order(document)).collect();
    let before = world.ledger.take(at, world.node, &known, LOCK_WAIT).await.unwrap().outcomes;
    let mut before = before.into_iter();
    let orders: Vec<TakeRequest> = documents.iter().map(|document| order(document)).collect();
    let taken = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap().outcomes;
    let mut value = known.len() as u64;
    for (place, outcome) in taken.into_iter().enumerate() {
        if is_known(place) {
            let Some(TakeOutcome::Taken(entry)) = before.next() else { panic!("{place}") };
            let found = Found { by_document: Some(entry), by_key: None, ..Found::default() };
            assert_eq!(outcome, TakeOutcome::Found(found));
        } else {
            value += 1;
            let TakeOutcome::Taken(entry) = outcome else { panic!("{outcome:?}") };
            assert_eq!(entry.number, format!("d{place}-{value:03}"));
            let row =
                world.ledger.register().row_of(entry.taken[0].counter_id, value).await.unwrap();
            assert_eq!(row.unwrap().entry, entry);
        }
    }
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.taken, counter.journaled), (300, 300));
    world.verify().await;
}

pub(super) async fn a_repeated_take_finds_its_own_numbers(world: World) {
    let old = world.database_epoch().await;
    let unnamed = with(entry(old, 0, 1), |r| r.document_id = None);
    let orders = [order_of((*unnamed.record).clone()), order("b")];
    let once = world.ledger.take(old, world.node, &orders, LOCK_WAIT).await.unwrap();
    world.take(old, order("c")).await;
    let again = orders.map(|order| TakeRequest { retry_count: 1, ..order });
    assert_eq!(world.ledger.take(old, world.node, &again, LOCK_WAIT).await.unwrap(), once);
    let new = world.database_epoch().await;
    assert_eq!(world.ledger.take(new, world.node, &again, LOCK_WAIT).await.unwrap(), once);
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 3);
}

pub(super) async fn a_take_is_fenced_once_the_counter_went_on(world: World) {
    let old = world.database_epoch().await;
    world.take(old, order("a")).await;
    let new = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(new, &spec("k")).await.1, 1);
    let error =
        world.ledger.take(old, world.node, &[order("c")], LOCK_WAIT).await.expect_err("fenced");
    assert!(matches!(error, LedgerError::Fenced { epoch, .. } if epoch == old.epoch), "{error}");
    let error =
        world.ledger.take(new, world.node, &[order("c")], LOCK_WAIT).await.expect_err("fenced");
    assert!(matches!(error, LedgerError::Fenced { .. }), "Redis counts in this epoch: {error}");
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 1);
}

/// Its document may have been asked for in the next epoch, and not found, for a request that counts
/// by another counter (F27).
pub(super) async fn a_take_is_fenced_once_its_epoch_is_over_whoever_touched_its_counter(
    world: World,
) {
    let old = world.database_epoch().await;
    world.take(old, order("first")).await;
    let new = world.redis_epoch(Closing::Exact).await;
    world.seed(new, &spec("other")).await;
    let asked = question(&record("late"));
    let found = world.ledger.ask(PARTITION, std::slice::from_ref(&asked)).await.unwrap();
    assert_eq!(found, [Found::default()]);
    let late = world.ledger.take(old, world.node, &[order("late")], LOCK_WAIT).await;
    assert!(
        matches!(late, Err(LedgerError::Fenced { epoch, .. }) if epoch == old.epoch),
        "{late:?}"
    );
    // Nor while the epoch is being ended.
    let next = world.database_epoch().await;
    world.take(next, order("second")).await;
    let bumped = world.ledger.bump(next, PartitionState::Open, world.node, "test").await.unwrap();
    assert_eq!(bumped, Some(next.epoch + 1));
    let late = world.ledger.take(next, world.node, &[order("late")], LOCK_WAIT).await;
    assert!(matches!(late, Err(LedgerError::Fenced { .. })), "{late:?}");
    assert_eq!(world.ledger.ask(PARTITION, &[asked]).await.unwrap(), [Found::default()]);
    world.verify().await;
}

pub(super) async fn a_first_touch_needs_an_open_epoch_of_the_database(world: World) {
    let redis = world.redis_epoch(Closing::Exact).await;
    let refused = async |at| {
        let error =
            world.ledger.take(at, world.node, &[order("a")], LOCK_WAIT).await.expect_err("fenced");
        assert!(matches!(error, LedgerError::Fenced { .. }), "{error}");
    };
    refused(redis).await;
    let database = world.database_epoch().await;
    refused(redis).await;
    let from = PartitionState::Open;
    world.ledger.bump(database, from, world.node, "c").await.unwrap().unwrap();
    refused(database).await;
    assert_eq!(
        world.ledger.counters().get(7, "SEQ", "k").await.unwrap(),
        None,
        "nothing is left of it"
    );
    let error = world.ledger.take(super::world::at(99), world.node, &[order("a")], LOCK_WAIT).await;
    assert!(matches!(error, Err(LedgerError::Fenced { .. })), "{error:?}");
}

pub(super) async fn a_database_epoch_closes_without_a_gap(world: World) {
    let first_epoch = world.database_epoch().await;
    let entry = world.take(first_epoch, order("a")).await;
    let second = world.database_epoch().await;
    assert_eq!(first(&world.take(second, order("b")).await), 2);
    let third = world.redis_epoch(Closing::Exact).await;
    let counter_id = entry.taken[0].counter_id;
    assert_eq!(world.seed(third, &spec("k")).await, (counter_id, 2, 12));
    assert_eq!(world.gaps(counter_id).await, []);
    world.verify().await;
}
