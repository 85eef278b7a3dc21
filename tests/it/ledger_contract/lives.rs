//! What becomes of a number beside its journal row: void, replaced, corrected.

use std::collections::BTreeMap;
use std::slice::from_ref;

use numerator::ledger::{
    ArchivedRun, CORRECTIONS_MAX, Closing, Corrected, CounterSpec, Entry, JournalFilter, LifeAct,
    Linked, NewAct, NewArchiveFile, NewRevision, NumberStatus, Replacement, Revised, Run,
    SharedLedger, ValueOf, Voided,
};
use sqlx::AssertSqlSafe;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::shelf::{BEFORE_US, Shelf};
use super::world::{NOW_US, World, entry, range, spec};

ledger_contract! {
    lives {
        a_number_is_voided_once_and_replaced_once
        a_chain_of_replacements_is_walked_both_ways
        of_many_voids_and_links_at_once_one_is_written
        a_void_number_gets_no_revision_and_no_correction
        what_is_void_or_corrected_stays_in_the_journal
    }
}

/// Callers that come at once.
const AT_ONCE: usize = 8;

/// An act upon a value of an entry.
pub(super) fn act_of(of: &Entry, value: u64, reason: Option<&str>) -> NewAct {
    let taken = of.taken[0];
    let value_of = |value: u64| i64::try_from(value).unwrap();
    NewAct {
        of: ValueOf { counter_id: taken.counter_id, value: value_of(value) },
        row_first: value_of(taken.range.first),
        allocation_id: of.record.allocation_id,
        number: format!("{}-{value}", of.number),
        user_id: "registrar".into(),
        ip_address: Some("::1".into()),
        reason: reason.map(str::to_owned),
    }
}

fn act(of: &Entry, reason: Option<&str>) -> NewAct {
    act_of(of, of.taken[0].range.first, reason)
}

fn replacement(number: &str) -> Replacement {
    Replacement { allocation_id: Uuid::now_v7(), number: number.into() }
}

fn values(all: &[(&str, &str)]) -> BTreeMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Corrects a number, voids it and replaces it.
pub(super) async fn live_it_all(world: &World, of: &Entry) {
    let life = world.ledger.life();
    let corrected = life.correct(&act(of, Some("a correction")), &values(&[("NOTE", "x")])).await;
    assert!(matches!(corrected.unwrap(), Corrected::Written(_)));
    let voided = life.void(&act(of, Some("not needed"))).await.unwrap();
    assert!(matches!(voided, Voided::Written(_)));
    let linked = life.replace(&act(of, None), &replacement("other")).await.unwrap();
    assert!(matches!(linked, Linked::Written(_)));
}

/// Numbers in the journal, and a range of ten.
async fn numbers(world: &World) -> [Entry; 3] {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &CounterSpec { headroom: 50, ..spec("k") }).await;
    let entries = [entry(open, id, 1), entry(open, id, 2), range(open, id, 3, 12)];
    world.append(&entries).await;
    entries
}

fn revision(of: &Entry, rev: &str) -> NewRevision {
    NewRevision {
        of: act(of, None).of,
        allocation_id: of.record.allocation_id,
        rev: rev.into(),
        number: format!("{}-{rev}", of.number),
        user_id: "u".into(),
        ip_address: None,
        reason: None,
        revised_at_us: NOW_US,
    }
}

pub(super) async fn a_number_is_voided_once_and_replaced_once(world: World) {
    let [one, other, ten] = numbers(&world).await;
    let life = world.ledger.life();
    let wanted = act(&one, Some("typed wrongly"));
    let early = life.replace(&act(&one, None), &replacement("r")).await.unwrap();
    assert_eq!(early, Linked::NotVoided);
    let Voided::Written(row) = life.void(&wanted).await.unwrap() else { panic!() };
    assert_eq!((row.act, row.of, row.subject), (LifeAct::Voided, wanted.of, wanted.allocation_id));
    assert_eq!(row.document_id, one.record.document_id);
    assert!(row.is_of("registrar", "typed wrongly") && !row.is_of("x", "typed wrongly"));
    let second = NewAct { reason: Some("another reason".into()), ..wanted.clone() };
    assert_eq!(life.void(&second).await.unwrap(), Voided::Known(row.clone()));
    let (first, late) = (replacement("first"), replacement("late"));
    let Linked::Written(link) = life.replace(&wanted, &first).await.unwrap() else { panic!() };
    assert_eq!(
        (link.other, link.replacement.as_deref()),
        (Some(first.allocation_id), Some("first"))
    );
    assert_eq!(life.replace(&wanted, &first).await.unwrap(), Linked::Written(link.clone()));
    assert_eq!(life.replace(&wanted, &late).await.unwrap(), Linked::Other(link.clone()));
    let standing = life.standing_of(wanted.of).await.unwrap();
    assert_eq!((standing.voided, standing.replaced), (Some(row), Some(link)));
    // A number within a range is one value, and a stranger's row is none.
    let member = act_of(&ten, 7, Some("of a range"));
    assert!(matches!(life.void(&member).await.unwrap(), Voided::Written(_)));
    for outside in [
        act_of(&ten, 13, Some("beyond it")),
        NewAct { allocation_id: other.record.allocation_id, ..act(&ten, Some("not its own")) },
        NewAct { row_first: 4, ..member },
    ] {
        assert_eq!(life.void(&outside).await.unwrap(), Voided::Gone, "{outside:?}");
    }
    let find = async |status| {
        let filter = JournalFilter { status: Some(status), ..JournalFilter::default() };
        let rows = world.ledger.register().find(&filter).await.unwrap();
        let mut found: Vec<_> = rows.into_iter().map(|row| row.entry.number).collect();
        found.sort();
        found
    };
    let mut issued = vec![other.number.clone(), ten.number.clone()];
    issued.sort();
    assert_eq!(find(NumberStatus::Issued).await, issued);
    assert_eq!(find(NumberStatus::Replaced).await, from_ref(&one.number));
    assert_eq!(find(NumberStatus::Voided).await, from_ref(&ten.number), "one of it is void");
    life.void(&act(&other, Some("void alone"))).await.unwrap();
    assert_eq!(find(NumberStatus::Voided).await, issued);
    let taken = ten.taken[0];
    let all = Run { first: 3, last: 12, step: 1 };
    assert_eq!(life.count_once(taken.counter_id, all, LifeAct::Voided).await.unwrap(), 1);
    let acts = life.of_rows(&[(taken.counter_id, all)]).await.unwrap();
    assert_eq!(acts.iter().map(|act| act.of.value).collect::<Vec<_>>(), [7]);
    assert_eq!(world.ledger.audits().stray_acts(10).await.unwrap(), []);
    // What no trigger keeps is found.
    world.sql(&format!("delete from journal where number = '{}'", other.number)).await;
    let stray = world.ledger.audits().stray_acts(10).await.unwrap();
    assert_eq!(stray.iter().map(|act| act.of).collect::<Vec<_>>(), [act(&other, None).of]);
}

/// The chain of a number whose replacements were replaced themselves is the same from each end.
pub(super) async fn a_chain_of_replacements_is_walked_both_ways(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &CounterSpec { headroom: 50, ..spec("k") }).await;
    let entries: Vec<Entry> = (1..=40).map(|value| entry(open, id, value)).collect();
    world.append(&entries).await;
    let life = world.ledger.life();
    for pair in entries.windows(2) {
        life.void(&act(&pair[0], Some("one after the other"))).await.unwrap();
        let next = Replacement {
            allocation_id: pair[1].record.allocation_id,
            number: pair[1].number.clone(),
        };
        life.replace(&act(&pair[0], None), &next).await.unwrap();
    }
    let chain = async |index: usize| {
        let of = &entries[index];
        let links = life.chain_of(act(of, None).of, of.record.allocation_id).await.unwrap();
        links.into_iter().map(|link| link.of.value).collect::<Vec<_>>()
    };
    let links = |from: i64, upto: i64| (from..=upto).collect::<Vec<_>>();
    assert_eq!(chain(0).await, links(1, 32), "so far and no further");
    assert_eq!(chain(39).await, links(8, 39));
    assert_eq!(chain(20).await, links(1, 39));
}

/// The numbers of one call on many connections, each a process of its own.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    world: &World,
    call: impl Fn(SharedLedger, usize) -> F,
) -> Vec<T> {
    let mut calls = JoinSet::new();
    for index in 0..AT_ONCE {
        let ledger = if index % 2 == 0 { world.ledger.clone() } else { world.another().await };
        calls.spawn(call(ledger, index));
    }
    calls.join_all().await
}

pub(super) async fn of_many_voids_and_links_at_once_one_is_written(world: World) {
    let [one, ..] = numbers(&world).await;
    let wanted = act(&one, Some("typed wrongly"));
    let outcomes = at_once(&world, |ledger, index| {
        let new = NewAct { reason: Some(format!("reason number {index}")), ..wanted.clone() };
        async move { ledger.life().void(&new).await.unwrap() }
    });
    let outcomes = outcomes.await;
    let written: Vec<_> = outcomes.iter().filter(|it| matches!(it, Voided::Written(_))).collect();
    assert_eq!(written.len(), 1, "{outcomes:?}");
    let row = world.ledger.life().standing_of(wanted.of).await.unwrap().voided;
    assert!(outcomes.iter().all(|it| match it {
        Voided::Written(one) | Voided::Known(one) => Some(one) == row.as_ref(),
        Voided::Gone => false,
    }));
    let outcomes = at_once(&world, |ledger, index| {
        let (wanted, next) = (wanted.clone(), replacement(&index.to_string()));
        async move { ledger.life().replace(&wanted, &next).await.unwrap() }
    });
    let outcomes = outcomes.await;
    let written = outcomes.iter().filter(|it| matches!(it, Linked::Written(_))).count();
    let others = outcomes.iter().filter(|it| matches!(it, Linked::Other(_))).count();
    assert_eq!((written, others), (1, AT_ONCE - 1), "{outcomes:?}");
}

pub(super) async fn a_void_number_gets_no_revision_and_no_correction(world: World) {
    let [one, other, ten] = numbers(&world).await;
    let (life, register) = (world.ledger.life(), world.ledger.register());
    let correct = async |of: &Entry, value: &str| {
        let wanted = values(&[("NOTE", value), ("REV", "A")]);
        life.correct(&act(of, Some("a correction")), &wanted).await.unwrap()
    };
    let Corrected::Written(first) = correct(&one, "x").await else { panic!() };
    assert_eq!(first.changes.keys().collect::<Vec<_>>(), ["NOTE"], "REV has that value");
    assert_eq!((first.changes["NOTE"].old.as_deref(), &*first.changes["NOTE"].new), (None, "x"));
    assert_eq!(correct(&one, "x").await, Corrected::Same(Some(first)));
    let Corrected::Written(second) = correct(&one, "y").await else { panic!() };
    assert_eq!(second.changes["NOTE"].old.as_deref(), Some("x"));
    register.revise(&revision(&one, "B")).await.unwrap();
    let Voided::Written(row) = life.void(&act(&one, Some("typed wrongly"))).await.unwrap() else {
        panic!()
    };
    assert_eq!(correct(&one, "z").await, Corrected::Voided(row.clone()));
    assert_eq!(register.revise(&revision(&one, "C")).await.unwrap(), Revised::Voided(row));
    for value in 0..CORRECTIONS_MAX {
        assert!(matches!(correct(&other, &value.to_string()).await, Corrected::Written(_)));
    }
    assert_eq!(correct(&other, "one more").await, Corrected::TooMany);
    // Both sides of the meeting hold what the other one needs: the counter's row an archiver, the
    // journal's row a revision.
    if world.ledger.engine() == "postgres" {
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        let held = ["counter where counter_id", "journal where first_value = 3 and counter_id"];
        for (index, held) in held.into_iter().enumerate() {
            let mut session = pool.begin().await.unwrap();
            let id = ten.taken[0].counter_id;
            let lock = format!("select 1 from {held} = {id} for update");
            sqlx::query(AssertSqlSafe(lock)).fetch_all(&mut *session).await.unwrap();
            let member = act_of(&ten, 5 + index as u64, Some("of a range"));
            let ledger = world.ledger.clone();
            let call = tokio::spawn(async move { ledger.life().void(&member).await });
            assert!(world.meets_lock(&pool, &call).await, "{held}: it does not wait");
            session.rollback().await.unwrap();
            assert!(matches!(call.await.unwrap().unwrap(), Voided::Written(_)));
        }
    }
}

pub(super) async fn what_is_void_or_corrected_stays_in_the_journal(world: World) {
    let shelf = Shelf::of(world).await;
    let (world, at) = (&shelf.kit.world, shelf.kit.at);
    let life = world.ledger.life();
    let (id, ..) = world.seed(at, &spec("lives")).await;
    let entries = [entry(at, id, 1), entry(at, id, 2), range(at, id, 3, 6), entry(at, id, 7)];
    world.append(&entries).await;
    let act = |index: usize, value| act_of(&entries[index], value, Some("a reason"));
    life.void(&act(0, 1)).await.unwrap();
    let note = [("NOTE".to_owned(), "x".to_owned())].into();
    life.correct(&act(1, 2), &note).await.unwrap();
    // One number of a range keeps all of it.
    life.void(&act(2, 5)).await.unwrap();
    let before = shelf.rows().await;
    assert_eq!(shelf.archive().await.rows, before - 3, "7, and all of the first counter");
    for value in [1, 2, 3] {
        assert!(world.ledger.register().row_of(id, value).await.unwrap().is_some(), "{value}");
    }
    assert!(world.ledger.register().row_of(id, 7).await.unwrap().is_none());
    assert_eq!(life.void(&act(3, 7)).await.unwrap(), Voided::Gone, "it is in the archive");
    // A number that was chosen, and voided before its row made room, stays as well.
    let (late, ..) = world.seed(at, &spec("late")).await;
    let chosen = entry(at, late, 1);
    world.append(from_ref(&chosen)).await;
    let archive = world.ledger.archive();
    let (rows, _) = archive.archivable(late, 0, BEFORE_US, 10).await.unwrap();
    assert_eq!(rows.len(), 1);
    let run = ArchivedRun::of(&rows).unwrap();
    let file = NewArchiveFile {
        name: "late.parquet".into(),
        sha256: vec![7; 32],
        rows: 1,
        manifest: "{}".into(),
        before_us: BEFORE_US,
        last_issued_us: NOW_US,
        written_by: "keeper".into(),
    };
    let file = archive.begin(&file).await.unwrap();
    life.void(&act_of(&chosen, 1, Some("meanwhile"))).await.unwrap();
    assert_eq!(archive.make_room(&file, world.node, "keeper", &[run]).await.unwrap(), 0);
    assert!(world.ledger.register().row_of(late, 1).await.unwrap().is_some());
    world.verify().await;
    assert_eq!(world.ledger.audits().stray_acts(10).await.unwrap(), []);
}
