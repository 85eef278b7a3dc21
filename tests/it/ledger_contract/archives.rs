//! Rows of the journal that move to files: what replaces them, and every end of an archiver.

use numerator::features::archive::{Folder, Moved, check, look};
use numerator::ledger::{
    ArchivedRun, Closing, Entry, Found, JournalFilter, LedgerError, NewRevision, Question, Record,
    SegmentNote, TakeOutcome,
};
use numerator::node::NodeId;

use super::shelf::{BEFORE_US, DEPLOYMENT, Shelf};
use super::world::{NOW_US, World, entry, order_of, question, range, spec, with};

fn asked(entry: &Entry) -> Question {
    Question { once_per_document: true, ..question(&entry.record) }
}

pub(super) async fn archived_values_stay_accounted_for_and_never_come_again(world: World) {
    let shelf = Shelf::of(world).await;
    let (kit, at) = (&shelf.kit, shelf.kit.at);
    let world = &kit.world;
    kit.checkpoint().await;
    // A second counter, with a value that is nowhere yet, and a step.
    let (other, ..) = world.seed(at, &spec("other")).await;
    let late = entry(at, other, 2);
    world.append(&[entry(at, other, 1), entry(at, other, 3)]).await;
    let wide = numerator::ledger::CounterSpec { step: 5, start: 5, ..spec("wide") };
    let (stepped, ..) = world.seed(at, &wide).await;
    let row = super::world::stepped(at, stepped, 5, 15, 5);
    world.append(&[with(row, |record| record.document_date = "2026-03-01".into())]).await;
    kit.checkpoint().await;
    let moved = shelf.archive().await;
    assert_eq!((moved.rows, moved.files.len()), (8, 1), "{moved:?}");
    // 1 to 10 of the first counter, 1 and 3 of the second, the range.
    assert_eq!(shelf.rows().await, 4);
    let id = 1;
    for (counter_id, first, last) in [(id, 1, 10), (other, 1, 1), (other, 3, 3), (stepped, 5, 15)] {
        let note = world.ledger.archive().of_value(counter_id, last).await.unwrap();
        assert!(note.is_some_and(|note: SegmentNote| note.file == moved.files[0]), "{first}");
    }
    assert_eq!(world.ledger.archive().of_value(other, 2).await.unwrap(), None);
    assert_eq!(world.holes(other, 0, 3).await, [(2, 2)]);
    let texts = ["k-4", "k-5"].map(|number| (number.to_owned(), String::new()));
    assert_eq!(world.ledger.imports().issued(&texts).await.unwrap(), [true, false]);
    // None of them comes again, as what it was or as another's; what is missing may still come.
    let again = range(at, id, 8, 10);
    for entry in [entry(at, id, 2), again, entry(at, other, 3)] {
        let appended = world.ledger.append(world.node, std::slice::from_ref(&entry)).await.unwrap();
        assert_eq!((appended.written, appended.collisions.len()), (0, 1), "{entry:?}");
    }
    world.append(std::slice::from_ref(&late)).await;
    world.verify().await;
    // The last date of a family is that of its rows.
    let last = world.ledger.counters().last_date(7, "SEQ", "wide").await.unwrap();
    assert_eq!(last.as_deref(), Some("2026-03-01"));
    // An epoch that ends afterwards lost nothing; counters continue.
    let next = world.redis_epoch(Closing::Exact).await;
    for (key, value) in [("other", 3), ("wide", 15)] {
        let seeding = numerator::ledger::CounterSpec { step: 1, start: 1, ..spec(key) };
        let seeding = if key == "wide" { wide.clone() } else { seeding };
        assert_eq!(world.seed(next, &seeding).await.1, value, "{key}");
    }
    assert_eq!((world.gaps(other).await, world.gaps(stepped).await), (vec![], vec![]));
    assert_eq!(world.ledger.unsettled(10).await.unwrap(), []);
    // Nothing remains to be moved except the row that came late.
    assert_eq!(shelf.archive().await.rows, 1);
    assert_eq!(shelf.archive().await, Moved::default());
    // A repeated append of a row that moved gets the answer that it is written.
    let known = world.ledger.append(world.node, std::slice::from_ref(&late)).await.unwrap();
    assert_eq!((known.known, known.collisions.len()), (1, 0));
    // Not an append of the same value for another document, or for none: that is a duplicate.
    for document_id in [Some("another".to_owned()), None] {
        let twice = with(late.clone(), |record| {
            record.allocation_id = uuid::Uuid::new_v4();
            record.document_id = document_id;
        });
        let appended = world.ledger.append(world.node, &[twice]).await.unwrap();
        assert_eq!((appended.known, appended.collisions.len()), (0, 1));
    }
    assert_eq!(
        shelf.look(JournalFilter { number: Some("k-4".into()), ..Default::default() }),
        ["k-4"]
    );
    let folder = Folder::open(shelf.path()).unwrap();
    let checked = check(&world.ledger, &folder, &[kit.key.public()]).await.unwrap();
    assert_eq!((checked.files, checked.rows, checked.findings), (2, 9, vec![]));
}

pub(super) async fn seals_of_archived_rows_are_compared_with_the_files(world: World) {
    let shelf = Shelf::of(world).await;
    let world = &shelf.kit.world;
    shelf.kit.checkpoint().await;
    // A batch of which a part moves.
    let (part, ..) = world.seed(shelf.kit.at, &spec("part")).await;
    let young = with(entry(shelf.kit.at, part, 2), |record| record.issued_at_us = BEFORE_US);
    let old = entry(shelf.kit.at, part, 1);
    world.ledger.append(world.node, &[old, young]).await.unwrap();
    shelf.kit.checkpoint().await;
    assert_eq!(shelf.archive().await.rows, 6);
    shelf.kit.checkpoint().await;
    let without = shelf.report(false).await;
    assert!(without.is_clean() && without.rows_archived == 6, "{without}");
    let whole = shelf.report(true).await;
    assert!(whole.is_clean() && whole.rows_archived == 0, "{whole}");
    assert_eq!(whole.rows, without.rows + 6 + 1);
    // More is missing than segments account for.
    world.sql(&format!("delete from journal where counter_id = {part} and first_value = 2")).await;
    for is_with_archive in [false, true] {
        let report = shelf.report(is_with_archive).await;
        assert!(!report.is_clean(), "{report}");
    }
    // A segment written without a key accounts for nothing.
    world.sql("update journal set context = replace(context, '\"rows\":5', '\"rows\":6')").await;
    let report = shelf.report(false).await;
    assert!(report.to_string().contains("its rows are not what was sealed"), "{report}");
}

pub(super) async fn a_document_whose_number_is_archived_is_numbered_once(world: World) {
    let shelf = Shelf::of(world).await;
    let world = &shelf.kit.world;
    let at = world.database_epoch().await;
    let taken = world.take(at, order_of(super::world::record("once"))).await;
    // Entries of other files are before its own.
    world
        .sql(
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000) \
             insert into archived_number (number_hash, counter_id, archive_file_id) \
             select i, 1, 99 from n",
        )
        .await;
    let moved = shelf.archive().await;
    let file = Some(moved.files[0].clone());
    let found =
        |archived: &Option<String>| Found { archived: archived.clone(), ..Found::default() };
    let questions = [
        asked(&taken),
        question(&taken.record),
        Question { series_id: 8, ..asked(&taken) },
        Question { document_id: Some("another".into()), ..asked(&taken) },
        Question { again: true, ..asked(&taken) },
    ];
    let answers = world.ledger.replays(&questions).await.unwrap();
    assert_eq!(answers, [&file, &None, &None, &None, &None].map(found));
    let order = super::world::order("once");
    let order = numerator::ledger::TakeRequest { question: asked(&taken), ..order };
    let outcome = world.take_again(at, &[order]).await.outcomes.remove(0);
    assert_eq!(outcome, TakeOutcome::Found(found(&file)));
    assert_eq!(world.ledger.archive().of_number(&taken.number).await.unwrap(), moved.files);
    assert_eq!(world.ledger.archive().of_document("once").await.unwrap(), moved.files);
    assert!(world.ledger.archive().of_document("another").await.unwrap().is_empty());
    // Once the file is deleted, the document is unknown; the value stays taken.
    let file = world.ledger.archive().files(0, 1).await.unwrap().remove(0);
    assert!(world.ledger.archive().delete(&file, "keeper", "kept long enough").await.unwrap());
    assert_eq!(world.ledger.replays(&[asked(&taken)]).await.unwrap(), [Found::default()]);
    world.verify().await;
    // A deletion that was interrupted before all of its entries were gone is repeated.
    let second = world.take(at, order_of(super::world::record("twice"))).await;
    shelf.archive().await;
    let file = world.ledger.archive().files(1, 1).await.unwrap().remove(0);
    world
        .sql(
            "update archive_file set deleted_at_us = 1, deleted_by = 'k', deleted_reason = 'r' \
             where archive_file_id = 2",
        )
        .await;
    assert!(world.ledger.archive().of_document("twice").await.unwrap().is_empty());
    assert!(!world.ledger.archive().delete(&file, "keeper", "again").await.unwrap());
    assert_eq!(world.ledger.replays(&[asked(&second)]).await.unwrap(), [Found::default()]);
}

/// A process that slept since it took them, and another one, for whose value the ledger has another
/// document's number by now: both were archived meanwhile (F34).
pub(super) async fn what_was_confirmed_may_be_archived_and_must_not_be_forgotten(world: World) {
    let shelf = Shelf::of(world).await;
    let world = &shelf.kit.world;
    let at = world.database_epoch().await;
    let numbered = |document_id: Option<&str>| {
        let document_id = document_id.map(str::to_owned);
        order_of(Record { document_id, mask: "n-{0:3}".into(), ..super::world::record("n") })
    };
    for document_id in [Some("slept"), None] {
        world.take(at, numbered(document_id)).await;
    }
    let other = World::open(&world.url).await;
    let lost = other.take(at, numbered(Some("lost"))).await;
    world.sql("delete from journal where document_id = 'lost'").await;
    let back = "taken = taken - 1, ceiling = ceiling - 1, journaled = journaled - 1";
    world.sql(&format!("update counter set {back}")).await;
    assert_eq!(world.take(at, numbered(Some("other"))).await.number, lost.number);
    assert_eq!(shelf.archive().await.rows, 8);
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    world.ledger.check_takes().await.unwrap();
    other.ledger.nodes().heartbeat(other.node, None).await.unwrap();
    let looked = other.ledger.check_takes().await;
    assert!(matches!(looked, Err(LedgerError::WentBack(_))), "{looked:?}");
}

pub(super) async fn what_is_young_revised_or_unsettled_stays_in_the_journal(world: World) {
    let shelf = Shelf::of(world).await;
    let (world, at) = (&shelf.kit.world, shelf.kit.at);
    assert_eq!(shelf.try_archive(NOW_US).await.unwrap(), Moved::default());
    let revised = NewRevision {
        of: numerator::ledger::ValueOf { counter_id: 1, value: 2 },
        allocation_id: shelf.allocation_of(2).await,
        rev: "B".into(),
        number: "k-2-B".into(),
        user_id: "u".into(),
        ip_address: None,
        reason: None,
        revised_at_us: NOW_US,
    };
    world.ledger.register().revise(&revised).await.unwrap();
    let (young, ..) = world.seed(at, &spec("young")).await;
    let issued = |entry: Entry, at_us| with(entry, |record| record.issued_at_us = at_us);
    world
        .append(&[issued(entry(at, young, 1), NOW_US - 1), issued(entry(at, young, 2), BEFORE_US)])
        .await;
    // 2 has a revision.
    assert_eq!(shelf.archive().await.rows, 5);
    world.verify().await;
    assert_eq!(world.ledger.audits().stray_revisions(10).await.unwrap(), []);
    // Values that are being searched for.
    let (lost, ..) = world.seed(at, &spec("lost")).await;
    world.append(&[entry(at, lost, 1)]).await;
    world
        .sql(&format!(
            "insert into unsettled (counter_id, epoch, after_value, upto_value, step, reason, \
             journaled, found, noted_at_us) values ({lost}, 1, 0, 9, 1, 'discarded', 0, 0, 0)"
        ))
        .await;
    assert_eq!(shelf.archive().await, Moved::default());
    world.sql("delete from unsettled").await;
    // A series that was saved although its texts may be ambiguous, and that cannot be read now:
    // only rows distinguish its texts.
    world
        .sql(
            &"insert into series (series_id, code, partition, active_version) OWN \
             values (7, 'S', 2, 1); \
             insert into series_version (series_id, version, definition, saved_by, reason, \
             saved_at_us) values (7, 1, '{\"code\":\"S\",\"ambiguity_accepted\":\"so\"}', 'u', \
             'r', 1)"
                .replace("OWN", shelf.own_ids()),
        )
        .await;
    let refused = shelf.try_archive(BEFORE_US).await.unwrap_err();
    assert!(refused.contains("saved with `ambiguity_accepted`"), "{refused}");
    // Also of a series that asks a source.
    world.sql("update series_version set definition = '{\"E\":{\"source\":\"erp\"}}'").await;
    assert_eq!(shelf.archive().await, Moved::default());
    world.sql("update series_version set definition = '{\"code\":\"S\"}'").await;
    world.sql("update partition set state = 'held'").await;
    let refused = shelf.try_archive(BEFORE_US).await.unwrap_err();
    assert!(refused.contains("a partition is held"), "{refused}");
    world.sql("update partition set state = 'open'").await;
    assert_eq!(shelf.archive().await.rows, 1);
}

/// Each step of an archiver is once its last, and the run is begun again.
pub(super) async fn whatever_ends_an_archiver_loses_nothing(world: World) {
    let shelf = Shelf::of(world).await;
    let world = &shelf.kit.world;
    shelf.kit.checkpoint().await;
    let stray = shelf.path().join("journal-00000007-0.parquet.partial");
    std::fs::write(&stray, "half").unwrap();
    let held = Folder::open_to_write(shelf.path(), DEPLOYMENT).unwrap();
    let refused = shelf.try_archive(BEFORE_US).await.unwrap_err();
    assert!(refused.contains("another process archives"), "{refused}");
    drop(held);
    // Segments are written when their rows are old: the rows after them are moved nevertheless.
    world.clock.set(BEFORE_US + 1_000_000);
    let mut ends = 0;
    loop {
        let ended = shelf.archive_until(ends).await;
        world.verify().await;
        let report = shelf.report(true).await;
        assert!(report.is_clean() && report.rows_archived == 0, "end {ends}: {report}");
        assert_eq!(report.batches, 3);
        if !ended {
            break;
        }
        ends += 1;
        assert!(ends < 60, "it goes on for ever");
    }
    assert!(ends > 5 && !stray.exists(), "{ends} ends");
    assert_eq!((shelf.files(".partial").len(), shelf.files(".lock").len()), (0, 1));
    let numbers = shelf.look(JournalFilter { user_id: Some("u".into()), ..Default::default() });
    assert_eq!(numbers.len(), 5, "{numbers:?}");
    assert_eq!(world.ledger.archive().under_way().await.unwrap(), None);
}

pub(super) async fn a_file_that_is_not_as_it_was_makes_no_room(world: World) {
    let shelf = Shelf::of(world).await;
    let ledger = &shelf.kit.world.ledger;
    assert!(shelf.archive_until(1).await);
    let rows = shelf.rows().await;
    let [file] = &shelf.files(".parquet.partial")[..] else { panic!("one that was not published") };
    let whole = std::fs::read(file).unwrap();
    let published = file.with_extension("");
    // Another folder, another file, none, and then the right one.
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(file, elsewhere.path().join("kept")).unwrap();
    let gone = shelf.try_archive(BEFORE_US).await.unwrap_err();
    assert!(gone.contains("archive to the folder that holds it"), "{gone}");
    let mut spoilt = whole.clone();
    spoilt[whole.len() / 2] ^= 1;
    std::fs::write(&published, &spoilt).unwrap();
    let changed = shelf.try_archive(BEFORE_US).await.unwrap_err();
    assert!(changed.contains("its SHA-256 is another"), "{changed}");
    assert_eq!(shelf.rows().await, rows);
    std::fs::write(&published, &whole).unwrap();
    assert_eq!(shelf.archive().await.rows, 5);
    // What other files say of it.
    let folder = Folder::open(shelf.path()).unwrap();
    let findings = async |keys: &[numerator::engine::sealing::PublicKey]| {
        check(ledger, &folder, keys).await.unwrap().findings.join("\n")
    };
    let key = shelf.kit.key.public();
    assert_eq!(findings(&[key]).await, "");
    assert!(findings(&[super::sealed::new_key().public()]).await.contains("not trusted"));
    std::fs::write(&published, &spoilt).unwrap();
    assert!(findings(&[key]).await.contains("its SHA-256 is another"));
    let named = look(&folder, &JournalFilter { limit: 1, ..Default::default() }, None);
    assert!(format!("{:#}", named.unwrap_err()).contains("its SHA-256 is another"));
    std::fs::remove_file(&published).unwrap();
    assert!(findings(&[key]).await.contains("is not there, and its manifest is"));
    // A number that is in the journal again.
    std::fs::write(&published, &whole).unwrap();
    let world = &shelf.kit.world;
    let (other, ..) = world.seed(shelf.kit.at, &spec("other")).await;
    world.append(&[Entry { number: "k-3".into(), ..entry(shelf.kit.at, other, 1) }]).await;
    assert!(findings(&[key]).await.contains("stands in the journal again"));
}

pub(super) async fn a_file_that_was_lost_is_given_up_while_the_journal_has_its_rows(world: World) {
    let shelf = Shelf::of(world).await;
    let ledger = &shelf.kit.world.ledger;
    let rows = shelf.rows().await;
    assert!(shelf.archive_until(1).await);
    let lost = ledger.archive().under_way().await.unwrap().unwrap();
    let run = ArchivedRun::of(&ledger.archive().archivable(1, -1, BEFORE_US, 1).await.unwrap().0)
        .unwrap();
    assert!(ledger.archive().delete(&lost, "keeper", "lost").await.unwrap());
    assert!(!ledger.archive().delete(&lost, "keeper", "lost").await.unwrap());
    // Its archiver may still be there.
    let late = ledger.archive().make_room(&lost, NodeId::random(), "keeper", &[run]).await;
    assert!(matches!(late, Err(LedgerError::Refused(_))), "{late:?}");
    assert_eq!((ledger.archive().under_way().await.unwrap(), shelf.rows().await), (None, rows));
    // A file some of whose rows were removed has them alone.
    assert!(shelf.archive_until(2).await);
    let begun = ledger.archive().under_way().await.unwrap().unwrap();
    let refused = ledger.archive().delete(&begun, "keeper", "lost").await;
    assert!(matches!(&refused, Err(LedgerError::Refused(why)) if why.contains("put it back")));
    assert!(!shelf.archive_until(100).await);
    shelf.kit.world.verify().await;
}

/// The rows of a run are removed only where a segment accounts for them, and only as the file has
/// them.
pub(super) async fn no_row_makes_room_that_the_file_does_not_have(world: World) {
    let shelf = Shelf::of(world).await;
    let ledger = &shelf.kit.world.ledger;
    assert!(shelf.archive_until(1).await);
    let of = ledger.archive().under_way().await.unwrap().unwrap();
    let (mut rows, _) = ledger.archive().archivable(1, -1, BEFORE_US, 100).await.unwrap();
    let node = NodeId::random();
    rows[2].user_id = "somebody".into();
    let run = [ArchivedRun::of(&rows).unwrap()];
    for (state, why) in [("held", "a partition is held"), ("open", "are not those of")] {
        shelf.kit.world.sql(&format!("update partition set state = '{state}'")).await;
        let refused = ledger.archive().make_room(&of, node, "keeper", &run).await.unwrap_err();
        assert!(matches!(&refused, LedgerError::Conflict(told) if told.contains(why)), "{refused}");
    }
    let another = ledger.archive().begin(&of.file).await;
    assert!(matches!(another, Err(LedgerError::Refused(_))), "{another:?}");
    let before = shelf.rows().await;
    if ledger.engine() != "sqlite" {
        let pool = sqlx::PgPool::connect(&shelf.kit.world.url).await.unwrap();
        let alone = sqlx::raw_sql("select make_room(1, 1, 3)").execute(&pool).await.unwrap_err();
        assert!(alone.to_string().contains("keeps its rows as they are"), "{alone}");
        // A foreign table of the same name, and a segment of no file.
        for bypass in [
            "create temp table journal (counter_id bigint, first_value bigint, last_value bigint, \
             number text, context text); insert into journal values (1, 0, 99, null, 'x'); \
             select make_room(1, 1, 3)",
            "create temp table kept as select * from journal where first_value = 3; \
             update kept set first_value = 1, last_value = 3, number = null, scope = null, \
             mask = null, outline = null, context = '{}'; \
             select make_room(1, 1, 3); insert into journal select * from kept",
        ] {
            let mut conn = pool.acquire().await.unwrap().detach();
            let bypass = format!("begin; {bypass}; commit");
            let refused = sqlx::raw_sql(sqlx::AssertSqlSafe(bypass)).execute(&mut conn).await;
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("keeps its rows as they are"), "{refused}");
        }
    }
    assert_eq!(shelf.rows().await, before);
}
