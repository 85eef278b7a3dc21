//! Named faults and the promise that holds through each of them, under load.

use std::collections::BTreeMap;
use std::time::Duration;

use numerator::ledger::{JournalFilter, Position, SharedLedger};

use crate::deployment::Deployment;
use crate::load::open;
use testkit::load::{self, Running, Seen};
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;

const CONNECTIONS: usize = 32;

/// How soon issuing resumes automatically after Redis lost everything.
const RESUME_LIMIT: Duration = Duration::from_secs(2);

/// Rows of the journal that are read at once.
const PAGE: u32 = 1_000;

/// Every number that a client received is in the journal, under its document, once. Nothing writes
/// to it meanwhile: it is read page by page.
pub(crate) async fn assert_all_journaled(ledger: &SharedLedger, seen: &Seen) {
    let mut filter = JournalFilter { limit: PAGE, ..JournalFilter::default() };
    let mut journaled = BTreeMap::<String, Vec<Option<String>>>::new();
    loop {
        let rows = ledger.register().find(&filter).await.unwrap();
        filter.after = rows.last().and_then(Position::of);
        let is_last = rows.len() < PAGE as usize;
        for row in rows {
            let document = row.entry.record.document_id.clone();
            journaled.entry(row.entry.number).or_default().push(document);
        }
        if is_last {
            break;
        }
    }
    for (document, number) in &seen.numbers {
        let documents = journaled.get(number).map(Vec::as_slice).unwrap_or_default();
        assert_eq!(documents, [Some(document.clone())], "rows of {number}");
    }
}

async fn service_is_killed(deployment: &Deployment) {
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(1_500).await;
    service.kill();
    let mut seen = load.finish().await;
    assert!(seen.numbers.len() > 500, "only {} numbers before the crash", seen.numbers.len());
    let ledger = open(deployment).await;
    let journaled_before = ledger.register().totals().await.unwrap().journal;

    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(1_000).await;
    let after = load.finish().await;
    // The second load asks for the same documents again: the same numbers must come.
    for (document, number) in &after.numbers {
        let before = seen.numbers.get(document);
        assert!(before.is_none_or(|before| before == number), "{document}: {before:?}, {number}");
    }
    seen.numbers.extend(after.numbers);
    seen.assert_no_duplicate();
    // The dead node is adopted once it was silent for its time-to-live.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let nodes = ledger.nodes().list().await.unwrap();
        if nodes.len() == 1 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "not adopted: {}", service.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(service.terminate());
    assert_all_journaled(&ledger, &seen).await;
    println!("{journaled_before} rows before the restart");
    deployment.assert_clean();
}

#[tokio::test]
async fn faults_service_killed_on_redis_and_postgres_no_duplicate_and_the_outbox_is_adopted() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    service_is_killed(&Deployment::new(&postgres.url("killed"), Some(&redis.url()))).await;
}

#[tokio::test]
async fn faults_service_killed_on_the_database_path_no_duplicate_and_nothing_lost() {
    service_is_killed(&Deployment::embedded()).await;
    let postgres = Postgres::start();
    service_is_killed(&Deployment::new(&postgres.url("killed"), None)).await;
}

#[tokio::test]
async fn faults_service_and_redis_die_together_a_retry_still_finds_its_number() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start_durable());
    let deployment = Deployment::new(&postgres.url("together"), Some(&redis.url()));
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(1_500).await;
    service.kill();
    let seen = load.finish().await;
    redis.restart();
    let service = deployment.serve();
    // The newest numbers are those that may be only in the dead node's outbox.
    let client = testkit::client();
    let mut newest: Vec<_> = seen.numbers.iter().collect();
    newest.sort_by_key(|(_, number)| std::cmp::Reverse((*number).clone()));
    for (document, number) in newest.into_iter().take(200) {
        let (status, body) = load::take(&client, &service.url, document).await;
        assert_eq!((status, body["document_number"].as_str()), (200, Some(number.as_str())));
    }
    seen.assert_no_duplicate();
    // Waits for what is still on its way into the journal.
    deployment.assert_clean();
    assert_all_journaled(&open(&deployment).await, &seen).await;
}

/// Damages Redis while the load runs; checks what holds afterwards.
async fn redis_is_ruined(ruin: impl FnOnce(&mut Redis)) {
    let (postgres, mut redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("ruined"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(1_500).await;
    ruin(&mut redis);
    let asked = load.asked();
    load.reach(asked + 1_500).await;
    let seen = load.finish().await;
    // A retry finds its number although Redis has lost it: the journal is asked (F1).
    let client = testkit::client();
    for (document, number) in seen.numbers.iter().step_by(seen.numbers.len() / 50) {
        let (status, body) = load::take(&client, &service.url, document).await;
        assert_eq!((status, body["document_number"].as_str()), (200, Some(number.as_str())));
    }
    seen.assert_no_duplicate();
    assert_eq!(seen.failures.len(), 0, "callers see latency, not errors: {:?}", seen.failures);
    println!("{} numbers, longest stall {:?}", seen.numbers.len(), seen.longest_stall);
    assert!(seen.longest_stall < RESUME_LIMIT, "stalled for {:?}", seen.longest_stall);
    assert!(service.terminate());
    let ledger = open(&deployment).await;
    assert_all_journaled(&ledger, &seen).await;
    let report = deployment.assert_clean();
    // No node died: the epoch closes exact, and there is not even a gap.
    assert_eq!(report["totals"]["gaps"], 0, "{report}");
    let events = ledger.events().list(100).await.unwrap();
    let recoveries = events.iter().filter(|event| event.kind == "recovery").count();
    assert!(recoveries >= 1, "the recovery is on record: {events:?}");
}

#[tokio::test]
async fn faults_redis_is_flushed_issuing_resumes_by_itself_without_a_duplicate() {
    redis_is_ruined(|redis| redis.flushall()).await;
}

#[tokio::test]
async fn faults_a_counter_is_deleted_issuing_resumes_by_itself_without_a_duplicate() {
    redis_is_ruined(|redis| {
        let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
        assert_eq!(redis.cli(&["del", &key]), "1", "{key}");
    })
    .await;
}

#[tokio::test]
async fn faults_a_counter_is_set_lower_issuing_resumes_by_itself_without_a_duplicate() {
    redis_is_ruined(|redis| {
        let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
        redis.cli(&["hset", &key, "value", "3"]);
    })
    .await;
}

#[tokio::test]
async fn faults_an_outbox_is_deleted_issuing_resumes_by_itself_without_a_duplicate() {
    redis_is_ruined(|redis| {
        let script = "for _, key in ipairs(redis.call('keys', 'nbr:*:outbox:*')) do \
                      redis.call('del', key) end return redis.call('del', KEYS[1])";
        let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
        redis.cli(&["eval", script, "1", &key]);
    })
    .await;
}

#[tokio::test]
async fn faults_redis_restarts_empty_issuing_resumes_by_itself_without_a_duplicate() {
    redis_is_ruined(Redis::restart).await;
}

#[tokio::test]
async fn faults_ledger_restarts_everything_is_journaled_when_it_returns() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("restarts"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(1_000).await;
    postgres.restart();
    let asked = load.asked();
    load.reach(asked + 1_000).await;
    let seen = load.finish().await;
    seen.assert_no_duplicate();
    assert!(service.terminate(), "the journal is drained");
    let ledger = open(&deployment).await;
    assert_all_journaled(&ledger, &seen).await;
    deployment.assert_clean();
}

#[tokio::test]
async fn faults_answers_of_redis_are_lost_flights_are_sent_again_and_there_is_not_even_a_gap() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let proxy = Proxy::start(redis.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let deployment = Deployment::new(&postgres.url("swallowed"), Some(&url));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    for round in 1..=3 {
        load.reach(round * 700).await;
        proxy.swallow_answers();
        // Requests go on until every caller waits for an answer that will not come.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        loop {
            let asked = load.asked();
            tokio::time::sleep(Duration::from_millis(200)).await;
            if load.asked() == asked {
                break;
            }
            assert!(tokio::time::Instant::now() < deadline, "answers still arrive");
        }
        proxy.forward();
    }
    load.reach(3_000).await;
    proxy.cut();
    load.reach(3_700).await;
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "callers see latency, not errors: {:?}", seen.failures);
    seen.assert_contiguous(seen.numbers.len());
    assert!(service.terminate());
    assert_all_journaled(&open(&deployment).await, &seen).await;
    let report = deployment.assert_clean();
    assert_eq!(
        report["totals"]["gaps"], 0,
        "an unknown outcome is resolved, not given up: {report}"
    );
}

#[tokio::test]
async fn faults_ledger_is_away_issuing_goes_on_to_its_bound_then_refuses_and_nothing_is_lost() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("away"), Some(&redis.url()));
    deployment.extra = "[journal]\nqueue_max = 300\n\
                        [ceiling]\nstep_min = 5000\n"
        .into();
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(500).await;
    postgres.kill();
    let client = testkit::client();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    let mut attempt = 0;
    let problem = loop {
        attempt += 1;
        let (status, body) = load::take(&client, &service.url, &format!("probe-{attempt}")).await;
        if status == 503 {
            break body;
        }
        assert!(tokio::time::Instant::now() < deadline, "never refused: {status} {body}");
    };
    let kind = problem["code"].as_str().unwrap();
    assert!(kind.ends_with("outbox-full") || kind.ends_with("ceiling-reached"), "{problem}");
    assert_eq!(problem["retryable"], true, "{problem}");
    assert!(problem["retry_after_ms"].as_u64().is_some_and(|wait| wait > 0), "{problem}");
    postgres.restart();
    let asked = load.asked();
    load.reach(asked + 500).await;
    let seen = load.finish().await;
    assert!(seen.failures.keys().all(|status| *status == 503), "{:?}", seen.failures);
    seen.assert_no_duplicate();
    assert!(service.terminate(), "the journal is drained");
    assert_all_journaled(&open(&deployment).await, &seen).await;
    deployment.assert_clean();
}

#[tokio::test]
async fn faults_a_node_is_paused_past_its_time_to_live_then_woken_no_duplicate_and_nothing_lost() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("paused"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let (paused, other) = (deployment.serve(), deployment.serve());
    let ledger = open(&deployment).await;
    let first = Running::start_as(&paused.url, CONNECTIONS, "first");
    let second = Running::start_as(&other.url, CONNECTIONS, "second");
    first.reach(500).await;
    second.reach(500).await;
    paused.signal("STOP");
    let adopted = async {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while ledger.nodes().list().await.unwrap().len() > 1 {
            assert!(tokio::time::Instant::now() < deadline, "not adopted: {}", other.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    adopted.await;
    paused.signal("CONT");
    for load in [&first, &second] {
        let asked = load.asked();
        load.reach(asked + 500).await;
    }
    let (mut seen, more) = (first.finish().await, second.finish().await);
    seen.numbers.extend(more.numbers);
    seen.assert_no_duplicate();
    assert!(paused.terminate() && other.terminate());
    assert_all_journaled(&ledger, &seen).await;
    deployment.assert_clean();
}

#[tokio::test]
async fn faults_a_second_ledger_on_the_same_redis_is_refused_and_takes_nothing() {
    let redis = Redis::start();
    let url = redis.url();
    let (one, other) = (Deployment::sqlite(Some(&url)), Deployment::sqlite(Some(&url)));
    one.apply_load_series();
    other.apply_load_series();
    let service = one.serve();
    let seen = load::documents(&service.url, 4, 40).await;
    seen.assert_contiguous(40);
    let output = other.run(&["next", "LOAD"]);
    assert!(!output.status.success(), "a foreign Redis must not be used");
    assert!(output.stdout.is_empty());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("redis.url"), "the remedy is named: {error}");
    let more = load::documents(&service.url, 4, 80).await;
    more.assert_contiguous(80);
}

#[tokio::test]
async fn faults_another_ledgers_redis_answers_for_a_while_and_nothing_is_held_for_it() {
    let (redis, foreign) = (Redis::start(), Redis::start());
    let other = Deployment::sqlite(Some(&foreign.url()));
    other.apply_load_series();
    let service = other.serve();
    load::documents(&service.url, 4, 40).await;
    // Its epochs are ahead of those of the ledger that strays there.
    foreign.flushall();
    load::documents(&service.url, 4, 80).await;
    assert!(service.terminate());

    let proxy = Proxy::start(redis.port());
    let deployment = Deployment::sqlite(Some(&proxy.redis_url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(500).await;
    let ledger = open(&deployment).await;
    let epochs = async || {
        let rows = ledger.partitions().await.unwrap();
        rows.iter().map(|row| (row.epoch, row.state)).collect::<Vec<_>>()
    };
    let before = epochs().await;
    proxy.retarget(foreign.port());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let client = testkit::client();
    while !service.log().contains("use another one in redis.url") {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", epochs().await);
        load::take(&client, &service.url, "stray").await;
    }
    assert_eq!(epochs().await, before, "nothing ends for a foreign Redis, and nothing is held");
    proxy.retarget(redis.port());
    load.reach(load.asked() + 500).await;
    let seen = load.finish().await;
    seen.assert_no_duplicate();
    assert!(service.terminate());
    assert_all_journaled(&ledger, &seen).await;
}
