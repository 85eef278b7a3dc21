//! What no question needs any more is removed while numbers are issued.

use std::time::Duration;

use serde_json::json;
use testkit::eventually::eventually;
use testkit::load;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;
use crate::restored::{copy_ledger, put_in_place};

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// An epoch with more than three counters ends after a second, and its counters go after another.
const AT_ONCE: &str = "[sweep]\nkeep = \"1s\"\ncounters_max = 3\n\
                       [node]\nttl = \"120ms\"\n\
                       [idempotency]\nwindow = \"1s\"\n";

/// Takes the next number of a day.
async fn take(service: &Service, document: &str, day: u32) -> String {
    let url = format!("{}/api/v1/documents/{document}-{day}/generate-number", service.url);
    let order = json!({ "type": "SPO", "date": format!("2024-01-{day:02}") });
    let (status, body) = load::post(&testkit::client(), &url, &order).await;
    assert_eq!(status, 201, "{body} {}", service.log());
    body["document_number"].as_str().unwrap().to_owned()
}

/// The sum of a metric's values that are known.
async fn metric(service: &Service, name: &str) -> f64 {
    let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let text = text.text().await.unwrap();
    let lines = text.lines().filter(|line| line.starts_with(name));
    let values = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    values.filter(|value| !value.is_nan()).sum()
}

/// Goal: counters of past days are removed from Redis, and no number comes twice, nor is one
/// skipped; a release of the ledger no longer relies on what was removed. Method: four days make an
/// epoch with too many counters; a copy of the ledger from before that is restored at the end.
#[tokio::test]
async fn sweeps_counters_of_periods_past_go_and_numbers_go_on_without_a_gap() {
    let redis = Redis::start();
    let mut deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.extra = AT_ONCE.into();
    let service = deployment.serve();
    for day in 1..=4 {
        assert_eq!(take(&service, "a", day).await, format!("SPO-2024010{day}-001"));
    }
    let copy = deployment.path("copy.db");
    copy_ledger(&deployment, &copy).await;
    for day in 1..=4 {
        assert_eq!(take(&service, "b", day).await, format!("SPO-2024010{day}-002"));
    }
    eventually(LIMIT, async || {
        let swept = metric(&service, "numerator_swept_total{what=\"counters\"}").await;
        if swept < 4.0 { Err(format!("{swept} {}", service.log())) } else { Ok(()) }
    })
    .await;
    assert_eq!(redis.cli(&["--raw", "keys", "nbr:*:c:*"]).trim(), "");

    // What returns is of the present epoch, and stays.
    for day in 1..=2 {
        assert_eq!(take(&service, "c", day).await, format!("SPO-2024010{day}-003"));
    }
    eventually(LIMIT, async || {
        let seen = metric(&service, "numerator_redis_counters").await;
        if seen == 2.0 { Ok(()) } else { Err(format!("{seen} {}", service.log())) }
    })
    .await;
    assert_eq!(redis.cli(&["--raw", "keys", "nbr:*:c:*"]).lines().count(), 2);
    assert_eq!(take(&service, "d", 1).await, "SPO-20240101-004");
    assert!(service.terminate());
    let (clean, report) = deployment.verify();
    assert!(clean && report["totals"]["gaps"] == 0, "{report}");

    put_in_place(&copy, &deployment.path("numerator.db"));
    let output = deployment.run(&["reconcile", "--ledger-restored", "--hold", "--apply"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && told.contains("has all numbers only since"), "{told}");
}
