//! What the log shows, and what it must never show.

use std::time::Duration;

use serde_json::Value;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// A password that must never be visible.
const DATABASE_SECRET: &str = "hunter2-of-the-ledger";
/// Another one.
const REDIS_SECRET: &str = "hunter2-of-redis";

fn shows_no_secret(text: &str) {
    for secret in [DATABASE_SECRET, REDIS_SECRET] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "a password is shown");
    }
}

/// A log of the service as JSON: every line is an object.
fn lines(log: &str) -> Vec<Value> {
    let read = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("no JSON ({error}): {line}"))
    };
    log.lines().map(read).collect()
}

#[tokio::test]
async fn every_line_of_a_request_has_its_id_and_a_slow_one_says_what_served_it() {
    let redis = Redis::start();
    let mut deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.extra = "[log]\nformat = \"json\"\nfilter = \"info,numerator::web=debug\"\n".into();
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let (client, url) = (testkit::client(), &service.url);
    // The first number waits for the ledger, in which its counter is seeded.
    let ledger = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let holder = ledger.begin_with("begin immediate").await.unwrap();
    let order = client
        .post(format!("{url}/api/v1/documents/first/generate-number"))
        .header("x-request-id", "order-7")
        .json(&serde_json::json!({ "type": "LOAD" }))
        .send();
    let release = async {
        // Longer than a request that is not slow; nothing is waited for.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        holder.rollback().await.unwrap();
    };
    let (answer, ()) = tokio::join!(order, release);
    assert_eq!(answer.unwrap().headers()["x-request-id"], "order-7");
    let refused = client.get(format!("{url}/nowhere")).header("x-request-id", "lost").send().await;
    let refused: Value = refused.unwrap().json().await.unwrap();
    assert_eq!(refused["instance"], "lost");
    service.signal("TERM");
    assert!(service.has_ended_well(), "{}", service.log());

    let log = service.log();
    let lines = lines(&log);
    let of = |id: &str| {
        let wanted = |line: &&Value| line["span"]["request_id"] == id;
        lines.iter().filter(wanted).cloned().collect::<Vec<_>>()
    };
    let [answered, slow] = &of("order-7")[..] else { panic!("two lines: {log}") };
    assert_eq!((&answered["message"], &answered["status"]), (&"answered".into(), &201.into()));
    assert_eq!((&slow["message"], &slow["level"]), (&"slow request".into(), &"WARN".into()));
    assert_eq!(slow["route"], "/api/v1/documents/{documentId}/generate-number", "{slow}");
    assert_eq!((&slow["served_by"], &slow["status"]), (&"redis".into(), &201.into()), "{slow}");
    assert!(slow["took_ms"].as_u64().unwrap() >= 1_000, "{slow}");
    assert_eq!(of("lost")[0]["slug"], "route-not-found");
}

#[tokio::test]
async fn no_password_is_logged_whatever_happens_and_however_much_is_logged() {
    let postgres = Postgres::start();
    let redis = Redis::start();
    let password = format!(">{REDIS_SECRET}");
    assert_eq!(redis.cli(&["acl", "setuser", "clerk", "on", &password, "~*", "&*", "+@all"]), "OK");
    let with_password = |url: &str, user: &str, secret: &str| {
        let (scheme, rest) = url.split_once("://").unwrap();
        let host = rest.split_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{user}:{secret}@{host}")
    };
    let url = postgres.url("logs");
    let user =
        url.split_once("://").unwrap().1.split_once('@').map_or("postgres", |(user, _)| user);
    let database_url = with_password(&url, user, DATABASE_SECRET);
    let redis_url = with_password(&redis.url(), "clerk", REDIS_SECRET);
    let mut deployment = Deployment::new(&database_url, Some(&redis_url));
    deployment.extra = "[log]\nfilter = \"trace\"\n".into();
    deployment.apply_load_series();
    let mut service = deployment.serve();
    let before = load::documents(&service.url, 2, 4).await;
    assert_eq!(before.failures.len(), 0, "{:?}", before.failures);
    // Lost connections are logged with their cause; the password is searched for again.
    redis.cli(&["client", "kill", "type", "normal"]);
    postgres.sql("select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle'");
    let after = load::documents(&service.url, 2, 4).await;
    // A session that is ended during a query is reported as such, and the caller asks again.
    assert!(
        after.failures.keys().all(|status| [500, 503].contains(status)),
        "{:?}",
        after.failures
    );
    service.signal("TERM");
    assert!(service.has_ended_well());
    shows_no_secret(&service.log());
    let status = deployment.run(&["status"]);
    assert_eq!(status.status.code(), Some(1), "no process runs: {status:?}");
    shows_no_secret(&String::from_utf8_lossy(&[status.stdout, status.stderr].concat()));
}

#[test]
fn no_refused_url_shows_its_password() {
    let redis = |rest: &str| format!("redis://:{REDIS_SECRET}@{rest}");
    let ledger = |rest: &str| format!("postgres://numerator:{DATABASE_SECRET}@{rest}");
    let mut deployments: Vec<Deployment> = [
        ledger("127.0.0.1:1/none"),
        ledger("127.0.0.1:port/none"),
        ledger("[::1/none"),
        ledger("127.0.0.1/none?sslmode=perhaps"),
        ledger("127.0.0.1/none").replace("postgres:", "mysql:"),
    ]
    .map(|url| Deployment::new(&url, None))
    .into();
    deployments.extend(
        [
            redis("[bad"),
            redis("127.0.0.1:port"),
            redis("127.0.0.1:1/database"),
            redis("127.0.0.1:1").replace("redis:", "http:"),
            redis("127.0.0.1:1").replace("redis:", "redis-sentinel:"),
        ]
        .map(|url| Deployment::sqlite(Some(&url))),
    );
    for mut deployment in deployments {
        deployment.extra = "[log]\nfilter = \"trace\"\n".into();
        let output = deployment.run(&["status"]);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!output.status.success(), "{text}");
        shows_no_secret(&text);
    }
}
