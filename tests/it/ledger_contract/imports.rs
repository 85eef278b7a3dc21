//! Moving in: counters that are new to the ledger, and their numbers, all or nothing.

use numbering::NUMBER_MAX;
use numerator::ledger::{
    Closing, CounterSpec, Entry, ImportedCounter, IssuePath, JournalFilter, LedgerError, Owner,
    PartitionState, SeriesVersion, TakeOutcome, TakeRequest,
};

pub(super) use super::import_meetings::{
    a_first_touch_waits_for_the_import_that_makes_its_counter,
    an_import_that_waits_while_its_counter_is_lifted_is_undone,
    whoever_needs_a_counter_that_an_import_makes_waits_for_that_counter,
};
use super::setup::change;
use super::world::{PARTITION, World, at, entry, order_of, record, spec, with};

/// A series in the partition that the cases use.
pub(super) async fn series(world: &World) -> SeriesVersion {
    for index in 0.. {
        let change = change(&format!("S{index}"), &format!("S{index}-{{SEQ}}"));
        let saved = world.ledger.series().apply(&[change]).await.unwrap().remove(0);
        if saved.partition == PARTITION {
            return saved;
        }
    }
    unreachable!("series are spread over all partitions")
}

pub(super) fn counter(series: &SeriesVersion, key: &str, highest: u64) -> ImportedCounter {
    ImportedCounter {
        series_id: series.series_id,
        serial: "SEQ".into(),
        key: key.into(),
        version: series.version,
        start: 1,
        step: 1,
        highest,
        family: None,
    }
}

/// A number of a counter, `key-value`.
pub(super) fn number(series: &SeriesVersion, key: &str, value: u64) -> Entry {
    let mut entry = with(entry(at(0), 0, value), |record| {
        record.series_id = series.series_id;
        record.version = series.version;
        record.mask = format!("{key}-{{0}}");
        record.counter_keys = vec![key.into()];
        record.document_id = None;
    });
    entry.number = format!("{key}-{value}");
    entry
}

pub(super) async fn import(
    world: &World,
    counters: &[ImportedCounter],
    chunks: Vec<Result<Vec<Entry>, String>>,
) -> Result<u64, LedgerError> {
    let chunks = &mut chunks.into_iter();
    Ok(world.ledger.imports().add(world.node, counters, &[], chunks).await?.numbers)
}

pub(super) fn spec_of(series: &SeriesVersion, key: &str) -> CounterSpec {
    CounterSpec { series_id: series.series_id, max: NUMBER_MAX, ..spec(key) }
}

async fn nothing_is_there(world: &World) {
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 0);
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap(), []);
}

pub(super) async fn an_imported_counter_goes_on_above_what_was_imported(world: World) {
    let series = series(&world).await;
    // Epochs that closed at the ceiling before say nothing of a counter that did not exist.
    world.redis_epoch(Closing::Exact).await;
    world.redis_epoch(Closing::Ceiling).await;
    let chunks = vec![
        Ok(vec![number(&series, "a", 2), number(&series, "b", 1)]),
        Ok(Vec::new()),
        Ok(vec![number(&series, "a", 1)]),
    ];
    let counters = [counter(&series, "b", 1), counter(&series, "a", 2), counter(&series, "c", 9)];
    assert_eq!(import(&world, &counters, chunks).await.unwrap(), 3);
    let now = at(world.partition().await.epoch);
    for (key, highest) in [("a", 2), ("b", 1), ("c", 9)] {
        let (_, value, ceiling) = world.seed(now, &spec_of(&series, key)).await;
        assert_eq!((value, ceiling), (highest, highest + 10), "{key}");
    }
    world.redis_epoch(Closing::Ceiling).await;
    let now = at(world.partition().await.epoch);
    let (_, value, _) = world.seed(now, &spec_of(&series, "a")).await;
    assert_eq!(value, 12, "from its first touch on it is a counter like any other");
    world.verify().await;
    let filter = JournalFilter { number: Some("a-2".into()), ..JournalFilter::default() };
    let found = world.ledger.register().find(&filter).await.unwrap();
    assert_eq!(found.len(), 1);
    let Entry { path, at: place, .. } = &found[0].entry;
    assert_eq!((*path, *place), (IssuePath::Imported, at(0)));
    let asked = [("a-2", ""), ("a-3", ""), ("a-2", "elsewhere"), ("b-1", "")];
    let asked = asked.map(|(number, scope)| (number.to_owned(), scope.to_owned()));
    assert_eq!(world.ledger.imports().issued(&asked).await.unwrap(), [true, false, false, true]);
}

pub(super) async fn an_import_that_stays_below_what_an_epoch_lost_lets_late_rows_explain_it(
    world: World,
) {
    let series = series(&world).await;
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) =
        world.seed(old, &CounterSpec { headroom: 20, ..spec_of(&series, "a") }).await;
    world.redis_epoch(Closing::Ceiling).await;
    import(&world, &[counter(&series, "a", 10)], Vec::new()).await.unwrap();
    let lost = |first, last| (first, last, "Unaccounted".to_owned());
    assert_eq!(world.gaps(counter_id).await, [lost(1, 20)]);
    let late = with(entry(old, counter_id, 5), |record| record.series_id = series.series_id);
    world.append(&[late]).await;
    assert_eq!(world.gaps(counter_id).await, [lost(1, 4), lost(6, 20)]);
    world.verify().await;
}

pub(super) async fn what_did_not_come_along_is_a_gap(world: World) {
    let series = series(&world).await;
    let chunks = vec![Ok(vec![number(&series, "a", 3), number(&series, "a", 6)])];
    import(&world, &[counter(&series, "a", 8)], chunks).await.unwrap();
    let row = world.ledger.counters().page(0, 10).await.unwrap().remove(0);
    let reason = || "BeforeImport".to_owned();
    let expected = [(1, 2, reason()), (4, 5, reason()), (7, 8, reason())];
    assert_eq!(world.gaps(row.counter_id).await, expected);
    world.verify().await;
    // A first touch registers nothing a second time.
    let now = world.redis_epoch(Closing::Exact).await;
    world.seed(now, &spec_of(&series, "a")).await;
    assert_eq!(world.gaps(row.counter_id).await, expected);
    world.verify().await;
}

/// Goal: for a counter that came alone the numbers may follow, also once it is in use. Method: some
/// of the values that were left open, then one that was never open.
pub(super) async fn numbers_come_after_their_counter(world: World) {
    let series = series(&world).await;
    let counters = [counter(&series, "a", 9)];
    import(&world, &counters, Vec::new()).await.unwrap();
    let now = world.redis_epoch(Closing::Exact).await;
    let (counter_id, value, _) = world.seed(now, &spec_of(&series, "a")).await;
    assert_eq!(value, 9);
    let mut issued = number(&series, "a", 10);
    issued.taken[0].counter_id = counter_id;
    issued.at = now;
    world.append(&[issued]).await;
    let before = world.ledger.counters().page(0, 10).await.unwrap();
    let chunks = vec![Ok(vec![number(&series, "a", 9), number(&series, "a", 4)])];
    assert_eq!(import(&world, &counters, chunks).await.unwrap(), 2);
    assert_eq!(
        world.ledger.counters().page(0, 10).await.unwrap(),
        before,
        "its row stays as it is"
    );
    let gaps = |spans: &[(u64, u64)]| {
        let reason = || "BeforeImport".to_owned();
        spans.iter().map(|(first, last)| (*first, *last, reason())).collect::<Vec<_>>()
    };
    assert_eq!(world.gaps(counter_id).await, gaps(&[(1, 3), (5, 8)]));
    for (value, open) in [(4, false), (10, false), (5, true)] {
        let chunks = vec![Ok(vec![number(&series, "a", value)])];
        let imported = import(&world, &counters, chunks).await;
        assert_eq!(imported.is_ok(), open, "{value}: {imported:?}");
    }
    assert_eq!(world.gaps(counter_id).await, gaps(&[(1, 3), (6, 8)]));
    world.verify().await;
}

/// Redis would take a document that it does not know for a new one (F29).
pub(super) async fn a_document_comes_to_no_partition_of_redis(world: World) {
    let series = series(&world).await;
    world.redis_epoch(Closing::Exact).await;
    let numbered = with(number(&series, "a", 1), |record| record.document_id = Some("d1".into()));
    let counters = [counter(&series, "a", 1)];
    let chunks = || vec![Ok(vec![numbered.clone()])];
    let refused = import(&world, &counters, chunks()).await.expect_err("redis owns it").to_string();
    assert!(refused.contains("gets documents, and redis owns it"), "{refused}");
    nothing_is_there(&world).await;
    let now = at(world.partition().await.epoch);
    let from = PartitionState::Open;
    let next = world.ledger.bump(now, from, world.node, "test").await.unwrap().unwrap();
    import(&world, &counters, chunks()).await.expect_err("the epoch is not closed");
    world.claim(at(next), Closing::Exact, &Owner::Database).await;
    assert_eq!(import(&world, &counters, chunks()).await.unwrap(), 1);
    world.verify().await;
}

pub(super) async fn an_import_above_a_counter_of_redis_is_undone(world: World) {
    let series = series(&world).await;
    let now = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(now, &spec_of(&series, "b")).await;
    let before = world.ledger.counters().page(0, 10).await.unwrap();
    let counters = [counter(&series, "a", 1), counter(&series, "b", 50)];
    let chunks = || vec![Ok(vec![number(&series, "a", 1), number(&series, "b", 50)])];
    let refused = import(&world, &counters, chunks()).await.expect_err("b is there").to_string();
    assert!(refused.contains("counter b") && refused.contains("counted by redis"), "{refused}");
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap(), before, "{counter_id} only");
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 0);
    // Between the bump and the close a node may still hand out what Redis gave.
    let node = world.node;
    let from = PartitionState::Open;
    let next = world.ledger.bump(now, from, node, "test").await.unwrap().unwrap();
    import(&world, &counters, chunks()).await.expect_err("the epoch is not closed");
    world.claim(at(next), Closing::Exact, &Owner::Database).await;
    assert_eq!(import(&world, &counters, chunks()).await.unwrap(), 2);
    world.verify().await;
}

/// Goal: a counter whose epoch is closed is lifted, and continues above in the next one. Method:
/// both closings; some values issued, one lost, some imported, one of them left open before.
pub(super) async fn a_counter_of_a_closed_epoch_is_lifted(world: World) {
    let series = series(&world).await;
    let key_of = |closing| format!("{closing:?}");
    for closing in [Closing::Exact, Closing::Ceiling] {
        let key = &key_of(closing);
        import(&world, &[counter(&series, key, 3)], Vec::new()).await.unwrap();
        let now = world.redis_epoch(Closing::Exact).await;
        let (counter_id, value, ceiling) = world.seed(now, &spec_of(&series, key)).await;
        assert_eq!((value, ceiling), (3, 13), "{key}");
        let mut issued = number(&series, key, 5);
        (issued.at, issued.taken[0].counter_id) = (now, counter_id);
        world.append(&[issued]).await;
        world.redis_epoch(closing).await;
        let base = if closing == Closing::Exact { 5 } else { 13 };
        let entries =
            || vec![2, base + 1, base + 4].into_iter().map(|value| number(&series, key, value));
        let counters = [counter(&series, key, base + 6)];
        // A lost value stays lost: the same import with a value that was lost.
        let lost = entries().chain([number(&series, key, 4)]).collect();
        let refused = import(&world, &counters, vec![Ok(lost)]).await.expect_err("4 was lost");
        assert!(refused.to_string().contains(&format!("stands at {base}")), "{refused}");
        let row = world.ledger.counters().get(series.series_id, "SEQ", key).await.unwrap().unwrap();
        assert_eq!(row.taken, 5, "nothing is written: {row:?}");
        assert_eq!(import(&world, &counters, vec![Ok(entries().collect())]).await.unwrap(), 3);
        let expected = [(1, 1), (3, 3), (base + 2, base + 3), (base + 5, base + 6)];
        let mut gaps = world.gaps(counter_id).await;
        gaps.retain(|(_, _, reason)| reason == "BeforeImport");
        let spans: Vec<_> = gaps.iter().map(|(first, last, _)| (*first, *last)).collect();
        assert_eq!(spans, expected, "{key}");
        world.verify().await;
        let now = at(world.partition().await.epoch);
        let (_, value, _) = world.seed(now, &spec_of(&series, key)).await;
        assert_eq!(value, i64::try_from(base).unwrap() + 6, "{key}");
        world.verify().await;
    }
}

/// Goal: a counter that the database counts is lifted in the middle of its epoch. Method: taken
/// from before and after; the import steps wider than the counter did.
pub(super) async fn a_counter_of_the_database_is_lifted_in_its_epoch(world: World) {
    let series = series(&world).await;
    let now = world.database_epoch().await;
    let order = |document: &str, step| {
        let spec = CounterSpec { step, ..spec_of(&series, "k") };
        let mut record = record(document);
        (record.series_id, record.version) = (series.series_id, series.version);
        TakeRequest { specs: vec![spec], ..order_of(record) }
    };
    for document in ["a", "b"] {
        world.take(now, order(document, 1)).await;
    }
    let counters = [ImportedCounter { step: 5, ..counter(&series, "k", 16) }];
    let mut imported = number(&series, "k", 11);
    imported.taken[0].range.step = 5;
    assert_eq!(import(&world, &counters, vec![Ok(vec![imported])]).await.unwrap(), 1);
    let row = world.ledger.counters().get(series.series_id, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((row.taken, row.ceiling, row.epoch), (16, 16, now.epoch), "{row:?}");
    assert_eq!(world.take(now, order("c", 5)).await.taken[0].range.first, 21);
    world.verify().await;
    // A table that comes again, or brings less, leaves everything as it is.
    let before = world.ledger.counters().page(0, 10).await.unwrap();
    for highest in [16, 6] {
        let counters = [ImportedCounter { step: 5, ..counter(&series, "k", highest) }];
        assert_eq!(import(&world, &counters, Vec::new()).await.unwrap(), 0);
    }
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap(), before);
    let (_, value, _) = {
        let now = world.redis_epoch(Closing::Exact).await;
        world.seed(now, &CounterSpec { step: 5, ..spec_of(&series, "k") }).await
    };
    assert_eq!(value, 21);
    world.verify().await;
}

/// Goal: a take from a counter that is being lifted gets a number above. Method: takes and an
/// import at the same time, many times; the import names values that the takes reach for.
pub(super) async fn takes_and_a_lift_of_one_counter_never_meet(world: World) {
    let series = series(&world).await;
    let now = world.database_epoch().await;
    let other = world.another().await;
    let order = |document: String| {
        let mut record = record(&document);
        record.series_id = series.series_id;
        record.mask = "n-{0}".into();
        TakeRequest { specs: vec![spec_of(&series, "k")], ..order_of(record) }
    };
    let (mut highest, mut lifted, mut issued) = (0, 0, Vec::new());
    for round in 0..20 {
        let wanted = highest + 1 + round % 3;
        let mut entry = number(&series, "k", wanted);
        entry.number = format!("n-{wanted}");
        let (counters, chunk) = ([counter(&series, "k", wanted)], Ok(vec![entry]));
        let chunks = &mut vec![chunk].into_iter();
        let import = other.imports().add(world.node, &counters, &[], chunks);
        let orders = [order(format!("d{round}"))];
        let take = world.take_again(now, &orders);
        let (import, take) = if round % 2 == 0 {
            tokio::join!(import, take)
        } else {
            let (take, import) = tokio::join!(take, import);
            (import, take)
        };
        if import.is_ok() {
            lifted += 1;
            issued.push(wanted);
        }
        match &take.outcomes[..] {
            [TakeOutcome::Taken(entry)] => issued.push(entry.taken[0].range.first),
            other => panic!("not taken: {other:?}"),
        }
        highest = *issued.iter().max().unwrap();
    }
    println!("lifted in {lifted} of 20 rounds");
    let distinct: std::collections::BTreeSet<_> = issued.iter().collect();
    assert_eq!(distinct.len(), issued.len(), "{issued:?}");
    world.verify().await;
}

pub(super) async fn an_import_that_meets_a_number_is_undone(world: World) {
    let series = series(&world).await;
    let now = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(now, &spec_of(&series, "other")).await;
    let mut issued = number(&series, "other", 1);
    issued.taken[0].counter_id = counter_id;
    (issued.at, issued.number) = (now, "a-2".into());
    world.append(&[issued]).await;
    let twice = || vec![number(&series, "a", 1), number(&series, "a", 2)];
    let refused = import(&world, &[counter(&series, "a", 2)], vec![Ok(twice())]).await;
    let refused = refused.expect_err("a-2 is there").to_string();
    assert!(refused.contains("a-2"), "{refused}");
    // A value twice in one import is as bad as one that exists.
    let chunks = vec![Ok(vec![number(&series, "c", 1)]), Ok(vec![number(&series, "c", 1)])];
    import(&world, &[counter(&series, "c", 1)], chunks).await.expect_err("twice");
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 1);
    assert_eq!(world.ledger.counters().page(0, 10).await.unwrap().len(), 1);
}

pub(super) async fn an_import_that_ends_with_an_error_is_undone(world: World) {
    let series = series(&world).await;
    let chunks = vec![Ok(vec![number(&series, "a", 1)]), Err("the file has changed".into())];
    let refused = import(&world, &[counter(&series, "a", 1)], chunks).await.expect_err("error");
    assert!(refused.to_string().contains("the file has changed"), "{refused}");
    nothing_is_there(&world).await;
    let chunks = vec![Ok(vec![number(&series, "unnamed", 1)])];
    let refused = import(&world, &[counter(&series, "a", 1)], chunks).await.expect_err("error");
    assert!(refused.to_string().contains("unnamed-1"), "{refused}");
    nothing_is_there(&world).await;
}

pub(super) async fn an_import_into_a_series_that_has_changed_is_undone(world: World) {
    let series = series(&world).await;
    let other = change(&series.definition.code, "B-{SEQ}");
    world.ledger.series().apply(&[other]).await.unwrap();
    let chunks = vec![Ok(vec![number(&series, "a", 1)])];
    let refused = import(&world, &[counter(&series, "a", 1)], chunks).await.expect_err("changed");
    assert!(refused.to_string().contains("changed"), "{refused}");
    nothing_is_there(&world).await;
}

pub(super) async fn an_import_into_a_ledger_that_went_back_is_refused(world: World) {
    let series = series(&world).await;
    world.ledger.hold_all(&[], "test").await.unwrap();
    let refused = import(&world, &[counter(&series, "a", 1)], Vec::new()).await.expect_err("held");
    assert!(refused.to_string().contains("is held"), "{refused}");
    nothing_is_there(&world).await;
}
