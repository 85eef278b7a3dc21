//! What each policy of a series promises, on real servers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::deployment::Deployment;
use crate::load::open;
use testkit::load::{self, Running, post};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

/// How long a missing answer is watched for.
const HELD_BACK: Duration = Duration::from_millis(700);
/// How soon an answer comes once nothing delays it.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Asks for one number of a type.
async fn take(url: &str, type_code: &str, document: &str) -> (u16, Value) {
    let route = format!("{url}/api/v1/documents/{document}/generate-number");
    post(&testkit::client(), &route, &json!({ "type": type_code })).await
}

/// The same in a task of its own.
fn taking(
    url: &str,
    type_code: &'static str,
    document: &'static str,
) -> tokio::task::JoinHandle<(u16, Value)> {
    let url = url.to_owned();
    tokio::spawn(async move { take(&url, type_code, document).await })
}

/// A fast series `FAST` and a durable one `SURE`, both warm. Neither asks the journal for documents
/// that Redis does not know.
async fn fast_and_durable(deployment: &mut Deployment) -> testkit::service::Service {
    deployment.extra = "[ceiling]\nstep_min = 1000\n".into();
    let settings = "policy = \"durable\"\nonce_per_document = false";
    let durable = deployment.series_file("SURE", "S-{SEQ:4}", settings);
    let fast = deployment.series_file("FAST", "F-{SEQ:4}", "");
    deployment.apply(&[durable, fast]);
    let service = deployment.serve();
    for (type_code, number) in [("FAST", "F-0001"), ("SURE", "S-0001")] {
        let (status, body) = take(&service.url, type_code, "one").await;
        assert_eq!((status, &body["document_number"]), (201, &number.into()), "{body}");
    }
    service
}

#[tokio::test]
async fn policies_a_durable_number_is_in_the_journal_when_it_is_answered_a_fast_one_need_not() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("durable"), Some(&redis.url()));
    let service = fast_and_durable(&mut deployment).await;
    postgres.kill();
    let mut first = taking(&service.url, "SURE", "two");
    let mut replay = taking(&service.url, "SURE", "one");
    let (status, body) = take(&service.url, "FAST", "two").await;
    assert_eq!((status, &body["document_number"]), (201, &"F-0002".into()), "{body}");
    for waiting in [&mut first, &mut replay] {
        let answered = tokio::time::timeout(HELD_BACK, waiting).await;
        assert!(answered.is_err(), "answered before it was journaled: {answered:?}");
    }
    postgres.restart();
    for (waiting, document, number) in [(first, "two", "S-0002"), (replay, "one", "S-0001")] {
        let mut answered = tokio::time::timeout(ANSWER_LIMIT, waiting).await.unwrap().unwrap();
        // A process that knows that the ledger is unavailable lets no caller wait for it.
        let deadline = tokio::time::Instant::now() + ANSWER_LIMIT;
        while answered.0 == 503 {
            let (_, body) = &answered;
            assert_eq!(body["retryable"], true, "{body}");
            assert!(tokio::time::Instant::now() < deadline, "never answered: {body}");
            answered = take(&service.url, "SURE", document).await;
        }
        let count = format!("select count(*) from durable.journal where number = '{number}'");
        assert_eq!(answered.1["document_number"], number, "{answered:?}");
        assert_eq!(postgres.sql(&count), "1", "answered before its row is there");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn policies_a_durable_request_that_runs_out_of_time_says_maybe_and_its_retry_finds_it() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("late"), Some(&redis.url()));
    deployment.http = "time_limit = \"1s\"\n".into();
    let service = fast_and_durable(&mut deployment).await;
    postgres.kill();
    let (status, problem) = take(&service.url, "SURE", "two").await;
    assert_eq!((status, &problem["number_taken"]), (503, &"maybe".into()), "{problem}");
    assert_eq!(problem["retryable"], true, "{problem}");
    postgres.restart();
    let deadline = tokio::time::Instant::now() + ANSWER_LIMIT;
    let number = loop {
        let (status, body) = take(&service.url, "SURE", "two").await;
        if status == 200 {
            break body["document_number"].clone();
        }
        assert_eq!((status, &body["number_taken"]), (503, &"maybe".into()), "{body}");
        assert!(tokio::time::Instant::now() < deadline, "never answered: {body}");
    };
    assert_eq!(number, "S-0002");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Every value from 1 to the highest is in the journal, once; returns how many there are.
async fn count_contiguous(deployment: &Deployment) -> u64 {
    let ledger = open(deployment).await;
    let counters = ledger.counters().page(0, 10).await.unwrap();
    let [counter] = &counters[..] else { panic!("one counter, not {counters:?}") };
    let holes = ledger.audits().holes(counter.counter_id, 0, counter.taken, 10).await.unwrap();
    assert!(holes.is_empty(), "values that the journal lacks: {holes:?}");
    let totals = ledger.register().totals().await.unwrap();
    assert_eq!((totals.gaps, i64::try_from(totals.journal).unwrap()), (0, counter.taken));
    totals.journal
}

/// A load of series LOAD, gapless, of which some callers leave before they are answered; returns
/// how many documents were requested.
async fn impatient_load(url: &str, name: &str, count: u64) {
    let mut callers = Vec::new();
    for caller in 0..16 {
        let (url, name) = (url.to_owned(), name.to_owned());
        callers.push(tokio::spawn(async move {
            let client = testkit::client();
            for index in (caller..count).step_by(16) {
                let document = format!("{name}-{index}");
                let asked = load::take(&client, &url, &document);
                // Every fourth is given up, some of them in the middle of their transaction.
                let patience = if index % 4 == 0 { index % 7 } else { 60_000 };
                let _ = tokio::time::timeout(Duration::from_millis(patience), asked).await;
            }
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn gapless_series_has_no_gap(deployment: &Deployment, flush: impl Fn()) {
    deployment.apply(&[deployment.series_file("LOAD", "L-{SEQ:8}", "policy = \"gapless\"")]);
    let mut service = deployment.serve();
    let (_, body) = load::take(&testkit::client(), &service.url, "first").await;
    assert_eq!(body["path"], "database", "{body}");
    impatient_load(&service.url, "impatient", 200).await;
    let load = Running::start(&service.url, 16);
    load.reach(100).await;
    flush();
    load.reach(200).await;
    service.kill();
    let mut seen = load.finish().await;
    let service = deployment.serve();
    let load = Running::start(&service.url, 16);
    load.reach(300).await;
    seen.numbers.extend(load.finish().await.numbers);
    seen.assert_no_duplicate();
    assert!(service.terminate());
    assert!(count_contiguous(deployment).await > 300);
    deployment.assert_clean();
}

#[tokio::test]
async fn policies_a_gapless_series_has_no_gap_whoever_gives_up_or_dies() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("gapless"), Some(&redis.url()));
    gapless_series_has_no_gap(&deployment, || redis.flushall()).await;
    gapless_series_has_no_gap(&Deployment::embedded(), || {}).await;
}

#[test]
fn policies_a_used_series_is_not_made_gapless_and_the_remedy_is_named() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    let file = deployment.series_file("LOAD", "L-{SEQ:8}", "policy = \"gapless\"");
    let output = deployment.run(&["series", "apply", &file.display().to_string()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("apply a new series"), "{error}");
    let file = deployment.series_file("LOAD", "L-{SEQ:8}", "policy = \"durable\"");
    deployment.apply(&[file]);
    assert!(deployment.ok(&["series", "show", "LOAD"]).contains("policy = \"durable\""));
}

#[tokio::test]
async fn policies_a_request_of_before_a_change_of_policy_keeps_nobody_else_waiting() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("moved"), None);
    let files = [("MOVED", "M-{SEQ:4}"), ("STAYS", "S-{SEQ:4}")]
        .map(|(code, template)| deployment.series_file(code, template, "policy = \"gapless\""));
    deployment.apply(&files);
    let service = deployment.serve();
    // What is left by a node that learned of the change before this one.
    postgres.sql(
        "insert into moved.counter (series_id, serial, key, partition_id, epoch, origin, \
         start_value, taken, ceiling, step, seeded_by, seeded_at_us) \
         select series_id, 'SEQ', 'type=MOVED', 0, 0, 0, 0, 0, 0, 1, '\\x00', 0 \
         from moved.series where code = 'MOVED'",
    );
    let late = taking(&service.url, "MOVED", "one");
    for document in ["one", "two", "three"] {
        let answer = tokio::time::timeout(ANSWER_LIMIT, take(&service.url, "STAYS", document));
        let (status, body) = answer.await.expect("kept waiting");
        assert_eq!(status, 201, "{body}");
    }
    let (status, body) = late.await.unwrap();
    assert_eq!((status, &body["code"]), (503, &"series-changed".into()), "{body}");
    assert_eq!((&body["retryable"], &body["number_taken"]), (&true.into(), &"no".into()));
    assert!(service.terminate());
}
