//! Tables that would bring counters too low, or the wrong ones: nothing of them is imported.

use serde_json::Value;
use testkit::postgres::Postgres;

use super::{file, import, problems};
use crate::deployment::Deployment;

/// A dump of one counter by day.
const BY_DAY: &str = "INSERT INTO document_sequence (sequence_type, sequence_date, current_no) \
                      VALUES ('SPO', '2024-01-22', 15);\n";

/// The reason for which an import is refused as a whole.
fn refused(deployment: &Deployment, arguments: &[&str]) -> String {
    let (code, report, error) = import(deployment, arguments);
    assert_eq!((code, report), (1, Value::Null), "{error}");
    assert_eq!(deployment.verify().1["counters"], 0, "nothing is imported");
    error
}

#[test]
fn a_source_without_a_single_row_is_refused() {
    let postgres = Postgres::start();
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let table = "create table shop.document_sequence (sequence_type text, sequence_date date, \
                 current_no int)";
    let shop = postgres.empty_url("shop");
    postgres.sql(table);
    let error = refused(&deployment, &[&shop, "--from-table", "--apply"]);
    assert!(error.contains("there is no row in document_sequence"), "{error}");
    let only_tables = "-- MySQL dump 10.13\nCREATE TABLE `document_sequence` (`current_no` int);\n\
                       -- Dump completed on 2024-01-22\n";
    let only_tables = file(&deployment, "no-data.sql", only_tables);
    for further in ["--apply", "--configs"] {
        let error = refused(&deployment, &[&only_tables, "--from-table", further]);
        assert!(further == "--configs" || error.contains("--no-data"), "{error}");
    }
    let copies = "-- PostgreSQL database dump\n\n\\restrict x\n\n\
                  CREATE TABLE public.document_sequence (\n    current_no integer\n);\n\n\
                  COPY public.document_sequence (current_no) FROM stdin;\n15\n\\.\n\n\
                  \\unrestrict x\n\n";
    let copies = file(&deployment, "pg.sql", copies);
    let error = refused(&deployment, &[&copies, "--from-table", "--apply"]);
    assert!(error.contains("--inserts"), "{error}");
}

#[test]
fn a_dump_that_was_cut_short_is_not_imported() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let text = format!("-- MariaDB dump 10.19\n{BY_DAY}");
    let cut = file(&deployment, "cut.sql", &text);
    let error = refused(&deployment, &[&cut, "--from-table", "--apply"]);
    assert!(error.contains("`-- Dump completed`, is missing"), "{error}");
    let whole = file(&deployment, "whole.sql", &format!("\u{feff}{text}-- Dump completed\n"));
    let (code, report, error) = import(&deployment, &[&whole, "--from-table", "--apply"]);
    assert_eq!((code, &report["counters_total"]), (0, &1.into()), "{report} {error}");
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-016\n");
}

#[test]
fn an_id_that_means_two_things_is_refused() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let codes = "INSERT INTO a.projects (id, project_code) VALUES (2,'LCBP3-C2');\n\
                 INSERT INTO b.projects (id, project_code) VALUES (2,'OTHER');\n";
    let codes = file(&deployment, "codes.sql", &format!("{codes}{BY_DAY}"));
    let error = refused(&deployment, &[&codes, "--from-table"]);
    let told = "projects row 2: id 2 has the code \"LCBP3-C2\" and then \"OTHER\"";
    assert!(error.contains(told), "{error}");
    let rules = "INSERT INTO a.com_no_config (id, bill_type_id) VALUES ('r1','BX');\n\
                 INSERT INTO b.com_no_config (id, bill_type_id) VALUES ('r1','HT');\n";
    let rules = file(&deployment, "rules.sql", &format!("{rules}{BY_DAY}"));
    let error = refused(&deployment, &[&rules, "--from-table"]);
    assert!(error.contains("com_no_config row 2: rule r1 appears twice"), "{error}");
    // A file decides, and names existing tables.
    let map = file(&deployment, "map.csv", "table,id,code\nprojects,2,LCBP3-C2\n");
    let (code, report, error) = import(&deployment, &[&codes, "--from-table", "--map", &map]);
    assert_eq!(code, 0, "{report} {error}");
    let map = file(&deployment, "map.csv", "table,id,code\nproject,2,LCBP3-C2\n");
    let error = refused(&deployment, &[&codes, "--from-table", "--map", &map]);
    assert!(error.contains("table project") && error.contains("projects"), "{error}");
}

#[test]
fn a_moment_is_no_day() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let dates = [
        "2024-01-22",
        "2024-01-23 00:00:00",
        "2024-01-24T00:00:00.000",
        "2024-01-21 16:00:00",
        "2024-01-22 00:00:00+00",
        "2024-01-22T00:00:00Z",
        "2024-01-22 ",
        "2024-01-223",
    ];
    let rows = dates.map(|date| format!("('SPO', '{date}', 15)")).join(",");
    let insert = "INSERT INTO document_sequence (sequence_type, sequence_date, current_no) VALUES";
    let dump = file(&deployment, "days.sql", &format!("{insert} {rows};\n"));
    let (code, report, error) = import(&deployment, &[&dump, "--from-table", "--apply"]);
    assert_eq!((code, &report["counters_total"]), (1, &3.into()), "{report} {error}");
    let expected = [4, 5, 6, 7, 8].map(|row| (format!("document_sequence row {row}"), "value"));
    let expected = expected.map(|(place, kind)| (place, kind.to_owned()));
    assert_eq!(problems(&report), expected, "{report}");
    let detail = report["problems"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("2024-01-21 16:00:00") && detail.contains("a moment"), "{detail}");
}

#[test]
fn a_column_that_a_series_counts_by_and_a_table_lacks_is_a_problem() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let dump = "\
INSERT INTO document_number_counters (project_id, originator_organization_id, \
correspondence_type_id, current_year, last_number) VALUES (2, 22, 6, 2025, 41);\n";
    let dump = file(&deployment, "dms.sql", dump);
    let map = "table,id,code\nprojects,2,LCBP3-C2\norganizations,22,คคง.\n\
               correspondence_types,6,LETTER\n";
    let map = file(&deployment, "codes.csv", map);
    let (code, report, error) = import(&deployment, &[&dump, "--from-table", "--map", &map]);
    assert_eq!(code, 1, "{report} {error}");
    let expected = [("document_number_counters row 1".to_owned(), "not-mapped".to_owned())];
    assert_eq!(problems(&report), expected, "{report}");
    let detail = report["problems"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("no column recipient_organization_id"), "{detail}");
}
