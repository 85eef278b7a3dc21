//! Numbers that are kept as written, and what changes of series, of reference data and imports may
//! still do beside them.

use std::sync::Arc;

use numbering::Policy;
use numerator::ledger::{
    AS_WRITTEN_MAX, ActivityChange, LedgerError, NARROWED_AS_WRITTEN_MAX, NumberByHand,
    Registering, SeriesChange, SeriesRefusal, SeriesRemoval,
};
use serde_json::json;

use super::{number_as_written, reads_kept, register, showing, taking_by_hand, written};
use crate::ledger_contract::imports::{counter, import, number, series};
use crate::ledger_contract::moves::elsewhere;
use crate::ledger_contract::references::{of_rows, row};
use crate::ledger_contract::setup::change;
use crate::ledger_contract::world::{NOW_US, World, with};

ledger_contract! {
    by_hand {
        a_series_that_is_off_is_saved_only_if_it_reads_no_kept_text
        what_a_series_that_is_off_could_render_is_not_kept
        what_could_be_rendered_before_keeps_no_table_from_change
        a_kept_number_makes_no_series_used_and_keeps_its_partition
        so_many_numbers_are_kept_and_fewer_by_a_narrowed_registrar
        many_series_are_compared_with_many_kept_numbers
        an_import_brings_nothing_that_could_be_a_kept_number
    }
}

fn activity(series_id: i64, active: bool) -> ActivityChange {
    let (saved_by, reason) = ("boss".to_owned(), "moved".to_owned());
    ActivityChange { series_id, active, expected: None, saved_by, reason, saved_at_us: NOW_US + 1 }
}

/// Saves a series and turns it off; its id.
async fn turned_off(world: &World, saved: SeriesChange) -> i64 {
    let series_id = world.ledger.series().apply(&[saved]).await.unwrap()[0].series_id;
    world.ledger.series().set_activity(&activity(series_id, false)).await.unwrap();
    series_id
}

/// Goal: reference data stay free to change, and the series free to be turned on. Method: the save
/// of a series that is off.
pub(in crate::ledger_contract) async fn a_series_that_is_off_is_saved_only_if_it_reads_no_kept_text(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    turned_off(&world, change("OTHER", "OTHER-{SEQ:3}")).await;
    written(&world, &number_as_written(&series, "paper", "OTHER/001")).await;
    let reading = [change("OTHER", "OTHER/{SEQ:3}")];
    assert!(reads_kept(&world.ledger.series().apply(&reading).await));
}

pub(in crate::ledger_contract) async fn what_a_series_that_is_off_could_render_is_not_kept(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    turned_off(&world, change("OTHER", "OTHER/{SEQ:3}")).await;
    let refused = register(&world, &number_as_written(&series, "paper", "OTHER/001")).await;
    assert_eq!(refused, Registering::Readable { code: "OTHER".into(), version: 2 });
}

/// Method: a kept number that is journaled again once a series that could render it is saved.
pub(in crate::ledger_contract) async fn what_could_be_rendered_before_keeps_no_table_from_change(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    let ledger = &world.ledger;
    let table = |id: &str, code: &str| of_rows("types", &[row(id, code, true)]);
    ledger.reference().apply(&table("1", "LETTER")).await.unwrap();
    let late = written(&world, &number_as_written(&series, "late", "LETTER/001")).await;
    world.sql("delete from journal where path = 'as-written'").await;
    world.sql("delete from counter where serial = 'as-written'").await;
    let reading = showing("TYPES", "LETTER", "{CORR_TYPE}/{SEQ:3}");
    let saved = ledger.series().apply(&[reading]).await.unwrap().remove(0);
    ledger.journal_again(world.node, &[late.entry]).await.unwrap();
    ledger.report_takes(world.node).await.unwrap();
    written(&world, &number_as_written(&series, "paper", "MEMO/001")).await;
    ledger.reference().apply(&table("1", "NOTE")).await.unwrap();
    let refused = ledger.reference().apply(&table("1", "MEMO")).await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
    ledger.series().set_activity(&activity(saved.series_id, false)).await.unwrap();
    assert!(reads_kept(&ledger.series().set_activity(&activity(saved.series_id, true)).await));
    ledger.reference().apply(&table("1", "PAPER")).await.unwrap();
}

pub(in crate::ledger_contract) async fn a_kept_number_makes_no_series_used_and_keeps_its_partition(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    let ledger = &world.ledger;
    written(&world, &number_as_written(&series, "paper", "old/1")).await;
    // It gave no number of its template, so another serial may begin anew.
    let code = &series.definition.code;
    let mut anew = change(code, &format!("{code}-{{SEQ:1:OTHER}}"));
    anew.definition.serials = serde_json::from_value(json!([{"name": "OTHER"}])).unwrap();
    ledger.series().apply(std::slice::from_ref(&anew)).await.unwrap();
    assert!(ledger.series().earlier_versions(10).await.unwrap().is_empty());
    let keeps = |error: &LedgerError| {
        matches!(error, LedgerError::Series(SeriesRefusal::KeepsNumbers { .. }))
    };
    anew.definition.policy = Policy::Gapless;
    let moved = ledger.series().apply(&[anew]).await.expect_err("another partition");
    assert!(keeps(&moved), "{moved}");
    let (removed_by, reason) = ("boss".to_owned(), "a mistake".to_owned());
    let (series_id, removed_at_us) = (series.series_id, NOW_US + 1);
    let removal = SeriesRemoval { series_id, expected: None, removed_by, reason, removed_at_us };
    let removed = ledger.series().remove(world.node, &removal).await.expect_err("it keeps one");
    assert!(keeps(&removed), "{removed}");
}

/// Writes copies of the first number that is kept, past the ledger.
async fn fill(world: &World, (from, upto): (u32, u32)) {
    let sql = format!(
        "insert into journal (counter_id, first_value, batch_id, issued_at_us, kind_id,
         user_name_id, document_day, allocation_id, number, scope, mask, outline, path)
         with recursive n (i) as (select {from} union all select i + 1 from n where i < {upto})
         select counter_id, 1000000 + i, batch_id, issued_at_us, kind_id, user_name_id,
         document_day, allocation_id, number || i, scope, mask, outline, path
         from journal, n where path = 'as-written' and first_value = 1"
    );
    world.sql(&sql).await;
}

pub(in crate::ledger_contract) async fn so_many_numbers_are_kept_and_fewer_by_a_narrowed_registrar(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    let free = |text: &str| number_as_written(&series, text, text);
    let narrowed = |text: &str| NumberByHand { is_narrowed: true, ..free(text) };
    written(&world, &free("old/")).await;
    fill(&world, (3, NARROWED_AS_WRITTEN_MAX)).await;
    written(&world, &narrowed("the last of its share")).await;
    let refused = register(&world, &narrowed("one more")).await;
    assert_eq!(refused, Registering::TooManyAsWritten { is_share: true });
    let mut other = narrowed("another's");
    Arc::make_mut(&mut other.order.record).user_id = "other".into();
    written(&world, &other).await;
    written(&world, &free("one more")).await;
    fill(&world, (NARROWED_AS_WRITTEN_MAX + 3, AS_WRITTEN_MAX)).await;
    for new in [free("too many"), narrowed("too many")] {
        let refused = register(&world, &new).await;
        assert_eq!(refused, Registering::TooManyAsWritten { is_share: false });
    }
}

/// Goal: what takes long is compared between two transactions, with the same outcome. Method: more
/// pairs than one transaction compares, of a save and of a change of a table.
pub(in crate::ledger_contract) async fn many_series_are_compared_with_many_kept_numbers(
    world: World,
) {
    let series = series(&world).await;
    world.database_epoch().await;
    let ledger = &world.ledger;
    let codes: Vec<String> = (10..22).map(|index| format!("L{index}")).collect();
    let rows: Vec<_> = codes.iter().map(|code| row(code, code, true)).collect();
    ledger.reference().apply(&of_rows("types", &rows)).await.unwrap();
    written(&world, &number_as_written(&series, "old", "old/")).await;
    written(&world, &number_as_written(&series, "paper", "L21-M21/001")).await;
    fill(&world, (3, AS_WRITTEN_MAX)).await;
    let of = |code: &String| showing(code, code, &format!("{code}-{{CORR_TYPE}}/{{SEQ:3}}"));
    let mut all: Vec<SeriesChange> = codes.iter().map(of).collect();
    let good = std::mem::replace(&mut all[5], showing("L15", "L15", "old/{SEQ}"));
    assert!(reads_kept(&ledger.series().apply(&all).await));
    all[5] = good;
    ledger.series().apply(&all).await.unwrap();
    let renamed = |id: &str, code: &str| of_rows("types", &[row(id, code, true)]);
    ledger.reference().apply(&renamed("L10", "M10")).await.unwrap();
    let refused = ledger.reference().apply(&renamed("L21", "M21")).await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
}

pub(in crate::ledger_contract) async fn an_import_brings_nothing_that_could_be_a_kept_number(
    world: World,
) {
    let ledger = &world.ledger;
    ledger.series().apply(&[taking_by_hand()]).await.unwrap();
    let series = series(&world).await;
    world.database_epoch().await;
    for text in ["OTHER/001", "a-3"] {
        written(&world, &number_as_written(&series, text, text)).await;
    }
    let counters = [counter(&series, "a", 9)];
    let earlier = [elsewhere(&series, "OTHER/{SEQ:3}")];
    let bring = async || {
        ledger.imports().add(world.node, &counters, &earlier, &mut std::iter::empty()).await
    };
    assert!(reads_kept(&bring().await));
    world.sql("update partition set state = 'held' where partition_id = 1").await;
    let refused = bring().await.expect_err("held");
    let is_held = matches!(refused, LedgerError::Series(SeriesRefusal::MayReadForgotten { .. }));
    assert!(is_held, "{refused}");
    world.sql("update partition set state = 'open' where partition_id = 1").await;
    // In whatever scope.
    let same = with(number(&series, "a", 3), |record| record.scope = "elsewhere".into());
    let refused = import(&world, &counters, vec![Ok(vec![same])]).await.expect_err("kept");
    assert!(refused.to_string().contains("kept as written"), "{refused}");
}
