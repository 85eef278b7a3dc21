//! Several nodes on one Redis and one ledger: what one of them, or Redis, does to the others.
//!
//! Each test loads 120 counters in all partitions from 24 callers, who ask another node when one
//! fails, as a balancer would.

use std::time::Instant;

use testkit::redis::Redis;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_is_flushed_under_two_nodes_and_there_is_not_even_a_gap() {
    let redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    for _ in 0..3 {
        redis.flushall();
        stage.advance().await;
    }
    let outcome = stage.close("FLUSHALL, three times").await;
    assert_eq!((outcome.gaps, outcome.failures), (String::new(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_restarts_empty_under_two_nodes_and_there_is_not_even_an_unaccounted_gap() {
    let mut redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    for _ in 0..2 {
        redis.restart();
        stage.advance().await;
    }
    let outcome = stage.close("Redis restarted, twice").await;
    assert_eq!(outcome.failures, 0, "callers see latency, not errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_first_replica_is_attached_and_there_is_not_even_a_gap() {
    let redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    let _replica = redis.start_replica(&[]);
    stage.advance().await;
    let outcome = stage.close("first replica attached").await;
    assert_eq!((outcome.gaps, outcome.failures), (String::new(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_redis_goes_the_database_takes_over_and_gives_back_without_an_error() {
    let mut redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    let gone = Instant::now();
    redis.kill();
    stage.owned_by("database").await;
    println!("the database owns all partitions after {:?}", gone.elapsed());
    stage.advance().await;
    redis.restart();
    stage.owned_by("redis").await;
    stage.advance().await;
    let outcome = stage.close("fall-back and return").await;
    assert_eq!(outcome.failures, 0, "callers see latency, not errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_node_is_killed_and_the_others_go_on_without_an_error() {
    let redis = Redis::start_durable();
    let mut stage = Stage::start(&redis.url()).await;
    stage.kill_a_node();
    stage.advance().await;
    stage.adopted().await;
    let outcome = stage.close("a node killed").await;
    assert_eq!(outcome.gaps, "", "its outbox has everything");
    assert_eq!(outcome.refusals, 0, "only the dead node's callers saw anything");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_node_is_killed_and_redis_flushed_what_may_be_lost_is_in_the_gap_register() {
    let redis = Redis::start();
    let mut stage = Stage::start(&redis.url()).await;
    stage.kill_a_node();
    redis.flushall();
    stage.advance().await;
    // Two failures at once: a number may have been handed out and its record lost with both.
    let outcome = stage.close_after_double_failure("a node killed, Redis flushed").await;
    assert!(outcome.gaps.contains("unaccounted"), "{}", outcome.gaps);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_nodes_are_restarted_one_by_one_and_callers_that_retry_once_see_no_error() {
    let redis = Redis::start_durable();
    let mut stage = Stage::start(&redis.url()).await;
    for _ in 0..2 {
        stage.replace_a_node().await;
        stage.advance().await;
    }
    let outcome = stage.close("rolling restart").await;
    assert_eq!((outcome.gaps, outcome.failed_twice), (String::new(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_node_joins_while_redis_is_flushed_and_takes_part_in_the_next_epoch() {
    let redis = Redis::start();
    let mut stage = Stage::start(&redis.url()).await;
    redis.flushall();
    stage.add_a_node();
    stage.advance().await;
    redis.flushall();
    stage.advance().await;
    let outcome = stage.close("a node joins").await;
    assert_eq!((outcome.gaps, outcome.failures), (String::new(), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_node_sleeps_past_its_time_to_live_and_wakes_without_a_gap() {
    let redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    stage.signal_a_node("STOP");
    stage.registered(1).await;
    stage.advance().await;
    stage.signal_a_node("CONT");
    stage.registered(2).await;
    stage.advance().await;
    let outcome = stage.close("a node slept").await;
    assert_eq!(outcome.gaps, "", "its outbox was adopted whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_node_sleeps_while_redis_is_flushed_and_its_numbers_come_once_all_the_same() {
    let redis = Redis::start();
    let stage = Stage::start(&redis.url()).await;
    stage.signal_a_node("STOP");
    redis.flushall();
    stage.advance().await;
    stage.signal_a_node("CONT");
    stage.advance().await;
    stage.close_after_silence("a node slept through FLUSHALL").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_node_wakes_half_adopted_issues_more_and_dies_and_nothing_is_lost() {
    let redis = Redis::start();
    let (mut stage, links) = Stage::start_linked(&redis).await;
    let mut partitions = stage.partitions();
    partitions.sort_unstable();
    partitions.dedup();
    // Adopted one after the other: it is the last one's turn when all others are done.
    let (last, others) = (partitions[partitions.len() - 1], partitions.len() - 1);
    let before = partitions.iter().map(|partition| stage.epoch(*partition)).max().unwrap();
    let held = stage.hold(last).await;
    stage.signal_a_node("STOP");
    stage.adopted_in(others).await;
    // New epochs: the node that wakes is barred in none of them, and continues under its name.
    redis.flushall();
    stage.recovered_but(last, before).await;
    stage.signal_a_node("CONT");
    stage.woke().await;
    drop(held);
    stage.advance().await;
    // What it hands out now is in its outbox only.
    links.ledger.refuse();
    stage.advance().await;
    assert_eq!(stage.identities(), 2, "it kept its name");
    stage.kill_a_node();
    stage.adopted().await;
    let outcome = stage.close("a node half adopted").await;
    assert_eq!(outcome.gaps, "", "its outbox was adopted whole, twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_everything_is_killed_at_once_and_no_number_comes_twice() {
    let mut redis = Redis::start_durable();
    let mut stage = Stage::start(&redis.url()).await;
    stage.kill_everything(&mut redis);
    stage.advance().await;
    stage.adopted().await;
    // Redis kept its data, and the ledger its commits: nothing that was handed out is lost.
    stage.close_after_silence("everything killed").await;
}
