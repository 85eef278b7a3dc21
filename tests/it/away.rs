//! Unavailable stores: requests that need one are refused immediately while the process knows it,
//! readiness reports it, and no request is sacrificed to find out that the store is back.

mod callers;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::{SQLITE_FILE, Service};

use crate::deployment::Deployment;

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// A refusal takes less than this if the process knows what it cannot do. Long for a busy machine,
/// and shorter than any try of an unavailable store.
const AT_ONCE: Duration = Duration::from_millis(1_500);

/// An answer: status, header `Retry-After`, body, and how long it took.
#[derive(Debug)]
struct Answer {
    status: u16,
    retry_after: Option<String>,
    body: Value,
    took: Duration,
}

impl Answer {
    /// A refusal for a store known to be unavailable, as a client may act on it.
    #[track_caller]
    fn is_at_once(&self, slug: &str) {
        assert_eq!((self.status, &self.body["code"]), (503, &slug.into()), "{self:?}");
        assert_eq!(self.retry_after.as_deref(), Some("1"), "{self:?}");
        let told = (&self.body["retryable"], &self.body["number_taken"]);
        assert_eq!(told, (&true.into(), &"no".into()), "{self:?}");
        assert!(self.took < AT_ONCE, "{self:?}");
    }

    #[track_caller]
    fn number(&self) -> String {
        assert!(matches!(self.status, 200 | 201), "{self:?}");
        self.body["document_number"].as_str().unwrap().to_owned()
    }
}

/// Posts JSON.
async fn post(url: &str, path: &str, body: Value) -> Answer {
    let started = Instant::now();
    let answer = testkit::client().post(format!("{url}{path}")).json(&body).send();
    let answer = answer.await.unwrap();
    let retry_after = answer.headers().get("retry-after");
    let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    let body = answer.json().await.unwrap();
    Answer { status, retry_after, body, took: started.elapsed() }
}

/// Requests a document's number of a type.
async fn take(url: &str, type_code: &str, document: &str) -> Answer {
    let path = format!("/api/v1/documents/{document}/generate-number");
    post(url, &path, json!({ "type": type_code })).await
}

/// The answer of `/readyz`.
async fn ready(service: &Service) -> (u16, Value) {
    let answer = testkit::get(format!("{}/readyz", service.url)).await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Waits until `/readyz` answers with this status in the expected form; returns its text.
async fn becomes(service: &Service, wanted: u16, is_right: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + LIMIT;
    loop {
        let (status, body) = ready(service).await;
        if status == wanted && is_right(&body) {
            return body;
        }
        assert!(Instant::now() < deadline, "{status} {body}: {}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A gauge of the process.
async fn gauge(service: &Service, name: &str) -> f64 {
    let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let text = text.text().await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("{name} is not in\n{text}")).trim().parse().unwrap()
}

/// Why it is not ready, in words.
fn reasons(body: &Value) -> Vec<&str> {
    let reasons = body["reasons"].as_array().into_iter().flatten();
    reasons.map(|reason| reason["reason"].as_str().unwrap()).collect()
}

/// A deployment with the series `LOAD` (fast), `KEPT` (durable), `WHOLE` (gapless).
fn series(deployment: &Deployment) {
    let files = [("KEPT", "durable"), ("WHOLE", "gapless")].map(|(code, policy)| {
        let template = format!("{code}-{{SEQ:4}}");
        deployment.series_file(code, &template, &format!("policy = \"{policy}\""))
    });
    deployment.apply_load_series();
    deployment.apply(&files);
}

/// Goal: after Redis lost its records, a missing ledger stops new documents, and that is reported:
/// not ready, refused at once, by the right word. Method: a flush, then PostgreSQL is killed; what
/// Redis knows and what asks no question continues; its return needs no manual step.
#[tokio::test]
async fn away_a_ledger_that_new_documents_are_looked_up_in_stops_them_at_once_and_is_not_ready() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("away"), Some(&redis.url()));
    // What is in the journal is nevertheless known to Redis.
    deployment.extra = "[idempotency]\nkeep_whole = true\n".into();
    series(&deployment);
    let service = deployment.serve();
    becomes(&service, 200, |body| body["serving"]["redis"] == 8).await;
    redis.flushall();
    let known = take(&service.url, "LOAD", "known").await.number();
    let recovered = |body: &Value| body["serving"]["redis"] == 8;
    becomes(&service, 200, |body| body["asking_partitions"].as_u64() > Some(0) && recovered(body))
        .await;
    postgres.kill();
    let nobody = json!({ "redis": 0, "database": 0 });
    let body = becomes(&service, 503, |body| body["serving"] == nobody).await;
    assert_eq!((&body["code"], &body["ready"]), (&"not-ready".into(), &false.into()), "{body}");
    assert_eq!(reasons(&body), ["database-connection"], "{body}");
    assert!(body["works"]["replays"].as_u64() > Some(0), "{body}");
    assert!(body["works"]["warm_counters"].as_u64() > Some(0), "{body}");
    assert_eq!(body["ledger"]["answers"], false, "{body}");
    assert_eq!(gauge(&service, "numerator_ready ").await, 0.0);

    let asked = (0..40).map(|index| {
        let url = service.url.clone();
        tokio::spawn(async move { take(&url, "LOAD", &format!("new-{index}")).await })
    });
    for answer in asked.collect::<Vec<_>>() {
        answer.await.unwrap().is_at_once("database-connection");
    }
    for type_code in ["KEPT", "WHOLE"] {
        take(&service.url, type_code, "other").await.is_at_once("database-connection");
    }
    let batches = "/api/v1/document-numbering/batches";
    let documents = json!({ "documents": [
        { "document_id": "known", "type": "LOAD" }, { "document_id": "b", "type": "LOAD" },
    ] });
    let answer = post(&service.url, batches, documents).await;
    let items = &answer.body["items"];
    assert_eq!((&items[0]["status"], &items[1]["status"]), (&200.into(), &503.into()), "{items}");
    assert_eq!(items[0]["document_number"], known.as_str(), "{items}");
    assert_eq!(items[1]["problem"]["code"], "database-connection", "{items}");
    assert!(answer.took < AT_ONCE, "{answer:?}");
    let range = json!({ "type": "LOAD", "count": 3, "document_id": "range" });
    post(&service.url, batches, range).await.is_at_once("database-connection");
    // It could not have been asked for before: it has no name.
    let range = post(&service.url, batches, json!({ "type": "LOAD", "count": 3 })).await;
    assert_eq!(range.status, 201, "{range:?}");
    assert_eq!(take(&service.url, "LOAD", "known").await.number(), known);

    postgres.restart();
    becomes(&service, 200, |body| body["ready"] == true).await;
    let next = take(&service.url, "LOAD", "new-0").await;
    assert_eq!((next.status, next.number().as_str()), (201, "L-00000005"));
    for type_code in ["KEPT", "WHOLE"] {
        let number = take(&service.url, type_code, "other").await.number();
        assert_eq!(number, format!("{type_code}-0001"));
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: the same if the ledger hangs: the first requests wait, and those that come once it is
/// known do not. Method: a proxy that swallows everything, before any request is sent.
#[tokio::test]
async fn away_a_ledger_that_hangs_is_known_without_a_request_and_who_comes_then_does_not_wait() {
    for with_redis in [true, false] {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let proxy = Proxy::start(postgres.port());
        let url = postgres.url_by(proxy.port(), "hangs");
        let redis_url = redis.url();
        let deployment = Deployment::new(&url, with_redis.then_some(redis_url.as_str()));
        series(&deployment);
        let service = deployment.serve();
        if with_redis {
            becomes(&service, 200, |body| body["serving"]["redis"] == 8).await;
            redis.flushall();
        }
        take(&service.url, "LOAD", "first").await.number();
        if with_redis {
            becomes(&service, 200, |body| body["asking_partitions"].as_u64() > Some(0)).await;
        }
        proxy.swallow_all();
        becomes(&service, 503, |body| reasons(body) == ["database-connection"]).await;
        for document in ["one", "two", "three"] {
            take(&service.url, "LOAD", document).await.is_at_once("database-connection");
            take(&service.url, "WHOLE", document).await.is_at_once("database-connection");
        }
        proxy.forward();
        becomes(&service, 200, |_| true).await;
        assert_eq!(take(&service.url, "LOAD", "one").await.number(), "L-00000002");
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// Goal: on the database path the first requests that meet a lost ledger have their tries, and the
/// others do not queue behind them. Method: some documents at once, right after PostgreSQL was
/// killed, and others once that is known.
#[tokio::test]
async fn away_whoever_queues_behind_the_first_tries_of_a_lost_ledger_is_refused_when_it_is_known() {
    let mut postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("queue"), None);
    series(&deployment);
    let service = deployment.serve();
    take(&service.url, "WHOLE", "before").await.number();
    postgres.kill();
    let first = tokio::spawn({
        let url = service.url.clone();
        async move { take(&url, "WHOLE", "first").await }
    });
    let deadline = Instant::now() + LIMIT;
    while gauge(&service, "numerator_queue_length{partition=\"8\"} ").await < 1.0 {
        assert!(Instant::now() < deadline && !first.is_finished(), "{}", service.log());
    }
    let queued = (0..20).map(|index| {
        let url = service.url.clone();
        tokio::spawn(async move { take(&url, "WHOLE", &format!("queued-{index}")).await })
    });
    let queued: Vec<_> = queued.collect();
    for answer in queued {
        let answer = answer.await.unwrap();
        assert_eq!((answer.status, &answer.body["code"]), (503, &"database-connection".into()));
        assert_eq!(answer.body["number_taken"], "no", "{answer:?}");
        assert!(answer.took < Duration::from_secs(6), "{answer:?}");
    }
    becomes(&service, 503, |_| true).await;
    take(&service.url, "WHOLE", "later").await.is_at_once("database-connection");
    take(&service.url, "LOAD", "later").await.is_at_once("database-connection");
    postgres.restart();
    becomes(&service, 200, |_| true).await;
    // It was refused after its tries, or has its number by one of them.
    first.await.unwrap();
    let first = take(&service.url, "WHOLE", "first").await.number();
    let later = take(&service.url, "WHOLE", "later").await.number();
    assert_eq!([first.as_str(), later.as_str()], ["WHOLE-0002", "WHOLE-0003"]);
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a pause shorter than the time after which the ledger counts as unavailable is bridged.
/// Method: PostgreSQL is cut off for a second, again and again, under a load of each path.
#[tokio::test(flavor = "multi_thread")]
async fn away_a_short_pause_of_the_ledger_is_ridden_out_without_an_error() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let proxy = Proxy::start(postgres.port());
    let redis_url = redis.url();
    for redis_url in [Some(redis_url.as_str()), None] {
        let url =
            postgres.url_by(proxy.port(), if redis_url.is_some() { "joint" } else { "single" });
        let deployment = Deployment::new(&url, redis_url);
        deployment.apply_load_series();
        let service = deployment.serve();
        redis.flushall();
        let load = load::Running::start(&service.url, 8);
        load.reach(100).await;
        for _ in 0..2 {
            proxy.refuse();
            tokio::time::sleep(Duration::from_millis(1_000)).await;
            proxy.forward();
            load.reach(load.asked() + 100).await;
        }
        let seen = load.finish().await;
        assert_eq!(seen.failures.len(), 0, "{:?}: {}", seen.failures, service.log());
        seen.assert_contiguous(seen.numbers.len());
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// Goal: what a lost ledger does not stop continues, and readiness shows it: fast counters that
/// Redis has, below their ceilings; and no longer than that. Method: ceilings of ten numbers.
#[tokio::test]
async fn away_warm_counters_go_on_without_the_ledger_until_their_ceilings_and_then_are_not_ready() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("warm"), Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 10\nhorizon = \"1s\"\n".into();
    series(&deployment);
    let service = deployment.serve();
    for type_code in ["LOAD", "WHOLE"] {
        take(&service.url, type_code, "first").await.number();
    }
    postgres.kill();
    let body = becomes(&service, 200, |body| body["works"]["gapless"] == false).await;
    assert_eq!(body["works"]["new_counters"], false, "{body}");
    take(&service.url, "WHOLE", "second").await.is_at_once("database-connection");
    // It could not be committed, so it is not taken.
    take(&service.url, "KEPT", "first").await.is_at_once("database-connection");
    let mut refused = None;
    for index in 0..40 {
        let answer = take(&service.url, "LOAD", &format!("next-{index}")).await;
        if answer.status == 503 {
            refused = Some((index, answer));
            break;
        }
        answer.number();
    }
    let (index, refused) = refused.expect("it has a ceiling");
    assert!(index > 0, "warm counters go on");
    refused.is_at_once("ceiling-reached");
    for again in 0..3 {
        take(&service.url, "LOAD", &format!("more-{again}")).await.is_at_once("ceiling-reached");
    }
    let body = becomes(&service, 503, |body| reasons(body).contains(&"ceiling-reached")).await;
    assert_eq!(body["works"]["warm_counters"].as_u64(), Some(7), "{body}");
    postgres.restart();
    becomes(&service, 200, |_| true).await;
    let number = take(&service.url, "LOAD", &format!("next-{index}")).await.number();
    assert_eq!(number, format!("L-{:08}", index + 2));
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: an embedded ledger whose file is gone counts as unavailable. Method: it is moved aside,
/// and back.
#[tokio::test]
async fn away_an_embedded_ledger_whose_file_is_moved_aside_refuses_at_once_until_it_is_back() {
    let deployment = Deployment::embedded();
    series(&deployment);
    let service = deployment.serve();
    take(&service.url, "LOAD", "first").await.number();
    let files = ["", "-wal", "-shm"].map(|end| format!("{SQLITE_FILE}{end}"));
    let rename = |from: &str, to: &str| {
        for file in &files {
            let [from, to] = [from, to].map(|begin| deployment.path(&format!("{begin}{file}")));
            std::fs::rename(from, to).unwrap();
        }
    };
    rename("", "aside-");
    becomes(&service, 503, |body| reasons(body) == ["database-connection"]).await;
    for type_code in ["LOAD", "KEPT", "WHOLE"] {
        take(&service.url, type_code, "second").await.is_at_once("database-connection");
    }
    rename("aside-", "");
    becomes(&service, 200, |_| true).await;
    assert_eq!(take(&service.url, "LOAD", "second").await.number(), "L-00000002");
    assert!(service.terminate());
    deployment.assert_clean();
}
