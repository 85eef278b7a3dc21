//! Fast and gapless numbers at once: what is only kept in memory keeps nothing out of the journal,
//! the gauge of its age is true, and `verify` takes what waits for no finding (F42).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;
use tokio::task::{JoinHandle, block_in_place};

use crate::deployment::Deployment;

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(60);

/// Callers of each series: each asks again as soon as it is answered.
const CALLERS: [(&str, usize); 2] = [("FAST", 4), ("SURE", 2)];

/// Fast numbers after which the journal has had time to fall behind.
const WATCHED: usize = 500;

/// The part of all fast numbers that may still be under way then, as the least of some samples: one
/// slow commit does not count. With gapless numbers it was a third, when those ended batches.
const BEHIND: usize = 8;

async fn take(client: &reqwest::Client, url: &str, type_code: &str, document: &str) -> Value {
    let route = format!("{url}/api/v1/documents/{document}/generate-number");
    let (status, body) = post(client, &route, &json!({ "type": type_code })).await;
    assert_eq!(status, 201, "{type_code} {document}: {body}");
    body
}

async fn issue(service: &Service, type_code: &str, document: &str) -> String {
    let document = format!("{type_code}-{document}");
    let body = take(&testkit::client(), &service.url, type_code, &document).await;
    body["document_number"].as_str().unwrap().to_owned()
}

/// Fast numbers, and when they were answered.
type Answered = Arc<Mutex<Vec<(String, Instant)>>>;

/// Callers of both series, until they are stopped.
fn call(url: &str, stop: &Arc<AtomicBool>, answered: &Answered) -> Vec<JoinHandle<()>> {
    let mut callers = Vec::new();
    for (type_code, count) in CALLERS {
        for caller in 0..count {
            let (url, stop, answered) = (url.to_owned(), Arc::clone(stop), Arc::clone(answered));
            callers.push(tokio::spawn(async move {
                let client = testkit::client();
                let mut asked = 0;
                while !stop.load(Ordering::Relaxed) {
                    asked += 1;
                    let document = format!("{type_code}-{caller}-{asked}");
                    let body = take(&client, &url, type_code, &document).await;
                    if type_code == "FAST" {
                        let number = body["document_number"].as_str().unwrap().to_owned();
                        answered.lock().unwrap().push((number, Instant::now()));
                    }
                }
            }));
        }
    }
    callers
}

/// What the service shows of its journal, and the truth by what callers know: how many of the fast
/// numbers that were answered before are not in the journal, and for how long.
async fn look(service: &Service, pool: &sqlx::PgPool, answered: &Answered) -> (usize, usize) {
    let (asked_at, known) = (Instant::now(), answered.lock().unwrap().clone());
    let told: Value =
        testkit::get(format!("{}/readyz", service.url)).await.unwrap().json().await.unwrap();
    // Read after the gauge: what is not there now was not there then.
    let rows: Vec<String> =
        sqlx::query_scalar("select number from journal where number like 'F-%'")
            .fetch_all(pool)
            .await
            .unwrap();
    let rows: HashSet<String> = rows.into_iter().collect();
    let behind: Vec<&(String, Instant)> =
        known.iter().filter(|(number, _)| !rows.contains(number)).collect();
    let age = behind.iter().map(|(_, at)| asked_at.saturating_duration_since(*at)).max();
    let age_ms = age.unwrap_or_default().as_millis();
    let told = (told["journal_lag_records"].as_u64(), told["journal_lag_ms"].as_u64());
    let (Some(told_records), Some(told_ms)) = told else { panic!("no lag: {told:?}") };
    assert!(told_records >= behind.len() as u64, "{told_records} told, {} behind", behind.len());
    // To the millisecond: both are cut off.
    assert!(u128::from(told_ms) + 1 >= age_ms, "{told_ms} ms are told, and it is {age_ms} ms");
    (behind.len(), known.len())
}

/// Goal: a load of both policies leaves the journal near, the gauge shows how near, and `verify`
/// meanwhile finds nothing. Method: callers record when they were answered; what the journal lacks
/// of that is the truth.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn gapless_numbers_keep_no_fast_one_out_of_the_journal_and_verify_beside_them_is_clean() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("mixed"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 100000\n".into();
    let fast = deployment.series_file("FAST", "F-{SEQ:8}", "");
    let gapless = deployment.series_file("SURE", "S-{SEQ:8}", "policy = \"gapless\"");
    deployment.apply(&[fast, gapless]);
    let service = deployment.serve();
    let pool = sqlx::PgPool::connect(&postgres.url("mixed")).await.unwrap();
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Answered::default());
    let callers = call(&service.url, &stop, &answered);
    let deadline = Instant::now() + LIMIT;
    loop {
        let (behind, known) = look(&service, &pool, &answered).await;
        if known >= WATCHED && behind * BEHIND <= known {
            break;
        }
        let is_near = known < 2 * WATCHED && Instant::now() < deadline;
        assert!(is_near, "{behind} of {known} are not journaled: {}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for round in 1..=5 {
        let (is_clean, report) = block_in_place(|| deployment.verify());
        assert!(is_clean, "round {round} of five beside a load: {report}");
        look(&service, &pool, &answered).await;
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// A series of types `H0` and `H1`, which have a counter each and one, `ALL`, that they share.
fn apply_types(deployment: &Deployment) {
    let file = deployment.path("HELD.toml");
    let text = "[[series]]\ncode = \"HELD\"\nname = \"HELD\"\n\
                template = \"{TYPE_CODE}-{SEQ:4}-{SEQ:6:ALL}\"\n\
                serves = { types = [\"H0\", \"H1\"] }\n\
                [[series.serials]]\ncounter = [\"type\"]\n\
                [[series.serials]]\nname = \"ALL\"\ncounter = []\n";
    std::fs::write(&file, text).unwrap();
    deployment.apply(&[file]);
}

/// A service whose record `H0-0002-000003` waits for a counter that another session locks, while
/// the one after it in `ALL` is journaled; and that session.
async fn with_a_record_that_waits(
    postgres: &Postgres,
    redis: &Redis,
) -> (Deployment, Service, impl Drop + use<>) {
    let mut deployment = Deployment::new(&postgres.url("held"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 100000\n".into();
    apply_types(&deployment);
    let service = deployment.serve();
    let pool = sqlx::PgPool::connect(&postgres.url("held")).await.unwrap();
    let journaled = async |documents: i64| {
        let deadline = Instant::now() + LIMIT;
        // Of a document there may be a row for each of its counters.
        let count = "select count(distinct document_id) from journal_row";
        while sqlx::query_scalar::<_, i64>(count).fetch_one(&pool).await.unwrap() < documents {
            assert!(Instant::now() < deadline, "not {documents}: {}", service.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    issue(&service, "H0", "one").await;
    issue(&service, "H1", "one").await;
    journaled(2).await;
    let mut holder = pool.begin().await.unwrap();
    let hold = "select 1 from counter where key = 'type=H0' for update";
    sqlx::query(hold).fetch_one(&mut *holder).await.unwrap();
    assert_eq!(issue(&service, "H0", "two").await, "H0-0002-000003");
    assert_eq!(issue(&service, "H1", "two").await, "H1-0002-000004");
    journaled(3).await;
    (deployment, service, holder)
}

const SHORT: [&str; 2] = ["--patience", "300ms"];

/// Goal: what a living node has handed out and not journaled yet is no finding, neither as a
/// counter that Redis counts higher, nor as a hole, nor as a non-empty outbox; for a node that does
/// not beat it is one. Method: a record waits for two counters, of which one is locked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_takes_what_a_living_node_has_not_journaled_yet_for_no_finding() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let (deployment, service, held) = with_a_record_that_waits(&postgres, &redis).await;
    let (is_clean, report) = block_in_place(|| deployment.verify_with(&SHORT));
    assert!(is_clean, "{report}");
    let waiting = &report["redis"]["waiting"];
    assert_eq!((waiting.as_array().unwrap().len(), &waiting[0]["unjournaled"]), (1, &1.into()));
    let text = deployment.ok(&["verify", "--patience", "300ms"]);
    assert!(text.contains("waiting: 1 allocations") && text.contains("ok: every value"), "{text}");

    service.signal("STOP");
    let (is_clean, report) = block_in_place(|| deployment.verify_with(&SHORT));
    let kept = &report["redis"]["unjournaled"];
    assert!(!is_clean && kept[0]["unjournaled"] == 1, "nobody journals it: {report}");
    assert_eq!(report["redis"]["deviations"], json!([]), "a new epoch is no remedy: {report}");
    service.signal("CONT");
    drop(held);
    assert!(service.terminate());
    let report = deployment.assert_clean();
    assert_eq!(report["redis"]["waiting"], json!([]), "{report}");
}

/// Goal: what no outbox explains is found nevertheless, of a counter that has records waiting and
/// of one that has none, by Redis alone and once a number after it is journaled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verify_finds_a_counter_that_was_raised_by_hand_beside_a_living_node() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let (deployment, service, held) = with_a_record_that_waits(&postgres, &redis).await;
    for (counter, found) in [("type=H0", 1), ("type=H1", 2)] {
        let key = redis.cli(&["keys", &format!("nbr:*:c:*{counter}")]);
        for field in ["value", "check"] {
            redis.cli(&["hincrby", &key, field, "100"]);
        }
        let (is_clean, report) = block_in_place(|| deployment.verify_with(&SHORT));
        let deviations = report["redis"]["deviations"].as_array().unwrap();
        let kinds: Vec<&Value> = deviations.iter().map(|deviation| &deviation["kind"]).collect();
        assert_eq!((is_clean, kinds), (false, vec![&"higher".into(); found]), "{report}");
    }
    drop(held);
    assert_eq!(issue(&service, "H1", "three").await, "H1-0103-000005");
    assert!(service.terminate());
    let (is_clean, report) = deployment.verify();
    assert!(!is_clean && report["missing"][0]["first"] == 3, "{report}");
    assert_eq!(report["missing"][0]["last"], 102, "{report}");
}
