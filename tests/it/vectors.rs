//! The vectors of `tests/vectors` through HTTP, on both paths: each request gets its number, or the
//! refusal that it must get, with the field at fault; each range is found by numbers within it. In
//! the long form the embedded ledger is verified afterwards.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::deployment::Deployment;
use crate::load::is_long;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

/// Most numbers of a range whose texts are requested.
const EXPANDED_MAX: u64 = 1_000;

/// How long the journal may take on a busy machine to show what was answered.
const JOURNAL_LIMIT: Duration = Duration::from_secs(60);

/// The files of vectors, as JSON.
fn files() -> Vec<Value> {
    files_in("tests/vectors")
}

fn files_in(folder: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    let read = |path| toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    paths.iter().map(read).collect()
}

/// Imports the tables that the files list, in their order.
fn import(deployment: &Deployment, files: &[Value]) {
    let imports = files.iter().filter_map(|file| file.get("imports")?.as_array()).flatten();
    for import in imports {
        let (table, of) = (import["table"].as_str().unwrap(), import["of"].as_str());
        let header = if of.is_some() { "id,of_id,active" } else { "id,code,active" };
        let fields = |row: &Value| -> Vec<String> {
            row.as_array().unwrap().iter().map(|field| field.as_str().unwrap().into()).collect()
        };
        let rows = import["rows"].as_array().unwrap().iter().map(|row| fields(row).join(","));
        let lines: Vec<String> = [header.to_owned()].into_iter().chain(rows).collect();
        let file = deployment.path("rows.csv");
        std::fs::write(&file, lines.join("\n")).unwrap();
        let file = file.display().to_string();
        let mut command = vec!["reference", "import", &file, "--table", table, "--apply"];
        command.extend(of.into_iter().flat_map(|of| ["--of", of]));
        deployment.ok(&command);
    }
}

/// Imports the tables, and applies the example series and those of the vectors. Vectors are dated
/// at any time.
fn apply(deployment: &Deployment, files: &[Value]) {
    let write = |name: &str, files: &[Value]| {
        let own = files.iter().filter_map(|file| file.get("series")?.as_array());
        let mut series: Vec<Value> = own.flatten().cloned().collect();
        for one in series.iter_mut().filter(|one| one.get("dates").is_none()) {
            one["document_date"] = json!({ "past": "100y", "future": "10y" });
        }
        let file = deployment.path(name);
        std::fs::write(&file, toml::to_string(&json!({ "series": series })).unwrap()).unwrap();
        deployment.apply(&[file]);
    };
    write("examples.toml", &files_in("examples/series"));
    import(deployment, files);
    write("vectors.toml", files);
}

/// The request of a vector: its route, and its body.
fn request(vector: &Value, index: usize) -> (String, Value) {
    let fields = [
        "type",
        "type_id",
        "project",
        "project_id",
        "date",
        "phase",
        "context",
        "recipients",
        "count",
    ];
    let given = fields.iter().filter_map(|name| Some((*name, vector.get(name)?.clone())));
    let mut body: Map<String, Value> =
        given.map(|(name, value)| (name.to_owned(), value)).collect();
    let Some(count) = body.get("count").and_then(Value::as_u64) else {
        return (format!("documents/v{index}/generate-number"), Value::Object(body));
    };
    body.insert("expand".into(), json!(count <= EXPANDED_MAX));
    ("document-numbering/batches".into(), Value::Object(body))
}

/// What is wrong with an answer.
fn flaw(vector: &Value, status: u16, body: &Value, path: &str) -> Option<String> {
    let number = body.get("last_number").or_else(|| body.get("document_number"));
    let right = match vector.get("refused") {
        Some(slug) => body.get("code") == Some(slug) && body.get("field") == vector.get("field"),
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

/// Looks a range up by a number in its middle, if its texts were given, and by its last one.
async fn is_found(client: &reqwest::Client, service: &str, range: &Value) {
    let texts = range["numbers"].as_array().map_or(&[][..], Vec::as_slice);
    for number in texts.get(texts.len() / 2).into_iter().chain([&range["last_number"]]) {
        let mut url = reqwest::Url::parse(service).unwrap();
        url.set_path("/api/v1/document-numbering/numbers");
        url.query_pairs_mut().append_pair("number", number.as_str().unwrap());
        let deadline = Instant::now() + JOURNAL_LIMIT;
        let row = loop {
            let answer = client.get(url.clone()).send().await.unwrap();
            let (status, body) = (answer.status(), answer.json::<Value>().await.unwrap());
            if status == 200 {
                break body["numbers"][0].clone();
            }
            assert!(Instant::now() < deadline, "{number} of {range}: {status} {body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let found_as = if *number == range["first_number"] { "number" } else { "range" };
        assert_eq!(row["found_as"], found_as, "{number}: {row}");
        assert_eq!(row["document_number"], range["first_number"], "{number}: {row}");
        assert_eq!(row["counter_key"], range["counter_key"], "{number}: {row}");
        assert_eq!(row["serials"][0]["last"], range["last"], "{number}: {row}");
    }
}

async fn run(deployment: &Deployment, path: &str) {
    let files = files();
    apply(deployment, &files);
    let service = deployment.serve();
    let client = testkit::client();
    let vectors = files.iter().flat_map(|file| {
        let leads_back = file["leads_back"] == true;
        file["vectors"].as_array().unwrap().iter().map(move |vector| (vector, leads_back))
    });
    let (mut wrong, mut ranges) = (Vec::new(), Vec::new());
    for (index, (vector, leads_back)) in vectors.enumerate() {
        let (route, body) = request(vector, index);
        let (status, answer) =
            post(&client, &format!("{}/api/v1/{route}", service.url), &body).await;
        wrong.extend(flaw(vector, status, &answer, path));
        ranges.extend((leads_back && answer["last_number"].is_string()).then_some(answer));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ranges.len() >= 40, "only {} ranges were taken", ranges.len());
    for range in &ranges {
        is_found(&client, &service.url, range).await;
    }
    assert!(service.terminate());
}

#[tokio::test]
async fn every_vector_comes_out_exactly_on_redis_and_postgres() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    run(&Deployment::new(&postgres.url("vectors"), Some(&redis.url())), "redis").await;
}

#[tokio::test]
async fn every_vector_comes_out_exactly_on_sqlite_alone() {
    let deployment = Deployment::embedded();
    run(&deployment, "database").await;
    // In the long form alone: it renders two million numbers. What it finds in ranges, the contract
    // `verified` checks on both engines.
    if is_long() {
        deployment.assert_clean();
    }
}
