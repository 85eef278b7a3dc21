//! What a caller learns of a problem: its word, its page, its language; and the effect of hostile
//! bodies.

use std::time::{Duration, Instant};

use reqwest::Response;
use serde_json::{Value, json};
use testkit::service::Service;

use crate::api::{generate, numbering, spo};
use crate::deployment::Deployment;

/// How long a request of these characters may take on a machine that is very busy.
const LONG: Duration = Duration::from_secs(20);

async fn send(url: &str, language: &str, body: &Value) -> Response {
    let request = testkit::client().post(url).header("Accept-Language", language).json(body);
    request.send().await.unwrap()
}

/// Status, code and field of the answer.
async fn refusal(url: &str, body: &Value) -> (u16, Value, Value) {
    let answer = send(url, "en", body).await;
    let status = answer.status().as_u16();
    let problem: Value = answer.json().await.unwrap();
    (status, problem["code"].clone(), problem["field"].clone())
}

async fn text(url: &str) -> (u16, String) {
    let answer = testkit::get(url).await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test]
async fn the_type_of_a_problem_leads_to_its_page_without_a_token() {
    let health = format!("127.0.0.1:{}", testkit::process::free_port());
    let mut deployment = Deployment::embedded();
    deployment.http = format!("health_listen = \"{health}\"\n");
    let hash = "0".repeat(64);
    deployment.extra = format!("[[auth.tokens]]\nname = \"other\"\nsha256 = \"{hash}\"\n");
    let service = deployment.serve();
    let answer = send(&generate(&service, "d1"), "en", &spo()).await;
    assert_eq!(answer.status(), 401);
    let asked = answer.url().clone();
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "unauthenticated");
    let page = asked.join(problem["type"].as_str().unwrap()).unwrap();
    let (status, shown) = text(page.as_str()).await;
    assert_eq!(status, 200);
    for said in ["unauthenticated", problem["title"].as_str().unwrap(), "401", "Retry useful: as"] {
        assert!(shown.contains(said), "{said} is missing:\n{shown}");
    }
    let (status, all) = text(&format!("{}/problems", service.url)).await;
    assert!(status == 200 && all.contains("/problems/unauthenticated"), "{all}");
    // What is not ready is reported there, with a link to a page there.
    let (status, shown) = text(&format!("http://{health}/problems/not-ready")).await;
    assert!(status == 200 && shown.contains("not-ready"), "{shown}");
    let (status, _) = text(&format!("{}/problems/none", service.url)).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_problem_speaks_the_language_of_its_caller_and_says_which() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let unknown = json!({ "type": "NONE" });
    let list = json!({ "documents": [{ "document_id": "1", "type": "NONE" }] });
    for (wanted, spoken, told) in [
        ("zh-TW", "zh-Hant", "未知的單據類型，請檢查 (type)"),
        ("zh-Hant-HK", "zh-Hant", "未知的單據類型，請檢查 (type)"),
        ("zh-CN", "zh-Hans", "未知的单据类型，请检查 (type)"),
        ("th", "th", "ไม่รู้จักประเภทเอกสารนี้ กรุณาตรวจสอบ (type)"),
        ("fr", "en", "This type of document is not known. Please check it. (type)"),
    ] {
        let one = send(&generate(&service, "d1"), wanted, &unknown).await;
        let many = send(&numbering(&service, "batches"), wanted, &list).await;
        for answer in [one, many] {
            assert_eq!(answer.headers()["content-language"], spoken, "{wanted}");
            assert_eq!(answer.headers()["vary"], "Accept-Language");
            let body: Value = answer.json().await.unwrap();
            let problem = body.pointer("/items/0/problem").unwrap_or(&body);
            assert_eq!(problem["user_message"], told, "{wanted}");
        }
    }
    let issued = send(&generate(&service, "d1"), "th", &spo()).await;
    assert!(issued.status() == 201 && !issued.headers().contains_key("content-language"));
}

/// A series whose 60 variables have 42 overlapping ranges each, before a check character.
fn wide_series() -> Value {
    let mut template = String::new();
    let mut variables = json!({});
    for index in 0..60 {
        template += &format!("{{V{index}}}");
        let alphabet = "!-\u{3134a}".repeat(42);
        variables[format!("V{index}")] = json!({ "required": true, "alphabet": alphabet });
    }
    json!({
        "code": "WIDE", "name": "WIDE", "serves": { "types": ["WIDE"] },
        "template": template + "{SEQ:3}{CHECK:luhn}", "variables": variables,
        "serials": [{ "counter": ["type"] }], "reason": "test",
    })
}

#[tokio::test]
async fn overlapping_alphabets_are_answered_quickly_and_keep_no_probe_waiting() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let url = numbering(&service, "configs");
    let began = Instant::now();
    let saved = tokio::spawn(async move { refusal(&url, &wide_series()).await });
    loop {
        let probe = testkit::client_builder().timeout(Duration::from_secs(5)).build().unwrap();
        let healthy = probe.get(format!("{}/healthz", service.url)).send().await.unwrap();
        assert_eq!(healthy.status(), 200);
        if saved.is_finished() {
            break;
        }
    }
    let (status, code, field) = saved.await.unwrap();
    assert_eq!(status, 422, "{code} {field}");
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    let (status, _) = issue(&service, "d1").await;
    assert_eq!(status, 201);
}

async fn issue(service: &Service, document: &str) -> (u16, Value) {
    let answer = send(&generate(service, document), "en", &spo()).await;
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn texts_that_would_deceive_a_reader_are_refused_by_their_field() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let (status, numbered) = issue(&service, "d1").await;
    assert_eq!(status, 201);
    let invalid = |field: &str| (422, json!("invalid-field"), json!(field));
    for deceit in ["why\nINFO saved by somebody else", "why \u{202e}ton", "why\u{200b}"] {
        let reason = json!({ "reason": deceit });
        let url = numbering(&service, "configs/1/deactivate");
        assert_eq!(refusal(&url, &reason).await, invalid("reason"), "{deceit:?}");
        let revision = json!({ "rev": "B", "reason": deceit });
        let url = format!("{}/api/v1/documents/d1/revisions", service.url);
        assert_eq!(refusal(&url, &revision).await, invalid("reason"), "{deceit:?}");
        let changed = json!({
            "code": "NEW", "name": "NEW", "serves": { "types": ["NEW"] }, "template": "N-{SEQ:3}",
            "serials": [{ "counter": ["type"] }], "reason": deceit,
        });
        let url = numbering(&service, "configs");
        assert_eq!(refusal(&url, &changed).await, invalid("reason"), "{deceit:?}");
    }
    for (sent, document) in [
        ("d%E2%80%8B1", "d\u{200b}1"),
        ("d%E2%80%AE1", "d\u{202e}1"),
        ("d%0A1", "d\n1"),
        ("d%EF%B8%8F1", "d\u{fe0f}1"),
    ] {
        let refused = refusal(&generate(&service, sent), &spo()).await;
        assert_eq!(refused, invalid("documentId"), "{document:?}");
        let range = json!({ "type": "SPO", "count": 2, "document_id": document });
        let refused = refusal(&numbering(&service, "batches"), &range).await;
        assert_eq!(refused, invalid("document_id"), "{document:?}");
    }
    // None of them took a number.
    let (_, next) = issue(&service, "d2").await;
    let of = |answer: &Value| answer["serials"][0]["first"].as_str().unwrap().parse::<u64>();
    assert_eq!(of(&next).unwrap(), of(&numbered).unwrap() + 1);
}
