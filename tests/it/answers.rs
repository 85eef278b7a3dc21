//! Answers are correct: the problem that occurred and its remedy, each setting as it is written,
//! and where the requested resource is.

use std::collections::BTreeSet;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::process::free_port;
use testkit::service::Service;

/// A series whose variable is exactly three digits wide, and one whose type is easily mistyped.
const SERIES: &str = r#"
[[series]]
code = "BRANCH"
name = "Branch"
template = "B-{BRANCH}-{SEQ:4}"
serves = { types = ["BRANCH"] }
serials = [{ counter = ["BRANCH"] }]
once_per_document = true
closed_before = 2024-01-01

[series.variables]
BRANCH = { required = true, alphabet = "0-9", width = 3, values = ["001", "002"] }

[[series]]
code = "INVOICE"
name = "Invoice"
template = "I-{SEQ:4}"
serves = { types = ["INVOICE"] }
serials = [{}]
"#;

/// A service with these series, and two callers who do not see each other's numbers.
fn desks() -> (Deployment, Service, [String; 2]) {
    let mut deployment = Deployment::embedded();
    let file = deployment.path("desks.toml");
    std::fs::write(&file, SERIES).unwrap();
    deployment.apply_examples();
    deployment.apply(&[file]);
    let tokens = ["first", "second"].map(|name| {
        let made = deployment.ok(&["token", "create", name, "--for-settings", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        let hash = &made["sha256"];
        deployment.extra += &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {hash}\n");
        made["token"].as_str().unwrap().to_owned()
    });
    let service = deployment.serve();
    (deployment, service, tokens)
}

async fn take(
    service: &Service,
    token: &str,
    language: &str,
    document: &str,
    body: &Value,
) -> Value {
    let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    let request = testkit::client().post(url).bearer_auth(token).json(body);
    request.header("accept-language", language).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn each_mistake_is_told_as_what_it_is_in_every_language() {
    let (_deployment, service, [token, _]) = desks();
    let branch = |context: Value| json!({ "type": "BRANCH", "context": context });
    let mistakes = [
        (branch(json!({ "BRANCH": "1" })), "value-too-short"),
        (branch(json!({ "BRANCH": "0001" })), "value-too-long"),
        (branch(json!({ "BRANCH": "00A" })), "wrong-alphabet"),
        (branch(json!({ "BRANCH": "003" })), "unknown-value"),
        (branch(json!({})), "missing-variable"),
        (branch(json!({ "BRANCH": "001", "X": "1" })), "unknown-variable"),
        (json!({ "type": "BRANCH", "context": { "BRANCH": "001" }, "date": "x" }), "invalid-date"),
        (
            json!({ "type": "BRANCH", "context": { "BRANCH": "001" }, "date": "2023-12-31" }),
            "period-closed",
        ),
        (json!({ "type": "INVOCE" }), "unknown-type"),
        (json!({ "type": 5 }), "invalid-field"),
    ];
    for language in ["th", "zh-Hans", "zh-Hant", "en"] {
        let mut told = BTreeSet::new();
        for (body, code) in &mistakes {
            let problem = take(&service, &token, language, "d1", body).await;
            assert_eq!(problem["code"], *code, "{body}: {problem}");
            let message = problem["user_message"].as_str().unwrap();
            // The field at fault is the one after it.
            let sentence = message.split(" (").next().unwrap().to_owned();
            assert!(told.insert(sentence), "{code} in {language}: {message}");
        }
    }
    let problem = take(&service, &token, "en", "d1", &json!({ "type": "INVOCE" })).await;
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("the nearest is \"INVOICE\"; served: type "), "{detail}");
}

/// The payload of another caller may be the same: the answer does not show that it was another one.
#[tokio::test]
async fn a_number_of_somebody_else_is_not_called_one_for_another_payload() {
    let (_deployment, service, [first, second]) = desks();
    let body = json!({ "type": "BRANCH", "context": { "BRANCH": "001" } });
    let issued = take(&service, &first, "en", "d1", &body).await;
    assert_eq!(issued["document_number"], "B-001-0001", "{issued}");
    let other = json!({ "type": "BRANCH", "context": { "BRANCH": "002" } });
    for (token, body, is_shown) in
        [(&second, &body, false), (&second, &other, false), (&first, &other, true)]
    {
        let problem = take(&service, token, "en", "d1", body).await;
        assert_eq!(problem["code"], "document-already-numbered", "{problem}");
        assert_eq!(problem["document_number"].is_string(), is_shown, "{problem}");
        assert_eq!(problem.to_string().contains("another payload"), is_shown, "{problem}");
        assert_eq!(problem.to_string().contains("somebody else"), !is_shown, "{problem}");
        assert!(!problem["user_message"].as_str().unwrap().contains("other details"), "{problem}");
    }
}

/// What `series check` reports for a line of a series.
fn checked(deployment: &Deployment, line: &str) -> String {
    let file = deployment.path("line.toml");
    let series = format!(
        "[[series]]\ncode = \"LINE\"\nname = \"Line\"\ntemplate = \"L-{{SEQ:3}}\"\n{line}\n\
         serves = {{ types = [\"LINE\"] }}\nserials = [{{}}]\n"
    );
    std::fs::write(&file, series).unwrap();
    let output = deployment.run(&["series", "check", file.to_str().unwrap()]);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_setting_of_another_kind_is_told_as_it_is_written_in_files_and_over_http() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let url = format!("{}/api/v1/document-numbering/configs?dry_run=true", service.url);
    for (line, field, wrong, in_file, over_http) in [
        (
            "fiscal_year_start = \"April\"",
            "fiscal_year_start",
            json!("April"),
            "a month, 1 to 12, not \"April\"; write fiscal_year_start = 4",
            "a month, 1 to 12, not \"April\"; write \"fiscal_year_start\": 4",
        ),
        (
            "document_date = \"5y\"",
            "document_date",
            json!("5y"),
            "write document_date = { past = \"5y\", future = \"1y\" }",
            "write \"document_date\": { \"past\": \"5y\", \"future\": \"1y\" }",
        ),
        (
            "closed_before = 2025",
            "closed_before",
            json!(2025),
            "a date in quotes, not 2025; write closed_before = \"2025-01-01\"",
            "a date in quotes, not 2025; write \"closed_before\": \"2025-01-01\"",
        ),
        (
            "unique_within = { project = true }",
            "unique_within",
            json!({ "project": true }),
            "a list of dimensions, not a table; write unique_within = [\"project\"]",
            "a list of dimensions, not an object; write \"unique_within\": [\"project\"]",
        ),
    ] {
        let told = checked(&deployment, line);
        assert!(told.contains("line 5, column ") && told.contains(in_file), "{line}: {told}");
        let mut body = json!({
            "code": "LINE", "name": "Line", "template": "L-{SEQ:3}", "reason": "test",
            "serves": { "types": ["LINE"] }, "serials": [{}],
        });
        body[field] = wrong;
        let answer = testkit::client().post(&url).json(&body).send().await.unwrap();
        let problem: Value = answer.json().await.unwrap();
        assert_eq!((&problem["code"], &problem["field"]), (&json!("invalid-field"), &json!(field)));
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(over_http), "{line}: {detail}");
    }
    // A bare date of TOML is one.
    let told = checked(&deployment, "closed_before = 2025-01-01");
    assert!(!told.contains("closed_before"), "{told}");
    let url = format!("{}/api/v1/document-numbering/configs?active=maybe", service.url);
    let problem: Value = testkit::client().get(url).send().await.unwrap().json().await.unwrap();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("must be true or false, not \"maybe\"; write active=true"), "{detail}");
}

async fn get(url: &str, method: Method) -> Response {
    testkit::client().request(method, url).send().await.unwrap()
}

#[tokio::test]
async fn what_stands_elsewhere_says_where_and_the_root_says_where_to_read_on() {
    for with_tokens in [true, false] {
        let (mut deployment, health) = (Deployment::embedded(), free_port());
        if with_tokens {
            let made = deployment.ok(&["token", "create", "a", "--for-settings", "--json"]);
            let made: Value = serde_json::from_str(&made).unwrap();
            let hash = &made["sha256"];
            deployment.extra += &format!("[[auth.tokens]]\nname = \"a\"\nsha256 = {hash}\n");
        }
        deployment.http = format!("health_listen = \"127.0.0.1:{health}\"\n");
        let service = deployment.serve();
        for path in ["/healthz", "/readyz", "/metrics"] {
            for method in [Method::GET, Method::POST] {
                let answer = get(&format!("{}{path}", service.url), method).await;
                assert_eq!(answer.status(), 404, "{path}");
                let problem: Value = answer.json().await.unwrap();
                let detail = problem["detail"].as_str().unwrap();
                let says = format!("{path} is answered at http.health_listen, 127.0.0.1:{health}");
                assert!(problem["code"] == "route-not-found" && detail.contains(&says), "{detail}");
            }
            let there = get(&format!("http://127.0.0.1:{health}{path}"), Method::GET).await;
            assert_eq!(there.status(), 200, "{path}");
            assert!(there.headers().get("keep-alive").is_none(), "it carries one request");
        }
        let root = get(&format!("{}/", service.url), Method::GET).await;
        assert_eq!(
            (root.status().as_u16(), &root.headers()["keep-alive"]),
            (200, &"timeout=10".parse().unwrap())
        );
        let line = root.text().await.unwrap();
        assert!(line.contains("/openapi.json") && line.contains("docs/api.md"), "{line}");
        assert_eq!(line.lines().count(), 1);
        let nowhere = get(&format!("{}/nowhere", service.url), Method::GET).await;
        assert_eq!(nowhere.status().as_u16(), if with_tokens { 401 } else { 404 });
    }
}
