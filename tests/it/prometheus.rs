//! Dashboards and alert rules on a real Prometheus: no expression is wrong, and no panel is empty.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::{Running, post};
use testkit::postgres::Postgres;
use testkit::prometheus::{Prometheus, promtool};
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// The job under which the rules expect the service.
const JOB: &str = "numerator";

/// How long a panel may be empty: until the first scrapes are in, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("grafana")
}

/// Every expression of the dashboards, by dashboard and panel, as Grafana would ask it.
fn panels() -> Vec<(String, String)> {
    let mut panels = Vec::new();
    for file in folder().join("dashboards").read_dir().expect("dashboards") {
        let text = std::fs::read_to_string(file.unwrap().path()).expect("a dashboard");
        let dashboard: Value = serde_json::from_str(&text).expect("a dashboard is JSON");
        for panel in dashboard["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let title = |of: &Value| of["title"].as_str().unwrap().to_owned();
                let place = format!("{}, {}", title(&dashboard), title(panel));
                panels.push((place, replaced(target["expr"].as_str().unwrap())));
            }
        }
    }
    assert!(panels.len() > 50, "only {} expressions", panels.len());
    panels
}

/// An expression with its variables replaced, everything chosen.
fn replaced(expression: &str) -> String {
    let expression = expression
        .replace("$__rate_interval", "10s")
        .replace("$instance", ".*")
        .replace("$series", ".*");
    assert!(!expression.contains('$'), "a variable is left in {expression}");
    expression
}

/// Selections of metrics in an expression, without their range.
fn selections(expression: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let mut found = BTreeSet::new();
    let mut rest = expression;
    while let Some(at) = rest.find("numerator") {
        let name_end = rest[at..].find(|c| !is_name(c)).map_or(rest.len(), |end| at + end);
        let end = match rest[name_end..].strip_prefix('{').and_then(|labels| labels.find('}')) {
            Some(length) => name_end + length + 2,
            None => name_end,
        };
        found.insert(rest[at..end].to_owned());
        rest = &rest[end..];
    }
    // What is compared with a word is a label's value.
    found.retain(|selection| selection.contains('_') || selection.contains(':'));
    found
}

/// Panels that show nothing while all is well, or when there is nothing to show, as their
/// descriptions say. Every other one has a line under load: what is not a number draws none.
const EMPTY_WHILE_WELL: [&str; 3] = [
    "numerator: Redis and ownership, Recovery time, p95",
    "numerator: ledger and journal, Age of the last checkpoint",
    "numerator: overview, Time until certificates and tokens end",
];

/// Whether an answer of Prometheus draws something.
fn draws(series: &[Value]) -> bool {
    series.iter().any(|one| one["value"][1] != "NaN")
}

/// Waits until an expression gives something.
async fn answered(prometheus: &Prometheus, place: &str, expression: &str) {
    answered_with(prometheus, place, expression, |series| !series.is_empty()).await;
}

/// Waits until an expression gives the expected value.
async fn answered_with(
    prometheus: &Prometheus,
    place: &str,
    expression: &str,
    is_wanted: impl Fn(&[Value]) -> bool,
) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let answer = prometheus.query(expression).await;
        let series = answer.unwrap_or_else(|error| panic!("{place}: {expression}: {error}"));
        if is_wanted(&series) {
            return;
        }
        assert!(Instant::now() < deadline, "{place}: {series:?} answers {expression}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Takes numbers of the gapless series without end: the database path has something to show.
async fn issue_by_database(client: reqwest::Client, url: String) {
    let mut pace = tokio::time::interval(Duration::from_millis(50));
    for number in 0_u64.. {
        pace.tick().await;
        let url = format!("{url}/api/v1/documents/slow-{number}/generate-number");
        let (status, body) = post(&client, &url, &json!({ "type": "SLOW" })).await;
        assert_eq!(status, 201, "{body}");
    }
}

#[tokio::test]
async fn every_panel_and_every_rule_is_answered_by_a_service_under_load() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let mut deployment = Deployment::new(&postgres.url("metrics"), Some(&redis.url()));
    deployment.extra =
        "[metrics]\nperiod = \"200ms\"\n[idempotency]\nwindow = \"10m\"\n[sweep]\nkeep = \"12m\"\n"
            .into();
    deployment.apply_load_series();
    let gapless = deployment.series_file("SLOW", "S-{SEQ:8}", "policy = \"gapless\"");
    deployment.apply(&[gapless]);
    let (one, other) = (deployment.serve(), deployment.serve());
    let prometheus =
        Prometheus::start(JOB, &[&one.url, &other.url], &folder().join("alerts.yaml")).await;
    let load = Running::start(&one.url, 4);
    load.reach(100).await;
    let client = testkit::client();
    let url = format!("{}/api/v1/documents/slow/generate-number", other.url);
    let (status, body) = post(&client, &url, &json!({ "type": "SLOW" })).await;
    assert_eq!((status, &body["path"]), (201, &"database".into()), "{body}");

    let slowly = tokio::spawn(issue_by_database(client, other.url.clone()));

    let panels = panels();
    let is_known = |title: &&str| panels.iter().any(|(place, _)| place == title);
    assert!(EMPTY_WHILE_WELL.iter().all(is_known), "{EMPTY_WHILE_WELL:?}");
    for (place, expression) in &panels {
        let may_be_empty = EMPTY_WHILE_WELL.contains(&&**place);
        let is_wanted = |series: &[Value]| draws(series) || may_be_empty && !series.is_empty();
        answered_with(&prometheus, place, expression, is_wanted).await;
    }
    slowly.abort();
    let rules = prometheus.rules().await;
    assert!(rules.len() > 20, "{}", rules.len());
    for rule in rules {
        let (name, expression) = (rule["name"].to_string(), rule["query"].as_str().unwrap());
        assert!(rule["lastError"].is_null() || rule["lastError"] == "", "{name}: {rule}");
        // A silent rule gives nothing: what it reads must exist.
        prometheus.query(expression).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        for selection in selections(expression) {
            answered(&prometheus, &name, &selection).await;
        }
    }
    let firing = prometheus.query("ALERTS{alertstate=\"firing\"}").await.unwrap();
    assert!(firing.is_empty(), "a healthy service raises alerts: {firing:?}");

    // The panels show what the service did: no number is missing in the metrics.
    let asked = load.finish().await.numbers.len() as f64;
    let total = "sum(numerator_issued_total{series=\"LOAD\"})";
    let deadline = Instant::now() + LIMIT;
    loop {
        let series = prometheus.query(total).await.unwrap();
        let shown: f64 = series[0]["value"][1].as_str().unwrap().parse().unwrap();
        if shown >= asked {
            break;
        }
        assert!(Instant::now() < deadline, "{shown} of {asked} numbers are shown");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(one.terminate() && other.terminate());
}

#[tokio::test]
async fn a_lost_redis_and_a_full_counter_are_seen_by_the_rules() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start_durable());
    let mut deployment = Deployment::new(&postgres.url("metrics"), Some(&redis.url()));
    deployment.extra = "[metrics]\nperiod = \"200ms\"\n".into();
    let narrow = deployment.series_file("LOAD", "N-{SEQ:1}", "");
    deployment.apply(&[narrow]);
    let service = deployment.serve();
    let prometheus = Prometheus::start(JOB, &[&service.url], &folder().join("alerts.yaml")).await;
    let client = testkit::client();
    for number in 1..=9 {
        let url = format!("{}/api/v1/documents/{number}/generate-number", service.url);
        let (status, body) = post(&client, &url, &json!({ "type": "LOAD" })).await;
        assert_eq!(status, 201, "{body}");
    }
    for alert in ["NumeratorCounterUsed90", "NumeratorCounterUsed95"] {
        let firing = format!("ALERTS{{alertname=\"{alert}\", alertstate=\"firing\", key!=\"\"}}");
        answered(&prometheus, alert, &firing).await;
    }
    redis.kill();
    let pending = "ALERTS{alertname=\"NumeratorRedisUnavailable\"}";
    answered(&prometheus, "it waits a minute", pending).await;
    let owned = "max(numerator_partition_owner{owner=\"redis\"}) == 0";
    answered(&prometheus, "the database takes over", owned).await;
    let fallback = "ALERTS{alertname=\"NumeratorFallback\", alertstate=\"firing\"}";
    answered(&prometheus, "and says so", fallback).await;
}

#[test]
fn the_rules_pass_their_own_tests() {
    let tests = ["test", "rules", "alerts_test.yaml", "alerts_slow_test.yaml"];
    for arguments in [&["check", "config", "prometheus.yml"][..], &tests] {
        let (is_content, says) = promtool(&folder(), arguments);
        assert!(is_content, "promtool {arguments:?}: {says}");
    }
}
