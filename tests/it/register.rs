//! The register of numbers: what people look for, page by page, and files of it.

use std::path::Path;

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;

const SERIES: &str = "
[[series]]
code = 'MEMO'
name = 'Memo'
template = '{ORIGINATOR}-M-{SEQ:3}-{YEAR:A.D.}'
unique_within = ['type']
serves = { types = ['MEMO', 'NOTE'] }
variables = { ORIGINATOR = { required = true, excluded = '-', width_max = 20 } }
serials = [{ counter = ['ORIGINATOR', 'type'], reset = 'year' }]

[[series]]
code = 'PLAN'
name = 'Plan'
template = '{PROJECT}-{SEQ:3}-{REV}'
serves = { types = ['PLAN'], projects = ['P1', 'P2'] }
variables = { REV = { required = true, alphabet = 'A-Z', width_max = 1 } }
serials = [{ counter = ['project'] }]
";

/// A service with numbers `ÉON-M-001-2025`, `ÉON-M-001-2026` of a note, the same of a memo,
/// `P1-001-A` (revised as B), `P2-001-A`, in this order; PLAN is deactivated.
async fn filled(deployment: &Deployment) -> Service {
    let file = deployment.path("register.toml");
    std::fs::write(&file, SERIES).unwrap();
    deployment.apply(&[file]);
    let service = deployment.serve();
    let memo = |kind: &str, date: &str| {
        let context = json!({ "ORIGINATOR": "E\u{301}ON" });
        json!({ "type": kind, "date": date, "context": context })
    };
    let plan =
        |project: &str| json!({ "type": "PLAN", "project": project, "context": { "REV": "A" } });
    let requests = [
        ("m1", memo("MEMO", "2025-12-31")),
        ("m2", memo("NOTE", "2026-01-01")),
        ("m3", memo("MEMO", "2026-01-02")),
        ("p1", plan("P1")),
        ("p2", plan("P2")),
    ];
    let client = testkit::client();
    for (document, request) in requests {
        let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
        let (status, body) = post(&client, &url, &request).await;
        assert_eq!(status, 201, "{body}");
    }
    let url = format!("{}/api/v1/documents/p1/revisions", service.url);
    let (status, body) = post(&client, &url, &json!({ "rev": "B" })).await;
    assert_eq!(status, 201, "{body}");
    deployment.ok(&["series", "deactivate", "PLAN", "--reason", "a test"]);
    service
}

async fn get(service: &str, query: &[(&str, &str)]) -> (u16, Value) {
    let url = format!("{service}/api/v1/document-numbering/numbers");
    let url = reqwest::Url::parse_with_params(&url, query).unwrap();
    let answer = testkit::client().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// Numbers alone: `p1` has a revision as well.
const NUMBERS: (&str, &str) = ("kinds", "number");

/// Documents of all pages of a look-up of numbers.
async fn documents(service: &str, query: &[(&str, &str)], limit: &str) -> Vec<String> {
    let (mut all, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut page = [query, &[("limit", limit), NUMBERS]].concat();
        page.extend(after.as_deref().map(|after| ("after", after)));
        let (status, body) = get(service, &page).await;
        assert_eq!(status, 200, "{page:?}: {body}");
        let rows = body["numbers"].as_array().unwrap();
        all.extend(rows.iter().map(|row| row["document_id"].as_str().unwrap().to_owned()));
        match body["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return all,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_found_by_all_that_people_know_of_them() {
    let postgres = Postgres::start();
    for deployment in [Deployment::embedded(), Deployment::new(&postgres.url("register"), None)] {
        let service = filled(&deployment).await;
        let from = ("from", "2020-01-01");
        for (query, expected) in [
            (vec![from], &["p2", "p1", "m3", "m2", "m1"][..]),
            (vec![from, ("sort", "number")], &["p1", "p2", "m1", "m3", "m2"]),
            (vec![("number_prefix", "\u{c9}ON-M-001-2026")], &["m3", "m2"]),
            (vec![("number_prefix", "E\u{301}ON-M-0"), ("sort", "number")], &["m1", "m3", "m2"]),
            (vec![("number_prefix", "p1")], &[]),
            (vec![from, ("number_containing", "\u{c9}ON-M-001-2025")], &["m1"]),
            (vec![from, ("number_containing", "E\u{301}ON-M-001-2025")], &["m1"]),
            (vec![from, ("number_containing", "%")], &[]),
            (vec![from, ("series", "PLAN")], &["p2", "p1"]),
            (vec![from, ("type", "NOTE")], &["m2"]),
            (vec![from, ("project", "P1")], &["p1"]),
            (vec![from, ("originator", "E\u{301}ON")], &["m3", "m2", "m1"]),
            (vec![from, ("originator", "\u{c9}ON"), ("series", "MEMO")], &["m3", "m2", "m1"]),
            (vec![from, ("originator", "ON")], &[]),
            (vec![from, ("document_date_from", "2026-01-01"), ("series", "MEMO")], &["m3", "m2"]),
            (vec![from, ("document_date_until", "2026-01-01")], &["m1"]),
            (vec![from, ("status", "revised")], &["p1"]),
            (vec![from, ("status", "issued"), ("series", "PLAN")], &["p2"]),
            (vec![from, ("path", "database"), ("type", "NOTE")], &["m2"]),
            (vec![from, ("path", "redis")], &[]),
            (vec![("document_id", "p1"), ("series", "PLAN")], &["p1"]),
            (vec![("user_id", "local")], &["p2", "p1", "m3", "m2", "m1"]),
            (vec![("number", "P1-001-A"), ("project", "P1"), ("status", "revised")], &["p1"]),
            (vec![("number", "P1-001-B"), ("status", "revised")], &["p1"]),
        ] {
            for limit in ["1", "2", "5", "100"] {
                let found = documents(&service.url, &query, limit).await;
                assert_eq!(found, expected, "{query:?}, {limit}");
            }
        }
        // All given filters must match what is found by a revision's text, too.
        for other in
            [("project", "P2"), ("status", "issued"), ("path", "imported"), ("type", "MEMO")]
        {
            let (status, body) = get(&service.url, &[("number", "P1-001-B"), other]).await;
            assert_eq!((status, &body["code"]), (404, &json!("number-not-found")), "{other:?}");
        }
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

#[tokio::test]
async fn a_look_up_that_cannot_be_answered_whole_is_refused_by_its_field() {
    let deployment = Deployment::embedded();
    let service = filled(&deployment).await;
    let from = ("from", "2020-01-01");
    for (query, field) in [
        (vec![], "number"),
        (vec![("series", "PLAN")], "from"),
        (vec![("type", "NOTE"), ("until", "2030-01-01")], "from"),
        (vec![from, ("series", "NONE")], "series"),
        (vec![from, ("until", "2020-01-01")], "until"),
        (vec![("from", "2026-01-01"), ("until", "2025-01-01")], "until"),
        (vec![from, ("document_date_from", "2026-01-01T00:00:00Z")], "document_date_from"),
        (
            vec![from, ("document_date_from", "2026-01-02"), ("document_date_until", "2026-01-01")],
            "document_date_until",
        ),
        (vec![from, ("status", "lost")], "status"),
        (vec![from, ("path", "none")], "path"),
        (vec![from, ("sort", "document")], "sort"),
        (vec![from, ("number_containing", "")], "number_containing"),
        (vec![("number_prefix", "")], "number_prefix"),
        (vec![("number", "P1-001-A"), ("number_prefix", "P1")], "number_prefix"),
    ] {
        let (status, problem) = get(&service.url, &query).await;
        let told = (status, &problem["code"], &problem["field"]);
        assert_eq!(told, (422, &json!("invalid-field"), &json!(field)), "{query:?}: {problem}");
    }
    assert!(service.terminate());
}

/// Goal: a list continues where it ended, whatever is written meanwhile, and never in another list.
#[tokio::test]
async fn a_page_goes_on_in_its_own_list_alone() {
    let deployment = Deployment::embedded();
    let service = filled(&deployment).await;
    let own = [("from", "2020-01-01"), ("limit", "2"), ("type", "MEMO")];
    let (_, first) = get(&service.url, &[own[0], own[1], NUMBERS]).await;
    let next = first["next"].as_str().unwrap();
    let url = format!("{}/api/v1/documents/late/generate-number", service.url);
    let memo = json!({ "type": "MEMO", "context": { "ORIGINATOR": "A" } });
    let (status, body) = post(&testkit::client(), &url, &memo).await;
    assert_eq!(status, 201, "{body}");
    let (status, second) = get(&service.url, &[own[0], own[1], NUMBERS, ("after", next)]).await;
    assert_eq!(status, 200, "{second}");
    let rows = second["numbers"].as_array().unwrap().iter();
    let documents: Vec<&Value> = rows.map(|row| &row["document_id"]).collect();
    assert_eq!(documents, ["m3", "m2"]);
    // The limit is no part of the list.
    let (status, rest) = get(&service.url, &[own[0], NUMBERS, ("after", next)]).await;
    assert_eq!((status, rest["numbers"].as_array().unwrap().len()), (200, 3), "{rest}");
    let mut other = next.to_owned();
    let digit = if other.starts_with('1') { "2" } else { "1" };
    other.replace_range(..1, digit);
    for query in [
        vec![own[0], own[2], NUMBERS, ("after", next)],
        vec![("from", "2020-01-02"), NUMBERS, ("after", next)],
        vec![own[0], NUMBERS, ("sort", "number"), ("after", next)],
        vec![own[0], ("after", next)],
        vec![own[0], NUMBERS, ("after", other.as_str())],
        vec![own[0], NUMBERS, ("after", "1.2.3")],
        vec![own[0], NUMBERS, ("after", "1.2.3.0000000000000000")],
    ] {
        let (status, problem) = get(&service.url, &query).await;
        let told = (status, &problem["code"], &problem["field"]);
        assert_eq!(told, (422, &json!("invalid-field"), &json!("after")), "{query:?}: {problem}");
    }
    assert!(service.terminate());
}

/// The rows of a CSV text as maps of its columns.
fn rows_of(text: &str) -> Vec<std::collections::HashMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_register_is_printed_and_written_to_files() {
    let postgres = Postgres::start();
    for deployment in [Deployment::embedded(), Deployment::new(&postgres.url("export"), None)] {
        let service = filled(&deployment).await;
        let url = format!("{}/api/v1/documents/%3Dx/generate-number", service.url);
        let memo = json!({ "type": "MEMO", "context": { "ORIGINATOR": "A" } });
        let (status, body) = post(&testkit::client(), &url, &memo).await;
        assert_eq!(status, 201, "{body}");

        let found = deployment.ok(&["find", "--series", "PLAN"]);
        assert!(found.contains("P1-001-A") && !found.contains("-M-"), "{found}");
        let line = ["find", "--kinds", "number", "--limit", "2", "--json"];
        let page: Value = serde_json::from_str(&deployment.ok(&line)).unwrap();
        let next = ["--after", page["next"].as_str().unwrap()];
        let second = deployment.ok(&[&line[..], &next].concat());
        let second: Value = serde_json::from_str(&second).unwrap();
        assert_eq!(second["numbers"][0]["document_id"], "p1", "{second}");
        let query = [("from", "2020-01-01"), ("limit", "2"), NUMBERS];
        let (_, over_http) = get(&service.url, &query).await;
        assert_eq!(page["numbers"], over_http["numbers"]);
        let revised = deployment.ok(&["find", "--number", "P1-001-B"]);
        assert!(revised.contains("P1-001-A"), "{revised}");
        assert!(deployment.ok(&["find", "--type", "NONE"]).contains("no numbers"));

        let text = deployment.ok(&["export", "--format", "csv"]);
        let s2 = "document_id,generated_number,counter_key,template_used,user_id,ip_address,\
                  timestamp,retry_count,";
        assert!(text.starts_with(s2), "{text}");
        let rows = rows_of(&text);
        let of = |column: &str| rows.iter().map(|row| row[column].as_str()).collect::<Vec<_>>();
        assert_eq!(of("document_id"), ["'=x", "p1", "p2", "p1", "m3", "m2", "m1"]);
        assert_eq!((&*rows[1]["kind"], &*rows[1]["revision_of"]), ("revision", "P1-001-A"));
        assert_eq!(rows[6]["counter_key"], r#"{"ORIGINATOR":"ÉON","type":"MEMO","year":"2025"}"#);
        assert_eq!((&*rows[2]["series"], &*rows[6]["document_date"]), ("PLAN", "2025-12-31"));
        assert_eq!((&*rows[6]["ORIGINATOR"], &*rows[3]["REV"]), ("E\u{301}ON", "A"));

        let lines = deployment.ok(&["export", "--format", "jsonl", "--sort", "number"]);
        let mut rows: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // The names of the audit trail, here as in CSV.
        for name in s2.trim_end_matches(',').split(',') {
            assert!(rows[0].get(name).is_some(), "{name}: {}", rows[0]);
        }
        assert!(rows[0].get("document_number").is_none(), "{}", rows[0]);
        let documents: Vec<Value> = rows.iter_mut().map(|row| row["document_id"].take()).collect();
        assert_eq!(documents, ["=x", "p1", "p1", "p2", "m1", "m3", "m2"]);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memos.xlsx");
        let to = file.display().to_string();
        deployment.ok(&["export", "--format", "xlsx", "--type", "MEMO", "--to", &to]);
        assert!(std::fs::read(&file).unwrap().starts_with(b"PK"));
        assert_eq!(names_in(folder.path()), ["memos.xlsx"]);
        assert!(service.terminate());
    }
}

#[test]
fn an_export_that_fails_leaves_nothing_and_says_why() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old.csv");
    std::fs::write(&old, "kept").unwrap();
    let old = old.display().to_string();
    let nowhere = folder.path().join("none/x.csv").display().to_string();
    for (further, says) in [
        (&["--to", &nowhere][..], "none/x.csv cannot be written"),
        (&["--series", "NONE", "--to", &old], "series"),
        (&["--from", "2026-01-01", "--until", "2025-01-01", "--to", &old], "until"),
        (&["--format", "xlsx"], "--to"),
    ] {
        let refused = deployment.run(&[&["export"][..], further].concat());
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{further:?}: {why}");
        assert!(why.contains(says), "{further:?}: {why}");
    }
    assert_eq!(names_in(folder.path()), ["old.csv"]);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "kept");
    let refused = deployment.run(&["find", "--after", "1.2.3.4"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("after"), "{refused:?}");
    deployment.ok(&["export", "--to", &old]);
    let text = std::fs::read_to_string(&old).unwrap();
    assert_eq!(text.lines().count(), 1, "a head without rows: {text}");
}

/// Goal: a list longer than what is read at once is written whole. Method: an import whose rows all
/// share one time, and are more than a page.
#[test]
fn an_export_of_several_pages_has_each_row_once() {
    let (deployment, rows) = (Deployment::embedded(), 4_100);
    deployment.apply_load_series();
    let line = |value: u32| format!("L-{value:08},2024-01-22 09:00,ann\n");
    let list: String = (1..=rows).map(line).collect();
    let file = deployment.path("list.csv");
    std::fs::write(&file, format!("number,issued_at,user\n{list}")).unwrap();
    deployment.ok(&["import", &file.display().to_string(), "--apply"]);
    let mut expected: Vec<String> = (1..=rows).map(|value| format!("L-{value:08}")).collect();
    for sort in ["number", "time"] {
        let text = deployment.ok(&["export", "--user", "ann", "--sort", sort]);
        let rows = rows_of(&text);
        let numbers: Vec<&str> = rows.iter().map(|row| &*row["generated_number"]).collect();
        assert_eq!(numbers, expected, "{sort}");
        expected.reverse();
    }
    let full = std::fs::File::create("/dev/full").unwrap();
    for format in ["csv", "jsonl"] {
        let mut command = deployment.command(&["export", "--format", format]);
        let refused = command.stdout(full.try_clone().unwrap()).output().unwrap();
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{why}");
        assert!(why.contains("standard output cannot be written: No space left"), "{why}");
    }
}
