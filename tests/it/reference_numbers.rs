//! The reference numbers of the source documents come out exactly: through HTTP on Redis and
//! PostgreSQL, and through `next` on SQLite.

use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

/// A request, how often it is made, and the number of the last time.
struct Reference {
    request: Value,
    times: usize,
    number: &'static str,
}

fn references() -> Vec<Reference> {
    let of = |request: Value, times, number| Reference { request, times, number };
    let letter = |to: &str, context: Value| {
        let mut all = json!({ "ORIGINATOR": "คคง.", "RECIPIENT": to });
        all.as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
        all
    };
    let correspondence = |kind: &str, to: &str, context: Value| {
        json!({ "type": kind, "project": "LCBP3-C2", "date": "2025-12-02",
                "context": letter(to, context) })
    };
    let sub_type = json!({ "SUB_TYPE": "21" });
    let rfa = json!({ "DISCIPLINE": "TER", "RFA_TYPE": "RPT", "REV": "A" });
    let team = json!({ "ORG_CODE": "TEAM", "DISCIPLINE_CODE": "STR" });
    let system = json!({ "SYSTEM": "C0001", "MODULE": "A01", "INSTANCE": "01" });
    let mut calling = system.clone();
    calling["TARGET"] = json!("P0002");
    vec![
        of(json!({ "type": "SPO", "date": "2024-01-22" }), 1, "SPO-20240122-001"),
        of(json!({ "type": "SPO", "date": "2024-01-22" }), 14, "SPO-20240122-015"),
        of(json!({ "type": "BPO", "date": "2024-01-22" }), 1, "BPO-20240122-001"),
        of(correspondence("LETTER", "สคฉ.3", json!({})), 1, "คคง.-สคฉ.3-0001-2568"),
        of(correspondence("TRANSMITTAL", "สคฉ.3", sub_type), 117, "คคง.-สคฉ.3-21-0117-2568"),
        of(
            json!({ "type": "RFA", "project": "LCBP3-C2", "date": "2025-12-02", "context": rfa }),
            1,
            "LCBP3-C2-RFA-TER-RPT-0001-A",
        ),
        of(correspondence("RFI", "สคฉ.3", json!({})), 42, "คคง.-สคฉ.3-0042-2568"),
        of(correspondence("MEMO", "ผรม.1", json!({})), 1, "คคง.-ผรม.1-0001-2568"),
        of(
            json!({ "type": "RFA", "project": "LCBP3", "date": "2025-06-01", "context": team }),
            1,
            "TEAM-RFA-STR-2025-0001",
        ),
        of(
            json!({ "type": "HT", "date": "2024-01-15", "context": { "单位": "财务部" } }),
            2,
            "HT20240115财务部000002",
        ),
        of(json!({ "type": "BX", "date": "2024-01-15" }), 1, "BX202401150001"),
        of(
            json!({ "type": "UNIFIED-SERIAL", "date": "2015-07-10", "context": system }),
            1,
            "C0001A0101201507100000000001",
        ),
        of(
            json!({ "type": "SYSTEM-SERIAL", "date": "2015-07-10", "context": system }),
            1,
            "C0001A010120150710000000000001",
        ),
        of(
            json!({ "type": "INTERFACE-SERIAL", "date": "2015-08-10T23:01:10+08:00",
                    "context": calling }),
            1,
            "C0001A0101P0002201508102301100000000001",
        ),
    ]
}

/// The numbers of the source documents that are far up in their counters: what the old system had
/// issued is imported first.
fn move_in(deployment: &Deployment) {
    let list = deployment.path("unified.txt");
    std::fs::write(&list, "C0001A0101201507100123456788\n").unwrap();
    deployment.ok(&["import", list.to_str().unwrap(), "--apply"]);
    // The text around the serial is the counter's identity.
    let dump = deployment.path("serials.sql");
    let rows = "INSERT INTO com_no_config (id, bill_type_id) VALUES ('r1','BX');\n\
                INSERT INTO com_no_serial (id, rule_id, rule_format, serial_no) VALUES \
                ('1','r1','BX20240115%s',41);\n";
    std::fs::write(&dump, rows).unwrap();
    deployment.ok(&["import", dump.to_str().unwrap(), "--from-table", "--apply"]);
}

/// What comes next after [`move_in`].
fn moved_in() -> Vec<Reference> {
    let system = json!({ "SYSTEM": "C0001", "MODULE": "A01", "INSTANCE": "01" });
    let serial = json!({ "type": "UNIFIED-SERIAL", "date": "2015-07-10", "context": system });
    let expense = json!({ "type": "BX", "date": "2024-01-15" });
    vec![
        Reference { request: serial, times: 1, number: "C0001A0101201507100123456789" },
        Reference { request: expense, times: 1, number: "BX202401150042" },
    ]
}

/// Takes the numbers through HTTP; each is taken in Redis.
async fn come_out_through_http(deployment: &Deployment, references: Vec<Reference>) {
    let service = deployment.serve();
    let client = testkit::client();
    let mut documents = 0;
    for Reference { request, times, number } in references {
        let mut last = Value::Null;
        for _ in 0..times {
            documents += 1;
            let url = format!("{}/api/v1/documents/d{documents}/generate-number", service.url);
            let (status, body) = post(&client, &url, &request).await;
            assert_eq!(status, 201, "{request}: {body}");
            assert_eq!(body["path"], "redis");
            last = body;
        }
        assert_eq!(last["document_number"], number, "{request}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Takes the numbers through `next`.
fn come_out_through_next(deployment: &Deployment, references: Vec<Reference>) {
    for Reference { request, times, number } in references {
        let text = |field: &str| request[field].as_str().map(ToOwned::to_owned);
        let mut arguments = vec!["next".to_owned(), text("type").unwrap()];
        for field in ["date", "project"] {
            if let Some(value) = text(field) {
                arguments.extend([format!("--{field}"), value]);
            }
        }
        for (name, value) in request["context"].as_object().into_iter().flatten() {
            arguments.extend(["--set".into(), format!("{name}={}", value.as_str().unwrap())]);
        }
        arguments.extend(["--count".into(), times.to_string()]);
        let out = deployment.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(out.lines().count(), times, "stdout carries the numbers only");
        assert_eq!(out.lines().last(), Some(number), "{request}");
    }
    deployment.assert_clean();
}

#[tokio::test]
async fn reference_numbers_come_out_exactly_through_http_on_redis_and_postgres() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let deployment = Deployment::new(&postgres.url("reference"), Some(&redis.url()));
    deployment.apply_examples();
    come_out_through_http(&deployment, references()).await;
}

#[tokio::test]
async fn reference_numbers_continue_what_was_moved_in_through_http_on_redis_and_postgres() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let deployment = Deployment::new(&postgres.url("moved"), Some(&redis.url()));
    deployment.apply_examples();
    move_in(&deployment);
    come_out_through_http(&deployment, moved_in()).await;
}

#[test]
fn reference_numbers_come_out_exactly_through_next_on_sqlite() {
    let deployment = Deployment::embedded();
    come_out_through_next(&deployment, references());
}

#[test]
fn reference_numbers_continue_what_was_moved_in_through_next_on_sqlite() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    move_in(&deployment);
    come_out_through_next(&deployment, moved_in());
}
