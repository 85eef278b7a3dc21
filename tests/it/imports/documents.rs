//! Documents that come with an import are numbered like those that were numbered here (F29).

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use super::{file, imported};
use crate::deployment::Deployment;

async fn request(service: &Service, document: &str, day: &str) -> (u16, Value) {
    let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    post(&testkit::client(), &url, &json!({ "type": "SPO", "date": day })).await
}

async fn assert_numbered(service: &Service, document: &str, day: &str, number: &str) {
    let (status, answer) = request(service, document, day).await;
    let told = answer["detail"].as_str().unwrap_or_default();
    assert!(status == 409 && told.contains(number), "{document}: {status} {answer}");
}

/// Goal: no second number for a document that an import brought, whichever store owns the partition
/// by then. Method: one import before anything was issued, one during a running service on Redis
/// that knows the series' partition already.
#[tokio::test]
async fn a_document_that_an_import_brought_gets_no_second_number_from_redis() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("documents"), Some(&redis.url()));
    deployment.extra = "return_after = \"500ms\"\n".into();
    deployment.apply_examples();
    let list =
        |name: &str, line: &str| file(&deployment, name, &format!("number,document_id\n{line}\n"));
    let before = list("before.csv", "SPO-20260107-001,imp1");
    imported(&deployment, &[&before, "--apply"]);
    let service = deployment.serve();
    assert_numbered(&service, "imp1", "2026-01-07", "SPO-20260107-001").await;

    let (status, answer) = request(&service, "own", "2026-01-08").await;
    assert_eq!((status, &answer["document_number"]), (201, &"SPO-20260108-001".into()), "{answer}");
    let beside = list("beside.csv", "SPO-20260109-001,imp2");
    imported(&deployment, &[&beside, "--apply"]);
    assert_numbered(&service, "imp2", "2026-01-09", "SPO-20260109-001").await;
    assert!(service.terminate());
    deployment.assert_clean();
}
