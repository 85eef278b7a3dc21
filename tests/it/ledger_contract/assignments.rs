//! A document on one number of a range, and what a range did not use.

use numbering::DocumentsOf;
use numerator::ledger::{
    Assigning, Closing, DocumentHas, Entry, LedgerError, LifeAct, NewAct, NewAssignment,
    NumberByHand, Registering, Run, SeriesVersion, TakeOutcome, TakeRequest, UNUSED_VOIDED_MAX,
    Voided, VoidingUnused,
};
use numerator::node::NodeId;

use super::imports::{series, spec_of};
use super::lives::act_of;
use super::setup::change;
use super::world::{PARTITION, World, order_of, record};

ledger_contract! {
    assignments {
        a_number_of_a_range_is_assigned_once_and_its_document_gets_no_other
        a_former_reservation_refuses_no_assignment
        what_a_range_did_not_use_is_void_by_one_call
        of_a_take_and_an_assignment_for_one_document_one_is_done
        where_a_document_is_numbered_once_it_is_assigned_at_rest_alone
        what_a_large_range_did_not_use_is_void_by_several_calls
        an_assignment_that_stands_in_one_table_alone_is_found
    }
}

/// A series that numbers a document once, in the partition that the cases use.
pub(super) async fn once_series(world: &World) -> SeriesVersion {
    for index in 0.. {
        let mut change = change(&format!("O{index}"), &format!("O{index}-{{SEQ}}"));
        change.definition.once_per_document = Some(true);
        let saved = world.ledger.series().apply(&[change]).await.unwrap().remove(0);
        if saved.partition == PARTITION {
            return saved;
        }
    }
    unreachable!("series are spread over all partitions")
}

/// A request for numbers of the counter `k`, for a document that is numbered once or for none.
pub(super) fn order(series: &SeriesVersion, document: Option<&str>, count: u64) -> TakeRequest {
    let mut record = record(document.unwrap_or("none"));
    record.series_id = series.series_id;
    record.mask = "k-{0}".into();
    record.document_id = document.map(Into::into);
    let mut order = order_of(record);
    order.question.once_per_document = true;
    TakeRequest { specs: vec![spec_of(series, "k")], count, ..order }
}

/// An act upon a number of that counter.
fn act(of: &Entry, value: u64, reason: Option<&str>) -> NewAct {
    NewAct { number: format!("k-{value}"), ..act_of(of, value, reason) }
}

/// An assignment of a number of that counter.
pub(super) fn new(of: &Entry, value: u64, document: &str) -> NewAssignment {
    NewAssignment {
        act: act(of, value, None),
        series_id: of.record.series_id,
        project: None,
        taken_by: of.record.user_id.clone(),
        document_id: document.into(),
        documents: DocumentsOf::Series,
    }
}

async fn assign(world: &World, new: &NewAssignment) -> Assigning {
    world.ledger.life().assign(world.node, new).await.unwrap()
}

pub(super) async fn a_number_of_a_range_is_assigned_once_and_its_document_gets_no_other(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let ten = world.take(at, order(&series, None, 10)).await;
    let outcome = assign(&world, &new(&ten, 4, "sheet")).await;
    let Assigning::Written(assigned) = outcome else { panic!("{outcome:?}") };
    let row = assigned.row.clone();
    assert_eq!((row.act, row.document_id.as_deref()), (LifeAct::Assigned, Some("sheet")));
    assert!(!assigned.is_once, "a fast series numbers a document again");
    assert_eq!(assign(&world, &new(&ten, 4, "sheet")).await, Assigning::Known(assigned));
    assert_eq!(assign(&world, &new(&ten, 4, "other")).await, Assigning::Other(row));
    let by_hand = NumberByHand {
        order: order(&series, Some("sheet"), 1),
        number: "k-11".into(),
        value: 11,
        is_as_written: false,
        is_narrowed: false,
        returns: true,
        reason: "written on paper".into(),
    };
    let refused = world.ledger.imports().register(world.node, &by_hand).await.unwrap();
    assert!(matches!(refused, Registering::DocumentHas(DocumentHas::Assigned(_))), "{refused:?}");
    // The document has its number for every caller that asks for another one.
    let second = assign(&world, &new(&ten, 5, "sheet")).await;
    let Assigning::DocumentHas(DocumentHas::Assigned(has)) = second else { panic!("{second:?}") };
    assert_eq!((&*has.number, has.value, has.row_first), ("k-4", 4, 1));
    let mut takes = world.take_again(at, &[order(&series, Some("sheet"), 1)]).await.outcomes;
    let Some(TakeOutcome::Found(found)) = takes.pop() else { panic!("it has one") };
    assert_eq!(found.assigned, Some(has));
    assert_eq!((found.by_document, found.by_key), (None, None));
    let mut again = order(&series, Some("sheet"), 1);
    again.question.again = true;
    assert_eq!(world.take(at, again).await.number, "k-11");
    // A document that has, or holds, a number gets none of a range.
    world.take(at, order(&series, Some("own"), 1)).await;
    let refused = assign(&world, &new(&ten, 5, "own")).await;
    assert!(matches!(refused, Assigning::DocumentHas(DocumentHas::Number(_))), "{refused:?}");
    let held = world.reserve(at, order(&series, Some("held"), 1)).await;
    let refused = assign(&world, &new(&ten, 5, "held")).await;
    assert!(matches!(refused, Assigning::DocumentHas(DocumentHas::Reserved(_))), "{refused:?}");
    world.cancel(&held).await;
    let outcome = assign(&world, &new(&ten, 5, "held")).await;
    assert!(matches!(outcome, Assigning::Written(_)), "its reservation ends first: {outcome:?}");
    // A number that is alone, and one that the range does not have.
    let alone = world.take(at, order(&series, None, 1)).await;
    let first = alone.taken[0].range.first;
    assert_eq!(assign(&world, &new(&alone, first, "x")).await, Assigning::NotOfARange);
    assert_eq!(assign(&world, &new(&ten, 11, "x")).await, Assigning::Gone);
    // A void names the document; a void number gets none.
    let voided = world.ledger.life().void(&act(&ten, 4, Some("torn"))).await.unwrap();
    let Voided::Written(row) = voided else { panic!("{voided:?}") };
    assert_eq!(row.document_id.as_deref(), Some("sheet"));
    assert_eq!(assign(&world, &new(&ten, 4, "sheet")).await, Assigning::Voided(row));
    let rows = world.ledger.register().numbers_of("sheet", None, 10).await.unwrap();
    let firsts: Vec<_> = rows.iter().map(|row| &*row.entry.number).collect();
    assert_eq!(firsts, ["k-1", "k-11"]);
    assert_eq!(world.ledger.audits().stray_acts(10).await.unwrap(), []);
    world.verify().await;
}

/// Goal: a reservation that shows less than this process knows refuses no assignment: the ledger
/// went back (L12). Method: it was confirmed, and its former row is there again.
pub(super) async fn a_former_reservation_refuses_no_assignment(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let ten = world.take(at, order(&series, None, 10)).await;
    let held = world.reserve(at, order(&series, Some("held"), 1)).await;
    world.confirm(&held).await;
    world
        .sql("update reservation set state = 'reserved', changed_at_us = null, changed_by = null")
        .await;
    let node = NodeId::random();
    world.join(node).await;
    let refused = world.ledger.life().assign(node, &new(&ten, 5, "held")).await;
    assert!(matches!(refused, Err(LedgerError::WentBack(_))), "{refused:?}");
}

pub(super) async fn what_a_range_did_not_use_is_void_by_one_call(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let ten = world.take(at, order(&series, None, 10)).await;
    let life = world.ledger.life();
    assert!(matches!(assign(&world, &new(&ten, 6, "sheet")).await, Assigning::Written(_)));
    life.void(&act(&ten, 4, Some("torn"))).await.unwrap();
    // The last void for this reason is not the last unused number: lower ones are still unused.
    let rest = act(&ten, 4, Some("the tablet is back"));
    life.void(&act(&ten, 9, Some("the tablet is back"))).await.unwrap();
    for (written, of_call) in [(7, "the first"), (0, "the same again")] {
        let done = life.void_unused(&rest, &ten).await.unwrap();
        let VoidingUnused::Done(done) = done else { panic!("{done:?}") };
        assert_eq!((done.written, done.count, done.left), (written, 8, 0), "{of_call}");
        let numbers: Vec<_> = done.rows.iter().filter_map(|row| row.number.as_deref()).collect();
        let unused = ["k-1", "k-2", "k-3", "k-5", "k-7", "k-8", "k-9", "k-10"];
        assert_eq!(numbers, unused, "{of_call}");
    }
    let refused = assign(&world, &new(&ten, 7, "late")).await;
    assert!(matches!(refused, Assigning::Voided(_)), "{refused:?}");
    let standing = life.standing_of(act(&ten, 6, None).of).await.unwrap();
    assert!(standing.voided.is_none() && standing.assigned.is_some(), "{standing:?}");
    // The numbers of a range that a document has are used, and a number that is alone is no range.
    let own = world.take(at, order(&series, Some("own"), 3)).await;
    let first = own.taken[0].range.first;
    let refused = life.void_unused(&act(&own, first, Some("not needed")), &own).await.unwrap();
    assert_eq!(refused, VoidingUnused::OfDocument("own".into()));
    let alone = world.take(at, order(&series, None, 1)).await;
    let first = alone.taken[0].range.first;
    let refused = life.void_unused(&act(&alone, first, Some("not needed")), &alone).await.unwrap();
    assert_eq!(refused, VoidingUnused::NotOfARange);
    assert_eq!(world.ledger.audits().stray_acts(10).await.unwrap(), []);
    world.verify().await;
}

/// Who owns the partition, whether it is held, and whether an earlier program lives.
pub(super) async fn where_a_document_is_numbered_once_it_is_assigned_at_rest_alone(world: World) {
    let series = once_series(&world).await;
    let at = world.database_epoch().await;
    let ten = world.take(at, order(&series, None, 10)).await;
    let (four, life) = (new(&ten, 4, "sheet"), world.ledger.life());
    world.redis_epoch(Closing::Exact).await;
    assert_eq!(assign(&world, &four).await, Assigning::InRedis(PARTITION));
    world.database_epoch().await;
    let set = async |state: &str| {
        let its = format!("where partition_id = {PARTITION}");
        world.sql(&format!("update partition set state = '{state}' {its}")).await;
    };
    set("held").await;
    assert_eq!(assign(&world, &four).await, Assigning::Held(PARTITION));
    set("open").await;
    let known = async || life.assigned(four.act.of, series.series_id).await.unwrap();
    assert_eq!(known().await, None, "nothing was written");
    let outcome = assign(&world, &four).await;
    let Assigning::Written(assigned) = outcome else { panic!("{outcome:?}") };
    assert!(assigned.is_once, "{assigned:?}");
    assert_eq!(known().await, Some(assigned));
    life.void(&act(&ten, 4, Some("torn"))).await.unwrap();
    assert_eq!(known().await, None, "a void number is no document's any more");
    world.sql("update node set schema = 13").await;
    assert_eq!(assign(&world, &new(&ten, 5, "late")).await, Assigning::BesideOlder);
}

pub(super) async fn what_a_large_range_did_not_use_is_void_by_several_calls(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let max = u64::from(UNUSED_VOIDED_MAX);
    let range = world.take(at, order(&series, None, max + 20)).await;
    let life = world.ledger.life();
    assert!(matches!(assign(&world, &new(&range, 3, "sheet")).await, Assigning::Written(_)));
    let rest = act(&range, 1, Some("the tablet is back"));
    for (written, count, left) in [(max, max, 19), (19, max + 19, 0), (0, max + 19, 0)] {
        let done = life.void_unused(&rest, &range).await.unwrap();
        let VoidingUnused::Done(done) = done else { panic!("{done:?}") };
        assert_eq!((done.written, done.count, done.left), (written, count, left));
    }
    let taken = range.taken[0];
    let run = Run { first: 1, last: i64::try_from(max + 20).unwrap(), step: 1 };
    let found = life.unused_voided(&rest, run).await.unwrap();
    assert_eq!((found.count, found.left), (max + 19, 0));
    let all = life.all_once(taken.counter_id, run, LifeAct::Voided).await.unwrap();
    assert_eq!(all.len() as u64, max + 19);
    world.verify().await;
}

pub(super) async fn an_assignment_that_stands_in_one_table_alone_is_found(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let ten = world.take(at, order(&series, None, 10)).await;
    assert!(matches!(assign(&world, &new(&ten, 4, "sheet")).await, Assigning::Written(_)));
    let audits = world.ledger.audits();
    assert_eq!(audits.stray_acts(10).await.unwrap(), []);
    world
        .sql(
            "insert into life (act, once, at_us, counter_id, first_value, last_value, subject,
             number, document_id, user_id) select act, once, at_us, counter_id, 5, 5, subject,
             'k-5', 'alone', user_id from life where act = 'assigned'",
        )
        .await;
    world
        .sql(
            "insert into assignment (counter_id, value, row_first, series_id, project, user_id,
             number, document_id, document_hash, assigned_at_us) select counter_id, 6, row_first,
             series_id, project, user_id, 'k-6', 'alone', document_hash, assigned_at_us
             from assignment",
        )
        .await;
    let stray = audits.stray_acts(10).await.unwrap();
    let found: Vec<_> = stray.iter().map(|it| (it.life_id == 0, it.of.value, it.act)).collect();
    assert_eq!(found, [(true, 6, LifeAct::Assigned), (false, 5, LifeAct::Assigned)]);
}

/// The second of both waits for the name of the document, and finds what the first one did.
pub(super) async fn of_a_take_and_an_assignment_for_one_document_one_is_done(world: World) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    let range = world.take(at, order(&series, None, 20)).await;
    let mut assigned = 0;
    for value in 1..=20 {
        let document = format!("d{value}");
        let take = async {
            let orders = [order(&series, Some(&document), 1)];
            world.take_again(at, &orders).await.outcomes.remove(0)
        };
        let new = new(&range, value, &document);
        let assign = async {
            loop {
                match world.ledger.life().assign(world.node, &new).await {
                    Err(LedgerError::Conflict(_)) => {}
                    outcome => return outcome.unwrap(),
                }
            }
        };
        let (taken, outcome) = if value % 2 == 1 {
            tokio::join!(take, assign)
        } else {
            let (outcome, taken) = tokio::join!(assign, take);
            (taken, outcome)
        };
        match (taken, outcome) {
            (TakeOutcome::Found(found), Assigning::Written(_)) => {
                assigned += 1;
                assert_eq!(found.assigned.map(|it| it.number), Some(format!("k-{value}")));
            }
            (TakeOutcome::Taken(taken), Assigning::DocumentHas(DocumentHas::Number(entry))) => {
                assert_eq!(entry.number, taken.number);
            }
            other => panic!("{document}: {other:?}"),
        }
    }
    world.verify().await;
    println!("{assigned} of 20 were assigned before they were taken");
}
