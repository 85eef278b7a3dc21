//! The names under which a document is numbered once: requests, takes and imports of it at the same
//! time, two sessions of PostgreSQL each (F27, F29). SQLite has one writer.

use numerator::ledger::{
    Closing, Entry, Found, Imported, LedgerError, Question, SeriesVersion, TakeOutcome,
    TakeRequest, Taken,
};
use numerator::node::NodeId;
use tokio::task::JoinHandle;

use super::imports::{counter, number, series, spec_of};
use super::races::{LIMIT, Scene, let_go, order};
use super::world::{LOCK_WAIT, PARTITION, order_of, question, record, spec, with};

/// A take of `twice` that has looked for an earlier number, and waits as it writes its row for the
/// holder of this lock.
const LINGER: &str = "create function linger() returns trigger language plpgsql as $$ begin \
     if new.document_id = 'twice' and new.path = 'database' \
     then perform pg_advisory_xact_lock(42); end if; \
     return new; end $$; \
     create trigger linger before insert on journal for each row execute function linger()";

/// Asks for `twice` as a retry in another period does.
fn asked() -> Question {
    question(&record("twice"))
}

impl Scene {
    /// The name of the document `twice`: what a question about it locks while it waits to read.
    async fn name(&mut self) -> i64 {
        let held = self.hold("lock table journal in access exclusive mode").await;
        let ledger = self.world.another().await;
        let asking = tokio::spawn(async move { ledger.ask(PARTITION, &[asked()]).await });
        self.wait(1, &asking).await;
        let name = "select (classid::bigint << 32) | objid::bigint from pg_locks \
                    where locktype = 'advisory' and granted";
        let name = sqlx::query_scalar(name).fetch_one(&mut self.looks).await.unwrap();
        let_go(held).await;
        assert_eq!(asking.await.unwrap().unwrap(), [Found::default()]);
        name
    }
}

async fn outcome(taking: JoinHandle<Result<Taken, LedgerError>>) -> Option<Entry> {
    let taken = tokio::time::timeout(LIMIT, taking).await.unwrap().unwrap();
    match taken.map(|taken| taken.outcomes) {
        Ok(outcomes) => match &outcomes[..] {
            [TakeOutcome::Taken(entry)] => Some(entry.clone()),
            other => panic!("not taken: {other:?}"),
        },
        Err(LedgerError::Fenced { .. }) => None,
        Err(other) => panic!("neither taken nor fenced: {other}"),
    }
}

/// Goal: what a question does not find gets no number later, even if the retry counts by another
/// counter, so that no seed waits for it (F27). Method: a take whose commit is blocked while its
/// partition goes to Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_for_a_take_under_its_key_whatever_that_counts_by() {
    let mut scene = Scene::set().await;
    let old = scene.world.database_epoch().await;
    scene.world.take(old, order("a", "first")).await;
    sqlx::raw_sql(LINGER).execute(&mut scene.looks).await.unwrap();
    let held = scene.hold("select pg_advisory_xact_lock(42)").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [order("a", "twice")];
    let taking = tokio::spawn(async move { ledger.take(old, node, &orders, LOCK_WAIT).await });
    scene.wait(1, &taking).await;
    let new = scene.world.redis_epoch(Closing::Exact).await;
    scene.world.seed(new, &spec("b")).await;
    let ledger = scene.world.another().await;
    let asking = tokio::spawn(async move { ledger.ask(PARTITION, &[asked()]).await });
    scene.wait(2, &asking).await;
    let_go(held).await;
    let found = asking.await.unwrap().unwrap().remove(0);
    let late = outcome(taking).await;
    assert!(late.is_some(), "it had its name before the question");
    assert_eq!(found.by_document, late, "the retry would get a second number");
}

/// Goal: a take that gets its name after a question gives no number to what that did not find
/// (F27). Method: a take that has its counter, which was not touched since, and waits for a name
/// that is locked as a question locks it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_that_gets_its_name_after_a_question_finds_that_its_epoch_is_over() {
    let mut scene = Scene::set().await;
    let old = scene.world.database_epoch().await;
    scene.world.take(old, order("a", "first")).await;
    let name = scene.name().await;
    let held = scene.hold(format!("select pg_advisory_xact_lock_shared({name})")).await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [order("a", "twice")];
    let taking = tokio::spawn(async move { ledger.take(old, node, &orders, LOCK_WAIT).await });
    scene.wait(1, &taking).await;
    scene.world.redis_epoch(Closing::Exact).await;
    // A question waits for no other question. What it finds is what the other one has found.
    let found = scene.world.ledger.replays(&[asked()]).await.unwrap();
    assert_eq!(found, [Found::default()]);
    let_go(held).await;
    assert_eq!(outcome(taking).await, None, "a second number beside the retry's");
    let row = scene.world.ledger.counters().get(7, "SEQ", "a").await.unwrap().unwrap();
    assert_eq!((row.epoch, row.taken), (old.epoch, 1), "{row:?}");
}

/// Goal: a take that holds a name for long fails a question, and blocks no connection of the
/// questions for longer than a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_waits_a_moment_for_a_name_and_may_be_asked_again() {
    let mut scene = Scene::set().await;
    scene.world.redis_epoch(Closing::Exact).await;
    let name = scene.name().await;
    let held = scene.hold(format!("select pg_advisory_xact_lock({name})")).await;
    let asked = [asked()];
    let refused = scene.world.ledger.ask(PARTITION, &asked).await.unwrap_err();
    assert!(matches!(refused, LedgerError::LockTimeout { .. }), "{refused}");
    assert!(refused.retry_useful() && !refused.maybe_written());
    let_go(held).await;
    // A question alone blocks no other question.
    let shared = scene.hold(format!("select pg_advisory_xact_lock_shared({name})")).await;
    assert_eq!(scene.world.ledger.ask(PARTITION, &asked).await.unwrap(), [Found::default()]);
    let_go(shared).await;
}

/// An order of `document`, of the counter `k` of a series.
fn order_in(series: &SeriesVersion, document: &str) -> TakeRequest {
    let mut record = record(document);
    (record.series_id, record.version) = (series.series_id, series.version);
    TakeRequest { specs: vec![spec_of(series, "k")], ..order_of(record) }
}

/// Imports the document `twice` with the number `old-1`.
async fn import(
    scene: &Scene,
    series: &SeriesVersion,
) -> JoinHandle<Result<Imported, LedgerError>> {
    let ledger = scene.world.another().await;
    let counters = [counter(series, "old", 1)];
    let entry = with(number(series, "old", 1), |record| record.document_id = Some("twice".into()));
    tokio::spawn(async move {
        let chunks = &mut std::iter::once(Ok(vec![entry]));
        ledger.imports().add(NodeId::random(), &counters, &[], chunks).await
    })
}

/// Goal: an import does not commit next to a take of its document that had looked before (F29).
/// Method: a take that has looked, and is blocked from its commit while the import runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_waits_for_who_takes_for_its_document_and_is_undone() {
    let mut scene = Scene::set().await;
    let series = series(&scene.world).await;
    let now = scene.world.database_epoch().await;
    scene.world.take(now, order_in(&series, "before")).await;
    sqlx::raw_sql(LINGER).execute(&mut scene.looks).await.unwrap();
    let held = scene.hold("select pg_advisory_xact_lock(42)").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [order_in(&series, "twice")];
    let taking = tokio::spawn(async move { ledger.take(now, node, &orders, LOCK_WAIT).await });
    scene.wait(1, &taking).await;
    let importing = import(&scene, &series).await;
    scene.wait(2, &importing).await;
    let_go(held).await;
    let taken = outcome(taking).await.unwrap();
    let refused = importing.await.unwrap().expect_err("a second number").to_string();
    let says = format!("document twice got the number {} here meanwhile", taken.number);
    assert!(refused.contains(&says) && refused.contains("import again"), "{refused}");
    assert_eq!(scene.world.ledger.register().totals().await.unwrap().journal, 2);
    // The remedy: its line without the document. What was numbered before is no reason.
    let before = with(number(&series, "old", 2), |r| r.document_id = Some("before".into()));
    let chunks = &mut std::iter::once(Ok(vec![number(&series, "old", 1), before]));
    let (ledger, counters) = (scene.world.another().await, [counter(&series, "old", 2)]);
    ledger.imports().add(NodeId::random(), &counters, &[], chunks).await.unwrap();
    scene.world.verify().await;
}

/// Goal: a take for a document while an import of it commits finds what was imported (F29). Method:
/// an import that has written its rows and waits for the row of its partition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_for_a_document_waits_for_its_import_and_finds_its_number() {
    let mut scene = Scene::set().await;
    let series = series(&scene.world).await;
    let now = scene.world.database_epoch().await;
    scene.world.take(now, order_in(&series, "first")).await;
    let held = scene.hold("select 1 from partition for update").await;
    let importing = import(&scene, &series).await;
    scene.wait(1, &importing).await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [order_in(&series, "twice")];
    let taking = tokio::spawn(async move { ledger.take(now, node, &orders, LOCK_WAIT).await });
    scene.wait(2, &taking).await;
    let_go(held).await;
    assert_eq!(importing.await.unwrap().unwrap().numbers, 1);
    let taken = taking.await.unwrap().unwrap();
    match &taken.outcomes[..] {
        [TakeOutcome::Found(Found { by_document: Some(found), .. })] => {
            assert_eq!(found.number, "old-1");
        }
        other => panic!("a second number: {other:?}"),
    }
    scene.world.verify().await;
}
