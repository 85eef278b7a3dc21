//! What counts by limits is what is taken, however many calls it needs; and a number that a caller
//! already has is never refused: on the path of Redis and on that of the database.

use std::time::{Duration, Instant};

use reqwest::RequestBuilder;
use serde_json::{Value, json};
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Numbers that one person may take in a minute here: one comes back each 15 s.
const QUOTA: usize = 4;

/// Longest wait for an expected event, before a number comes back on its own.
const LIMIT: Duration = Duration::from_secs(10);

/// A service that asks for people.
struct Desk {
    service: Service,
    token: String,
}

impl Desk {
    fn post(&self, person: &str, path: &str, body: &Value) -> RequestBuilder {
        let request = testkit::client().post(format!("{}/api/v1/{path}", self.service.url));
        request.bearer_auth(&self.token).header("on-behalf-of", person).json(body)
    }

    async fn number(&self, person: &str, document: &str) -> (u16, Value) {
        told(self.post(person, &format!("documents/{document}/generate-number"), &spo())).await
    }

    async fn batch(&self, person: &str, body: &Value) -> (u16, Value) {
        told(self.post(person, "document-numbering/batches", body)).await
    }

    /// How many numbers a person has left, by an answer that takes nothing.
    async fn left(&self, person: &str, document: &str) -> String {
        let path = format!("documents/{document}/generate-number");
        let answer = self.post(person, &path, &spo()).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{document} has a number");
        let rate = answer.headers()["ratelimit"].to_str().unwrap();
        rate.split(";t=").next().unwrap().to_owned()
    }
}

async fn told(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

fn spo() -> Value {
    json!({ "type": "SPO", "date": "2024-01-22" })
}

fn range(count: usize, document: Option<&str>) -> Value {
    json!({ "type": "SPO", "date": "2024-01-22", "count": count, "document_id": document })
}

fn list(documents: std::ops::Range<usize>, name: &str) -> Value {
    let document =
        |i| json!({ "document_id": format!("{name}{i}"), "type": "SPO", "date": "2024-01-22" });
    json!({ "documents": documents.map(document).collect::<Vec<_>>() })
}

/// On the path of the database, and on that of Redis.
fn desks() -> Vec<(Deployment, Desk, Option<Redis>)> {
    let desk = |redis: Option<Redis>| {
        let mut deployment = Deployment::sqlite(redis.as_ref().map(Redis::url).as_deref());
        deployment.extra = format!(
            "[auth]\nmode = \"on\"\n[limits]\nuser_per_minute = {QUOTA}\naddress_per_minute = 0\n"
        );
        let created = deployment.ok(&["token", "create", "erp", "--speaks-for-people"]);
        let (service, token) = (deployment.serve(), created.trim().to_owned());
        (deployment, Desk { service, token }, redis)
    };
    vec![desk(None), desk(Some(Redis::start()))]
}

fn refused(answer: &(u16, Value)) -> (u16, &str, &str) {
    let (status, body) = answer;
    let text = |field: &str| body[field].as_str().unwrap_or_default();
    (*status, text("code"), text("number_taken"))
}

const TOO_MANY: (u16, &str, &str) = (429, "too-many-requests", "no");

#[tokio::test]
async fn a_range_counts_as_many_as_it_takes_and_its_repeat_counts_nothing() {
    for (deployment, desk, _redis) in desks() {
        let range_of = |count| range(count, Some("range"));
        let first = desk.batch("ann", &range_of(QUOTA)).await;
        assert_eq!(first.0, 201, "{}", first.1);
        let over = desk.number("ann", "d1").await;
        assert_eq!(refused(&over), TOO_MANY, "{}", over.1);
        // A caller without an answer asks again, under any name, and takes nothing.
        for _ in 0..3 {
            let (status, again) = desk.batch("ann", &range_of(QUOTA)).await;
            assert_eq!((status, &again["replayed"]), (200, &json!(true)), "{again}");
            assert_eq!(again["first_number"], first.1["first_number"]);
        }
        // Another one, of the same document or of none, counts separately.
        let other = desk.batch("ann", &range_of(1)).await;
        assert_eq!(refused(&other).1, "document-already-numbered", "{}", other.1);
        assert_eq!(refused(&desk.batch("ann", &range(1, None)).await), TOO_MANY);
        let keyed = |body: Value| {
            told(
                desk.post("bob", "document-numbering/batches", &body)
                    .header("idempotency-key", "k"),
            )
        };
        assert_eq!(keyed(range(QUOTA - 1, None)).await.0, 201);
        assert_eq!(keyed(range(QUOTA - 1, None)).await.0, 200);
        assert_eq!(refused(&keyed(range(2, None)).await).1, "idempotency-key-reused");
        // More than a minute ever has: no wait helps.
        let never = desk.batch("cid", &range(QUOTA + 1, None)).await;
        assert_eq!((refused(&never).0, &never.1["field"]), (422, &json!("count")), "{}", never.1);
        assert_eq!(desk.batch("cid", &range(QUOTA, None)).await.0, 201, "it counted nothing");
        assert!(desk.service.terminate());
        let report = deployment.assert_clean();
        assert_eq!(report["totals"]["journal"], 3, "{report}");
    }
}

#[tokio::test]
async fn a_number_that_somebody_has_is_shown_whatever_limits_say_and_counts_nothing() {
    for (_deployment, desk, _redis) in desks() {
        for document in 1..=2 {
            assert_eq!(desk.number("ann", &format!("d{document}")).await.0, 201);
        }
        let before = desk.left("ann", "d1").await;
        assert_eq!(before, format!("\"user\";r={}", QUOTA - 2));
        for _ in 0..2 * QUOTA {
            assert_eq!(desk.left("ann", "d2").await, before);
        }
        for document in 3..=QUOTA {
            assert_eq!(desk.number("ann", &format!("d{document}")).await.0, 201);
        }
        assert_eq!(refused(&desk.number("ann", "d9").await), TOO_MANY);
        for document in 1..=QUOTA {
            let (status, shown) = desk.number("ann", &format!("d{document}")).await;
            assert_eq!((status, &shown["replayed"]), (200, &json!(true)), "{shown}");
        }
        let other = json!({ "type": "SPO", "date": "2024-01-23" });
        let other = told(desk.post("ann", "documents/d1/generate-number", &other)).await;
        assert_eq!(refused(&other).1, "document-already-numbered", "{}", other.1);
        let preview = told(desk.post("ann", "document-numbering/preview", &spo())).await;
        assert_eq!(refused(&preview), TOO_MANY);
        // A refusal for its content counts as one; what is no number takes none.
        let wrong = json!({ "type": "SPO", "date": "2024-02-30" });
        for _ in 0..QUOTA {
            let answer = told(desk.post("bob", "documents/w/generate-number", &wrong)).await;
            assert_eq!(answer.0, 422, "{}", answer.1);
        }
        assert_eq!(refused(&desk.number("bob", "w").await), TOO_MANY);
    }
}

#[tokio::test]
async fn documents_of_a_list_count_each_and_those_that_have_a_number_are_shown_beside_the_others() {
    for (deployment, desk, _redis) in desks() {
        let (status, body) = desk.batch("ann", &list(0..QUOTA + 2, "a")).await;
        assert_eq!(status, 200, "{body}");
        let statuses = |body: &Value| -> Vec<u64> {
            let items = body["items"].as_array().unwrap().iter();
            items.map(|item| item["status"].as_u64().unwrap()).collect()
        };
        let wanted = |first: u64| [vec![first; QUOTA], vec![429; 2]].concat();
        assert_eq!(statuses(&body), wanted(201), "{body}");
        assert_eq!(body["items"][QUOTA]["problem"]["code"], "too-many-requests", "{body}");
        let (_, again) = desk.batch("ann", &list(0..QUOTA + 2, "a")).await;
        assert_eq!(statuses(&again), wanted(200), "{again}");
        for i in 0..QUOTA {
            let number = |body: &Value| body["items"][i]["document_number"].clone();
            assert_eq!(number(&again), number(&body));
        }
        // A list of which nothing fits is refused as a whole.
        let none = desk.batch("ann", &list(90..95, "a")).await;
        assert_eq!(refused(&none), TOO_MANY, "{}", none.1);
        assert!(none.1["retry_after_ms"].as_u64().is_some_and(|ms| ms > 0), "{}", none.1);
        // A retry of a list of which a part was taken takes the rest, and counts it alone.
        assert_eq!(desk.batch("bob", &list(0..2, "b")).await.0, 200);
        let (_, rest) = desk.batch("bob", &list(0..QUOTA, "b")).await;
        assert_eq!(statuses(&rest), [200, 200, 201, 201], "{rest}");
        assert!(desk.service.terminate());
        let report = deployment.assert_clean();
        assert_eq!(report["totals"]["journal"], 2 * QUOTA, "{report}");
    }
}

/// Asks for several things under a key of the person, one after the other; returns the answers.
async fn told_of_each(desk: &Desk, person: &str, asked: &[(&str, Value)]) -> Vec<String> {
    let mut told = Vec::new();
    for (path, body) in asked {
        let request = desk.post(person, path, body).header("idempotency-key", "k");
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let rate = answer.headers()["ratelimit"].to_str().unwrap();
        let left = &rate.trim_start_matches("\"user\";r=")[..1];
        told.push(format!("{status}, {left} left"));
    }
    told
}

#[tokio::test]
async fn a_label_or_a_step_that_somebody_has_is_shown_whatever_limits_say_and_counts_once() {
    let [step, other] = ["C0001A010120150710000000000077", "C0001A010120150710000000000078"];
    let label = |rev: &str| ("documents/d1/revisions", json!({ "rev": rev }));
    let begin =
        |serial: &str| ("serials/system/begin", json!({ "serial": serial, "on_repeat": "result" }));
    let succeed = || {
        let body = json!({ "serial": step, "attempt": 1, "result": { "paid": 7 } });
        ("serials/system/succeed", body)
    };
    let context = json!({ "DISCIPLINE": "TER", "RFA_TYPE": "RPT", "REV": "A" });
    let rfa = json!({
        "type": "RFA", "project": "LCBP3-C2", "date": "2025-12-02", "context": context,
    });
    let (asked, wanted): (Vec<_>, Vec<_>) = [
        (("documents/d1/generate-number", rfa), "201, 3 left"),
        (label("B"), "201, 2 left"),
        (label("B"), "200, 2 left"),
        (label("A"), "200, 2 left"),
        (begin(step), "201, 1 left"),
        (begin(step), "200, 1 left"),
        (succeed(), "200, 0 left"),
        (label("C"), "429, 0 left"),
        (begin(other), "429, 0 left"),
        (label("B"), "200, 0 left"),
        (label("A"), "200, 0 left"),
        (succeed(), "200, 0 left"),
        (begin(step), "200, 0 left"),
    ]
    .into_iter()
    .unzip();
    for (_deployment, desk, _redis) in desks() {
        assert_eq!(told_of_each(&desk, "ann", &asked).await, wanted);
        let (path, body) = begin(step);
        let (_, shown) = told(desk.post("ann", path, &body)).await;
        assert_eq!(shown["result"], json!({ "paid": 7 }), "{shown}");
        assert!(desk.service.terminate());
    }
}

#[tokio::test]
async fn a_steps_serial_or_a_check_that_somebody_has_is_shown_whatever_limits_say_and_counts_once()
{
    let step = "C0001A010120150710000000000078";
    let pay = json!({
        "system": "C0001", "module": "A01", "instance": "01", "step": "pay",
        "unified_serial": "C0001A0101201507100000000001", "date": "2015-07-10",
    });
    let pay = || ("serials/system", pay.clone());
    let check = || {
        let serial = "C0001A0101D0002201507102301100000000001";
        ("serials/interface/check", json!({ "serial": serial, "window": "1h" }))
    };
    let begin = || ("serials/system/begin", json!({ "serial": step }));
    let fail =
        || ("serials/system/fail", json!({ "serial": step, "attempt": 1, "reason": "no money" }));
    let (asked, wanted): (Vec<_>, Vec<_>) = [
        (pay(), "201, 3 left"),
        (pay(), "200, 3 left"),
        (pay(), "200, 3 left"),
        (check(), "200, 2 left"),
        (check(), "200, 2 left"),
        (begin(), "201, 1 left"),
        (begin(), "200, 1 left"),
        (fail(), "200, 0 left"),
        (pay(), "200, 0 left"),
        (check(), "200, 0 left"),
        (fail(), "200, 0 left"),
        (begin(), "429, 0 left"),
    ]
    .into_iter()
    .unzip();
    for (_deployment, desk, _redis) in desks() {
        assert_eq!(told_of_each(&desk, "bob", &asked).await, wanted);
        assert!(desk.service.terminate());
    }
}

/// Goal: a caller that had no answer in time, or did not wait for it, gets the number by asking
/// again, although it was the last one of its quota. Method: another session has the ledger locked.
#[tokio::test]
async fn a_retry_after_a_time_out_is_let_in_whether_the_number_was_taken_or_not() {
    let (deployment, desk, _) = desks().swap_remove(0);
    let ledger = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    for (person, waits) in [("ann", true), ("bob", false)] {
        let document = |i: usize| format!("{person}-{i}");
        for i in 1..QUOTA {
            assert_eq!(desk.number(person, &document(i)).await.0, 201);
        }
        let holder = ledger.begin_with("begin immediate").await.unwrap();
        let path = format!("documents/{}/generate-number", document(QUOTA));
        let last = || desk.post(person, &path, &spo());
        if waits {
            let (status, body) = told(last().header("prefer", "wait=1")).await;
            assert_eq!((status, &body["retryable"]), (503, &json!(true)), "{body}");
        } else {
            let left = last().timeout(Duration::from_millis(500)).send().await;
            assert!(left.is_err_and(|error| error.is_timeout()), "it leaves");
        }
        holder.rollback().await.unwrap();
        let deadline = Instant::now() + LIMIT;
        loop {
            let (status, body) = told(last()).await;
            if [200, 201].contains(&status) {
                break;
            }
            // Until its outcome is known.
            assert!(Instant::now() < deadline, "{person} is refused for good: {body}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(refused(&desk.number(person, &document(QUOTA + 1)).await), TOO_MANY);
    }
    assert!(desk.service.terminate());
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["journal"], 2 * QUOTA, "{report}");
}

/// A token's own limit counts calls, and a call that takes nothing new is none.
#[tokio::test]
async fn a_limit_of_a_token_counts_calls_and_lets_repeats_in() {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[auth]\nmode = \"on\"\n".into();
    let created = deployment.ok(&["token", "create", "slow", "--requests-per-minute", "2"]);
    let (service, token) = (deployment.serve(), created.trim().to_owned());
    let batch = async |body: &Value| {
        let request =
            testkit::client().post(format!("{}/api/v1/document-numbering/batches", service.url));
        told(request.bearer_auth(&token).json(body)).await
    };
    assert_eq!(batch(&list(0..20, "a")).await.0, 200);
    assert_eq!(batch(&list(0..20, "a")).await.0, 200);
    assert_eq!(batch(&range(50, Some("r"))).await.0, 201);
    assert_eq!(refused(&batch(&list(0..2, "b")).await), TOO_MANY);
    let (status, again) = batch(&list(0..20, "a")).await;
    assert_eq!((status, &again["items"][19]["status"]), (200, &json!(200)), "{again}");
    assert_eq!(batch(&range(50, Some("r"))).await.0, 200);
    let (status, mixed) = batch(&list(18..22, "a")).await;
    let statuses = [0, 1, 2, 3].map(|i| mixed["items"][i]["status"].clone());
    assert_eq!((status, statuses), (200, [200, 200, 429, 429].map(Value::from)), "{mixed}");
}
