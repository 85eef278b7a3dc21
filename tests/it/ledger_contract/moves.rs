//! Moving in from another ledger: the versions under which numbers were issued there.

use numerator::ledger::{ImportedVersion, LedgerError, SeriesRefusal, SeriesVersion};
use serde_json::json;

use super::imports::{counter, series};
use super::setup::change;
use super::world::World;

/// A version that the series had elsewhere.
pub(super) fn elsewhere(series: &SeriesVersion, template: &str) -> ImportedVersion {
    let mut definition = series.definition.clone();
    definition.template = template.into();
    let (saved_by, reason) = ("me".into(), "version 1 of another ledger".into());
    ImportedVersion { series_id: series.series_id, definition, saved_by, reason }
}

/// Moves a counter with earlier versions, with the series in its present state.
async fn moved(
    world: &World,
    series_id: i64,
    earlier: &[ImportedVersion],
) -> Result<(), LedgerError> {
    let mut all = world.ledger.series().list().await.unwrap();
    all.retain(|series| series.series_id == series_id);
    let counters = [counter(&all[0], "a", 9)];
    world.ledger.imports().add(world.node, &counters, earlier, &mut std::iter::empty()).await?;
    Ok(())
}

async fn templates(world: &World, series_id: i64) -> Vec<String> {
    let versions = world.ledger.series().versions(series_id, u32::MAX, 100).await.unwrap();
    versions.into_iter().map(|version| version.definition.template).collect()
}

/// Goal: what is saved after a move is proved against what was issued before it, elsewhere. Method:
/// two earlier versions come along; the text of one is asked for again with counters of another
/// name.
pub(super) async fn versions_that_were_used_elsewhere_come_before_the_one_in_force(world: World) {
    let series = series(&world).await;
    let (series_id, template) = (series.series_id, series.definition.template.clone());
    let earlier = [elsewhere(&series, "E-{SEQ}"), elsewhere(&series, "F-{SEQ}")];
    let stamp = world.ledger.series().stamp().await.unwrap();
    // The second time it brings nothing.
    for _ in 0..2 {
        moved(&world, series_id, &earlier).await.unwrap();
        let expected = [&*template, "F-{SEQ}", "E-{SEQ}", &template];
        assert_eq!(templates(&world, series_id).await, expected);
    }
    let all = world.ledger.series().list().await.unwrap();
    let now = all.iter().find(|series| series.series_id == series_id).unwrap();
    assert_eq!((now.version, &now.definition, now.active), (4, &series.definition, true));
    assert!(world.ledger.series().stamp().await.unwrap() > stamp, "services notice");
    let mut again = change(&series.definition.code, "E-{SEQ:1:OTHER}");
    again.definition.serials = serde_json::from_value(json!([{"name": "OTHER"}])).unwrap();
    match world.ledger.series().apply(&[again]).await {
        Err(LedgerError::Series(SeriesRefusal::Repeats { version, .. })) => assert_eq!(version, 2),
        other => panic!("{other:?}"),
    }
    world.verify().await;
}

pub(super) async fn what_was_used_elsewhere_is_no_beginning_of_another_series(world: World) {
    let series = series(&world).await;
    world.ledger.series().apply(&[change("HEIR", "E-{SEQ}")]).await.unwrap();
    let refused = moved(&world, series.series_id, &[elsewhere(&series, "E-{SEQ}")]).await;
    let refused = refused.expect_err("HEIR shows it").to_string();
    assert!(
        refused.contains("could show them again: \"E-1\" can be read in two ways, as HEIR (type"),
        "{refused}"
    );
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap(), [], "all or nothing");
    assert_eq!(templates(&world, series.series_id).await.len(), 1);
}
