//! Counters in lists for people.

use numbering::CounterKey;
use numerator::ledger::{
    Closing, CounterFilter, CounterSpec, Holding, KeyCondition, KeyPart, ValueRuns,
};

use super::world::{NOW_US, World, entry, range, spec, with};

/// The ids of counters that match, in their order.
async fn listed(world: &World, filter: &CounterFilter) -> Vec<i64> {
    let found = world.ledger.counters().list(filter).await.unwrap().expect("a list");
    found.iter().map(|listed| listed.counter.counter_id).collect()
}

fn key(parts: &[(&str, &str)]) -> String {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    CounterKey { parts: parts.iter().map(own).collect() }.to_string()
}

fn part(name: &str, value: &str) -> KeyPart {
    KeyPart { name: name.into(), value: value.into(), is_beginning: false, series: None }
}

fn having(parts: Vec<KeyPart>) -> CounterFilter {
    let keys = vec![KeyCondition { parts, ..KeyCondition::default() }];
    CounterFilter { keys, ..CounterFilter::default() }
}

pub(super) async fn a_list_of_counters_goes_on_where_it_was_whatever_begins_meanwhile(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let new = async |series_id, key: &str| {
        world.seed(open, &CounterSpec { series_id, ..spec(key) }).await.0
    };
    // Not in the order of their names.
    let (c, a, other, b) =
        (new(7, "c").await, new(7, "a").await, new(6, "z").await, new(7, "b").await);
    assert_eq!(listed(&world, &CounterFilter::default()).await, [other, a, b, c]);
    let next = |after| CounterFilter { after, limit: 2, ..CounterFilter::default() };
    assert_eq!(listed(&world, &next(None)).await, [other, a]);
    let (_, behind) = (new(7, "A").await, new(7, "bb").await);
    assert_eq!(listed(&world, &next(Some(a))).await, [b, behind]);
    assert_eq!(listed(&world, &next(Some(behind))).await, [c]);
    let of_series = CounterFilter { series_id: Some(6), ..CounterFilter::default() };
    assert_eq!(listed(&world, &of_series).await, [other]);
    assert_eq!(world.ledger.counters().list(&next(Some(c + 100))).await.unwrap(), None);
}

pub(super) async fn counters_are_found_by_parts_of_their_keys_and_by_no_text_that_looks_like_one(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let keys = [
        key(&[("type", "A"), ("day", "2024-01-22")]),
        key(&[("type", "A;B"), ("year", "2024")]),
        key(&[("type", r"A\"), ("project", "P;type=A")]),
        key(&[("V", "x"), ("year", "2025")]),
        String::new(),
    ];
    let mut ids = Vec::new();
    for key in &keys {
        ids.push(world.seed(open, &spec(key)).await.0);
    }
    let by = async |parts: Vec<KeyPart>| {
        let mut found = listed(&world, &having(parts)).await;
        found.sort_unstable();
        found
    };
    assert_eq!(by(vec![part("type", "A")]).await, ids[..1]);
    assert_eq!(by(vec![part("type", "A;B")]).await, ids[1..2]);
    assert_eq!(by(vec![part("type", r"A\")]).await, ids[2..3]);
    assert_eq!(by(vec![part("typ", "A"), part("pe", "A"), part("type", "")]).await, [0; 0]);
    let beginning = KeyPart { is_beginning: true, ..part("day", "2024-") };
    assert_eq!(by(vec![beginning, part("year", "2024")]).await, ids[..2]);
    let of_another = KeyPart { series: Some(vec![8]), ..part("type", "A") };
    assert_eq!(by(vec![of_another]).await, [0; 0]);
    let of_series = KeyPart { series: Some(vec![7, 8]), ..part("type", "A") };
    assert_eq!(by(vec![of_series]).await, ids[..1]);
    let without = |series_without: Vec<i64>| {
        let parts = vec![part("type", "A;B")];
        let condition = KeyCondition { parts, absent: vec!["type", "type_id"], series_without };
        CounterFilter { keys: vec![condition], ..CounterFilter::default() }
    };
    let mut found = listed(&world, &without(vec![7])).await;
    found.sort_unstable();
    assert_eq!(found, [ids[1], ids[3], ids[4]]);
    assert_eq!(listed(&world, &without(vec![8])).await, ids[1..2]);
}

pub(super) async fn a_counter_was_used_last_when_its_highest_number_was_issued(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    let (unused, ..) = world.seed(open, &spec("l")).await;
    let issued = |entry, age_us| with(entry, |record| record.issued_at_us = NOW_US - age_us);
    // Journaled in another order.
    world.append(&[issued(range(open, id, 4, 6), 10)]).await;
    world.append(&[issued(entry(open, id, 3), 30)]).await;
    let found = world.ledger.counters().list(&CounterFilter::default()).await.unwrap().unwrap();
    let told: Vec<_> =
        found.iter().map(|one| (one.counter.counter_id, one.last_used_at_us)).collect();
    assert_eq!(told, [(id, Some(NOW_US - 10)), (unused, None)]);
    assert_eq!(
        found[0].counter,
        world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap()
    );
}

/// Goal: a range is found however many counters have its values as numbers of their own, and the
/// answer says if more ranges hold a value than are listed. Method: 66 counters, asked for by their
/// serial and by their names.
pub(super) async fn of_a_value_that_many_counters_have_the_ranges_are_told_and_that_there_are_more(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let keys: Vec<String> = (0..66).map(|number| format!("k{number:02}")).collect();
    let mut ids = Vec::new();
    for key in &keys {
        ids.push(world.seed(open, &spec(key)).await.0);
    }
    let (last, others) = ids.split_last().unwrap();
    let mut entries: Vec<_> = others.iter().map(|id| entry(open, *id, 5)).collect();
    entries.push(range(open, *last, 4, 6));
    entries.extend(ids.iter().map(|id| range(open, *id, 1, 2)));
    world.append(&entries).await;
    let aside = with(range(open, ids[0], 7, 9), |record| record.counter_keys = vec!["k00".into()]);
    world.ledger.reject(&aside, "refused").await.unwrap();
    let names: Vec<_> = keys.iter().map(|key| (7, "SEQ", &**key)).collect();
    for (value, counters, is_whole) in [
        (5, &ids[65..], true),
        // What is set aside was issued, too.
        (8, &ids[..1], true),
        (10, &[][..], true),
        (2, &ids[..64], false),
    ] {
        let told = Holding { counters: counters.to_vec(), is_whole };
        let by_serial = world
            .ledger
            .counters()
            .holding(ValueRuns::Issued, (7, "SEQ"), &[], value)
            .await
            .unwrap();
        assert_eq!(by_serial, told, "{value}");
        let by_name =
            world.ledger.counters().named_holding(ValueRuns::Issued, &names, value).await.unwrap();
        assert_eq!(by_name, told, "{value}");
    }
    let two =
        world.ledger.counters().named_holding(ValueRuns::Issued, &names[..2], 2).await.unwrap();
    assert_eq!(two, Holding { counters: ids[..2].to_vec(), is_whole: true });
}
