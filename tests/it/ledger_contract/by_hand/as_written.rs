//! Numbers that are kept as written: in a form that no series could render, counted by none, and
//! never a text that a series, saved before or later, could issue.

use std::sync::Arc;

use numbering::{PartialNumber, SeriesDefinition};
use numerator::ledger::{
    AS_WRITTEN_SERIAL, AccountRequest, Accounted, Closing, Counter, CounterAccount, CounterFilter,
    DocumentHas, IssuePath, LedgerError, NumberByHand, Registering, SeriesChange, SeriesRefusal,
    SeriesVersion, TakeOutcome,
};
use serde_json::json;

use super::{by_hand, next, order, register, written};
use crate::ledger_contract::imports::series;
use crate::ledger_contract::references::{of_rows, row};
use crate::ledger_contract::setup::change;
use crate::ledger_contract::world::World;

ledger_contract! {
    by_hand {
        a_text_that_no_series_could_render_is_kept_apart_from_all
        what_a_series_could_render_is_not_kept_as_written
        a_series_that_could_render_a_kept_number_is_not_saved
        nor_are_codes_by_which_a_series_could_render_it
        a_kept_number_that_is_told_again_keeps_its_text_from_series
        a_kept_number_is_remembered_until_its_process_has_reported
        no_series_is_saved_where_a_kept_number_may_be_forgotten
        a_number_as_written_is_kept_beside_no_older_process
    }
}

/// A number as written, for a document of a series.
pub(in crate::ledger_contract) fn number_as_written(
    series: &SeriesVersion,
    document: &str,
    text: &str,
) -> NumberByHand {
    let mut new = by_hand(series, document, 0);
    new.order.specs[0].serial = AS_WRITTEN_SERIAL.into();
    let record = Arc::make_mut(&mut new.order.record);
    record.mask = PartialNumber::of_text(text).to_text();
    record.serials = vec![AS_WRITTEN_SERIAL.into()];
    NumberByHand { number: text.into(), is_as_written: true, returns: false, ..new }
}

/// Whether a save is refused for a kept number.
pub(super) fn reads_kept<T>(result: &Result<T, LedgerError>) -> bool {
    matches!(result, Err(LedgerError::Series(SeriesRefusal::ReadsKept { .. })))
}

/// A series that takes numbers by hand.
pub(super) fn taking_by_hand() -> SeriesChange {
    let mut change = change("HAND", "HAND-{SEQ:4}");
    change.definition.by_hand = true;
    change
}

/// A series of a type of the table `types`, which it may show.
pub(super) fn showing(code: &str, type_code: &str, template: &str) -> SeriesChange {
    let definition: SeriesDefinition = serde_json::from_value(json!({
        "code": code, "name": "n", "template": template, "serves": { "types": [type_code] },
        "serials": [{ "counter": ["type"] }], "references": { "type": "types" },
    }))
    .unwrap();
    SeriesChange { definition, ..change(code, "{SEQ}") }
}

async fn counter_of(world: &World, serial: &str) -> Counter {
    let counters = world.ledger.counters().page(0, 10).await.unwrap();
    counters.into_iter().find(|counter| counter.serial == serial).expect("the counter")
}

pub(in crate::ledger_contract) async fn a_text_that_no_series_could_render_is_kept_apart_from_all(
    world: World,
) {
    let series = series(&world).await;
    let at = world.database_epoch().await;
    assert_eq!(next(&world, at, &series, "a").await, 1);
    let first = written(&world, &number_as_written(&series, "paper", "old/{17} b")).await;
    assert_eq!((first.entry.path, &*first.entry.number), (IssuePath::AsWritten, "old/{17} b"));
    assert_eq!((first.row.of.value, first.row.passed_over), (1, None));
    assert_eq!(
        written(&world, &number_as_written(&series, "other", "old/18")).await.row.of.value,
        2
    );
    // The counter of the series goes on as if there were none.
    assert_eq!(next(&world, at, &series, "b").await, 2);
    let counter = counter_of(&world, "SEQ").await;
    assert_eq!((counter.taken, world.gaps(counter.counter_id).await.len()), (2, 0));
    // Repeated it is the same; otherwise it is taken, and its document is numbered.
    let again = number_as_written(&series, "paper", "old/{17} b");
    assert_eq!(register(&world, &again).await, Registering::Known(Box::new(first)));
    let another = number_as_written(&series, "another", "old/{17} b");
    assert_eq!(register(&world, &another).await, Registering::Taken);
    let second = register(&world, &number_as_written(&series, "paper", "old/19")).await;
    assert!(matches!(second, Registering::DocumentHas(DocumentHas::Number(_))), "{second:?}");
    let mut takes = world.take_again(at, &[order(&series, "paper")]).await.outcomes;
    let Some(TakeOutcome::Found(found)) = takes.pop() else { panic!("it has one") };
    assert_eq!(found.by_document.unwrap().number, "old/{17} b");
    let everything = AccountRequest {
        filter: CounterFilter { series_id: Some(series.series_id), ..CounterFilter::default() },
        counters_max: 10,
        rows_max: 1_000,
        entries_max: 100,
        seen: None,
    };
    let told = world.ledger.register().accounts(&everything).await.unwrap();
    let Accounted::Whole(accounts) = told else { panic!("{told:?}") };
    let tallies: Vec<_> = accounts
        .iter()
        .map(|account| (account.tally.issued, account.tally.as_written, account.by_hand.len()))
        .collect();
    assert_eq!(tallies, [(2, 0, 0), (0, 2, 2)]);
    assert!(accounts.iter().all(CounterAccount::is_sound), "{accounts:?}");
    // None of them moves to a file.
    let kept = counter_of(&world, AS_WRITTEN_SERIAL).await.counter_id;
    let archivable = world.ledger.archive().archivable_counters(0, i64::MAX, 10).await.unwrap();
    assert!(!archivable.contains(&kept), "{archivable:?}");
    world.is_whole().await;
}

pub(in crate::ledger_contract) async fn what_a_series_could_render_is_not_kept_as_written(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    world.ledger.series().apply(&[change("OTHER", "OTHER/{SEQ:3}")]).await.unwrap();
    let own = format!("{}-17", series.definition.code);
    for (text, code) in
        [(&*own, &*series.definition.code), ("OTHER/001", "OTHER"), ("OTHER/12345", "OTHER")]
    {
        let refused = register(&world, &number_as_written(&series, "paper", text)).await;
        let readable = Registering::Readable { code: code.into(), version: 1 };
        assert_eq!(refused, readable, "{text}");
    }
    written(&world, &number_as_written(&series, "paper", "OTHER/1")).await;
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap().len(), 1);
}

pub(in crate::ledger_contract) async fn a_series_that_could_render_a_kept_number_is_not_saved(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    written(&world, &number_as_written(&series, "paper", "OTHER/001")).await;
    let ledger = &world.ledger;
    let stamp = ledger.series().stamp().await.unwrap();
    for template in ["OTHER/{SEQ:3}", "OTHER/00{SEQ}"] {
        let changes = [change("OTHER", template)];
        assert!(reads_kept(&ledger.series().try_apply(&changes).await), "{template}");
        assert!(reads_kept(&ledger.series().apply(&changes).await), "{template}");
    }
    assert_eq!(ledger.series().stamp().await.unwrap(), stamp, "nothing was saved");
    let apart = ledger.series().apply(&[change("OTHER", "OTHER-{SEQ:3}")]).await.unwrap();
    let mut raised = change("OTHER", "OTHER/{SEQ:3}");
    raised.reason = "another sign".into();
    assert!(reads_kept(&ledger.series().apply(&[raised]).await));
    assert_eq!(apart[0].version, 1);
}

/// Method: a series that shows its type, whose row of a table gets another code.
pub(in crate::ledger_contract) async fn nor_are_codes_by_which_a_series_could_render_it(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    let ledger = &world.ledger;
    let table = |code: &str| of_rows("types", &[row("1", code, true)]);
    ledger.reference().apply(&table("LETTER")).await.unwrap();
    let showing = showing("TYPES", "LETTER", "{CORR_TYPE}/{SEQ:3}");
    ledger.series().apply(&[showing]).await.unwrap();
    written(&world, &number_as_written(&series, "paper", "MEMO/001")).await;
    let refused = ledger.reference().apply(&table("MEMO")).await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
    ledger.reference().apply(&table("NOTE")).await.unwrap();
}

pub(in crate::ledger_contract) async fn a_kept_number_that_is_told_again_keeps_its_text_from_series(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    written(&world, &number_as_written(&series, "first", "OTHER/1")).await;
    let kept = written(&world, &number_as_written(&series, "paper", "OTHER/001")).await;
    // The ledger forgets both, with their counter.
    world.sql("delete from journal where path = 'as-written'").await;
    world.sql("delete from counter where serial = 'as-written'").await;
    let told = [kept.entry.clone()];
    let appended = world.ledger.journal_again(world.node, &told).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (1, 0));
    let counter = counter_of(&world, AS_WRITTEN_SERIAL).await;
    assert_eq!((counter.origin, counter.taken), (0, 2), "its first value stays to be found");
    let changes = [change("OTHER", "OTHER/{SEQ:3}")];
    assert!(reads_kept(&world.ledger.series().apply(&changes).await));
}

/// Goal: a ledger that went back is not taken for one that forgets, once it knows again. Method: it
/// forgets all of a registration; the record is journaled again, then the takes are reported.
pub(in crate::ledger_contract) async fn a_kept_number_is_remembered_until_its_process_has_reported(
    world: World,
) {
    let ledger = &world.ledger;
    ledger.series().apply(&[taking_by_hand()]).await.unwrap();
    let series = series(&world).await;
    world.database_epoch().await;
    let kept = written(&world, &number_as_written(&series, "paper", "OTHER/001")).await;
    world.sql("delete from life where act = 'registered'").await;
    world.sql("delete from journal where path = 'as-written'").await;
    world.sql("delete from counter where serial = 'as-written'").await;
    let changes = [change("OTHER", "OTHER/{SEQ:3}")];
    let refused = ledger.series().apply(&changes).await;
    assert!(matches!(refused, Err(LedgerError::WentBack(_))), "{refused:?}");
    let told = [kept.entry.clone()];
    assert_eq!(ledger.journal_again(world.node, &told).await.unwrap().written, 1);
    ledger.report_takes(world.node).await.unwrap();
    assert!(reads_kept(&ledger.series().apply(&changes).await));
}

pub(in crate::ledger_contract) async fn no_series_is_saved_where_a_kept_number_may_be_forgotten(
    world: World,
) {
    let ledger = &world.ledger;
    ledger.series().apply(&[taking_by_hand()]).await.unwrap();
    let series = series(&world).await;
    world.database_epoch().await;
    let changes = [change("OTHER", "OTHER/{SEQ:3}")];
    // Other processes may remember one, and report it before the partition is released.
    world.sql("update partition set state = 'held' where partition_id = 1").await;
    let refused = ledger.series().try_apply(&changes).await;
    let is_held =
        matches!(refused, Err(LedgerError::Series(SeriesRefusal::MayReadForgotten { .. })));
    assert!(is_held, "{refused:?}");
    let codes = of_rows("types", &[row("1", "LETTER", true)]);
    let refused = ledger.reference().apply(&codes).await.expect_err("held").to_string();
    assert!(refused.contains("--ledger-restored"), "{refused}");
    let new = number_as_written(&series, "paper", "OTHER/001");
    assert_eq!(register(&world, &new).await, Registering::Held(1));
    world.sql("update partition set state = 'open' where partition_id = 1").await;
    ledger.series().try_apply(&changes).await.unwrap();
    ledger.reference().apply(&codes).await.unwrap();
    // This process remembers one that the ledger does not show.
    written(&world, &new).await;
    world.sql("delete from journal where path = 'as-written'").await;
    let refused = ledger.series().apply(&changes).await;
    assert!(matches!(refused, Err(LedgerError::WentBack(_))), "{refused:?}");
}

pub(in crate::ledger_contract) async fn a_number_as_written_is_kept_beside_no_older_process(
    world: World,
) {
    let series = series(&world).await;
    let at = world.redis_epoch(Closing::Exact).await;
    // Redis would take its document for a new one.
    let refused = register(&world, &number_as_written(&series, "paper", "old/1")).await;
    assert_eq!(refused, Registering::InRedis(at.partition));
    let mut without = number_as_written(&series, "none", "old/1");
    Arc::make_mut(&mut without.order.record).document_id = None;
    without.order.question.document_id = None;
    written(&world, &without).await;
    world.database_epoch().await;
    written(&world, &number_as_written(&series, "paper", "old/2")).await;
    world.verify().await;
    world.sql("update node set schema = 12").await;
    let refused = register(&world, &number_as_written(&series, "late", "old/3")).await;
    assert_eq!(refused, Registering::BesideOlder);
}
