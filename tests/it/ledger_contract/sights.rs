//! What is not shown to a caller takes no place in a page, and no cursor of a list refers to it.

use std::sync::Arc;

use numbering::SeriesDefinition;
use numerator::ledger::{
    BeginStep, ChainQuery, Closing, CodesWithin, CounterFilter, Entry, Expected, JournalFilter,
    KeyCondition, KeyPart, LedgerError, NewRevision, Position, Principal, Revised, RowVisibility,
    SeriesChange, Sort, ValueOf,
};
use serde_json::json;

use super::world::{NOW_US, World, entry, spec, with};

const UNIFIED: &str = "C0001A0101201507100000000001";
const STEP: &str = "C0001A010120150710000000000001";

fn own(name: &str) -> RowVisibility {
    RowVisibility::Part { within: None, own: Some(Arc::from(name)) }
}

fn within(series: Option<&[&str]>, projects: Option<&[&str]>) -> RowVisibility {
    let list = |codes: Option<&[&str]>| {
        codes.map(|codes| codes.iter().map(|&code| code.to_owned()).collect())
    };
    let within = CodesWithin { series: list(series), projects: list(projects) };
    RowVisibility::Part { within: Some(within), own: None }
}

/// Every sight that a case uses.
fn sights() -> Vec<RowVisibility> {
    let both = RowVisibility::Part {
        within: Some(CodesWithin { series: None, projects: Some(vec!["P2".into()]) }),
        own: Some(Arc::from("u")),
    };
    vec![
        RowVisibility::Everything,
        RowVisibility::Part { within: None, own: None },
        own("u"),
        own("v"),
        own("nobody"),
        within(None, Some(&["P1"])),
        within(None, Some(&["P1", "P2"])),
        within(Some(&["S"]), None),
        within(Some(&["NONE", "S"]), Some(&["P1"])),
        within(Some(&["NONE"]), None),
        both,
    ]
}

/// Numbers of one document, of two series, of projects and of none, by several actors, some of them
/// for people, at times of their own except two. One is set aside.
async fn numbers(world: &World) -> Vec<Entry> {
    let definition: SeriesDefinition = serde_json::from_value(json!({
        "code": "S", "name": "S", "template": "S-{SEQ:3}", "serves": { "types": ["S"] },
        "serials": [{ "counter": ["type"] }],
    }))
    .unwrap();
    let change = SeriesChange {
        definition,
        expected: Expected::Nothing,
        saved_by: "a".into(),
        reason: "a".into(),
        saved_at_us: NOW_US,
    };
    let series_id = world.ledger.series().apply(&[change]).await.unwrap()[0].series_id;
    let open = world.redis_epoch(Closing::Exact).await;
    let (of_none, ..) = world.seed(open, &spec("k")).await;
    let (of_series, ..) = world.seed(open, &spec("other")).await;
    let mut entries = Vec::new();
    for (value, (is_of_series, user, project)) in (1..).zip([
        (true, "u", Some("P1")),
        (true, "v", Some("P1")),
        (false, "u", None),
        (true, "v/u", Some("P2")),
        (false, "uu", Some("P2")),
        (true, "u/v", None),
        (false, "v", Some("P1")),
        (true, "v", Some("P2")),
    ]) {
        let counter_id = if is_of_series { of_series } else { of_none };
        let mut one = with(entry(open, counter_id, value), |record| {
            record.series_id = if is_of_series { series_id } else { 7 };
            record.document_id = Some("d".into());
            record.user_id = user.into();
            record.project = project.map(str::to_owned);
            record.issued_at_us = NOW_US + i64::try_from(value / 2).unwrap();
            record.mask = format!("n-{value}");
        });
        one.number = format!("n-{value}");
        entries.push(one);
    }
    world.append(&entries[..7]).await;
    world.ledger.reject(&entries[7], "test").await.unwrap();
    entries
}

fn is_shown(sight: &RowVisibility, entry: &Entry) -> bool {
    let record = &entry.record;
    let series = if record.series_id == 7 { "" } else { "S" };
    sight.has(&record.user_id, series, record.project.as_deref())
}

async fn a_page_is_of_what_is_shown_alone(world: &World, entries: &[Entry]) {
    let mut entries = entries.to_vec();
    entries.sort_by_key(|entry| (entry.record.issued_at_us, entry.taken[0].counter_id));
    let texts = |entries: Vec<&Entry>| -> Vec<String> {
        entries.into_iter().map(|entry| entry.number.clone()).collect()
    };
    for sight in sights() {
        let expected = texts(entries.iter().filter(|entry| is_shown(&sight, entry)).collect());
        for limit in 1..=9 {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = world
                    .ledger
                    .register()
                    .numbers_shown_of("d", after, limit, &sight)
                    .await
                    .unwrap();
                found.extend(page.iter().map(|row| row.entry.number.clone()));
                match page.last() {
                    Some(last) if page.len() == limit as usize => after = Position::of(last),
                    _ => break,
                }
            }
            assert_eq!(found, expected, "{sight:?} in pages of {limit}");
        }
        let filter = JournalFilter {
            document_id: Some("d".into()),
            shown: sight.clone(),
            sort: Sort::Number,
            ..JournalFilter::default()
        };
        let mut by_number = expected.clone();
        by_number.sort_unstable();
        let found = world.ledger.register().find(&filter).await.unwrap();
        assert_eq!(texts(found.iter().map(|row| &row.entry).collect()), by_number, "{sight:?}");
    }
}

/// What a cursor names has to be of the list: else it would show of any value whether it was
/// issued, and how its text compares with others.
async fn a_place_that_is_not_of_the_list_tells_nothing(world: &World, entries: &[Entry]) {
    for sight in sights() {
        for filter in [
            JournalFilter { shown: sight.clone(), ..JournalFilter::default() },
            JournalFilter { service: Some("u".into()), ..JournalFilter::default() },
            JournalFilter { project: Some("P1".into()), ..JournalFilter::default() },
            JournalFilter { number_prefix: Some("n-1".into()), ..JournalFilter::default() },
        ] {
            let filter =
                JournalFilter { document_id: Some("d".into()), sort: Sort::Number, ..filter };
            let rows = world.ledger.register().find(&filter).await.unwrap();
            for entry in entries {
                let first = entry.taken[0];
                let value = i64::try_from(first.range.first).unwrap();
                let of = ValueOf { counter_id: first.counter_id, value };
                let after = Some(Position { issued_at_us: entry.record.issued_at_us, of });
                let behind = JournalFilter { after, ..filter.clone() };
                let told = world.ledger.register().find(&behind).await;
                let is_of_list = rows.iter().any(|row| row.entry.number == entry.number);
                let is_gone = matches!(told, Err(LedgerError::Refused(_)));
                assert_eq!(is_gone, !is_of_list, "{told:?}: {filter:?} behind {}", entry.number);
            }
        }
    }
    // The same of counters.
    let part = |value: &str| KeyPart {
        name: "project".into(),
        value: value.into(),
        is_beginning: false,
        series: None,
    };
    let open = world.redis_epoch(Closing::Exact).await;
    let (mine, ..) = world.seed(open, &spec("project=P1")).await;
    let (other, ..) = world.seed(open, &spec("project=P2")).await;
    let keys = vec![KeyCondition { parts: vec![part("P1")], ..KeyCondition::default() }];
    for (after, is_there) in [(mine, true), (other, false), (other + 100, false)] {
        let filter =
            CounterFilter { keys: keys.clone(), after: Some(after), ..CounterFilter::default() };
        let listed = world.ledger.counters().list(&filter).await.unwrap();
        assert_eq!(listed.is_some(), is_there, "{after}");
    }
}

async fn a_revision_is_found_by_who_is_shown_its_number(world: &World, entries: &[Entry]) {
    // One text in as many scopes as there are numbers.
    for (scope, entry) in entries[..7].iter().enumerate() {
        let first = entry.taken[0];
        let value = i64::try_from(first.range.first).unwrap();
        let revision = NewRevision {
            of: ValueOf { counter_id: first.counter_id, value },
            allocation_id: entry.record.allocation_id,
            rev: "B".into(),
            number: format!("n-{scope}-B"),
            user_id: "u".into(),
            ip_address: None,
            reason: None,
            revised_at_us: NOW_US,
        };
        assert!(matches!(
            world.ledger.register().revise(&revision).await.unwrap(),
            Revised::Written(_)
        ));
        for sight in sights() {
            let found = world.ledger.register().revisions_shown_named(&revision.number, 1, &sight);
            let is_found = !found.await.unwrap().is_empty();
            assert_eq!(is_found, is_shown(&sight, entry), "{sight:?} {}", entry.number);
        }
    }
}

pub(super) async fn what_is_not_shown_takes_no_place(world: World) {
    let entries = numbers(&world).await;
    a_page_is_of_what_is_shown_alone(&world, &entries).await;
    a_place_that_is_not_of_the_list_tells_nothing(&world, &entries).await;
    a_revision_is_found_by_who_is_shown_its_number(&world, &entries).await;
    a_chain_shows_links_of_who_is_shown_them(&world).await;
}

async fn a_chain_shows_links_of_who_is_shown_them(world: &World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("serials")).await;
    let issued = |value, kind: &str, serial: &str, document: &str, user: &str| {
        let mut one = with(entry(open, counter_id, value), |record| {
            record.type_code = kind.into();
            record.user_id = user.into();
            record.document_id = Some(document.into());
            record.mask = serial.into();
        });
        one.number = serial.into();
        one
    };
    let step = |name: &str| format!("{UNIFIED}/step/C0001A01/{name}");
    world
        .append(&[
            issued(1, "UNIFIED-SERIAL", UNIFIED, "t", "u"),
            issued(2, "SYSTEM-SERIAL", STEP, &step("pay"), "u"),
            issued(3, "SYSTEM-SERIAL", &STEP.replace("01", "02"), &step("spy"), "v"),
        ])
        .await;
    for (serial, user_id) in [(STEP, "v"), ("other", "u/ann")] {
        let principal = Principal { user_id: user_id.into(), ..Default::default() };
        let unified_serial = Some(UNIFIED.to_owned());
        let begin = BeginStep { serial: serial.into(), unified_serial, principal };
        world.ledger.exchange().begin_step(&begin).await.unwrap();
    }
    let users = async |sight: &RowVisibility, limit: u32| {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let query = ChainQuery { unified_serial: UNIFIED.into(), after, limit };
            let page = world.ledger.exchange().chain_shown(&query, sight).await.unwrap();
            let Some(last) = page.last() else { return found };
            after = Some(last.place.clone());
            found.extend(page.into_iter().map(|link| (link.user_id, link.event)));
        }
    };
    let all = users(&RowVisibility::Everything, 10).await;
    assert_eq!(all.len(), 5, "{all:?}");
    for limit in 1..=5 {
        for (name, count) in [("u", 3), ("v", 2), ("nobody", 0)] {
            let found = users(&own(name), limit).await;
            let is_own = |(user, _): &&(String, String)| {
                user == name || user.starts_with(&format!("{name}/"))
            };
            let expected: Vec<_> = all.iter().filter(is_own).cloned().collect();
            assert!(found.len() == count && found == expected, "{name}: {found:?}");
        }
        // Of a series that no row belongs to, of none, and of projects, of which serials have none.
        let steps = within(Some(&["SYSTEM-SERIAL"]), None);
        assert_eq!(users(&steps, limit).await, [("v".to_owned(), "begun".to_owned())]);
        assert_eq!(users(&within(Some(&["UNIFIED-SERIAL"]), None), limit).await, []);
        assert_eq!(users(&within(None, Some(&["P1"])), limit).await, []);
    }
}
