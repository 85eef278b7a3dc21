//! The vectors of `tests/vectors` through HTTP, on both paths: each request gets its number, or the
//! refusal that it must get, with the field at fault; and the ledger is clean afterwards.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::deployment::Deployment;
use harness::load::post;
use harness::postgres::Postgres;
use harness::redis::Redis;

/// The files, as JSON.
fn files() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    let read = |path| toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    paths.iter().map(read).collect()
}

/// Applies the example series and those of the vectors.
fn apply(deployment: &Deployment, files: &[Value]) {
    deployment.apply_examples();
    let own = files.iter().filter_map(|file| file.get("series"));
    let own: Vec<&Value> = own.flat_map(|series| series.as_array().unwrap()).collect();
    let file = deployment.path("vectors.toml");
    std::fs::write(&file, toml::to_string(&json!({ "series": own })).unwrap()).unwrap();
    deployment.apply(&[file]);
}

/// The request of a vector: where it goes, and its body.
fn request(vector: &Value, index: usize) -> (String, Value) {
    let fields = ["type", "project", "date", "context", "count"];
    let given = fields.iter().filter_map(|name| Some((*name, vector.get(name)?.clone())));
    let body: Map<String, Value> = given.map(|(name, value)| (name.to_owned(), value)).collect();
    let route = match body.contains_key("count") {
        true => "document-numbering/batches".to_owned(),
        false => format!("documents/v{index}/generate-number"),
    };
    (route, Value::Object(body))
}

/// What is wrong with an answer.
fn flaw(vector: &Value, status: u16, body: &Value, path: &str) -> Option<String> {
    let number = body.get("last_number").or_else(|| body.get("document_number"));
    let right = match vector.get("refused") {
        Some(slug) => body.get("type") == Some(slug) && body.get("field") == vector.get("field"),
        None => {
            let key = body["counter_key"].as_object().into_iter().flatten();
            let shown: Vec<String> =
                key.map(|(name, value)| format!("{name}={}", value.as_str().unwrap())).collect();
            let told = vector["counter"].as_str().map(|told| told.split(';').collect::<Vec<_>>());
            let same = |mut told: Vec<&str>| {
                let mut shown: Vec<&str> = shown.iter().map(String::as_str).collect();
                shown.sort_unstable();
                told.sort_unstable();
                shown == told
            };
            let is_issued = status == 201 && body["path"] == path;
            is_issued && number == vector.get("number") && told.is_none_or(same)
        }
    };
    (!right).then(|| format!("{vector}: {status} {body}"))
}

async fn run(deployment: &Deployment, path: &str) {
    let files = files();
    apply(deployment, &files);
    let service = deployment.serve();
    let client = reqwest::Client::new();
    let vectors = files.iter().flat_map(|file| file["vectors"].as_array().unwrap());
    let mut wrong = Vec::new();
    for (index, vector) in vectors.enumerate() {
        let (route, body) = request(vector, index);
        let (status, answer) =
            post(&client, &format!("{}/api/v1/{route}", service.url), &body).await;
        wrong.extend(flaw(vector, status, &answer, path));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(service.terminate());
    assert!(deployment.verify().0);
}

#[tokio::test]
async fn every_vector_comes_out_exactly_on_redis_and_postgres() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    run(&Deployment::new(&postgres.url("vectors"), Some(&redis.url())), "redis").await;
}

#[tokio::test]
async fn every_vector_comes_out_exactly_on_sqlite_alone() {
    run(&Deployment::embedded(), "database").await;
}
