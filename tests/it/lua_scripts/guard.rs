//! Whether a flight may proceed: fences, bars, ghosts, repetitions, counts.

use numerator::redis::{
    Completion, Flight, Guard, IdempotencyLimits, IssueOutcome, Raised, SeedPlace, SeedState,
};

use super::bench::{
    Bench, EPOCH, LIMITS, NOW_MS, WINDOW_MS, completed, connect, issued, keyed, plain, replayed,
    seeded, taken,
};

fn assert_fenced<T: std::fmt::Debug>(completion: &Completion<T>, epoch: Option<u64>, part: &str) {
    let Completion::Fenced { epoch: shown, reason } = completion else { panic!("{completion:?}") };
    assert_eq!(*shown, epoch);
    assert!(reason.contains(part), "{reason}");
}

#[tokio::test]
async fn a_flight_of_another_epoch_is_fenced_and_told_the_one_in_force() {
    let mut bench = seeded().await;
    for epoch in [EPOCH - 1, EPOCH + 1] {
        let guard = Guard { epoch, ..bench.next() };
        assert_fenced(&bench.refused(&guard).await, Some(EPOCH), "epoch differs");
    }
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(1)]);
}

#[tokio::test]
async fn a_flight_for_another_incarnation_is_fenced() {
    let mut bench = seeded().await;
    let guard = Guard { incarnation: "a".repeat(40), ..bench.next() };
    assert_fenced(&bench.refused(&guard).await, Some(EPOCH), "server shows");
    // The owner record came here with another server's data.
    let owner = bench.owner_key();
    bench.server.cli(&["hset", &owner, "incarnation", &"b".repeat(40)]);
    let guard = bench.next();
    assert_fenced(&bench.refused(&guard).await, Some(EPOCH), "incarnation differs");
}

#[tokio::test]
async fn without_a_readable_owner_record_everything_is_fenced() {
    let mut bench = seeded().await;
    bench.server.flushall();
    let guard = bench.next();
    assert_fenced(&bench.refused(&guard).await, None, "missing");
    for make in [["set", "x"], ["lpush", "x"]] {
        let owner = bench.owner_key();
        bench.server.cli(&["del", &owner]);
        bench.server.cli(&[make[0], &owner, make[1]]);
        let guard = bench.next();
        assert_fenced(&bench.refused(&guard).await, None, "not a hash");
    }
}

#[tokio::test]
async fn a_restarted_server_is_another_incarnation_although_its_data_came_back() {
    let mut bench = seeded().await;
    bench.server.cli(&["config", "set", "appendonly", "yes"]);
    let held = bench.dump();
    bench.server.cli(&["save"]);
    bench.server.kill();
    bench.server.restart();
    assert_eq!(bench.dump(), held);
    let redis = connect(&bench.server);
    let shown = redis.probe(&bench.keys, 7).await.unwrap().incarnation;
    assert_ne!(shown, bench.guard.incarnation);
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    let completion = redis.issue(&flight).await.unwrap();
    assert_fenced(&completion, Some(EPOCH), "server shows");
}

#[tokio::test]
async fn a_writable_replica_is_fenced_although_it_shows_its_masters_incarnation() {
    let mut bench = seeded().await;
    let replica = bench.server.start_replica(&["--replica-read-only", "no"]);
    // The first replica gives the master a new incarnation; both show it.
    bench.guard.incarnation = bench.redis.probe(&bench.keys, 7).await.unwrap().incarnation;
    bench.next_epoch(true, NOW_MS).await;
    bench.seed("c", 0, 1_000).await;
    bench.server.wait_for_copy(&replica);
    let redis = connect(&replica);
    let probe = redis.probe(&bench.keys, 7).await.unwrap();
    assert_eq!((probe.is_master, &probe.incarnation), (false, &bench.guard.incarnation));
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    let completion = redis.issue(&flight).await.unwrap();
    assert_fenced(&completion, Some(EPOCH + 1), "not a master");
    assert_eq!(issued(bench.redis.issue(&flight).await), [taken(1)]);
}

#[tokio::test]
async fn a_flight_sent_again_answers_what_it_answered_and_takes_nothing_more() {
    let mut bench = seeded().await;
    bench.issue(&[keyed("old", None, "d0")]).await;
    let requests = [
        keyed("doc", None, "d1"),
        plain("missing"),
        keyed("old", None, "d0"),
        keyed("doc", None, "d2"),
        plain("c"),
    ];
    let guard = bench.next();
    let flight = bench.flight(&guard, &requests);
    let first = issued(bench.redis.issue(&flight).await);
    assert_eq!(first[..1], [taken(2)]);
    assert_eq!(first[1], IssueOutcome::Cold { take: 0 });
    assert!(matches!(first[3], IssueOutcome::DocumentNumbered { .. }));
    let before = bench.dump();
    let again = issued(bench.redis.issue(&flight.clone()).await);
    let nothing = || IssueOutcome::Nothing;
    let old = replayed(1, "record of old d0");
    assert_eq!(again, [taken(2), nothing(), old, first[3].clone(), taken(3)]);
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn a_flight_that_took_nothing_is_remembered_too() {
    let mut bench = Bench::new().await;
    let guard = bench.next();
    let flight = bench.flight(&guard, &[plain("c")]);
    assert_eq!(issued(bench.redis.issue(&flight).await), [IssueOutcome::Cold { take: 0 }]);
    bench.seed("c", 0, 10).await;
    assert_eq!(bench.redis.issue(&flight).await.unwrap(), Completion::Late);
    assert_eq!(bench.server.cli(&["exists", &bench.outbox_key()]), "0");
}

#[tokio::test]
async fn the_same_number_with_other_bytes_is_a_mismatch_whatever_differs() {
    let mut bench = seeded().await;
    let guard = bench.next();
    issued(bench.redis.issue(&bench.flight(&guard, &[plain("c")])).await);
    let keys = &bench.keys;
    let mut others = vec![
        bench.flight(&guard, &[plain("d")]),
        bench.flight(&guard, &[plain("c"), plain("c")]),
        Flight::issue(keys, &guard, &[plain("c")], Some(NOW_MS + 1), LIMITS),
        Flight::issue(
            keys,
            &guard,
            &[plain("c")],
            Some(NOW_MS),
            IdempotencyLimits { window_ms: WINDOW_MS + 1, ..LIMITS },
        ),
    ];
    let confirmed = Guard { confirmed: guard.flight, ..guard.clone() };
    others.push(bench.flight(&confirmed, &[plain("c")]));
    for other in others {
        assert_eq!(bench.redis.issue(&other).await.unwrap(), Completion::Mismatch);
    }
    let seed = Flight::seed(keys, &guard, &[]);
    assert_eq!(bench.redis.seed(&seed).await.unwrap(), Completion::Mismatch);
    let raise = Flight::raise(keys, &guard, &[]);
    assert_eq!(bench.redis.raise(&raise).await.unwrap(), Completion::Mismatch);
}

#[tokio::test]
async fn a_ghost_of_any_kind_that_arrives_late_does_nothing() {
    let mut bench = seeded().await;
    let guard = bench.next();
    let place = SeedPlace { counter: "g".into(), counter_id: 1, value: 0, ceiling: 9 };
    let issue = bench.flight(&guard, &[plain("c")]);
    let seed = Flight::seed(&bench.keys, &guard, &[place]);
    let raise = Flight::raise(&bench.keys, &guard, &[("c".into(), 5_000)]);
    bench.issue(&[plain("c")]).await;
    let before = bench.dump();
    assert_eq!(bench.redis.issue(&issue).await.unwrap(), Completion::Late);
    assert_eq!(bench.redis.seed(&seed).await.unwrap(), Completion::Late);
    assert_eq!(bench.redis.raise(&raise).await.unwrap(), Completion::Late);
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn a_server_that_has_forgotten_a_confirmed_flight_is_fenced() {
    let mut bench = seeded().await;
    bench.issue(&[plain("c")]).await;
    // The owner record of an earlier moment, same epoch and incarnation.
    let (owner, field) = (bench.owner_key(), format!("f:{}", bench.guard.node));
    bench.server.cli(&["hset", &owner, &field, "1"]);
    let guard = bench.next();
    assert_fenced(&bench.refused(&guard).await, Some(EPOCH), "flight 2 is forgotten");
    bench.server.cli(&["hdel", &owner, &field]);
    assert_fenced(&bench.refused(&guard).await, Some(EPOCH), "forgotten");
    bench.server.cli(&["hset", &owner, &field, "rubbish"]);
    assert_fenced(&bench.refused(&guard).await, Some(EPOCH), "unreadable");
}

#[tokio::test]
async fn an_outbox_shorter_or_longer_than_its_count_is_miscounted() {
    let damages: [&[&str]; 5] = [
        &["del", "KEY"],
        &["xadd", "KEY", "*", "x", "y"],
        &["xtrim", "KEY", "maxlen", "1"],
        &["set", "KEY", "x"],
        &["rename", "KEY", "nbr:{7}:moved"],
    ];
    for damage in damages {
        let mut bench = seeded().await;
        bench.issue(&[plain("c")]).await;
        bench.issue(&[plain("c")]).await;
        let (key, last) = (bench.outbox_key(), bench.guard.clone());
        let command: Vec<&str> =
            damage.iter().map(|&word| if word == "KEY" { key.as_str() } else { word }).collect();
        bench.server.cli(&command);
        let before = bench.dump();
        let guard = bench.next();
        assert_eq!(bench.refused(&guard).await, Completion::Miscounted, "{damage:?}");
        // Nor is a missing entry read as "took nothing" when the last flight is sent again.
        let last = Guard { confirmed: last.flight - 1, ..last };
        assert_eq!(bench.refused(&last).await, Completion::Miscounted, "{damage:?}");
        assert_eq!(bench.dump(), before);
    }
}

#[tokio::test]
async fn entries_of_an_earlier_epoch_are_counted_from_the_first_flight_on() {
    let mut bench = seeded().await;
    bench.issue(&[plain("c")]).await;
    bench.next_epoch(true, NOW_MS).await;
    bench.seed("c", 10, 100).await;
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(11)]);
    let (owner, field) = (bench.owner_key(), format!("n:{}", bench.guard.node));
    assert_eq!(bench.server.cli(&["hget", &owner, &field]), "2");
    bench.server.cli(&["hdel", &owner, &field]);
    let guard = bench.next();
    assert_eq!(bench.refused(&guard).await, Completion::Miscounted);
}

#[tokio::test]
async fn a_barred_node_can_write_nothing_any_more() {
    let mut bench = seeded().await;
    let other = bench.other_node();
    let barred = bench.redis.bar(&bench.keys, &other, bench.guard.node).await.unwrap();
    assert_eq!(barred, numerator::redis::Barred::Barred);
    let before = bench.dump();
    let guard = bench.next();
    assert_eq!(bench.refused(&guard).await, Completion::Barred);
    let place = SeedPlace { counter: "g".into(), counter_id: 1, value: 0, ceiling: 9 };
    let seed = Flight::seed(&bench.keys, &guard, &[place]);
    assert_eq!(bench.redis.seed(&seed).await.unwrap(), Completion::Barred);
    let raise = Flight::raise(&bench.keys, &guard, &[("c".into(), 5_000)]);
    assert_eq!(bench.redis.raise(&raise).await.unwrap(), Completion::Barred);
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn seeds_and_raises_are_guarded_by_number_like_issues() {
    let mut bench = Bench::new().await;
    let place = SeedPlace { counter: "c".into(), counter_id: 70, value: 5, ceiling: 9 };
    let guard = bench.next();
    let seed = Flight::seed(&bench.keys, &guard, std::slice::from_ref(&place));
    assert_eq!(completed(bench.redis.seed(&seed).await), [SeedState::Seeded]);
    // Seeded, then deleted: the repeated seed must not start the counter again.
    bench.server.cli(&["del", &bench.counter_key("c")]);
    assert_eq!(completed(bench.redis.seed(&seed).await), [SeedState::Seeded]);
    assert_eq!(bench.server.cli(&["exists", &bench.counter_key("c")]), "0");
    let guard = bench.next();
    let raise = Flight::raise(&bench.keys, &guard, &[("c".into(), 50)]);
    assert_eq!(completed(bench.redis.raise(&raise).await), [Raised::Cold]);
}
