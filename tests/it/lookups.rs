//! Numbers looked up by their text: in every scope that has them, and those that nobody has.

use harness::load::post;
use reqwest::Client;
use serde_json::{Value, json};

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
    let answer = Client::new().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn lookups_tell_a_number_of_several_scopes_once_for_each_that_has_it() {
    let deployment = Deployment::embedded();
    let file = deployment.path("scoped.toml");
    std::fs::write(&file, SERIES).unwrap();
    deployment.apply(&[file]);
    let service = deployment.serve();
    let client = Client::new();
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
