//! Blocks beside other sessions: their ends at once, takes, callers' transactions, and what is done
//! with them in SQL.

use numerator::ledger::{
    ActOutcome, BlockOutcome, HandBack, LedgerError, ReservationsSwept, UsedFlaw,
};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use super::reservations::{brief, confirm, first, over, run};
use super::{Scene, let_go};
use crate::ledger_contract::reservations::{block, list};
use crate::ledger_contract::world::{LOCK_WAIT, World, order};

async fn hand_back(world: &World, order: &HandBack) -> Result<BlockOutcome, LedgerError> {
    world.ledger.reservations().hand_back(world.node, order).await
}

/// What a statement says that fails.
async fn refused(session: &mut PgConnection, sql: String) -> String {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(session).await;
    done.map_or_else(|error| error.to_string(), |_| "done".to_owned())
}

/// Goal: a block that is handed back and given up at once ends once (L1). Method: both wait for the
/// counter's row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_hand_back_and_a_cancellation_of_a_block_at_once_one_is_done() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let held = scene.world.reserve_block(at, block("book", 3)).await;
    let lock = scene.hold("select 1 from counter for update").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let order = list(&held, &[("b-002", "x")]);
    let back = tokio::spawn(async move { ledger.reservations().hand_back(node, &order).await });
    scene.wait(1, &back).await;
    let (ledger, id) = (scene.world.another().await, held.id());
    let given_up = tokio::spawn(async move {
        ledger.reservations().cancel_block(node, id, ("the book is lost", "u")).await
    });
    scene.wait(2, &given_up).await;
    let_go(lock).await;
    let back = back.await.unwrap().unwrap();
    let given_up = given_up.await.unwrap().unwrap().outcome;
    let is_one = match (&back, given_up) {
        (BlockOutcome::Done { .. }, outcome) => outcome == ActOutcome::HandedBack,
        (BlockOutcome::Refused(_), outcome) => outcome == ActOutcome::Done,
        _ => false,
    };
    assert!(is_one, "{back:?}, {given_up:?}");
    scene.world.is_whole().await;
}

/// Goal: a take beside a hand-back gets no value of the block that is not back (L5). Method: it
/// waits for the counter while the block is handed back, in either order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_beside_a_hand_back_gets_a_value_that_is_back_or_a_new_one() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let held = scene.world.reserve_block(at, block("book", 3)).await;
    let lock = scene.hold("select 1 from counter for update").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [order("beside")];
    let take = tokio::spawn(async move { ledger.take(at, node, &orders, LOCK_WAIT).await });
    scene.wait(1, &take).await;
    let (ledger, order) = (scene.world.another().await, list(&held, &[("b-001", "x")]));
    let back = tokio::spawn(async move { ledger.reservations().hand_back(node, &order).await });
    scene.wait(2, &back).await;
    let_go(lock).await;
    let back = back.await.unwrap().unwrap();
    assert!(matches!(back, BlockOutcome::Done { .. }), "{back:?}");
    let taken = take.await.unwrap().unwrap().outcomes.remove(0);
    assert!([2, 4].contains(&first(&taken)), "{taken:?}");
    scene.world.is_whole().await;
}

/// Goal: the functions end no block: they do not know what was used of it (L13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_block_is_neither_confirmed_nor_given_up_in_sql() {
    let scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let held = scene.world.reserve_block(at, block("book", 3)).await;
    let mut caller = PgConnection::connect(&scene.world.url).await.unwrap();
    let calls = [
        confirm(&held),
        format!("select confirm('{}', 'x')", held.id()),
        format!("select cancel('{}', 'a reason')", held.id()),
    ];
    for call in &calls {
        assert_eq!(run(&mut caller, &**call).await, Err("NU003".into()));
        let said = refused(&mut caller, call.clone()).await;
        assert!(said.contains("is a block"), "{call}: {said}");
    }
    let world = &scene.world;
    assert_eq!(world.sweep().await, ReservationsSwept::default());
    let order = list(&held, &[("b-003", "x")]);
    let back = world.ledger.reservations().hand_back(world.node, &order).await.unwrap();
    assert!(matches!(back, BlockOutcome::Done { .. }), "{back:?}");
    world.is_whole().await;
    for call in calls {
        let said = refused(&mut caller, call.clone()).await;
        assert!(said.contains("was a block, and was handed back"), "{call}: {said}");
    }
}

/// Goal: a document whose caller confirms another number gets none of a block meanwhile (L2, L6).
/// Method: the caller's transaction outlasts the reservation's time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_that_a_callers_transaction_numbers_gets_no_number_of_a_block() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    for commits in [true, false] {
        let (document, key) = (format!("x-{commits}"), format!("book-{commits}"));
        let block = scene.world.reserve_block(at, block(&key, 3)).await;
        let held = brief(&scene.world, at, &document).await;
        let mut caller = scene.hold(confirm(&held)).await;
        over(&mut scene, &held).await;
        let world = &scene.world;
        let back = list(&block, &[(&*block.entry.number, &*document)]);
        let outcome = hand_back(world, &back).await;
        assert!(matches!(outcome, Err(LedgerError::LockTimeout { .. })), "{outcome:?}");
        run(&mut caller, if commits { "commit" } else { "rollback" }).await.unwrap();
        let outcome = hand_back(world, &back).await.unwrap();
        let flawed = BlockOutcome::Flawed { place: 0, flaw: UsedFlaw::Numbered };
        match commits {
            true => assert_eq!(outcome, flawed),
            false => assert!(matches!(outcome, BlockOutcome::Done { .. }), "{outcome:?}"),
        }
        world.sweep().await;
        world.is_whole().await;
    }
}

/// Goal: the functions of triggers are of use to the owner of the tables alone. Method: a role that
/// may use the schema makes a table with the trigger that removes the texts of blocks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_has_the_right_to_run_as_the_owner() {
    let mut scene = Scene::set().await;
    let schema: String = sqlx::query_scalar("select cast(current_schema() as text)")
        .fetch_one(&mut scene.looks)
        .await
        .unwrap();
    let open: i64 = sqlx::query_scalar(
        "select count(*) from pg_proc where prosecdef
         and pronamespace = (select oid from pg_namespace where nspname = current_schema())
         and has_function_privilege('public', oid, 'execute')",
    )
    .fetch_one(&mut scene.looks)
    .await
    .unwrap();
    assert_eq!(open, 0);
    let looks = &mut scene.looks;
    run(looks, format!("create role guest; grant usage on schema {schema} to guest"))
        .await
        .unwrap();
    run(looks, "create schema guest authorization guest; set role guest").await.unwrap();
    run(looks, "create table guest.own (reservation_id bytea)").await.unwrap();
    for function in ["block_leaves_no_text", "block_is_handed_back"] {
        let trigger = format!(
            "create trigger own before delete on guest.own for each row
             execute function {schema}.{function}()"
        );
        assert_eq!(run(looks, trigger).await, Err("42501".into()), "{function}");
    }
}
