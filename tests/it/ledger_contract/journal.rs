//! What enters the journal, what collides, what fills gaps, what is refused.

mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;

use numbering::{Range, TakenRange};
use numerator::ledger::{Closing, Counter, CounterSpec, Entry, LedgerError};

use super::world::{NOW_US, World, at, entry, range, spec, stepped, with};

/// An epoch of Redis with one counter, and room for 1,000 values.
async fn counting(world: &World) -> (numerator::ledger::At, i64) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &CounterSpec { headroom: 1_000, ..spec("k") }).await;
    (open, counter_id)
}

/// `taken`, ceiling and count of journaled values of the counter `k`.
pub(super) async fn marks(world: &World) -> (i64, i64, u64) {
    let counter = world.ledger.counters().get(7, "SEQ", "k").await.unwrap().unwrap();
    (counter.taken, counter.ceiling, counter.journaled)
}

pub(super) async fn entries_come_back_as_they_were_written(world: World) {
    let (open, counter_id) = counting(&world).await;
    let full = with(range(open, counter_id, 1, 20), |record| {
        record.project = Some("โครงการ".into());
        record.scope = "project=p".into();
        record.idempotency_key = Some("key#0".into());
        record.context.insert("ORIGINATOR".into(), "คคง.".into());
    });
    let sparse = with(entry(open, counter_id, 21), |record| {
        record.document_id = None;
        record.ip_address = None;
        record.context.clear();
    });
    world.clock.set(NOW_US + 5);
    world.append(&[full.clone(), sparse.clone()]).await;
    assert_eq!(marks(&world).await, (21, 1_000, 21));
    let rows = world.ledger.register().find(&Default::default()).await.unwrap();
    assert_eq!(rows.len(), 2);
    for (row, entry) in rows.iter().zip([&sparse, &full]) {
        assert_eq!(row.entry, *entry);
        assert_eq!((row.node_id, row.journaled_at_us), (world.node, NOW_US + 5));
    }
    world.verify().await;
}

pub(super) async fn a_repeated_batch_is_known_and_counts_nothing_twice(world: World) {
    let (open, counter_id) = counting(&world).await;
    let batch: Vec<Entry> = (1..=5).map(|value| entry(open, counter_id, value)).collect();
    world.append(&batch[..3]).await;
    let appended = world.ledger.append(world.node, &batch).await.unwrap();
    assert_eq!((appended.written, appended.known), (2, 3));
    assert!(appended.collisions.is_empty(), "{appended:?}");
    assert_eq!(marks(&world).await, (5, 1_000, 5));
    assert_eq!(world.ledger.append(world.node, &[]).await.unwrap().written, 0);
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 5);
}

pub(super) async fn an_entry_twice_in_one_batch_is_known(world: World) {
    let (open, counter_id) = counting(&world).await;
    let one = entry(open, counter_id, 1);
    let batch = [one.clone(), entry(open, counter_id, 2), one];
    let appended = world.ledger.append(world.node, &batch).await.unwrap();
    assert_eq!((appended.written, appended.known), (2, 1));
    assert!(appended.collisions.is_empty(), "{appended:?}");
    assert_eq!(marks(&world).await, (2, 1_000, 2));
}

pub(super) async fn a_second_equal_value_is_a_collision(world: World) {
    let (open, counter_id) = counting(&world).await;
    let first = entry(open, counter_id, 1);
    world.append(std::slice::from_ref(&first)).await;
    let second = entry(open, counter_id, 1);
    let batch = [second.clone(), entry(open, counter_id, 2)];
    for _ in 0..2 {
        let appended = world.ledger.append(world.node, &batch).await.unwrap();
        assert_eq!(appended.collisions, [second.record.allocation_id]);
    }
    let collisions = world.ledger.register().collisions(10).await.unwrap();
    assert_eq!(collisions.len(), 1, "repeats are not recorded twice: {collisions:?}");
    assert_eq!(collisions[0].allocation_id, second.record.allocation_id);
    assert_eq!(collisions[0].other_allocation_id, Some(first.record.allocation_id));
    assert_eq!((&collisions[0].number, collisions[0].counter_id), (&second.number, counter_id));
    assert_eq!((collisions[0].span.first, collisions[0].span.last), (1, 1));
    assert_eq!(
        world.ledger.register().totals().await.unwrap().journal,
        2,
        "the rest of the batch stays"
    );
}

pub(super) async fn a_second_equal_number_in_its_scope_is_a_collision(world: World) {
    let (open, counter_id) = counting(&world).await;
    let numbered = |value, number: &str, scope: &str| {
        let mut entry = with(entry(open, counter_id, value), |r| r.scope = scope.into());
        entry.number = number.into();
        entry
    };
    let (first, second) = (numbered(1, "N-1", "s"), numbered(2, "N-1", "s"));
    world.append(&[first.clone(), numbered(3, "N-1", "t"), numbered(4, "n-1", "s")]).await;
    let appended = world.ledger.append(world.node, std::slice::from_ref(&second)).await.unwrap();
    assert_eq!(appended.collisions, [second.record.allocation_id]);
    let collision = world.ledger.register().collisions(10).await.unwrap().remove(0);
    assert_eq!(collision.other_allocation_id, Some(first.record.allocation_id));

    let (fifth, sixth) = (numbered(5, "N-5", "s"), numbered(6, "N-5", "s"));
    let appended = world.ledger.append(world.node, &[fifth, sixth.clone()]).await.unwrap();
    assert_eq!(appended.collisions, [sixth.record.allocation_id], "within one batch");
    // It was handed out: the next epoch must not give its value again.
    assert_eq!(marks(&world).await, (6, 1_000, 4));
    let new = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(new, &spec("k")).await.1, 6);
    assert_eq!(world.gaps(counter_id).await, [], "a recorded collision is no gap");
}

pub(super) async fn one_collision_in_a_large_batch_keeps_nobody_out(world: World) {
    let (open, counter_id) = counting(&world).await;
    let (other, ..) = world.seed(open, &spec("other")).await;
    let mut first = with(entry(open, other, 1), |r| r.counter_keys = vec!["other".into()]);
    let mut batch: Vec<Entry> = (1..=300).map(|value| entry(open, counter_id, value)).collect();
    first.number.clone_from(&batch[149].number);
    world.append(&[first]).await;
    let batches = || world.ledger.confirmed(world.node).unwrap().batches;
    let before = batches();
    let appended = world.ledger.append(world.node, &batch).await.unwrap();
    let collided = batch.remove(149).record.allocation_id;
    assert_eq!((appended.written, appended.collisions), (299, vec![collided]));
    assert_eq!(marks(&world).await, (300, 1_000, 299));
    assert_eq!(batches(), before + 1, "whatever was tried for it");
    let again = world.ledger.append(world.node, &batch).await.unwrap();
    assert_eq!((again.written, again.known), (0, 299));
    assert_eq!(marks(&world).await, (300, 1_000, 299));
}

pub(super) async fn a_row_above_what_its_counter_has_taken_stops_no_batch(world: World) {
    let (open, counter_id) = counting(&world).await;
    let (lot, ..) = world.seed(open, &CounterSpec { serial: "LOT".into(), ..spec("k") }).await;
    let two = |value: u64, of_lot: u64| {
        let mut entry = with(entry(open, counter_id, value), |record| {
            record.serials.push("LOT".into());
            record.counter_keys.push("k".into());
        });
        let range = Range { first: of_lot, last: of_lot, step: 1 };
        entry.taken.push(TakenRange { counter_id: lot, range });
        entry
    };
    let batch = [two(1, 1), two(2, 2)];
    world.append(&batch).await;
    // A write in the ledger from outside: the counters return to their earlier values.
    world.sql("update counter set taken = 0, start_value = 0, journaled = 0").await;
    let [first, second] = batch;
    let batch = [first, second, two(3, 2), two(4, 3)];
    let appended = world.ledger.append(world.node, &batch).await.unwrap();
    assert_eq!(appended.collisions, [batch[2].record.allocation_id], "{appended:?}");
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 6);
    assert_eq!(marks(&world).await.0, 4);
}

pub(super) async fn a_range_that_overlaps_its_neighbour_is_a_collision(world: World) {
    let (open, counter_id) = counting(&world).await;
    world.append(&[range(open, counter_id, 10, 20), range(open, counter_id, 30, 40)]).await;
    for (first, last) in [(20, 20), (15, 16), (5, 10), (21, 30), (1, 100), (40, 41), (10, 20)] {
        let overlapping = range(open, counter_id, first, last);
        let appended =
            world.ledger.append(world.node, std::slice::from_ref(&overlapping)).await.unwrap();
        let collisions = [overlapping.record.allocation_id];
        assert_eq!(appended.collisions, collisions, "{first}..={last}");
    }
    world.append(&[range(open, counter_id, 21, 29), range(open, counter_id, 1, 9)]).await;
    world.append(&[range(open, counter_id, 41, 99)]).await;
}

pub(super) async fn overlaps_within_one_batch_are_collisions(world: World) {
    let (open, counter_id) = counting(&world).await;
    let whole = range(open, counter_id, 1, 9);
    let inside = [range(open, counter_id, 3, 4), range(open, counter_id, 9, 12)];
    let batch = [inside[0].clone(), inside[1].clone(), whole, range(open, counter_id, 13, 13)];
    let appended = world.ledger.append(world.node, &batch).await.unwrap();
    assert_eq!(appended.written, 2);
    let found: BTreeSet<_> = appended.collisions.into_iter().collect();
    assert_eq!(found, inside.iter().map(|e| e.record.allocation_id).collect());
}

pub(super) async fn random_ranges_collide_exactly_where_they_overlap(world: World) {
    let (open, counter_id) = counting(&world).await;
    let seed = std::env::var("NUMERATOR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    println!("NUMERATOR_SEED={seed}");
    let mut state = seed | 1;
    let mut random = move |below: u64| {
        // xorshift64*
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % below
    };
    let mut taken: BTreeSet<u64> = BTreeSet::new();
    let mut known: Vec<Entry> = Vec::new();
    for _ in 0..150 {
        let first = 1 + random(400);
        let last = first + random(6);
        let fresh = if random(4) == 0 && !known.is_empty() {
            let place = usize::try_from(random(known.len() as u64)).unwrap();
            known[place].clone()
        } else {
            range(open, counter_id, first, last)
        };
        let repeated = known.contains(&fresh);
        let values: BTreeSet<u64> = fresh.taken[0].range.values().collect();
        let appended = world.ledger.append(world.node, std::slice::from_ref(&fresh)).await.unwrap();
        let free = values.is_disjoint(&taken);
        let outcome = (appended.written, appended.known, appended.collisions.len());
        let expected = match (repeated, free) {
            (true, _) => (0, 1, 0),
            (false, true) => (1, 0, 0),
            (false, false) => (0, 0, 1),
        };
        assert_eq!(outcome, expected, "seed {seed}: {values:?}");
        if expected == (1, 0, 0) {
            taken.extend(values);
            known.push(fresh);
        }
    }
    assert_eq!(marks(&world).await.2, taken.len() as u64, "seed {seed}");
    assert_eq!(world.ledger.audits().overlaps(counter_id, 10).await.unwrap(), [], "seed {seed}");
}

/// Once its epoch is closed, a counter may have been settled: its ceiling says nothing more.
pub(super) async fn an_entry_above_the_ceiling_of_a_closed_epoch_lifts_it(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    world.redis_epoch(Closing::Exact).await;
    world.append(&[entry(open, counter_id, 12)]).await;
    assert_eq!(marks(&world).await, (12, 12, 1));
}

pub(super) async fn an_entry_of_an_older_epoch_counts_nothing(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &spec("k")).await;
    let new = world.redis_epoch(Closing::Ceiling).await;
    world.seed(new, &spec("k")).await;
    world.append(&[entry(old, counter_id, 3), entry(new, counter_id, 11)]).await;
    assert_eq!(marks(&world).await, (11, 20, 1));
    // Never happens. If it does, it must be reported, and nothing may begin below it.
    world.append(&[entry(old, counter_id, 15)]).await;
    assert_eq!(marks(&world).await, (15, 20, 1));
    let across = range(new, counter_id, 12, 17);
    let appended = world.ledger.append(world.node, std::slice::from_ref(&across)).await.unwrap();
    assert_eq!(appended.collisions, [across.record.allocation_id]);
    assert_eq!(marks(&world).await, (17, 20, 1));
}

pub(super) async fn two_nodes_that_append_to_the_same_counters_count_all_and_share_none(
    world: World,
) {
    const COUNTERS: usize = 20;
    const ROUNDS: u64 = 15;
    let open = world.redis_epoch(Closing::Exact).await;
    let mut ids = Vec::new();
    for key in 0..COUNTERS {
        ids.push(
            world.seed(open, &CounterSpec { headroom: 1_000, ..spec(&format!("k{key}")) }).await.0,
        );
    }
    // In each round both have a value of their own of each counter, and one that the other has.
    let batch = |round: u64, node: u64| -> Vec<Entry> {
        let values = [3 * round + 1 + node, 3 * round + 3];
        let of_counter = |id: &i64| values.map(|value| entry(open, *id, value));
        ids.iter().flat_map(of_counter).collect()
    };
    let appending = |node: u64| {
        let world = &world;
        async move {
            let mut collisions = 0;
            for round in 0..ROUNDS {
                let appended = world.ledger.append(world.node, &batch(round, node)).await.unwrap();
                collisions += appended.collisions.len();
            }
            collisions
        }
    };
    let (one, other) = tokio::join!(appending(0), appending(1));
    assert_eq!(one + other, COUNTERS * usize::try_from(ROUNDS).unwrap());
    let highest = i64::try_from(3 * ROUNDS).unwrap();
    for counter in world.ledger.counters().page(0, 100).await.unwrap() {
        let Counter { taken, journaled, .. } = counter;
        assert_eq!((taken, journaled), (highest, 3 * ROUNDS), "{}", counter.key);
    }
    world.verify().await;
}

pub(super) async fn a_late_entry_shrinks_the_gap(world: World) {
    let old = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(old, &CounterSpec { headroom: 20, ..spec("k") }).await;
    let new = world.redis_epoch(Closing::Ceiling).await;
    world.seed(new, &spec("k")).await;
    let lost = |first, last| (first, last, "Unaccounted".to_owned());
    assert_eq!(world.gaps(counter_id).await, [lost(1, 20)]);
    let late = [entry(old, counter_id, 1), range(old, counter_id, 5, 7)];
    world.append(&late).await;
    assert_eq!(world.gaps(counter_id).await, [lost(2, 4), lost(8, 20)]);
    world.append(&[range(old, counter_id, 2, 4), range(old, counter_id, 19, 20)]).await;
    assert_eq!(world.gaps(counter_id).await, [lost(8, 18)]);
    world.ledger.append(world.node, &late).await.unwrap();
    assert_eq!(world.gaps(counter_id).await, [lost(8, 18)], "repeated");
    world.verify().await;
}

pub(super) async fn text_that_no_column_takes_is_refused_whole(world: World) {
    let (open, counter_id) = counting(&world).await;
    let bad = with(entry(open, counter_id, 2), |r| r.document_id = Some("a\0b".into()));
    let batch = [entry(open, counter_id, 1), bad];
    let error = world.ledger.append(world.node, &batch).await.expect_err("NUL");
    assert!(matches!(&error, LedgerError::Refused(why) if why.contains("document_id")), "{error}");
    assert!(!error.retry_useful());
    let mut short = entry(open, counter_id, 3);
    short.taken.clear();
    let mut backwards = entry(open, counter_id, 3);
    backwards.taken[0].range = Range { first: 3, last: 2, step: 1 };
    let huge = stepped(open, counter_id, u64::MAX, u64::MAX, 1);
    // A value that a column of its own type would return as another text.
    let dated = |text: &str| with(entry(open, counter_id, 3), |r| r.document_date = text.into());
    let digest = with(entry(open, counter_id, 3), |r| r.payload_digest = "00FF".into());
    let odd = [dated("2026-1-2"), dated("20260102"), dated("today"), digest];
    for malformed in [short, backwards, huge].into_iter().chain(odd) {
        let error = world.ledger.append(world.node, &[malformed]).await.expect_err("malformed");
        assert!(matches!(error, LedgerError::Refused(_)), "{error}");
    }
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 0);
    assert_eq!(marks(&world).await, (0, 1_000, 0));
}

pub(super) async fn a_rejected_entry_is_accounted_for_once(world: World) {
    let (open, counter_id) = counting(&world).await;
    let bad = with(range(open, counter_id, 3, 4), |r| r.document_id = Some("a\0b".into()));
    world.append(&[range(open, counter_id, 1, 2)]).await;
    for _ in 0..2 {
        world.ledger.reject(&bad, "NUL\0").await.unwrap();
        assert_eq!(marks(&world).await, (4, 1_000, 4));
    }
    assert_eq!(world.ledger.register().totals().await.unwrap().rejected, 1);
    world.verify().await;
    let sound = with(bad, |record| record.document_id = None);
    let appended = world.ledger.append(world.node, &[sound]).await.unwrap();
    assert_eq!((appended.written, appended.known), (0, 1), "it is counted already");
    let new = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(new, &spec("k")).await.1, 4);
    assert_eq!(world.gaps(counter_id).await, []);

    // A late one fills the gap that was registered for it.
    let third = world.redis_epoch(Closing::Ceiling).await;
    world.seed(third, &spec("k")).await;
    assert_eq!(world.gaps(counter_id).await, [(5, 14, "Unaccounted".to_owned())]);
    world.ledger.reject(&entry(new, counter_id, 5), "late").await.unwrap();
    assert_eq!(world.gaps(counter_id).await, [(6, 14, "Unaccounted".to_owned())]);
}

pub(super) async fn several_serials_are_written_together(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (a, ..) = world.seed(open, &spec("k")).await;
    let (b, ..) = world.seed(open, &CounterSpec { serial: "LOT".into(), ..spec("second") }).await;
    let both = |first: u64, second: u64| {
        let mut entry = with(entry(open, a, first), |record| {
            record.serials.push("LOT".into());
            record.counter_keys.push("second".into());
        });
        let range = Range { first: second, last: second, step: 1 };
        entry.taken.push(TakenRange { counter_id: b, range });
        entry
    };
    let (one, two) = (both(1, 1), both(2, 2));
    world.append(&[one.clone(), two.clone()]).await;
    let rows = world.ledger.register().find(&Default::default()).await.unwrap();
    assert_eq!(rows.iter().map(|row| &row.entry).collect::<Vec<_>>(), [&two, &one]);
    let known = world.ledger.append(world.node, &[one]).await.unwrap();
    assert_eq!((known.written, known.known), (0, 1));

    let clash = both(3, 2);
    let appended = world.ledger.append(world.node, std::slice::from_ref(&clash)).await.unwrap();
    assert_eq!(appended.collisions, [clash.record.allocation_id]);
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 4, "none of its serials");
    let mut numbered_twice = both(4, 3);
    numbered_twice.number = Arc::new(two.number).to_string();
    let appended = world.ledger.append(world.node, &[numbered_twice]).await.unwrap();
    assert_eq!(appended.collisions.len(), 1);
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, 4, "none of its serials");
    assert_eq!(world.holes(b, 0, 3).await, [], "the collisions account for their values");
    assert_eq!(at(open.epoch), open);
}
