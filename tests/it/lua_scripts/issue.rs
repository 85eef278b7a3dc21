//! Taking numbers: ranges, ceilings, last values, damaged counters, several takes.

use std::slice::from_ref;

use numerator::redis::{CounterError, Flight, IssueOutcome, IssueRequest};

use super::bench::{Bench, NOW_MS, NUMBER_MAX, keyed, plain, range, take, taken};

#[tokio::test]
async fn numbers_of_one_flight_follow_each_other_in_its_order() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let outcomes = bench.issue(&[plain("c"), plain("c"), plain("c")]).await;
    assert_eq!(outcomes, [taken(1), taken(2), taken(3)]);
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(4)]);
    let key = bench.counter_key("c");
    assert_eq!(bench.server.cli(&["hmget", &key, "value", "check", "ceiling"]), "4\n4\n100");
}

#[tokio::test]
async fn a_range_carries_both_ends_and_its_step() {
    let mut bench = Bench::new().await;
    bench.seed("c", -9, 100).await;
    let request = IssueRequest { takes: vec![take("c", 3, 10)], ..plain("c") };
    let outcomes = bench.issue(&[request]).await;
    assert_eq!(outcomes, [IssueOutcome::Taken(vec![range(1, 21, 10)])]);
}

#[tokio::test]
async fn a_ceiling_off_the_step_is_never_passed() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 25).await;
    let request = || IssueRequest { takes: vec![take("c", 1, 10)], ..plain("c") };
    let outcomes = bench.issue(&[request(), request(), request()]).await;
    assert_eq!(outcomes[1], IssueOutcome::Taken(vec![range(20, 20, 10)]));
    assert_eq!(outcomes[2], IssueOutcome::Ceiling { take: 0, value: 20, ceiling: 25 });
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(21)]);
}

#[tokio::test]
async fn the_largest_number_is_taken_exactly_and_none_after_it() {
    let mut bench = Bench::new().await;
    let max = i64::try_from(NUMBER_MAX).unwrap();
    bench.seed("c", max - 2, max).await;
    let outcomes = bench.issue(&[plain("c"), plain("c"), plain("c")]).await;
    assert_eq!(outcomes[..2], [taken(NUMBER_MAX - 1), taken(NUMBER_MAX)]);
    assert_eq!(outcomes[2], IssueOutcome::Exhausted { take: 0 });
    let mut endless = plain("c");
    endless.takes[0].max = u64::MAX;
    endless.takes[0].count = u64::MAX;
    endless.takes[0].step = u64::MAX;
    assert_eq!(bench.issue(&[endless]).await, [IssueOutcome::Exhausted { take: 0 }]);
}

#[tokio::test]
async fn a_counter_past_its_last_value_is_exhausted_before_its_ceiling_matters() {
    let mut bench = Bench::new().await;
    bench.seed("c", 998, 998).await;
    let mut request = plain("c");
    request.takes[0].max = 999;
    request.takes[0].count = 2;
    assert_eq!(bench.issue(&[request.clone()]).await, [IssueOutcome::Exhausted { take: 0 }]);
    request.takes[0].count = 1;
    let full = IssueOutcome::Ceiling { take: 0, value: 998, ceiling: 998 };
    assert_eq!(bench.issue(&[request]).await, [full]);
}

#[tokio::test]
async fn a_counter_below_the_smallest_value_of_a_request_gives_nothing_until_it_is_there() {
    let mut bench = Bench::new().await;
    bench.seed("c", 3, 100).await;
    let from = |start: u64, count: u64| {
        let mut request = plain("c");
        (request.takes[0].start, request.takes[0].count) = (start, count);
        request
    };
    let below = |value: i64| IssueOutcome::Below { take: 0, counter_id: 70, value };
    // Not even if the last of its values would be high enough.
    assert_eq!(bench.issue(&[from(5, 1), from(5, 9)]).await, [below(3), below(3)]);
    // A request that may take the value below takes it, and the next one is high enough.
    assert_eq!(
        bench.issue(&[plain("c"), from(5, 1), from(5, 1)]).await,
        [taken(4), taken(5), taken(6)]
    );
    let both =
        IssueRequest { takes: vec![take("c", 1, 1), from(50, 1).takes.remove(0)], ..plain("c") };
    let refused = IssueOutcome::Below { take: 1, counter_id: 70, value: 7 };
    // What the first take had is given back.
    assert_eq!(bench.issue(&[both, plain("c")]).await, [refused, taken(7)]);
}

#[tokio::test]
async fn several_takes_of_one_request_succeed_or_fail_together() {
    let mut bench = Bench::new().await;
    bench.seed("a", 0, 100).await;
    bench.seed("b", 0, 2).await;
    let both = || IssueRequest { takes: vec![take("a", 1, 1), take("b", 1, 1)], ..plain("a") };
    let pair = |value| IssueOutcome::Taken(vec![range(value, value, 1), range(value, value, 1)]);
    let outcomes = bench.issue(&[both(), both(), both(), plain("a")]).await;
    let full = IssueOutcome::Ceiling { take: 1, value: 2, ceiling: 2 };
    // The third request gave back what it had of counter `a`.
    assert_eq!(outcomes, [pair(1), pair(2), full, taken(3)]);
    let twice = IssueRequest { takes: vec![take("a", 2, 1), take("a", 1, 1)], ..plain("a") };
    let run = IssueOutcome::Taken(vec![range(4, 5, 1), range(6, 6, 1)]);
    assert_eq!(bench.issue(&[twice]).await, [run]);
}

#[tokio::test]
async fn a_missing_counter_is_cold_and_never_zero() {
    let mut bench = Bench::new().await;
    bench.seed("a", 0, 100).await;
    let both = IssueRequest { takes: vec![take("a", 1, 1), take("b", 1, 1)], ..plain("a") };
    assert_eq!(bench.issue(&[both]).await, [IssueOutcome::Cold { take: 1 }]);
    let key = bench.counter_key("a");
    bench.server.cli(&["del", &key]);
    assert_eq!(bench.issue(&[plain("a")]).await, [IssueOutcome::Cold { take: 0 }]);
    assert_eq!(bench.server.cli(&["exists", &key]), "0");
}

#[tokio::test]
async fn what_does_not_bear_this_epoch_is_cold_whatever_it_is() {
    let mut bench = Bench::new().await;
    bench.seed("c", 5, 100).await;
    let key = bench.counter_key("c");
    for damage in [["hset", "epoch", "4"], ["hset", "epoch", "6"], ["hdel", "epoch", "x"]] {
        bench.server.cli(&[damage[0], &key, damage[1], damage[2]]);
        assert_eq!(bench.issue(&[plain("c")]).await, [IssueOutcome::Cold { take: 0 }]);
    }
    for make in [["set", "5"], ["lpush", "5"], ["sadd", "5"]] {
        bench.server.cli(&["del", &key]);
        bench.server.cli(&[make[0], &key, make[1]]);
        assert_eq!(bench.issue(&[plain("c")]).await, [IssueOutcome::Cold { take: 0 }]);
        // Seeding ends it: otherwise each recovery would meet the same key again (F14).
        bench.seed("c", 5, 100).await;
        assert_eq!(bench.issue(&[plain("c")]).await, [taken(6)]);
    }
}

#[tokio::test]
async fn a_counter_that_somebody_wrote_to_is_regressed() {
    let damages: [&[&str]; 9] = [
        &["hset", "value", "3"],
        &["hset", "check", "3"],
        &["hset", "value", "101", "check", "101"],
        &["hset", "value", "x", "check", "x"],
        &["hset", "value", "1e3", "check", "1e3"],
        &["hset", "value", "9007199254740993", "check", "9007199254740993"],
        &["hdel", "check"],
        &["hdel", "ceiling"],
        &["hdel", "id"],
    ];
    let mut bench = Bench::new().await;
    for (i, damage) in damages.iter().enumerate() {
        let name = format!("c{i}");
        bench.seed(&name, 5, 100).await;
        let key = bench.counter_key(&name);
        let mut command = vec![damage[0], &key];
        command.extend(&damage[1..]);
        bench.server.cli(&command);
        let outcomes = bench.issue(&[plain(&name)]).await;
        assert_eq!(outcomes, [IssueOutcome::Regressed { take: 0 }], "{damage:?}");
    }
}

#[tokio::test]
async fn a_counter_below_what_the_node_has_seen_is_regressed() {
    let mut bench = Bench::new().await;
    bench.seed("c", 100, 200).await;
    let with_seen = |seen| {
        let mut request = plain("c");
        request.takes[0].seen = Some(seen);
        request
    };
    // The first request lifts the working copy; the second is judged by what Redis holds.
    let outcomes = bench.issue(&[plain("c"), with_seen(101), with_seen(100)]).await;
    assert_eq!(outcomes, [taken(101), IssueOutcome::Regressed { take: 0 }, taken(102)]);
}

#[tokio::test]
async fn a_counter_that_the_node_has_not_seen_is_shown_and_nothing_is_taken_from_it() {
    let mut bench = Bench::new().await;
    bench.seed("c", 100, 200).await;
    bench.seed("d", 5, 10).await;
    let mut both = IssueRequest { takes: vec![take("d", 1, 1), take("c", 1, 1)], ..plain("c") };
    both.takes[1].seen = None;
    let mut past_its_ceiling = both.clone();
    past_its_ceiling.takes[1].count = 500;
    let counters = |bench: &Bench| {
        ["c", "d"].map(|name| bench.server.cli(&["hgetall", &bench.counter_key(name)]))
    };
    let before = counters(&bench);
    let unseen = IssueOutcome::Unverified { take: 1, counter_id: 70, ceiling: 200 };
    let outcomes = bench.issue(&[both, past_its_ceiling]).await;
    assert_eq!(outcomes, [unseen.clone(), unseen]);
    assert_eq!(counters(&bench), before);
}

#[tokio::test]
async fn a_flight_that_asks_for_nothing_is_the_callers_mistake_and_writes_nothing() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let before = bench.dump();
    let none = IssueRequest { takes: vec![], ..plain("c") };
    let zero = IssueRequest { takes: vec![take("c", 0, 1)], ..plain("c") };
    let still = IssueRequest { takes: vec![take("c", 1, 0)], ..plain("c") };
    let too_many = vec![plain("c"); Flight::REQUESTS_MAX + 1];
    for requests in [vec![plain("c"), none], vec![plain("c"), zero], vec![still], too_many] {
        let guard = bench.next();
        let flight = bench.flight(&guard, &requests);
        let result = bench.redis.issue(&flight).await;
        assert!(matches!(result, Err(CounterError::Broken(_))), "{result:?}");
    }
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn the_largest_flight_fits_one_outbox_entry() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 10_000).await;
    let outcomes = bench.issue(&vec![plain("c"); Flight::REQUESTS_MAX]).await;
    assert_eq!(outcomes.last(), Some(&taken(1_000)));
    assert_eq!(bench.server.cli(&["xlen", &bench.outbox_key()]), "1");
}

#[tokio::test]
async fn an_outbox_entry_holds_nothing_of_those_who_took_nothing() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 2).await;
    let requests = vec![plain("missing"), plain("c"), plain("missing"), plain("c"), plain("c")];
    let guard = bench.next();
    let flight = bench.flight(&guard, &requests);
    for _ in 0..2 {
        let outcomes = super::bench::issued(bench.redis.issue(&flight).await);
        assert_eq!((&outcomes[1], &outcomes[3]), (&taken(1), &taken(2)), "{outcomes:?}");
    }
    let entry = bench.server.cli(&["--raw", "xrange", &bench.outbox_key(), "-", "+"]);
    let records: Vec<&str> = entry.lines().skip_while(|line| *line != "records").collect();
    assert_eq!(records[1..6], ["-", "record of c", "-", "record of c", "-"], "{entry}");
}

#[tokio::test]
async fn a_full_memory_refuses_the_flight_whole() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let before = bench.dump();
    bench.server.cli(&["config", "set", "maxmemory", "1"]);
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    let result = bench.redis.issue(&flight).await;
    assert!(matches!(result, Err(CounterError::NotExecuted(_))), "{result:?}");
    let probe = bench.redis.probe(&bench.keys, 7).await;
    assert!(matches!(probe, Err(CounterError::NotExecuted(_))), "{probe:?}");
    bench.server.cli(&["config", "set", "maxmemory", "0"]);
    assert_eq!(bench.dump(), before);
    let outcomes = super::bench::issued(bench.redis.issue(&flight).await);
    assert_eq!(outcomes, [taken(1)]);
}

#[tokio::test]
async fn an_outbox_that_refuses_the_entry_leaves_the_counters_alone() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    let outbox = bench.outbox_key();
    // The stream is as long as its count says, but its last id is ahead of the flight.
    bench.server.cli(&["xadd", &outbox, "999-0", "epoch", "5"]);
    bench.server.cli(&["xdel", &outbox, "999-0"]);
    let before = bench.dump();
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    let result = bench.redis.issue(&flight).await;
    assert!(matches!(result, Err(CounterError::Broken(_))), "{result:?}");
    assert_eq!(bench.dump(), before);
}

/// A question while a counter is cold would come too early: a late transaction of the database's
/// epoch may still take from it (F27).
#[tokio::test]
async fn a_question_waits_until_every_counter_of_the_request_is_warm() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 1_000).await;
    bench.server.cli(&["hset", &bench.owner_key(), "continuous_since_ms", &NOW_MS.to_string()]);
    let takes = vec![take("c", 1, 1), take("cold", 1, 1)];
    let request = IssueRequest { takes, ..keyed("doc", Some("key"), "d1") };
    let cold = IssueOutcome::Cold { take: 1 };
    assert_eq!(bench.issue(from_ref(&request)).await, from_ref(&cold));
    // Also if a record of an older epoch raises the question.
    bench.next_epoch(true, NOW_MS).await;
    bench.seed("c", 0, 100).await;
    assert_eq!(bench.issue(from_ref(&request)).await, [cold]);
    bench.seed("cold", 0, 100).await;
    bench.server.cli(&["hset", &bench.owner_key(), "continuous_since_ms", &NOW_MS.to_string()]);
    assert_eq!(bench.issue(&[request]).await, [IssueOutcome::Ask]);
}
