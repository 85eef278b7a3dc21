//! Tokens of the ledger: made at one node, known to all, rejected once they are revoked, replaced
//! or expired.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

const TOKENS: &str = "/api/v1/document-numbering/tokens";
const CONFIGS: &str = "/api/v1/document-numbering/configs";

/// How long a node may take to see what another one did; it promises a second.
const SEEN_MAX: Duration = Duration::from_secs(10);

/// The answer to a caller with a token, and whether nothing on the way may cache it.
async fn ask(
    service: &Service,
    token: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value, bool) {
    let request = testkit::client().request(method, format!("{}{path}", service.url));
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let answer = request.bearer_auth(token).send().await.unwrap();
    let is_kept_by_nobody =
        answer.headers().get("cache-control").is_some_and(|it| it == "no-store");
    (answer.status().as_u16(), answer.json().await.unwrap_or_default(), is_kept_by_nobody)
}

async fn post(service: &Service, token: &str, path: &str, body: Value) -> (u16, Value, bool) {
    ask(service, token, Method::POST, &format!("{TOKENS}{path}"), Some(body)).await
}

/// Waits until a node answers a token with this.
async fn becomes(service: &Service, token: &str, path: &str, wanted: u16) -> Value {
    let deadline = Instant::now() + SEEN_MAX;
    loop {
        let (status, answer, _) = ask(service, token, Method::GET, path, None).await;
        if status == wanted {
            return answer;
        }
        assert!(Instant::now() < deadline, "{wanted} is awaited: {status} {answer}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A secret out of an answer that must not be cached.
fn secret((status, answer, is_kept_by_nobody): (u16, Value, bool), wanted: u16) -> String {
    assert!(status == wanted && is_kept_by_nobody, "{status} {answer}");
    answer["token"].as_str().unwrap().to_owned()
}

async fn what_is_wrong_is_told_by_its_field(one: &Service, boss: &str) {
    for (body, field) in [
        (json!({ "name": "x", "roles": ["wizard"] }), "roles"),
        (json!({ "name": "x y" }), "name"),
        (json!({ "name": "x", "expires": "soon" }), "expires"),
        (json!({ "name": "x", "count_max": 0 }), "count_max"),
    ] {
        let (status, told, _) = post(one, boss, "", body).await;
        assert_eq!((status, &told["field"]), (422, &json!(field)), "{told}");
    }
}

/// What remains: a list, events, logs.
async fn nothing_that_remains_shows_a_secret(
    deployment: &Deployment,
    nodes: &[Service],
    boss: &str,
) {
    let (_, list, _) = ask(&nodes[0], boss, Method::GET, TOKENS, None).await;
    let states = list["tokens"].as_array().unwrap().iter();
    let states: Vec<_> = states.map(|it| json!([it["name"], it["state"]])).collect();
    let wanted =
        [["boss", "in-force"], ["narrow", "revoked"], ["old", "expired"], ["orders", "revoked"]];
    assert_eq!(json!(states), json!(wanted));
    let events = deployment.ok(&["events", "--kind", "token-revoked", "--json"]);
    let printed = deployment.ok(&["token", "list", "--json"]) + &deployment.ok(&["token", "list"]);
    assert!(printed.contains("revoked") && events.contains("the order desk is closed"), "{events}");
    for said in [&events, &printed, &list.to_string(), &nodes[0].log(), &nodes[1].log()] {
        assert!(!said.contains("nbr_") && !said.contains("sha256"), "{said}");
    }
}

#[tokio::test]
async fn a_token_made_at_one_node_is_known_to_the_other_until_it_is_revoked_or_replaced() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("tokens"), Some(&redis.url()));
    deployment.extra = "[auth]\nmode = \"on\"\n".into();
    deployment.apply_examples();
    let boss = deployment.ok(&["token", "create", "boss", "--role", "super-admin"]);
    let boss = boss.trim();
    let nodes = [deployment.serve(), deployment.serve()];
    let [one, other] = &nodes;

    // Made at one, known to both, with its roles.
    let order = json!({ "name": "orders", "roles": ["caller"] });
    let orders = secret(post(one, boss, "", order.clone()).await, 201);
    assert_eq!(ask(one, &orders, Method::GET, CONFIGS, None).await.0, 200, "here at once");
    becomes(other, &orders, CONFIGS, 200).await;
    assert_eq!(ask(other, &orders, Method::GET, TOKENS, None).await.0, 403);
    let number = "/api/v1/documents/d1/generate-number";
    let spo = Some(json!({ "type": "SPO", "date": "2024-01-22" }));
    assert_eq!(ask(other, &orders, Method::POST, number, spo.clone()).await.0, 201);
    assert_eq!(ask(other, boss, Method::POST, number, spo).await.0, 403);
    let (status, again, _) = post(one, boss, "", order).await;
    assert_eq!((status, &again["code"]), (409, &json!("token-name-taken")));
    what_is_wrong_is_told_by_its_field(one, boss).await;

    // A narrowed caller could make one that reaches further.
    let narrow = json!({ "name": "narrow", "roles": ["super-admin"], "series": ["SPO"] });
    let narrow = secret(post(one, boss, "", narrow).await, 201);
    let (status, told, _) = post(one, &narrow, "", json!({ "name": "wide" })).await;
    assert!(status == 403 && told["detail"].as_str().unwrap().contains("narrowed"), "{told}");
    let old = json!({ "name": "old", "expires": "2024-12-31" });
    let old = secret(post(one, boss, "", old).await, 201);
    let (status, told, _) = ask(one, &old, Method::GET, CONFIGS, None).await;
    assert!(status == 401 && told["detail"].as_str().unwrap().contains("expired"), "{told}");

    let elsewhere = Deployment::embedded();
    let foreign = elsewhere.ok(&["token", "create", "boss", "--role", "super-admin"]);
    for unknown in [foreign.trim(), &orders[..orders.len() - 1], "nbr_"] {
        assert_eq!(ask(one, unknown, Method::GET, CONFIGS, None).await.0, 401, "another's");
    }

    // Rotated with and without a grace.
    let next = secret(post(one, boss, "/orders/rotate", json!({})).await, 200);
    becomes(other, &next, CONFIGS, 200).await;
    assert_eq!(ask(other, &orders, Method::GET, CONFIGS, None).await.0, 200, "for an hour");
    let last = secret(post(one, boss, "/orders/rotate", json!({ "grace": "0s" })).await, 200);
    becomes(other, &last, CONFIGS, 200).await;
    for secret in [&orders, &next] {
        assert_eq!(ask(other, secret, Method::GET, CONFIGS, None).await.0, 401);
    }
    let (status, told, _) = post(one, boss, "/orders/rotate", json!({ "grace": "2d" })).await;
    assert_eq!((status, &told["field"]), (422, &json!("grace")), "{told}");

    // Revoked at one, refused by both; by a command, too.
    let reason = json!({ "reason": "the order desk is closed" });
    let (status, revoked, _) = post(other, boss, "/orders/revoke", reason.clone()).await;
    assert_eq!((status, &revoked["state"]), (200, &json!("revoked")), "{revoked}");
    assert_eq!(ask(other, &last, Method::GET, CONFIGS, None).await.0, 401, "here at once");
    becomes(one, &last, CONFIGS, 401).await;
    assert_eq!(post(one, boss, "/nobody/revoke", reason).await.0, 404);
    deployment.ok(&["token", "revoke", "narrow", "--reason", "no longer needed"]);
    becomes(one, &narrow, CONFIGS, 401).await;
    becomes(other, &narrow, CONFIGS, 401).await;

    nothing_that_remains_shows_a_secret(&deployment, &nodes, boss).await;

    // An outage of the ledger stops no caller, and admits no other.
    postgres.kill();
    assert_eq!(ask(one, boss, Method::GET, CONFIGS, None).await.0, 200);
    assert_eq!(ask(one, &last, Method::GET, CONFIGS, None).await.0, 401);
}

/// Goal: a secret that was used shows when. Method: the last uses are written when a process ends.
#[tokio::test]
async fn the_last_use_of_a_token_is_in_the_list_once_its_service_has_ended() {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[auth]\nmode = \"on\"\n".into();
    let made = deployment.ok(&["token", "create", "boss", "--role", "super-admin", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert!(made["last_used_at"].is_null() && made["created_by"].is_string(), "{made}");
    let service = deployment.serve();
    let secret = made["token"].as_str().unwrap();
    assert_eq!(ask(&service, secret, Method::GET, TOKENS, None).await.0, 200);
    assert!(service.terminate());
    let list = deployment.ok(&["token", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    assert!(list[0]["last_used_at"].is_string(), "{list}");
}
