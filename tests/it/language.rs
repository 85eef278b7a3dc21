//! The numbering language on both paths: what the scripts, the journal and the answers make of
//! phases, letters, widening serials and checks.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::post;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// How soon a changed series is picked up.
const PICKED_UP_LIMIT: Duration = Duration::from_secs(30);

const SEQ: &str = "{ name = 'SEQ', reset = 'phase', start = 98, overflow = 'widen' }";
const LOT: &str = "{ name = 'LOT', counter = ['type'], style = 'letters' }";

/// A series whose serials have this order, and one with a check.
fn series(serials: [&str; 2]) -> String {
    format!(
        "[[series]]\ncode = 'PART'\nname = 'Part'\nserves = {{ types = ['PART'] }}\n\
         template = '{{PHASE}}/{{SEQ:2}}{{SEQ:1:LOT}}'\nserials = [{}]\n\
         [[series]]\ncode = 'CODE'\nname = 'Code'\nserves = {{ types = ['CODE'] }}\n\
         template = '{{SEQ:3}}-{{CHECK:damm}}'\nserials = [{{ start = 572 }}]\n",
        serials.join(", ")
    )
}

fn apply(deployment: &Deployment, serials: [&str; 2]) {
    let file = deployment.path("language.toml");
    std::fs::write(&file, series(serials)).unwrap();
    deployment.apply(&[file]);
}

fn numbering(service: &Service, what: &str) -> String {
    format!("{}/api/v1/document-numbering/{what}", service.url)
}

async fn generate(service: &Service, document: &str, body: &Value) -> (u16, Value) {
    let route = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    post(&testkit::client(), &route, body).await
}

fn part(phase: &str) -> Value {
    json!({ "type": "PART", "phase": phase })
}

#[tokio::test]
async fn phases_letters_widening_serials_and_checks_are_taken_and_found_on_both_paths() {
    let redis = Redis::start();
    for url in [None, Some(redis.url())] {
        let deployment = Deployment::sqlite(url.as_deref());
        apply(&deployment, [SEQ, LOT]);
        let service = deployment.serve();

        let mut range = part("P1");
        range["count"] = json!(3);
        range["expand"] = json!(true);
        let (status, body) =
            post(&testkit::client(), &numbering(&service, "batches"), &range).await;
        assert_eq!(status, 201, "{body}");
        assert_eq!(body["numbers"], json!(["P1/98A", "P1/99B", "P1/100C"]));
        assert_eq!(body["counter_key"], json!({ "phase": "P1" }));

        let (status, other) = generate(&service, "d1", &part("P2")).await;
        assert_eq!((status, &other["document_number"]), (201, &json!("P2/98D")), "{other}");
        let (status, problem) = generate(&service, "d2", &json!({ "type": "PART" })).await;
        assert_eq!((status, &problem["field"]), (422, &json!("phase")), "{problem}");
        let (status, code) = generate(&service, "d3", &json!({ "type": "CODE" })).await;
        assert_eq!((status, &code["document_number"]), (201, &json!("572-4")), "{code}");

        is_found_in_its_range(&service).await;
        a_version_in_another_order_goes_on(&deployment, &service).await;
        deployment.assert_clean();
    }
}

/// The look-up of a number inside a range, once the range is journaled.
async fn is_found_in_its_range(service: &Service) {
    let url = format!("{}?number=P1/99B", numbering(service, "numbers"));
    let deadline = Instant::now() + PICKED_UP_LIMIT;
    loop {
        let answer = testkit::client().get(&url).send().await.unwrap();
        let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap());
        if status == 200 {
            assert_eq!(body["numbers"][0]["document_number"], "P1/98A", "{body}");
            return;
        }
        assert!(Instant::now() < deadline, "{status} {body}");
    }
}

async fn a_version_in_another_order_goes_on(deployment: &Deployment, service: &Service) {
    apply(deployment, [LOT, SEQ]);
    let deadline = Instant::now() + PICKED_UP_LIMIT;
    loop {
        let (_, body) = post(&testkit::client(), &numbering(service, "preview"), &part("P1")).await;
        if body["config_version"] == 2 {
            break;
        }
        assert!(Instant::now() < deadline, "{body}");
    }
    let (status, body) = generate(service, "d4", &part("P1")).await;
    assert_eq!((status, &body["document_number"]), (201, &json!("P1/101E")), "{body}");
    let names = |body: &Value| {
        let serials = body["serials"].as_array().cloned().unwrap_or_default();
        serials.iter().map(|serial| serial["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&body), ["LOT", "SEQ"]);
    let (status, again) = generate(service, "d1", &part("P2")).await;
    assert_eq!((status, &again["document_number"]), (200, &json!("P2/98D")), "{again}");
    assert_eq!(names(&again), ["SEQ", "LOT"], "as its version listed them");
}
