//! One slow part stops nothing else (F31): locked counters, a partition that is held while an
//! outbox is adopted, a background job that fails.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Sooner than a lock would be given up (`database.lock_timeout`, 10 s).
const SOON: Duration = Duration::from_secs(6);

/// Types of the series `HELD`: one counter each, all in one partition, and more of them than the
/// ledger has connections.
const TYPES: usize = 12;

/// A series whose types have a counter each, in addition to the series `LOAD`.
fn apply_series(deployment: &Deployment, policy: &str) {
    deployment.apply_load_series();
    let types: Vec<String> = (0..TYPES).map(|index| format!("\"HELD{index}\"")).collect();
    let text = format!(
        "[[series]]\ncode = \"HELD\"\nname = \"HELD\"\n\
         template = \"{{TYPE_CODE}}-{{SEQ:4}}\"\n{policy}\n\
         serves = {{ types = [{}] }}\n[[series.serials]]\ncounter = [\"type\"]\n",
        types.join(", ")
    );
    let file = deployment.path("HELD.toml");
    std::fs::write(&file, text).unwrap();
    deployment.apply(&[file]);
}

/// Requests a number; each type has documents of its own.
async fn take(url: &str, type_code: &str, document: &str) -> (u16, Value) {
    let url = format!("{url}/api/v1/documents/{type_code}-{document}/generate-number");
    load::post(&testkit::client(), &url, &json!({ "type": type_code })).await
}

async fn issue(service: &Service, type_code: &str, document: &str) -> String {
    let (status, body) = take(&service.url, type_code, document).await;
    assert_eq!(status, 201, "{type_code} {document}: {body} {}", service.log());
    body["document_number"].as_str().unwrap().to_owned()
}

/// Waits until a figure of the ledger is as it should be.
async fn shows(postgres: &Postgres, limit: Duration, figure: &str, is_there: impl Fn(u64) -> bool) {
    let deadline = Instant::now() + limit;
    loop {
        let found = postgres.sql(figure);
        if is_there(found.parse().unwrap()) {
            return;
        }
        assert!(Instant::now() < deadline, "{figure}: still {found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Another session's lock on rows of the ledger, until it is dropped.
async fn hold(postgres: &Postgres, schema: &str, rows: &str) -> impl Drop + use<> {
    let pool = sqlx::PgPool::connect(&postgres.url(schema)).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    let select = format!("select 1 from {rows} for update");
    let held = sqlx::query(sqlx::AssertSqlSafe(select)).fetch_all(&mut *holder).await.unwrap();
    assert!(!held.is_empty(), "{rows}: there are none");
    holder
}

/// Goal: seeds that wait take no connection from heartbeat and journal, and no node is declared
/// dead. Method: two nodes; more cold counters than there are connections are locked by another
/// session while requests for them wait, and both nodes have to beat for three times-to-live.
#[tokio::test]
async fn slow_seeds_that_wait_stop_neither_heartbeat_nor_journal_and_no_recovery_starts() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("slow"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    apply_series(&deployment, "");
    let (one, other) = (deployment.serve(), deployment.serve());
    for index in 0..TYPES {
        issue(&one, &format!("HELD{index}"), "first").await;
    }
    issue(&one, "LOAD", "first").await;
    let journal = "select count(*) from slow.journal";
    shows(&postgres, LIMIT, journal, |rows| rows == TYPES as u64 + 1).await;
    // All counters are cold in the epoch that follows.
    let epochs = "select sum(epoch) from slow.partition where partition_id < 8 and state = 'open'";
    let before: u64 = postgres.sql(epochs).parse().unwrap();
    redis.flushall();
    shows(&postgres, LIMIT, epochs, |now| now >= before + 8).await;
    issue(&one, "LOAD", "cold").await;

    let held = hold(&postgres, "slow", "counter where key like 'type=HELD%'").await;
    let mut waiting = Vec::new();
    for index in 0..TYPES {
        let url = one.url.clone();
        waiting
            .push(tokio::spawn(async move { take(&url, &format!("HELD{index}"), "second").await }));
        // A flight of its own each, and so a seed.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let recoveries = "select count(*) from slow.closed_epoch";
    let (closed, rows): (u64, u64) =
        (postgres.sql(recoveries).parse().unwrap(), postgres.sql(journal).parse().unwrap());
    let beats = "select min(beat) from slow.node where left_at_us is null";
    let beaten: u64 = postgres.sql(beats).parse().unwrap();
    let load: Vec<String> = (0..20).map(|index| format!("warm-{index}")).collect();
    for document in &load {
        issue(&one, "LOAD", document).await;
    }
    shows(&postgres, SOON, journal, |now| now >= rows + 20).await;
    shows(&postgres, SOON, beats, |now| now >= beaten + 30).await;
    assert_eq!(postgres.sql("select count(*) from slow.node"), "2", "nobody took a new name");
    assert_eq!(postgres.sql(recoveries), closed.to_string(), "no epoch ended: {}", one.log());
    drop(held);
    for request in waiting {
        let (status, body) = request.await.unwrap();
        assert_eq!(status, 201, "{body}");
    }
    assert!(one.terminate() && other.terminate());
    deployment.assert_clean();
}

/// Goal: a locked counter keeps no row of another one out of the journal, and its own row is lost
/// in no crash (F16). Method: both are handed out in one partition; the row of the other one
/// commits under the lock, the outbox keeps the entry, and a crash finds it there.
#[tokio::test]
async fn slow_a_held_counter_keeps_no_other_out_of_the_journal_and_its_record_stays_in_the_outbox()
{
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let mut deployment = Deployment::new(&postgres.url("slow"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    apply_series(&deployment, "");
    let mut service = deployment.serve();
    for type_code in ["HELD0", "HELD1", "LOAD"] {
        issue(&service, type_code, "first").await;
    }
    let journal = "select count(*) from slow.journal";
    shows(&postgres, LIMIT, journal, |rows| rows == 3).await;
    let held = hold(&postgres, "slow", "counter where key = 'type=HELD0'").await;
    let number = issue(&service, "HELD0", "second").await;
    for document in ["second", "third"] {
        issue(&service, "HELD1", document).await;
        issue(&service, "LOAD", document).await;
    }
    shows(&postgres, SOON, journal, |rows| rows == 7).await;
    // Those after it are committed, and yet the outbox is not trimmed past it.
    issue(&service, "HELD1", "fourth").await;
    shows(&postgres, SOON, journal, |rows| rows == 8).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    service.kill();
    drop(held);
    let service = deployment.serve();
    shows(&postgres, LIMIT, journal, |rows| rows == 9).await;
    let found = postgres.sql("select number from slow.journal where document_id = 'HELD0-second'");
    assert!(found.lines().any(|row| row == number), "{number} is not in\n{found}");
    assert_eq!(issue(&service, "HELD0", "third").await, "HELD0-0003");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// The same without a crash: the row follows as soon as the counter is free, and the outbox is
/// emptied.
#[tokio::test]
async fn slow_a_record_that_waits_for_its_counter_is_journaled_when_that_is_free() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("slow"), Some(&redis.url()));
    apply_series(&deployment, "");
    let service = deployment.serve();
    issue(&service, "HELD0", "first").await;
    issue(&service, "HELD1", "first").await;
    let journal = "select count(*) from slow.journal";
    shows(&postgres, LIMIT, journal, |rows| rows == 2).await;
    let held = hold(&postgres, "slow", "counter where key = 'type=HELD0'").await;
    issue(&service, "HELD0", "second").await;
    issue(&service, "HELD1", "second").await;
    shows(&postgres, SOON, journal, |rows| rows == 3).await;
    issue(&service, "HELD0", "third").await;
    drop(held);
    shows(&postgres, SOON, journal, |rows| rows == 5).await;
    // It leaves nothing behind in its outbox, or it would not have left.
    assert!(service.terminate());
    assert_eq!(postgres.sql("select count(*) from slow.node where left_at_us is null"), "0");
    deployment.assert_clean();
}

/// Goal: a request that waits for two counters blocks no third one that is free again. Method:
/// three counters of the database path are locked, one is released.
#[tokio::test]
async fn slow_two_held_counters_keep_no_third_one_waiting_that_is_free_again() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("slow"), None);
    apply_series(&deployment, "policy = \"gapless\"");
    let service = deployment.serve();
    for index in 0..3 {
        issue(&service, &format!("HELD{index}"), "first").await;
    }
    let mut held = Vec::new();
    let mut waiting = Vec::new();
    for index in 0..3 {
        let rows = format!("counter where key = 'type=HELD{index}'");
        held.push(hold(&postgres, "slow", &rows).await);
        let url = service.url.clone();
        waiting
            .push(tokio::spawn(async move { take(&url, &format!("HELD{index}"), "second").await }));
        let deadline = Instant::now() + LIMIT;
        while service.log().matches("somebody else holds a counter").count() <= index {
            assert!(Instant::now() < deadline, "not set aside: {}", service.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    drop(held.pop());
    let third = waiting.pop().unwrap();
    let answer = tokio::time::timeout(SOON / 2, third).await;
    let (status, body) = answer.expect("it waits for counters that it does not need").unwrap();
    assert_eq!((status, &body["document_number"]), (201, &"HELD2-0002".into()), "{body}");
    assert!(waiting.iter().all(|request| !request.is_finished()), "answered under a foreign lock");
    drop(held);
    for request in waiting {
        assert_eq!(request.await.unwrap().0, 201);
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: an adoption that waits hides no node's silence. Method: the row of a partition is locked
/// while a dead node's outbox there is to be adopted; then another node dies.
#[tokio::test]
async fn slow_an_adoption_that_waits_does_not_blind_the_watch_over_the_others() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("slow"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    apply_series(&deployment, "");
    let (watch, mut one, mut other) = (deployment.serve(), deployment.serve(), deployment.serve());
    issue(&watch, "LOAD", "first").await;
    let alive = "select count(*) from slow.node where beat > 10";
    shows(&postgres, LIMIT, alive, |nodes| nodes == 3).await;
    let held = hold(&postgres, "slow", "partition where partition_id = 0").await;
    one.kill();
    let silent = async |count: f64| {
        let deadline = Instant::now() + SOON;
        loop {
            let text = testkit::get(format!("{}/metrics", watch.url)).await.unwrap();
            let text = text.text().await.unwrap();
            let gauge = "numerator_nodes{state=\"silent\"} ";
            let line = text.lines().find_map(|line| line.strip_prefix(gauge)).unwrap();
            if line.parse::<f64>().unwrap() == count {
                return;
            }
            assert!(Instant::now() < deadline, "{line} nodes are silent: {}", watch.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    silent(1.0).await;
    other.kill();
    silent(2.0).await;
    drop(held);
    let present = "select count(*) from slow.node \
                   where left_at_us is null and adopted_at_us is null";
    shows(&postgres, LIMIT, present, |nodes| nodes == 1).await;
    assert!(watch.terminate());
}

/// A value that makes the program's own arithmetic fail on a counter's row, and the row as it was.
const POISON: &str = "update slow.counter set origin = -9000000000000000000, \
                      start_value = -9000000000000000000, taken = 9000000000000000000, \
                      ceiling = 9000000000000000000, epoch = 0 where key = 'type=HELD0'";
const CURE: &str = "update slow.counter set origin = 0, start_value = 0, taken = 1, ceiling = 1, \
                    journaled = 1 where key = 'type=HELD0'";

/// Goal: a background job that fails leaves no counter without an owner. Method: a row on which the
/// seed of a counter panics, in a build that checks its arithmetic.
#[tokio::test]
async fn slow_a_seed_that_panics_is_reported_and_the_next_request_seeds_the_counter() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("slow"), Some(&redis.url()));
    deployment.http = "time_limit = \"3s\"\n".into();
    apply_series(&deployment, "");
    let service = deployment.serve();
    issue(&service, "HELD0", "first").await;
    shows(&postgres, LIMIT, "select count(*) from slow.journal", |rows| rows == 1).await;
    postgres.sql(POISON);
    redis.flushall();
    let (status, body) = take(&service.url, "HELD0", "second").await;
    // As if the ledger did not answer: it is worth another try.
    let told = (status, &body["number_taken"], &body["retryable"]);
    assert_eq!(told, (503, &"no".into(), &true.into()), "{body}");
    assert!(service.log().contains("panicked"), "{}", service.log());
    postgres.sql(CURE);
    assert_eq!(issue(&service, "HELD0", "third").await, "HELD0-0002");
    let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let text = text.text().await.unwrap();
    let failed = text.lines().find_map(|line| line.strip_prefix("numerator_chores_failed_total "));
    assert!(failed.is_some_and(|count| count != "0"), "{text}");
    assert!(service.terminate());
}

/// The same on the database path: the requests that queue for a contended counter.
#[tokio::test]
async fn slow_a_wait_for_a_counter_that_panics_gives_its_queue_back() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("slow"), None);
    deployment.http = "time_limit = \"8s\"\n".into();
    apply_series(&deployment, "policy = \"gapless\"");
    let service = deployment.serve();
    issue(&service, "HELD0", "first").await;
    let pool = sqlx::PgPool::connect(&postgres.url("slow")).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    sqlx::query(POISON).execute(&mut *holder).await.unwrap();
    let url = service.url.clone();
    let poisoned = tokio::spawn(async move { take(&url, "HELD0", "second").await });
    let deadline = Instant::now() + LIMIT;
    while !service.log().contains("somebody else holds a counter") {
        assert!(Instant::now() < deadline, "not set aside: {}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    holder.commit().await.unwrap();
    let (status, body) = poisoned.await.unwrap();
    assert_eq!(status, 503, "{body}");
    // The worker itself must not meet the row: it would end the process with it.
    postgres.sql(CURE);
    assert_eq!(issue(&service, "HELD0", "third").await, "HELD0-0002");
    assert!(service.terminate());
}

/// The sum of a metric's values.
async fn metric(service: &Service, name: &str) -> f64 {
    let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let text = text.text().await.unwrap();
    let lines = text.lines().filter(|line| line.starts_with(name));
    lines
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(_, value)| value.parse::<f64>().unwrap())
        .sum()
}

/// Goal: after a loss of Redis it is visible that new documents need the ledger, and for how long;
/// a flight asks once, whatever it carries. Method: a flush, many requests at once, and a window
/// that ends.
#[tokio::test]
async fn slow_after_a_loss_of_redis_new_documents_need_the_ledger_and_that_is_told() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("slow"), Some(&redis.url()));
    deployment.extra = "[idempotency]\nwindow = \"20s\"\n[metrics]\nperiod = \"100ms\"\n".into();
    apply_series(&deployment, "");
    let service = deployment.serve();
    load::documents(&service.url, 8, 50).await.assert_contiguous(50);
    let asked = "numerator_ledger_call_seconds_count{call=\"replays\"}";
    assert_eq!(metric(&service, asked).await, 0.0, "a key that Redis does not know is new");
    assert_eq!(metric(&service, "numerator_asking_seconds{").await, 0.0);
    let replay = |status: &str| status.contains("new ones are looked up in the journal");
    assert!(!replay(&deployment.status(&[]).1));

    redis.flushall();
    let flights = "numerator_flight_requests_count{path=\"redis\"}";
    let before = metric(&service, flights).await;
    load::documents(&service.url, 32, 500).await.assert_contiguous(500);
    let (looks, sent) = (metric(&service, asked).await, metric(&service, flights).await - before);
    assert!(looks > 0.0 && looks <= sent, "{looks} questions for {sent} flights");
    let deadline = Instant::now() + LIMIT;
    while metric(&service, "numerator_asking_seconds{").await == 0.0 {
        assert!(Instant::now() < deadline, "not shown");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ready: Value =
        testkit::get(format!("{}/readyz", service.url)).await.unwrap().json().await.unwrap();
    assert_eq!(ready["ready"], true, "{ready}");
    assert!(ready["asking_partitions"].as_u64() > Some(0), "{ready}");
    assert!(ready["asking_ms"].as_u64().is_some_and(|ms| 0 < ms && ms <= 20_000), "{ready}");
    let (_, page) = deployment.status(&[]);
    assert!(replay(&page), "{page}");

    let deadline = Instant::now() + LIMIT * 3;
    while metric(&service, "numerator_asking_seconds{").await > 0.0 {
        assert!(Instant::now() < deadline, "it does not end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(!replay(&deployment.status(&[]).1));
    let looks = metric(&service, asked).await;
    issue(&service, "LOAD", "new").await;
    assert_eq!(metric(&service, asked).await, looks, "new again");
    assert!(service.terminate());
}
