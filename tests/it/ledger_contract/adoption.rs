//! What happens to a dead node's outbox.

use std::time::Duration;

use numerator::ledger::{Adopted, Closing, LedgerSettings, PartitionState, open};
use numerator::node::NodeId;

use super::world::{World, at, connections, entry, redis, spec, with};

pub(super) async fn entries_of_an_epoch_closed_exact_are_discarded(world: World) {
    let (ledger, dead) = (&world.ledger, NodeId::random());
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    let new = world.redis_epoch(Closing::Exact).await;
    world.seed(new, &spec("k")).await;
    let entries = [entry(old, counter_id, 1), entry(new, counter_id, 2), entry(old, counter_id, 3)];
    let adopted = ledger.adopt(new, dead, &entries, true).await.unwrap();
    assert_eq!(adopted, Adopted { written: 1, discarded: 2, ..Adopted::default() });
    let rows = ledger.register().find(&Default::default()).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0].entry, rows[0].node_id), (&entries[1], dead));
    let elsewhere = numerator::ledger::At { partition: 0, ..new };
    assert!(ledger.adopt(elsewhere, dead, &entries, true).await.is_err(), "another partition's");
}

pub(super) async fn entries_of_an_open_epoch_or_one_closed_at_the_ceiling_are_journaled(
    world: World,
) {
    let (ledger, dead) = (&world.ledger, NodeId::random());
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    world.join_silently(old).await;
    // Being closed: whether it ends exact may depend on these very entries.
    ledger.bump(old, PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    let adopted = ledger.adopt(old, dead, &[entry(old, counter_id, 1)], false).await.unwrap();
    assert_eq!((adopted.written, adopted.discarded), (1, 0));
    world.claim(at(2), Closing::Ceiling, &redis()).await;
    assert!(ledger.opened(at(2), world.node).await.unwrap());
    world.seed(at(2), &spec("k")).await;
    assert_eq!(world.gaps(counter_id).await, [(2, 10, "Unaccounted".to_owned())]);
    let adopted = ledger.adopt(at(2), dead, &[entry(old, counter_id, 2)], true).await.unwrap();
    assert_eq!((adopted.written, adopted.discarded), (1, 0));
    assert_eq!(world.gaps(counter_id).await, [(3, 10, "Unaccounted".to_owned())]);
}

pub(super) async fn only_a_complete_outbox_accounts_for_its_node(world: World) {
    let ledger = &world.ledger;
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let dead = NodeId::random();
    world.join(dead).await;
    assert!(ledger.participate(open, dead).await.unwrap());
    ledger.adopt(open, dead, &[entry(open, counter_id, 1)], false).await.unwrap();
    assert!(ledger.participate(open, dead).await.unwrap(), "not accounted for");
    ledger.adopt(open, dead, &[], true).await.unwrap();
    assert!(!ledger.participate(open, dead).await.unwrap());
}

pub(super) async fn an_adopted_entry_that_its_node_journaled_too_is_known(world: World) {
    let ledger = &world.ledger;
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let entries = [entry(open, counter_id, 1), entry(open, counter_id, 2)];
    world.append(&entries[..1]).await;
    let adopted = ledger.adopt(open, world.node, &entries, true).await.unwrap();
    assert_eq!(adopted, Adopted { written: 1, known: 1, ..Adopted::default() });
    let appended = ledger.append(world.node, &entries).await.unwrap();
    assert_eq!((appended.written, appended.known), (0, 2));
    let second = entry(open, counter_id, 2);
    let adopted = ledger.adopt(open, NodeId::random(), &[second], true).await.unwrap();
    assert_eq!(adopted, Adopted { collided: 1, ..Adopted::default() });
    world.verify().await;
}

pub(super) async fn an_outbox_older_than_the_ledgers_ids_is_adopted_by_the_names_of_its_counters(
    world: World,
) {
    let (ledger, dead) = (&world.ledger, NodeId::random());
    let old = world.redis_epoch(Closing::Exact).await;
    let (of_first, ..) = world.seed(old, &spec("first")).await;
    // In the outbox the id that "first" has now is still that of "second".
    let second = |value| {
        with(entry(old, of_first, value), |record| record.counter_keys = vec!["second".into()])
    };
    let entries = [second(9), second(10)];
    ledger.journal_again(world.node, &entries[..1]).await.unwrap();
    let before = ledger.counters().get(7, "SEQ", "first").await.unwrap();
    world.join_silently(old).await;
    let new = world.redis_epoch(Closing::Ceiling).await;
    let adopted = ledger.adopt(new, dead, &entries, true).await.unwrap();
    assert_eq!(adopted, Adopted { written: 1, known: 1, ..Adopted::default() });
    assert_eq!(ledger.counters().get(7, "SEQ", "first").await.unwrap(), before, "not its values");
    assert_eq!(ledger.counters().get(7, "SEQ", "second").await.unwrap().unwrap().taken, 10);
    assert_eq!(ledger.register().collisions(10).await.unwrap(), []);
}

impl World {
    /// Keeps every counter locked while an action runs.
    async fn while_counters_are_locked(&self, work: impl Future<Output = ()>) {
        let lock = "update counter set taken = taken";
        if self.ledger.engine() == "sqlite" {
            let pool = sqlx::SqlitePool::connect(&self.url).await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            sqlx::query(lock).execute(&mut *tx).await.unwrap();
            work.await;
            tx.commit().await.unwrap();
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            let mut tx = pool.begin().await.unwrap();
            sqlx::query(lock).execute(&mut *tx).await.unwrap();
            work.await;
            tx.commit().await.unwrap();
        }
    }
}

/// Goal: a search for thousands of counters by their names may take its time. Method: one of them
/// is locked for longer than a call may take, and for less than a lock may be waited for.
pub(super) async fn an_adoption_may_take_longer_than_an_ordinary_call(world: World) {
    let open_epoch = world.redis_epoch(Closing::Exact).await;
    let (of_first, ..) = world.seed(open_epoch, &spec("first")).await;
    world.seed(open_epoch, &spec("second")).await;
    let call_limit = Duration::from_millis(300);
    let lock_timeout = Duration::from_secs(60);
    let hasty = LedgerSettings { call_limit, lock_timeout, ..connections(2) };
    let hasty = open(&world.url, hasty, world.clock.clone()).await.unwrap();
    let second = with(entry(open_epoch, of_first, 1), |record| {
        record.counter_keys = vec!["second".into()];
    });
    let dead = NodeId::random();
    let mut adopting = None;
    let work = async {
        let adopt = async move { hasty.adopt(open_epoch, dead, &[second], true).await };
        adopting = Some(tokio::spawn(adopt));
        tokio::time::sleep(call_limit * 3).await;
    };
    world.while_counters_are_locked(work).await;
    let adopted = adopting.unwrap().await.unwrap().unwrap();
    assert_eq!(adopted, Adopted { written: 1, ..Adopted::default() });
}
