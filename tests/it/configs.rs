//! Series changed at run time, as administrators and callers see it.

mod expressions;
mod removal;
mod running;
mod versions;

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::load::post;
use testkit::redis::Redis;
use testkit::service::Service;

/// How soon a running node applies a change on a machine that is very busy.
const PICKED_UP_LIMIT: Duration = Duration::from_secs(20);

fn configs(service: &Service, below: &str) -> String {
    format!("{}/api/v1/document-numbering/configs{below}", service.url)
}

/// A series of one counter that serves the type of its code.
fn series(code: &str, template: &str) -> Value {
    json!({
        "code": code, "name": code, "serves": { "types": [code] }, "template": template,
        "serials": [{ "counter": ["type"] }], "reason": "test",
    })
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

async fn send(method: Method, url: &str, version: Option<u64>, body: &Value) -> Response {
    let request = testkit::client().request(method, url).json(body);
    let request = match version {
        Some(version) => request.header("If-Match", format!("\"{version}\"")),
        None => request,
    };
    request.send().await.unwrap()
}

async fn told(answer: Response) -> (u16, Value) {
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Creates a series; its id.
async fn create(service: &Service, body: &Value) -> i64 {
    let (status, saved) = told(send(Method::POST, &configs(service, ""), None, body).await).await;
    assert_eq!(status, 201, "{saved}");
    saved["config_id"].as_i64().unwrap()
}

/// Saves a version over the one before it.
async fn change(service: &Service, id: i64, version: u64, body: &Value) -> (u16, Value) {
    let url = configs(service, &format!("/{id}"));
    told(send(Method::PUT, &url, Some(version), body).await).await
}

async fn take(service: &Service, type_code: &str, document: &str) -> (u16, Value) {
    let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    post(&testkit::client(), &url, &json!({ "type": type_code })).await
}

async fn get(url: &str) -> (u16, Value) {
    told(testkit::client().get(url).send().await.unwrap()).await
}

#[tokio::test]
async fn configs_a_series_is_created_changed_and_its_history_told() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let answer =
        send(Method::POST, &configs(&service, ""), None, &series("NEW", "N-{SEQ:3}")).await;
    let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
    let location = answer.headers()["location"].to_str().unwrap().to_owned();
    let (status, saved) = told(answer).await;
    assert_eq!((status, &saved["saved"]), (201, &json!(true)), "{saved}");
    assert_eq!(saved["preview"]["numbers"], json!(["N-001", "N-002", "N-003"]));
    let (_, number) = take(&service, "NEW", "d1").await;
    assert_eq!(number["document_number"], "N-001", "served at once by who saved it: {number}");

    let id = saved["config_id"].as_i64().unwrap();
    assert_eq!(location, format!("/api/v1/document-numbering/configs/{id}"));
    let shown = testkit::client().get(format!("{}{location}", service.url)).send().await.unwrap();
    assert_eq!(shown.headers()["etag"], *tag);
    assert_eq!(tag, format!("\"{id}-1\""));
    let (status, saved) = change(&service, id, 1, &series("NEW", "N-{SEQ:5}")).await;
    assert_eq!((status, &saved["version"]), (200, &json!(2)), "{saved}");
    assert_eq!(saved["preview"]["numbers"], json!(["N-00002", "N-00003", "N-00004"]));
    let (_, same) = change(&service, id, 2, &series("NEW", "N-{SEQ:5}")).await;
    assert_eq!((&same["version"], &same["saved"]), (&json!(2), &json!(false)), "{same}");
    let (_, number) = take(&service, "NEW", "d2").await;
    assert_eq!(number["document_number"], "N-00002", "{number}");
    let (_, replayed) = take(&service, "NEW", "d1").await;
    assert_eq!(replayed["document_number"], "N-001", "an issued number never changes");

    let (_, all) = get(&configs(&service, &format!("/{id}/versions"))).await;
    let told: Vec<_> = all["versions"].as_array().unwrap().iter().collect();
    assert_eq!((told.len(), &told[0]["version"], &told[1]["version"]), (2, &json!(2), &json!(1)));
    assert_eq!((&told[0]["saved_by"], &told[0]["reason"]), (&json!("local"), &json!("test")));
    let (_, first) = get(&configs(&service, &format!("/{id}/versions/1"))).await;
    assert_eq!(first["definition"]["template"], "N-{SEQ:3}");
    let (status, _) = get(&configs(&service, &format!("/{id}/versions/3"))).await;
    assert_eq!(status, 404);
    deployment.assert_clean();
}

#[tokio::test]
async fn configs_a_change_that_nobody_can_mean_is_refused_and_says_why() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("REF", "R-{SEQ:3}")).await;
    let url = configs(&service, "");
    for (body, slug, field, says) in [
        (series("X", "X-{ORG}{SEQ:3}"), "invalid-field", "template", "character 3, `{ORG}`"),
        (
            series("X", "X-{DATE:DD}{SEQ:3}"),
            "invalid-field",
            "template",
            "the day of the month is dd",
        ),
        (series("X", "X"), "invalid-field", "serials[0]", "add `{SEQ:4}`"),
        (with(series("X", "X-{SEQ}"), "tempalte", json!("")), "invalid-field", "tempalte", "unkno"),
        (with(series("X", "X-{SEQ}"), "reason", json!(" ")), "invalid-field", "reason", "say why"),
        (with(series("X", "X-{SEQ}"), "reason", Value::Null), "invalid-field", "reason", "missing"),
        (
            with(series("X", "X-{SEQ}"), "example", json!({ "context": { "A": "1" } })),
            "unknown-variable",
            "context.A",
            "takes none",
        ),
        (series("REF", "X-{SEQ:3}"), "code-taken", "code", "is there already"),
        (
            with(series("X", "X-{SEQ:3}"), "serves", json!({ "types": ["REF"] })),
            "series-ambiguous",
            "serves",
            "REF and X",
        ),
        (
            with(series("X", "X-{SEQ:3}"), "serials", json!([{ "reset": "year" }])),
            "template-ambiguous",
            "template",
            "date \"2026-01-01\")",
        ),
    ] {
        let (status, problem) = told(send(Method::POST, &url, None, &body).await).await;
        assert!((400..500).contains(&status), "{problem}");
        assert_eq!(
            (&problem["code"], &problem["field"]),
            (&slug.into(), &field.into()),
            "{problem}"
        );
        assert!(problem["detail"].as_str().unwrap().contains(says), "{says}: {problem}");
    }
    let below = configs(&service, &format!("/{id}"));
    let body = series("REF", "R-{SEQ:4}");
    let (status, problem) = told(send(Method::PUT, &below, None, &body).await).await;
    assert_eq!((status, &problem["code"]), (428, &"precondition-required".into()), "{problem}");
    let (status, problem) = change(&service, id, 7, &body).await;
    assert_eq!((status, &problem["code"]), (409, &"version-conflict".into()), "{problem}");
    assert_eq!(problem["retryable"], false, "the same again would be refused again: {problem}");
    let (status, _) = change(&service, 999, 1, &body).await;
    assert_eq!(status, 404);
    let (_, all) = get(&configs(&service, &format!("/{id}/versions"))).await;
    assert_eq!(all["versions"].as_array().unwrap().len(), 1, "nothing was saved");
}

#[tokio::test]
async fn configs_a_dry_run_previews_and_saves_nothing() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let body = with(
        series("DRY", "D-{ORIGINATOR}-{YEAR}-{SEQ:4}"),
        "variables",
        json!({ "ORIGINATOR": { "required": true } }),
    );
    let example = json!({ "date": "2024-05-06", "context": { "ORIGINATOR": "คคง." } });
    let body = with(body, "example", example);
    let url = configs(&service, "?dry_run=true");
    let (status, tried) = told(send(Method::POST, &url, None, &body).await).await;
    assert_eq!((status, &tried["saved"], &tried["config_id"]), (200, &json!(false), &Value::Null));
    assert_eq!(tried["preview"]["numbers"][0], "D-คคง.-2024-0001", "{tried}");
    let (status, _) = take(&service, "DRY", "d1").await;
    assert_eq!(status, 422);
    let wrong = series("DRY", "{SEQ:99}");
    let (status, _) = told(send(Method::POST, &url, None, &wrong).await).await;
    assert_eq!(status, 422);
    let id = create(&service, &body).await;
    let url = configs(&service, &format!("/{id}?dry_run=true"));
    let next = with(body, "prefix", json!("P"));
    let (status, tried) = told(send(Method::PUT, &url, Some(1), &next).await).await;
    assert_eq!((status, &tried["version"]), (200, &json!(2)), "{tried}");
    let (_, all) = get(&configs(&service, &format!("/{id}/versions"))).await;
    assert_eq!(all["versions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn configs_a_series_that_reads_like_numbers_of_another_scope_is_saved_with_a_warning() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let old = with(series("OLD", "A-{SEQ:4}"), "unique_within", json!(["type"]));
    create(&service, &old).await;
    let (status, taken) = take(&service, "OLD", "d1").await;
    assert_eq!(status, 201, "{taken}");
    let url = configs(&service, "?dry_run=true");
    let look = async |template: &str| {
        let new = series("NEW", template);
        let (status, tried) = told(send(Method::POST, &url, None, &new).await).await;
        assert_eq!(status, 200, "{tried}");
        tried["warnings"].clone()
    };
    assert_eq!(look("B-{SEQ:4}").await, json!([]));
    let warning = "\"A-0001\" of series OLD reads like a number of this series: whoever looks such \
                   a text up is shown both";
    assert_eq!(look("A-{SEQ:4}").await, json!([warning]));
    let file = deployment.path("new.toml");
    let new = "[[series]]\ncode = 'NEW'\nname = 'New'\ntemplate = 'A-{SEQ:4}'\n\
               serves = { types = ['NEW'] }\nserials = [{ counter = ['type'] }]\n";
    std::fs::write(&file, new).unwrap();
    let told = deployment.ok(&["series", "apply", file.to_str().unwrap()]);
    assert_eq!(
        told,
        format!("NEW version 1 saved\n  its next number is A-0001\nwarning: {warning}\n")
    );
}

#[tokio::test]
async fn configs_where_there_are_tokens_nobody_changes_a_series_without_one() {
    let mut deployment = Deployment::embedded();
    let token = deployment.ok(&["token", "create", "admin", "--for-settings", "--json"]);
    let token: Value = serde_json::from_str(&token).unwrap();
    let sha256 = token["sha256"].as_str().unwrap();
    deployment.extra = format!(
        "[[auth.tokens]]\nname = \"admin\"\nsha256 = \"{sha256}\"\nroles = [\"super-admin\"]\n"
    );
    let service = deployment.serve();
    let (url, body) = (configs(&service, ""), series("AUTH", "A-{SEQ:3}"));
    let (status, _) = told(send(Method::POST, &url, None, &body).await).await;
    assert_eq!(status, 401);
    let secret = token["token"].as_str().unwrap();
    let sent = testkit::client().post(&url).bearer_auth(secret).json(&body).send().await.unwrap();
    let (status, saved) = told(sent).await;
    assert_eq!((status, &saved["saved_by"]), (201, &json!("admin")), "{saved}");
    for below in ["/1/activate", "/1/deactivate"] {
        let body = json!({ "reason": "r" });
        let url = configs(&service, below);
        assert_eq!(send(Method::POST, &url, None, &body).await.status(), 401);
    }
    let url = configs(&service, "/1");
    assert_eq!(send(Method::PUT, &url, Some(1), &body).await.status(), 401);
}

#[tokio::test]
async fn configs_a_deactivated_series_serves_nobody_and_its_numbers_stay_found() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("OLD", "O-{SEQ:3}")).await;
    let range = json!({ "type": "OLD", "count": 3 });
    let batches = format!("{}/api/v1/document-numbering/batches", service.url);
    assert_eq!(post(&testkit::client(), &batches, &range).await.0, 201);
    let off = configs(&service, &format!("/{id}/deactivate"));
    let (status, body) =
        told(send(Method::POST, &off, None, &json!({ "reason": "x" })).await).await;
    assert_eq!((status, &body["active"], &body["reason"]), (200, &json!(false), &json!("x")));

    let (status, problem) = take(&service, "OLD", "d1").await;
    assert_eq!((status, &problem["code"]), (422, &"type-not-configured".into()), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("OLD"), "{problem}");
    for number in ["O-001", "O-003"] {
        let url = format!("{}/api/v1/document-numbering/numbers?number={number}", service.url);
        let (status, found) = get(&url).await;
        assert_eq!(status, 200, "{number}: {found}");
    }
    let ids = |(_, list): (u16, Value)| {
        let ids = list["configs"].as_array().unwrap().clone();
        ids.iter().filter_map(|config| config["config_id"].as_i64()).collect::<Vec<_>>()
    };
    assert!(!ids(get(&configs(&service, "")).await).contains(&id));
    assert_eq!(ids(get(&configs(&service, "?active=false")).await), [id]);
    let (status, _) = get(&configs(&service, &format!("/{id}"))).await;
    assert_eq!(status, 200);

    let shown = deployment.ok(&["series", "list", "--inactive"]);
    assert!(shown.contains("OLD") && !shown.contains("SPO"), "{shown}");
    let file = deployment.series_file("OLD", "O-{SEQ:4}", "");
    let applied = deployment.ok(&["series", "apply", &file.display().to_string()]);
    assert!(applied.contains("version 3 saved; not active"), "{applied}");
    deployment.ok(&["series", "activate", "OLD", "--reason", "needed again"]);
    let versions = deployment.ok(&["series", "versions", "OLD"]);
    assert!(versions.contains("needed again") && versions.contains("O-{SEQ:3}"), "{versions}");
    let first = deployment.ok(&["series", "show", "OLD", "--version", "1"]);
    assert!(first.contains("O-{SEQ:3}"), "{first}");
    let since = Instant::now();
    while take(&service, "OLD", "d2").await.0 != 201 {
        assert!(since.elapsed() < PICKED_UP_LIMIT, "the service does not see the command's change");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (_, number) = take(&service, "OLD", "d3").await;
    assert_eq!(number["document_number"], "O-0005", "its counter went on");
    deployment.assert_clean();
}

/// Goal: what a used series refuses would otherwise hand a number out twice, and names the remedy;
/// what it accepts continues without one. Method: both, on Redis, where only the rule is between
/// the counter and the caller.
#[tokio::test]
async fn configs_a_used_series_refuses_what_could_issue_a_number_again() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    let service = deployment.serve();
    let plain = series("USED", "U-{SEQ:4}");
    let id = create(&service, &plain).await;
    assert_eq!(take(&service, "USED", "d1").await.1["document_number"], "U-0001");
    let serial = |serial: Value| with(plain.clone(), "serials", json!([serial]));
    for (wrong, field) in [
        (serial(json!({ "counter": ["type"], "reset": "year" })), "serials[0]"),
        (serial(json!({ "counter": ["type", "project"] })), "serials[0]"),
        (serial(json!({ "counter": [] })), "serials[0]"),
        (with(plain.clone(), "unique_within", json!(["type"])), "unique_within"),
        (with(plain.clone(), "policy", json!("gapless")), "policy"),
    ] {
        let (status, problem) = change(&service, id, 1, &wrong).await;
        assert_eq!((status, &problem["code"]), (409, &"series-in-use".into()), "{problem}");
        assert_eq!(problem["field"], field, "{problem}");
    }
    // With a start that the counter has not reached it would give nothing more.
    let high = serial(json!({ "counter": ["type"], "start": 500 }));
    let (status, problem) = change(&service, id, 1, &high).await;
    let told = (status, problem["code"].as_str(), problem["field"].as_str());
    assert_eq!(told, (409, Some("counter-below-start"), Some("serials[0].start")), "{problem}");
    // Start and step may change: the counter continues above what it has given.
    let mut next = vec!["U-0002", "U-0007", "U-0012", "U-0013", "UY-2024-0001"];
    let yearly = json!({ "counter": ["type"], "reset": "year" });
    let changes = [
        serial(json!({ "counter": ["type"], "start": 2 })),
        serial(json!({ "counter": ["type"], "step": 5 })),
        serial(json!({ "counter": ["type"], "step": 5, "max": 12 })),
        serial(json!({ "counter": ["type"], "start": 1 })),
        with(serial(yearly), "template", json!("UY-{YEAR}-{SEQ:4}")),
    ];
    for (version, body) in (1..).zip(changes) {
        let (status, saved) = change(&service, id, version, &body).await;
        assert_eq!((status, &saved["version"]), (200, &json!(version + 1)), "{saved}");
        let url = format!("{}/api/v1/documents/v{version}/generate-number", service.url);
        let body = json!({ "type": "USED", "date": "2024-03-04" });
        let (_, number) = post(&testkit::client(), &url, &body).await;
        assert_eq!(number["document_number"], next.remove(0), "{number}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}
