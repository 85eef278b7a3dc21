//! Series that serve documents of some dates only.

mod undated;

pub(super) use undated::{
    a_request_is_dated_by_the_moment_since_when_it_is_asked,
    one_document_under_two_keys_at_once_is_dated_once,
    whoever_saves_hears_which_processes_do_not_know,
};

use numbering::{Inputs, RuleError};
use numerator::engine::allocator::Catalog;
use numerator::ledger::{Expected, SeriesChange, SeriesRefusal};

use super::series::{refusal, save};
use super::setup::change;
use super::world::World;

/// Goal: next year's format is set up during this year's, and no moment is of both or of none.
pub(super) async fn a_successor_serves_from_a_day_on_beside_the_series_before_it(world: World) {
    let ledger = &world.ledger;
    let on = |code: &str, template: &str, [from, before]: [Option<&str>; 2], zone: &str| {
        let mut change = change(code, template);
        let definition = &mut change.definition;
        definition.serves.types = vec!["T".into()];
        definition.serves.dated_from = from.map(Into::into);
        definition.serves.dated_before = before.map(Into::into);
        definition.timezone = Some(zone.into());
        change
    };
    let (turn, zone) = (Some("2026-01-01"), "Asia/Bangkok");
    let always = save(ledger, on("OLD", "OLD-{SEQ:3}", [None, None], zone)).await;
    let next = || on("NEW", "NEW-{SEQ:3}", [turn, None], zone);
    let both = refusal(ledger, next()).await;
    assert!(matches!(both, SeriesRefusal::Rule(RuleError::Ambiguous { .. })), "{both}");
    let until = |before: &str, zone: &str| {
        let expected = Expected::Version { series_id: always.series_id, version: 1 };
        let ended = on("OLD", "OLD-{SEQ:3}", [None, Some(before)], zone);
        SeriesChange { expected, ..ended }
    };
    for (ended, is_told) in [
        (until("2026-01-02", zone), "equally well"),
        (until("2026-01-01", "UTC"), "the same `timezone`"),
    ] {
        let refused =
            ledger.series().apply(&[ended, next()]).await.expect_err("refused").to_string();
        assert!(refused.contains(is_told), "{refused}");
    }
    ledger.series().apply(&[until("2026-01-01", zone), next()]).await.unwrap();

    let catalog = Catalog::load(ledger).await.unwrap();
    let chosen = |date: Option<&str>, now: &str| {
        let inputs =
            Inputs { type_code: "T".into(), date: date.map(Into::into), ..Inputs::default() };
        let served = catalog.choose(&inputs, now.parse().unwrap());
        served.map(|served| served.version.definition.code.clone()).map_err(|it| it.to_string())
    };
    let (november, after) = ("2025-11-26T05:00:00Z", "2025-12-31T17:00:00Z");
    for (date, now, code) in [
        (None, november, "OLD"),
        (Some("2026-01-01"), november, "NEW"),
        (Some("2025-12-31"), after, "OLD"),
        (None, "2025-12-31T16:59:59Z", "OLD"),
        (None, after, "NEW"),
        (Some("2025-12-31T23:59:59+07:00"), after, "OLD"),
        (Some("2025-12-31T18:00:00+01:00"), november, "NEW"),
    ] {
        assert_eq!(chosen(date, now).as_deref(), Ok(code), "{date:?} at {now}");
    }
    // A change that frees requests on some days checks if another series may take them, as ever.
    let gap = SeriesChange {
        expected: Expected::Version { series_id: always.series_id, version: 2 },
        ..on("OLD", "OLD-{SEQ:3}", [None, Some("2025-12-01")], zone)
    };
    save(ledger, gap).await;
    let catalog = Catalog::load(ledger).await.unwrap();
    let inputs =
        Inputs { type_code: "T".into(), date: Some("2025-12-24".into()), ..Inputs::default() };
    let told = catalog.choose(&inputs, november.parse().unwrap()).expect_err("nobody");
    let told = told.to_string();
    assert!(
        told.contains("OLD numbers it for dates before 2025-12-01")
            && told.contains("NEW numbers it for dates from 2026-01-01 on"),
        "{told}"
    );
}
