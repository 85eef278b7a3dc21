//! `status` and `verify`: what they see of Redis.

use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{json, load_partition, ok};
use crate::deployment::Deployment;
use crate::load::open;

/// How long a busy machine may delay a state from showing.
const LIMIT: Duration = Duration::from_secs(30);

/// Looks again until it shows what is expected: a heartbeat may be late on a busy machine.
fn until(deployment: &Deployment, arguments: &[&str], holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + LIMIT;
    loop {
        let (_, answer) = json(deployment, arguments);
        if holds(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{arguments:?}: {answer}");
    }
}

/// The nodes that were seen alive.
fn living(status: &Value) -> Vec<&Value> {
    let nodes = status["nodes"].as_array().unwrap();
    nodes.iter().filter(|node| node["alive"] == true).collect()
}

#[tokio::test]
async fn status_shows_who_lives_what_redis_holds_and_what_is_scarce() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("status"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let (mut dead, service) = (deployment.serve(), deployment.serve());
    load::documents(&service.url, 4, 20).await.assert_contiguous(20);
    let sees = |node: &Value| node["sight"].as_object().is_some_and(|sight| sight.len() == 1);
    let status = until(&deployment, &["status", "--ceilings", "1"], |status| {
        living(status).len() == 2 && living(status).into_iter().all(sees)
    });
    let partition = load_partition(&open(&deployment).await).await.partition as usize;
    let row = &status["partitions"][partition];
    assert_eq!((&row["owner"], &row["wanted"]), (&"redis".into(), &"auto".into()), "{row}");
    assert_eq!(row["redis"]["agrees"], true, "{row}");
    assert_eq!(status["ceilings"][0]["counter_key"], "type=LOAD", "{status}");

    dead.signal("STOP");
    until(&deployment, &["status"], |status| living(status).len() == 1);
    dead.kill();
    redis.kill();
    let (code, status) = json(&deployment, &["status"]);
    assert!([1, 2].contains(&code), "{code} {status}");
    let trouble = status["partitions"][partition]["redis"]["trouble"].as_str().unwrap();
    assert!(trouble.contains("does not answer"), "{status}");
    let (_, text) = deployment.status(&[]);
    assert!(text.contains("does not answer") && text.contains("alive"), "{text}");
    // Once the database has taken over, nothing remains that only Redis could show.
    let over = until(&deployment, &["status"], |status| status["verdict"] == "something-to-do");
    assert_eq!(over["partitions"][partition]["owner"], "database", "{over}");
}

#[tokio::test]
async fn verify_finds_a_counter_that_somebody_wrote_to_in_redis() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD", "--count", "5"]);
    let key = redis.cli(&["keys", "nbr:*:c:*LOAD*"]);
    let verify = || json(&deployment, &["verify", "--patience", "200ms"]);
    let (code, report) = verify();
    assert_eq!((code, &report["redis"]["counters"]), (0, &1.into()), "{report}");
    let ceiling = redis.cli(&["hget", &key, "ceiling"]);
    for (fields, kind) in [
        (&["value", "3", "check", "3"][..], "lower"),
        (&["value", "7", "check", "7"], "higher"),
        (&["value", "5", "check", "5", "ceiling", "5000"], "beyond"),
        (&["ceiling", &ceiling, "value", "4"], "damaged"),
    ] {
        redis.cli(&[&["hset", &key][..], fields].concat());
        let (code, report) = verify();
        assert_eq!(code, 1, "{kind}: {report}");
        assert_eq!(report["redis"]["deviations"][0]["kind"], kind, "{report}");
        let text = deployment.run(&["verify", "--patience", "200ms"]);
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains(kind) && text.contains("NOT CLEAN"), "{text}");
    }
    // Another epoch starts the counter again from the ledger.
    ok(&deployment, &["reconcile", "--new-epoch", "--apply"]);
    assert_eq!(verify().0, 0);
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000006\n");
    assert_eq!(verify().0, 0);
    redis.cli(&["del", &key]);
    let (code, report) = verify();
    assert_eq!((code, &report["redis"]["missing"]), (0, &1.into()), "no number at stake: {report}");
    redis.flushall();
    let (code, report) = verify();
    assert_eq!(code, 0, "the next node recovers: {report}");
    assert!(report["redis"]["not_compared"].to_string().contains("owner record"), "{report}");
}

#[tokio::test]
async fn verify_under_load_is_clean_and_a_redis_that_is_gone_is_only_told() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("looks"), Some(&redis.url()));
    deployment.apply_load_series();
    let (one, other) = (deployment.serve(), deployment.serve());
    let loads = [
        load::Running::start_as(&one.url, 8, "first"),
        load::Running::start_as(&other.url, 8, "second"),
    ];
    for _ in 0..3 {
        for load in &loads {
            load.reach(load.asked() + 200).await;
        }
        let report = ok(&deployment, &["verify"]);
        assert_eq!(report["redis"]["counters"], 1, "{report}");
    }
    for load in loads {
        let seen = load.finish().await;
        assert_eq!(seen.failures.len(), 0, "{:?}", seen.failures);
    }
    assert!(one.terminate() && other.terminate());
    redis.kill();
    let report = ok(&deployment, &["verify"]);
    assert_eq!(report["redis"]["counters"], 0, "{report}");
    assert!(!report["redis"]["not_compared"].as_object().unwrap().is_empty(), "{report}");
}
