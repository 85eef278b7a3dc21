//! What the ledger knows of documents.

use numbering::{Policy, SeriesDefinition};
use numerator::ledger::{
    At, Closing, CounterSpec, Entry, Expected, ImportedCounter, JournalFilter, LedgerError,
    NewRevision, Owner, PartitionState, Position, REVISIONS_MAX, Revised, SeriesChange,
    TakeOutcome, TakeRequest, ValueOf,
};

use super::imports;
pub(super) use super::sights::what_is_not_shown_takes_no_place;
use super::world::{LOCK_WAIT, NOW_US, World, entry, order_of, question, record, spec, with};

pub(super) async fn the_numbers_of_a_document_are_paged_oldest_first(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (one, ..) = world.seed(open, &spec("one")).await;
    let (other, ..) = world.seed(open, &spec("other")).await;
    let of_document = |counter_id, value, document: &str, age_us: i64| {
        with(entry(open, counter_id, value), |record| {
            record.document_id = Some(document.into());
            record.issued_at_us = NOW_US - age_us;
        })
    };
    // Two at one moment, and journaled in another order than they were asked for.
    let entries = [
        of_document(one, 2, "d", 10),
        of_document(other, 1, "d", 30),
        of_document(one, 1, "d", 30),
        of_document(one, 3, "D", 20),
    ];
    world.append(&entries).await;
    let mut expected = vec![&entries[2], &entries[1], &entries[0]];
    expected.sort_by_key(|entry| (entry.record.issued_at_us, entry.taken[0].counter_id));
    let expected: Vec<_> = expected.into_iter().map(|entry| entry.number.clone()).collect();
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = world.ledger.register().numbers_of("d", after, 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Position::of(last);
        found.extend(page.into_iter().map(|row| row.entry.number));
    }
    assert_eq!(found, expected);
    assert_eq!(world.ledger.register().numbers_of("nobody", None, 2).await.unwrap(), []);
}

/// Two numbers of a document each, in the journal.
async fn two_numbers(world: &World) -> (At, Entry, Entry) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &CounterSpec { headroom: 30, ..spec("k") }).await;
    let entries = [entry(open, id, 1), entry(open, id, 2)];
    world.append(&entries).await;
    let [one, other] = entries;
    (open, one, other)
}

fn name(entry: &Entry) -> ValueOf {
    let taken = entry.taken[0];
    ValueOf { counter_id: taken.counter_id, value: i64::try_from(taken.range.first).unwrap() }
}

fn revision(of: &Entry, rev: &str, number: &str) -> NewRevision {
    NewRevision {
        of: name(of),
        allocation_id: of.record.allocation_id,
        rev: rev.into(),
        number: number.into(),
        user_id: "u".into(),
        ip_address: None,
        reason: Some("reviewed".into()),
        revised_at_us: NOW_US,
    }
}

pub(super) async fn a_revision_is_written_once(world: World) {
    let (_, one, other) = two_numbers(&world).await;
    let wanted = revision(&one, "B", "one-B");
    let Revised::Written(first) = world.ledger.register().revise(&wanted).await.unwrap() else {
        panic!()
    };
    assert_eq!((first.of, &*first.rev, &*first.number), (name(&one), "B", "one-B"));
    assert_eq!(Some(&first.document_id), one.record.document_id.as_ref());
    let later = NewRevision { revised_at_us: NOW_US + 1, user_id: "v".into(), ..wanted.clone() };
    assert_eq!(
        world.ledger.register().revise(&later).await.unwrap(),
        Revised::Known(first.clone())
    );
    let Revised::Written(third) =
        world.ledger.register().revise(&revision(&one, "C", "one-C")).await.unwrap()
    else {
        panic!()
    };
    let names = [name(&one), name(&other)];
    assert_eq!(world.ledger.register().revisions_of(&names).await.unwrap(), [first.clone(), third]);
    assert_eq!(world.ledger.register().revisions_of(&names[1..]).await.unwrap(), []);
    assert_eq!(world.ledger.register().revisions_of(&[]).await.unwrap(), []);
    assert_eq!(world.ledger.register().revisions_named("one-B", 10).await.unwrap(), [first]);
    let stranger = NewRevision { allocation_id: other.record.allocation_id, ..wanted };
    let refused = world.ledger.register().revise(&stranger).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Refused(_)), "{refused}");
}

pub(super) async fn a_revision_is_no_value_of_a_counter(world: World) {
    let (open, one, _) = two_numbers(&world).await;
    world.ledger.register().revise(&revision(&one, "B", "{one}-B")).await.unwrap();
    world.verify().await;
    let totals = world.ledger.register().totals().await.unwrap();
    assert_eq!((totals.journal, totals.revisions, totals.gaps), (2, 1, 0));
    let filter = JournalFilter { user_id: Some("u".into()), ..JournalFilter::default() };
    assert_eq!(world.ledger.register().find(&filter).await.unwrap().len(), 2, "numbers only");
    let question = question(&one.record);
    let found = world.ledger.replays(&[question]).await.unwrap().remove(0);
    assert_eq!(found.by_document, Some(one.clone()), "its document has one number");
    assert_eq!(world.ledger.audits().stray_revisions(10).await.unwrap(), []);
    let next = entry(open, one.taken[0].counter_id, 3);
    world.append(&[next]).await;
    world.verify().await;
}

pub(super) async fn a_text_is_a_number_or_a_revision_and_never_both(world: World) {
    let (open, one, other) = two_numbers(&world).await;
    let taken = revision(&one, "B", &other.number);
    assert_eq!(world.ledger.register().revise(&taken).await.unwrap(), Revised::Collided);
    assert_eq!(world.ledger.register().revisions_of(&[name(&one)]).await.unwrap(), []);
    world.ledger.register().revise(&revision(&one, "B", "text")).await.unwrap();
    let of_other = revision(&other, "B", "text");
    assert_eq!(world.ledger.register().revise(&of_other).await.unwrap(), Revised::Collided);
    // A number that is rendered later, on either path.
    let mut late = entry(open, one.taken[0].counter_id, 3);
    late.number = "text".into();
    let appended = world.ledger.append(world.node, &[late.clone()]).await.unwrap();
    assert_eq!(appended.collisions, [late.record.allocation_id]);
    let first = world.ledger.register().collisions(10).await.unwrap().remove(0);
    assert_eq!(first.other_allocation_id, Some(one.record.allocation_id));
    let database = world.database_epoch().await;
    let mut record = record("d");
    record.mask = "text".into();
    let outcomes = world.ledger.take(database, world.node, &[order_of(record)], LOCK_WAIT).await;
    let collided = TakeOutcome::Collided { number: "text".into() };
    assert_eq!(outcomes.unwrap().outcomes, [collided]);
    // Another scope is independent.
    let mut elsewhere = with(entry(open, one.taken[0].counter_id, 9), |record| {
        record.scope = "project=P".into();
    });
    elsewhere.number = "text".into();
    world.append(&[elsewhere]).await;
}

pub(super) async fn a_number_and_a_revision_that_want_one_text_at_once_do_not_both_get_it(
    world: World,
) {
    let (open, one, _) = two_numbers(&world).await;
    let another = world.another().await;
    for value in 3..23 {
        let text = format!("text-{value}");
        let mut number = entry(open, one.taken[0].counter_id, value);
        number.number.clone_from(&text);
        let wanted = revision(&one, &value.to_string(), &text);
        let numbers = [number];
        let (appended, revised) = tokio::join!(
            world.ledger.append(world.node, &numbers),
            another.register().revise(&wanted)
        );
        let is_number = appended.unwrap().collisions.is_empty();
        let is_revision = matches!(revised.unwrap(), Revised::Written(_));
        assert!(is_number != is_revision, "{text}: {is_number} and {is_revision}");
    }
}

pub(super) async fn revisions_of_one_text_at_once_are_one(world: World) {
    let (_, one, other) = two_numbers(&world).await;
    let another = world.another().await;
    for round in 0..10 {
        let (rev, text) = (format!("R{round}"), format!("text-{round}"));
        let [a, b, c] = [&one, &one, &other].map(|of| revision(of, &rev, &text));
        let (first, second, third) = tokio::join!(
            world.ledger.register().revise(&a),
            another.register().revise(&b),
            another.register().revise(&c)
        );
        let all = [first.unwrap(), second.unwrap(), third.unwrap()];
        let written = all.iter().filter(|revised| matches!(revised, Revised::Written(_)));
        assert_eq!(written.count(), 1, "{all:?}");
        assert_eq!(world.ledger.register().revisions_named(&text, 10).await.unwrap().len(), 1);
    }
}

pub(super) async fn a_number_has_no_more_revisions_than_it_may_have(world: World) {
    let (_, one, other) = two_numbers(&world).await;
    for index in 0..REVISIONS_MAX {
        let wanted = revision(&one, &index.to_string(), &format!("one-{index}"));
        let revised = world.ledger.register().revise(&wanted).await.unwrap();
        assert!(matches!(revised, Revised::Written(_)), "{index}: {revised:?}");
    }
    let one_more = revision(&one, "more", "one-more");
    assert_eq!(world.ledger.register().revise(&one_more).await.unwrap(), Revised::TooMany);
    let known = world.ledger.register().revise(&revision(&one, "0", "one-0")).await.unwrap();
    assert!(matches!(known, Revised::Known(_)), "{known:?}");
    let of_other = world.ledger.register().revise(&revision(&other, "0", "other-0")).await.unwrap();
    assert!(matches!(of_other, Revised::Written(_)), "{of_other:?}");
}

pub(super) async fn a_revision_without_its_number_is_found(world: World) {
    let (_, one, other) = two_numbers(&world).await;
    world.ledger.register().revise(&revision(&one, "B", "one-B")).await.unwrap();
    world.ledger.register().revise(&revision(&other, "B", "other-B")).await.unwrap();
    // Only a write from outside can cause this.
    world.sql("delete from journal where number = 'other-B'").await;
    let stray = world.ledger.audits().stray_revisions(10).await.unwrap();
    assert_eq!(stray.iter().map(|r| &*r.number).collect::<Vec<_>>(), ["other-B"]);
}

/// An order of a family of counters that restart each month.
pub(super) fn dated(document: &str, date: &str) -> TakeRequest {
    let key = format!("type=T;month={}", &date[..7]);
    let mut record = record(document);
    record.document_date = date.into();
    record.mask = format!("{}-{{0:3}}", &date[..7]);
    record.counter_keys = vec![key.clone()];
    let specs = vec![spec(&key)];
    TakeRequest { family: Some("type=T".into()), specs, ..order_of(record) }
}

pub(super) async fn take(world: &World, at: At, orders: &[TakeRequest]) -> Vec<TakeOutcome> {
    world.ledger.take(at, world.node, orders, LOCK_WAIT).await.unwrap().outcomes
}

pub(super) fn is_taken(outcome: &TakeOutcome) -> bool {
    matches!(outcome, TakeOutcome::Taken(_))
}

pub(super) fn before(last_date: &str) -> TakeOutcome {
    TakeOutcome::BeforeLast { last_date: last_date.into() }
}

pub(super) async fn no_number_is_dated_before_the_last_of_its_family(world: World) {
    let at = world.database_epoch().await;
    assert_eq!(world.ledger.counters().last_date(7, "SEQ", "type=T").await.unwrap(), None);
    let orders = [dated("a", "2026-02-02"), dated("b", "2026-01-31"), dated("c", "2026-02-02")];
    let outcomes = take(&world, at, &orders).await;
    assert!(is_taken(&outcomes[0]) && is_taken(&outcomes[2]), "{outcomes:?}");
    assert_eq!(outcomes[1], before("2026-02-02"));
    let outcomes = take(&world, at, &[dated("d", "2026-02-01")]).await;
    assert_eq!(outcomes, [before("2026-02-02")]);
    // What a document already has is its own, whatever came since.
    let outcomes = take(&world, at, &[dated("e", "2026-03-01"), dated("a", "2026-02-02")]).await;
    assert!(is_taken(&outcomes[0]), "{outcomes:?}");
    assert!(matches!(outcomes[1], TakeOutcome::Found(_)), "{outcomes:?}");
    // Other families, and series without chronology, use their own dates.
    let other = TakeRequest { family: Some("type=U".into()), ..dated("f", "2026-01-01") };
    let none = TakeRequest { family: None, ..dated("g", "2026-01-01") };
    assert!(take(&world, at, &[other, none]).await.iter().all(is_taken));
    let last = world.ledger.counters().last_date(7, "SEQ", "type=T").await.unwrap();
    assert_eq!(last.as_deref(), Some("2026-03-01"));
    world.verify().await;
}

pub(super) async fn dates_follow_each_other_however_many_take_at_once(world: World) {
    let at = world.database_epoch().await;
    let others = [world.another().await, world.another().await];
    let mut takers = Vec::new();
    for taker in 0..8_usize {
        let ledger = if taker % 2 == 0 { others[0].clone() } else { others[1].clone() };
        let node = world.node;
        takers.push(tokio::spawn(async move {
            let mut taken = 0;
            for round in 0..12_usize {
                // Days in an order of each taker's own.
                let day = 1 + (round * 11 + taker * 5) % 28;
                let order = dated(&format!("{taker}-{round}"), &format!("2026-01-{day:02}"));
                let outcome = ledger.take(at, node, &[order], LOCK_WAIT).await.unwrap();
                taken += usize::from(is_taken(&outcome.outcomes[0]));
            }
            taken
        }));
    }
    let mut taken = 0;
    for taker in takers {
        taken += taker.await.unwrap();
    }
    let mut rows = world.ledger.register().find(&JournalFilter::default()).await.unwrap();
    assert_eq!(rows.len(), taken);
    rows.sort_by_key(|row| row.entry.taken[0].range.first);
    let dates: Vec<_> = rows.iter().map(|row| row.entry.record.document_date.clone()).collect();
    assert!(dates.is_sorted(), "{dates:?}");
    assert_eq!(
        world.ledger.counters().last_date(7, "SEQ", "type=T").await.unwrap().as_ref(),
        dates.last()
    );
    world.verify().await;
}

pub(super) async fn a_family_without_a_row_finds_its_last_date_in_the_journal(world: World) {
    let at = world.database_epoch().await;
    let unnoticed = |order: TakeRequest| TakeRequest { family: None, ..order };
    let longer = {
        let mut order = unnoticed(dated("x", "2026-09-09"));
        order.specs = vec![spec("type=TT;month=2026-09")];
        order
    };
    let orders = [unnoticed(dated("a", "2026-02-02")), unnoticed(dated("b", "2026-01-31")), longer];
    assert!(take(&world, at, &orders).await.iter().all(is_taken));
    let last = world.ledger.counters().last_date(7, "SEQ", "type=T").await.unwrap();
    assert_eq!(last.as_deref(), Some("2026-02-02"));
    let outcomes = take(&world, at, &[dated("c", "2026-02-01"), dated("d", "2026-02-02")]).await;
    assert_eq!(outcomes[0], before("2026-02-02"));
    assert!(is_taken(&outcomes[1]), "{outcomes:?}");
    let without_dimensions = world.ledger.counters().last_date(7, "SEQ", "").await.unwrap();
    assert_eq!(without_dimensions.as_deref(), Some("2026-09-09"));
}

pub(super) async fn a_chronology_that_is_switched_forgets_its_dates(world: World) {
    let template = numbering::builtin_series().remove(0);
    let apply = async |chronology| {
        let definition =
            SeriesDefinition { policy: Policy::Gapless, chronology, ..template.clone() };
        let saved_by = "u".to_owned();
        let change = SeriesChange {
            definition,
            expected: Expected::Anything,
            saved_by,
            reason: "r".into(),
            saved_at_us: NOW_US,
        };
        world.ledger.series().apply(&[change]).await.unwrap().remove(0)
    };
    let series = apply(true).await;
    assert_eq!(series.partition, 4);
    let gapless = At { partition: 4, epoch: 0 };
    let open = PartitionState::Open;
    let epoch = world.ledger.bump(gapless, open, world.node, "test").await.unwrap().unwrap();
    let at = At { epoch, ..gapless };
    world.ledger.claim_open(at, world.node, true, &Owner::Database).await.unwrap();
    let of_series = |document: &str, date: &str, family: Option<&str>| {
        let mut order = dated(document, date);
        let record = std::sync::Arc::make_mut(&mut order.record);
        record.series_id = series.series_id;
        order.question.series_id = series.series_id;
        order.specs[0].series_id = series.series_id;
        order.family = family.map(str::to_owned);
        order
    };
    let family = Some("type=T");
    assert!(is_taken(&take(&world, at, &[of_series("a", "2026-02-02", family)]).await[0]));
    apply(false).await;
    assert!(is_taken(&take(&world, at, &[of_series("b", "2026-02-20", None)]).await[0]));
    apply(true).await;
    let late = take(&world, at, &[of_series("c", "2026-02-10", family)]).await;
    assert_eq!(late, [before("2026-02-20")], "what was issued meanwhile counts");
}

/// Goal: a family with more numbers than a call may read becomes usable, whichever process dies on
/// the way. Method: its numbers are taken while their dates are not examined; then one caller and
/// the service do so in turn.
pub(super) async fn the_last_date_of_a_long_family_is_looked_for_in_slices(world: World) {
    let at = world.database_epoch().await;
    let unnoticed = |index: usize| {
        let month = 1 + index % 3;
        let date = format!("2026-{month:02}-{:02}", 1 + index % 28);
        TakeRequest { family: None, ..dated(&format!("n{index}"), &date) }
    };
    let orders: Vec<_> = (0..2_400).map(unnoticed).collect();
    assert!(take(&world, at, &orders).await.iter().all(is_taken));
    let asked = world.ledger.counters().last_date(7, "SEQ", "type=T").await;
    assert!(matches!(&asked, Err(LedgerError::LockTimeout { .. })), "{asked:?}");
    let early = dated("early", "2026-01-02");
    let error = world.ledger.take(at, world.node, std::slice::from_ref(&early), LOCK_WAIT).await;
    let Err(LedgerError::LockTimeout { counter: Some(counter), .. }) = &error else {
        panic!("it read the whole family: {error:?}")
    };
    assert_eq!(*counter, early.specs[0].name());
    // The service continues where the caller ended.
    let service = world.another().await;
    assert!(service.settle_slice(1_000).await.unwrap());
    drop(service);
    assert_eq!(take(&world, at, &[early]).await, [before("2026-03-28")]);
    assert!(!world.ledger.settle_slice(1_000).await.unwrap(), "nothing is left");
    assert!(is_taken(&take(&world, at, &[dated("late", "2026-03-28")]).await[0]));
}

/// Goal: no number is dated before one that was imported. Method: numbers of three periods of one
/// family, the second to arrive the last by date.
pub(super) async fn imported_dates_count_for_their_family(world: World) {
    let series = imports::series(&world).await;
    for (key, date, last) in [
        ("type=T;month=2024-01", "2024-01-15", "2024-01-15"),
        ("type=T;month=2024-03", "2024-03-05", "2024-03-05"),
        ("type=T;month=2024-02", "2024-02-10", "2024-03-05"),
    ] {
        let family = Some("type=T".to_owned());
        let counters = [ImportedCounter { family, ..imports::counter(&series, key, 1) }];
        let dated =
            with(imports::number(&series, key, 1), |record| record.document_date = date.into());
        imports::import(&world, &counters, vec![Ok(vec![dated])]).await.unwrap();
        let found =
            world.ledger.counters().last_date(series.series_id, "SEQ", "type=T").await.unwrap();
        assert_eq!(found.as_deref(), Some(last), "{key}");
    }
}
