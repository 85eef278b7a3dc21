//! Documents as a caller sees them: all their numbers.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::deployment::Deployment;
use harness::load::post;
use harness::redis::Redis;
use harness::service::Service;

/// Longest wait for the journal, on a machine that is busy with something else.
const JOURNAL_LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// A service with the example series, on Redis and on the ledger alone.
fn services() -> Vec<(Deployment, Service, Option<Redis>)> {
    let redis = Redis::start();
    let on_redis = Deployment::sqlite(Some(&redis.url()));
    let embedded = Deployment::embedded();
    on_redis.apply_examples();
    embedded.apply_examples();
    let (one, other) = (on_redis.serve(), embedded.serve());
    vec![(on_redis, one, Some(redis)), (embedded, other, None)]
}

fn of_document(service: &Service, document: &str, what: &str) -> String {
    format!("{}/api/v1/documents/{document}/{what}", service.url)
}

async fn get(url: &str) -> (StatusCode, Value) {
    let answer = Client::new().get(url).send().await.unwrap();
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
    for (_deployment, service, _redis) in services() {
        let url = of_document(&service, "a%2Fb", "generate-number");
        let mut expected = Vec::new();
        for day in ["2024-01-22", "2024-01-20", "2024-01-21"] {
            let body = json!({ "type": "SPO", "date": day, "again": true });
            let (status, answer) = post(&Client::new(), &url, &body).await;
            assert_eq!(status, 201, "{answer}");
            expected.push(answer["document_number"].clone());
        }
        let numbers = numbers_of(&service, "a%2Fb", 3).await;
        let found = |numbers: &[Value]| -> Vec<Value> {
            numbers.iter().map(|number| number["generated_number"].clone()).collect()
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
