//! The HTTP interface as a caller sees it: retries, conflicts, ranges, batches, refusals.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::load::post;
use testkit::redis::Redis;
use testkit::service::Service;

const DAY: &str = "2024-01-22";

/// A service with the example series, on Redis and on the ledger alone.
pub(crate) fn services() -> Vec<(Deployment, Service, Option<Redis>)> {
    let redis = Redis::start();
    let on_redis = Deployment::sqlite(Some(&redis.url()));
    let embedded = Deployment::embedded();
    let (one, other) = (on_redis.serve(), embedded.serve());
    vec![(on_redis, one, Some(redis)), (embedded, other, None)]
}

pub(crate) fn generate(service: &Service, document: &str) -> String {
    format!("{}/api/v1/documents/{document}/generate-number", service.url)
}

pub(crate) fn numbering(service: &Service, what: &str) -> String {
    format!("{}/api/v1/document-numbering/{what}", service.url)
}

pub(crate) fn spo() -> Value {
    json!({ "type": "SPO", "date": DAY })
}

async fn with_key(url: &str, key: &str, body: &Value) -> (u16, Value) {
    let request = testkit::client().post(url).header("Idempotency-Key", key).json(body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn an_answer_carries_all_that_a_caller_needs() {
    for (_deployment, service, redis) in services() {
        let order = testkit::client().post(generate(&service, "d1")).json(&spo());
        let answer = order.send().await.unwrap();
        assert!(answer.headers().get("idempotent-replayed").is_none());
        assert_eq!(answer.status(), 201);
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["document_number"], "SPO-20240122-001");
        assert_eq!(body["type"], "SPO");
        assert_eq!(body["config_version"], 1);
        assert!(body["config_id"].is_i64());
        assert_eq!(body["counter_key"], json!({ "type": "SPO", "day": DAY }));
        let serial = json!({ "name": "SEQ", "first": "1", "last": "1", "step": "1" });
        assert_eq!(body["serials"], json!([serial]));
        assert_eq!(body["path"], if redis.is_some() { "redis" } else { "database" });
        assert_eq!(body["replayed"], false);
        let issued_at: jiff::Timestamp = body["issued_at"].as_str().unwrap().parse().unwrap();
        assert!(issued_at > "2024-01-01T00:00:00Z".parse().unwrap());
    }
}

#[tokio::test]
async fn a_repeated_request_gets_its_number_again_and_another_payload_a_conflict() {
    for (deployment, service, _redis) in services() {
        let url = generate(&service, "d1");
        let client = testkit::client();
        let (_, first) = post(&client, &url, &spo()).await;
        let answer = client.post(&url).json(&spo()).send().await.unwrap();
        let told = |name| answer.headers().get(name).map(|value| value.to_str().unwrap());
        assert_eq!(told("idempotent-replayed"), Some("true"));
        assert_eq!(told("x-content-type-options"), Some("nosniff"));
        assert_eq!(told("cache-control"), Some("no-store"));
        assert_eq!(told("content-security-policy"), None, "of pages alone");
        let (status, again): (_, Value) = (answer.status().as_u16(), answer.json().await.unwrap());
        assert_eq!((status, &again["replayed"]), (200, &json!(true)));
        assert_eq!(again["document_number"], first["document_number"]);
        assert_eq!(again["issued_at"], first["issued_at"]);

        let other = json!({ "type": "SPO", "date": "2024-01-23" });
        let (status, problem) = post(&client, &url, &other).await;
        assert_eq!((status, &problem["number_taken"]), (409, &json!("no")));
        assert_eq!(problem["code"], "document-already-numbered");
        assert!(problem.to_string().contains("SPO-20240122-001"), "{problem}");

        let more = json!({ "type": "SPO", "date": DAY, "again": true });
        let (status, body) = post(&client, &url, &more).await;
        assert_eq!((status, &body["document_number"]), (201, &json!("SPO-20240122-002")));
        let (status, body) = post(&client, &url, &more).await;
        assert_eq!((status, &body["document_number"]), (200, &json!("SPO-20240122-002")));
        deployment.assert_clean();
    }
}

#[tokio::test]
async fn an_idempotency_key_is_for_one_payload_only() {
    for (_deployment, service, _redis) in services() {
        let (status, first) = with_key(&generate(&service, "d1"), "key-1", &spo()).await;
        assert_eq!(status, 201);
        let (status, again) = with_key(&generate(&service, "d1"), "key-1", &spo()).await;
        assert_eq!((status, &again["document_number"]), (200, &first["document_number"]));
        let other = json!({ "type": "SPO", "date": "2024-01-23" });
        let (status, problem) = with_key(&generate(&service, "d2"), "key-1", &other).await;
        assert_eq!(status, 422);
        assert_eq!(problem["code"], "idempotency-key-reused");
        let (status, _) = with_key(&generate(&service, "d2"), "key-1", &spo()).await;
        assert_eq!(status, 422, "the document belongs to what the key stands for");
        // The refusal took nothing: the next number follows directly.
        let (_, next) = post(&testkit::client(), &generate(&service, "d3"), &spo()).await;
        assert_eq!(next["document_number"], "SPO-20240122-002");
    }
}

/// A key under which a document was only shown its number again is in no row of the journal:
/// another payload under it is refused if Redis remembers it, and is a new request elsewhere.
#[tokio::test]
async fn a_key_that_took_no_number_is_remembered_by_redis_alone() {
    for (deployment, service, redis) in services() {
        let (status, first) = post(&testkit::client(), &generate(&service, "d1"), &spo()).await;
        assert_eq!(status, 201);
        let (status, shown) = with_key(&generate(&service, "d1"), "key-1", &spo()).await;
        assert_eq!((status, &shown["document_number"]), (200, &first["document_number"]));
        if let Some(redis) = redis {
            let (status, problem) = with_key(&generate(&service, "d2"), "key-1", &spo()).await;
            assert_eq!(status, 422, "{problem}");
            redis.flushall();
        }
        let (status, next) = with_key(&generate(&service, "d2"), "key-1", &spo()).await;
        assert_eq!((status, &next["document_number"]), (201, &json!("SPO-20240122-002")));
        // The document keeps its number, whatever key comes with it.
        let (status, shown) = post(&testkit::client(), &generate(&service, "d1"), &spo()).await;
        assert_eq!((status, &shown["document_number"]), (200, &first["document_number"]));
        deployment.assert_clean();
    }
}

#[tokio::test]
async fn one_document_asked_for_at_once_from_many_sides_gets_one_number() {
    for (_deployment, service, _redis) in services() {
        let url = generate(&service, "d1");
        let client = testkit::client();
        let calls = (0..32).map(|_| {
            let (client, url) = (client.clone(), url.clone());
            tokio::spawn(async move { post(&client, &url, &spo()).await })
        });
        let mut created = 0;
        for call in calls.collect::<Vec<_>>() {
            let (status, body) = call.await.unwrap();
            assert_eq!(body["document_number"], "SPO-20240122-001");
            created += usize::from(status == 201);
        }
        assert_eq!(created, 1, "one caller created the number, the others were given it");
    }
}

#[tokio::test]
async fn a_range_is_contiguous_and_one_row_of_the_journal() {
    for (deployment, service, _redis) in services() {
        deployment.apply_load_series();
        let client = testkit::client();
        let url = numbering(&service, "batches");
        let body = json!({ "type": "LOAD", "count": 100_000 });
        // A changed series is picked up within a second.
        let range = loop {
            let (status, range) = post(&client, &url, &body).await;
            if status == 201 {
                break range;
            }
            assert!(range["code"] == "unknown-type", "{range}");
        };
        assert_eq!(range["first_number"], "L-00000001");
        assert_eq!(range["last_number"], "L-00100000");
        let ends = ["first", "last", "step"].map(|field| range[field].as_str().unwrap());
        assert_eq!(ends, ["1", "100000", "1"]);
        let small = json!({ "type": "LOAD", "count": 3, "expand": true });
        let (_, next) = post(&client, &url, &small).await;
        assert_eq!(next["numbers"], json!(["L-00100001", "L-00100002", "L-00100003"]));
        let (clean, report) = deployment.verify();
        assert!(clean && report["totals"]["journal"] == 2, "{report}");
        for count in [0, 1_000_001] {
            let body = json!({ "type": "LOAD", "count": count });
            let (status, problem) = post(&client, &url, &body).await;
            assert_eq!((status, &problem["field"]), (422, &json!("count")), "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains("1 to 1000000"), "{problem}");
        }
        let look_up = async |query: &str| {
            let url = format!("{}?{query}", numbering(&service, "numbers"));
            let answer = client.get(&url).send().await.unwrap();
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        };
        for (number, first) in [
            ("L-00000002", "L-00000001"),
            ("L-00100000", "L-00000001"),
            ("L-00100003", "L-00100001"),
        ] {
            let (status, body) = look_up(&format!("number={number}")).await;
            assert_eq!(status, 200, "{number}: {body}");
            assert_eq!(body["numbers"][0]["document_number"], first, "{number}");
        }
        for query in ["number=L-00100004", "number=L-2", "number=L-00000002&document_id=d9"] {
            let (status, problem) = look_up(query).await;
            assert_eq!((status, &problem["code"]), (404, &json!("number-not-found")), "{query}");
            assert!(problem["detail"].as_str().unwrap().contains("inside a range"), "{problem}");
        }
        // All or nothing: of a thousand wanted, 999 would fit.
        let large = json!({ "type": "SPO", "date": DAY, "count": 1000 });
        let (status, problem) = post(&client, &url, &large).await;
        assert_eq!(status, 409, "{problem}");
        assert_eq!(problem["code"], "sequence-exhausted");
    }
}

#[tokio::test]
async fn a_batch_of_documents_is_answered_item_by_item() {
    for (deployment, service, _redis) in services() {
        let documents = json!({ "documents": [
            { "document_id": "a", "type": "SPO", "date": DAY },
            { "document_id": "b", "type": "NOPE" },
            { "document_id": "c", "type": "SPO", "date": DAY },
            ["d", "SPO", null, DAY, {}, false],
        ]});
        let (status, body) =
            post(&testkit::client(), &numbering(&service, "batches"), &documents).await;
        assert_eq!(status, 200, "{body}");
        let statuses: Vec<_> =
            body["items"].as_array().unwrap().iter().map(|item| item["status"].clone()).collect();
        assert_eq!(statuses, [json!(201), json!(422), json!(201), json!(422)], "{body}");
        assert!(body["items"][1].to_string().contains("unknown-type"));
        assert_eq!(body["items"][3]["problem"]["field"], "documents[3]");
        let (clean, report) = deployment.verify();
        assert!(clean && report["totals"]["journal"] == 2, "{report}");
    }
}

#[tokio::test]
async fn a_bad_request_names_its_field_and_takes_nothing() {
    for (deployment, service, _redis) in services() {
        let client = testkit::client();
        let letter = |context: Value| {
            let fields = json!({ "type": "LETTER", "project": "P", "date": "2025-01-01" });
            let mut all = fields.as_object().unwrap().clone();
            all.insert("context".into(), context);
            Value::from(all)
        };
        let both = |name: &str, value: &str| {
            let mut context = json!({ "ORIGINATOR": "A", "RECIPIENT": "B" });
            context[name] = json!(value);
            letter(context)
        };
        let cases = [
            (json!({ "type": "NOPE" }), 422, "unknown-type", "type"),
            (json!({ "type": "DRAWING", "project": "P" }), 422, "type-not-configured", "type"),
            (letter(json!({ "ORIGINATOR": "A" })), 422, "missing-variable", "RECIPIENT"),
            (both("COLOUR", "red"), 422, "unknown-variable", "COLOUR"),
            (both("RECIPIENT", &"x".repeat(200)), 422, "value-too-long", "RECIPIENT"),
            (both("ORIGINATOR", "A-B"), 422, "wrong-alphabet", "ORIGINATOR"),
            (both("RECIPIENT", "A\u{0}B"), 422, "wrong-alphabet", "RECIPIENT"),
            (json!({ "type": "SPO", "date": "2024-02-30" }), 422, "invalid-date", "date"),
        ];
        for (body, status, slug, field) in cases {
            let (got, problem) = post(&client, &generate(&service, "d1"), &body).await;
            assert_eq!(got, status, "{body}: {problem}");
            let kind = problem["code"].as_str().unwrap();
            assert!(kind.ends_with(slug), "{body}: {problem}");
            assert!(problem["field"].as_str().unwrap().contains(field), "{body}: {problem}");
            assert_eq!(problem["number_taken"], "no");
            assert_eq!(problem["retryable"], false);
        }
        let send = async |body: Vec<u8>| {
            let request = client.post(generate(&service, "d1")).body(body);
            let answer = request.header("content-type", "application/json").send().await.unwrap();
            let status = answer.status();
            let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
            assert_eq!(kind, "application/problem+json");
            (status, answer.json::<Value>().await.unwrap())
        };
        let (status, problem) = send(b"{\"type\": \"SPO\",".to_vec()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        assert_eq!(problem["code"], "malformed-json");
        let (status, problem) = send(b"[\"SPO\", null, null, {}, false]".to_vec()).await;
        assert_eq!((status.as_u16(), &problem["field"]), (422, &json!("body")), "{problem}");
        let (status, _) = send(vec![b' '; 70_000]).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        let url = format!("{}?user_id=local&limit=x", numbering(&service, "numbers"));
        let problem: Value = client.get(&url).send().await.unwrap().json().await.unwrap();
        assert_eq!(problem["field"], "limit");
        assert!(problem["detail"].as_str().unwrap().contains("from 1 to 1000"), "{problem}");
        let control = generate(&service, "a%00b");
        let (status, problem) = post(&client, &control, &spo()).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["field"].as_str().unwrap().contains("document"), "{problem}");
        let (_, report) = deployment.verify();
        assert_eq!(report["totals"]["journal"], 0, "nothing was taken: {report}");
    }
}

#[tokio::test]
async fn a_serial_past_its_width_is_refused_and_stays_refused() {
    for (deployment, service, _redis) in services() {
        let client = testkit::client();
        let url = numbering(&service, "batches");
        let range = json!({ "type": "SPO", "date": DAY, "count": 999 });
        let (status, body) = post(&client, &url, &range).await;
        assert_eq!((status, &body["last_number"]), (201, &json!("SPO-20240122-999")), "{body}");
        for document in ["d1", "d2"] {
            let (status, problem) = post(&client, &generate(&service, document), &spo()).await;
            assert_eq!((status, &problem["field"]), (409, &json!("SEQ")), "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains("`max`"), "{problem}");
            assert_eq!(problem["code"], "sequence-exhausted");
        }
        let other_day = json!({ "type": "SPO", "date": "2024-01-23" });
        let (status, _) = post(&client, &generate(&service, "d3"), &other_day).await;
        assert_eq!(status, 201, "another day has its own counter");
        deployment.assert_clean();
    }
}

#[tokio::test]
async fn the_journal_is_searched_by_number_and_by_document() {
    for (_deployment, service, _redis) in services() {
        let client = testkit::client();
        post(&client, &generate(&service, "order-7"), &spo()).await;
        for query in ["number=SPO-20240122-001", "document_id=order-7"] {
            let url = format!("{}?{query}", numbering(&service, "numbers"));
            // The journal is written after the answer: within a second it is there.
            let row = loop {
                let body: Value = client.get(&url).send().await.unwrap().json().await.unwrap();
                if let Some(row) = body["numbers"].as_array().and_then(|rows| rows.first()) {
                    break row.clone();
                }
            };
            assert_eq!(row["document_number"], "SPO-20240122-001");
            assert_eq!(row["document_id"], "order-7");
            assert_eq!(row["template_used"], "{PREFIX}-{DATE:yyyyMMdd}-{SEQ:3}");
            assert!(row["retry_count"].is_u64());
            assert_eq!(row["ip_address"], "127.0.0.1");
        }
    }
}

#[tokio::test]
async fn the_pages_for_operators_and_tools_need_no_number() {
    let (deployment, service) = {
        let deployment = Deployment::embedded();
        let service = deployment.serve();
        (deployment, service)
    };
    let client = testkit::client();
    let get = async |path: &str| {
        let answer = client.get(format!("{}{path}", service.url)).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(get("/healthz").await.0, 200);
    let (status, ready) = get("/readyz").await;
    let ready: Value = serde_json::from_str(&ready).unwrap();
    assert_eq!((status, &ready["serving"]["redis"]), (200, &json!(0)), "{ready}");
    assert!(ready["serving"]["database"].as_u64().is_some_and(|paths| paths >= 1), "{ready}");
    let (status, metrics) = get("/metrics").await;
    assert_eq!(status, 200);
    for line in ["numerator_duplicates_total 0", "numerator_ready 1", "numerator_ledger_up 1"] {
        assert!(metrics.contains(line), "{metrics}");
    }
    let (status, openapi) = get("/openapi.json").await;
    let openapi: Value = serde_json::from_str(&openapi).unwrap();
    assert_eq!(status, 200);
    assert!(openapi["paths"]["/api/v1/documents/{documentId}/generate-number"].is_object());
    let (status, configs) = get("/api/v1/document-numbering/configs").await;
    assert_eq!(status, 200);
    assert!(configs.contains("SPO"), "{configs}");
    assert_eq!(get("/nowhere").await.0, 404);
    assert!(service.terminate());
    drop(deployment);
}
