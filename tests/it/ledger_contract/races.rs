//! Two sessions of PostgreSQL at one row, at the critical moment: the purpose of a fence in the
//! ledger. SQLite has one writer, and no such moment.
//!
//! A third session locks the row and releases it once the server itself lists who waits.

mod acceptance;
mod as_written;
mod assignments;
mod blocks;
mod confirmations;
mod holds;
mod registrations;
mod removals;
mod reservations;
mod scene;

use numerator::ledger::{
    Appended, At, Claim, Closing, CounterSpec, Entry, LedgerError, PartitionState, Raise,
    SharedLedger, TakeRequest,
};
use numerator::node::NodeId;
use tokio::task::JoinHandle;

use super::world::{LOCK_WAIT, World, at, entry, order_of, range, record, redis, spec, with};
pub(super) use scene::{LIMIT, Scene, let_go};

/// Entries of a batch that is written as if nothing conflicted, behind a savepoint.
const LARGE: u64 = 150;

impl Scene {
    /// Ends the epoch `old` while `call` waits for the counter `a`, and lets another node touch `b`
    /// in the next one before `call` gets there. Returns the outcome of `call`, and the next epoch.
    async fn overtake<T: Send + 'static>(
        &mut self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> (T, At) {
        let first = self.hold("select 1 from counter where key = 'a' for update").await;
        let last = self.hold("select 1 from counter where key = 'c' for update").await;
        let call = tokio::spawn(call);
        self.wait(1, &call).await;
        let new = self.world.redis_epoch(Closing::Exact).await;
        let (ledger, node) = (self.world.another().await, NodeId::random());
        let touched =
            tokio::spawn(async move { ledger.seed(new, node, &["b", "c"].map(spec)).await });
        self.wait(2, &touched).await;
        let_go(first).await;
        self.wait(2, &call).await;
        let_go(last).await;
        touched.await.unwrap().unwrap();
        (call.await.unwrap(), new)
    }

    /// What Redis issues of `b` in an epoch, once it was seeded there, collides with nothing.
    async fn goes_on_alone(&self, new: At) {
        let row = self.world.ledger.counters().get(7, "SEQ", "b").await.unwrap().unwrap();
        assert_eq!((row.epoch, row.taken), (new.epoch, row.start), "{row:?}");
        let next = u64::try_from(row.taken).unwrap() + 1;
        self.world.append(&[entry(new, row.counter_id, next)]).await;
        self.world.verify().await;
    }

    /// Two appends that wait for the row of a counter together.
    async fn at_once(
        &mut self,
        counter: &'static str,
        [one, other]: [Vec<Entry>; 2],
    ) -> [Appended; 2] {
        let held = self.hold(counter).await;
        let one = append(&self.world, one).await;
        self.wait(1, &one).await;
        let other = append(&self.world, other).await;
        self.wait(2, &other).await;
        let_go(held).await;
        [one.await.unwrap().unwrap(), other.await.unwrap().unwrap()]
    }
}

/// A node of its own journals entries.
async fn append(world: &World, entries: Vec<Entry>) -> JoinHandle<Result<Appended, LedgerError>> {
    let (ledger, node) = (world.another().await, NodeId::random());
    world.join(node).await;
    tokio::spawn(async move { ledger.append(node, &entries).await })
}

pub(super) fn order(key: &str, document: &str) -> TakeRequest {
    let mut record = record(document);
    record.counter_keys = vec![key.into()];
    TakeRequest { specs: vec![spec(key)], ..order_of(record) }
}

/// A ledger whose counters `a`, `b` and `c` were touched in the epoch of Redis that is open.
async fn seeded(scene: &Scene) -> At {
    let old = scene.world.redis_epoch(Closing::Exact).await;
    let ledger: &SharedLedger = &scene.world.ledger;
    ledger.seed(old, scene.world.node, &["a", "b", "c"].map(spec)).await.unwrap();
    old
}

async fn id(world: &World, key: &str) -> i64 {
    world.ledger.counters().get(7, "SEQ", key).await.unwrap().unwrap().counter_id
}

/// A counter that has room for large batches.
async fn roomy(world: &World, open: At, key: &str) -> i64 {
    let raise = Raise { counter_id: id(world, key).await, ceiling: 1_000 };
    world.ledger.raise(open, std::slice::from_ref(&raise)).await.unwrap();
    raise.counter_id
}

/// Goal: what Redis counts is not taken by a node that still believes that the database does (F4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_that_waits_while_its_epoch_ends_takes_nothing_of_the_next() {
    let mut scene = Scene::set().await;
    let old = scene.world.database_epoch().await;
    for key in ["a", "b", "c"] {
        scene.world.take(old, order(key, key)).await;
    }
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [order("a", "late-a"), order("b", "late-b")];
    let late = async move { ledger.take(old, node, &orders, LOCK_WAIT).await };
    let (taken, new) = scene.overtake(late).await;
    scene.goes_on_alone(new).await;
    assert!(matches!(taken, Err(LedgerError::Fenced { epoch, .. }) if epoch == old.epoch));
    let untouched = scene.world.ledger.counters().get(7, "SEQ", "a").await.unwrap().unwrap();
    assert_eq!((untouched.epoch, untouched.taken), (old.epoch, 1), "all or none");
}

/// Goal: a raise of an epoch that is over sets no ceiling in the next (F4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_that_waits_while_its_epoch_ends_lifts_nothing_in_the_next() {
    let mut scene = Scene::set().await;
    let old = seeded(&scene).await;
    let ledger = scene.world.another().await;
    let mut raises = Vec::new();
    for key in ["a", "b"] {
        raises.push(Raise { counter_id: id(&scene.world, key).await, ceiling: 130 });
    }
    let late = async move { ledger.raise(old, &raises).await };
    let (raised, _) = scene.overtake(late).await;
    // `a` was not touched in the next epoch, which begins above whatever is there.
    assert_eq!(raised.unwrap(), [Some(130), None]);
    let row = scene.world.ledger.counters().get(7, "SEQ", "b").await.unwrap().unwrap();
    assert_eq!(row.ceiling, 10, "what Redis has: {row:?}");
}

/// Goal: a first touch of an epoch that is over seeds nothing (F4).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_that_waits_while_its_epoch_ends_touches_nothing_of_the_next() {
    let mut scene = Scene::set().await;
    seeded(&scene).await;
    let old = scene.world.redis_epoch(Closing::Exact).await;
    let (ledger, node) = (scene.world.another().await, NodeId::random());
    let specs: Vec<CounterSpec> =
        ["a", "b"].map(|key| CounterSpec { headroom: 90, ..spec(key) }).into();
    let (touched, new) = scene.overtake(async move { ledger.seed(old, node, &specs).await }).await;
    let fenced = matches!(touched, Err(LedgerError::Fenced { epoch, .. }) if epoch == old.epoch);
    assert!(fenced, "{touched:?}");
    let row = scene.world.ledger.counters().get(7, "SEQ", "b").await.unwrap().unwrap();
    assert_eq!((row.epoch, row.ceiling), (new.epoch, 10), "{row:?}");
    scene.goes_on_alone(new).await;
}

/// Goal: no node sends flights in an epoch that a leader closes without it (F5). Method: a
/// participant that has the partition and waits for its own row while the leader bumps the epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_bumps_while_a_node_joins_waits_for_it_and_counts_it() {
    let mut scene = Scene::set().await;
    let old = scene.world.redis_epoch(Closing::Exact).await;
    let (joiner, leader) = (scene.world.another().await, scene.world.node);
    let node = NodeId::random();
    scene.world.join(node).await;
    let held = scene.hold("select 1 from node for update").await;
    let joined = tokio::spawn(async move { joiner.participate(old, node).await });
    scene.wait(1, &joined).await;
    let ledger = scene.world.another().await;
    let bump = async move { ledger.bump(old, PartitionState::Open, leader, "c").await };
    let bumped = tokio::spawn(bump);
    scene.wait(2, &bumped).await;
    let ledger = scene.world.another().await;
    let next = at(old.epoch + 1);
    let claim = async || ledger.claim_open(next, leader, false, &redis()).await.unwrap();
    // A leader that did not wait closes the epoch immediately.
    let early = if bumped.is_finished() { Some(claim().await) } else { None };
    let_go(held).await;
    assert!(joined.await.unwrap().unwrap(), "it takes part");
    assert_eq!(bumped.await.unwrap().unwrap(), Some(next.epoch));
    let claimed = match early {
        Some(claimed) => claimed,
        None => claim().await,
    };
    assert_eq!(claimed, Claim::Waiting(vec![node]));
}

/// Goal: a node that asks to take part while an epoch ends does not take part in it (F5).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_while_a_leader_bumps_waits_for_it_and_takes_no_part() {
    let mut scene = Scene::set().await;
    let old = scene.world.redis_epoch(Closing::Exact).await;
    let node = NodeId::random();
    scene.world.join(node).await;
    // What a bump does, kept from committing.
    let bump = "update partition set epoch = epoch + 1, state = 'recovering' where epoch = 1";
    let held = scene.hold(bump).await;
    let joiner = scene.world.another().await;
    let joined = tokio::spawn(async move { joiner.participate(old, node).await });
    scene.wait(1, &joined).await;
    let_go(held).await;
    assert!(!joined.await.unwrap().unwrap(), "the epoch is over");
    let (leader, next) = (scene.world.node, at(old.epoch + 1));
    let claimed = scene.world.ledger.claim_open(next, leader, false, &redis()).await.unwrap();
    assert_eq!(claimed, Claim::Closed(Closing::Exact));
}

/// Goal: an allocation that two nodes handed out, one as a replay, is recorded once (F13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_journal_one_allocation_at_once_write_it_once() {
    for rows in [3, LARGE] {
        let mut scene = Scene::set().await;
        let open = seeded(&scene).await;
        let id = roomy(&scene.world, open, "a").await;
        let entries: Vec<_> = (1..=rows + 1).map(|value| entry(open, id, value)).collect();
        let batches = [entries[..entries.len() - 1].to_vec(), entries[1..].to_vec()];
        let counter = "select 1 from counter where key = 'a' for update";
        let [one, other] = scene.at_once(counter, batches).await;
        assert_eq!((one.written, one.known), (rows, 0), "{one:?}");
        assert_eq!((other.written, other.known), (1, rows - 1), "{other:?}");
        assert_eq!((one.collisions.len(), other.collisions.len()), (0, 0));
        let row = scene.world.ledger.counters().get(7, "SEQ", "a").await.unwrap().unwrap();
        let taken = u64::try_from(row.taken).unwrap();
        assert_eq!((taken, row.journaled), (rows + 1, rows + 1), "{row:?}");
        scene.world.verify().await;
    }
}

/// Goal: a value that came twice is found whichever comes first, and excludes nothing else (F13).
/// Method: the first node's last range holds the second one's first value, which no unique key
/// knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_journal_one_value_at_once_keep_both_and_every_neighbour() {
    for rows in [3, LARGE] {
        let mut scene = Scene::set().await;
        let open = seeded(&scene).await;
        let id = roomy(&scene.world, open, "a").await;
        let mut one: Vec<_> = (1..rows).map(|value| entry(open, id, value)).collect();
        one.push(range(open, id, rows, rows + 4));
        let mut other = vec![entry(open, id, rows + 2)];
        other.extend((1..rows).map(|value| entry(open, id, rows + 4 + value)));
        let twice = other[0].record.allocation_id;
        let counter = "select 1 from counter where key = 'a' for update";
        let [one, other] = scene.at_once(counter, [one, other]).await;
        assert_eq!((one.written, one.collisions.len()), (rows, 0), "{one:?}");
        assert_eq!((other.written, &*other.collisions), (rows - 1, &[twice][..]), "{other:?}");
        assert_eq!(scene.world.ledger.register().collisions_count().await.unwrap(), 1);
        let row = scene.world.ledger.counters().get(7, "SEQ", "a").await.unwrap().unwrap();
        let taken = u64::try_from(row.taken).unwrap();
        assert_eq!((taken, row.journaled), (2 * rows + 3, 2 * rows + 3), "{row:?}");
    }
}

/// Two nodes write one text, each of a counter of its own, so that no row makes one wait for the
/// other: the first has written and is blocked from committing.
async fn one_text(rows: u64, ends_well: bool) {
    let mut scene = Scene::set().await;
    let open = seeded(&scene).await;
    let world = &scene.world;
    let (a, b) = (roomy(world, open, "a").await, roomy(world, open, "b").await);
    let text = |entry: Entry| Entry { number: "SAME-001".into(), ..entry };
    let batch = |id: i64| -> Vec<Entry> {
        let new = (1..=rows).map(|value| (value, entry(open, id, value)));
        new.map(|(value, entry)| if value == 2 { text(entry) } else { entry }).collect()
    };
    let (one, other) = (batch(a), batch(b));
    let twice = other[1].record.allocation_id;
    let writer = NodeId::random();
    scene.world.join(writer).await;
    // It counts its batch last, in its own row.
    let held = scene.hold("select 1 from node for update").await;
    let ledger = scene.world.another().await;
    let one = tokio::spawn(async move { ledger.append(writer, &one).await });
    scene.wait(1, &one).await;
    let ledger = scene.world.another().await;
    // Of no node that is known here: its own row blocks nothing.
    let other = tokio::spawn(async move { ledger.append(NodeId::random(), &other).await });
    scene.wait(2, &other).await;
    if !ends_well {
        let end = "select pg_terminate_backend(pid) from pg_stat_activity \
                   where query like 'update node set batches%' and wait_event_type = 'Lock'";
        sqlx::raw_sql(end).execute(&mut scene.looks).await.unwrap();
    }
    let_go(held).await;
    let (one, other) = (one.await.unwrap(), other.await.unwrap().unwrap());
    let collided: &[_] = if ends_well { &[twice] } else { &[] };
    assert_eq!(other.collisions, collided, "{other:?}");
    assert_eq!(other.written, rows - u64::from(ends_well), "{other:?}");
    match one {
        Ok(one) => assert_eq!((ends_well, one.written), (true, rows), "{one:?}"),
        Err(lost) => assert!(!ends_well && lost.retry_useful(), "{lost}"),
    }
    assert_eq!(
        scene.world.ledger.register().collisions_count().await.unwrap(),
        u64::from(ends_well)
    );
}

/// Goal: a text that came twice is found although no counter is shared (F13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_text_of_two_counters_at_once_is_a_collision_and_keeps_no_neighbour_out() {
    one_text(3, true).await;
    one_text(LARGE, true).await;
}

/// Goal: a session that waits for another's row writes its own if that one is rolled back (F13).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_text_of_two_counters_is_the_others_where_the_first_does_not_commit() {
    one_text(3, false).await;
    one_text(LARGE, false).await;
}

/// Goal: a row that the ledger refuses takes nothing with it that another node writes (F13).
/// Method: a batch with a refused row that waits for its counter together with a sound one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_row_among_batches_at_once_undoes_its_own_batch_only() {
    let mut scene = Scene::set().await;
    let open = seeded(&scene).await;
    let id = id(&scene.world, "a").await;
    let refuse = "alter table journal add constraint refuses check (document_id <> 'bad')";
    sqlx::raw_sql(refuse).execute(&mut scene.looks).await.unwrap();
    let bad = with(entry(open, id, 2), |record| {
        record.document_id = Some("bad".into());
        record.counter_keys = vec!["a".into()];
    });
    let held = scene.hold("select 1 from counter where key = 'a' for update").await;
    let refused = append(&scene.world, vec![entry(open, id, 1), bad.clone()]).await;
    scene.wait(1, &refused).await;
    let sound = append(&scene.world, vec![range(open, id, 3, 9)]).await;
    scene.wait(2, &sound).await;
    let_go(held).await;
    let refused = refused.await.unwrap();
    assert!(matches!(refused, Err(LedgerError::Unfit(_))), "{refused:?}");
    assert_eq!(sound.await.unwrap().unwrap().written, 1);
    scene.world.ledger.reject(&bad, "refused").await.unwrap();
    scene.world.append(&[entry(open, id, 1)]).await;
    let row = scene.world.ledger.counters().get(7, "SEQ", "a").await.unwrap().unwrap();
    assert_eq!((row.taken, row.journaled), (9, 9), "{row:?}");
    scene.world.verify().await;
}
