//! Changes of series: versions, what they build on, activity, what a used series refuses.

use numbering::Reset;
use numerator::ledger::{
    ActivityChange, At, Closing, CounterSpec, Expected, LedgerError, Owner, PartitionState,
    SeriesChange, SeriesRefusal, SeriesRemoval, SeriesVersion, SharedLedger,
};

use super::setup::change;
pub(super) use super::starts::{
    a_start_is_compared_with_where_counters_go_on_after_an_interruption,
    no_counter_begins_below_the_start_in_force_whatever_its_process_knows,
};
use super::world::{NOW_US, World, spec};

fn activity(series_id: i64, active: bool) -> ActivityChange {
    let (saved_by, reason) = ("boss".to_owned(), "moved".to_owned());
    ActivityChange { series_id, active, expected: None, saved_by, reason, saved_at_us: NOW_US + 1 }
}

fn removal(series_id: i64) -> SeriesRemoval {
    let (removed_by, reason) = ("boss".to_owned(), "a mistake".to_owned());
    SeriesRemoval { series_id, expected: None, removed_by, reason, removed_at_us: NOW_US + 1 }
}

pub(super) fn building_on(version: &SeriesVersion, template: &str) -> SeriesChange {
    let expected = Expected::Version { series_id: version.series_id, version: version.version };
    SeriesChange { expected, ..change(&version.definition.code, template) }
}

pub(super) async fn save(ledger: &SharedLedger, change: SeriesChange) -> SeriesVersion {
    ledger.series().apply(&[change]).await.unwrap().remove(0)
}

pub(super) async fn refusal(ledger: &SharedLedger, change: SeriesChange) -> SeriesRefusal {
    match ledger.series().apply(&[change]).await.expect_err("refused") {
        LedgerError::Series(refusal) => refusal,
        other => panic!("{other}"),
    }
}

/// An epoch of the database in the partition of a series.
pub(super) async fn epoch_of(world: &World, series: &SeriesVersion) -> At {
    let (partition, ledger) = (series.partition, &world.ledger);
    let next = ledger.bump(At { partition, epoch: 0 }, PartitionState::Open, world.node, "t").await;
    let at = At { partition, epoch: next.unwrap().unwrap() };
    world.claim(at, Closing::Exact, &Owner::Database).await;
    at
}

pub(super) fn first_counter(series: &SeriesVersion) -> CounterSpec {
    CounterSpec { series_id: series.series_id, version: series.version, ..spec("k") }
}

pub(super) async fn activity_changes_by_versions_of_their_own(world: World) {
    let ledger = &world.ledger;
    let saved = save(ledger, change("S", "{SEQ:3}")).await;
    let stamp = ledger.series().stamp().await.unwrap();
    let tried = ledger.series().try_activity(&activity(saved.series_id, false)).await.unwrap();
    assert_eq!((tried.version, tried.active, tried.is_new), (2, false, true));
    assert_eq!(ledger.series().stamp().await.unwrap(), stamp, "a dry run writes nothing");
    assert!(ledger.series().list().await.unwrap()[0].active);
    assert_eq!(ledger.counters().count_of(saved.series_id).await.unwrap(), 0);
    let off = ledger.series().set_activity(&activity(saved.series_id, false)).await.unwrap();
    assert_eq!((off.version, off.active, off.is_new), (2, false, true));
    assert!(ledger.series().stamp().await.unwrap() > stamp, "running nodes must see it");
    let again = ledger.series().set_activity(&activity(saved.series_id, false)).await.unwrap();
    assert_eq!((again.version, again.is_new), (2, false), "it is so already");
    assert!(!ledger.series().list().await.unwrap()[0].active);

    let changed = save(ledger, change("S", "{SEQ:4}")).await;
    assert_eq!((changed.version, changed.active), (3, false), "a definition wakes nobody");
    let on = ledger.series().set_activity(&activity(saved.series_id, true)).await.unwrap();
    assert_eq!((on.version, on.active, &*on.definition.template), (4, true, "{SEQ:4}"));

    let versions = ledger.series().versions(saved.series_id, u32::MAX, 10).await.unwrap();
    let told: Vec<_> = versions.iter().map(|v| (v.version, v.active, &*v.saved_by)).collect();
    assert_eq!(told, [(4, true, "boss"), (3, false, "me"), (2, false, "boss"), (1, true, "me")]);
    assert_eq!((&*versions[2].reason, versions[2].saved_at_us), ("moved", NOW_US + 1));
    let page = ledger.series().versions(saved.series_id, 3, 1).await.unwrap();
    assert_eq!(page.iter().map(|v| v.version).collect::<Vec<_>>(), [3]);
    assert_eq!(ledger.series().versions(saved.series_id + 1, 9, 9).await.unwrap(), []);
}

pub(super) async fn each_change_of_a_series_is_an_event(world: World) {
    let ledger = &world.ledger;
    let saved = save(ledger, change("S", "{SEQ:3}")).await;
    save(ledger, change("S", "{SEQ:3}")).await;
    ledger.series().try_apply(&[change("S", "{SEQ:4}")]).await.unwrap();
    ledger.series().set_activity(&activity(saved.series_id, false)).await.unwrap();
    let events = ledger.events().list(10).await.unwrap();
    let told: Vec<_> = events
        .iter()
        .map(|event| (&*event.kind, event.at_us, event.detail["version"].clone()))
        .collect();
    let kind = "series-changed";
    assert_eq!(told, [(kind, NOW_US + 1, 2.into()), (kind, NOW_US, 1.into())]);
    let detail = &events[0].detail;
    assert_eq!((&detail["code"], &detail["user"]), (&"S".into(), &"boss".into()));
    assert_eq!((&detail["active"], &detail["reason"]), (&false.into(), &"moved".into()));
}

pub(super) async fn a_deactivated_series_gives_up_its_types_and_keeps_its_code(world: World) {
    let ledger = &world.ledger;
    let old = save(ledger, change("A", "{SEQ:3}")).await;
    let mut heir = change("B", "B{SEQ:3}");
    heir.definition.serves.types = vec!["A".into()];
    assert!(matches!(refusal(ledger, heir.clone()).await, SeriesRefusal::Rule(_)));
    ledger.series().set_activity(&activity(old.series_id, false)).await.unwrap();
    save(ledger, heir).await;
    let error = ledger
        .series()
        .set_activity(&activity(old.series_id, true))
        .await
        .expect_err("one too many");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::Rule(_))), "{error}");
    assert!(!ledger.series().list().await.unwrap()[0].active, "nothing was saved");
    let again = SeriesChange { expected: Expected::Nothing, ..change("A", "{SEQ:5}") };
    assert!(matches!(refusal(ledger, again).await, SeriesRefusal::CodeTaken { .. }));
    let error = ledger.series().set_activity(&activity(99, true)).await.expect_err("unknown");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::Unknown { series_id: 99 })));
}

pub(super) async fn a_change_builds_on_the_version_that_it_names(world: World) {
    let ledger = &world.ledger;
    let first = save(ledger, change("S", "{SEQ:3}")).await;
    let second = save(ledger, building_on(&first, "{SEQ:4}")).await;
    assert_eq!((second.version, second.series_id), (2, first.series_id));
    let late = refusal(ledger, building_on(&first, "{SEQ:5}")).await;
    let conflict = SeriesRefusal::VersionConflict { code: "S".into(), expected: 1, found: 2 };
    assert_eq!(late, conflict);
    let mut renamed = building_on(&second, "{SEQ:4}");
    renamed.definition.code = "T".into();
    assert!(matches!(refusal(ledger, renamed).await, SeriesRefusal::CodeChanged { .. }));
    let stale = ActivityChange { expected: Some(1), ..activity(first.series_id, false) };
    let error = ledger.series().set_activity(&stale).await.expect_err("stale");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::VersionConflict { .. })), "{error}");

    let (one, other) = (world.another().await, world.another().await);
    let changes = [[building_on(&second, "A{SEQ:4}")], [building_on(&second, "B{SEQ:4}")]];
    let saves = (one.series().apply(&changes[0]), other.series().apply(&changes[1]));
    let (a, b) = tokio::join!(saves.0, saves.1);
    assert!(a.is_ok() != b.is_ok(), "of two changes of one version one is saved: {a:?} {b:?}");
    assert_eq!(ledger.series().list().await.unwrap()[0].version, 3);
}

pub(super) async fn a_dry_run_refuses_the_same_and_saves_nothing(world: World) {
    let ledger = &world.ledger;
    let first = save(ledger, change("S", "{SEQ:3}")).await;
    let stamp = ledger.series().stamp().await.unwrap();
    let tried = ledger.series().try_apply(&[building_on(&first, "{SEQ:4}")]).await.unwrap();
    assert_eq!((tried[0].version, tried[0].is_new), (2, true));
    ledger.series().try_apply(&[change("T", "T{SEQ:4}")]).await.unwrap();
    let stale = SeriesChange {
        expected: Expected::Version { series_id: first.series_id, version: 7 },
        ..change("S", "{SEQ:4}")
    };
    let error = ledger.series().try_apply(&[stale]).await.expect_err("stale");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::VersionConflict { .. })), "{error}");
    assert_eq!(ledger.series().stamp().await.unwrap(), stamp);
    assert_eq!(ledger.series().list().await.unwrap(), [SeriesVersion { is_new: false, ..first }]);
}

pub(super) async fn a_used_series_is_not_counted_anew_behind_the_same_text(world: World) {
    let ledger = &world.ledger;
    let first = save(ledger, change("S", "{SEQ:3}")).await;
    let at = epoch_of(&world, &first).await;
    ledger.seed(at, world.node, &[first_counter(&first)]).await.unwrap();
    let yearly = |template: &str| {
        let mut change = change("S", template);
        change.definition.serials[0].reset = Reset::Year;
        change
    };
    let refused = refusal(ledger, yearly("{SEQ:3}")).await;
    assert!(matches!(refused, SeriesRefusal::Repeats { version: 1, .. }), "{refused}");
    assert!(refused.to_string().contains("begin the template with another text"), "{refused}");
    let mut scoped = change("S", "{SEQ:3}");
    scoped.definition.unique_within = vec!["type".into()];
    assert!(matches!(refusal(ledger, scoped).await, SeriesRefusal::Repeats { .. }));

    // Another text, and back: each version is compared with all that may have issued.
    assert_eq!(save(ledger, yearly("Y{YEAR}{SEQ:3}")).await.version, 2);
    assert_eq!(save(ledger, change("S", "{SEQ:3}")).await.version, 3);
    let refused = refusal(ledger, yearly("{SEQ:3}")).await;
    assert!(matches!(refused, SeriesRefusal::Repeats { version: 3, .. }), "{refused}");
    let refused = refusal(ledger, change("S", "Y{SEQ:7}")).await;
    assert!(matches!(refused, SeriesRefusal::Repeats { version: 2, .. }), "{refused}");
}

pub(super) async fn a_first_counter_is_refused_for_a_version_of_before_the_series_was_used(
    world: World,
) {
    let ledger = &world.ledger;
    let first = save(ledger, change("S", "{SEQ:3}")).await;
    let mut anew = change("S", "{SEQ:3}");
    anew.definition.serials[0].counter = vec!["type".into()];
    let second = save(ledger, anew).await;
    let at = epoch_of(&world, &first).await;
    // A request that was checked before the change: both would show 001.
    let error = ledger.seed(at, world.node, &[first_counter(&first)]).await.expect_err("too late");
    assert!(error.to_string().contains("send the request again"), "{error}");
    ledger.seed(at, world.node, &[first_counter(&second)]).await.unwrap();
    // From now on the series is used, and a late request of this version continues.
    let mut named = change("S", "{SEQ:3}");
    named.definition = second.definition.clone();
    named.definition.name = "another".into();
    assert_eq!(save(ledger, named).await.version, 3);
    let other = CounterSpec { key: "other".into(), ..first_counter(&second) };
    ledger.seed(at, world.node, &[other]).await.unwrap();
}

pub(super) async fn an_heir_does_not_begin_with_numbers_that_are_out(world: World) {
    let ledger = &world.ledger;
    let old = save(ledger, change("OLD", "N-{SEQ:3}")).await;
    let at = epoch_of(&world, &old).await;
    ledger.seed(at, world.node, &[first_counter(&old)]).await.unwrap();
    ledger.series().set_activity(&activity(old.series_id, false)).await.unwrap();
    let says = |refused: SeriesRefusal, version: u32| {
        let told = refused.to_string();
        assert!(matches!(refused, SeriesRefusal::Ambiguous(_)), "{told}");
        assert!(told.contains(&format!("series OLD is one of its version {version}")), "{told}");
    };
    says(refusal(ledger, change("HEIR", "N-{SEQ:3}")).await, 2);
    let heir = save(ledger, change("HEIR", "M-{SEQ:3}")).await;
    says(refusal(ledger, building_on(&heir, "N-{SEQ:3}")).await, 2);
    // The series itself may continue with them.
    ledger.series().set_activity(&activity(old.series_id, true)).await.unwrap();
    assert_eq!(save(ledger, change("OLD", "O-{SEQ:3}")).await.version, 4);
    says(refusal(ledger, building_on(&heir, "N-{SEQ:3}")).await, 3);
}

pub(super) async fn a_series_without_counters_is_removed_for_good_and_leaves_its_code(
    world: World,
) {
    let ledger = &world.ledger;
    let saved = save(ledger, change("S", "{SEQ:3}")).await;
    let stale = SeriesRemoval { expected: Some(2), ..removal(saved.series_id) };
    let error = ledger.series().remove(world.node, &stale).await.expect_err("stale");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::VersionConflict { .. })), "{error}");
    let stamp = ledger.series().stamp().await.unwrap();
    let removed = ledger.series().remove(world.node, &removal(saved.series_id)).await.unwrap();
    assert_eq!((removed.version, removed.active), (2, false));
    assert!(ledger.series().stamp().await.unwrap() > stamp, "running nodes must see it");
    assert_eq!(ledger.series().list().await.unwrap(), []);
    let unknown = |error| matches!(error, LedgerError::Series(SeriesRefusal::Unknown { .. }));
    assert!(unknown(
        ledger.series().remove(world.node, &removal(saved.series_id)).await.expect_err("gone")
    ));
    let on = activity(saved.series_id, true);
    assert!(unknown(ledger.series().set_activity(&on).await.expect_err("it never comes back")));
    let gone =
        SeriesChange { expected: building_on(&removed, "").expected, ..change("S", "{SEQ}") };
    assert!(matches!(refusal(ledger, gone).await, SeriesRefusal::Unknown { .. }));

    // What it was stays on record, and so does the person who removed it.
    let versions = ledger.series().versions(saved.series_id, u32::MAX, 9).await.unwrap();
    let told: Vec<_> = versions.iter().map(|v| (v.version, v.active, &*v.saved_by)).collect();
    assert_eq!(told, [(2, false, "boss"), (1, true, "me")]);
    let event = &ledger.events().list(1).await.unwrap()[0];
    assert_eq!((&*event.kind, event.at_us), ("series-removed", NOW_US + 1));
    let detail = &event.detail;
    assert_eq!((&detail["code"], &detail["user"]), (&"S".into(), &"boss".into()));
    assert_eq!(
        (&detail["config_id"], &detail["reason"]),
        (&saved.series_id.into(), &"a mistake".into())
    );

    let again = SeriesChange { expected: Expected::Nothing, ..change("S", "{SEQ:3}") };
    let again = save(ledger, again).await;
    assert_ne!(again.series_id, saved.series_id, "an id names one series for ever");
    assert_eq!((again.version, ledger.series().list().await.unwrap().len()), (1, 1));
    // A request that was checked before the removal begins no counter, nor one made up for later.
    let at = epoch_of(&world, &saved).await;
    let error = ledger.seed(at, world.node, &[first_counter(&saved)]).await.expect_err("too late");
    assert!(error.to_string().contains("send the request again"), "{error}");
    ledger.seed(at, world.node, &[first_counter(&again)]).await.unwrap();
}

pub(super) async fn a_series_is_not_removed_that_has_a_counter_or_may_have_forgotten_one(
    world: World,
) {
    let ledger = &world.ledger;
    let used = save(ledger, change("S", "{SEQ:3}")).await;
    let at = epoch_of(&world, &used).await;
    ledger.seed(at, world.node, &[first_counter(&used)]).await.unwrap();
    // Nothing was taken yet; the node that seeded it may take at any moment.
    let refused = |error: LedgerError, held: bool| match error {
        LedgerError::Series(SeriesRefusal::Used { .. }) => !held,
        LedgerError::Series(SeriesRefusal::Held { .. }) => held,
        other => panic!("{other}"),
    };
    let error =
        ledger.series().remove(world.node, &removal(used.series_id)).await.expect_err("used");
    assert!(error.to_string().contains("series deactivate S"), "{error}");
    assert!(refused(error, false));
    ledger.series().set_activity(&activity(used.series_id, false)).await.unwrap();
    let error =
        ledger.series().remove(world.node, &removal(used.series_id)).await.expect_err("used");
    assert!(refused(error, false), "deactivated or not");

    let unused = save(ledger, change("T", "T{SEQ:3}")).await;
    let ahead = At { epoch: at.epoch + 1, ..at };
    ledger.hold_all(&[ahead], "went back").await.unwrap();
    let error =
        ledger.series().remove(world.node, &removal(unused.series_id)).await.expect_err("held");
    assert!(refused(error, true));
}

pub(super) async fn a_ledger_that_forgot_a_batch_lets_go_of_no_series(world: World) {
    let ledger = &world.ledger;
    let unused = save(ledger, change("S", "{SEQ:3}")).await;
    ledger.nodes().heartbeat(world.node, None).await.unwrap();
    world.sql("update node set beat = 0").await;
    let error = ledger.series().remove(world.node, &removal(unused.series_id)).await;
    let error = error.expect_err("it may have forgotten the series' counters");
    assert!(matches!(error, LedgerError::WentBack(_)), "{error}");
    assert_eq!(ledger.series().list().await.unwrap().len(), 1);
}

/// Two processes, and no sleeps: whichever gets the row of the series first.
pub(super) async fn of_a_removal_and_a_first_counter_at_once_one_succeeds(world: World) {
    let (ledger, other) = (&world.ledger, world.another().await);
    let mut epochs = std::collections::HashMap::new();
    let mut removed = 0;
    for turn in 0..24 {
        let series = save(ledger, change(&format!("S{turn}"), &format!("S{turn}-{{SEQ:3}}"))).await;
        let at = match epochs.get(&series.partition) {
            Some(at) => *at,
            None => epoch_of(&world, &series).await,
        };
        epochs.insert(series.partition, at);
        let (removal, spec) = (removal(series.series_id), [first_counter(&series)]);
        let seeds = async {
            // Either may come first.
            for _ in 0..turn % 4 {
                tokio::task::yield_now().await;
            }
            other.seed(at, world.node, &spec).await
        };
        let (gone, seeded) = tokio::join!(ledger.series().remove(world.node, &removal), seeds);
        assert!(gone.is_ok() != seeded.is_ok(), "turn {turn}: {gone:?} {seeded:?}");
        let counter =
            ledger.counters().get(series.series_id, &spec[0].serial, &spec[0].key).await.unwrap();
        assert_eq!(counter.is_some(), seeded.is_ok(), "turn {turn}");
        removed += usize::from(gone.is_ok());
    }
    assert_eq!(ledger.series().list().await.unwrap().len(), 24 - removed);
}
