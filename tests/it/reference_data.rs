//! Reference data for administrators and callers: imported, used by codes and ids, renamed and
//! deactivated during a running service.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use numbering::CounterKey;
use serde_json::{Map, Value, json};

use crate::deployment::Deployment;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

/// Longest wait for a running service to pick a change up. It promises a second; a busy machine is
/// given more.
const PICKED_UP_LIMIT: Duration = Duration::from_secs(20);

const TABLES: [&str; 6] =
    ["projects", "organizations", "types", "sub_types", "rfa_types", "disciplines"];

fn example(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/reference");
    folder.join(name).display().to_string()
}

/// Imports the seed data and applies the series that refer to them.
fn set_up(deployment: &Deployment) {
    for table in TABLES {
        let file = example(&format!("{table}.csv"));
        deployment.ok(&["reference", "import", &file, "--table", table, "--apply"]);
    }
    let members = ["--table", "organizations", "--of", "projects", "--apply"];
    deployment.ok(&[&["reference", "import", &example("members.csv")][..], &members].concat());
    deployment.apply(&[PathBuf::from(example("correspondence.toml"))]);
}

/// Imports rows into a table.
fn import(deployment: &Deployment, table: &str, csv: &str) -> std::process::Output {
    let file = deployment.path("rows.csv");
    std::fs::write(&file, csv).unwrap();
    let file = file.display().to_string();
    deployment.run(&["reference", "import", &file, "--table", table, "--apply"])
}

fn generate(service: &Service, document: &str) -> String {
    format!("{}/api/v1/documents/{document}/generate-number", service.url)
}

/// Waits until a running service would give a request this number.
async fn until_next_is(service: &Service, request: &Value, number: &str) {
    let url = format!("{}/api/v1/document-numbering/preview", service.url);
    let (client, deadline) = (testkit::client(), Instant::now() + PICKED_UP_LIMIT);
    loop {
        let (_, body) = post(&client, &url, request).await;
        if body["document_number"] == number {
            return;
        }
        assert!(Instant::now() < deadline, "not picked up: {body}");
    }
}

fn letter() -> Value {
    json!({
        "type": "LETTER", "project": "LCBP3-C2", "date": "2025-12-02",
        "context": { "ORIGINATOR": "คคง.", "RECIPIENT": "สคฉ.3" },
    })
}

/// A request for each reference number of the correspondence, in codes and in ids.
fn requests() -> Vec<(Value, Value, &'static str, &'static str)> {
    vec![
        (
            letter(),
            json!({
                "type_id": 6, "date": "2025-12-02", "context": { "originator_id": 22 },
                "recipients": [
                    { "id": 41, "kind": "CC", "order": 0 },
                    { "id": "42", "kind": "TO", "order": 2 },
                    { "id": "10", "kind": "TO", "order": 1 },
                ],
            }),
            "คคง.-สคฉ.3-000{}-2568",
            "project_id=2;ORIGINATOR_id=22;RECIPIENT_id=10;type_id=6;year=2025",
        ),
        (
            json!({
                "type": "RFA", "project": "LCBP3-C2", "date": "2025-12-02",
                "context": { "DISCIPLINE": "TER", "RFA_TYPE": "RPT", "REV": "A" },
            }),
            json!({
                "type_id": "1", "project_id": 2, "date": "2025-12-02",
                "context": {
                    "discipline_id": 5, "rfa_type_id": 18, "originator_id": 42, "REV": "A",
                },
            }),
            "LCBP3-C2-RFA-TER-RPT-000{}-A",
            "project_id=2;type_id=1;RFA_TYPE_id=18;DISCIPLINE_id=5",
        ),
        (
            json!({
                "type": "RFA", "project": "LCBP3", "date": "2025-06-01",
                "context": { "ORG_CODE": "TEAM", "DISCIPLINE_CODE": "STR" },
            }),
            json!({
                "type_id": 1, "project_id": 1, "date": "2025-06-01",
                "context": { "org_id": 3, "discipline_id": 2 },
            }),
            "TEAM-RFA-STR-2025-000{}",
            "project_id=1;ORG_CODE_id=3;type_id=1;DISCIPLINE_CODE_id=2;year=2025",
        ),
    ]
}

#[tokio::test]
async fn codes_and_ids_take_from_one_counter_on_redis_and_postgres_and_embedded() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in [
        Deployment::new(&postgres.url("codes_and_ids"), Some(&redis.url())),
        Deployment::embedded(),
    ] {
        deployment.apply_examples();
        set_up(&deployment);
        let service = deployment.serve();
        let client = testkit::client();
        for (index, (codes, ids, number, key)) in requests().into_iter().enumerate() {
            for (turn, request) in [codes, ids].iter().enumerate() {
                let url = generate(&service, &format!("d{index}-{turn}"));
                let (status, body) = post(&client, &url, request).await;
                assert_eq!(status, 201, "{request}: {body}");
                let expected = number.replace("{}", &(turn + 1).to_string());
                assert_eq!(body["document_number"], expected, "{request}");
                let parts = CounterKey::parse(key).unwrap().parts;
                let parts: Map<String, Value> =
                    parts.into_iter().map(|(name, value)| (name, value.into())).collect();
                assert_eq!(body["counter_key"], Value::Object(parts));
                assert!(body["type"].is_string() && body["project"].is_string(), "{body}");
                let (status, again) = post(&client, &url, request).await;
                assert_eq!((status, &again["replayed"]), (200, &json!(true)), "{again}");
            }
        }
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

#[tokio::test]
async fn a_number_inside_a_range_is_found_by_the_codes_that_it_shows_before_and_after_a_renaming() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    set_up(&deployment);
    let service = deployment.serve();
    let client = testkit::client();
    let batches = format!("{}/api/v1/document-numbering/batches", service.url);
    let mut range = letter();
    range["count"] = json!(3);
    let (status, body) = post(&client, &batches, &range).await;
    assert_eq!((status, &body["last_number"]), (201, &json!("คคง.-สคฉ.3-0003-2568")), "{body}");
    assert!(import(&deployment, "organizations", "id,code\n10,สคฉ.4\n").status.success());
    until_next_is(&service, &letter(), "คคง.-สคฉ.4-0004-2568").await;
    let (status, _) = post(&client, &batches, &range).await;
    assert_eq!(status, 201);
    for (number, first) in [
        ("คคง.-สคฉ.3-0002-2568", "คคง.-สคฉ.3-0001-2568"),
        ("คคง.-สคฉ.4-0005-2568", "คคง.-สคฉ.4-0004-2568"),
    ] {
        let numbers = format!("{}/api/v1/document-numbering/numbers?number={number}", service.url);
        let answer = client.get(&numbers).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 200, "{number}");
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["numbers"][0]["document_number"], first);
        assert_eq!(body["numbers"][0]["counter_key"]["RECIPIENT_id"], "10");
    }
}

#[tokio::test]
async fn what_the_tables_do_not_allow_is_a_problem_that_names_its_field_and_takes_nothing() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    set_up(&deployment);
    let rows = "id,code,active\n9,NOTICE,false\n";
    assert!(import(&deployment, "types", rows).status.success());
    let rows = "id,of_id\n10,1\n";
    std::fs::write(deployment.path("more.csv"), rows).unwrap();
    let file = deployment.path("more.csv").display().to_string();
    let members = ["--table", "organizations", "--of", "projects", "--apply"];
    deployment.ok(&[&["reference", "import", &file][..], &members].concat());
    let service = deployment.serve();
    let edited = |edit: fn(&mut Value)| {
        let mut request = letter();
        edit(&mut request);
        request
    };
    let cases = [
        (
            edited(|r| r["context"]["ORIGINATOR"] = json!("X")),
            "unknown-reference",
            "context.ORIGINATOR",
        ),
        (edited(|r| r["project"] = json!("LCBP3")), "not-a-member", "context.ORIGINATOR"),
        (edited(|r| r["type"] = json!("NOTICE")), "inactive-reference", "type"),
        (edited(|r| r["type"] = json!("SONG")), "unknown-type", "type"),
        (edited(|r| r["type"] = json!("DRAWING")), "type-not-configured", "type"),
        (edited(|r| r["type_id"] = json!(6)), "invalid-field", "type_id"),
        (
            edited(|r| r["recipients"] = json!([{ "code": "A", "kind": "TO" }])),
            "invalid-field",
            "recipients",
        ),
        (
            edited(|r| {
                r.as_object_mut().unwrap().remove("project");
                r["context"]["ORIGINATOR"] = json!("สคฉ.3");
            }),
            "project-ambiguous",
            "project",
        ),
        (
            edited(|r| {
                r["context"].as_object_mut().unwrap().remove("RECIPIENT");
                r["recipients"] = json!([{ "id": 10, "kind": "CC" }]);
            }),
            "missing-variable",
            "recipients[kind=TO]",
        ),
        (edited(|r| r["context"]["RECIPIENT"] = json!(5)), "invalid-field", "context.RECIPIENT"),
        (edited(|r| r["project_id"] = json!(1.5)), "invalid-field", "project_id"),
    ];
    let client = testkit::client();
    for (request, slug, field) in cases {
        let (status, problem) = post(&client, &generate(&service, "d1"), &request).await;
        assert_eq!((status, &problem["code"]), (422, &json!(slug)), "{request}: {problem}");
        assert_eq!(problem["field"], field, "{problem}");
        assert_eq!(problem["number_taken"], "no");
    }
    let (_, body) = post(&client, &generate(&service, "d1"), &letter()).await;
    assert_eq!(body["document_number"], "คคง.-สคฉ.3-0001-2568", "nothing was taken");
}

#[tokio::test]
async fn a_running_service_picks_up_a_renaming_and_a_new_type_and_counters_go_on() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_examples();
    set_up(&deployment);
    let service = deployment.serve();
    let client = testkit::client();
    let (_, body) = post(&client, &generate(&service, "d1"), &letter()).await;
    assert_eq!(body["document_number"], "คคง.-สคฉ.3-0001-2568");

    assert!(import(&deployment, "organizations", "id,code\n22,คคงใหม่\n").status.success());
    until_next_is(&service, &letter(), "คคงใหม่-สคฉ.3-0002-2568").await;
    let (_, body) = post(&client, &generate(&service, "d2"), &letter()).await;
    assert_eq!(body["document_number"], "คคงใหม่-สคฉ.3-0002-2568", "the counter goes on");
    let (status, again) = post(&client, &generate(&service, "d1"), &letter()).await;
    assert_eq!((status, &again["document_number"]), (200, &json!("คคง.-สคฉ.3-0001-2568")));

    let mut report = letter();
    report["type"] = json!("REPORT");
    let (status, problem) = post(&client, &generate(&service, "d3"), &report).await;
    assert_eq!((status, &problem["code"]), (422, &json!("unknown-type")));
    assert!(import(&deployment, "types", "id,code\n12,REPORT\n").status.success());
    until_next_is(&service, &report, "คคงใหม่-สคฉ.3-0001-2568").await;
    assert!(service.terminate());
    deployment.assert_clean();
}

#[test]
fn an_import_writes_only_when_told_to_and_lists_what_there_is() {
    let deployment = Deployment::embedded();
    let file = example("types.csv");
    let dry = deployment.ok(&["reference", "import", &file, "--table", "types"]);
    assert!(dry.contains("added 6 LETTER") && dry.contains("11 added, 0 changed"), "{dry}");
    assert_eq!(deployment.ok(&["reference", "list", "--json"]).trim(), "[]");
    deployment.ok(&["reference", "import", &file, "--table", "types", "--apply"]);
    let again = deployment.ok(&["reference", "import", &file, "--table", "types", "--apply"]);
    assert!(again.contains("0 added, 0 changed, 11 unchanged"), "{again}");
    assert!(deployment.ok(&["reference", "list"]).contains("types"));
    assert!(deployment.ok(&["reference", "list", "types"]).contains("LETTER"));
    let taken = import(&deployment, "types", "id,code\n99,LETTER\n");
    let error = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(!taken.status.success() && error.contains("belongs to id 6"), "{error}");
    // A file without names and without the active state changes neither.
    let off = import(&deployment, "types", "id,code,name,active\n6,LETTER,Letter,no\n");
    assert!(String::from_utf8_lossy(&off.stdout).contains("deactivated 6 LETTER"), "{off:?}");
    let renamed = import(&deployment, "types", "id,code\n6,LETTERS\n");
    let told = String::from_utf8_lossy(&renamed.stdout).into_owned();
    assert!(told.contains("renamed 6 LETTERS, before LETTER, inactive"), "{told}");
    let rows = deployment.ok(&["reference", "list", "types", "--json"]);
    let tables: Value = serde_json::from_str(&rows).unwrap();
    let row = tables[0]["rows"].as_array().unwrap().iter().find(|row| row["id"] == "6").unwrap();
    assert_eq!((&row["name"], &row["active"]), (&json!("Letter"), &json!(false)), "{row}");
    let back = import(&deployment, "types", "id,code,active\n6,LETTERS,yes\n");
    assert!(String::from_utf8_lossy(&back.stdout).contains("activated 6 LETTERS"), "{back:?}");
    // Series without tables behave as before.
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-001\n");
}

#[test]
fn next_takes_ids_where_the_series_has_tables_and_refuses_them_elsewhere() {
    let deployment = Deployment::embedded();
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    set_up(&deployment);
    let letter = ["next", "LETTER", "--date", "2025-12-02", "--set", "originator_id=22"];
    let to = ["--set", "recipient_id=10", "--project-id", "2"];
    assert_eq!(deployment.ok(&[&letter[..], &to].concat()), "คคง.-สคฉ.3-0001-2568\n");
    let derived = ["--set", "RECIPIENT=สคฉ.3"];
    assert_eq!(deployment.ok(&[&letter[..], &derived].concat()), "คคง.-สคฉ.3-0002-2568\n");
    let rfa = ["series", "explain", "--type-id", "1"];
    let told = deployment.ok(&[&rfa[..], &["--project-id", "1"]].concat());
    assert!(told.starts_with("series LCBP3-RFA would serve the request\n"), "{told}");
    let told = deployment.ok(&[&rfa[..], &["--context", "originator_id=22"]].concat());
    assert!(told.starts_with("series RFA would serve the request\n"), "{told}");
    let refused = deployment.run(&["next", "SPO", "--project-id", "2"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && error.contains("project_id"), "{error}");
    deployment.assert_clean();
}

#[test]
fn explain_says_which_series_would_serve_a_request_and_why_the_others_would_not() {
    let deployment = Deployment::embedded();
    let rfa = ["series", "explain", "--type", "RFA", "--project", "LCBP3"];
    let told = deployment.ok(&rfa);
    assert!(told.starts_with("series LCBP3-RFA would serve the request\n"), "{told}");
    let told = deployment.ok(&[&rfa[..], &["--json"]].concat());
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["chosen"], "LCBP3-RFA");
    let of = |code: &str| {
        let all = told["series"].as_array().unwrap();
        all.iter().find(|series| series["code"] == code).unwrap().clone()
    };
    assert_eq!(of("LCBP3-RFA")["why"], "names the project, the type");
    assert_eq!(of("RFA")["verdict"], "yields");
    assert_eq!(of("SPO")["why"], "serves type SPO only");
    let drawing = deployment.ok(&["series", "explain", "--type", "DRAWING", "--json"]);
    let drawing: Value = serde_json::from_str(&drawing).unwrap();
    assert_eq!(drawing["chosen"], Value::Null);
    assert!(drawing["problem"].as_str().unwrap().contains("type-not-configured"), "{drawing}");
}
