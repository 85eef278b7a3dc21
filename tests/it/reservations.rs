//! Reservations over HTTP and by commands: whose they are, what each call answers, and that a
//! confirmed number is a document's whatever becomes of the process.

mod blocks;
mod late;
mod refusals;
mod told_again;

use numerator::clock::{Clock as _, SystemClock};
use reqwest::Method;
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::eventually::eventually;
use testkit::service::Service;

const RESERVATIONS: &str = "/api/v1/document-numbering/reservations";

/// How soon a sweep has done what is due.
const SWEPT_LIMIT: std::time::Duration = std::time::Duration::from_secs(20);

/// Two callers and an auditor, each with a token of its name; a gapless series and a fast one.
fn deployment() -> (Deployment, [String; 3]) {
    let mut deployment = Deployment::sqlite(None);
    let callers = [("shop", "caller"), ("other", "caller"), ("audit", "auditor")];
    let tokens = callers.map(|(name, role)| {
        let made = deployment.ok(&["token", "create", name, "--for-settings", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        let hash = &made["sha256"];
        deployment.extra +=
            &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {hash}\nroles = [\"{role}\"]\n");
        made["token"].as_str().unwrap().to_owned()
    });
    deployment.extra += "[reservations]\nttl_max = \"1h\"\nlive_max = 3\n";
    let gapless = deployment.series_file("INV", "I-{SEQ:4}", "policy = \"gapless\"");
    let fast = deployment.series_file("FAST", "F-{SEQ:4}", "");
    deployment.apply(&[gapless, fast]);
    (deployment, tokens)
}

async fn ask(
    service: &Service,
    token: &str,
    (method, path): (Method, &str),
    body: Option<Value>,
) -> (u16, Value) {
    let request = testkit::client().request(method, format!("{}{path}", service.url));
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let answer = request.bearer_auth(token).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

async fn reserve(service: &Service, token: &str, body: Value) -> (u16, Value) {
    ask(service, token, (Method::POST, RESERVATIONS), Some(body)).await
}

async fn act(service: &Service, token: &str, id: &str, act: &str, body: Value) -> (u16, Value) {
    let path = format!("{RESERVATIONS}/{id}/{act}");
    ask(service, token, (Method::POST, &path), Some(body)).await
}

async fn look(service: &Service, token: &str, id: &str) -> (u16, Value) {
    ask(service, token, (Method::GET, &format!("{RESERVATIONS}/{id}")), None).await
}

async fn number(service: &Service, token: &str, document: &str) -> (u16, Value) {
    let path = format!("/api/v1/documents/{document}/generate-number");
    ask(service, token, (Method::POST, &path), Some(json!({ "type": "INV" }))).await
}

fn id(answer: &Value) -> String {
    answer["reservation_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_document_holds_a_number_confirms_it_or_gives_it_back() {
    let (deployment, [shop, other, audit]) = deployment();
    let mut service = deployment.serve();
    let wanted = |document: &str| json!({ "type": "INV", "document_id": document, "ttl": "10m" });
    let (status, one) = reserve(&service, &shop, wanted("d1")).await;
    let told = (&one["document_number"], &one["status"], &one["replayed"]);
    assert_eq!((status, told), (201, (&json!("I-0001"), &json!("reserved"), &json!(false))));
    assert!(one["expires_at"].is_string(), "{one}");
    let (status, again) = reserve(&service, &shop, wanted("d1")).await;
    assert_eq!((status, id(&again), &again["replayed"]), (200, id(&one), &json!(true)));
    // Nobody else's, and no number of another way.
    let (status, told) = number(&service, &shop, "d1").await;
    assert_eq!((status, &told["code"]), (409, &json!("document-reserved")), "{told}");
    assert_eq!(told["document_number"], "I-0001");
    for (token, wanted) in [(&other, 404), (&audit, 200), (&shop, 200)] {
        let (status, told) = look(&service, token, &id(&one)).await;
        assert_eq!(status, wanted, "{token}: {told}");
    }
    let (status, told) = act(&service, &other, &id(&one), "confirm", json!({})).await;
    assert_eq!((status, &told["code"]), (404, &json!("reservation-not-found")), "{told}");
    let of_another = json!({ "document_id": "d2" });
    let (status, told) = act(&service, &shop, &id(&one), "confirm", of_another).await;
    assert_eq!((status, &told["code"]), (409, &json!("other-document")), "{told}");
    let (_, two) = reserve(&service, &shop, wanted("d2")).await;
    assert_eq!(two["document_number"], "I-0002");
    let reason = json!({ "reason": "the customer left" });
    let (status, told) = act(&service, &shop, &id(&two), "cancel", reason).await;
    assert_eq!((status, &told["status"]), (200, &json!("cancelled")), "{told}");
    let (status, told) = act(&service, &shop, &id(&two), "confirm", json!({})).await;
    assert_eq!((status, &told["code"]), (410, &json!("reservation-cancelled")), "{told}");
    // The process dies as soon as it has answered: the number is the document's.
    let (status, told) = act(&service, &shop, &id(&one), "confirm", json!({})).await;
    assert_eq!((status, &told["status"]), (200, &json!("issued")), "{told}");
    service.kill();
    let service = deployment.serve();
    let (status, told) = act(&service, &shop, &id(&one), "confirm", json!({})).await;
    assert_eq!((status, &told["replayed"]), (200, &json!(true)), "{told}");
    let (status, told) = act(&service, &shop, &id(&one), "cancel", json!({})).await;
    assert_eq!((status, &told["code"]), (409, &json!("reservation-confirmed")), "{told}");
    let (status, told) = number(&service, &shop, "d1").await;
    assert_eq!((status, &told["document_number"]), (200, &json!("I-0001")), "{told}");
    // The one that was given back is the next one.
    let is_back = async || {
        let (_, told) = ask(
            &service,
            &shop,
            (Method::POST, "/api/v1/document-numbering/preview"),
            Some(json!({ "type": "INV" })),
        )
        .await;
        if told["document_number"] == "I-0002" { Ok(()) } else { Err(told) }
    };
    eventually(SWEPT_LIMIT, is_back).await;
    let (status, told) = number(&service, &shop, "d3").await;
    assert_eq!((status, &told["document_number"]), (201, &json!("I-0002")), "{told}");
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn what_cannot_be_reserved_is_refused_with_its_remedy() {
    let (deployment, [shop, ..]) = deployment();
    let service = deployment.serve();
    for (body, field, says) in [
        (json!({ "type": "FAST", "document_id": "d" }), "type", "gapless"),
        (json!({ "type": "INV" }), "document_id", "Idempotency-Key"),
        (json!({ "type": "INV", "document_id": "d", "ttl": "5" }), "ttl", "unit"),
        (json!({ "type": "INV", "document_id": "d", "ttl": "2h" }), "ttl", "1h"),
        (json!({ "type": "INV", "document_id": "d", "count": 2 }), "document_id", "handed back"),
        (json!({ "type": "INV", "count": 2 }), "Idempotency-Key", "block"),
        (json!({ "type": "INV", "count": 1 }), "count", "2 to 1000"),
        (json!({ "type": "INV", "count": 1_001 }), "count", "2 to 1000"),
        (json!({ "type": "INV", "count": 2, "ttl": "5m" }), "ttl", "never ends"),
    ] {
        let (status, told) = reserve(&service, &shop, body.clone()).await;
        assert_eq!((status, &told["field"]), (422, &json!(field)), "{body}: {told}");
        assert!(told["detail"].as_str().unwrap().contains(says), "{told}");
    }
    let (status, told) = look(&service, &shop, "no-id").await;
    assert_eq!((status, &told["field"]), (422, &json!("reservationId")), "{told}");
    // As many as may be live, and no more, by the last count.
    let is_full = async || {
        let document = format!("d{}", uuid::Uuid::new_v4().simple());
        let body = json!({ "type": "INV", "document_id": document });
        let (status, told) = reserve(&service, &shop, body).await;
        assert!(status == 201 || told["code"] == "reservations-full", "{status} {told}");
        if status == 503 { Ok(()) } else { Err(told) }
    };
    eventually(SWEPT_LIMIT, is_full).await;
    assert!(service.terminate());
    // The operator sees and ends them.
    let listed = deployment.ok(&["reservations", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let live = listed.as_array().unwrap();
    assert!(live.len() >= 3, "{listed}");
    let first = id(&live[0]);
    let ended = deployment.ok(&["cancel", &first, "--reason", "a test"]);
    assert!(ended.contains("cancelled"), "{ended}");
    let issued = deployment.ok(&["confirm", &id(&live[1])]);
    assert!(issued.contains("issued"), "{issued}");
    let reserved = deployment.ok(&["reserve", "INV", "--document", "by-hand", "--ttl", "1m"]);
    assert!(reserved.contains("reserved"), "{reserved}");
    // No allocation of a live reservation waits for an explanation.
    let year = SystemClock.now().strftime("%Y").to_string();
    let paper = deployment.ok(&["statement", "--series", "INV", "--period", &year]);
    assert!(paper.contains("Evidence: Reservation "), "{paper}");
    assert!(!paper.contains("not explained"), "{paper}");
    deployment.assert_clean();
}

/// The documents of a page of live reservations, and the page's `next`.
async fn listed(service: &Service, token: &str, query: &str) -> (Vec<String>, Value) {
    let path = format!("{RESERVATIONS}{query}");
    let (status, told) = ask(service, token, (Method::GET, &path), None).await;
    assert_eq!(status, 200, "{told}");
    let documents = told["reservations"].as_array().unwrap().iter();
    let documents = documents.map(|one| one["document_id"].as_str().unwrap().to_owned());
    (documents.collect(), told["next"].clone())
}

#[tokio::test]
async fn a_caller_lists_its_own_reservations_and_an_auditor_all() {
    let (deployment, [shop, other, audit]) = deployment();
    let service = deployment.serve();
    for (token, document) in [(&shop, "d1"), (&other, "d2"), (&shop, "d3")] {
        let wanted = json!({ "type": "INV", "document_id": document });
        let (status, told) = reserve(&service, token, wanted).await;
        assert_eq!(status, 201, "{told}");
    }
    for (token, query, expected) in [
        (&shop, "", &["d1", "d3"][..]),
        (&other, "", &["d2"]),
        (&audit, "", &["d1", "d2", "d3"]),
        (&audit, "?document_id=d2&series=INV&status=reserved", &["d2"]),
        (&shop, "?document_id=d2", &[]),
        (&audit, "?status=issued", &[]),
        (&audit, "?series=NOWHERE", &[]),
    ] {
        let (documents, next) = listed(&service, token, query).await;
        assert_eq!((documents, next), (owned(expected), Value::Null), "{query}");
    }
    // What lies between two pages is not another caller's.
    let (first, next) = listed(&service, &shop, "?limit=1").await;
    assert_eq!(first, ["d1"]);
    let behind = format!("?limit=1&after={}", next.as_str().unwrap());
    assert_eq!(listed(&service, &shop, &behind).await, (owned(&["d3"]), Value::Null));
    for query in ["?limit=0", "?after=x", "?status=x", "?document_id="] {
        let path = format!("{RESERVATIONS}{query}");
        let (status, told) = ask(&service, &shop, (Method::GET, &path), None).await;
        assert_eq!((status, &told["code"]), (422, &json!("invalid-field")), "{query}: {told}");
    }
    assert!(service.terminate());
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
