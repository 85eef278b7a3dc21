//! Seeding counters and lifting their ceilings.

use numerator::redis::{
    Completion, CounterError, Flight, Guard, IssueOutcome, Raised, SeedPlace, SeedState,
};

use super::bench::{Bench, EPOCH, completed, plain, taken};

fn place(counter: &str, value: i64, ceiling: i64) -> SeedPlace {
    SeedPlace { counter: counter.into(), counter_id: 70, value, ceiling }
}

async fn raise(bench: &mut Bench, raises: &[(&str, i64)]) -> Vec<Raised> {
    let raises: Vec<_> = raises.iter().map(|(name, to)| ((*name).to_owned(), *to)).collect();
    let guard = bench.next();
    let flight = Flight::raise(&bench.keys, &guard, &raises);
    completed(bench.redis.raise(&flight).await)
}

#[tokio::test]
async fn a_counter_that_is_warm_in_this_epoch_is_left_as_it_is() {
    let mut bench = Bench::new().await;
    let places = [place("a", 0, 10), place("b", 0, 10), place("a", 7, 90)];
    let guard = bench.next();
    let flight = Flight::seed(&bench.keys, &guard, &places);
    let states = completed(bench.redis.seed(&flight).await);
    assert_eq!(states, [SeedState::Seeded, SeedState::Seeded, SeedState::Warm]);
    assert_eq!(bench.issue(&[plain("a")]).await, [taken(1)]);
    assert_eq!(bench.seed("a", 50, 90).await, SeedState::Warm);
    assert_eq!(bench.issue(&[plain("a"), plain("b")]).await, [taken(2), taken(1)]);
    // Sent again it answers the state and writes nothing.
    let guard = bench.next();
    let flight = Flight::seed(&bench.keys, &guard, &[place("a", 50, 90), place("n", 0, 9)]);
    completed(bench.redis.seed(&flight).await);
    let again = completed(bench.redis.seed(&flight).await);
    assert_eq!(again, [SeedState::Warm, SeedState::Warm]);
}

#[tokio::test]
async fn a_counter_of_an_older_epoch_is_replaced_whole() {
    let mut bench = Bench::new().await;
    bench.seed("c", 500, 900).await;
    let key = bench.counter_key("c");
    bench.server.cli(&["hset", &key, "stray", "x"]);
    bench.next_epoch(true, 0).await;
    assert_eq!(bench.seed("c", 20, 30).await, SeedState::Seeded);
    assert_eq!(bench.server.cli(&["hexists", &key, "stray"]), "0");
    assert_eq!(bench.server.cli(&["hmget", &key, "value", "check", "ceiling"]), "20\n20\n30");
}

#[tokio::test]
async fn a_seed_that_makes_no_sense_is_refused_before_anything_is_written() {
    let mut bench = Bench::new().await;
    let before = bench.dump();
    let beyond = 1 << 53;
    for wrong in [place("b", 11, 10), place("b", beyond, beyond + 1), place("b", i64::MIN, 0)] {
        let guard = bench.next();
        let flight = Flight::seed(&bench.keys, &guard, &[place("a", 0, 10), wrong]);
        let result = bench.redis.seed(&flight).await;
        assert!(matches!(result, Err(CounterError::Broken(_))), "{result:?}");
    }
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn a_fenced_seed_or_raise_writes_nothing() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 10).await;
    let before = bench.dump();
    let old = Guard { epoch: EPOCH - 1, ..bench.next() };
    let seed = Flight::seed(&bench.keys, &old, &[place("n", 0, 10)]);
    let completion = bench.redis.seed(&seed).await.unwrap();
    assert!(matches!(completion, Completion::Fenced { epoch: Some(EPOCH), .. }), "{completion:?}");
    let raise = Flight::raise(&bench.keys, &old, &[("c".into(), 100)]);
    let completion = bench.redis.raise(&raise).await.unwrap();
    assert!(matches!(completion, Completion::Fenced { epoch: Some(EPOCH), .. }), "{completion:?}");
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn a_ceiling_rises_and_never_falls() {
    let mut bench = Bench::new().await;
    bench.seed("a", 0, 1).await;
    bench.seed("b", 0, 50).await;
    let both = [plain("a"), plain("a")];
    let full = IssueOutcome::Ceiling { take: 0, value: 1, ceiling: 1 };
    assert_eq!(bench.issue(&both).await, [taken(1), full]);
    let answers = raise(&mut bench, &[("a", 40), ("b", 40), ("a", 30), ("missing", 9)]).await;
    let expected = [Raised::Ceiling(40), Raised::Ceiling(50), Raised::Ceiling(40), Raised::Cold];
    assert_eq!(answers, expected);
    assert_eq!(bench.server.cli(&["hget", &bench.counter_key("a"), "ceiling"]), "40");
    assert_eq!(bench.server.cli(&["exists", &bench.counter_key("missing")]), "0");
    assert_eq!(bench.issue(&both).await, [taken(2), taken(3)]);
}

#[tokio::test]
async fn a_ceiling_beyond_the_largest_number_stops_at_it() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, i64::MAX).await;
    let largest = (1_i64 << 53) - 1;
    assert_eq!(raise(&mut bench, &[("c", i64::MAX)]).await, [Raised::Ceiling(largest)]);
}

#[tokio::test]
async fn a_raise_sent_again_answers_the_ceiling_in_force() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 10).await;
    let guard = bench.next();
    let flight = Flight::raise(&bench.keys, &guard, &[("c".into(), 20)]);
    completed(bench.redis.raise(&flight).await);
    // As if an operator had lowered it since: a repetition must not write.
    bench.server.cli(&["hset", &bench.counter_key("c"), "ceiling", "15"]);
    assert_eq!(completed(bench.redis.raise(&flight).await), [Raised::Ceiling(15)]);
}

#[tokio::test]
async fn a_damaged_counter_is_not_raised() {
    let mut bench = Bench::new().await;
    bench.seed("c", 5, 10).await;
    let key = bench.counter_key("c");
    bench.server.cli(&["hset", &key, "value", "4"]);
    assert_eq!(raise(&mut bench, &[("c", 20)]).await, [Raised::Regressed]);
    assert_eq!(bench.server.cli(&["hget", &key, "ceiling"]), "10");
    bench.server.cli(&["del", &key]);
    bench.server.cli(&["set", &key, "4"]);
    assert_eq!(raise(&mut bench, &[("c", 20)]).await, [Raised::Cold]);
}
