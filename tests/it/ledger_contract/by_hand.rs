//! Numbers that were given by hand: registered once, at their counter's value, above or below it,
//! and never beside another number of the same value.

mod as_written;
mod beside_series;
mod kept;

pub(super) use as_written::*;
pub(super) use beside_series::*;
pub(super) use kept::*;

use std::sync::Arc;

use numerator::ledger::{
    AccountRequest, Accounted, At, Closing, CounterFilter, DocumentHas, Entry, IssuePath,
    LedgerError, NumberByHand, PASSED_OVER_MAX, PassedOver, RegisteredNumber, Registering,
    SeriesVersion, TakeOutcome, TakeRequest, ValueOf,
};
use numerator::node::NodeId;

use super::imports::{counter, import, number, series, spec_of};
use super::world::{LOCK_WAIT, World, order_of, record};

ledger_contract! {
    by_hand {
        what_a_number_by_hand_passes_over_comes_next_and_the_number_is_left_out
        elsewhere_what_is_passed_over_never_comes
        below_its_counter_a_number_by_hand_fills_a_gap
        a_number_by_hand_is_registered_once_and_for_one_document
        what_a_document_holds_is_not_registered
        a_former_reservation_refuses_no_registration
        a_number_by_hand_is_dated_as_any_other
        a_number_by_hand_needs_a_counter_at_rest_and_the_present_version
        of_a_taker_and_a_registrar_of_one_value_one_gets_it
    }
}

const REASON: &str = "written while the line was down";

/// A request for a document, on the counter `k` of a series.
fn order(series: &SeriesVersion, document: &str) -> TakeRequest {
    let mut record = record(document);
    record.series_id = series.series_id;
    record.mask = "k-{0}".into();
    TakeRequest { specs: vec![spec_of(series, "k")], ..order_of(record) }
}

/// A number of that counter.
fn by_hand(series: &SeriesVersion, document: &str, value: u64) -> NumberByHand {
    NumberByHand {
        order: order(series, document),
        number: format!("k-{value}"),
        value,
        is_as_written: false,
        is_narrowed: false,
        returns: true,
        reason: REASON.into(),
    }
}

async fn register(world: &World, new: &NumberByHand) -> Registering {
    world.ledger.imports().register(world.node, new).await.unwrap()
}

/// Registers a number that must be new.
async fn written(world: &World, new: &NumberByHand) -> RegisteredNumber {
    match register(world, new).await {
        Registering::Written(number) => *number,
        other => panic!("not registered: {other:?}"),
    }
}

async fn next(world: &World, at: At, series: &SeriesVersion, document: &str) -> u64 {
    value(&world.take(at, order(series, document)).await)
}

fn value(entry: &Entry) -> u64 {
    entry.taken[0].range.first
}

pub(super) async fn what_a_number_by_hand_passes_over_comes_next_and_the_number_is_left_out(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    assert_eq!(next(&world, at, &series, "a").await, 1);
    let registered = written(&world, &by_hand(&series, "paper", 5)).await;
    let passed = PassedOver { first: 2, last: 4, count: 3, is_returned: true };
    assert_eq!(registered.row.passed_over, Some(passed));
    assert_eq!(registered.entry.path, IssuePath::Registered);
    let id = registered.row.of.counter_id;
    assert_eq!(world.gaps(id).await, [(2, 4, "Returned".to_owned())]);
    world.is_whole().await;
    // A second one passes over what lies above the first, and nothing below is lost.
    let above = written(&world, &by_hand(&series, "other", 7)).await;
    let passed = PassedOver { first: 6, last: 6, count: 1, is_returned: true };
    assert_eq!(above.row.passed_over, Some(passed));
    // The very next value passes over nothing, and leaves what came back where it is.
    assert_eq!(written(&world, &by_hand(&series, "eighth", 8)).await.row.passed_over, None);
    for (document, expected) in [("b", 2), ("c", 3), ("d", 4), ("e", 6), ("f", 9)] {
        assert_eq!(next(&world, at, &series, document).await, expected, "{document}");
    }
    world.is_whole().await;
    let everything = AccountRequest {
        filter: CounterFilter { series_id: Some(series.series_id), ..CounterFilter::default() },
        counters_max: 10,
        rows_max: 1_000,
        entries_max: 100,
        seen: None,
    };
    let told = world.ledger.register().accounts(&everything).await.unwrap();
    let Accounted::Whole(accounts) = told else { panic!("{told:?}") };
    let account = &accounts[0];
    assert_eq!((account.tally.registered, account.tally.issued), (3, 6));
    let listed: Vec<_> = account.by_hand.iter().map(|one| (one.value, &*one.reason)).collect();
    assert_eq!(listed, [(5, REASON), (7, REASON), (8, REASON)]);
    assert!(account.is_sound());
}

pub(super) async fn elsewhere_what_is_passed_over_never_comes(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let new = NumberByHand { returns: false, ..by_hand(&series, "paper", 4) };
    let registered = written(&world, &new).await;
    let passed = PassedOver { first: 1, last: 3, count: 3, is_returned: false };
    assert_eq!(registered.row.passed_over, Some(passed));
    let of = registered.row.of;
    assert_eq!(world.gaps(of.counter_id).await, [(1, 3, "Skipped".to_owned())]);
    assert_eq!(next(&world, at, &series, "a").await, 5);
    let skipped = ValueOf { value: 2, ..of };
    let by = world.ledger.life().passed_over_by(skipped).await.unwrap();
    assert_eq!(by.map(|row| row.life_id), Some(registered.row.life_id));
    // One of them turns up.
    assert_eq!(written(&world, &by_hand(&series, "found", 2)).await.row.passed_over, None);
    world.is_whole().await;
    let far = by_hand(&series, "typed", 6 + PASSED_OVER_MAX + 1);
    let refused = register(&world, &far).await;
    assert!(matches!(refused, Registering::TooFar { next: 6, .. }), "{refused:?}");
    written(&world, &by_hand(&series, "far", 6 + PASSED_OVER_MAX)).await;
    world.is_whole().await;
}

pub(super) async fn below_its_counter_a_number_by_hand_fills_a_gap(world: World) {
    let series = series(&world).await;
    let chunks = vec![Ok(vec![number(&series, "k", 3)])];
    import(&world, &[counter(&series, "k", 8)], chunks).await.unwrap();
    let id = world.ledger.counters().page(0, 10).await.unwrap().remove(0).counter_id;
    let filled = written(&world, &by_hand(&series, "paper", 5)).await;
    assert_eq!(filled.row.passed_over, None);
    let open = |first, last| (first, last, "BeforeImport".to_owned());
    assert_eq!(world.gaps(id).await, [open(1, 2), open(4, 4), open(6, 8)]);
    assert_eq!(register(&world, &by_hand(&series, "b", 3)).await, Registering::Taken);
    world.sql("update gap set reason = 'collided' where first_value = 4").await;
    assert_eq!(register(&world, &by_hand(&series, "c", 4)).await, Registering::Collided);
    for (value, reason) in [(1, "unaccounted"), (6, "discarded"), (7, "skipped"), (8, "expired")] {
        world.sql(&format!("update gap set reason = '{reason}' where first_value = {value}")).await;
        written(&world, &by_hand(&series, reason, value)).await;
    }
    let below = NumberByHand { value: 0, number: "k-0".into(), ..by_hand(&series, "e", 1) };
    assert_eq!(register(&world, &below).await, Registering::BelowFirst { first: 1 });
    world.verify().await;
}

pub(super) async fn a_number_by_hand_is_registered_once_and_for_one_document(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let new = by_hand(&series, "paper", 2);
    let first = written(&world, &new).await;
    let again = by_hand(&series, "paper", 2);
    let known = register(&world, &again).await;
    assert_eq!(known, Registering::Known(Box::new(first.clone())));
    let imports = world.ledger.imports();
    assert_eq!(imports.registered(&again).await.unwrap(), Some(known));
    // Another reason, principal or document is another registration.
    let mut others = [again.clone(), again.clone(), by_hand(&series, "another", 2)];
    others[0].reason = "written by somebody else".into();
    let record = Arc::make_mut(&mut others[1].order.record);
    record.user_id = "bob".into();
    for other in &others {
        assert_eq!(register(&world, other).await, Registering::Taken);
    }
    // The document has its number.
    let second = register(&world, &by_hand(&series, "paper", 3)).await;
    let Registering::DocumentHas(DocumentHas::Number(has)) = second else { panic!("{second:?}") };
    assert_eq!(has.number, "k-2");
    let mut takes = world.take_again(at, &[order(&series, "paper")]).await.outcomes;
    let Some(TakeOutcome::Found(found)) = takes.pop() else { panic!("it has one") };
    assert_eq!(found.by_document.unwrap().number, "k-2");
    world.is_whole().await;
    assert_eq!(world.ledger.audits().stray_acts(10).await.unwrap(), []);
}

pub(super) async fn what_a_document_holds_is_not_registered(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let held = world.reserve(at, order(&series, "held")).await;
    let refused = register(&world, &by_hand(&series, "paper", 1)).await;
    let Registering::Reserved(by) = refused else { panic!("{refused:?}") };
    assert_eq!((by.id(), by.expires_at_us), (held.id(), held.expires_at_us));
    let refused = register(&world, &by_hand(&series, "held", 2)).await;
    assert!(matches!(refused, Registering::DocumentHas(DocumentHas::Reserved(_))), "{refused:?}");
    world.cancel(&held).await;
    // It has not ended yet: the registration ends it, and fills what it left.
    written(&world, &by_hand(&series, "paper", 1)).await;
    world.is_whole().await;
    let kept = world.reserve(at, order(&series, "kept")).await;
    assert_eq!(value(&kept.entry), 2);
    world.confirm(&kept).await;
    assert_eq!(register(&world, &by_hand(&series, "late", 2)).await, Registering::Taken);
    world.sweep().await;
    assert_eq!(register(&world, &by_hand(&series, "late", 2)).await, Registering::Taken);
    // What the document itself holds ends as well, once its time is over.
    world.reserve(at, order(&series, "over")).await;
    world.let_expire("over").await;
    written(&world, &by_hand(&series, "over", 4)).await;
    world.is_whole().await;
}

/// Goal: a reservation that shows less than this process knows refuses no registration: the ledger
/// went back (L12). Method: it was confirmed, and its former row is there again.
pub(super) async fn a_former_reservation_refuses_no_registration(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let held = world.reserve(at, order(&series, "held")).await;
    world.confirm(&held).await;
    world
        .sql("update reservation set state = 'reserved', changed_at_us = null, changed_by = null")
        .await;
    for (document, value) in [("held", 2), ("paper", 1)] {
        let node = NodeId::random();
        world.join(node).await;
        let new = by_hand(&series, document, value);
        let refused = world.ledger.imports().register(node, &new).await;
        assert!(matches!(refused, Err(LedgerError::WentBack(_))), "{refused:?}");
    }
}

pub(super) async fn a_number_by_hand_is_dated_as_any_other(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let dated = |document: &str, date: &str| {
        let mut order = order(&series, document);
        Arc::make_mut(&mut order.record).document_date = date.into();
        TakeRequest { family: Some("k".into()), ..order }
    };
    let by_hand = |document: &str, date: &str, value| NumberByHand {
        order: dated(document, date),
        returns: false,
        ..by_hand(&series, document, value)
    };
    world.take(at, dated("a", "2026-02-02")).await;
    let refused = register(&world, &by_hand("b", "2026-02-01", 3)).await;
    assert_eq!(refused, Registering::BeforeLast("2026-02-02".into()));
    written(&world, &by_hand("b", "2026-02-03", 3)).await;
    // Its date counts for the next.
    let orders = [dated("c", "2026-02-02")];
    let late = world.ledger.take(at, world.node, &orders, LOCK_WAIT).await.unwrap().outcomes;
    assert!(!matches!(&late[..], [TakeOutcome::Taken(_)]), "{late:?}");
    world.take(at, dated("d", "2026-02-03")).await;
    world.verify().await;
}

pub(super) async fn a_number_by_hand_needs_a_counter_at_rest_and_the_present_version(world: World) {
    let series = series(&world).await;
    let at = world.redis_epoch(Closing::Exact).await;
    let partition = at.partition;
    let without = |value| {
        let mut new = by_hand(&series, "none", value);
        Arc::make_mut(&mut new.order.record).document_id = None;
        new.order.question.document_id = None;
        NumberByHand { returns: false, ..new }
    };
    // Nobody counts it yet; but Redis would take its document for a new one.
    let refused = register(&world, &by_hand(&series, "paper", 3)).await;
    assert_eq!(refused, Registering::InRedis(partition));
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap(), [], "nothing is written");
    written(&world, &without(3)).await;
    let (_, value, _) = world.seed(at, &spec_of(&series, "k")).await;
    assert_eq!(value, 3, "its first touch goes on above");
    assert_eq!(register(&world, &without(6)).await, Registering::InRedis(partition));
    world.database_epoch().await;
    written(&world, &by_hand(&series, "paper", 6)).await;
    world.verify().await;
    let mut old = by_hand(&series, "old", 9);
    old.order.specs[0].version += 1;
    let refused = world.ledger.imports().register(world.node, &old).await;
    assert!(matches!(refused, Err(LedgerError::SeriesChanged)), "{refused:?}");
    // A process of an earlier version could not read the record.
    world.sql("update node set schema = 11").await;
    let refused = register(&world, &by_hand(&series, "beside", 7)).await;
    assert_eq!(refused, Registering::BesideOlder);
}

/// Goal: a value is the taker's or the registrar's, and never of both. Method: both ask for the
/// next value at once, again and again, each first in turn.
pub(super) async fn of_a_taker_and_a_registrar_of_one_value_one_gets_it(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let mut registered = 0;
    for value in (1..40).step_by(2) {
        let take = async {
            let orders = [order(&series, &format!("t{value}"))];
            world.take_again(at, &orders).await.outcomes.remove(0)
        };
        let new = by_hand(&series, &format!("r{value}"), value);
        let register = async {
            loop {
                match world.ledger.imports().register(world.node, &new).await {
                    Err(LedgerError::Conflict(_)) => {}
                    outcome => return outcome.unwrap(),
                }
            }
        };
        let (taken, outcome) = if value % 4 == 1 {
            tokio::join!(take, register)
        } else {
            let (outcome, taken) = tokio::join!(register, take);
            (taken, outcome)
        };
        let TakeOutcome::Taken(taken) = taken else { panic!("{taken:?}") };
        match outcome {
            Registering::Written(number) => {
                registered += 1;
                assert_eq!(
                    (number.entry.number, taken.taken[0].range.first),
                    (new.number, value + 1)
                );
            }
            Registering::Taken => {
                assert_eq!(taken.number, new.number);
                // The values of the two stay apart.
                next(&world, at, &series, &format!("n{value}")).await;
            }
            other => panic!("{other:?}"),
        }
        world.is_whole().await;
    }
    println!("{registered} of 20 were registered before they were taken");
}
