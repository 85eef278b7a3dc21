//! First touches, raises, and what a closed epoch leaves behind.

use numerator::ledger::{
    At, Closing, Counter, CounterSpec, LedgerError, Owner, PartitionState, Raise, SeedOutcome,
    SharedLedger, Unsettled,
};
use numerator::node::NodeId;

use super::world::{LOCK_WAIT, World, at, entry, order, range, spec, stepped};

pub(super) async fn a_new_counter_starts_below_its_first_value(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let wanted = CounterSpec { start: 1, step: 5, ..spec("k") };
    let (counter_id, value, ceiling) = world.seed(open, &wanted).await;
    assert_eq!((value, ceiling), (-4, 46));
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    let partition = open.partition;
    assert_eq!(
        counter,
        Counter {
            counter_id,
            series_id: 7,
            serial: "SEQ".into(),
            key: "k".into(),
            partition,
            epoch: open.epoch,
            origin: -4,
            start: -4,
            taken: -4,
            ceiling: 46,
            step: 5,
            journaled: 0,
            returned: 0,
            reissued: 0,
        }
    );
    assert_eq!(world.ledger.counters().get(7, "SEQ", "K").await.unwrap(), None);
    assert_eq!(world.ledger.counters().get(7, "LOT", "k").await.unwrap(), None);
}

pub(super) async fn a_first_ceiling_stays_on_the_step_below_the_maximum(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (_, value, ceiling) =
        world.seed(open, &CounterSpec { start: 1, step: 5, max: 10, ..spec("k") }).await;
    assert_eq!((value, ceiling), (-4, 6));
    let still = CounterSpec { step: 0, ..spec("k") };
    for refused in [still, CounterSpec { start: u64::MAX, ..spec("huge") }] {
        let error = world.ledger.seed(open, world.node, &[refused]).await.expect_err("refused");
        assert!(matches!(error, LedgerError::Refused(_)), "{error}");
    }
    let (_, value, ceiling) =
        world.seed(open, &CounterSpec { start: 20, max: 10, ..spec("full") }).await;
    assert_eq!((value, ceiling), (19, 19), "at least where it starts");
}

pub(super) async fn a_second_seed_in_one_epoch_names_the_first_seeder(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("b")).await;
    world.append(&[range(open, counter_id, 1, 4)]).await;
    let specs = [spec("c"), spec("b"), spec("c")];
    let outcomes = world.ledger.seed(open, NodeId::random(), &specs).await.unwrap();
    assert!(matches!(outcomes[0], SeedOutcome::Seeded { value: 0, ceiling: 10, .. }));
    let seeder = world.node;
    assert_eq!(outcomes[1], SeedOutcome::Already { counter_id, seeder, value: 0, ceiling: 10 });
    assert!(matches!(outcomes[2], SeedOutcome::Already { .. }), "twice in one call");
}

pub(super) async fn counters_are_read_by_their_ids_in_the_order_asked_for(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (a, ..) = world.seed(open, &spec("a")).await;
    let (b, ..) = world.seed(open, &spec("b")).await;
    world.append(&[range(open, b, 1, 4)]).await;
    let rows = world.ledger.counters().among(&[b, 4711, a, b]).await.unwrap();
    let rows = rows.iter().map(|row| row.as_ref().map(|row| (row.name(), row.taken)));
    let (a, b) = (Some((spec("a").name(), 0)), Some((spec("b").name(), 4)));
    assert_eq!(rows.collect::<Vec<_>>(), [b.clone(), None, a, b]);
    assert_eq!(world.ledger.counters().among(&[]).await.unwrap(), []);
}

pub(super) async fn of_many_seeders_of_a_new_counter_one_seeds_it(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        let ledger = world.another().await;
        calls.push(tokio::spawn(async move {
            let specs: Vec<CounterSpec> = ["b", "a", "c"].map(spec).into();
            ledger.seed(open, NodeId::random(), &specs).await.unwrap()
        }));
    }
    let mut seeded = [0; 3];
    for call in calls {
        for (index, outcome) in call.await.unwrap().iter().enumerate() {
            seeded[index] += u32::from(matches!(outcome, SeedOutcome::Seeded { .. }));
        }
    }
    assert_eq!(seeded, [1, 1, 1]);
}

pub(super) async fn a_seed_is_fenced_once_the_epoch_is_over(world: World) {
    let (ledger, old) = (&world.ledger, world.redis_epoch(Closing::Exact).await);
    world.seed(old, &spec("k")).await;
    ledger.bump(old, PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    let fenced = async |at, key| {
        let error = ledger.seed(at, world.node, &[spec(key)]).await.expect_err("fenced");
        let expected = matches!(error, LedgerError::Fenced { epoch, .. } if epoch == at.epoch);
        assert!(expected, "{error}");
    };
    fenced(old, "new").await;
    fenced(old, "k").await;
    fenced(at(old.epoch + 1), "new").await;
    assert_eq!(
        ledger.counters().get(7, "SEQ", "new").await.unwrap(),
        None,
        "nothing is left of it"
    );
    world.claim(at(2), Closing::Exact, &super::world::redis()).await;
    fenced(at(2), "new").await;
    assert!(ledger.opened(at(2), world.node).await.unwrap());
    world.seed(at(2), &spec("new")).await;
    fenced(old, "new").await;
}

pub(super) async fn a_raise_lifts_and_never_lowers(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (a, ..) = world.seed(open, &spec("a")).await;
    let (b, ..) = world.seed(open, &spec("b")).await;
    let raises = [(b, 30), (a, 5), (b, 20), (999, 1)];
    let raises = raises.map(|(counter_id, ceiling)| Raise { counter_id, ceiling });
    let ceilings = world.ledger.raise(open, &raises).await.unwrap();
    assert_eq!(ceilings, [Some(30), Some(10), Some(30), None]);
}

pub(super) async fn a_raise_is_fenced_once_the_counter_went_on(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    let new = world.redis_epoch(Closing::Exact).await;
    let raise = [Raise { counter_id, ceiling: 99 }];
    assert_eq!(world.ledger.raise(new, &raise).await.unwrap(), [None], "not seeded yet");
    world.seed(new, &spec("k")).await;
    assert_eq!(world.ledger.raise(old, &raise).await.unwrap(), [None]);
    assert_eq!(world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap().ceiling, 10);
    assert_eq!(world.ledger.raise(new, &raise).await.unwrap(), [Some(99)]);
    let elsewhere = At { partition: 0, epoch: new.epoch };
    assert_eq!(world.ledger.raise(elsewhere, &raise).await.unwrap(), [None]);
}

pub(super) async fn a_counter_goes_on_from_taken_after_an_exact_close(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    // 1 and 4..5 were taken by flights that were not handed out.
    world.append(&[range(old, counter_id, 2, 3), entry(old, counter_id, 6)]).await;
    let new = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(new, &spec("k")).await, (counter_id, 6, 16));
    let lost = |first, last| (first, last, "Discarded".to_owned());
    assert_eq!(world.gaps(counter_id).await, [lost(1, 1), lost(4, 5)]);
    world.verify().await;

    world.append(&[range(new, counter_id, 7, 9)]).await;
    let third = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(third, &spec("k")).await, (counter_id, 9, 19));
    assert_eq!(world.gaps(counter_id).await.len(), 2, "a complete epoch leaves none");
}

pub(super) async fn a_step_leaves_no_false_holes(world: World) {
    let by_five = CounterSpec { start: 5, step: 5, headroom: 6, ..spec("k") };
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, value, ceiling) = world.seed(old, &by_five).await;
    assert_eq!((value, ceiling), (0, 30));
    world.append(&[stepped(old, counter_id, 5, 10, 5), stepped(old, counter_id, 20, 20, 5)]).await;
    assert_eq!(world.holes(counter_id, 0, 20).await, [(15, 15)]);
    assert_eq!(world.holes(counter_id, 0, 30).await, [(15, 15), (25, 30)]);
    assert_eq!(world.holes(counter_id, 0, 24).await, [(15, 15)], "24 is no value");
    // The next epoch counts by one: its values follow the old progression's last one.
    let new = world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(world.seed(new, &spec("k")).await, (counter_id, 30, 40));
    let lost = |first, last| (first, last, "Unaccounted".to_owned());
    assert_eq!(world.gaps(counter_id).await, [lost(15, 15), lost(25, 30)]);
    world.append(&[range(new, counter_id, 31, 33)]).await;
    world.verify().await;
    // And back to five, where nothing lies between 33 and 38.
    let third = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(third, &by_five).await, (counter_id, 33, 63));
    world.append(&[stepped(third, counter_id, 38, 43, 5)]).await;
    world.verify().await;
}

pub(super) async fn an_untouched_counter_is_settled_on_request(world: World) {
    let ledger = &world.ledger;
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    world.append(&[entry(old, counter_id, 3)]).await;
    ledger.settle(counter_id).await.unwrap();
    assert_eq!(world.gaps(counter_id).await, [], "its epoch is the current one");
    world.join_silently(old).await;
    ledger.bump(old, PartitionState::Open, world.node, "c").await.unwrap().unwrap();
    ledger.settle(counter_id).await.unwrap();
    assert_eq!(world.gaps(counter_id).await, [], "its epoch is not closed yet");
    world.claim(at(2), Closing::Ceiling, &super::world::redis()).await;
    assert!(ledger.opened(at(2), world.node).await.unwrap());
    for _ in 0..2 {
        ledger.settle(counter_id).await.unwrap();
        let lost = |first, last| (first, last, "Unaccounted".to_owned());
        assert_eq!(world.gaps(counter_id).await, [lost(1, 2), lost(4, 10)]);
    }
    world.verify().await;
    assert_eq!(world.seed(at(2), &spec("k")).await, (counter_id, 10, 20), "still a first touch");
    assert_eq!(world.gaps(counter_id).await.len(), 2);
    let error = ledger.settle(999).await.expect_err("unknown");
    assert!(matches!(error, LedgerError::Refused(_)), "{error}");
}

pub(super) async fn more_holes_than_one_search_finds_are_all_registered(world: World) {
    let wide = CounterSpec { headroom: 6_000, ..spec("k") };
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &wide).await;
    let odd: Vec<_> = (0..2_500).map(|i| entry(old, counter_id, 2 * i + 1)).collect();
    world.append(&odd).await;
    let new = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(new, &wide).await.1, 4_999);
    while world.ledger.settle_slice(1_100).await.unwrap() {}
    assert_eq!(world.ledger.register().totals().await.unwrap().gaps, 2_499);
    assert_eq!(world.ledger.unsettled(10).await.unwrap(), []);
    world.verify().await;
}

pub(super) async fn a_start_reads_no_more_than_a_slice_of_a_long_epoch(world: World) {
    let wide = CounterSpec { headroom: 6_000, ..spec("k") };
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &wide).await;
    let odd: Vec<_> = (0..2_500).map(|i| entry(old, counter_id, 2 * i + 1)).collect();
    world.append(&odd).await;
    let new = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(new, &wide).await.1, 4_999, "a start needs only the base");
    let gaps = world.ledger.register().totals().await.unwrap().gaps;
    assert!(gaps <= 1_000, "the start read the whole epoch: {gaps} gaps");
    let unsettled = world.ledger.unsettled(10).await.unwrap();
    let [Unsettled { left, gone: 0, .. }] = unsettled[..] else { panic!("{unsettled:?}") };
    assert_eq!(left, 4_999 - 2 * gaps - 1, "up to its last row");
}

/// Goal: what a long epoch lost is found later, whichever process dies on the way and whatever
/// comes late. Method: slices of few rows by three processes, the first of which is gone after one.
pub(super) async fn a_long_epoch_is_settled_in_slices_whoever_dies(world: World) {
    let wide = CounterSpec { headroom: 6_000, ..spec("k") };
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &wide).await;
    let odd: Vec<_> = (0..1_500).map(|i| entry(old, counter_id, 2 * i + 1)).collect();
    world.append(&odd).await;
    let new = world.redis_epoch(Closing::Ceiling).await;
    assert_eq!(world.seed(new, &wide).await.1, 6_000);
    let left = async || world.ledger.unsettled(1).await.unwrap().first().map(|one| one.left);
    let before = left().await.unwrap();
    let first = world.another().await;
    assert!(first.settle_slice(100).await.unwrap());
    drop(first);
    assert_eq!(left().await, Some(before - 200), "its slice is committed");
    // One late row where a gap exists already, one where no slice has looked yet.
    world.append(&[entry(old, counter_id, 2), entry(old, counter_id, 2_998)]).await;
    let others = [world.another().await, world.another().await];
    let settle = async |ledger: &SharedLedger| while ledger.settle_slice(90).await.unwrap() {};
    tokio::join!(settle(&others[0]), settle(&others[1]));
    assert_eq!((left().await, world.ledger.settle_slice(90).await.unwrap()), (None, false));
    let gaps = world.gaps(counter_id).await;
    assert_eq!(gaps.len(), 1_498);
    let has = |value| gaps.iter().any(|(first, last, _)| (*first..=*last).contains(&value));
    assert!(!has(2) && !has(2_998) && has(4) && has(6_000), "{gaps:?}");
    assert_eq!(gaps.last(), Some(&(3_000, 6_000, "Unaccounted".to_owned())));
    world.verify().await;
}

/// Goal: a late row and the slice that misses it leave no false gap. Method: the row is written in
/// a transaction that is open while the slice looks, and locks the counter as every such one does.
pub(super) async fn a_late_row_that_a_slice_did_not_see_leaves_no_gap(world: World) {
    if world.ledger.engine() == "sqlite" {
        // One transaction writes at a time: there is no such moment.
        return;
    }
    let wide = CounterSpec { headroom: 6_000, ..spec("k") };
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &wide).await;
    let odd: Vec<_> = (0..1_200).map(|i| entry(old, counter_id, 2 * i + 1)).collect();
    world.append(&odd).await;
    let new = world.redis_epoch(Closing::Ceiling).await;
    world.seed(new, &wide).await;
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    sqlx::raw_sql(
        "select counter_id from counter for update; \
         insert into journal (counter_id, first_value, allocation_id, number, scope, mask, \
         issued_at_us, batch_id, kind_id, user_name_id, document_day) \
         select counter_id, 2398, '\\x00', 'late', scope, 'late', issued_at_us, batch_id, kind_id, \
         user_name_id, document_day from journal where first_value = 1",
    )
    .execute(&mut *tx)
    .await
    .unwrap();
    let ledger = world.another().await;
    let settling = tokio::spawn(async move { while ledger.settle_slice(5_000).await.unwrap() {} });
    world.meets_lock(&pool, &settling).await;
    tx.commit().await.unwrap();
    settling.await.unwrap();
    let gaps = world.gaps(counter_id).await;
    assert!(gaps.iter().any(|(first, ..)| *first == 2_396), "{gaps:?}");
    assert!(gaps.iter().all(|(first, ..)| *first != 2_398), "a false gap");
    world.verify().await;
}

pub(super) async fn a_counter_of_another_partition_is_refused_and_fences_nobody(world: World) {
    let home = world.database_epoch().await;
    world.take(home, order("a")).await;
    let open = async |partition, owner: Owner| {
        let at = At { partition, epoch: 0 };
        let from = PartitionState::Open;
        let epoch = world.ledger.bump(at, from, world.node, "test").await.unwrap().unwrap();
        let at = At { epoch, ..at };
        world.ledger.claim_open(at, world.node, false, &owner).await.unwrap();
        if owner != Owner::Database {
            assert!(world.ledger.opened(at, world.node).await.unwrap());
        }
        at
    };
    let database = open(0, Owner::Database).await;
    let taken = world.ledger.take(database, world.node, &[order("b")], LOCK_WAIT).await;
    assert!(matches!(taken, Err(LedgerError::SeriesChanged)), "{taken:?}");
    let redis = open(1, super::world::redis()).await;
    let seeded = world.ledger.seed(redis, world.node, &[spec("k")]).await;
    assert!(matches!(seeded, Err(LedgerError::SeriesChanged)), "{seeded:?}");
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 1);
}

/// Transactions that lock the same counters in different orders wait for each other until the
/// database ends one of them.
pub(super) async fn writers_of_many_counters_lock_them_in_one_order(world: World) {
    const COUNTERS: u64 = 40;
    const ROUNDS: u64 = 30;
    let epoch = world.redis_epoch(Closing::Exact).await;
    let wide = |i: u64| CounterSpec { headroom: 1_000, ..spec(&format!("k{i:02}")) };
    let specs: Vec<CounterSpec> = (0..COUNTERS).map(wide).collect();
    let mut ids = Vec::new();
    // The ids rise as the names fall.
    for spec in specs.iter().rev() {
        ids.push(world.seed(epoch, spec).await.0);
    }
    let appender = async {
        for round in 1..=ROUNDS {
            let entries: Vec<_> = ids.iter().map(|id| entry(epoch, *id, round)).collect();
            world.ledger.append(world.node, &entries).await.expect("appended");
        }
    };
    let raiser = async {
        for round in 1..=ROUNDS {
            let ceiling = i64::try_from(1_000 + round).unwrap();
            let raise = |id: &i64| Raise { counter_id: *id, ceiling };
            let raises: Vec<_> = ids.iter().rev().map(raise).collect();
            world.ledger.raise(epoch, &raises).await.expect("raised");
        }
    };
    let seeder = async {
        for _ in 0..ROUNDS {
            world.ledger.seed(epoch, world.node, &specs).await.expect("seeded already");
        }
    };
    tokio::join!(appender, raiser, seeder);
    world.verify().await;
}
