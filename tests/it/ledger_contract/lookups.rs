//! What the journal answers.

mod tenants;

pub(super) use tenants::{
    a_projects_document_is_found_in_rows_of_its_codes_alone,
    an_archived_document_of_another_project_keeps_nobody_out,
    one_transaction_tells_the_documents_of_two_projects_apart,
};

use numerator::ledger::{
    Closing, CounterSpec, Found, IssuePath, JournalFilter, JournalRow, LedgerError, NewRevision,
    NumberStatus, Position, Question, Revised, SearchPace, Sort, ValueOf,
};

use super::world::{NOW_US, World, entry, question, range, record, spec, with};

const HOUR_US: i64 = 3_600_000_000;

pub(super) async fn the_newest_number_under_a_key_or_document_is_found(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let keyed = |value, document: &str, key: Option<&str>, user: &str, age_us: i64| {
        with(entry(open, counter_id, value), |r| {
            r.document_id = Some(document.into());
            r.idempotency_key = key.map(str::to_owned);
            r.user_id = user.into();
            r.issued_at_us = NOW_US - age_us;
        })
    };
    let old = keyed(1, "d1", Some("key"), "u", 100);
    let new = keyed(2, "d1", None, "u", 50);
    let others = keyed(3, "d2", Some("key"), "someone", 10);
    world.append(&[new.clone(), old.clone(), others.clone()]).await;

    let ask = |key: Option<&str>, document: Option<&str>, user: &str| Question {
        idempotency_key: key.map(str::to_owned),
        document_id: document.map(str::to_owned),
        user_id: user.into(),
        ..question(&record("any"))
    };
    let questions = [
        ask(Some("key"), Some("d1"), "u"),
        ask(Some("key"), None, "someone"),
        ask(Some("key"), Some("d3"), "nobody"),
        ask(None, Some("d2"), "u"),
        ask(None, None, "u"),
        Question { series_id: 8, ..ask(Some("key"), Some("d1"), "u") },
    ];
    let found = world.ledger.replays(&questions).await.unwrap();
    let nothing = Found::default;
    let expected = [
        Found { by_key: Some(old), by_document: Some(new), ..Found::default() },
        Found { by_key: Some(others.clone()), by_document: None, ..Found::default() },
        nothing(),
        Found { by_key: None, by_document: Some(others), ..Found::default() },
        nothing(),
        nothing(),
    ];
    assert_eq!(found, expected);
    assert_eq!(world.ledger.replays(&[]).await.unwrap(), []);
}

pub(super) async fn a_question_looks_no_further_back_than_it_says(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let written = with(entry(open, counter_id, 1), |r| r.idempotency_key = Some("key".into()));
    world.append(std::slice::from_ref(&written)).await;
    let ask = |since_us| Question { since_us, ..question(&written.record) };
    let found = world.ledger.replays(&[ask(NOW_US), ask(NOW_US + 1)]).await.unwrap();
    let both = Found {
        by_key: Some(written.clone()),
        by_document: Some(written.clone()),
        ..Found::default()
    };
    assert_eq!(found, [both, Found::default()]);
    // Except a document that is numbered once; a caller's key is remembered for the window alone.
    let once = Question { once_per_document: true, ..ask(NOW_US + 1) };
    let found = world.ledger.replays(&[once, ask(NOW_US + 1)]).await.unwrap();
    let document = Found { by_key: None, by_document: Some(written), ..Found::default() };
    assert_eq!(found, [document, Found::default()]);
}

pub(super) async fn keys_are_compared_byte_for_byte(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let keys = ["Team", "TEAM", "team", "téam", "te\u{301}am", "team "];
    let specs: Vec<CounterSpec> = keys.map(spec).into();
    world.ledger.seed(open, world.node, &specs).await.unwrap();
    assert_eq!(world.ledger.counters().page(0, 100).await.unwrap().len(), keys.len());
    let counter_id =
        world.ledger.counters().get(7, "SEQ", "TEAM").await.unwrap().unwrap().counter_id;
    let entries: Vec<_> = (1..)
        .zip(keys)
        .map(|(value, key)| {
            let mut entry = with(entry(open, counter_id, value), |r| {
                r.document_id = Some(key.into());
                r.counter_keys = vec!["TEAM".into()];
            });
            entry.number = key.into();
            entry
        })
        .collect();
    world.append(&entries).await;
    for entry in entries {
        let question = question(&entry.record);
        let found = world.ledger.replays(&[question]).await.unwrap().remove(0);
        assert_eq!(found.by_document, Some(entry));
    }
}

pub(super) async fn rows_are_found_by_number_document_user_and_time(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    // From a minute to half a year ago: every reach of a look-up by time.
    let ages_us = [HOUR_US / 60, 2 * HOUR_US, 72 * HOUR_US, 4_000 * HOUR_US];
    let mut entries = Vec::new();
    for (value, age_us) in (1..).zip(ages_us) {
        entries.push(with(entry(open, counter_id, value), |r| {
            r.issued_at_us = NOW_US - age_us;
            r.user_id = if value % 2 == 0 { "even" } else { "odd" }.into();
        }));
    }
    world.append(&entries).await;
    let find = async |filter: JournalFilter| -> Vec<u64> {
        let rows: Vec<JournalRow> = world.ledger.register().find(&filter).await.unwrap();
        rows.iter().map(|row| row.entry.taken[0].range.first).collect()
    };
    let any = JournalFilter::default;
    let none: [u64; 0] = [];
    assert_eq!(find(any()).await, [1, 2, 3, 4]);
    assert_eq!(find(JournalFilter { limit: 2, ..any() }).await, [1, 2]);
    let number = Some(entries[2].number.clone());
    assert_eq!(find(JournalFilter { number: number.clone(), ..any() }).await, [3]);
    let user_id = Some("even".to_owned());
    assert_eq!(find(JournalFilter { user_id: user_id.clone(), ..any() }).await, [2, 4]);
    assert_eq!(find(JournalFilter { user_id, number, ..any() }).await, none);
    let document_id = entries[3].record.document_id.clone();
    assert_eq!(find(JournalFilter { document_id, ..any() }).await, [4]);
    let from_us = Some(NOW_US - 100 * HOUR_US);
    let until_us = Some(NOW_US - HOUR_US);
    assert_eq!(find(JournalFilter { from_us, ..any() }).await, [1, 2, 3]);
    assert_eq!(find(JournalFilter { until_us, ..any() }).await, [2, 3, 4]);
    assert_eq!(find(JournalFilter { from_us, until_us, ..any() }).await, [2, 3]);
    assert_eq!(find(JournalFilter { from_us: until_us, until_us, ..any() }).await, none);
}

pub(super) async fn the_text_of_a_revision_takes_no_place_in_a_page(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let issued = entry(open, counter_id, 1);
    world.append(std::slice::from_ref(&issued)).await;
    let revision = NewRevision {
        of: ValueOf { counter_id, value: 1 },
        allocation_id: issued.record.allocation_id,
        rev: "B".into(),
        number: format!("{}-B", issued.number),
        user_id: "u".into(),
        ip_address: None,
        reason: None,
        revised_at_us: NOW_US,
    };
    assert!(matches!(
        world.ledger.register().revise(&revision).await.unwrap(),
        Revised::Written(_)
    ));
    for user_id in [None, Some("u".to_owned())] {
        let filter = JournalFilter { user_id, limit: 1, ..JournalFilter::default() };
        let rows = world.ledger.register().find(&filter).await.unwrap();
        assert_eq!(rows.iter().map(|row| &row.entry).collect::<Vec<_>>(), [&issued], "{filter:?}");
    }
}

/// The values of a list, read by pages of this size: by `find` and by `search` the same.
async fn pages(world: &World, filter: &JournalFilter, limit: u32) -> Vec<u64> {
    let (mut values, mut after) = (Vec::new(), None);
    loop {
        let page = JournalFilter { limit, after, ..filter.clone() };
        let rows = world.ledger.register().find(&page).await.unwrap();
        let exported = world.ledger.register().list(&page, SearchPace::Export).await;
        assert_eq!(exported.unwrap(), rows, "{page:?}");
        values.extend(rows.iter().map(|row| row.entry.taken[0].range.first));
        match rows.last() {
            Some(last) if rows.len() == limit as usize => after = Position::of(last),
            _ => return values,
        }
    }
}

/// Goal: each filter alone chooses its rows, and a list has each of them once whatever its pages.
/// Method: six rows that share a time by pairs and differ in one thing each, by pages of any size.
pub(super) async fn rows_are_found_by_each_filter_and_paged_in_either_order(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let mut entries = Vec::new();
    for (value, number) in (1..).zip(["B-2", "B-1", "A%1", "\u{e01}-1", "B", "A1"]) {
        let mut entry = with(entry(open, counter_id, value), |r| {
            r.issued_at_us = NOW_US - HOUR_US * i64::try_from(value / 2).unwrap();
            r.mask = number.into();
        });
        entry.number = number.into();
        entries.push(entry);
    }
    entries[0] = with(entries[0].clone(), |r| r.type_code = "OTHER".into());
    entries[1] = with(entries[1].clone(), |r| r.project = Some("P".into()));
    entries[2] = with(entries[2].clone(), |r| r.document_date = "2026-02-01".into());
    for (index, name) in [(3, "ORIGINATOR"), (4, "ORG_CODE")] {
        entries[index] = with(entries[index].clone(), |r| {
            r.context.insert(name.into(), "\u{e04}\"\\".into());
        });
    }
    entries[5] = with(entries[5].clone(), |r| r.series_id = 8);
    world.append(&entries).await;
    let any = JournalFilter::default;
    let text = |text: &str| Some(text.to_owned());
    for (filter, expected) in [
        (any(), &[1, 3, 2, 5, 4, 6][..]),
        (JournalFilter { sort: Sort::Number, ..any() }, &[3, 6, 5, 2, 1, 4]),
        (JournalFilter { number_prefix: text("B"), ..any() }, &[1, 2, 5]),
        (JournalFilter { number_prefix: text("\u{e01}"), ..any() }, &[4]),
        (JournalFilter { number_part: text("-1"), ..any() }, &[2, 4]),
        (JournalFilter { number_part: text("%"), ..any() }, &[3]),
        (JournalFilter { number_part: text("b"), ..any() }, &[]),
        (JournalFilter { type_code: text("OTHER"), ..any() }, &[1]),
        (JournalFilter { project: text("P"), ..any() }, &[2]),
        (JournalFilter { dated_from: text("2026-01-03"), ..any() }, &[3]),
        (JournalFilter { dated_until: text("2026-01-02"), ..any() }, &[]),
        (JournalFilter { originator: text("\u{e04}\"\\"), ..any() }, &[5, 4]),
        (JournalFilter { originator: text("A"), ..any() }, &[]),
        (JournalFilter { series_id: Some(8), ..any() }, &[6]),
        (JournalFilter { path: Some(IssuePath::Redis), ..any() }, &[1, 3, 2, 5, 4, 6]),
        (JournalFilter { path: Some(IssuePath::Imported), ..any() }, &[]),
        (JournalFilter { status: Some(NumberStatus::Revised), ..any() }, &[]),
    ] {
        for limit in 1..=7 {
            assert_eq!(pages(&world, &filter, limit).await, expected, "{filter:?}, {limit}");
        }
        let mut sorted = expected.to_vec();
        sorted.sort_by_key(|value| entries[usize::try_from(value - 1).unwrap()].number.clone());
        let by_number = JournalFilter { sort: Sort::Number, ..filter };
        assert_eq!(pages(&world, &by_number, 2).await, sorted, "{by_number:?}");
    }
    let row = &world.ledger.register().find(&JournalFilter { limit: 1, ..any() }).await.unwrap()[0];
    let mut gone = Position::of(row).unwrap();
    gone.of.value = 99;
    let filter = JournalFilter { sort: Sort::Number, after: Some(gone), ..any() };
    let refused = world.ledger.register().find(&filter).await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
    assert_eq!(world.ledger.series().id_of("none").await.unwrap(), None);
}

pub(super) async fn a_value_is_found_in_the_range_that_holds_it(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &CounterSpec { headroom: 30, ..spec("k") }).await;
    let (other, ..) = world.seed(open, &CounterSpec { headroom: 30, ..spec("other") }).await;
    let mut apart = range(open, id, 20, 26);
    apart.taken[0].range.step = 3;
    world.append(&[range(open, id, 1, 5), entry(open, id, 6), apart]).await;
    world.append(&[range(open, other, 7, 19)]).await;
    for (value, first) in [
        (0, None),
        (1, Some(1)),
        (5, Some(1)),
        (6, Some(6)),
        (7, None),
        (19, None),
        (23, Some(20)),
        (24, None),
        (26, Some(20)),
        (27, None),
        (u64::MAX, None),
    ] {
        let row = world.ledger.register().row_of(id, value).await.unwrap();
        let found = row.map(|row| row.entry.taken[0].range.first);
        assert_eq!(found, first, "{value}");
    }
}

pub(super) async fn counters_and_totals_are_listed(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let specs = ["a", "b", "c"].map(spec);
    world.ledger.seed(open, world.node, &specs).await.unwrap();
    let all = world.ledger.counters().page(0, 100).await.unwrap();
    assert_eq!(all.iter().map(|c| &*c.key).collect::<Vec<_>>(), ["a", "b", "c"]);
    let rest = world.ledger.counters().page(all[0].counter_id, 1).await.unwrap();
    assert_eq!(rest, all[1..2]);
    let id = all[0].counter_id;
    world.append(&[range(open, id, 1, 5)]).await;
    assert_eq!(world.ledger.register().collisions_count().await.unwrap(), 0);
    world.ledger.append(world.node, &[entry(open, id, 5)]).await.unwrap();
    world.ledger.reject(&entry(open, id, 6), "test").await.unwrap();
    let totals = world.ledger.register().totals().await.unwrap();
    assert_eq!((totals.journal, totals.gaps), (1, 0));
    assert_eq!((totals.collisions, totals.rejected), (1, 1));
    assert_eq!(world.ledger.register().collisions_count().await.unwrap(), 1);
}

pub(super) async fn a_value_both_issued_and_lost_is_an_overlap(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[range(open, id, 1, 5)]).await;
    assert_eq!(world.ledger.audits().overlaps(id, 10).await.unwrap(), []);
    // Only a write from outside can cause this.
    let gap = "insert into gap (counter_id, first_value, last_value, step, reason, epoch, \
               noted_at_us) values ($1, 4, 9, 1, 'discarded', 1, 0)";
    if let Some(path) = world.url.strip_prefix("sqlite:") {
        let pool = sqlx::SqlitePool::connect(path).await.unwrap();
        sqlx::query(gap).bind(id).execute(&pool).await.unwrap();
    } else {
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        sqlx::query(gap).bind(id).execute(&pool).await.unwrap();
    }
    let overlaps = world.ledger.audits().overlaps(id, 10).await.unwrap();
    assert_eq!(overlaps.iter().map(|s| (s.first, s.last)).collect::<Vec<_>>(), [(4, 5)]);
}

/// People are found by their names through whichever service they asked, services with all for whom
/// they asked, however many; and a sign of a pattern means itself.
pub(super) async fn people_and_services_are_found_apart(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let mut actors: Vec<String> =
        ["erp", "erp/ann", "crm/ann", "ann", "ERP/ann", "erp/a_n", "erp2/bob", "erp/x/ann"]
            .map(str::to_owned)
            .into();
    // More than are looked for one by one.
    actors.extend((0..40).map(|person| format!("bff/person {person:02}")));
    let mut age_us = 0;
    // As far as the ceiling of a counter.
    for (key, part) in actors.chunks(8).enumerate() {
        let (counter_id, ..) = world.seed(open, &spec(&format!("k{key}"))).await;
        let entries = (1..).zip(part).map(|(value, actor)| {
            age_us += 1;
            with(entry(open, counter_id, value), |r| {
                r.user_id.clone_from(actor);
                r.issued_at_us = NOW_US - age_us;
                r.counter_keys = vec![format!("k{key}")];
                r.scope = format!("k{key}");
            })
        });
        world.append(&entries.collect::<Vec<_>>()).await;
    }
    let find = async |user: Option<&str>, service: Option<&str>, limit| {
        let (user_id, service) = (user.map(str::to_owned), service.map(str::to_owned));
        let filter = JournalFilter { user_id, service, limit, ..JournalFilter::default() };
        let rows = world.ledger.register().find(&filter).await.unwrap();
        rows.into_iter().map(|row| row.entry.record.user_id.clone()).collect::<Vec<_>>()
    };
    assert_eq!(find(Some("ann"), None, 9).await, ["erp/ann", "crm/ann", "ann", "ERP/ann"]);
    assert_eq!(find(Some("a_n"), None, 9).await, ["erp/a_n"]);
    assert_eq!(find(Some("x/ann"), None, 9).await, ["erp/x/ann"]);
    assert_eq!(find(Some("erp"), None, 9).await, ["erp"]);
    assert_eq!(find(None, Some("erp"), 9).await, ["erp", "erp/ann", "erp/a_n", "erp/x/ann"]);
    assert_eq!(find(Some("ann"), Some("crm"), 9).await, ["crm/ann"]);
    assert_eq!(find(Some("ann"), Some("ann"), 9).await, ["ann"]);
    assert_eq!(find(Some("bob"), Some("erp"), 9).await, [""; 0]);
    assert_eq!(find(None, Some("bff"), 50).await, actors[8..]);
    assert_eq!(find(None, Some("bff"), 2).await, actors[8..10], "page by page");
}
