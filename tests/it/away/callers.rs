//! What callers and operators see while a store is unavailable: at one node alone, with a wait of
//! their own, after another window of retries, on the command line.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;

use super::{AT_ONCE, LIMIT, becomes, gauge, ready, series, take};
use crate::deployment::Deployment;

/// Goal: a node that alone has lost Redis immediately refuses what others serve, and takes part
/// again automatically. Method: two nodes, one of them behind a proxy that refuses.
#[tokio::test]
async fn away_a_node_that_alone_has_lost_redis_refuses_at_once_and_takes_part_again_by_itself() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let proxy = Proxy::start(redis.port());
    let url = postgres.url("alone");
    let whole = Deployment::new(&url, Some(&redis.url()));
    series(&whole);
    let apart = Deployment::new(&url, Some(&proxy.redis_url()));
    let (one, other) = (whole.serve(), apart.serve());
    for service in [&one, &other] {
        take(&service.url, "LOAD", &format!("first-{}", service.id())).await.number();
    }
    proxy.refuse();
    let deadline = Instant::now() + LIMIT;
    let mut count = 0;
    while take(&other.url, "LOAD", &format!("cut-off-{count}")).await.status != 503 {
        assert!(Instant::now() < deadline, "{}", other.log());
        count += 1;
    }
    for index in 0..5 {
        let answer = take(&other.url, "LOAD", &format!("refused-{index}")).await;
        answer.is_at_once("redis-unavailable");
        assert!(answer.took < AT_ONCE / 3, "{answer:?}");
        take(&one.url, "LOAD", &format!("served-{index}")).await.number();
    }
    proxy.forward();
    while take(&other.url, "LOAD", "back").await.status == 503 {
        assert!(Instant::now() < deadline, "{}", other.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(one.terminate() && other.terminate());
    whole.assert_clean();
}

/// Goal: a caller says how long it waits, and learns whether a number may have been taken. Method:
/// a counter whose row is locked, and headers of each form.
#[tokio::test]
async fn away_a_caller_says_how_long_it_waits_and_its_retry_finds_the_number() {
    let postgres = Postgres::start();
    let url = postgres.url("prefer");
    let mut deployment = Deployment::new(&url, None);
    deployment.http = "time_limit = \"4s\"\n".into();
    series(&deployment);
    let service = deployment.serve();
    take(&service.url, "WHOLE", "first").await.number();
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    let hold = "select taken from counter where key = 'type=WHOLE' for update";
    sqlx::query(hold).fetch_one(&mut *holder).await.unwrap();
    let client = testkit::client();
    let single = format!("{}/api/v1/documents/second/generate-number", service.url);
    let batch = format!("{}/api/v1/document-numbering/batches", service.url);
    let waits = async |url: &str, body: Value, prefer: &[&str]| {
        let mut asked = client.post(url).json(&body);
        for value in prefer {
            asked = asked.header("Prefer", *value);
        }
        let started = Instant::now();
        let answer = asked.send().await.unwrap();
        let applied = answer.headers().get("preference-applied");
        let applied = applied.map(|value| value.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        (status, applied, body, started.elapsed())
    };
    let second = Duration::from_secs(1);
    for (prefer, applied, least, most) in [
        (&["wait=1"][..], Some("wait=1"), 1, 3),
        (&["respond-async, Wait = \"1\"; x=\"a,b\""][..], Some("wait=1"), 1, 3),
        (&["handling=lenient", "wait=1, wait=2"][..], Some("wait=1"), 1, 3),
        // Longer than any wait here.
        (&["wait=99999999999999999999"][..], Some("wait=4"), 4, 7),
        // An invalid value is ignored, as is what comes after it.
        (&["wait=soon, wait=1"][..], None, 4, 7),
        (&["wait=-1"][..], None, 4, 7),
        (&["wait=0"][..], None, 4, 7),
    ] {
        let (status, told, body, took) = waits(&single, json!({ "type": "WHOLE" }), prefer).await;
        assert_eq!((status, &body["code"]), (503, &"lock-timeout".into()), "{prefer:?}: {body}");
        assert_eq!((told.as_deref(), &body["retryable"]), (applied, &true.into()), "{prefer:?}");
        assert!(matches!(body["number_taken"].as_str(), Some("no" | "maybe")), "{body}");
        assert!(second * least <= took && took < second * most, "{prefer:?}: {took:?}");
    }
    let list = json!({ "documents": [{ "document_id": "third", "type": "WHOLE" }] });
    let (status, told, body, took) = waits(&batch, list, &["wait=1"]).await;
    assert_eq!((status, told.as_deref()), (200, Some("wait=1")), "{body}");
    assert_eq!(body["items"][0]["problem"]["code"], "lock-timeout", "{body}");
    assert!(took < second * 3, "{took:?}");
    drop(holder);
    // Whatever the outcome of the tries: it is one document, and has one number.
    let (status, told, body, _) = waits(&single, json!({ "type": "WHOLE" }), &["wait=3"]).await;
    assert!(matches!(status, 200 | 201), "{body}");
    assert_eq!(told.as_deref(), Some("wait=3"), "also where it was short");
    let again = take(&service.url, "WHOLE", "second").await;
    assert_eq!((again.status, &again.body["document_number"]), (200, &body["document_number"]));
    let looked = format!("{}/api/v1/documents/second/numbers", service.url);
    let looked = client.get(looked).header("Prefer", "wait=3").send().await.unwrap();
    assert_eq!(looked.status().as_u16(), 200);
    assert_eq!(looked.headers()["preference-applied"], "wait=3");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: the time for which new documents need the ledger is shown before the first of them comes.
/// Method: a restart with another `idempotency.window`, and no requests.
#[tokio::test]
async fn away_another_window_of_retries_is_shown_as_asked_for_before_anybody_asks() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("windows"), Some(&redis.url()));
    deployment.extra = "[idempotency]\nwindow = \"10m\"\n".into();
    series(&deployment);
    let service = deployment.serve();
    take(&service.url, "LOAD", "first").await.number();
    let (_, body) = ready(&service).await;
    assert_eq!(body["asking_partitions"], 0, "{body}");
    assert!(service.terminate());
    deployment.extra = "[idempotency]\nwindow = \"20m\"\n".into();
    let service = deployment.serve();
    let body = becomes(&service, 200, |body| body["asking_partitions"] == 8).await;
    assert!(body["asking_ms"].as_u64() > Some(1_100_000), "{body}");
    assert!(gauge(&service, "numerator_asking_seconds{partition=\"0\"} ").await > 1_100.0);
    let page = deployment.ok(&["status"]);
    assert!(page.contains("new ones are looked up in the journal"), "{page}");
    assert!(service.terminate());
}

/// Goal: a command that takes a number ends soon if a store is unavailable, and names it. Method:
/// no ledger; then no Redis, whose partition the database takes over.
#[tokio::test]
async fn away_a_command_that_takes_a_number_ends_soon_and_names_the_store_that_is_away() {
    let (mut postgres, mut redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("command"), Some(&redis.url()));
    series(&deployment);
    assert_eq!(deployment.ok(&["next", "LOAD"]).trim(), "L-00000001");
    redis.kill();
    let started = Instant::now();
    assert_eq!(deployment.ok(&["next", "LOAD"]).trim(), "L-00000002");
    assert!(started.elapsed() < LIMIT / 2, "{:?}", started.elapsed());
    postgres.kill();
    let started = Instant::now();
    let output = deployment.run(&["next", "LOAD"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("database.url"), "{error}");
    assert!(error.contains("Connection refused"), "{error}");
    assert!(started.elapsed() < LIMIT / 4, "{:?}", started.elapsed());
}
