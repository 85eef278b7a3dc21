//! Changes that two people answer for, over HTTP: a counter that Redis counts in two processes, and
//! a wrong date.

use std::time::Duration;

use numerator::clock::{Clock as _, SystemClock};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

const API: &str = "/api/v1/document-numbering";
/// Longest wait for what a test waits for.
const LIMIT: Duration = Duration::from_secs(60);

/// Services, and the tokens of their callers.
struct Scene {
    services: Vec<Service>,
    tokens: [String; 3],
}

const ORDERS: usize = 0;
const ANNA: usize = 1;
const BERT: usize = 2;

impl Scene {
    /// Several services of a deployment that has its series.
    fn start(deployment: &mut Deployment, services: usize) -> Self {
        deployment.extra += "[auth]\nmode = \"on\"\n";
        let tokens = [("orders", "caller"), ("anna", "super-admin"), ("bert", "super-admin")];
        let tokens = tokens.map(|(name, role)| {
            deployment.ok(&["token", "create", name, "--role", role]).trim().to_owned()
        });
        Scene { services: (0..services).map(|_| deployment.serve()).collect(), tokens }
    }

    async fn ask(
        &self,
        service: usize,
        who: usize,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let url = format!("{}{path}", self.services[service].url);
        let request = testkit::client().request(method, url).bearer_auth(&self.tokens[who]);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn post(&self, service: usize, who: usize, path: &str, body: Value) -> (u16, Value) {
        self.ask(service, who, &format!("{API}{path}"), Some(body)).await
    }

    /// A number taken at a service: its value, and the path that took it.
    async fn take(&self, service: usize, document: &str) -> (u64, String) {
        let path = format!("/api/v1/documents/{document}/generate-number");
        let (status, told) =
            self.ask(service, ORDERS, &path, Some(json!({ "type": "LOAD" }))).await;
        assert_eq!(status, 201, "{told}");
        let number = told["document_number"].as_str().unwrap();
        (number["L-".len()..].parse().unwrap(), told["path"].as_str().unwrap().to_owned())
    }

    /// The counter, once the ledger shows that value of it.
    async fn counter(&self, value: &str) -> Value {
        let path = format!("{API}/counters?series=LOAD");
        eventually(LIMIT, async || {
            let (_, list) = self.ask(0, ANNA, &path, None).await;
            let counter = list["counters"][0].clone();
            if counter["value"] == value { Ok(counter) } else { Err(list) }
        })
        .await
    }
}

fn order(counter_id: &Value, next: i64, reason: &str) -> Value {
    json!({ "counter_id": counter_id, "next_value": next, "reason": reason })
}

/// Requests that are refused.
async fn refusals(scene: &Scene, reset: &str, counter_id: &Value) {
    let reason = "the paper book of the branch ends at 49";
    let order = |next: i64, why: &str| order(counter_id, next, why);
    for (body, wanted, field, code) in [
        (order(50, "because"), 422, "reason", "invalid-field"),
        (order(3, reason), 409, "next_value", "below-least-allowed"),
        (order(123_456_789, reason), 422, "next_value", "invalid-field"),
        (order(-1, reason), 422, "next_value", "invalid-field"),
    ] {
        let (status, told) = scene.post(0, ANNA, reset, body).await;
        let said = (status, told["field"].as_str(), told["code"].as_str());
        assert_eq!(said, (wanted, Some(field), Some(code)), "{told}");
        assert!(code == "invalid-field" || told["detail"].to_string().contains("value is 4"));
    }
    let elsewhere = json!({ "counter_id": 99, "next_value": 50, "reason": reason });
    let (status, told) = scene.post(0, ANNA, reset, elsewhere).await;
    assert_eq!((status, &told["field"]), (422, &json!("counter_id")), "{told}");
    let (status, told) = scene.post(0, ORDERS, reset, order(50, reason)).await;
    assert_eq!((status, &told["code"]), (403, &json!("not-permitted")));
}

/// Goal: the counter continues where two people say in every process, although each had it hot in
/// Redis; nothing comes twice, and auditors see what is skipped.
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_that_two_processes_count_in_redis_goes_on_where_two_people_say() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("changes"), Some(&redis.url()));
    deployment.apply_load_series();
    deployment.extra = "return_after = \"1s\"\n".into();
    let scene = Scene::start(&mut deployment, 2);
    for (service, document) in [(0, "a"), (1, "b"), (0, "c")] {
        assert_eq!(scene.take(service, document).await.1, "redis");
    }
    let counter = scene.counter("3").await;
    let (config, counter_id) = (&counter["config_id"], &counter["counter_id"]);
    let reset = format!("/configs/{config}/reset-counter");
    refusals(&scene, &reset, counter_id).await;

    let reason = "the paper book of the branch ends at 49";
    let fifty = order(counter_id, 50, reason);
    let (status, asked) = scene.post(0, ANNA, &reset, fifty).await;
    assert_eq!((status, &asked["state"]), (202, &json!("pending")), "{asked}");
    assert_eq!((&asked["requested_by"], &asked["series"]), (&json!("anna"), &json!("LOAD")));
    let effect = json!({
        "next_value": "50", "last_value": "3", "least_allowed": "4", "skipped": 46,
        "first_skipped": "4", "last_skipped": "49",
    });
    assert_eq!(asked["effect"], effect);
    let answer = format!("/change-requests/{}", asked["change_id"]);
    let (status, own) = scene.post(0, ANNA, &format!("{answer}/approve"), json!({})).await;
    assert_eq!((status, &own["code"]), (403, &json!("own-change")), "{own}");
    assert_eq!(scene.take(1, "d").await, (4, "redis".into()), "nothing is done yet");

    // Approved at the other process. What was taken meanwhile counts.
    let approve = format!("{answer}/approve");
    let (status, made) = scene.post(1, BERT, &approve, json!({ "reason": "seen" })).await;
    assert_eq!((status, &made["state"]), (200, &json!("approved")), "{made}");
    assert_eq!((&made["decided_by"], &made["effect"]["skipped"]), (&json!("bert"), &json!(45)));
    let (status, again) = scene.post(0, BERT, &approve, json!({})).await;
    assert_eq!((status, &again["code"]), (409, &json!("change-answered")), "{again}");

    // Every process continues from there, and Redis too once it counts again.
    assert_eq!(scene.take(0, "e").await.0, 50);
    assert_eq!(scene.take(1, "f").await.0, 51);
    let mut last = 51;
    counted_by_redis(&scene, &mut last).await;
    told_of(&scene, &deployment).await;

    let (status, other) = scene.post(0, ANNA, &reset, order(counter_id, 900, reason)).await;
    assert_eq!((status, &other["change_id"]), (202, &json!(2)), "{other}");
    left_behind(&postgres).await;
    let no = json!({ "reason": "the paper book is not used" });
    let (status, told) = scene.post(1, BERT, "/change-requests/2/reject", no).await;
    assert_eq!((status, &told["state"]), (200, &json!("rejected")), "{told}");
    counted_by_redis(&scene, &mut last).await;
    for service in scene.services {
        assert!(service.terminate());
    }
    deployment.assert_clean();
}

/// Both processes continue right after the last number, until Redis counts again.
async fn counted_by_redis(scene: &Scene, last: &mut u64) {
    for service in [0, 1] {
        let mut value = *last;
        let back = eventually(LIMIT, async || {
            let (next, path) = scene.take(service, &format!("g{service}-{value}")).await;
            assert_eq!(next, value + 1, "right behind the one before");
            value = next;
            if path == "redis" { Ok(()) } else { Err(path) }
        });
        back.await;
        *last = value;
    }
}

/// A process that was killed in the middle of the second approval has left the partition with the
/// database.
async fn left_behind(postgres: &Postgres) {
    let its = "partition_id = (select partition from changes.series where code = 'LOAD')";
    let id = "'\\x6368616e676580008000000000000002'";
    postgres.sql(&format!("update changes.partition set lent_to = {id} where {its}"));
    eventually(LIMIT, async || {
        let question = format!("select owner || ' ' || state from changes.partition where {its}");
        let owned = postgres.sql(&question);
        if owned == "database open" { Ok(()) } else { Err(owned) }
    })
    .await;
}

/// What auditors and operators see.
async fn told_of(scene: &Scene, deployment: &Deployment) {
    let (_, list) = scene.ask(0, BERT, &format!("{API}/change-requests"), None).await;
    assert_eq!(list["change_requests"].as_array().unwrap().len(), 1, "{list}");
    let (_, pending) =
        scene.ask(0, BERT, &format!("{API}/change-requests?pending=true"), None).await;
    assert_eq!(pending, json!({ "change_requests": [] }));
    let path = format!("{API}/statements?series=LOAD&period=2026");
    let (status, paper) = scene.ask(0, ANNA, &path, None).await;
    assert_eq!(status, 200, "{paper}");
    let entries = paper["runs"][0]["entries"].as_array().unwrap().clone();
    let entry = entries.iter().find(|entry| entry["what"] == "skipped").expect("told of");
    assert_eq!(
        (&entry["first"], &entry["last"], &entry["count"]),
        (&json!("5"), &json!("49"), &json!(45))
    );
    let evidence = entry["evidence"].as_str().unwrap();
    assert!(evidence.contains("request 1 of anna, approved by bert: the paper"), "{evidence}");
    let gaps = deployment.ok(&["gaps", "--explain", "--reason", "skipped"]);
    assert!(gaps.contains("change request 1 of anna, approved by bert"), "{gaps}");
    for kind in ["change-requested", "change-approved", "partition-lent", "partition-taken-back"] {
        let events = deployment.ok(&["events", "--kind", kind, "--json"]);
        assert!(
            events.contains("\"change_id\": 1") || events.contains("\"change_id\":1"),
            "{events}"
        );
    }
}

/// Goal: a date of a wrong year no longer prevents the numbering of a branch, in the family of its
/// own counters alone.
#[tokio::test]
async fn a_branch_that_a_wrong_date_keeps_out_is_numbered_again() {
    let mut deployment = Deployment::embedded();
    let file = deployment.path("tax.toml");
    let series = r#"
[[series]]
code = "TAX"
name = "Tax"
template = "TAX-{PROJECT}-{DATE:yyyyMM}-{SEQ:4}"
policy = "gapless"
chronology = true
document_date = { past = "5y", future = "5y" }
serves = { types = ["TAX"] }
serials = [{ counter = ["type", "project"], reset = "month" }]
"#;
    std::fs::write(&file, series).unwrap();
    deployment.apply(&[file]);
    let scene = Scene::start(&mut deployment, 1);
    let today = SystemClock.now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let wrong = today.saturating_add(jiff::Span::new().years(2));
    let take = async |document: &str, project: &str, date: jiff::civil::Date| {
        let path = format!("/api/v1/documents/{document}/generate-number");
        let body = json!({ "type": "TAX", "project": project, "date": date.to_string() });
        let (status, told) = scene.ask(0, ORDERS, &path, Some(body)).await;
        (status, told["code"].as_str().unwrap_or_default().to_owned())
    };
    for (document, project) in [("a", "P1"), ("b", "P2")] {
        assert_eq!(take(document, project, wrong).await.0, 201);
    }
    let kept_out = (422, "date-before-last".to_owned());
    assert_eq!(take("c", "P1", today).await, kept_out);
    let (_, list) = scene.ask(0, ANNA, &format!("{API}/counters?project=P1"), None).await;
    let counter = &list["counters"][0];
    let reset = format!("/configs/{}/reset-chronology", counter["config_id"]);
    let order = |date: &str| {
        let reason = "the clerk had typed a wrong year";
        json!({ "counter_id": counter["counter_id"], "last_date": date, "reason": reason })
    };
    for (date, status) in [("2569", 422), (&*wrong.to_string(), 422), (&*today.to_string(), 202)] {
        let (told, answer) = scene.post(0, ANNA, &reset, order(date)).await;
        assert_eq!(told, status, "{answer}");
    }
    let (_, asked) = scene.ask(0, BERT, &format!("{API}/change-requests"), None).await;
    let asked = &asked["change_requests"][0];
    let effect = json!({
        "last_date": today.to_string(), "last_date_before": wrong.to_string(), "dated_later": 1,
    });
    assert_eq!((&asked["kind"], &asked["effect"]), (&json!("chronology"), &effect));
    let approve = format!("/change-requests/{}/approve", asked["change_id"]);
    assert_eq!(scene.post(0, BERT, &approve, json!({})).await.0, 200);
    assert_eq!(take("d", "P1", today).await.0, 201);
    assert_eq!(take("e", "P1", today.yesterday().unwrap()).await, kept_out);
    assert_eq!(take("f", "P2", today).await, kept_out, "the other branch was not asked for");
    for service in scene.services {
        assert!(service.terminate());
    }
    deployment.assert_clean();
}
