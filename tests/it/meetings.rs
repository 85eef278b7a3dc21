//! A process that meets a counter which others have counted with: somebody wrote to it in Redis.
//!
//! Whoever can write there can lower both copies of a value alike. Only the ledger tells then.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::eventually::eventually;
use harness::load;
use harness::postgres::Postgres;
use harness::proxy::Proxy;
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

/// Applies a series that has a counter for each of these types.
fn apply_series_of(deployment: &Deployment, types: &[&str]) {
    let file = deployment.path("types.toml");
    let series = format!(
        "[[series]]\ncode = \"TYPES\"\nname = \"Types\"\ntemplate = \"{{TYPE_CODE}}-{{SEQ:8}}\"\n\
         serves = {{ types = {types:?} }}\n[[series.serials]]\ncounter = [\"type\"]\n"
    );
    std::fs::write(&file, series).unwrap();
    deployment.apply(&[file]);
}

/// A number of a document of a type.
async fn taken(url: &str, kind: &str, document: i64) -> String {
    let url = format!("{url}/api/v1/documents/{kind}-{document}/generate-number");
    let (status, body) = load::post(&reqwest::Client::new(), &url, &json!({ "type": kind })).await;
    assert_eq!(status, 201, "{body}");
    body["document_number"].as_str().unwrap().to_owned()
}

/// Goal: an id counts only together with the name of the counter. Method: two counters of one
/// partition, of which one bears in Redis what the ledger knows of the other.
#[tokio::test]
async fn a_counter_that_bears_the_id_of_another_one_in_redis_ends_the_epoch_when_it_is_met() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("swapped"), Some(&redis.url()));
    apply_series_of(&deployment, &["LOAD", "MORE"]);
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

/// Goal: nobody waits for ever who meets a counter while another one is compared with the ledger.
/// Method: a ledger that answers late, and Redis, which shows when the first flight is over.
#[tokio::test]
async fn counters_that_are_met_while_another_is_compared_are_compared_next() {
    const TYPES: [&str; 6] = ["A", "B", "C", "D", "E", "F"];
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("next"), Some(&redis.url()));
    apply_series_of(&deployment, &TYPES);
    let first = deployment.serve();
    for kind in TYPES {
        taken(&first.url, kind, 1).await;
    }
    let proxy = Proxy::start(postgres.port());
    let late = Deployment::new(&postgres.url_by(proxy.port(), "next"), Some(&redis.url()));
    let second = late.serve();
    taken(&second.url, "A", 2).await;
    let owner = redis.cli(&["keys", "nbr:*:owner"]);
    // The numbers of the last flights of its nodes.
    let last_flights = |key: &str| -> u64 {
        let fields = redis.cli(&["hkeys", key]);
        let of_nodes = fields.lines().filter(|field| field.starts_with("f:"));
        of_nodes.map(|field| redis.cli(&["hget", key, field]).parse::<u64>().unwrap()).sum()
    };
    let flown = || -> u64 { owner.lines().map(last_flights).sum() };
    proxy.delay(Duration::from_millis(200));
    let before = flown();
    let ask = |kind: &'static str| {
        let url = second.url.clone();
        tokio::spawn(async move { taken(&url, kind, 2).await })
    };
    let compared = ask("B");
    eventually(LIMIT, async || if flown() > before { Ok(()) } else { Err("no flight yet") }).await;
    let waiting: Vec<_> = TYPES[2..].iter().map(|kind| ask(kind)).collect();
    assert_eq!(compared.await.unwrap(), "B-00000002");
    for (kind, number) in TYPES[2..].iter().zip(waiting) {
        assert_eq!(number.await.unwrap(), format!("{kind}-00000002"));
    }
    proxy.forward();
    assert!(second.terminate() && first.terminate());
    deployment.assert_clean();
    assert!(!was_left(&open(&deployment).await).await, "in one epoch");
}
