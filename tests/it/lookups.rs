//! Numbers looked up by their text: in every scope that has them, and those that do not exist.

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

const SERIES: &str = "
[[series]]
code = 'SCOPED'
name = 'Scoped'
template = 'S{SEQ:3}'
unique_within = ['project']
serves = { types = ['SCOPED'], projects = ['P1', 'P2', 'P3'] }
serials = [{ counter = ['project'] }]
";

async fn look_up(service: &str, number: &str) -> (u16, Value) {
    let url = format!("{service}/api/v1/document-numbering/numbers/{number}");
    let answer = testkit::client().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn lookups_tell_a_number_of_several_scopes_once_for_each_that_has_it() {
    let deployment = Deployment::embedded();
    let file = deployment.path("scoped.toml");
    std::fs::write(&file, SERIES).unwrap();
    deployment.apply(&[file]);
    let service = deployment.serve();
    let client = testkit::client();
    let batches = format!("{}/api/v1/document-numbering/batches", service.url);
    for project in ["P1", "P2"] {
        let range = json!({ "type": "SCOPED", "project": project, "count": 3 });
        let (status, body) = post(&client, &batches, &range).await;
        assert_eq!(status, 201, "{body}");
    }
    for document in ["d1", "d2"] {
        let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
        let (status, body) =
            post(&client, &url, &json!({ "type": "SCOPED", "project": "P3" })).await;
        assert_eq!(status, 201, "{body}");
    }
    for (number, expected) in [
        ("S001", [("P1", "number"), ("P2", "number"), ("P3", "number")].as_slice()),
        ("S002", &[("P1", "range"), ("P2", "range"), ("P3", "number")]),
        ("S003", &[("P1", "range"), ("P2", "range")]),
        ("S004", &[]),
    ] {
        let (status, body) = look_up(&service.url, number).await;
        assert_eq!((status, &body["issued"]), (200, &json!(!expected.is_empty())), "{body}");
        let rows = body["numbers"].as_array().unwrap().iter();
        let told = rows.map(|row| {
            (
                row["project"].as_str().unwrap().to_owned(),
                row["found_as"].as_str().unwrap().to_owned(),
            )
        });
        let mut told: Vec<(String, String)> = told.collect();
        told.sort();
        let expected = expected.iter().map(|(p, found)| (p.to_string(), found.to_string()));
        assert_eq!(told, expected.collect::<Vec<_>>(), "{number}: {body}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn lookups_of_what_no_series_can_read_say_where_the_nearest_one_expects_something_else() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    for (number, says) in [
        ("SPO-20240122-01", "series SPO comes nearest: character 14: expected serial SEQ"),
        ("SPO-20230229-001", "series SPO comes nearest: character 5: there is no date 2023 02 29"),
    ] {
        let (status, problem) = look_up(&service.url, number).await;
        assert_eq!((status, &problem["code"]), (404, &json!("number-not-found")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{says}: {problem}");
    }
}

/// All pages of a list, as one; the path has a query already.
async fn all_pages(service: &str, path: &str, list: &str, limit: usize) -> Vec<Value> {
    let (client, mut all, mut after) = (testkit::client(), Vec::new(), String::new());
    loop {
        let url = format!("{service}/api/v1/document-numbering/{path}&limit={limit}{after}");
        let answer = client.get(&url).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{url}: {}", answer.text().await.unwrap());
        let body: Value = answer.json().await.unwrap();
        let page = body[list].as_array().unwrap().clone();
        assert!(page.len() == limit || page.len() < limit && body["next"].is_null(), "{body}");
        all.extend(page);
        match body["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return all,
        }
    }
}

/// Goal: rows that share a time do not end a list. Method: an import whose rows all have one time,
/// and pages that are smaller.
#[tokio::test]
async fn rows_that_share_a_time_are_listed_page_by_page_each_once() {
    let (postgres, rows) = (Postgres::start(), 250);
    for deployment in [Deployment::embedded(), Deployment::new(&postgres.url("pages"), None)] {
        deployment.apply_examples();
        let line = |value: u32| format!("SPO-20240122-{value:03},2024-01-22 09:00,ann\n");
        let list: String = (1..=rows).map(line).collect();
        let file = deployment.path("list.csv");
        std::fs::write(&file, format!("number,issued_at,user\n{list}")).unwrap();
        deployment.ok(&["import", &file.display().to_string(), "--apply"]);
        let service = deployment.serve();
        for query in ["user_id=ann", "from=2024-01-01", "until=2024-01-23&user_id=ann"] {
            for limit in [100, 50, 249, 1_000] {
                let path = format!("numbers?{query}");
                let all = all_pages(&service.url, &path, "numbers", limit).await;
                let told: Vec<&str> =
                    all.iter().map(|row| row["document_number"].as_str().unwrap()).collect();
                let expected: Vec<String> =
                    (1..=rows).rev().map(|value| format!("SPO-20240122-{value:03}")).collect();
                assert_eq!(told, expected, "{query}, {limit}");
            }
        }
        for wrong in
            ["after=x", "after=1.2", "after=1.2.3.4", "after=1.2.3&number=SPO-20240122-001"]
        {
            let url =
                format!("{}/api/v1/document-numbering/numbers?user_id=ann&{wrong}", service.url);
            let answer = testkit::client().get(url).send().await.unwrap();
            let problem: Value = answer.json().await.unwrap();
            let told = (&problem["code"], &problem["field"]);
            assert_eq!(told, (&json!("invalid-field"), &json!("after")), "{wrong}: {problem}");
        }
        assert!(service.terminate());
    }
}

#[tokio::test]
async fn a_configuration_is_shown_by_its_code_as_well_as_by_its_id() {
    let deployment = Deployment::embedded();
    // A code of digits alone is an id first.
    let text = SERIES.replace("'SCOPED'", "'1'").replace("'S{SEQ:3}'", "'D{SEQ:3}'");
    let file = deployment.path("digits.toml");
    std::fs::write(&file, text).unwrap();
    deployment.apply_examples();
    deployment.apply(&[file]);
    let service = deployment.serve();
    let show = async |name: &str| -> (u16, Value) {
        let url = format!("{}/api/v1/document-numbering/configs/{name}", service.url);
        let answer = testkit::client().get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    let (status, spo) = show("SPO").await;
    assert_eq!((status, &spo["code"]), (200, &json!("SPO")), "{spo}");
    assert_eq!(show(&spo["config_id"].to_string()).await.1["code"], "SPO");
    let (_, first) = show("1").await;
    assert_eq!(first["config_id"], 1, "an id comes before a code: {first}");
    let (status, versions) = show("SPO/versions").await;
    assert_eq!((status, &versions["versions"][0]["code"]), (200, &json!("SPO")), "{versions}");
    let (status, version) = show("SPO/versions/1").await;
    assert_eq!((status, &version["code"]), (200, &json!("SPO")), "{version}");
    for name in ["NOBODY", "spo", "99999"] {
        let (status, problem) = show(name).await;
        assert_eq!((status, &problem["code"]), (404, &json!("config-not-found")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(name), "{problem}");
    }
    assert!(service.terminate());
}

#[tokio::test]
async fn events_are_listed_by_kind_series_and_time_page_by_page() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in
        [Deployment::embedded(), Deployment::new(&postgres.url("events"), Some(&redis.url()))]
    {
        deployment.apply_examples();
        deployment.ok(&["series", "deactivate", "SPO", "--reason", "a test"]);
        deployment.ok(&["series", "activate", "SPO", "--reason", "a test"]);
        let service = deployment.serve();
        let all = all_pages(&service.url, "events?kind=series-changed", "events", 5).await;
        let ids: std::collections::BTreeSet<String> =
            all.iter().map(|event| event["position"].to_string()).collect();
        assert!(all.len() > 10 && ids.len() == all.len(), "each once: {all:?}");
        assert!(all.iter().all(|event| event["event"] == "series-changed"), "{all:?}");
        let spo = all_pages(&service.url, "events?series=SPO", "events", 1).await;
        let active: Vec<&Value> = spo.iter().map(|event| &event["detail"]["active"]).collect();
        assert_eq!(active, [true, false, true], "{spo:?}");
        let at = spo[1]["at"].as_str().unwrap();
        let from = format!("events?series=SPO&from={at}");
        assert_eq!(all_pages(&service.url, &from, "events", 9).await, spo[..2]);
        let until = format!("events?series=SPO&until={at}");
        assert_eq!(all_pages(&service.url, &until, "events", 9).await, spo[2..]);
        let none = all_pages(&service.url, "events?kind=ledger-restored", "events", 9).await;
        assert!(none.is_empty(), "{none:?}");
        let told = |further: &[&str]| -> Vec<Value> {
            let line = [&["events", "--json", "--series", "SPO"][..], further].concat();
            serde_json::from_str(&deployment.ok(&line)).unwrap()
        };
        let by_command = told(&[]);
        assert_eq!(by_command.len(), 3);
        assert_eq!(told(&["--kind", "series-changed", "--from", at]).len(), 2);
        assert_eq!(told(&["--until", at]), by_command[2..]);
        assert_eq!(told(&["--kind", "recovery"]), [Value::Null; 0]);
        let next = by_command[0]["position"].as_str().unwrap();
        assert_eq!(told(&["--after", next]), by_command[1..]);
        let refused = deployment.run(&["events", "--after", "x"]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let url = format!("{}/api/v1/document-numbering/events?after=1", service.url);
        let problem: Value = testkit::client().get(url).send().await.unwrap().json().await.unwrap();
        assert_eq!(problem["field"], "after", "{problem}");
        assert!(service.terminate());
    }
}

#[tokio::test]
async fn events_of_an_unknown_kind_or_of_a_period_that_ends_before_it_begins_are_refused() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let service = deployment.serve();
    for (query, field, says) in [
        ("kind=series-chnaged", "kind", "series-changed, series-removed"),
        ("kind=", "kind", "recovery"),
        ("from=2026-02-01&until=2026-01-01", "until", "after `from`"),
        ("from=2026-02-01&until=2026-02-01", "until", "2026-02-02"),
    ] {
        let url = format!("{}/api/v1/document-numbering/events?{query}", service.url);
        let answer = testkit::client().get(url).send().await.unwrap();
        let status = answer.status().as_u16();
        let problem: Value = answer.json().await.unwrap();
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{query}: {problem}");
    }
    assert!(service.terminate());
    for (arguments, code, says) in [
        (&["--kind", "series-chnaged"][..], 2, "series-changed, series-removed"),
        (&["--from", "2026-02-01", "--until", "2026-01-01"], 1, "after `from`"),
    ] {
        let refused = deployment.run(&[&["events"], arguments].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{said}");
    }
}
