//! Permissions over HTTP: every route with every role, and what narrowed tokens and callers see of
//! what others were issued.

mod beyond;
mod narrowed;

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

const ROLES: [&str; 6] =
    ["caller", "project-admin", "super-admin", "auditor", "operator", "registrar"];

const TAKERS: &[&str] = &["caller"];
const PREVIEWERS: &[&str] = &["caller", "project-admin", "super-admin", "auditor"];
const READERS: &[&str] = &["caller", "project-admin", "super-admin", "auditor", "registrar"];
const AUDITED: &[&str] = &["project-admin", "super-admin", "auditor", "registrar"];
const REFERRED: &[&str] = &["project-admin", "super-admin", "auditor"];
const REGISTRARS: &[&str] = &["registrar"];
const ASSIGNERS: &[&str] = &["caller", "registrar"];
const MANAGERS: &[&str] = &["super-admin"];
const CHANGERS: &[&str] = &["project-admin", "super-admin"];

/// The permissions, as they were reviewed: no list of the service's is used.
const TABLE: [(&str, &str, &[&str]); 52] = [
    ("post", "/api/v1/documents/{documentId}/generate-number", TAKERS),
    ("get", "/api/v1/documents/{documentId}/numbers", READERS),
    ("post", "/api/v1/documents/{documentId}/revisions", TAKERS),
    ("post", "/api/v1/document-numbering/batches", TAKERS),
    ("post", "/api/v1/document-numbering/reservations", TAKERS),
    ("get", "/api/v1/document-numbering/reservations", READERS),
    ("get", "/api/v1/document-numbering/reservations/{reservationId}", READERS),
    ("post", "/api/v1/document-numbering/reservations/{reservationId}/confirm", TAKERS),
    ("post", "/api/v1/document-numbering/reservations/{reservationId}/cancel", TAKERS),
    ("post", "/api/v1/document-numbering/reservations/{reservationId}/hand-back", TAKERS),
    ("post", "/api/v1/document-numbering/preview", PREVIEWERS),
    ("get", "/api/v1/document-numbering/numbers", READERS),
    ("get", "/api/v1/document-numbering/numbers/{number}", READERS),
    ("post", "/api/v1/document-numbering/numbers/void", REGISTRARS),
    ("post", "/api/v1/document-numbering/numbers/correct", REGISTRARS),
    ("post", "/api/v1/document-numbering/numbers/register", REGISTRARS),
    ("post", "/api/v1/document-numbering/numbers/assign", ASSIGNERS),
    ("get", "/api/v1/document-numbering/counters", AUDITED),
    ("get", "/api/v1/document-numbering/statements", AUDITED),
    ("get", "/api/v1/document-numbering/events", &["super-admin", "auditor", "operator"]),
    ("get", "/api/v1/document-numbering/configs", READERS),
    ("post", "/api/v1/document-numbering/configs", CHANGERS),
    ("get", "/api/v1/document-numbering/configs/{configId}", READERS),
    ("put", "/api/v1/document-numbering/configs/{configId}", CHANGERS),
    ("delete", "/api/v1/document-numbering/configs/{configId}", CHANGERS),
    ("post", "/api/v1/document-numbering/configs/{configId}/activate", CHANGERS),
    ("post", "/api/v1/document-numbering/configs/{configId}/deactivate", CHANGERS),
    ("get", "/api/v1/document-numbering/configs/{configId}/versions", READERS),
    ("get", "/api/v1/document-numbering/configs/{configId}/versions/{version}", READERS),
    ("get", "/api/v1/document-numbering/configs/{configId}/versions/{version}/diff", READERS),
    ("post", "/api/v1/document-numbering/configs/{configId}/rollback", CHANGERS),
    ("get", "/api/v1/document-numbering/reference", REFERRED),
    ("get", "/api/v1/document-numbering/reference/{table}", REFERRED),
    ("post", "/api/v1/document-numbering/reference/{table}", MANAGERS),
    ("get", "/api/v1/document-numbering/reference/{table}/memberships", REFERRED),
    ("get", "/api/v1/document-numbering/tokens", MANAGERS),
    ("post", "/api/v1/document-numbering/tokens", MANAGERS),
    ("post", "/api/v1/document-numbering/tokens/{name}/revoke", MANAGERS),
    ("post", "/api/v1/document-numbering/tokens/{name}/rotate", MANAGERS),
    ("post", "/api/v1/document-numbering/configs/{configId}/reset-counter", MANAGERS),
    ("post", "/api/v1/document-numbering/configs/{configId}/reset-chronology", MANAGERS),
    ("get", "/api/v1/document-numbering/change-requests", &["super-admin", "auditor", "operator"]),
    ("post", "/api/v1/document-numbering/change-requests/{changeId}/approve", MANAGERS),
    ("post", "/api/v1/document-numbering/change-requests/{changeId}/reject", MANAGERS),
    ("post", "/api/v1/serials/unified", TAKERS),
    ("get", "/api/v1/serials/unified/{serial}", READERS),
    ("post", "/api/v1/serials/system", TAKERS),
    ("post", "/api/v1/serials/system/begin", TAKERS),
    ("post", "/api/v1/serials/system/succeed", TAKERS),
    ("post", "/api/v1/serials/system/fail", TAKERS),
    ("post", "/api/v1/serials/interface", TAKERS),
    ("post", "/api/v1/serials/interface/check", TAKERS),
];

/// Routes that need no token.
const OPEN: [&str; 5] = ["/healthz", "/readyz", "/metrics", "/problems", "/problems/{code}"];

/// Two series for two projects, one for any, one for none.
const SERIES: &str = r#"
[[series]]
code = "ONE"
name = "One"
template = "ONE-{PROJECT}-{SEQ:4}"
serves = { types = ["ONE"], projects = ["P1"] }
serials = [{ counter = ["project"] }]

[[series]]
code = "BOTH"
name = "Both"
template = "BOTH-{PROJECT}-{SEQ:4}"
serves = { types = ["BOTH"], projects = ["P1", "P2"] }
serials = [{ counter = ["project"] }]

[[series]]
code = "PLAIN"
name = "Plain"
template = "PLAIN-{SEQ:4}"
serves = { types = ["PLAIN"] }
serials = [{ counter = ["type"] }]
once_per_document = true
"#;

/// A service and its possible callers.
struct Scene {
    service: Service,
    _deployment: Deployment,
    tokens: BTreeMap<&'static str, String>,
}

impl Scene {
    /// Tokens of these names, each with the lines of its section.
    fn start(mut deployment: Deployment, tokens: &[(&'static str, &str)]) -> Self {
        let file = deployment.path("series.toml");
        std::fs::write(&file, SERIES).unwrap();
        deployment.apply(&[file]);
        let mut secrets = BTreeMap::new();
        for (name, lines) in tokens {
            let made = deployment.ok(&["token", "create", name, "--for-settings", "--json"]);
            let made: Value = serde_json::from_str(&made).unwrap();
            let hash = &made["sha256"];
            deployment.extra +=
                &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {hash}\n{lines}\n");
            secrets.insert(*name, made["token"].as_str().unwrap().to_owned());
        }
        Scene { service: deployment.serve(), _deployment: deployment, tokens: secrets }
    }

    /// The answer to a caller.
    async fn ask(
        &self,
        who: Option<&str>,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> (u16, Value) {
        let mut request = testkit::client().request(method, format!("{}{path}", self.service.url));
        if let Some(name) = who {
            request = request.bearer_auth(&self.tokens[name]);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn get(&self, who: &str, path: &str) -> (u16, Value) {
        self.ask(Some(who), Method::GET, path, None).await
    }

    async fn take(&self, who: &str, document: &str, body: Value) -> (u16, Value) {
        let path = format!("/api/v1/documents/{document}/generate-number");
        self.ask(Some(who), Method::POST, &path, Some(body)).await
    }

    /// The number that a caller is given for a document.
    async fn number(&self, who: &str, document: &str, body: Value) -> String {
        let (status, answer) = self.take(who, document, body).await;
        assert!(status == 201, "{answer}");
        answer["document_number"].as_str().unwrap().to_owned()
    }

    /// How many rows a list has.
    async fn count(&self, who: &str, query: &str) -> usize {
        let (status, list) = self.get(who, &numbers(query)).await;
        assert_eq!(status, 200, "{list}");
        list["numbers"].as_array().unwrap().len()
    }
}

fn numbers(query: &str) -> String {
    format!("/api/v1/document-numbering/numbers{query}")
}

/// One caller of each role.
fn of_each_role(deployment: Deployment) -> Scene {
    let lines = ROLES.map(|role| match role {
        "project-admin" => "roles = [\"project-admin\"]\nprojects = [\"P1\"]".to_owned(),
        role => format!("roles = [\"{role}\"]"),
    });
    let tokens: Vec<(&str, &str)> =
        ROLES.into_iter().zip(lines.iter().map(String::as_str)).collect();
    Scene::start(deployment, &tokens)
}

async fn every_route_asks_every_role(scene: &Scene) {
    let (_, document) = scene.ask(None, Method::GET, "/openapi.json", None).await;
    let described: BTreeSet<(String, String)> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone()))
        })
        .filter(|(_, path)| !OPEN.contains(&path.as_str()))
        .collect();
    let own =
        |(method, path, _): &(&str, &str, &[&str])| ((*method).to_owned(), (*path).to_owned());
    assert_eq!(described, TABLE.iter().map(own).collect(), "routes and the table of this test");
    for (method, path, allowed) in TABLE {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let path = path.replace("{version}", "1").replace("{configId}", "1");
        let path = path.replace(['{', '}'], "");
        let body = (method != Method::GET).then(|| json!({ "nothing": "of use" }));
        let (status, _) = scene.ask(None, method.clone(), &path, body.clone()).await;
        assert_eq!(status, 401, "{method} {path} of nobody");
        for role in ROLES {
            let (status, answer) = scene.ask(Some(role), method.clone(), &path, body.clone()).await;
            let is_refused = status == 403 && answer["code"] == "not-permitted";
            let said = format!("{method} {path} of {role}: {status} {answer}");
            // An existing right leads to what is wrong with the request.
            let is_of_projects = role == "project-admin" && path.ends_with("/1");
            assert!(is_refused != allowed.contains(&role) || is_of_projects, "{said}");
            assert!(status < 500 && status != 401, "{said}");
        }
    }
}

#[tokio::test]
async fn every_route_asks_every_role_on_sqlite_alone() {
    every_route_asks_every_role(&of_each_role(Deployment::embedded())).await;
}

#[tokio::test]
async fn every_route_asks_every_role_on_redis_and_postgres_and_each_sees_its_own() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("roles"), Some(&redis.url()));
    let scene = of_each_role(deployment);
    every_route_asks_every_role(&scene).await;
    // A deactivated series is what an order service's token could leave.
    let path = "/api/v1/document-numbering/configs/ONE";
    let (status, config) = scene.get("auditor", path).await;
    assert!(status == 200 && config["active"] == true, "{config}");
}

/// A caller's numbers are its own, on whichever path they were taken.
async fn a_guess_shows_no_number_of_somebody_else(deployment: Deployment) {
    let scene = Scene::start(
        deployment,
        &[("orders", ""), ("spy", ""), ("auditor", "roles = [\"auditor\"]")],
    );
    let order = json!({ "type": "ONE", "project": "P1" });
    let number = scene.number("orders", "d-1", order.clone()).await;
    let (status, again) = scene.take("orders", "d-1", order.clone()).await;
    assert!(status == 200 && again["document_number"] == number.as_str(), "{again}");
    // The same request, and another one, for a document that was guessed.
    for body in [order, json!({ "type": "ONE", "project": "P1", "date": "2026-01-02" })] {
        let (status, told) = scene.take("spy", "d-1", body).await;
        assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
        assert!(!told.to_string().contains(&number), "{told}");
    }
    let once = scene.number("orders", "d-2", json!({ "type": "PLAIN" })).await;
    let (_, told) = scene.take("spy", "d-2", json!({ "type": "PLAIN" })).await;
    assert!(told["code"] == "document-already-numbered" && !told.to_string().contains(&once));
    // Everything is journaled once the auditor sees it.
    let journaled = async || scene.count("auditor", "?from=2020-01-01").await == 2;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !journaled().await {
        assert!(std::time::Instant::now() < deadline, "not journaled");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(scene.count("orders", "?from=2020-01-01").await, 2);
    for query in ["?from=2020-01-01", "?user_id=orders", "?document_id=d-1", "?number_prefix=ONE"] {
        assert_eq!(scene.count("spy", query).await, 0, "{query}");
    }
    let unknown = "/api/v1/document-numbering/numbers/ONE-P1-9999";
    let (_, of_none) = scene.get("spy", unknown).await;
    let (_, of_other) = scene.get("spy", &numbers(&format!("/{number}"))).await;
    assert_eq!((&of_other["issued"], &of_other["numbers"]), (&of_none["issued"], &json!([])));
    for query in [format!("?number={number}"), "?number=ONE-P1-9999".to_owned()] {
        assert_eq!(scene.get("spy", &numbers(&query)).await.0, 404, "{query}");
    }
    let (_, of_document) = scene.get("spy", "/api/v1/documents/d-1/numbers").await;
    assert_eq!(of_document["numbers"], json!([]));
    let revision = json!({ "rev": "B", "series": "ONE" });
    let path = "/api/v1/documents/d-1/revisions";
    let (_, told) = scene.ask(Some("spy"), Method::POST, path, Some(revision)).await;
    assert_eq!(told["code"], "document-not-numbered", "{told}");
}

#[tokio::test]
async fn a_guess_shows_no_number_of_somebody_else_on_sqlite_alone() {
    a_guess_shows_no_number_of_somebody_else(Deployment::embedded()).await;
}

#[tokio::test]
async fn a_guess_shows_no_number_of_somebody_else_on_redis_and_postgres() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("guesses"), Some(&redis.url()));
    a_guess_shows_no_number_of_somebody_else(deployment).await;
}

#[tokio::test]
async fn what_a_narrowed_token_does_not_reach_looks_like_what_does_not_exist() {
    let scene = Scene::start(
        Deployment::embedded(),
        &[
            ("p1", "roles = [\"caller\", \"auditor\"]\nprojects = [\"P1\"]"),
            ("plain", "roles = [\"caller\", \"auditor\"]\nseries = [\"PLAIN\"]"),
            ("admin", "roles = [\"project-admin\"]\nprojects = [\"P1\"]"),
            ("all", "roles = [\"caller\", \"super-admin\"]"),
        ],
    );
    let of = |kind: &str, project: &str| json!({ "type": kind, "project": project });
    scene.number("p1", "a", of("BOTH", "P1")).await;
    scene.number("all", "b", of("BOTH", "P2")).await;
    let codes = async |who: &str, body: Value| {
        let (status, told) = scene.take(who, "c", body).await;
        (status, told["code"].as_str().unwrap_or_default().to_owned())
    };
    let nothing = codes("p1", of("NOSUCH", "P1")).await;
    for body in [of("BOTH", "P2"), json!({ "type": "PLAIN" }), of("BOTH", "P3")] {
        assert_eq!(codes("p1", body.clone()).await, nothing, "{body}");
    }
    assert_eq!(codes("plain", of("ONE", "P1")).await, nothing);
    scene.number("plain", "c", json!({ "type": "PLAIN" })).await;
    // Lists: a question names what it is about, and what is beyond is empty.
    assert_eq!(scene.get("p1", &numbers("?from=2020-01-01")).await.0, 422);
    assert_eq!(scene.count("p1", "?project=P1&from=2020-01-01").await, 1);
    assert_eq!(scene.count("p1", "?project=P2&from=2020-01-01").await, 0);
    let counters = "/api/v1/document-numbering/counters";
    let (_, beyond) = scene.get("p1", &format!("{counters}?project=P2")).await;
    assert_eq!(beyond["counters"], json!([]));
    assert_eq!(scene.get("p1", counters).await.0, 422);
    // Series.
    let configs = "/api/v1/document-numbering/configs";
    let (_, list) = scene.get("plain", configs).await;
    let listed: Vec<_> = list["configs"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(listed, [&json!("PLAIN")]);
    for hidden in ["ONE", "1", "NOSUCH"] {
        let (status, told) = scene.get("plain", &format!("{configs}/{hidden}")).await;
        assert_eq!((status, &told["code"]), (404, &json!("config-not-found")), "{hidden}");
    }
    // An administrator of one project: its own series, and no other.
    for (code, wanted) in [("ONE", 200), ("BOTH", 403), ("PLAIN", 403)] {
        let (_, config) = scene.get("all", &format!("{configs}/{code}")).await;
        let path = format!("{configs}/{}/deactivate", config["config_id"]);
        let body = Some(json!({ "reason": "the project has ended" }));
        let (status, told) = scene.ask(Some("admin"), Method::POST, &path, body).await;
        assert_eq!(status, wanted, "{code}: {told}");
    }
    let new = |projects: Value| {
        json!({
            "code": "NEW", "name": "New", "template": "NEW-{PROJECT}-{SEQ:3}", "reason": "new",
            "serves": { "types": ["NEW"], "projects": projects },
            "serials": [{ "counter": ["project"] }],
        })
    };
    for (projects, wanted) in [(json!(["P1", "P2"]), 403), (json!([]), 403), (json!(["P1"]), 201)] {
        let body = Some(new(projects.clone()));
        let (status, told) = scene.ask(Some("admin"), Method::POST, configs, body).await;
        assert_eq!(status, wanted, "{projects}: {told}");
    }
}

#[tokio::test]
async fn a_token_is_let_in_until_its_last_day_has_ended() {
    let scene = Scene::start(
        Deployment::embedded(),
        &[("old", "expires = \"2024-12-31\""), ("new", "expires = \"2999-12-31\"")],
    );
    let body = || json!({ "type": "PLAIN" });
    let (status, told) = scene.take("old", "a", body()).await;
    assert!(status == 401 && told["detail"].as_str().unwrap().contains("expired"), "{told}");
    scene.number("new", "a", body()).await;
}
