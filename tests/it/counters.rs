//! Counters in lists for people: by what they count, page by page, with how full they are.

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// A series whose counter shows neither type nor project, and whose letters leave no room.
const LETTERED: &str = "
[[series]]
code = 'TAG'
name = 'Tags'
template = 'TAG{SEQ:2}'
serves = { types = ['TAG'], projects = ['P1'] }
serials = [{ style = 'letters', start = 26, step = 2 }]
";

async fn get(service: &str, query: &str) -> (u16, Value) {
    let url = format!("{service}/api/v1/document-numbering/counters?{query}");
    let answer = testkit::client().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// A look-up that must be answered.
async fn list(service: &str, query: &str) -> Vec<Value> {
    let (status, body) = get(service, query).await;
    assert_eq!(status, 200, "{query}: {body}");
    assert_eq!(body["next"], Value::Null, "{query}: {body}");
    body["counters"].as_array().unwrap().clone()
}

/// What a look-up finds, in its order: series and key of each counter, the parts by their names.
async fn keys(service: &str, query: &str) -> Vec<String> {
    let counters = list(service, query).await;
    let told = counters.iter().map(|counter| {
        let key = counter["counter_key"].as_object().unwrap();
        let parts: Vec<&str> = key.values().map(|value| value.as_str().unwrap()).collect();
        format!("{} {}", counter["series"].as_str().unwrap(), parts.join(" "))
    });
    told.collect()
}

/// Counters of several series, one of which is deactivated.
fn count(deployment: &Deployment) {
    deployment.apply_examples();
    let file = deployment.path("lettered.toml");
    std::fs::write(&file, LETTERED).unwrap();
    deployment.apply(&[file]);
    deployment.ok(&["next", "SPO", "--date", "2024-01-22", "--count", "15"]);
    deployment.ok(&["next", "SPO", "--date", "2024-01-23"]);
    deployment.ok(&["next", "BX", "--date", "2024-01-22"]);
    deployment.ok(&["next", "TAG", "--project", "P1", "--count", "2"]);
    let letter = ["next", "LETTER", "--date", "2025-12-02", "--project", "LCBP3-C2"];
    let parties = ["--set", "ORIGINATOR=คคง.", "--set", "RECIPIENT=สคฉ.3"];
    deployment.ok(&[&letter[..], &parties].concat());
    deployment.ok(&["series", "deactivate", "SPO", "--reason", "a test"]);
}

/// Goal: each filter finds its counters. Method: numbers of four series, and each filter on HTTP;
/// the command says the same.
#[tokio::test(flavor = "multi_thread")]
async fn counters_are_found_by_series_type_project_originator_and_year() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in
        [Deployment::embedded(), Deployment::new(&postgres.url("counters"), Some(&redis.url()))]
    {
        count(&deployment);
        let service = deployment.serve();
        let days = ["SPO 2024-01-22 SPO", "SPO 2024-01-23 SPO"];
        let letter = ["LETTER คคง. สคฉ.3 LCBP3-C2 LETTER 2025"];
        let none: [&str; 0] = [];
        for (query, expected) in [
            ("series=SPO", &days[..]),
            ("type=SPO", &days[..]),
            ("type=SPO&year=2024", &days[..]),
            ("type=SPO&year=2025", &none[..]),
            ("project=LCBP3-C2&type=LETTER&year=2025", &letter[..]),
            ("originator=คคง.&year=2025", &letter[..]),
            ("originator=สคฉ.3", &none[..]),
            ("year=2025", &letter[..]),
            // They do not count by it; their series serve nothing else.
            ("type=BX&year=2024", &["BX 2024-01-22"][..]),
            ("type=TAG", &["TAG "][..]),
            ("project=P1", &["TAG "][..]),
            ("type=TAG&year=2024", &none[..]),
            ("type=SP", &none[..]),
        ] {
            assert_eq!(keys(&service.url, query).await, expected, "{query}");
        }
        assert_eq!(keys(&service.url, "").await.len(), 5);
        assert!(service.terminate());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_shows_its_value_and_how_full_it_is_and_when_it_was_used() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in
        [Deployment::embedded(), Deployment::new(&postgres.url("filled"), Some(&redis.url()))]
    {
        count(&deployment);
        let service = deployment.serve();
        let spo = list(&service.url, "series=SPO").await.remove(0);
        let ceiling: u64 = spo["ceiling"].as_str().unwrap().parse().unwrap();
        assert!((15..=999).contains(&ceiling), "{spo}");
        let url =
            format!("{}/api/v1/document-numbering/numbers?number=SPO-20240122-001", service.url);
        let found: Value = testkit::client().get(url).send().await.unwrap().json().await.unwrap();
        let row = &found["numbers"][0];
        // A number's time has the offset of its series.
        let issued_at: jiff::Timestamp = row["issued_at"].as_str().unwrap().parse().unwrap();
        let expected = json!({
            "counter_id": spo["counter_id"], "config_id": row["config_id"], "series": "SPO",
            "active": false, "serial": "SEQ", "counter_key": { "type": "SPO", "day": "2024-01-22" },
            "value": "15", "first": "1", "step": "1", "ceiling": spo["ceiling"], "max": "999",
            "width_used": 2, "width_max": 3, "last_used_at": format!("{issued_at:.6}"),
        });
        assert_eq!(spo, expected);
        let tag = list(&service.url, "series=TAG").await.remove(0);
        let shown = ["value", "first", "step", "max"].map(|field| tag[field].as_str().unwrap());
        // AZ and BB.
        assert_eq!(shown, ["28", "26", "2", "676"], "{tag}");
        assert_eq!((&tag["width_used"], &tag["width_max"]), (&json!(2), &json!(2)));
        let printed: Value =
            serde_json::from_str(&deployment.ok(&["counters", "--json", "--series", "SPO"]))
                .unwrap();
        assert_eq!(printed["counters"][0], spo);
        let table = deployment.ok(&["counters", "--type", "SPO", "--year", "2024"]);
        let line = table.lines().nth(1).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..6], ["SPO", "SEQ", "type=SPO;day=2024-01-22", "1", "15"], "{table}");
        assert_eq!(words[7], "2/3", "{table}");
        assert!(service.terminate());
        assert_eq!(deployment.ok(&["counters", "--year", "2020"]).trim(), "no counters");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_are_listed_page_by_page_each_once_while_others_begin() {
    let deployment = Deployment::embedded();
    count(&deployment);
    let service = deployment.serve();
    let all: Vec<Value> =
        list(&service.url, "").await.iter().map(|one| one["counter_id"].clone()).collect();
    let (client, mut told, mut after) = (testkit::client(), Vec::new(), String::new());
    for day in 1.. {
        let (status, page) = get(&service.url, &format!("limit=1{after}")).await;
        assert_eq!(status, 200, "{page}");
        let ids = page["counters"].as_array().unwrap().iter();
        told.extend(ids.map(|one| one["counter_id"].clone()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
        // Before what is already listed, and after it.
        for code in ["BPO", "FSO"].into_iter().filter(|_| day < 4) {
            let url = format!("{}/api/v1/documents/{code}{day}/generate-number", service.url);
            let order = json!({ "type": code, "date": format!("2023-02-{day:02}") });
            let (status, body) = post(&client, &url, &order).await;
            assert_eq!(status, 201, "{body}");
        }
    }
    assert!(service.terminate());
    assert!(told.len() > all.len(), "some began behind: {told:?}");
    let old: Vec<Value> = told.iter().filter(|id| all.contains(id)).cloned().collect();
    assert_eq!(old, all, "{told:?}");
    let args = ["counters", "--limit", "2", "--json"];
    let first: Value = serde_json::from_str(&deployment.ok(&args)).unwrap();
    let next = first["next"].as_str().unwrap();
    let second: Value =
        serde_json::from_str(&deployment.ok(&[&args[..], &["--after", next]].concat())).unwrap();
    assert_ne!(first["counters"], second["counters"]);
    let refused = deployment.run(&["counters", "--after", "7"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_question_about_counters_is_refused_with_the_field_at_fault() {
    let deployment = Deployment::embedded();
    count(&deployment);
    let service = deployment.serve();
    let (_, page) = get(&service.url, "limit=1").await;
    let next = page["next"].as_str().unwrap();
    let (id, check) = next.split_once('.').unwrap();
    let other = list(&service.url, "").await[1]["counter_id"].to_string();
    for (query, field, says) in [
        (format!("after={other}.{check}"), "after", "`next`"),
        (format!("after={id}"), "after", "`next`"),
        ("after=x".into(), "after", "`next`"),
        (format!("after={next}0"), "after", "`next`"),
        // The page of another list.
        (format!("series=SPO&after={next}"), "after", "`next`"),
        ("limit=0".into(), "limit", "1 to 1000"),
        ("limit=1001".into(), "limit", "1 to 1000"),
        ("year=2568".into(), "year", "A.D."),
        ("year=x".into(), "year", "A.D."),
        ("series=NOBODY".into(), "series", "NOBODY"),
        ("type=%00".into(), "type", "control"),
        ("kind=x".into(), "kind", "unknown field"),
    ] {
        let (status, problem) = get(&service.url, &query).await;
        assert_eq!(
            (status, &problem["code"]),
            (422, &json!("invalid-field")),
            "{query}: {problem}"
        );
        assert_eq!(problem["field"], field, "{query}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{query}: {problem}");
    }
    assert!(service.terminate());
    for (arguments, says) in [
        (["--year", "2568"], "A.D."),
        (["--series", "NOBODY"], "NOBODY"),
        (["--limit", "0"], "limit"),
    ] {
        let refused = deployment.run(&[&["counters"][..], &arguments].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains(says), "{said}");
    }
    deployment.assert_clean();
}

/// A counter keeps an id if its dimension refers to a table: people ask by the code, the former one
/// included.
#[tokio::test(flavor = "multi_thread")]
async fn counters_that_count_by_ids_are_found_by_codes() {
    let deployment = Deployment::embedded();
    let file = deployment.path("by_ids.toml");
    let series = "
[[series]]
code = 'MEMO'
name = 'Memos'
template = '{PROJECT}-{ORIGINATOR}-{SEQ:3}'
serves = { types = ['MEMO'] }
serials = [{ counter = ['project', 'ORIGINATOR'] }]
references = { project = 'projects' }
[series.variables]
ORIGINATOR = { required = true, reference = 'organizations', excluded = '-' }
";
    std::fs::write(&file, series).unwrap();
    for (table, rows) in [("projects", "2,P2,Two\n3,P3,Three\n"), ("organizations", "10,ORG,Org\n")]
    {
        let path = deployment.path(&format!("{table}.csv"));
        std::fs::write(&path, format!("id,code,name\n{rows}")).unwrap();
        let path = path.display().to_string();
        deployment.ok(&["reference", "import", &path, "--table", table, "--apply"]);
    }
    deployment.apply(&[file]);
    for project in ["P2", "P3"] {
        deployment.ok(&["next", "MEMO", "--project", project, "--set", "ORIGINATOR=ORG"]);
    }
    let service = deployment.serve();
    assert_eq!(keys(&service.url, "project=P2").await, ["MEMO 10 2"]);
    assert_eq!(keys(&service.url, "originator=ORG").await, ["MEMO 10 2", "MEMO 10 3"]);
    assert_eq!(keys(&service.url, "project=P2&originator=ORG&type=MEMO").await, ["MEMO 10 2"]);
    assert!(keys(&service.url, "project=2").await.is_empty());
    assert!(service.terminate());
}
