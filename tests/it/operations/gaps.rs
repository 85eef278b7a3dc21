//! `gaps`.

use testkit::load::Running;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{load_partition, ok};
use crate::deployment::Deployment;
use crate::load::open;

#[tokio::test]
async fn gaps_after_a_close_at_the_ceiling_name_the_node_that_was_not_heard_of() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("ceiling"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let mut dead = deployment.serve();
    let ledger = open(&deployment).await;
    let label = ledger.nodes().list().await.unwrap()[0].label.clone();
    let load = Running::start(&dead.url, 8);
    load.reach(300).await;
    dead.kill();
    redis.flushall();
    let mut seen = load.finish().await;
    let other = deployment.serve();
    let more = Running::start_as(&other.url, 8, "more");
    more.reach(100).await;
    let more = more.finish().await;
    seen.numbers.extend(more.numbers);
    seen.assert_no_duplicate();

    let listed = ok(&deployment, &["gaps"]);
    let explained = ok(&deployment, &["gaps", "--explain", "--series", "LOAD"]);
    assert_eq!(listed.as_array().unwrap().len(), explained.as_array().unwrap().len());
    let gap = &explained[0];
    assert_eq!((&gap["reason"], &gap["series"]), (&"unaccounted".into(), &"LOAD".into()), "{gap}");
    let first = gap["first_number"].as_str().unwrap();
    assert!(first.starts_with("L-0"), "as its neighbours are written: {gap}");
    let explanation = &gap["explanation"];
    assert_eq!(explanation["closing"], "ceiling", "{gap}");
    assert_eq!(explanation["unheard"], serde_json::json!([label]), "{gap}");
    assert!(!explanation["cause"].as_str().unwrap().is_empty(), "{gap}");
    let sentence = explanation["sentence"].as_str().unwrap();
    assert!(sentence.contains(first) && sentence.contains(&label), "{sentence}");
    println!("{sentence}");
    let text = deployment.ok(&["gaps", "--explain"]);
    assert!(text.contains(sentence), "people read the same: {text}");

    for (arguments, count) in [
        (&["gaps", "--reason", "discarded"][..], 0),
        (&["gaps", "--reason", "unaccounted", "--limit", "1"], 1),
        (&["gaps", "--counter", "999"], 0),
    ] {
        let gaps = ok(&deployment, arguments);
        assert_eq!(gaps.as_array().unwrap().len(), count, "{arguments:?}: {gaps}");
    }
    let unknown = deployment.run(&["gaps", "--series", "NOBODY"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(other.terminate());
}

/// Goal: a counter that was not touched since its epoch was closed has its gap on request only.
#[tokio::test]
async fn gaps_of_untouched_counters_are_settled_on_request() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD", "--count", "3"]);
    let ledger = open(&deployment).await;
    let row = load_partition(&ledger).await;
    // Two values are taken without a report; then the epoch ends with every node accounted for.
    let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
    redis.cli(&["hset", &key, "value", "5", "check", "5"]);
    deployment.ok(&["next", "LOAD"]);
    let partition = row.partition.to_string();
    ok(&deployment, &["reconcile", "--new-epoch", "--partition", &partition]);
    assert_eq!(load_partition(&ledger).await.epoch, row.epoch, "it only looks");
    let renewed = ["reconcile", "--new-epoch", "--apply", "--partition", &partition];
    let renewed = ok(&deployment, &renewed);
    assert_eq!(renewed["recoveries"][0]["closing"], "exact", "{renewed}");
    assert_eq!(renewed["unsettled"], 1, "{renewed}");
    let gaps = ok(&deployment, &["gaps", "--explain"]);
    let gap = &gaps[0];
    assert_eq!((&gap["first_number"], &gap["count"]), (&"L-00000004".into(), &2.into()), "{gap}");
    assert_eq!(gap["reason"], "discarded", "{gap}");
    let cause = gap["explanation"]["cause"].as_str().unwrap();
    assert!(cause.contains("wants a new epoch"), "{gap}");
    // A counter that is already settled stays as it is.
    let settled = ok(&deployment, &["gaps", "--settle"]);
    assert_eq!(settled.as_array().unwrap().len(), 1, "{settled}");
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000007\n");
    deployment.assert_clean();
}
