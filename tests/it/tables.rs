//! Reference data over HTTP: read page by page, changed by the rules of the import.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::service::Service;

fn reference(service: &Service, below: &str) -> String {
    format!("{}/api/v1/document-numbering/reference{below}", service.url)
}

async fn get(service: &Service, below: &str) -> (u16, Value) {
    let answer = testkit::client().get(reference(service, below)).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn post(service: &Service, below: &str, tag: Option<&str>, body: &Value) -> (u16, Value) {
    let request = testkit::client().request(Method::POST, reference(service, below)).json(body);
    let request = match tag {
        Some(tag) => request.header("If-Match", tag),
        None => request,
    };
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn tag(answer: &Response) -> String {
    answer.headers()["etag"].to_str().unwrap().to_owned()
}

/// The words for the outcomes of rows and memberships.
fn effects(answer: &Value) -> Vec<&str> {
    let rows = answer["rows"].as_array().unwrap().iter();
    let all = rows.chain(answer["memberships"].as_array().unwrap());
    all.map(|one| one["effect"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn tables_are_read_page_by_page_and_changed_by_the_rules_of_an_import() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    assert_eq!(get(&service, "/orgs").await.1["code"], "table-not-found");
    let row = |id: &str, code: &str| json!({ "id": id, "code": code });
    let orgs = json!({ "rows": [row("1", "A"), row("2", "B"), row("3", "C")], "reason": "new" });
    let (status, tried) = post(&service, "/orgs?dry_run=true", None, &orgs).await;
    assert_eq!((status, &tried["saved"], effects(&tried)), (200, &json!(false), vec!["added"; 3]));
    assert_eq!(get(&service, "/orgs").await.0, 404, "nothing is saved");
    let (status, saved) = post(&service, "/orgs", None, &orgs).await;
    assert_eq!((status, &saved["saved"]), (200, &json!(true)), "{saved}");
    let (_, same) = post(&service, "/orgs", None, &orgs).await;
    assert_eq!((&same["saved"], effects(&same)), (&json!(false), vec!["unchanged"; 3]));

    let (_, first) = get(&service, "/orgs?limit=2").await;
    assert_eq!((&first["rows"][0]["code"], &first["next"]), (&json!("A"), &json!("2")), "{first}");
    let (_, rest) = get(&service, "/orgs?limit=2&after=2").await;
    assert_eq!((rest["rows"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    let (_, tables) = get(&service, "").await;
    let known = json!({ "table": "orgs", "rows": 3, "active": 3 });
    assert!(tables["tables"].as_array().unwrap().contains(&known), "{tables}");

    let read = testkit::client().get(reference(&service, "/orgs")).send().await.unwrap();
    let before = tag(&read);
    let again = testkit::client().get(reference(&service, "/orgs"));
    let again = again.header("If-None-Match", &before).send().await.unwrap();
    assert_eq!(again.status(), 304);
    let renamed = json!({ "rows": [row("1", "A2")], "reason": "renamed" });
    let (status, saved) = post(&service, "/orgs", Some(&before), &renamed).await;
    assert_eq!(
        (status, effects(&saved), &saved["rows"][0]["from"]),
        (200, vec!["renamed"], &json!("A"))
    );
    let (_, by_former) = get(&service, "/orgs?code=A").await;
    assert_eq!(by_former["rows"][0]["former_codes"], json!(["A"]), "{by_former}");
    // A change based on an earlier read builds on what no longer exists; another table is another.
    for below in ["/orgs", "/orgs?dry_run=true"] {
        let (status, told) = post(&service, below, Some(&before), &renamed).await;
        assert_eq!(
            (status, &told["code"], &told["field"]),
            (409, &"version-conflict".into(), &"If-Match".into())
        );
    }
    let other = json!({ "rows": [row("9", "P")], "reason": "new" });
    assert_eq!(post(&service, "/plans", Some(&before), &other).await.0, 200);

    let joins = json!({ "id": "1", "of_table": "plans", "of_id": "9" });
    let member = json!({ "memberships": [joins], "reason": "joins" });
    let (status, joined) = post(&service, "/orgs", None, &member).await;
    assert_eq!((status, effects(&joined)), (200, vec!["added"]), "{joined}");
    let (_, list) = get(&service, "/orgs/memberships?of_id=9").await;
    let expected = json!([{ "id": "1", "of_table": "plans", "of_id": "9", "active": true }]);
    assert_eq!(list["memberships"], expected, "{list}");

    // What the import refuses: a code of another row forever, an id twice, nothing at all.
    for (body, says) in [
        (json!({ "rows": [row("2", "A")], "reason": "x" }), "belongs to id 1"),
        (json!({ "rows": [row("4", "D"), row("4", "E")], "reason": "x" }), "row 2: id 4"),
        (json!({ "reason": "x" }), "1 to 10000 rows"),
        (json!({ "rows": [row("4 4", "D")], "reason": "x" }), "row 1"),
        (json!({ "rows": [row("4", "D")], "reason": "" }), "say why"),
    ] {
        for below in ["/orgs", "/orgs?dry_run=true"] {
            let (status, told) = post(&service, below, None, &body).await;
            assert_eq!((status, &told["code"]), (422, &json!("invalid-field")), "{told}");
            assert!(told["detail"].as_str().unwrap().contains(says), "{says}: {told}");
        }
    }
    deployment.assert_clean();
}
