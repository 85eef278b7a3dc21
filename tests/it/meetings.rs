//! A process that meets a counter which others have counted with: somebody wrote to it in Redis.
//!
//! Whoever can write there can lower both copies of a value alike. Only the ledger tells then.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::eventually::eventually;
use harness::load;
use harness::postgres::Postgres;
use harness::redis::Redis;
use numerator::ledger::SharedLedger;
use serde_json::json;

use crate::deployment::Deployment;
use crate::load::open;

const LIMIT: Duration = Duration::from_secs(20);

/// Numbers that the first process hands out, all journaled before the second one begins.
const HANDED_OUT: i64 = 50;

/// What another counter of it hands out: fewer, below a ceiling that is no lower.
const FEWER: i64 = 40;

/// Whether an epoch was left because something was amiss.
async fn was_left(ledger: &SharedLedger) -> bool {
    ledger.events(100).await.unwrap().iter().any(|event| event.kind == "fenced")
}

/// One process counts and journals, `write` is done to its counter, another process begins: what it
/// hands out nobody has, and `is_left` says whether the epoch was left.
async fn another_process_meets(name: &str, write: &[&str], is_left: bool) {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url(name), Some(&redis.url()));
    deployment.apply_load_series();
    let first = deployment.serve();
    let seen = load::documents(&first.url, 4, HANDED_OUT.unsigned_abs()).await;
    seen.assert_contiguous(usize::try_from(HANDED_OUT).unwrap());
    let ledger = open(&deployment).await;
    eventually(LIMIT, async || {
        let taken = ledger.counters(0, 10).await.unwrap().iter().map(|row| row.taken).max();
        if taken == Some(HANDED_OUT) { Ok(()) } else { Err(format!("{taken:?}")) }
    })
    .await;
    let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
    if let [command, fields @ ..] = write {
        let command: Vec<&str> = [&[*command, &key], fields].concat();
        redis.cli(&command);
    }
    let second = deployment.serve();
    let client = reqwest::Client::new();
    let mut handed_out: BTreeSet<String> = seen.numbers.into_values().collect();
    for document in 0..20 {
        // The one that has counted all along goes on as well.
        let service = if document % 4 == 3 { &first } else { &second };
        let (status, body) = load::take(&client, &service.url, &format!("late-{document}")).await;
        assert_eq!(status, 201, "{body}");
        let number = body["document_number"].as_str().unwrap().to_owned();
        assert!(handed_out.insert(number.clone()), "{number} was handed out twice");
    }
    assert!(second.terminate() && first.terminate());
    deployment.assert_clean();
    assert_eq!(was_left(&ledger).await, is_left, "{:?}", ledger.events(100).await);
}

#[tokio::test]
async fn a_counter_that_was_lowered_is_not_gone_on_from_by_a_process_that_has_not_seen_it() {
    another_process_meets("lowered", &["hset", "value", "20", "check", "20"], true).await;
}

#[tokio::test]
async fn a_counter_whose_ceiling_was_lifted_in_redis_ends_the_epoch_when_it_is_met() {
    another_process_meets("lifted", &["hset", "ceiling", "1000000"], true).await;
}

#[tokio::test]
async fn a_counter_that_bears_another_id_in_redis_ends_the_epoch_when_it_is_met() {
    another_process_meets("another_id", &["hset", "id", "4711"], true).await;
}

#[tokio::test]
async fn a_counter_that_nobody_wrote_to_is_gone_on_from_in_the_same_epoch() {
    another_process_meets("met", &[], false).await;
}

/// Goal: an id counts only together with the name of the counter. Method: two counters of one
/// partition, of which one bears in Redis what the ledger knows of the other.
#[tokio::test]
async fn a_counter_that_bears_the_id_of_another_one_in_redis_ends_the_epoch_when_it_is_met() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("swapped"), Some(&redis.url()));
    let file = deployment.path("two.toml");
    let series = "[[series]]\ncode = \"TWO\"\nname = \"Two\"\ntemplate = \"{TYPE_CODE}-{SEQ:8}\"\n\
                  serves = { types = [\"LOAD\", \"MORE\"] }\n\
                  [[series.serials]]\ncounter = [\"type\"]\n";
    std::fs::write(&file, series).unwrap();
    deployment.apply(&[file]);
    let client = reqwest::Client::new();
    let taken = async |url: &str, kind: &str, document: i64| {
        let url = format!("{url}/api/v1/documents/{kind}-{document}/generate-number");
        let (status, body) = load::post(&client, &url, &json!({ "type": kind })).await;
        assert_eq!(status, 201, "{body}");
        body["document_number"].as_str().unwrap().to_owned()
    };
    let first = deployment.serve();
    let mut handed_out = BTreeSet::new();
    for (kind, count) in [("MORE", FEWER), ("LOAD", HANDED_OUT)] {
        for document in 0..count {
            assert!(handed_out.insert(taken(&first.url, kind, document).await));
        }
    }
    assert!(first.terminate());
    let ledger = open(&deployment).await;
    let counters = ledger.counters(0, 10).await.unwrap();
    let more = counters.iter().find(|row| row.key.contains("MORE")).unwrap();
    // All that could tell the two rows apart but for their names.
    assert_eq!((more.taken, more.partition), (FEWER, counters[0].partition), "{counters:?}");
    assert!(more.ceiling >= HANDED_OUT, "{more:?}");
    let (key, id) = (redis.cli(&["keys", "nbr:*:c:*LOAD*"]), more.counter_id.to_string());
    redis.cli(&["hset", &key, "id", &id, "ceiling", &HANDED_OUT.to_string()]);
    let second = deployment.serve();
    for document in HANDED_OUT..HANDED_OUT + 5 {
        for kind in ["LOAD", "MORE"] {
            let number = taken(&second.url, kind, document).await;
            assert!(handed_out.insert(number.clone()), "{number} was handed out twice");
        }
    }
    assert!(second.terminate());
    deployment.assert_clean();
    assert!(was_left(&ledger).await, "{:?}", ledger.events(100).await);
}
