//! Read-only views: survey, peek and inspect change nothing and show the present state.

use std::time::Duration;

use numerator::node::NodeId;
use numerator::redis::{Completeness, CounterState, Inspection, OwnerRecord};

use super::bench::{Bench, DEPLOYMENT, EPOCH, PARTITION, plain, taken};

async fn inspect(bench: &Bench, epoch: u64, incarnation: &str, names: &[&str]) -> Inspection {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let at = (PARTITION, epoch, incarnation);
    bench.redis.inspect(&bench.keys, at, &names).await.unwrap()
}

#[tokio::test]
async fn a_survey_names_the_owner_the_counted_nodes_and_the_lengths() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    bench.issue(&[plain("c")]).await;
    bench.issue(&[plain("c")]).await;
    let before = bench.dump();
    let (node, nobody) = (bench.guard.node, NodeId::random());
    let survey = bench.redis.survey(&bench.keys, PARTITION, &[nobody, node]).await.unwrap();
    assert!(survey.is_master && survey.incarnation == bench.guard.incarnation);
    let shown = |field| bench.server.cli(&["hget", &bench.owner_key(), field]).parse().ok();
    let records = Completeness {
        continuous_since_ms: shown("continuous_since_ms"),
        window_ms: shown("window_ms"),
    };
    assert!(records.continuous_since_ms.is_some() && records.window_ms.is_some(), "{records:?}");
    let probe = bench.redis.probe(&bench.keys, PARTITION).await.unwrap();
    assert_eq!(probe.records, Some(records), "a probe sees the same");
    let window = Duration::from_millis(records.window_ms.unwrap());
    let now_us = i64::try_from(records.continuous_since_ms.unwrap() * 1_000).unwrap();
    let asks_for = |window| records.asks_for(now_us, window);
    assert_eq!(asks_for(window), window);
    let later_us = now_us + i64::try_from(window.as_micros()).unwrap();
    assert_eq!(records.asks_for(later_us, window), Duration::ZERO);
    assert_eq!(records.asks_for(later_us, window / 2), window / 2, "kept for another window");
    let owner = OwnerRecord {
        epoch: EPOCH,
        incarnation: bench.guard.incarnation.clone(),
        deployment: DEPLOYMENT.into(),
        records,
        confirmed: None,
    };
    assert_eq!(survey.owner, Some(owner));
    assert_eq!((survey.counted, survey.lengths), (vec![node], vec![Some(0), Some(2)]));
    assert_eq!(survey.senders, [node]);
    assert_eq!(bench.dump(), before, "it only looks");
    // A node with nothing left in its outbox has sent flights nevertheless.
    bench.trim().await;
    let survey = bench.redis.survey(&bench.keys, PARTITION, &[]).await.unwrap();
    assert_eq!((survey.counted, survey.senders), (vec![], vec![node]));
}

#[tokio::test]
async fn a_survey_tells_what_is_missing_or_of_another_type() {
    let bench = Bench::unopened().await;
    bench.server.cli(&["set", &bench.outbox_key(), "x"]);
    let nodes = [bench.guard.node];
    let survey = bench.redis.survey(&bench.keys, PARTITION, &nodes).await.unwrap();
    assert_eq!((survey.owner, survey.counted, survey.lengths), (None, vec![], vec![None]));
    bench.server.cli(&["set", &bench.owner_key(), "x"]);
    let survey = bench.redis.survey(&bench.keys, PARTITION, &[]).await.unwrap();
    assert_eq!((survey.owner, survey.lengths), (None, vec![]));
    let entries = bench.redis.peek(&bench.keys, PARTITION, bench.guard.node, 0, 10).await.unwrap();
    assert_eq!(entries, []);
}

#[tokio::test]
async fn peek_reads_an_outbox_page_by_page_without_barring_its_node() {
    let mut bench = Bench::new().await;
    bench.seed("c", 0, 100).await;
    for value in 1..=3 {
        assert_eq!(bench.issue(&[plain("c")]).await, [taken(value)]);
    }
    let node = bench.guard.node;
    let page = bench.redis.peek(&bench.keys, PARTITION, node, 0, 2).await.unwrap();
    assert_eq!(
        page.iter().map(|entry| (entry.flight, entry.epoch)).collect::<Vec<_>>(),
        [(2, EPOCH), (3, EPOCH)]
    );
    assert_eq!(page[0].allocations[0].0[0].range.first, 1);
    let rest = bench.redis.peek(&bench.keys, PARTITION, node, 3, 2).await.unwrap();
    assert_eq!(rest.iter().map(|entry| entry.flight).collect::<Vec<_>>(), [4]);
    assert_eq!(bench.issue(&[plain("c")]).await, [taken(4)], "the node goes on");
}

#[tokio::test]
async fn inspect_tells_warm_cold_and_damaged_counters_apart() {
    let mut bench = Bench::new().await;
    for name in ["c", "damaged"] {
        bench.seed(name, 5, 100).await;
    }
    bench.server.cli(&["hset", &bench.counter_key("damaged"), "value", "3"]);
    let before = bench.dump();
    let incarnation = bench.guard.incarnation.clone();
    let states = inspect(&bench, EPOCH, &incarnation, &["c", "nobody", "damaged"]).await;
    let warm = CounterState::Warm { value: 5, ceiling: 100, counter_id: 70 };
    let all = vec![warm, CounterState::Cold, CounterState::Regressed];
    assert_eq!(states, Inspection::Counters(all));
    assert_eq!(bench.dump(), before, "it only looks");
}

#[tokio::test]
async fn inspect_is_fenced_by_epoch_and_data_set() {
    let mut bench = Bench::new().await;
    bench.seed("c", 5, 100).await;
    let incarnation = bench.guard.incarnation.clone();
    for (epoch, incarnation) in [(EPOCH + 1, &*incarnation), (EPOCH, &"0".repeat(40))] {
        let states = inspect(&bench, epoch, incarnation, &["c"]).await;
        assert!(matches!(states, Inspection::Fenced { .. }), "{states:?}");
    }
}
