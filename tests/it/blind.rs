//! One process alone does not reach Redis: it reports that and why, is not ready while others can
//! serve what it cannot, and does not block Redis forever (F22).

use std::time::Duration;

use numerator::redis::{Keys, Redis as Client, RedisSettings};
use serde_json::Value;
use testkit::eventually::eventually;
use testkit::load::{self, take};
use testkit::postgres::Postgres;
use testkit::process::free_port;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

const SCHEMA: &str = "blind";

/// How long a change may take to show on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A deployment on the ledger of these tests that goes back to Redis soon.
fn on(postgres: &Postgres, redis_url: &str, return_after: &str) -> Deployment {
    let mut deployment = Deployment::new(&postgres.url(SCHEMA), Some(redis_url));
    deployment.extra = format!("return_after = \"{return_after}\"\n[node]\nttl = \"2s\"\n");
    deployment
}

/// The answer of a process at `/readyz`: the status, and the text.
async fn readiness(service: &Service) -> (u16, String) {
    let answer = testkit::get(format!("{}/readyz", service.url)).await;
    match answer {
        Ok(answer) => (answer.status().as_u16(), answer.text().await.unwrap()),
        Err(error) => (0, error.to_string()),
    }
}

/// Waits until `/readyz` answers with this status, and with this in its text.
async fn becomes(service: &Service, wanted: u16, part: &str) {
    eventually(LIMIT, async || match readiness(service).await {
        (status, text) if status == wanted && text.contains(part) => Ok(()),
        (status, text) => Err(format!("{status} {text}, not {wanted} {part}: {}", service.log())),
    })
    .await;
}

/// `status --json`: its exit code and what it prints.
fn status(deployment: &Deployment) -> (i32, Value) {
    let output = deployment.run(&["status", "--json"]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code().unwrap(), told)
}

/// Waits until the page of `status` shows something; its exit code and the page.
async fn shows(deployment: &Deployment, part: &str) -> (i32, String) {
    eventually(LIMIT, async || {
        let output = deployment.run(&["status"]);
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        match page.contains(part) {
            true => Ok((output.status.code().unwrap(), page)),
            false => Err(format!("no {part:?}: {page}")),
        }
    })
    .await
}

/// Waits until every partition that Redis may own is open for an owner.
async fn owned_by(postgres: &Postgres, owner: &str) {
    let others = format!(
        "select count(*) from {SCHEMA}.partition \
         where partition_id < 8 and (owner <> '{owner}' or state <> 'open')"
    );
    eventually(LIMIT, async || match &*postgres.sql(&others) {
        "0" => Ok(()),
        count => Err(format!("{count} partitions are not {owner}'s")),
    })
    .await;
}

/// Waits until each process has beaten this many times from now on.
async fn beats(postgres: &Postgres, count: u64) {
    let figure = |which: &str| {
        let select = format!("select {which}(beat) from {SCHEMA}.node where left_at_us is null");
        postgres.sql(&select).parse::<u64>().unwrap()
    };
    let wanted = figure("max") + count;
    eventually(LIMIT, async || match figure("min") {
        beat if beat >= wanted => Ok(()),
        beat => Err(format!("{beat} beats of {wanted}")),
    })
    .await;
}

/// The data set of a server.
fn data_set(redis: &Redis) -> String {
    let info = redis.cli(&["info", "replication"]);
    let line = info.lines().find_map(|line| line.strip_prefix("master_replid:"));
    line.expect("a data set").trim().to_owned()
}

async fn number(service: &Service, document: &str) {
    let (status, body) = take(&testkit::client(), &service.url, document).await;
    assert_eq!(status, 201, "{body}");
}

/// Goal: the whole course of a wrong password in one of three processes. Method: a user of Redis
/// with another password, a Redis that is restarted during it, and the repair.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_password_is_wrong_is_not_ready_and_redis_comes_back_without_it() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start_durable());
    let right = on(&postgres, &redis.url(), "4s");
    right.apply_load_series();
    let gapless = right.series_file("GAP", "G-{SEQ:8}", "policy = \"gapless\"");
    right.apply(&[gapless]);
    let (one, other) = (right.serve(), right.serve());
    owned_by(&postgres, "redis").await;
    let clerk = ["acl", "setuser", "clerk", "on", ">right", "~*", "+@all"];
    redis.cli(&clerk);
    let port = redis.port();
    let wrong = on(&postgres, &format!("redis://clerk:wrong@127.0.0.1:{port}"), "4s");
    let blind = wrong.launch();
    becomes(&blind, 503, "redis refuses the password").await;
    assert!(blind.log().contains("redis refuses the password"), "{}", blind.log());
    becomes(&one, 200, "\"redis\":8").await;
    let label = format!("/{} ", blind.id());
    let (code, page) = shows(&right, "redis refuses the password").await;
    assert!(code == 1 && page.contains(&label), "{code}: {page}");
    assert!(!page.contains("all is well"), "{page}");

    redis.kill();
    owned_by(&postgres, "database").await;
    becomes(&blind, 200, "\"database\":9").await;
    number(&blind, "from-the-database").await;
    redis.restart();
    let (code, page) = shows(&right, "waits for").await;
    assert!(code == 1 && page.contains(&label), "{code}: {page}");
    owned_by(&postgres, "redis").await;
    becomes(&blind, 503, "redis refuses the password").await;
    assert!(one.log().contains("waits for") || other.log().contains("waits for"), "{}", one.log());
    let seen = load::documents(&other.url, 4, 40).await;
    assert_eq!(seen.failures.len(), 0, "{:?}", seen.failures);
    seen.assert_no_duplicate();

    redis.cli(&["acl", "setuser", "clerk", "on", ">wrong", "~*", "+@all"]);
    becomes(&blind, 200, "\"redis\":8").await;
    number(&blind, "mended").await;
    let well = async || match status(&right) {
        (0, _) => Ok(()),
        (code, told) => Err(format!("{code}: {told}")),
    };
    eventually(LIMIT, well).await;
    for service in [one, other, blind] {
        assert!(service.terminate());
    }
    right.assert_clean();
}

/// Goal: Redis does not get the partitions back while a process sees another data set, however
/// long. Method: that process's link leads to another server, and Redis is restarted.
#[tokio::test(flavor = "multi_thread")]
async fn redis_does_not_return_beside_a_process_that_sees_another_data_set() {
    let (postgres, redis, foreign) = (Postgres::start(), Redis::start(), Redis::start());
    let proxy = Proxy::start(redis.port());
    let right = on(&postgres, &redis.url(), "500ms");
    right.apply_load_series();
    let (one, strayed) = (right.serve(), on(&postgres, &proxy.redis_url(), "500ms").serve());
    right.ok(&["fallback", "on"]);
    owned_by(&postgres, "database").await;
    proxy.retarget(foreign.port());
    let strays = format!(
        "select count(*) from {SCHEMA}.node where sight like '%{}%' and sight not like '%{}%'",
        data_set(&foreign),
        data_set(&redis)
    );
    eventually(LIMIT, async || match &*postgres.sql(&strays) {
        "1" => Ok(()),
        count => Err(format!("{count} processes see the other server")),
    })
    .await;
    // The others know of it by then.
    beats(&postgres, 4).await;
    right.ok(&["fallback", "off"]);
    let (code, page) = shows(&right, "another data set").await;
    assert!(code == 1 && page.contains(&format!("/{} ", strayed.id())), "{page}");
    // Far longer than a process that sees nothing would be waited for: 16 beats are 4 s.
    beats(&postgres, 16).await;
    owned_by(&postgres, "database").await;
    number(&strayed, "strayed").await;
    proxy.retarget(redis.port());
    owned_by(&postgres, "redis").await;
    number(&one, "returned").await;
}

/// Goal: while no process reaches Redis all are ready, because the database serves. Method: one
/// link is cut, then Redis ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_cut_off_is_ready_again_once_nobody_reaches_redis() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start());
    let proxy = Proxy::start(redis.port());
    let right = on(&postgres, &redis.url(), "500ms");
    right.apply_load_series();
    let (one, cut) = (right.serve(), on(&postgres, &proxy.redis_url(), "500ms").serve());
    owned_by(&postgres, "redis").await;
    proxy.refuse();
    becomes(&cut, 503, "alone cannot reach redis").await;
    becomes(&one, 200, "").await;
    let (code, told) = status(&right);
    assert_eq!((code, &told["verdict"]), (1, &"something-to-do".into()), "{told}");
    assert!(told["reasons"].to_string().contains(&format!("/{}", cut.id())), "{told}");
    redis.kill();
    owned_by(&postgres, "database").await;
    becomes(&cut, 200, "\"database\":9").await;
    number(&cut, "from-the-database").await;
}

/// Goal: an error in `redis.url` is reported in words that lead to its remedy. Method: one server
/// with and without TLS, asked in wrong ways.
#[tokio::test(flavor = "multi_thread")]
async fn each_reason_why_redis_is_not_reached_is_told_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    let tls = free_port().to_string();
    let redis = Redis::start_with(&[
        "--tls-port",
        &tls,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &certificate,
        "--tls-auth-clients",
        "no",
    ]);
    let (plain, nobody) = (redis.port(), free_port());
    for (url, reason) in [
        (format!("redis://127.0.0.1:{nobody}"), "Connection refused"),
        (format!("redis-cluster://127.0.0.1:{nobody}"), "Connection refused"),
        (format!("redis://clerk:wrong@127.0.0.1:{plain}"), "redis refuses the password"),
        (format!("rediss://127.0.0.1:{tls}"), "a certificate that is not accepted here"),
    ] {
        says(&url, reason).await;
    }
    redis.cli(&["acl", "setuser", "default", "off"]);
    says(&format!("redis://127.0.0.1:{plain}"), "redis asks for a password").await;
}

/// Waits until a client reports why it does not reach a server.
async fn says(url: &str, reason: &str) {
    let client = client(url);
    eventually(LIMIT, async || {
        let error = client.probe(&Keys::new("nbr"), 1).await.expect_err("not reached");
        let cause = error.cause();
        if cause.contains(reason) { Ok(()) } else { Err(format!("{url}: {cause}")) }
    })
    .await;
}

fn client(url: &str) -> Client {
    let (command_timeout, reconnect_max) = (Duration::from_millis(300), Duration::from_millis(50));
    Client::start(&RedisSettings { url: url.into(), command_timeout, reconnect_max }).unwrap()
}
