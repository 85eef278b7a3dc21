//! The record under seal, and a person who may write the database and has no key: every change is
//! named.

use std::io::Cursor;

use numerator::clock::SharedClock;
use numerator::engine::sealing::make;
use numerator::features::checkpoints::{Kept, Place, Trust, verify};
use numerator::ledger::{
    AccountRequest, Accounted, At, Bindable, CounterFilter, CounterSpec, MacCheck, SeenBatches,
};
use numerator::node::NodeId;

use super::sealed::{Kit, new_key, opened};
use super::world::{World, entry, spec};

pub(super) async fn what_was_written_is_as_it_was_bound(world: World) {
    let kit = Kit::of(world).await;
    kit.checkpoint().await;
    kit.write("l").await;
    let report = kit.assert_clean().await;
    assert_eq!((report.batches, report.rows, report.unbound_batches), (3, 10, 3), "{report}");
    kit.checkpoint().await;
    let report = kit.assert_clean().await;
    assert_eq!((report.checkpoints, report.batches, report.unbound_batches), (2, 6, 0));
    // Nothing is left to bind.
    kit.checkpoint().await;
    assert_eq!(kit.report().await.last, Some(2));
    // From the second on, the first three batches are left out.
    kit.world.sql("update journal set number = 'forged' where number = 'k-1'").await;
    let trust = Trust { keys: vec![kit.key.public()], from: 2 };
    let none: Option<Kept<Cursor<String>>> = None;
    let later = verify(&kit.world.ledger, &trust, none, &mut || Ok(None), |_, _| ()).await.unwrap();
    assert!(later.is_clean() && later.rows == 5, "{later}");
    assert!(!kit.report().await.is_clean());
}

/// What is done, which of the three batches is named, and as what.
const CHANGES: [(&str, usize, &str); 14] = [
    ("update journal set number = 'forged' where number = 'k-1'", 1, "changed"),
    ("update journal set document_day = '2026-01-03' where number = 'k-10'", 3, "changed"),
    ("update journal set issued_at_us = issued_at_us + 1 where number = 'k-4'", 2, "changed"),
    ("update journal_name set name = 'somebody' where name = 'u'", 1, "changed"),
    ("delete from journal_name where name = 'u'", 1, "not there"),
    ("update journal_batch set journaled_at_us = 1 where batch_id = TWO", 2, "changed"),
    ("delete from journal where number = 'k-3'", 1, "has 2 of its 3 rows"),
    ("delete from journal where number = 'k-4'", 2, "all its rows are gone"),
    (
        "delete from journal where batch_id = TWO; delete from journal_batch \
             where batch_id = TWO",
        2,
        "is gone; checkpoint 1 binds it",
    ),
    (
        "delete from journal where batch_id = THREE; delete from journal_batch \
             where batch_id = THREE",
        3,
        "is gone",
    ),
    (
        "update journal set number = 'x' where number = 'k-1'; \
             update journal set number = 'k-1' where number = 'k-10'; \
             update journal set number = 'k-10' where number = 'x'",
        1,
        "exchanged",
    ),
    (
        "update journal set batch_id = 0 where number = 'k-4'; \
             update journal set batch_id = TWO where number = 'k-10'; \
             update journal set batch_id = THREE where number = 'k-4'",
        2,
        "exchanged",
    ),
    ("update journal_batch set seal = node_id where batch_id = TWO", 2, "is not what"),
    ("update journal_batch set seal = proof where batch_id = ONE", 1, "is not what"),
];

/// More batches from before the key than the first checkpoint binds.
pub(super) async fn what_was_there_before_the_key_is_taken_as_it_is_however_much_it_is(
    world: World,
) {
    let mut kit = Kit::of(world).await;
    let with_key = kit.world.ledger.clone();
    kit.world.ledger = opened(&kit.world, None).await;
    // A batch for each partition.
    let roomy = CounterSpec { headroom: 10_000, ..spec("more") };
    let (id, ..) = kit.world.seed(kit.at, &roomy).await;
    let more = (1..=10_000_u32).map(|value| entry(at_partition(kit.at, value), id, value.into()));
    kit.world.append(&more.collect::<Vec<_>>()).await;
    kit.write("l").await;
    kit.world.ledger = with_key.clone();
    kit.try_checkpoint().await;
    kit.checkpoint().await;
    let report = kit.assert_clean().await;
    assert_eq!((report.checkpoints, report.batches, report.rows), (2, 10_006, 10_010), "{report}");
    let keyless = async |kit: &Kit| {
        let order = everything();
        let Accounted::Whole(all) = kit.world.ledger.register().accounts(&order).await.unwrap()
        else {
            panic!("too many rows");
        };
        all.iter().map(|account| account.rows.keyless).sum::<u64>()
    };
    assert_eq!(keyless(&kit).await, 0);
    let trust = Trust { keys: vec![kit.key.public()], from: 2 };
    let none: Option<Kept<Cursor<String>>> = None;
    let later = verify(&kit.world.ledger, &trust, none, &mut || Ok(None), |_, _| ()).await.unwrap();
    assert!(later.is_clean() && later.rows == 3 + 5, "{later}");
    // What comes without the key from now on is named.
    kit.world.ledger = opened(&kit.world, None).await;
    kit.write("m").await;
    kit.world.ledger = with_key;
    kit.checkpoint().await;
    let (_, said) = kit.complaint().await;
    assert!(said.contains("without the key"), "{said}");
    assert_eq!(keyless(&kit).await, 5);
}

/// The same epoch of another partition.
fn at_partition(at: At, partition: u32) -> At {
    At { partition, ..at }
}

/// All counters of the series that cases use.
fn everything() -> AccountRequest {
    AccountRequest {
        filter: CounterFilter { series_id: Some(7), ..CounterFilter::default() },
        counters_max: 10,
        rows_max: 20_000,
        entries_max: 100,
        seen: Some(SeenBatches { upto: i64::MAX, open: Vec::new() }),
    }
}

/// Each change is made, named, and taken back.
pub(super) async fn whatever_a_person_with_write_access_changes_is_named(world: World) {
    let kit = Kit::of(world).await;
    kit.world.sql("insert into event (at_us, kind, detail) values (1, 'act', '{}')").await;
    kit.checkpoint().await;
    let [one, two, three] = kit.batches().await[..] else { panic!("three batches") };
    kit.keep().await;
    for (change, place, why) in CHANGES {
        let ids = [("ONE", one), ("TWO", two), ("THREE", three)];
        let batch = [one, two, three][place - 1];
        let change =
            ids.iter().fold(change.to_owned(), |all, (it, id)| all.replace(it, &id.to_string()));
        kit.world.sql(&change).await;
        let (found, said) = kit.complaint().await;
        assert_eq!(found, Place::Batch(batch), "{change}:\n{said}");
        assert!(said.contains(why), "{change}:\n{said}");
        kit.put_back().await;
        kit.assert_clean().await;
    }
    // Rows that are added: to a batch, and to one of their own without a proof.
    kit.add_row(&one.to_string()).await;
    let (place, said) = kit.complaint().await;
    assert!(place == Place::Batch(one) && said.contains("has a row more"), "{said}");
    kit.put_back().await;
    kit.world
        .sql(
            "create table new_batch as select * from journal_batch where batch_id = 1; \
             update new_batch set batch_id = 900, proof = null",
        )
        .await;
    let own_ids =
        if kit.world.ledger.engine() == "sqlite" { "" } else { "overriding system value" };
    let add = format!("insert into journal_batch {own_ids} select * from new_batch");
    kit.world.sql(&add).await;
    kit.add_row("900").await;
    let (place, said) = kit.complaint().await;
    assert!(place == Place::Batch(900) && said.contains("without the key"), "{said}");
    kit.put_back().await;
    kit.assert_clean().await;
    // Acts are in the same chain.
    kit.world.sql("update event set detail = '[]'").await;
    let (place, said) = kit.complaint().await;
    assert!(place == Place::Event(1), "{said}");
}

pub(super) async fn a_chain_made_anew_is_found_by_its_key_and_by_what_was_kept(world: World) {
    let kit = Kit::of(world).await;
    kit.checkpoint().await;
    kit.write("l").await;
    kit.checkpoint().await;
    let kept = kit.lines().await;
    assert!(kit.report_with(Some(&kept)).await.is_clean());
    // The tail is cut off, with the checkpoint that binds it: only copies elsewhere show it.
    kit.world
        .sql(
            "create table kept_checkpoint as select * from checkpoint; \
             delete from journal where batch_id > 3; delete from journal_batch where batch_id > 3; \
             delete from checkpoint where checkpoint_no = 2",
        )
        .await;
    kit.assert_clean().await;
    let report = kit.report_with(Some(&kept)).await;
    let places: Vec<Place> = report.findings.iter().map(|finding| finding.place).collect();
    let gone = [4, 5, 6].map(Place::Batch);
    assert_eq!(places, [&gone[..], &[Place::Checkpoint(2)]].concat(), "{report}");
    // All of it made anew, with a key of one's own.
    kit.world.sql("delete from checkpoint").await;
    let clock: SharedClock = kit.world.clock.clone();
    make(&kit.world.ledger, &clock, "n", &new_key()).await.unwrap();
    let (_, said) = kit.complaint().await;
    assert!(said.contains("checkpoint 1: is signed by a key that is not trusted"), "{said}");
    let report = kit.report_with(Some(&kept)).await.to_string();
    assert!(report.contains("checkpoint 1: is not the one that was kept elsewhere"), "{report}");
    // A text that was changed, a checkpoint that is missing, one out of its place.
    let put_back = "delete from checkpoint; insert into checkpoint select * from kept_checkpoint; ";
    for (change, why) in [
        (
            "update checkpoint set body = replace(body, '\"node\":\"n\"', '\"node\":\"m\"') \
          where checkpoint_no = 1",
            "checkpoint 1: its signature is not of its text and key",
        ),
        ("delete from checkpoint where checkpoint_no = 1", "checkpoint 1: is not there, and 2 is"),
        (
            "update checkpoint set checkpoint_no = 3 where checkpoint_no = 2",
            "checkpoint 3: its text is of checkpoint 2",
        ),
    ] {
        kit.world.sql(&format!("{put_back}{change}")).await;
        let (_, said) = kit.complaint().await;
        assert!(said.contains(why), "{change}:\n{said}");
    }
}

pub(super) async fn rows_are_kept_from_whoever_is_not_their_owner(world: World) {
    let kit = Kit::of(world).await;
    kit.checkpoint().await;
    let of_sqlite = kit.world.ledger.engine() == "sqlite";
    for change in [
        "update journal set number = 'forged' where number = 'k-1'",
        "delete from journal where number = 'k-1'",
        "update journal_batch set epoch = 9",
        "delete from journal_batch",
        "update journal_name set name = 'x'",
        "delete from journal_kind",
        "update checkpoint set body = ''",
        "delete from checkpoint",
    ] {
        let refused = if of_sqlite {
            let pool = sqlx::SqlitePool::connect(&kit.world.url).await.unwrap();
            sqlx::raw_sql(change).execute(&pool).await.unwrap_err()
        } else {
            let pool = sqlx::PgPool::connect(&kit.world.url).await.unwrap();
            sqlx::raw_sql(change).execute(&pool).await.unwrap_err()
        };
        assert!(refused.to_string().contains("keeps its rows as they are"), "{change}: {refused}");
    }
    if !of_sqlite {
        let pool = sqlx::PgPool::connect(&kit.world.url).await.unwrap();
        for table in ["journal", "journal_batch", "journal_kind", "journal_name", "checkpoint"] {
            let truncate = sqlx::AssertSqlSafe(format!("truncate {table}"));
            sqlx::raw_sql(truncate).execute(&pool).await.unwrap_err();
        }
    }
    kit.assert_clean().await;
}

pub(super) async fn a_batch_of_a_process_without_the_key_is_named(world: World) {
    let mut kit = Kit::of(world).await;
    kit.checkpoint().await;
    // A program that may write the database, and has no key.
    let with_key = kit.world.ledger.clone();
    kit.world.ledger = opened(&kit.world, None).await;
    kit.world.node = NodeId::random();
    kit.world.join(kit.world.node).await;
    assert!(kit.world.ledger.participate(kit.at, kit.world.node).await.unwrap());
    kit.write("l").await;
    kit.world.ledger = with_key;
    let unbound =
        kit.world.ledger.checkpoints().bindable(None, Bindable::Batches, (3, 4), 1).await.unwrap();
    assert_eq!(unbound[0].standing, MacCheck::Unproven);
    kit.checkpoint().await;
    let (place, said) = kit.complaint().await;
    assert!(place == Place::Batch(4) && said.contains("without the key"), "{said}");
    // A change with a made-up proof.
    kit.write("m").await;
    kit.world.sql("update journal_batch set proof = seal where batch_id = 8").await;
    kit.checkpoint().await;
    let (_, said) = kit.complaint().await;
    assert!(said.contains("batch 8: was there with a false proof"), "{said}");
}

/// A transaction that drew its batch's id before others, and commits after a checkpoint of theirs.
pub(super) async fn a_batch_that_comes_late_is_bound_late(world: World) {
    let kit = Kit::of(world).await;
    kit.keep().await;
    let away =
        "delete from journal where batch_id = 2; delete from journal_batch where batch_id = 2";
    kit.world.sql(away).await;
    kit.checkpoint().await;
    kit.put_back().await;
    let report = kit.assert_clean().await;
    assert_eq!((report.batches, report.unbound_batches), (2, 1), "{report}");
    kit.checkpoint().await;
    let report = kit.assert_clean().await;
    assert_eq!((report.batches, report.unbound_batches), (3, 0), "{report}");
    // It has been bound: nothing more may come there.
    kit.world.sql("update journal set number = 'forged' where batch_id = 2").await;
    assert_eq!(kit.complaint().await.0, Place::Batch(2));
}

pub(super) async fn a_part_that_was_kept_out_is_no_part_of_the_seal(world: World) {
    let kit = Kit::of(world).await;
    let (world, at) = (&kit.world, kit.at);
    let (id, ..) = world.seed(at, &spec("other")).await;
    let mut twice = entry(at, id, 1);
    twice.number = "k-1".into();
    let appended =
        world.ledger.append(world.node, &[twice.clone(), entry(at, id, 2)]).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (1, 1));
    // All of it is kept out: there is no batch.
    let before = kit.batches().await.len();
    let mut again = entry(at, id, 3);
    again.number = "k-1".into();
    let appended = world.ledger.append(world.node, &[again]).await.unwrap();
    assert_eq!((appended.written, appended.collisions.len()), (0, 1));
    assert_eq!(kit.batches().await.len(), before);
    kit.checkpoint().await;
    let report = kit.assert_clean().await;
    assert_eq!((report.batches, report.rows), (4, 6), "{report}");
}
