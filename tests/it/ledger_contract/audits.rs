//! What operators and auditors ask: tightest ceilings, recorded allocations, closed epochs, gaps.

use numerator::ledger::{Closing, Counter, Event, GapFilter, GapReason, Raise};

use super::world::{NOW_US, PARTITION, World, at, entry, range, spec};

pub(super) async fn the_tightest_counters_of_redis_come_first(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let mut ids = Vec::new();
    for (key, headroom) in [("a", 30), ("b", 10), ("c", 20)] {
        let spec = numerator::ledger::CounterSpec { headroom, ..spec(key) };
        ids.push(world.seed(open, &spec).await.0);
    }
    world.append(&[range(open, ids[2], 1, 15)]).await;
    let tightest = world.ledger.counters().tightest(2).await.unwrap();
    let seen: Vec<_> = tightest.iter().map(|c| (&*c.key, c.headroom())).collect();
    assert_eq!(seen, [("c", 5), ("b", 10)]);
    let raise = [Raise { counter_id: ids[2], ceiling: 100 }];
    world.ledger.raise(open, &raise).await.unwrap();
    assert_eq!(world.ledger.counters().tightest(1).await.unwrap()[0].key, "b");
    // Neither counters of an epoch that has ended nor those of the database run out of room.
    world.database_epoch().await;
    assert_eq!(world.ledger.counters().tightest(10).await.unwrap(), Vec::<Counter>::new());
}

pub(super) async fn an_allocation_is_recorded_wherever_it_stands(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    let (journaled, rejected) = (range(open, id, 1, 3), entry(open, id, 4));
    let (collided, unknown) = (entry(open, id, 2), entry(open, id, 5));
    world.append(std::slice::from_ref(&journaled)).await;
    world.ledger.reject(&rejected, "test").await.unwrap();
    world.ledger.append(world.node, std::slice::from_ref(&collided)).await.unwrap();
    let all = [&journaled, &rejected, &collided, &unknown];
    let named = |e: &&numerator::ledger::Entry| (e.record.allocation_id, e.taken[0]);
    let asked: Vec<_> = all.iter().map(named).collect();
    assert_eq!(world.ledger.recorded(&asked).await.unwrap(), [true, true, true, false]);
    assert_eq!(world.ledger.recorded(&[]).await.unwrap(), Vec::<bool>::new());
    // More than one statement asks for.
    let many: Vec<_> = asked.iter().cycle().take(1_200).cloned().collect();
    let found = world.ledger.recorded(&many).await.unwrap();
    assert_eq!(found.iter().filter(|is| **is).count(), 900);
}

pub(super) async fn a_closed_epoch_names_who_was_missing(world: World) {
    let first = world.redis_epoch(Closing::Exact).await;
    let second = world.redis_epoch(Closing::Ceiling).await;
    let third = world.redis_epoch(Closing::Exact).await;
    let closed = |from: u64, how| world.ledger.closed_epoch(at(from), how);
    let exact = closed(second.epoch, Some(Closing::Exact)).await.unwrap().unwrap();
    assert_eq!((exact.at, exact.missing.len()), (second, 0));
    let ceiling = closed(0, Some(Closing::Ceiling)).await.unwrap().unwrap();
    assert_eq!((ceiling.at, ceiling.closing), (first, Closing::Ceiling));
    assert_eq!(ceiling.closed_at_us, NOW_US);
    assert_eq!(ceiling.missing.len(), 1);
    assert_eq!(ceiling.missing[0].1, "test", "by its label");
    let own = closed(first.epoch, None).await.unwrap().unwrap();
    assert_eq!(own.at, first);
    assert_eq!(closed(third.epoch, None).await.unwrap(), None, "not closed yet");
}

pub(super) async fn gaps_are_listed_by_counter_series_and_reason(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let other = numerator::ledger::CounterSpec { series_id: 8, ..spec("other") };
    let (id, ..) = world.seed(open, &spec("k")).await;
    let (other_id, ..) = world.seed(open, &other).await;
    world.append(&[entry(open, id, 3), entry(open, other_id, 2)]).await;
    world.redis_epoch(Closing::Exact).await;
    for counter_id in [id, other_id] {
        world.ledger.settle(counter_id).await.unwrap();
    }
    let list = async |filter: GapFilter| world.ledger.register().gaps(&filter).await.unwrap();
    let all = list(GapFilter::default()).await;
    assert_eq!(all.iter().map(|gap| &*gap.key).collect::<Vec<_>>(), ["other", "k"]);
    let gap = &all[1];
    assert_eq!((gap.counter_id, gap.series_id, &*gap.serial, gap.step), (id, 7, "SEQ", 1));
    assert_eq!((gap.at, gap.span.first, gap.span.last), (open, 1, 2));
    let of_series = list(GapFilter { series_id: Some(8), ..GapFilter::default() }).await;
    assert_eq!(of_series, all[..1]);
    let of_reason = |reason| GapFilter { reason: Some(reason), ..GapFilter::default() };
    assert_eq!(list(of_reason(GapReason::Discarded)).await, all);
    assert_eq!(list(of_reason(GapReason::Unaccounted)).await, []);
    let settled = world.ledger.counters().page(0, 10).await.unwrap();
    assert!(settled.iter().all(Counter::is_settled), "{settled:?}");
}

pub(super) async fn the_masks_beside_a_value_are_those_of_its_neighbours(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    world.append(&[entry(open, id, 2), range(open, id, 5, 7)]).await;
    let masks = async |value| world.ledger.register().masks_beside(id, value).await.unwrap();
    let both = masks(3).await;
    assert_eq!(both.len(), 2);
    assert_eq!(masks(1).await, both[..1]);
    assert_eq!(masks(9).await, both[1..]);
    assert_eq!(
        world.ledger.register().masks_beside(id + 1, 1).await.unwrap(),
        Vec::<String>::new()
    );
}

pub(super) async fn events_of_an_epoch_are_its_own(world: World) {
    for (kind, partition, epoch) in [
        ("opening", PARTITION, 4),
        ("fenced", PARTITION, 5),
        ("import", PARTITION, 4),
        ("return", 0, 4),
    ] {
        let event = Event {
            at_us: NOW_US,
            kind: kind.into(),
            partition: Some(partition),
            epoch: Some(epoch),
            node_id: None,
            detail: serde_json::json!({}),
        };
        world.ledger.events().record(&event).await.unwrap();
    }
    let events = world.ledger.events().of(at(4)).await.unwrap();
    assert_eq!(events.iter().map(|event| &*event.kind).collect::<Vec<_>>(), ["import", "opening"]);
}
