//! Documents as a caller sees them: all their numbers.

use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::deployment::Deployment;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

/// Longest wait for the journal, on a machine that is busy with something else.
const JOURNAL_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Servers that must outlive their service.
type Servers = Option<(Redis, Postgres)>;

/// A service with the example series, on Redis and PostgreSQL, and on a SQLite file alone.
fn services() -> Vec<(Deployment, Service, Servers)> {
    let (redis, postgres) = (Redis::start(), Postgres::start());
    let on_redis = Deployment::new(&postgres.url("documents"), Some(&redis.url()));
    let embedded = Deployment::embedded();
    on_redis.apply_examples();
    embedded.apply_examples();
    let (one, other) = (on_redis.serve(), embedded.serve());
    vec![(on_redis, one, Some((redis, postgres))), (embedded, other, None)]
}

fn of_document(service: &Service, document: &str, what: &str) -> String {
    format!("{}/api/v1/documents/{document}/{what}", service.url)
}

async fn get(url: &str) -> (StatusCode, Value) {
    let answer = testkit::client().get(url).send().await.unwrap();
    (answer.status(), answer.json().await.unwrap())
}

/// The numbers of a document once the journal has so many.
async fn numbers_of(service: &Service, document: &str, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + JOURNAL_LIMIT;
    loop {
        let (status, body) = get(&of_document(service, document, "numbers")).await;
        assert_eq!(status, 200, "{body}");
        let numbers = body["numbers"].as_array().unwrap();
        if numbers.len() >= count {
            return numbers.clone();
        }
        assert!(Instant::now() < deadline, "never journaled: {body}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn all_numbers_of_a_document_are_listed_page_by_page() {
    for (_deployment, service, _servers) in services() {
        let url = of_document(&service, "a%2Fb", "generate-number");
        let mut expected = Vec::new();
        for day in ["2024-01-22", "2024-01-20", "2024-01-21"] {
            let body = json!({ "type": "SPO", "date": day, "again": true });
            let (status, answer) = post(&testkit::client(), &url, &body).await;
            assert_eq!(status, 201, "{answer}");
            expected.push(answer["document_number"].clone());
        }
        let numbers = numbers_of(&service, "a%2Fb", 3).await;
        let found = |numbers: &[Value]| -> Vec<Value> {
            numbers.iter().map(|number| number["document_number"].clone()).collect()
        };
        assert_eq!(found(&numbers), expected);

        let page = |query: String| of_document(&service, "a%2Fb", &format!("numbers?{query}"));
        let (_, first) = get(&page("limit=2".into())).await;
        assert_eq!(found(first["numbers"].as_array().unwrap()), expected[..2]);
        let next = first["next"].as_str().unwrap();
        let (_, second) = get(&page(format!("limit=2&after={next}"))).await;
        assert_eq!(found(second["numbers"].as_array().unwrap()), expected[2..]);
        assert!(second.get("next").is_none(), "{second}");

        let (status, nobody) = get(&of_document(&service, "nobody", "numbers")).await;
        assert_eq!((status, &nobody["numbers"]), (StatusCode::OK, &json!([])));
        for (query, field) in [("limit=0", "limit"), ("limit=101", "limit"), ("after=1", "after")] {
            let (status, problem) = get(&page(query.into())).await;
            assert_eq!(
                (status, &problem["field"]),
                (StatusCode::UNPROCESSABLE_ENTITY, &json!(field))
            );
        }
    }
}

fn rfa(rev: &str) -> Value {
    let context = json!({ "DISCIPLINE": "TER", "RFA_TYPE": "RPT", "REV": rev });
    json!({ "type": "RFA", "project": "LCBP3-C2", "date": "2025-12-02", "context": context })
}

#[tokio::test]
async fn a_revision_shows_the_serial_of_its_document_with_another_label() {
    for (deployment, service, _servers) in services() {
        let client = testkit::client();
        let generate = of_document(&service, "d1", "generate-number");
        let (_, issued) = post(&client, &generate, &rfa("A")).await;
        assert_eq!(issued["document_number"], "LCBP3-C2-RFA-TER-RPT-0001-A");
        // Immediately, whether the journal has the number yet or not.
        let revisions = of_document(&service, "d1", "revisions");
        let wanted = json!({ "rev": "B", "reason": "reviewed" });
        let (status, revised) = post(&client, &revisions, &wanted).await;
        assert_eq!(status, 201, "{revised}");
        assert_eq!(revised["document_number"], "LCBP3-C2-RFA-TER-RPT-0001-B");
        assert_eq!(revised["revision_of"], issued["document_number"]);
        assert_eq!(revised["serials"], issued["serials"]);
        assert_eq!(revised["counter_key"], issued["counter_key"]);
        let (status, again) = post(&client, &revisions, &json!({ "rev": "B" })).await;
        assert_eq!((status, &again["replayed"]), (200, &json!(true)));
        assert_eq!(again["revised_at"], revised["revised_at"]);
        let (status, first) = post(&client, &revisions, &json!({ "rev": "A" })).await;
        assert_eq!((status, &first["document_number"]), (200, &issued["document_number"]));
        let printed = deployment.ok(&["revise", "d1", "C"]);
        assert_eq!(printed, "LCBP3-C2-RFA-TER-RPT-0001-C\n");

        // Nothing was taken, and the document still has one number.
        let (status, replay) = post(&client, &generate, &rfa("A")).await;
        assert_eq!((status, &replay["document_number"]), (200, &issued["document_number"]));
        let (_, next) =
            post(&client, &of_document(&service, "d2", "generate-number"), &rfa("A")).await;
        assert_eq!(next["document_number"], "LCBP3-C2-RFA-TER-RPT-0002-A");
        let numbers = numbers_of(&service, "d1", 1).await;
        let labels: Vec<_> = numbers[0]["revisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|revision| (revision["rev"].clone(), revision["reason"].clone()))
            .collect();
        assert_eq!(labels, [(json!("B"), json!("reviewed")), (json!("C"), Value::Null)]);
        assert!(service.terminate());
        let report = deployment.assert_clean();
        assert_eq!(
            (&report["totals"]["journal"], &report["totals"]["revisions"]),
            (&json!(2), &json!(2))
        );
    }
}

#[tokio::test]
async fn a_revision_that_cannot_be_is_refused_with_the_reason() {
    for (_deployment, service, _servers) in services() {
        let client = testkit::client();
        let generate = of_document(&service, "d1", "generate-number");
        let revisions = of_document(&service, "d1", "revisions");
        post(&client, &generate, &rfa("A")).await;
        let spo = json!({ "type": "SPO", "date": "2024-01-22" });
        post(&client, &generate, &spo).await;
        numbers_of(&service, "d1", 2).await;
        for (body, slug, field) in [
            (json!({ "rev": "B" }), "invalid-field", "number"),
            (json!({ "rev": "B", "series": "NONE" }), "invalid-field", "series"),
            (json!({ "rev": "B", "series": "SPO" }), "invalid-field", "rev"),
            (json!({ "rev": "", "series": "RFA" }), "missing-variable", "rev"),
            (json!({ "rev": "B\u{1}", "series": "RFA" }), "wrong-alphabet", "rev"),
            (json!({ "rev": "B", "number": "a\u{0}" }), "invalid-field", "number"),
            (json!({ "series": "RFA" }), "invalid-field", "rev"),
        ] {
            let (status, problem) = post(&client, &revisions, &body).await;
            assert_eq!((status, &problem["code"]), (422, &json!(slug)), "{body}: {problem}");
            assert_eq!(
                (&problem["field"], &problem["number_taken"]),
                (&json!(field), &json!("no"))
            );
        }
        let by_number = json!({ "rev": "B", "number": "LCBP3-C2-RFA-TER-RPT-0001-A" });
        let (status, revised) = post(&client, &revisions, &by_number).await;
        assert_eq!(status, 201, "{revised}");
        let by_series = json!({ "rev": "B", "series": "RFA" });
        assert_eq!(post(&client, &revisions, &by_series).await.0, 200);
        let nobody = of_document(&service, "nobody", "revisions");
        let (status, problem) = post(&client, &nobody, &json!({ "rev": "B" })).await;
        assert_eq!((status, &problem["code"]), (404, &json!("document-not-numbered")));
        assert_eq!(problem["retryable"], true);
    }
}

#[tokio::test]
async fn a_number_tells_what_it_is_and_whether_it_was_issued() {
    for (_deployment, service, _servers) in services() {
        let client = testkit::client();
        let look_up =
            |number: &str| format!("{}/api/v1/document-numbering/numbers/{number}", service.url);
        let (status, unissued) = get(&look_up("SPO-20240122-001")).await;
        assert_eq!((status, &unissued["issued"]), (StatusCode::OK, &json!(false)), "{unissued}");
        let spo = &unissued["candidates"][0];
        assert_eq!(
            (&spo["code"], &spo["types"], &spo["date"]),
            (&json!("SPO"), &json!(["SPO"]), &json!("2024-01-22"))
        );
        assert_eq!(spo["serials"], json!([{ "name": "SEQ", "value": "1" }]));
        let (status, problem) = get(&look_up("nobody%2Fs")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("number-not-found")));

        post(&client, &of_document(&service, "d1", "generate-number"), &rfa("A")).await;
        let revisions = of_document(&service, "d1", "revisions");
        assert_eq!(post(&client, &revisions, &json!({ "rev": "B" })).await.0, 201);
        for (label, found_as) in [("A", "number"), ("B", "revision")] {
            let number = format!("LCBP3-C2-RFA-TER-RPT-0001-{label}");
            let (_, found) = get(&look_up(&number)).await;
            let by_query = format!("{}?number={number}", look_up("").trim_end_matches('/'));
            let (_, listed) = get(&by_query).await;
            assert_eq!(found["numbers"], listed["numbers"]);
            assert_eq!(found["candidates"], listed["candidates"]);
            assert_eq!(found["issued"], true, "{found}");
            let row = &found["numbers"][0];
            assert_eq!((&row["found_as"], &row["document_id"]), (&json!(found_as), &json!("d1")));
            assert_eq!(row["revisions"][0]["document_number"], "LCBP3-C2-RFA-TER-RPT-0001-B");
            assert_eq!(found["candidates"][0]["variables"]["REV"], label, "{found}");
        }
        let range = json!({ "type": "SPO", "date": "2024-01-22", "count": 3 });
        let batches = format!("{}/api/v1/document-numbering/batches", service.url);
        assert_eq!(post(&client, &batches, &range).await.0, 201);
        let deadline = Instant::now() + JOURNAL_LIMIT;
        let within = loop {
            let (_, found) = get(&look_up("SPO-20240122-002")).await;
            if found["issued"] == true {
                break found;
            }
            assert!(Instant::now() < deadline, "never journaled: {found}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert_eq!(within["numbers"][0]["found_as"], "range");
        assert_eq!(within["numbers"][0]["document_number"], "SPO-20240122-001");
    }
}

#[tokio::test]
async fn chronology_and_closed_periods_refuse_a_date_and_take_nothing() {
    for (deployment, service, _servers) in services() {
        let settings = "policy = \"gapless\"\nchronology = true\nclosed_before = \"2024-01-01\"";
        let file = deployment.series_file("CHRON", "C-{DATE:yyyyMMdd}-{SEQ:4}", settings);
        deployment.apply(&[file]);
        let client = testkit::client();
        let take = async |document: &str, date: &str| {
            let body = json!({ "type": "CHRON", "date": date });
            post(&client, &of_document(&service, document, "generate-number"), &body).await
        };
        let refused = |(status, problem): (u16, Value), slug: &str, named: &str| {
            assert_eq!((status, &problem["code"]), (422, &json!(slug)), "{problem}");
            assert_eq!(
                (&problem["field"], &problem["number_taken"]),
                (&json!("date"), &json!("no"))
            );
            assert!(problem["detail"].as_str().unwrap().contains(named), "{problem}");
        };
        let deadline = Instant::now() + JOURNAL_LIMIT;
        let first = loop {
            // A changed series is picked up within a second.
            let (status, body) = take("d1", "2024-02-02").await;
            if status == 201 {
                break body;
            }
            assert!(body["code"] == "unknown-type" && Instant::now() < deadline, "{body}");
        };
        assert_eq!(first["document_number"], "C-20240202-0001");
        refused(take("d2", "2024-02-01").await, "date-before-last", "2024-02-02");
        refused(take("d2", "2023-12-31").await, "period-closed", "2024-01-01");
        let preview = format!("{}/api/v1/document-numbering/preview", service.url);
        for (date, slug) in [("2024-02-01", "date-before-last"), ("2023-12-31", "period-closed")] {
            let body = json!({ "type": "CHRON", "date": date });
            refused(post(&client, &preview, &body).await, slug, "date");
        }
        let (status, second) = take("d2", "2024-02-03").await;
        assert_eq!((status, &second["document_number"]), (201, &json!("C-20240203-0002")));
        let (status, replay) = take("d1", "2024-02-02").await;
        assert_eq!((status, &replay["document_number"]), (200, &first["document_number"]));
        deployment.assert_clean();
    }
}

#[test]
fn chronology_needs_the_policy_that_can_keep_it_and_a_period_is_closed_by_command() {
    let deployment = Deployment::embedded();
    let file = deployment.series_file("CHRON", "C-{SEQ:4}", "chronology = true");
    let output = deployment.run(&["series", "apply", &file.display().to_string()]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("policy = \"gapless\""), "{error}");
    let file = deployment.series_file("CHRON", "C-{SEQ:4}", "");
    deployment.apply(&[file]);
    let close = |before: &str| {
        let arguments =
            ["series", "close-period", "CHRON", "--before", before, "--reason", "audit"];
        let output = deployment.run(&arguments);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let before = ["next", "CHRON", "--date", "2024-12-31", "--document", "D"];
    assert_eq!(deployment.ok(&before), "C-0001\n");
    assert!(close("2025-01-01").0);
    assert_eq!(deployment.ok(&before), "C-0001\n", "it has its number");
    assert!(deployment.ok(&["series", "show", "CHRON"]).contains("closed_before = \"2025-01-01\""));
    let output = deployment.run(&["next", "CHRON", "--date", "2024-12-31"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("period-closed"));
    assert_eq!(deployment.ok(&["next", "CHRON", "--date", "2025-01-01"]), "C-0002\n");
    for (before, why) in [
        ("2024-06-01", "closed before 2025-01-01"),
        ("2025-13-01", "closed_before"),
        ("2569-01-01", "write 2026 for B.E. 2569"),
    ] {
        let (done, error) = close(before);
        assert!(!done && error.contains(why), "{before}: {error}");
    }
}

#[tokio::test]
async fn chronology_holds_over_two_nodes_that_take_at_once() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("chronology"), None);
    let settings = "policy = \"gapless\"\nchronology = true";
    let file = deployment.series_file("CHRON", "C-{DATE:yyyyMMdd}-{SEQ:4}", settings);
    deployment.apply(&[file]);
    let nodes = [deployment.serve(), deployment.serve()];
    let mut callers = Vec::new();
    for caller in 0..8_usize {
        let url = nodes[caller % 2].url.clone();
        callers.push(tokio::spawn(async move {
            let client = testkit::client();
            let mut numbers = Vec::new();
            for round in 0..15_usize {
                // Days in an order of each caller's own.
                let day = 1 + (round * 11 + caller * 5) % 28;
                let body = json!({ "type": "CHRON", "date": format!("2024-02-{day:02}") });
                let document = format!("{url}/api/v1/documents/{caller}-{round}/generate-number");
                let (status, answer) = post(&client, &document, &body).await;
                if status == 201 {
                    numbers.push(answer["document_number"].as_str().unwrap().to_owned());
                } else {
                    assert_eq!(answer["code"], "date-before-last", "{answer}");
                }
            }
            numbers
        }));
    }
    let mut numbers = Vec::new();
    for caller in callers {
        numbers.extend(caller.await.unwrap());
    }
    // In the order of their serials, and then dates follow each other.
    numbers.sort_by_key(|number| number[number.len() - 4..].to_owned());
    assert!(!numbers.is_empty() && numbers.is_sorted(), "{numbers:?}");
    assert!(nodes.into_iter().all(Service::terminate));
    deployment.assert_clean();
}
