//! A ledger that went back: which process notices, what is held, how it is released (F9). The going
//! back is done with plain SQL, like the restore of a backup.

use numerator::clock::Clock as _;
use numerator::ledger::{
    Acknowledged, At, Closing, Expected, LedgerError, Lift, Owner, PartitionState, Record,
    Released, SeriesChange,
};
use numerator::node::NodeId;
use testkit::forge;

use super::forged;
use super::world::{
    LOCK_WAIT, NOW_US, World, at, entry, order, order_of, record, redis, spec, with,
};

impl World {
    /// Changes the database past the ledger.
    pub(super) async fn sql(&self, sql: &str) {
        if self.ledger.engine() == "sqlite" {
            forged::on_sqlite(&self.url, sql).await.unwrap();
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            let sql = sqlx::AssertSqlSafe(forge::postgres(sql));
            sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        }
    }
}

fn went_back<T>(result: &Result<T, LedgerError>) -> bool {
    matches!(result, Err(LedgerError::WentBack(_)))
}

/// Every call by which a node takes, joins or closes, once the ledger has forgotten it.
async fn assert_forgotten(world: &World, open: At, counter_id: i64) {
    let (ledger, node) = (&world.ledger, world.node);
    assert!(went_back(&ledger.nodes().heartbeat(node, None).await));
    assert!(went_back(&ledger.nodes().heartbeat(node, None).await), "it does not catch up");
    assert!(went_back(&ledger.participate(open, node).await));
    assert!(went_back(&ledger.seed(open, node, &[spec("new")]).await));
    assert!(went_back(&ledger.take(open, node, &[order("d")], LOCK_WAIT).await));
    assert!(went_back(&ledger.append(node, &[entry(open, counter_id, 9)]).await));
    let from = PartitionState::Open;
    let next = ledger.bump(open, from, node, "c").await.unwrap().map(at).unwrap();
    let acknowledged = ledger.acknowledge(next, &[node]).await.unwrap();
    assert_eq!(acknowledged, Acknowledged::Forgotten);
    assert!(went_back(&ledger.claim_open(next, node, true, &redis()).await));
}

/// A node that took part, beat three times and journaled two batches.
async fn busy(world: &World) -> (At, i64) {
    let open = world.redis_epoch(Closing::Exact).await;
    assert!(world.ledger.participate(open, world.node).await.unwrap());
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    for value in [1, 2] {
        world.append(&[entry(open, counter_id, value)]).await;
    }
    for _ in 0..3 {
        world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    }
    (open, counter_id)
}

pub(super) async fn a_ledger_that_forgot_a_beat_says_so(world: World) {
    let (open, counter_id) = busy(&world).await;
    world.sql("update node set beat = beat - 1").await;
    assert_forgotten(&world, open, counter_id).await;
}

pub(super) async fn a_ledger_that_forgot_a_batch_says_so(world: World) {
    let (open, counter_id) = busy(&world).await;
    world.sql("update node set batches = batches - 1, beat = beat + 10").await;
    assert_forgotten(&world, open, counter_id).await;
}

pub(super) async fn a_ledger_that_forgot_a_node_says_so(world: World) {
    let (open, counter_id) = busy(&world).await;
    world.sql("delete from node").await;
    assert_forgotten(&world, open, counter_id).await;
    // A node that it never knew through this handle has nothing to compare.
    let stranger = NodeId::random();
    let beaten = world.ledger.nodes().heartbeat(stranger, None).await;
    assert!(matches!(beaten, Err(LedgerError::NodeGone(_))), "{beaten:?}");
}

pub(super) async fn a_ledger_that_went_back_is_held_as_a_whole(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (ledger, seen) = (&world.ledger, At { epoch: open.epoch + 3, ..open });
    assert!(ledger.hold(seen, "first").await.unwrap());
    let held = async || {
        let rows = ledger.partitions().await.unwrap();
        assert!(rows.iter().all(|row| row.state == PartitionState::Held), "{rows:?}");
        rows.iter().map(|row| (row.cause.clone(), row.seen_epoch)).collect::<Vec<_>>()
    };
    let none = || ("first".to_owned(), 0);
    let mut rows = vec![none(); 5];
    rows[2].1 = 4;
    assert_eq!(held().await, rows);
    let more = [At { partition: 0, epoch: 7 }, At { epoch: 2, ..seen }];
    assert_eq!(ledger.hold_all(&more, "second").await.unwrap(), 0, "nothing is held anew");
    rows[0].1 = 7;
    assert_eq!(held().await, rows, "the first cause and the highest epochs stay");
}

pub(super) async fn a_release_goes_on_above_all_that_was_seen(world: World) {
    let (open, counter_id) = busy(&world).await;
    let (ledger, node) = (&world.ledger, world.node);
    assert_eq!(ledger.release(at(9), 0).await.unwrap(), Released::NotHeld);
    let lift =
        |key: &str, value| Lift { series_id: 7, serial: "SEQ".into(), key: key.into(), value };
    assert!(ledger.lift(open.partition, node, &[lift("k", 50)]).await.is_err(), "not held");

    ledger.hold_all(&[at(8)], "c").await.unwrap();
    assert_eq!(ledger.release(at(8), 0).await.unwrap(), Released::Behind);
    let lifts = [lift("k", 20), lift("forgotten", 4)];
    assert_eq!(ledger.lift(open.partition, node, &lifts).await.unwrap(), 2);
    let lower = [lift("k", 19)];
    assert_eq!(ledger.lift(open.partition, node, &lower).await.unwrap(), 0, "never lower");
    assert_eq!(ledger.release(at(9), 5).await.unwrap(), Released::Released);
    assert_eq!(ledger.release(at(10), 5).await.unwrap(), Released::NotHeld, "once");
    let row = world.partition().await;
    assert_eq!((row.epoch, row.state, row.owner), (9, PartitionState::Open, Owner::None));

    let world = world.anew().await;
    let (ledger, node) = (&world.ledger, world.node);
    let next = world.redis_epoch(Closing::Exact).await;
    assert_eq!(next, at(10));
    let (_, value, _) = world.seed(next, &spec("k")).await;
    assert_eq!(value, 25, "above Redis's ceiling and the margin");
    assert_eq!(world.gaps(counter_id).await, [(3, 25, "Unaccounted".to_owned())]);
    let (forgotten, value, _) = world.seed(next, &spec("forgotten")).await;
    assert_eq!(value, 9);
    assert_eq!(world.gaps(forgotten).await, [(1, 9, "Unaccounted".to_owned())]);
    // A record that turns up late still finds its place.
    let late = with(entry(at(8), counter_id, 4), |record| record.counter_keys = vec!["k".into()]);
    ledger.journal_again(node, &[late]).await.unwrap();
    world.verify().await;
}

pub(super) async fn what_is_journaled_again_finds_its_counter_by_name(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (first, ..) = world.seed(open, &spec("first")).await;
    let named = |counter_id, value, key: &str| {
        with(entry(open, counter_id, value), |record| record.counter_keys = vec![key.into()])
    };
    // The ledger has given the id of a counter that it forgot to another one.
    let other = named(first, 3, "other");
    let batch = [named(first, 1, "first"), other.clone(), named(777, 2, "gone")];
    for known in [0, 3] {
        let appended = world.ledger.journal_again(world.node, &batch).await.unwrap();
        assert_eq!((appended.known, appended.collisions.len()), (known, 0), "{appended:?}");
    }
    let taken =
        async |key| world.ledger.counters().get(7, "SEQ", key).await.unwrap().unwrap().taken;
    assert_eq!((taken("first").await, taken("other").await, taken("gone").await), (1, 3, 2));
    let nameless = with(other, |record| record.counter_keys.clear());
    let refused = world.ledger.journal_again(world.node, &[nameless]).await;
    assert!(matches!(refused, Err(LedgerError::Refused(_))), "{refused:?}");
}

/// Saves the series `S`; its id and its partition.
async fn saved(world: &World, definition: serde_json::Value) -> (i64, u32) {
    let definition = serde_json::from_value(definition).unwrap();
    let (saved_by, reason) = ("me".to_owned(), "because".to_owned());
    let expected = Expected::Anything;
    let change = SeriesChange { definition, expected, saved_by, reason, saved_at_us: NOW_US };
    world.ledger.series().apply(&[change]).await.unwrap();
    let version = world.ledger.series().list().await.unwrap().remove(0);
    (version.series_id, version.partition)
}

/// Saves the series `S` with a policy.
async fn saved_with(world: &World, policy: &str) -> (i64, u32) {
    let definition = serde_json::json!({
        "code": "S", "name": "n", "serves": {"types": ["S"]}, "template": "{SEQ:3}",
        "serials": [{}], "policy": policy,
    });
    saved(world, definition).await
}

pub(super) async fn what_was_taken_where_a_series_lived_then_is_journaled_where_it_lives_now(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (first, ..) = world.seed(open, &spec("first")).await;
    let before = world.ledger.counters().get(7, "SEQ", "first").await.unwrap();
    // The copy is from before its policy was changed, and the database took its numbers.
    let (series_id, home) = saved_with(&world, "fast").await;
    let then = At { partition: 4, epoch: 9 };
    assert_ne!(home, then.partition, "gapless series have a partition of their own");
    let taken = |value| with(entry(then, first, value), |record| record.series_id = series_id);
    let batch = [taken(1), taken(2)];
    for (written, known) in [(2, 0), (0, 2)] {
        let appended = world.ledger.journal_again(world.node, &batch).await.unwrap();
        assert_eq!((appended.written, appended.known), (written, known), "{appended:?}");
    }
    let counter = world.ledger.counters().get(series_id, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!((counter.partition, counter.taken), (home, 2), "its next numbers come from there");
    assert_eq!(
        world.ledger.counters().get(7, "SEQ", "first").await.unwrap(),
        before,
        "not its values"
    );
    let told = world.replay_kept(taken(3)).await;
    assert_eq!(told.partitions.into_iter().collect::<Vec<_>>(), [home], "whose epoch ends");
}

/// The open epochs are closed exact, and the ones after them at the ceiling.
const CLOSED_SINCE: &str = "insert into closed_epoch (partition_id, epoch, closing, closed_at_us) \
    select partition_id, epoch, 'exact', 0 from partition where state = 'open'; \
    insert into closed_epoch (partition_id, epoch, closing, closed_at_us) \
    select partition_id, epoch + 1, 'ceiling', 0 from partition where state = 'open'; \
    update partition set epoch = epoch + 2, last_ceiling_epoch = epoch + 1 where state = 'open'";

pub(super) async fn a_counter_is_lifted_where_its_series_lives_now(world: World) {
    // The copy is from before its policy was changed, and redis counted it.
    let (series_id, home) = saved_with(&world, "gapless").await;
    let (then, key) = (world.redis_epoch(Closing::Exact).await.partition, "k".to_owned());
    assert_ne!(home, then);
    world.ledger.hold_all(&[], "c").await.unwrap();
    let world = world.anew().await;
    let (ledger, node) = (&world.ledger, world.node);
    let lift = |value| [Lift { series_id, serial: "SEQ".into(), key: key.clone(), value }];
    for lifted in [1, 0] {
        assert_eq!(ledger.lift(then, node, &lift(20)).await.unwrap(), lifted);
    }
    let to = At { partition: home, epoch: 3 };
    assert_eq!(ledger.release(to, 0).await.unwrap(), Released::Released);
    assert_eq!(ledger.lift(then, node, &lift(25)).await.unwrap(), 1, "untouched so far");
    let from = PartitionState::Open;
    let next = ledger.bump(to, from, node, "c").await.unwrap().unwrap();
    let to = At { epoch: next, ..to };
    ledger.claim_open(to, node, true, &Owner::Database).await.unwrap();
    let mut one = order_of(Record { series_id, ..record("d") });
    one.specs[0].series_id = series_id;
    let taken = world.take(to, one).await;
    assert_eq!(taken.taken[0].range.first, 26, "above all that redis may have issued");
    assert_eq!(ledger.lift(then, node, &lift(25)).await.unwrap(), 0, "a repeat changes nothing");
    // Everything closed at the ceiling after the epoch that counts it.
    for later in ["select 1", CLOSED_SINCE] {
        world.sql(later).await;
        let refused = ledger.lift(then, node, &lift(30)).await;
        let says = |why: &str| why.contains("--hold");
        assert!(matches!(&refused, Err(LedgerError::Refused(why)) if says(why)), "{refused:?}");
    }
    world.verify().await;
}

pub(super) async fn a_refused_record_spends_no_value_of_the_counter_that_has_its_id_by_now(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (first, ..) = world.seed(open, &spec("first")).await;
    world.seed(open, &spec("second")).await;
    let ledger = &world.ledger;
    let named = |value, key: &str| {
        with(entry(open, first, value), |record| record.counter_keys = vec![key.into()])
    };
    let counter = async |key| ledger.counters().get(7, "SEQ", key).await.unwrap();
    let before = counter("first").await;
    let refused = [named(1_500, "second"), named(1_600, "gone"), named(1_700, "never\0there")];
    for entry in refused.iter().chain(&refused) {
        ledger.reject(entry, "test").await.unwrap();
    }
    assert_eq!(counter("first").await, before, "its values are not spent");
    assert_eq!(counter("second").await.unwrap().taken, 1_500, "its own is");
    assert_eq!(counter("gone").await, None);
    assert_eq!(ledger.register().totals().await.unwrap().rejected, 3, "each is kept raw, once");
    assert_eq!(world.holes(first, 0, 2_000).await, [(1, 2_000)], "none is accounted for");
}

pub(super) async fn numbers_at_most_lost_are_summed_over_touched_and_untouched_counters(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (touched, ..) = world.seed(open, &spec("touched")).await;
    world.seed(open, &spec("untouched")).await;
    world.append(&[entry(open, touched, 1)]).await;
    let next = world.redis_epoch(Closing::Ceiling).await;
    let lost = async |closed| world.ledger.lost_at_most(closed).await.unwrap();
    assert_eq!(lost(open).await, 9 + 10);
    world.seed(next, &spec("touched")).await;
    assert_eq!(lost(open).await, 9 + 10, "what was resolved meanwhile is in the gap register");
    world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(lost(next).await, 10, "an earlier closing has the other already");
}

/// Lifts a held counter that its epoch's closing at the ceiling would settle.
async fn lifted(world: &World) -> (At, i64) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[entry(open, counter_id, 1)]).await;
    let next = world.redis_epoch(Closing::Exact).await;
    (next, counter_id)
}

pub(super) async fn a_counter_of_a_held_partition_is_not_settled(world: World) {
    let (open, counter_id) = lifted(&world).await;
    let ledger = &world.ledger;
    ledger.hold_all(&[], "c").await.unwrap();
    let lift = [Lift { series_id: 7, serial: "SEQ".into(), key: "k".into(), value: 50 }];
    assert_eq!(ledger.lift(open.partition, world.node, &lift).await.unwrap(), 1);
    ledger.settle(counter_id).await.unwrap();
    let counter = async || ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!(counter().await.ceiling, 50, "the lift stands");
    let to = at(open.epoch + 1);
    assert_eq!(ledger.release(to, 0).await.unwrap(), Released::Released);
    ledger.settle(counter_id).await.unwrap();
    let world = world.anew().await;
    let next = world.redis_epoch(Closing::Exact).await;
    let (_, value, _) = world.seed(next, &spec("k")).await;
    assert_eq!(value, 50, "and counts");
    world.verify().await;
}

pub(super) async fn a_counter_is_not_settled_while_its_partition_is_being_held(world: World) {
    // One writer at a time: nothing comes between.
    if world.ledger.engine() == "sqlite" {
        return;
    }
    let (_, counter_id) = lifted(&world).await;
    let before = world.ledger.counters().get(7, "SEQ", "k").await.unwrap();
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut holding = pool.begin().await.unwrap();
    sqlx::query("update partition set state = 'held'").execute(&mut *holding).await.unwrap();
    let ledger = std::sync::Arc::clone(&world.ledger);
    let settling = tokio::spawn(async move { ledger.settle(counter_id).await });
    let waits = world.meets_lock(&pool, &settling).await;
    assert!(waits, "it does not wait for who holds the partition");
    holding.commit().await.unwrap();
    settling.await.unwrap().unwrap();
    assert_eq!(world.ledger.counters().get(7, "SEQ", "k").await.unwrap(), before);
}

pub(super) async fn a_word_for_an_epoch_counts_from_a_hold_to_its_end(world: World) {
    let ledger = &world.ledger;
    let vouched = async || world.partition().await.vouched_epoch;
    world.redis_epoch(Closing::Exact).await;
    ledger.vouch(&[at(1)]).await.unwrap();
    assert_eq!(vouched().await, 0, "nothing is held");
    ledger.hold_all(&[], "c").await.unwrap();
    ledger.vouch(&[at(3), At { partition: 0, epoch: 9 }]).await.unwrap();
    ledger.vouch(&[at(2)]).await.unwrap();
    ledger.hold_all(&[at(3)], "c").await.unwrap();
    assert_eq!(vouched().await, 3, "the newest word stands while it is held");
    assert_eq!(ledger.release(at(4), 0).await.unwrap(), Released::Released);
    assert_eq!(vouched().await, 0);
    ledger.hold_all(&[], "c").await.unwrap();
    assert_eq!(vouched().await, 0, "nobody has given one yet");
}

pub(super) async fn the_newest_number_is_of_before_the_hold(world: World) {
    let ledger = &world.ledger;
    let (open, counter_id) = busy(&world).await;
    let newest = async |upto_us| ledger.last_issued_us(upto_us).await.unwrap();
    let upto_us = world.clock.now_us();
    let before = newest(upto_us).await;
    assert!(before.is_some_and(|issued_us| issued_us <= upto_us), "{before:?}");
    assert_eq!(newest(before.unwrap() - 1).await, None);
    // Reported again after a month: it was issued before, and says nothing of what is forgotten.
    world.clock.set(upto_us + 30 * 86_400_000_000);
    let told = with(entry(open, counter_id, 7), |record| {
        record.issued_at_us = upto_us + 1;
        record.counter_keys = vec!["k".into()];
    });
    ledger.journal_again(world.node, &[told]).await.unwrap();
    assert_eq!(newest(world.clock.now_us() - 1).await, before);
}
