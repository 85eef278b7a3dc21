//! What is impossible beyond one's scope: to manage by a token that is no longer in force, to
//! answer for one's own request under another spelling of one's name, to run or shut out steps of
//! serials out of reach, to use what was granted to other projects, or to use up what all share.

mod serials;
mod shared;

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;

const API: &str = "/api/v1/document-numbering";

/// A service, and its callers with tokens of the ledger.
struct Scene {
    _deployment: Deployment,
    service: Service,
    tokens: BTreeMap<&'static str, String>,
}

impl Scene {
    /// A service with tokens, each with the options of its command.
    fn start(mut deployment: Deployment, tokens: &[(&'static str, &[&str])]) -> Self {
        deployment.extra += "[auth]\nmode = \"on\"\n";
        let made = tokens.iter().map(|(name, options)| {
            let command = [&["token", "create", name], *options].concat();
            (*name, deployment.ok(&command).trim().to_owned())
        });
        let tokens = made.collect();
        let service = deployment.serve();
        Scene { _deployment: deployment, service, tokens }
    }

    async fn ask_as(
        &self,
        (secret, person): (&str, Option<&str>),
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let mut request = testkit::client().request(method, format!("{}{path}", self.service.url));
        request = request.bearer_auth(secret);
        if let Some(person) = person {
            request = request.header("On-Behalf-Of", person);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn post(&self, who: &str, path: &str, body: Value) -> (u16, Value) {
        self.ask_as((&self.tokens[who], None), Method::POST, path, Some(body)).await
    }

    async fn get(&self, who: &str, path: &str) -> (u16, Value) {
        self.ask_as((&self.tokens[who], None), Method::GET, path, None).await
    }

    /// The path of a request for a counter of series `LOAD`, which has given numbers.
    async fn asked(&self, secret: &str, person: Option<&str>, next: u64) -> String {
        let (_, list) = self.get("boss", &format!("{API}/counters?series=LOAD")).await;
        let counter = &list["counters"][0];
        let order = json!({
            "counter_id": counter["counter_id"], "next_value": next,
            "reason": "the paper book of the branch ends there",
        });
        let path = format!("{API}/configs/{}/reset-counter", counter["config_id"]);
        let (status, told) = self.ask_as((secret, person), Method::POST, &path, Some(order)).await;
        assert_eq!(status, 202, "{told}");
        format!("{API}/change-requests/{}", told["change_id"])
    }

    async fn number(&self, who: &str, document: &str) -> (u16, Value) {
        let path = format!("/api/v1/documents/{document}/generate-number");
        self.post(who, &path, json!({ "type": "LOAD" })).await
    }
}

const SUPER: &[&str] = &["--role", "super-admin"];
const SPEAKER: &[&str] = &["--role", "super-admin", "--speaks-for-people"];

/// Goal: no process relies on its memory of a token where something is managed. Method: the rows
/// are changed as another process would, and this one is never informed.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_another_process_revoked_or_rotated_manages_nothing_here() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("revoked"), None);
    deployment.apply_load_series();
    let scene = Scene::start(
        deployment,
        &[("orders", &[]), ("boss", SUPER), ("anna", SUPER), ("bert", SUPER)],
    );
    assert_eq!(scene.number("orders", "d1").await.0, 201);
    let request = scene.asked(&scene.tokens["anna"], None, 50).await;
    postgres
        .sql("create table revoked.kept as select sha256 from revoked.token where name = 'bert'");
    let set = |what: &str| format!("update revoked.token set {what} where name = 'bert'");
    let revoked = set("revoked_by = 'boss', revoked_at_us = 1");
    let rotated = set("revoked_by = null, revoked_at_us = null, sha256 = sha256('another'::bytea)");
    let expired = set("sha256 = (select sha256 from revoked.kept), expires_at_us = 1");
    for (change, what) in [(revoked, "revoked"), (rotated, "rotated"), (expired, "expired")] {
        postgres.sql(&change);
        // Reads rely on memory, as long as no change of tokens is reported.
        assert_eq!(scene.get("bert", &format!("{API}/configs")).await.0, 200, "{what}");
        for (path, body) in [
            (format!("{request}/approve"), json!({})),
            (format!("{request}/reject"), json!({ "reason": "no" })),
            (format!("{API}/tokens"), json!({ "name": "mine", "roles": ["super-admin"] })),
            (format!("{API}/tokens/boss/revoke"), json!({ "reason": "mine now" })),
            (format!("{API}/tokens/boss/rotate"), json!({ "grace": "0s" })),
            (format!("{API}/tokens/bert/rotate"), json!({})),
        ] {
            let (status, told) = scene.post("bert", &path, body).await;
            let said = (status, &told["code"]);
            assert_eq!(said, (401, &json!("unauthenticated")), "{what}: {path}: {told}");
        }
    }
    postgres.sql(&set("expires_at_us = null"));
    let (status, told) = scene.post("bert", &format!("{request}/approve"), json!({})).await;
    assert_eq!((status, &told["state"]), (200, &json!("approved")), "{told}");
}

#[tokio::test]
async fn a_secret_that_was_replaced_takes_and_reads_in_its_grace_and_manages_nothing() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let both: &[&str] = &["--role", "super-admin", "--role", "caller"];
    let scene = Scene::start(deployment, &[("anna", SUPER), ("boss", both)]);
    assert_eq!(scene.number("boss", "d1").await.0, 201);
    let request = scene.asked(&scene.tokens["anna"], None, 50).await;
    let rotate = format!("{API}/tokens/boss/rotate");
    let (status, rotated) = scene.post("anna", &rotate, json!({})).await;
    assert_eq!(status, 200, "{rotated}");
    // It takes and reads as before.
    assert_eq!(scene.number("boss", "d2").await.0, 201);
    for path in ["/numbers?user_id=boss", "/configs", "/events", "/change-requests"] {
        assert_eq!(scene.get("boss", &format!("{API}{path}")).await.0, 200, "{path}");
    }
    let table = json!({ "rows": [{ "id": "1", "code": "A" }], "reason": "new" });
    let series = json!({ "code": "X", "name": "X", "template": "X-{SEQ:3}", "serials": [{}],
        "serves": { "types": ["X"] }, "reason": "new" });
    for (path, body) in [
        (rotate.clone(), json!({ "grace": "0s" })),
        (format!("{API}/tokens/anna/rotate"), json!({ "grace": "0s" })),
        (format!("{API}/tokens/anna/revoke"), json!({ "reason": "mine now" })),
        (format!("{API}/tokens"), json!({ "name": "mine", "roles": ["super-admin"] })),
        (format!("{request}/approve"), json!({})),
        (format!("{request}/reject"), json!({ "reason": "no" })),
        (format!("{API}/reference/sites"), table),
        (format!("{API}/configs"), series.clone()),
        (format!("{API}/configs?dry_run=true"), series),
        (format!("{API}/configs/1/deactivate"), json!({ "reason": "no" })),
    ] {
        let (status, told) = scene.post("boss", &path, body).await;
        assert_eq!((status, &told["code"]), (403, &json!("not-permitted")), "{path}: {told}");
        assert!(told["detail"].as_str().unwrap().contains("replaced"), "{path}: {told}");
    }
    assert_eq!(scene.get("boss", &format!("{API}/tokens")).await.0, 403);
    // The new one manages.
    let new = (rotated["token"].as_str().unwrap(), None);
    let approve = format!("{request}/approve");
    let (status, told) = scene.ask_as(new, Method::POST, &approve, Some(json!({}))).await;
    assert_eq!(status, 200, "{told}");
}

#[tokio::test]
async fn one_person_under_two_writings_of_a_name_does_not_answer_for_both() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let scene = Scene::start(
        deployment,
        &[("orders", &[]), ("boss", SUPER), ("erp", SPEAKER), ("crm", SPEAKER), ("ann", SPEAKER)],
    );
    assert_eq!(scene.number("orders", "d1").await.0, 201);
    let secret = |who: &str| scene.tokens[who].clone();
    let request = scene.asked(&secret("erp"), Some("Ann"), 50).await;
    let approve = format!("{request}/approve");
    for (service, person) in [
        ("crm", Some("ann")),
        ("crm", Some("ANN")),
        ("crm", Some("%EF%BD%81%EF%BD%8E%EF%BD%8E")),
        ("crm", Some("jwt:ann")),
        ("crm", Some("hr/Ann")),
        ("erp", Some("bert")),
        ("ann", None),
        ("ann", Some("bert")),
    ] {
        let principal = (&*secret(service), person);
        let (status, told) = scene.ask_as(principal, Method::POST, &approve, Some(json!({}))).await;
        let said = (status, &told["code"]);
        assert_eq!(said, (403, &json!("own-change")), "{service} {person:?}: {told}");
    }
    // What is not visible may be refused as a name, and never approves.
    for person in ["a%C2%ADnn", "ann%E2%80%8B", "%E2%80%AEann"] {
        let principal = (&*secret("crm"), Some(person));
        let (status, told) = scene.ask_as(principal, Method::POST, &approve, Some(json!({}))).await;
        assert!([403, 422].contains(&status), "{person}: {told}");
    }
    let principal = (&*secret("crm"), Some("bert"));
    let (status, told) = scene.ask_as(principal, Method::POST, &approve, Some(json!({}))).await;
    assert_eq!((status, &told["decided_by"]), (200, &json!("crm/bert")), "{told}");
}
