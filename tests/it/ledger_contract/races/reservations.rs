//! Reservations and their callers' own transactions, at the critical moments.

use std::time::{Duration, Instant};

use numerator::ledger::{
    ActOutcome, NewRevision, Reservation, ReservationAct, ReservationsSwept, Revised, TakeOutcome,
    TakeRequest, ValueOf,
};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::{LIMIT, Scene, let_go};
use crate::ledger_contract::changes;
use crate::ledger_contract::reservations::reserving;
use crate::ledger_contract::world::{LOCK_WAIT, NOW_US, World, order};

/// A reservation that is over soon.
pub(super) async fn brief(world: &World, at: numerator::ledger::At, document: &str) -> Reservation {
    let order = TakeRequest { reserve_us: Some(1_500_000), ..order(document) };
    match world.outcome(at, order).await {
        TakeOutcome::Reserved(reservation) => *reservation,
        other => panic!("not reserved: {other:?}"),
    }
}

/// Waits until the time of a reservation is over by the server's clock.
pub(super) async fn over(scene: &mut Scene, reservation: &Reservation) {
    let started = Instant::now();
    let is_over = format!(
        "select extract(epoch from clock_timestamp()) * 1000000 > {}",
        reservation.expires_at_us
    );
    while !sqlx::query_scalar::<_, bool>(AssertSqlSafe(is_over.clone()))
        .fetch_one(&mut scene.looks)
        .await
        .unwrap()
    {
        assert!(started.elapsed() < LIMIT, "time stands still");
        // Between two checks.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(super) async fn run(session: &mut PgConnection, sql: impl Into<String>) -> Result<(), String> {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.into())).execute(session).await;
    let code = |error: sqlx::Error| {
        let code = error.as_database_error().and_then(|error| error.code().map(Into::into));
        code.unwrap_or_else(|| error.to_string())
    };
    done.map(drop).map_err(code)
}

pub(super) fn confirm(reservation: &Reservation) -> String {
    format!("select confirm('{}')", reservation.id())
}

pub(super) fn first(outcome: &TakeOutcome) -> u64 {
    match outcome {
        TakeOutcome::Taken(entry) => entry.taken[0].range.first,
        other => panic!("not taken: {other:?}"),
    }
}

/// Goal: a value whose confirmation is not committed yet is nobody else's, however late that comes
/// (L2). Method: the caller's transaction outlasts the reservation's time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_callers_transaction_holds_is_nobody_elses() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    for commits in [true, false] {
        let document = format!("late-{commits}");
        let held = brief(&scene.world, at, &document).await;
        let mut caller = scene.hold(confirm(&held)).await;
        over(&mut scene, &held).await;
        let world = &scene.world;
        assert_eq!(world.sweep().await, ReservationsSwept::default());
        // Its own document waits for what becomes of it, and every other one takes another value.
        let again = world.outcome(at, reserving(order(&document))).await;
        assert_eq!(again, TakeOutcome::StillHeld);
        let other = world.outcome(at, order(&format!("other-{commits}"))).await;
        assert!(first(&other) > held.entry.taken[0].range.first);
        run(&mut caller, if commits { "commit" } else { "rollback" }).await.unwrap();
        let swept = world.sweep().await;
        let expected = match commits {
            true => ReservationsSwept { issued: 1, ..Default::default() },
            false => ReservationsSwept { expired: 1, ..Default::default() },
        };
        assert_eq!(swept, expected);
        let expected = if commits { ActOutcome::Repeated } else { ActOutcome::Expired };
        assert_eq!(world.confirm(&held).await, expected);
        if !commits {
            let next = world.outcome(at, order("next")).await;
            assert_eq!(first(&next), held.entry.taken[0].range.first, "it came back");
        }
        world.is_whole().await;
    }
}

/// Goal: of a confirmation and a cancellation at once one is done (L1). Method: both wait for the
/// reservation's row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_confirmation_and_a_cancellation_at_once_one_is_done() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let held = scene.world.reserve(at, order("a")).await;
    let lock = scene.hold("select 1 from reservation for update").await;
    let mut calls = Vec::new();
    for (sessions, act) in
        [(1, ReservationAct::Confirm), (2, ReservationAct::Cancel { reason: None })]
    {
        let (ledger, node, id) = (scene.world.another().await, scene.world.node, held.id());
        let call =
            tokio::spawn(async move { ledger.reservations().act(node, id, &act, "u").await });
        scene.wait(sessions, &call).await;
        calls.push(call);
    }
    let_go(lock).await;
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap().unwrap().outcome);
    }
    let one = match &outcomes[..] {
        [ActOutcome::Done, ActOutcome::Confirmed] | [ActOutcome::Cancelled, ActOutcome::Done] => 1,
        _ => 0,
    };
    assert_eq!(one, 1, "{outcomes:?}");
    scene.world.sweep().await;
    scene.world.is_whole().await;
}

/// Goal: the functions say in each isolation level whether the number is the caller's, once (L4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_confirms_what_it_sees_and_once() {
    let scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let mut early = PgConnection::connect(&scene.world.url).await.unwrap();
    run(&mut early, "begin isolation level repeatable read; select 1 from series").await.unwrap();
    let world = &scene.world;
    let held = [world.reserve(at, order("a")).await, world.reserve(at, order("b")).await];
    // A reservation that is younger than the snapshot is not there.
    assert_eq!(run(&mut early, confirm(&held[0])).await, Err("NU003".into()));
    run(&mut early, "rollback; begin isolation level repeatable read").await.unwrap();
    run(&mut early, "select 1 from reservation").await.unwrap();
    // One that ended behind it is not confirmed.
    world.cancel(&held[0]).await;
    world.sweep().await;
    let failed = run(&mut early, confirm(&held[0])).await.expect_err("ended");
    assert!(["NU003", "40001"].contains(&&*failed), "{failed}");
    run(&mut early, "rollback").await.unwrap();
    for level in ["read committed", "repeatable read", "serializable"] {
        let held = world.reserve(at, order(level)).await;
        let mut caller = PgConnection::connect(&world.url).await.unwrap();
        run(&mut caller, format!("begin isolation level {level}; savepoint one")).await.unwrap();
        run(&mut caller, confirm(&held)).await.unwrap();
        run(&mut caller, "rollback to savepoint one").await.unwrap();
        run(&mut caller, confirm(&held)).await.unwrap();
        // A second time fails, unless the document is named.
        run(&mut caller, "savepoint two").await.unwrap();
        assert_eq!(run(&mut caller, confirm(&held)).await, Err("NU003".into()));
        run(&mut caller, "rollback to savepoint two").await.unwrap();
        let id = held.id();
        run(&mut caller, format!("select confirm('{id}', '{level}')")).await.unwrap();
        let other = format!("select confirm('{id}', 'other')");
        assert_eq!(run(&mut caller, other).await, Err("NU003".into()));
        run(&mut caller, "rollback to savepoint two; commit").await.unwrap();
        world.sweep().await;
        let named = format!("select confirm('{id}', '{level}')");
        run(&mut caller, named).await.unwrap();
        assert_eq!(run(&mut caller, format!("select cancel('{id}')")).await, Err("NU003".into()));
    }
    // Not in another life than the one that was agreed on, nor while the partition is held (L8).
    let cancel = format!("select cancel('{}')", held[1].id());
    run(&mut early, "update partition set state = 'held' where partition_id = 2").await.unwrap();
    for call in [confirm(&held[1]), cancel.clone()] {
        assert_eq!(run(&mut early, call).await, Err("NU003".into()));
    }
    run(&mut early, "update partition set state = 'open' where partition_id = 2").await.unwrap();
    run(&mut early, "update incarnation set number = number").await.unwrap();
    for call in [confirm(&held[1]), cancel] {
        assert_eq!(run(&mut early, call).await, Err("NU001".into()));
    }
}

/// Goal: a counter moves up beside a caller's open transaction, and nothing below comes back,
/// whatever becomes of that (L16). Method: it is rolled back once the reservation's time is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_counter_moves_up_beside_a_callers_transaction() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let held = brief(&scene.world, at, "a").await;
    let mut caller = scene.hold(confirm(&held)).await;
    let id = held.entry.taken[0].counter_id;
    let asked = changes::ask(&scene.world, &changes::next(id, 10)).await;
    changes::approve(&scene.world.ledger, &asked, "bert").await.unwrap();
    over(&mut scene, &held).await;
    run(&mut caller, "rollback").await.unwrap();
    let world = &scene.world;
    assert_eq!(world.sweep().await, ReservationsSwept { expired: 1, ..Default::default() });
    assert_eq!(first(&world.outcome(at, order("b")).await), 10);
    world.is_whole().await;
}

/// Goal: a repeated confirmation names the number as it was issued, whatever revisions there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_confirmation_names_the_number_and_no_revision() {
    let scene = Scene::set().await;
    let world = &scene.world;
    let at = world.database_epoch().await;
    let held = world.reserve(at, order("a")).await;
    assert_eq!(world.confirm(&held).await, ActOutcome::Done);
    world.sweep().await;
    let taken = held.entry.taken[0];
    let value = i64::try_from(taken.range.first).unwrap();
    for rev in ["B", "C"] {
        let revision = NewRevision {
            of: ValueOf { counter_id: taken.counter_id, value },
            allocation_id: held.id(),
            rev: rev.into(),
            number: format!("{}-{rev}", held.entry.number),
            user_id: "u".into(),
            ip_address: None,
            reason: None,
            revised_at_us: NOW_US,
        };
        let revised = world.ledger.register().revise(&revision).await.unwrap();
        assert!(matches!(revised, Revised::Written(_)), "{revised:?}");
    }
    let mut caller = PgConnection::connect(&world.url).await.unwrap();
    // Whichever row of the allocation a plan meets first.
    for setting in ["enable_indexscan", "enable_seqscan", "enable_bitmapscan"] {
        run(&mut caller, format!("set {setting} = off")).await.unwrap();
        let named: String = sqlx::query_scalar("select confirm($1::uuid, 'a')")
            .bind(held.id().to_string())
            .fetch_one(&mut caller)
            .await
            .unwrap();
        assert_eq!(named, held.entry.number);
        run(&mut caller, format!("set {setting} = on")).await.unwrap();
    }
}

/// Goal: what is confirmed is not cancelled in SQL, also while the journal does not have it (L1).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_confirmed_and_not_journaled_is_not_cancelled_in_sql() {
    let scene = Scene::set().await;
    let world = &scene.world;
    let at = world.database_epoch().await;
    let held = world.reserve(at, order("a")).await;
    assert_eq!(world.confirm(&held).await, ActOutcome::Done);
    let mut caller = PgConnection::connect(&world.url).await.unwrap();
    let cancel = format!("select cancel('{}')", held.id());
    assert_eq!(run(&mut caller, cancel).await, Err("NU003".into()));
    assert_eq!(world.sweep().await, ReservationsSwept { issued: 1, ..Default::default() });
    assert_eq!(world.confirm(&held).await, ActOutcome::Repeated);
    world.is_whole().await;
}

/// Goal: a value that ends as its counter moves up stays behind (L5). Method: the sweep waits for
/// the counter's row, which another transaction lifts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_waits_for_its_counter_and_sees_how_far_that_moved() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let held = scene.world.reserve(at, order("a")).await;
    scene.world.let_expire("a").await;
    let mut lifts = scene.hold("select 1 from counter for update").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let call = tokio::spawn(async move { ledger.reservations().sweep(node).await });
    scene.wait(1, &call).await;
    assert!(!call.is_finished(), "it waits");
    let skipped = "insert into gap (counter_id, first_value, last_value, step, reason, epoch,
                   noted_at_us) select counter_id, 2, 9, 1, 'skipped', epoch, 1 from counter";
    run(&mut lifts, skipped).await.unwrap();
    let lifted = "update counter set start_value = 9, taken = 9, ceiling = 9, left_behind = 9";
    run(&mut lifts, lifted).await.unwrap();
    let_go(lifts).await;
    let swept = call.await.unwrap().unwrap();
    assert_eq!(swept, ReservationsSwept { expired: 1, ..Default::default() });
    let gaps = scene.world.gaps(held.entry.taken[0].counter_id).await;
    assert_eq!(gaps, [(1, 1, "Expired".to_owned()), (2, 9, "Skipped".to_owned())]);
    scene.world.is_whole().await;
}

/// Goal: a number that is journaled while its document asks is found (L6). Method: the question
/// waits for the reservations, and meanwhile what a sweep does is committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_number_that_is_journaled_while_its_document_asks_is_found() {
    let mut scene = Scene::set().await;
    let world = &scene.world;
    let at = world.database_epoch().await;
    let held = world.reserve(at, order("a")).await;
    assert_eq!(world.confirm(&held).await, ActOutcome::Done);
    world.sql("create table waiting as select * from reservation").await;
    assert_eq!(world.sweep().await.issued, 1);
    world.sql("create table written as select * from journal").await;
    world.sql("delete from journal").await;
    world.sql("insert into reservation select * from waiting").await;
    let (ledger, node) = (world.another().await, world.node);
    let mut sweeps = scene.hold("lock table reservation in access exclusive mode").await;
    let orders = [order("a")];
    let call = tokio::spawn(async move { ledger.take(at, node, &orders, LOCK_WAIT).await });
    scene.wait(1, &call).await;
    assert!(!call.is_finished(), "it waits");
    run(&mut sweeps, "insert into journal select * from written").await.unwrap();
    run(&mut sweeps, "delete from reservation").await.unwrap();
    let_go(sweeps).await;
    let taken = call.await.unwrap().unwrap();
    let [TakeOutcome::Found(found)] = &taken.outcomes[..] else { panic!("{taken:?}") };
    let number = found.by_document.as_ref().map(|entry| &entry.number);
    assert_eq!(number, Some(&held.entry.number));
    scene.world.is_whole().await;
}
