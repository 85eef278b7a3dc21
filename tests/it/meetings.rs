//! A process that first uses a counter which others have used: it was written from outside.
//!
//! Such a write can lower both copies of a value alike. Only the ledger shows it then.

use std::collections::BTreeSet;
use std::time::Duration;

use numerator::ledger::SharedLedger;
use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::Service;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::deployment::Deployment;
use crate::load::open;

const LIMIT: Duration = Duration::from_secs(20);

/// Numbers that the first process hands out, all journaled before the second one begins.
const HANDED_OUT: i64 = 50;

/// What another counter of it hands out: fewer, below a ceiling that is no lower.
const FEWER: i64 = 40;

/// Whether an epoch was left because of an inconsistency.
async fn was_left(ledger: &SharedLedger) -> bool {
    ledger.events().list(100).await.unwrap().iter().any(|event| event.kind == "fenced")
}

/// One process counts and journals, `write` is done to its counter, another process begins: it
/// hands out only new numbers, and `is_left` says whether the epoch was left.
async fn another_process_meets(name: &str, write: &[&str], is_left: bool) {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url(name), Some(&redis.url()));
    deployment.apply_load_series();
    let first = deployment.serve();
    let seen = load::documents(&first.url, 4, HANDED_OUT.unsigned_abs()).await;
    seen.assert_contiguous(usize::try_from(HANDED_OUT).unwrap());
    let ledger = open(&deployment).await;
    eventually(LIMIT, async || {
        let taken = ledger.counters().page(0, 10).await.unwrap().iter().map(|row| row.taken).max();
        if taken == Some(HANDED_OUT) { Ok(()) } else { Err(format!("{taken:?}")) }
    })
    .await;
    let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
    if let [command, fields @ ..] = write {
        let command: Vec<&str> = [&[*command, &key], fields].concat();
        redis.cli(&command);
    }
    let second = deployment.serve();
    let client = testkit::client();
    let mut handed_out: BTreeSet<String> = seen.numbers.into_values().collect();
    for document in 0..20 {
        // The one that has counted all along continues as well.
        let service = if document % 4 == 3 { &first } else { &second };
        let (status, body) = load::take(&client, &service.url, &format!("late-{document}")).await;
        assert_eq!(status, 201, "{body}");
        let number = body["document_number"].as_str().unwrap().to_owned();
        assert!(handed_out.insert(number.clone()), "{number} was handed out twice");
    }
    assert!(second.terminate() && first.terminate());
    deployment.assert_clean();
    assert_eq!(was_left(&ledger).await, is_left, "{:?}", ledger.events().list(100).await);
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

/// Asks for a number of a document of a type.
async fn ask(url: &str, kind: &str, document: i64) -> (u16, Value) {
    let url = format!("{url}/api/v1/documents/{kind}-{document}/generate-number");
    load::post(&testkit::client(), &url, &json!({ "type": kind })).await
}

/// The number of a new document of this type.
async fn taken(url: &str, kind: &str, document: i64) -> String {
    let (status, body) = ask(url, kind, document).await;
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
    let counters = ledger.counters().page(0, 10).await.unwrap();
    let more = counters.iter().find(|row| row.key.contains("MORE")).unwrap();
    // Everything that could distinguish the two rows except their names.
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
    assert!(was_left(&ledger).await, "{:?}", ledger.events().list(100).await);
}

/// The types of a series that two processes count with: the second one, whose way to the ledger is
/// a proxy, has met the first of them.
const TYPES: [&str; 4] = ["A", "B", "C", "D"];

/// Both processes.
struct Two {
    _postgres: Postgres,
    redis: Redis,
    proxy: Proxy,
    deployment: Deployment,
    _late: Deployment,
    first: Service,
    second: Service,
}

impl Two {
    async fn start(schema: &str) -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let deployment = Deployment::new(&postgres.url(schema), Some(&redis.url()));
        apply_series_of(&deployment, &TYPES);
        let first = deployment.serve();
        for kind in TYPES {
            taken(&first.url, kind, 1).await;
        }
        let proxy = Proxy::start(postgres.port());
        let late = Deployment::new(&postgres.url_by(proxy.port(), schema), Some(&redis.url()));
        let second = late.serve();
        taken(&second.url, TYPES[0], 2).await;
        Two { _postgres: postgres, redis, proxy, deployment, _late: late, first, second }
    }

    /// The numbers of the last flights of all nodes, added up.
    fn flown(&self) -> u64 {
        let redis = &self.redis;
        let of = |key: &str| -> u64 {
            let fields = redis.cli(&["hkeys", key]);
            let of_nodes = fields.lines().filter(|field| field.starts_with("f:"));
            of_nodes.map(|field| redis.cli(&["hget", key, field]).parse::<u64>().unwrap()).sum()
        };
        redis.cli(&["keys", "nbr:*:owner"]).lines().map(of).sum()
    }

    /// Asks the second process for numbers of these types, and waits until a flight has met a
    /// counter of theirs.
    async fn ask(&self, kinds: &[&'static str]) -> Vec<JoinHandle<(u16, Value)>> {
        let before = self.flown();
        let spawned = |kind: &&'static str| {
            let (url, kind) = (self.second.url.clone(), *kind);
            tokio::spawn(async move { ask(&url, kind, 2).await })
        };
        let asked = kinds.iter().map(spawned).collect();
        let flown = async || if self.flown() > before { Ok(()) } else { Err("no flight yet") };
        eventually(LIMIT, flown).await;
        asked
    }
}

/// Goal: no request waits forever for a counter while another one is compared with the ledger.
/// Method: a ledger that falls silent before it answers, and then is lost: no flight comes later.
#[tokio::test]
async fn counters_that_are_met_while_another_is_compared_are_compared_next() {
    let two = Two::start("next").await;
    two.proxy.swallow_all();
    let mut asked = two.ask(&TYPES[1..2]).await;
    asked.extend(two.ask(&TYPES[2..]).await);
    two.proxy.refuse();
    for answer in asked {
        let (status, body) = timeout(LIMIT, answer).await.expect("an answer").unwrap();
        assert_eq!((status, body["number_taken"].as_str()), (503, Some("no")), "{body}");
    }
    two.proxy.forward();
    for kind in &TYPES[1..] {
        eventually(LIMIT, async || {
            let asked = ask(&two.second.url, kind, 2).await;
            if asked.0 == 201 { Ok(()) } else { Err(format!("{asked:?}")) }
        })
        .await;
    }
    let ledger = open(&two.deployment).await;
    eventually(LIMIT, async || {
        let journal = ledger.register().totals().await.unwrap().journal;
        if journal == 2 * TYPES.len() as u64 { Ok(()) } else { Err(journal) }
    })
    .await;
    two.second.terminate();
    two.first.terminate();
    two.deployment.assert_clean();
}
