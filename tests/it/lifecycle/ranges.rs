//! Numbers of ranges: a document on one of them, and what a range did not use.

use serde_json::{Value, json};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{Desk, REASON, apply, deployments};
use crate::deployment::Deployment;

const ASSIGN: &str = "document-numbering/numbers/assign";
const VOID: &str = "document-numbering/numbers/void";

/// Takes a range of five numbers of a type.
async fn range(desk: &Desk<'_>, kind: &str) {
    let body = json!({ "type": kind, "count": 5 });
    let (status, body) = desk.call("document-numbering/batches", &body).await;
    assert_eq!(status, 201, "{body}");
}

async fn assign(desk: &Desk<'_>, number: &str, document: &str) -> (u16, Value) {
    desk.call(ASSIGN, &json!({ "number": number, "document_id": document })).await
}

async fn generate(desk: &Desk<'_>, kind: &str, document: &str) -> (u16, Value) {
    desk.call(&format!("documents/{document}/generate-number"), &json!({ "type": kind })).await
}

/// Goal: a document of a range gets no second number where its series numbers documents once,
/// although Redis takes the numbers and knows nothing of it; and elsewhere the answer says that it
/// may.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_a_range_gets_no_second_number_from_redis() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "ranges") {
        apply(&deployment, "ROLL", "ROLL-{SEQ:4}");
        deployment.apply(&[deployment.series_file("FREE", "FREE-{SEQ:4}", "")]);
        let service = deployment.serve();
        let desk = Desk::of(&service);
        range(&desk, "ROLL").await;
        once(&desk).await;
        unused(&desk).await;
        range(&desk, "FREE").await;
        let (status, body) = assign(&desk, "FREE-0002", "free").await;
        assert_eq!((status, &body["numbered_once"]), (201, &json!(false)), "{body}");
        let (status, body) = generate(&desk, "FREE", "free").await;
        assert_eq!((status, &body["document_number"]), (201, &json!("FREE-0006")), "{body}");
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// A number of a range that was assigned, for every caller.
async fn once(desk: &Desk<'_>) {
    // Redis took it for the document, and the journal may not have it yet.
    let (status, body) = generate(desk, "ROLL", "numbered").await;
    assert_eq!(status, 201, "{body}");
    let (status, body) = assign(desk, "ROLL-0003", "numbered").await;
    let said = (status, &body["code"], &body["document_number"]);
    let expected = (409, &json!("document-already-numbered"), &json!("ROLL-0006"));
    assert_eq!(said, expected, "{body}");
    for (status, replayed) in [(201, false), (200, true)] {
        let (found, body) = assign(desk, "ROLL-0002", "sheet").await;
        assert_eq!((found, &body["replayed"]), (status, &json!(replayed)), "{body}");
        assert_eq!(body["numbered_once"], true, "{body}");
    }
    let (status, body) = assign(desk, "ROLL-0002", "another").await;
    assert_eq!((status, &body["code"]), (409, &json!("other-document")), "{body}");
    assert!(body["detail"].as_str().unwrap().contains("assigned to sheet"), "{body}");
    let (status, body) = generate(desk, "ROLL", "sheet").await;
    let said = (status, &body["code"], &body["document_number"]);
    let expected = (409, &json!("document-already-numbered"), &json!("ROLL-0002"));
    assert_eq!(said, expected, "{body}");
    let row = desk.rows("ROLL-0002").await.remove(0);
    assert_eq!(row["assigned"]["document_id"], "sheet", "{row}");
    let row = desk.rows("ROLL-0001").await.remove(0);
    assert_eq!((&row["assigned"], &row["assigned_count"]), (&Value::Null, &json!(1)), "{row}");
    assert_eq!(row["assigned_numbers"][0]["document_number"], "ROLL-0002", "{row}");
    let url = format!("{}/api/v1/documents/sheet/numbers", desk.service.url);
    let body: Value = testkit::client().get(url).send().await.unwrap().json().await.unwrap();
    let row = &body["numbers"][0];
    assert_eq!(row["assigned"]["document_number"], "ROLL-0002", "{body}");
}

/// What the range did not use.
async fn unused(desk: &Desk<'_>) {
    let body = json!({ "number": "ROLL-0002", "reason": REASON, "unused": true });
    for replayed in [false, true] {
        let (status, told) = desk.call(VOID, &body).await;
        let said = (status, &told["void_count"], &told["left"], &told["replayed"]);
        assert_eq!(said, (200, &json!(4), &json!(0), &json!(replayed)), "{told}");
        let numbers = json!(["ROLL-0001", "ROLL-0003", "ROLL-0004", "ROLL-0005"]);
        assert_eq!(told["void_numbers"], numbers, "{told}");
    }
    // Another reason voids nothing, and repeats nothing.
    let body = json!({ "number": "ROLL-0002", "reason": "another reason", "unused": true });
    let (status, told) = desk.call(VOID, &body).await;
    let said = (status, &told["void_count"], &told["left"], &told["replayed"]);
    assert_eq!(said, (200, &json!(0), &json!(0), &json!(false)), "{told}");
    let (status, told) = assign(desk, "ROLL-0003", "late").await;
    assert_eq!((status, &told["code"]), (409, &json!("number-voided")), "{told}");
    assert_eq!(desk.rows("ROLL-0002").await[0]["status"], "issued");
}

/// Goal: the document of a void number of a range gets the number in its place, although its series
/// numbers it once; the void may be named by that document.
#[tokio::test(flavor = "multi_thread")]
async fn a_void_number_of_a_range_is_replaced_for_its_document() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "range_places") {
        apply(&deployment, "ROLL", "ROLL-{SEQ:4}");
        let service = deployment.serve();
        let desk = Desk::of(&service);
        range(&desk, "ROLL").await;
        let (status, body) = assign(&desk, "ROLL-0002", "sheet").await;
        assert_eq!(status, 201, "{body}");
        let void = |document: &str| {
            let number = "ROLL-0002";
            json!({ "number": number, "document_id": document, "reason": REASON })
        };
        let (status, body) = desk.call(VOID, &void("another")).await;
        assert_eq!((status, &body["code"]), (404, &json!("number-not-found")), "{body}");
        let (status, body) = desk.call(VOID, &void("sheet")).await;
        assert_eq!((status, &body["document_id"]), (200, &json!("sheet")), "{body}");
        let place = json!({ "type": "ROLL", "replaces": "ROLL-0002" });
        let path = "documents/sheet/generate-number";
        for status in [201, 200] {
            let (found, body) = desk.call(path, &place).await;
            let said = (found, &body["document_number"]);
            assert_eq!(said, (status, &json!("ROLL-0006")), "{body}");
        }
        let (status, body) = generate(&desk, "ROLL", "sheet").await;
        let said = (status, &body["code"], &body["document_number"]);
        let expected = (409, &json!("document-already-numbered"), &json!("ROLL-0006"));
        assert_eq!(said, expected, "{body}");
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// The same by commands.
#[tokio::test]
async fn commands_replace_a_number_of_a_range_for_its_document() {
    let deployment = Deployment::embedded();
    apply(&deployment, "ROLL", "ROLL-{SEQ:4}");
    deployment.ok(&["next", "ROLL", "--date", "2024-01-22", "--count", "3"]);
    for (number, document) in [("ROLL-0001", "one"), ("ROLL-0002", "two")] {
        deployment.ok(&["assign", number, "--document", document]);
    }
    let void = |number: &str, more: &[&str]| {
        let void = ["void", number, "--reason", "torn in the field"];
        deployment.ok(&[&void[..], more].concat()).trim().to_owned()
    };
    let found = deployment.ok(&["find", "--number", "ROLL-0002"]);
    let (shown, document) = (found.contains("ROLL-0002 of ROLL-0001 and 2 more"), " two ");
    assert!(shown && found.contains(document), "{found}");
    assert_eq!(void("ROLL-0001", &["--replace"]), "ROLL-0004");
    void("ROLL-0002", &["--document", "two"]);
    let next = ["next", "ROLL", "--date", "2024-01-22", "--replaces", "ROLL-0002"];
    assert_eq!(deployment.ok(&next).trim(), "ROLL-0005");
    for (number, document) in [("ROLL-0004", "one"), ("ROLL-0005", "two")] {
        let found = deployment.ok(&["find", "--number", number, "--json"]).replace(' ', "");
        assert!(found.contains(&format!("\"document_id\":\"{document}\"")), "{found}");
    }
    deployment.assert_clean();
}

/// Goal: assignments at once share a loan of their partition, and none is refused for it.
#[tokio::test(flavor = "multi_thread")]
async fn assignments_at_once_do_not_refuse_each_other() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("shared"), Some(&redis.url()));
    apply(&deployment, "ROLL", "ROLL-{SEQ:4}");
    let service = deployment.serve();
    let desk = Desk::of(&service);
    range(&desk, "ROLL").await;
    desk.rows("ROLL-0001").await;
    let assigning = (1..=3).map(|value| {
        let (number, document) = (format!("ROLL-000{value}"), format!("sheet-{value}"));
        let desk = &desk;
        async move { assign(desk, &number, &document).await }
    });
    for (status, body) in futures_util::future::join_all(assigning).await {
        assert_eq!(status, 201, "{body}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// A document with a number of its own is revised by that, whatever ranges have numbers for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_revised_by_its_own_number_beside_one_of_a_range() {
    let deployment = Deployment::embedded();
    let revised = "variables = { REV = { default = 'A' } }\n";
    deployment.apply(&[deployment.series_file("FREE", "FREE-{SEQ:4}-{REV}", revised)]);
    let service = deployment.serve();
    let desk = Desk::of(&service);
    range(&desk, "FREE").await;
    assert_eq!(assign(&desk, "FREE-0002-A", "plan").await.0, 201);
    let (status, body) = desk.call("documents/plan/revisions", &json!({ "rev": "B" })).await;
    assert_eq!((status, &body["code"]), (404, &json!("document-not-numbered")), "{body}");
    assert_eq!(generate(&desk, "FREE", "plan").await.0, 201);
    let (status, body) = desk.call("documents/plan/revisions", &json!({ "rev": "B" })).await;
    assert_eq!((status, &body["document_number"]), (201, &json!("FREE-0006-B")), "{body}");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// An export names every assigned number of a range; an import of it says that they are left out.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_names_all_assigned_numbers_of_a_range() {
    let [deployment, other] = [Deployment::embedded(), Deployment::embedded()];
    for deployment in [&deployment, &other] {
        deployment.apply(&[deployment.series_file("FREE", "FREE-{SEQ:4}", "")]);
    }
    let service = deployment.serve();
    let desk = Desk::of(&service);
    let body = json!({ "type": "FREE", "count": 120 });
    assert_eq!(desk.call("document-numbering/batches", &body).await.0, 201);
    for value in 1..=105 {
        let (status, body) = assign(&desk, &format!("FREE-{value:04}"), &format!("d{value}")).await;
        assert_eq!(status, 201, "{body}");
    }
    assert!(service.terminate());
    let row: Value =
        serde_json::from_str(&deployment.ok(&["export", "--format", "jsonl"])).unwrap();
    let named = row["assigned_numbers"].as_array().map(Vec::len);
    assert_eq!((named, &row["assigned_count"]), (Some(105), &json!(105)), "{row}");
    let list = other.path("list.csv").display().to_string();
    deployment.ok(&["export", "--counters", "--to", &list]);
    let report: Value = serde_json::from_str(&other.ok(&["import", &list, "--json"])).unwrap();
    assert_eq!((&report["numbers"], &report["assigned"]), (&json!(120), &json!(105)), "{report}");
}
