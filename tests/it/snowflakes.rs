//! `{SNOWFLAKE}` on real servers: no id comes twice, whichever node draws it and whatever happens
//! to that node.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use numbering::{Series, Snowflake, read_series};
use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for what a test waits for.
const LIMIT: Duration = Duration::from_secs(30);

const SERIES: &str = "[[series]]\ncode = \"ID\"\nname = \"ID\"\ntemplate = \"ID-{SNOWFLAKE}\"\n\
                      serves = { types = [\"ID\"] }\n";

fn series_file(deployment: &Deployment) -> PathBuf {
    let file = deployment.path("ids.toml");
    std::fs::write(&file, SERIES).unwrap();
    file
}

/// The id of a number, as the series itself reads it.
fn id_of(series: &Series, number: &str) -> Snowflake {
    series.parse(number).unwrap().snowflake.unwrap()
}

fn series() -> Series {
    Series::compile(read_series(SERIES).unwrap().remove(0)).unwrap()
}

async fn take(client: &reqwest::Client, url: &str, document: &str) -> (u16, Value) {
    let route = format!("{url}/api/v1/documents/{document}/generate-number");
    post(client, &route, &json!({ "type": "ID" })).await
}

/// Asks for the number of a document until there is one.
async fn number(node: &Service, document: &str) -> String {
    let (client, deadline) = (testkit::client(), Instant::now() + LIMIT);
    loop {
        let (status, body) = take(&client, &node.url, document).await;
        if status == 201 {
            return body["document_number"].as_str().unwrap().to_owned();
        }
        assert!(Instant::now() < deadline, "no number: {status} {body}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snowflakes_of_two_nodes_and_64_connections_are_all_different() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("ids"), Some(&redis.url()));
    deployment.apply(&[series_file(&deployment)]);
    let nodes = [deployment.serve(), deployment.serve()];
    let mut callers = Vec::new();
    for caller in 0..64_u32 {
        let url = nodes[caller as usize % 2].url.clone();
        callers.push(tokio::spawn(async move {
            let (client, mut numbers) = (testkit::client(), Vec::new());
            for index in (caller..5_000).step_by(64) {
                let (status, body) = take(&client, &url, &format!("d{index}")).await;
                assert_eq!(status, 201, "{body}");
                numbers.push(body["document_number"].as_str().unwrap().to_owned());
            }
            numbers
        }));
    }
    let (series, mut ids, mut node_numbers) = (series(), BTreeSet::new(), BTreeSet::new());
    for caller in callers {
        let mut last = None;
        for number in caller.await.unwrap() {
            let id = id_of(&series, &number);
            assert!(last < Some(id), "ids of one node rise: {last:?} {id}");
            assert!(ids.insert(id), "{id} twice");
            last = Some(id);
            node_numbers.insert(id.node_number());
        }
    }
    assert_eq!((ids.len(), node_numbers.len()), (5_000, 2));
    let (_, status) = deployment.status(&["--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let told = status["nodes"].as_array().unwrap().iter().map(|node| &node["node_number"]);
    let told: BTreeSet<u64> = told.filter_map(Value::as_u64).collect();
    assert_eq!(told, node_numbers.into_iter().map(u64::from).collect(), "{status}");
    let first = ids.first().unwrap();
    let route = format!("{}/api/v1/document-numbering/numbers/ID-{first}", nodes[0].url);
    let told: Value = testkit::get(route).await.unwrap().json().await.unwrap();
    let shown = json!({
        "id": first.to_string(), "time": first.time().to_string(),
        "node_number": first.node_number(), "serial": first.serial(),
    });
    assert_eq!((&told["issued"], &told["candidates"][0]["snowflake"]), (&json!(true), &shown));
    for node in nodes {
        assert!(node.terminate());
    }
    deployment.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn snowflakes_of_a_node_that_slept_and_of_who_took_its_number_over_are_all_different() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("ids"), None);
    deployment.extra = "[node]\nttl = \"1s\"\n\
                        [snowflake]\nlease = \"2s\"\n"
        .into();
    deployment.apply(&[series_file(&deployment)]);
    let (series, mut ids) = (series(), BTreeSet::new());
    let sleeper = deployment.serve();
    let first = id_of(&series, &number(&sleeper, "first").await);
    ids.insert(first);
    let heir = deployment.serve();
    // The number of the sleeper is the only one that the successor can get.
    let holders = "update ids.snowflake_lease set holder = (select node_id from ids.node \
                   where left_at_us is null and adopted_at_us is null and node_id not in \
                   (select holder from ids.snowflake_lease where holder is not null)) \
                   where holder is null";
    postgres.sql(holders);
    sleeper.signal("STOP");
    let awake = "select count(*) from ids.node where left_at_us is null and adopted_at_us is null";
    let deadline = Instant::now() + LIMIT;
    while postgres.sql(awake) != "1" {
        assert!(Instant::now() < deadline, "nobody notices: {}", heir.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let taken = id_of(&series, &number(&heir, "taken").await);
    assert_eq!(taken.node_number(), first.node_number());
    assert!(first < taken);
    postgres.sql("update ids.snowflake_lease set holder = null where node_number = 1023");
    sleeper.signal("CONT");
    let mut node_numbers = BTreeSet::new();
    for index in 0..200 {
        let (document, other) = (format!("a{index}"), format!("b{index}"));
        let (mine, theirs) = tokio::join!(number(&sleeper, &document), number(&heir, &other));
        let mine = id_of(&series, &mine);
        node_numbers.insert(mine.node_number());
        assert!(ids.insert(mine) && ids.insert(id_of(&series, &theirs)), "twice: {mine} {theirs}");
    }
    assert_eq!(node_numbers, BTreeSet::from([1023]), "it has lost the other one");
    assert!(sleeper.terminate() && heir.terminate());
    deployment.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn snowflakes_come_embedded_once_per_document_and_never_as_a_range() {
    let deployment = Deployment::embedded();
    deployment.apply(&[series_file(&deployment)]);
    let series = series();
    let printed = deployment.ok(&["next", "ID", "--document", "c1"]);
    let first = id_of(&series, printed.trim());
    let second = id_of(&series, deployment.ok(&["next", "ID", "--document", "c2"]).trim());
    assert!(first < second && first.node_number() != second.node_number());
    assert!(deployment.ok(&["parse", "ID", printed.trim()]).contains(&first.to_string()));
    let node = deployment.serve();
    let (client, url) = (testkit::client(), &node.url);
    let (status, body) = take(&client, url, "c1").await;
    assert_eq!((status, &body["document_number"]), (200, &printed.trim().into()), "{body}");
    let route = format!("{url}/api/v1/document-numbering/batches");
    let (status, body) = post(&client, &route, &json!({ "type": "ID", "count": 2 })).await;
    assert_eq!((status, &body["field"]), (422, &"count".into()), "{body}");
    let route = format!("{url}/api/v1/document-numbering/preview");
    let (status, body) = post(&client, &route, &json!({ "type": "ID" })).await;
    assert_eq!(status, 200, "{body}");
    let shown = id_of(&series, body["document_number"].as_str().unwrap());
    assert_eq!((shown.node_number(), shown.serial()), (0, 0), "a sample");
    assert!(node.terminate());
    deployment.assert_clean();
}
