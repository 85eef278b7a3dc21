//! Opening an epoch, and what it says of the age of the data set.

use numerator::redis::{OpenOutcome, Opening};

use super::bench::{Bench, DEPLOYMENT, EPOCH, NOW_MS, connect};

fn since(bench: &Bench) -> String {
    bench.server.cli(&["hget", &bench.owner_key(), "continuous_since_ms"])
}

/// The epoch since which this data set has owned every one.
fn run_since(bench: &Bench) -> String {
    bench.server.cli(&["hget", &bench.owner_key(), "run_since"])
}

#[tokio::test]
async fn an_opened_epoch_has_a_fresh_owner_record() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 10).await;
    bench.next_epoch(false, NOW_MS + 5).await;
    let fields = ["epoch", "incarnation", "deployment", "opened_at_ms"];
    let mut command = vec!["hmget", "KEY"];
    command.extend(fields);
    let owner = bench.owner_key();
    command[1] = &owner;
    let expected =
        format!("{}\n{}\n{DEPLOYMENT}\n{}", EPOCH + 1, bench.guard.incarnation, NOW_MS + 5);
    assert_eq!(bench.server.cli(&command), expected);
    // The nodes' fields of the epoch before are gone with it.
    assert_eq!(bench.server.cli(&["hlen", &owner]), "8");
}

#[tokio::test]
async fn a_pristine_partition_has_no_lost_keys() {
    let bench = Bench::new().await;
    assert_eq!(since(&bench), "0");
}

#[tokio::test]
async fn the_age_is_carried_over_only_from_the_epoch_just_closed_on_the_same_data() {
    let mut bench = Bench::new().await;
    bench.next_epoch(false, NOW_MS + 1).await;
    assert_eq!(since(&bench), "0");
    // An epoch in between was opened elsewhere: what it issued is not here.
    bench.guard.epoch += 1;
    bench.next_epoch(false, NOW_MS + 2).await;
    assert_eq!(since(&bench), (NOW_MS + 2).to_string());
    bench.next_epoch(false, NOW_MS + 3).await;
    assert_eq!(since(&bench), (NOW_MS + 2).to_string());
    // The record came with another server's data.
    let owner = bench.owner_key();
    bench.server.cli(&["hset", &owner, "incarnation", &"c".repeat(40)]);
    bench.next_epoch(false, NOW_MS + 4).await;
    assert_eq!(since(&bench), (NOW_MS + 4).to_string());
    bench.server.cli(&["hset", &owner, "continuous_since_ms", "rubbish"]);
    bench.next_epoch(false, NOW_MS + 5).await;
    assert_eq!(since(&bench), (NOW_MS + 5).to_string());
    bench.server.flushall();
    bench.next_epoch(false, NOW_MS + 6).await;
    assert_eq!(since(&bench), (NOW_MS + 6).to_string());
}

#[tokio::test]
async fn a_run_goes_on_only_from_the_epoch_just_closed_on_the_same_data() {
    let mut bench = Bench::new().await;
    let first = EPOCH.to_string();
    assert_eq!(run_since(&bench), first, "a pristine one begins its run too");
    bench.next_epoch(false, NOW_MS).await;
    bench.next_epoch(false, NOW_MS).await;
    assert_eq!(run_since(&bench), first);
    // The database had an epoch in between.
    bench.guard.epoch += 1;
    bench.next_epoch(false, NOW_MS).await;
    let anew = |bench: &Bench| bench.guard.epoch.to_string();
    assert_eq!(run_since(&bench), anew(&bench));
    // Another server's data.
    let owner = bench.owner_key();
    bench.server.cli(&["hset", &owner, "incarnation", &"c".repeat(40)]);
    bench.next_epoch(false, NOW_MS).await;
    assert_eq!(run_since(&bench), anew(&bench));
    for rubbish in ["rubbish", ""] {
        bench.server.cli(&["hset", &owner, "run_since", rubbish]);
        bench.next_epoch(false, NOW_MS).await;
        assert_eq!(run_since(&bench), anew(&bench), "{rubbish:?}");
    }
    bench.server.flushall();
    bench.next_epoch(false, NOW_MS).await;
    assert_eq!(run_since(&bench), anew(&bench));
    // A node that may have lost data names no epoch that was closed.
    let epoch = bench.guard.epoch + 1;
    let opening = Opening { epoch, closed_epoch: 0, pristine: false, ..bench.opening() };
    assert_eq!(bench.open(&opening).await, OpenOutcome::Opened);
    assert_eq!(run_since(&bench), epoch.to_string());
}

#[tokio::test]
async fn an_epoch_that_is_not_newer_is_not_opened() {
    let bench = Bench::new().await;
    let before = bench.dump();
    for epoch in [EPOCH, EPOCH - 1] {
        let opening = Opening { epoch, ..bench.opening() };
        assert_eq!(bench.open(&opening).await, OpenOutcome::Newer { epoch: EPOCH });
    }
    assert_eq!(bench.dump(), before);
}

#[tokio::test]
async fn another_ledgers_partition_is_not_opened() {
    let bench = Bench::new().await;
    let opening =
        Opening { epoch: EPOCH + 1, deployment: "deployment-b".into(), ..bench.opening() };
    let probe = bench.redis.probe(&bench.keys, opening.partition).await.unwrap();
    assert_eq!(probe.deployment.as_deref(), Some(DEPLOYMENT), "whoever asks first is told");
    let foreign = OpenOutcome::Foreign { deployment: DEPLOYMENT.into() };
    assert_eq!(bench.open(&opening).await, foreign);
}

#[tokio::test]
async fn an_owner_record_of_another_type_is_replaced() {
    let bench = Bench::unopened().await;
    bench.server.cli(&["rpush", &bench.owner_key(), "x"]);
    let opening = Opening { pristine: false, ..bench.opening() };
    assert_eq!(bench.open(&opening).await, OpenOutcome::Opened);
    assert_eq!(since(&bench), NOW_MS.to_string());
}

#[tokio::test]
async fn a_server_that_is_not_the_one_named_is_unfit() {
    let bench = Bench::unopened().await;
    for wrong in ["a".repeat(40), "0".repeat(40), String::new()] {
        let opening = Opening { incarnation: wrong, ..bench.opening() };
        let outcome = bench.open(&opening).await;
        assert!(matches!(outcome, OpenOutcome::Unfit { .. }), "{outcome:?}");
    }
    assert_eq!(bench.dump(), []);
}

#[tokio::test]
async fn a_replica_is_unfit() {
    let bench = Bench::unopened().await;
    let replica = bench.server.start_replica(&[]);
    let redis = connect(&replica);
    let incarnation = redis.probe(&bench.keys, 7).await.unwrap().incarnation;
    let opening = Opening { incarnation, ..bench.opening() };
    let outcome = redis.open(&bench.keys, &opening).await.unwrap();
    assert_eq!(outcome, OpenOutcome::Unfit { reason: "role is slave".into() });
}
