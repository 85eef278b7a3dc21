//! What the file of a list may look like: columns, separators, line breaks, standard input.

use std::io::Write as _;
use std::process::{Output, Stdio};

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

fn with_series() -> Deployment {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    deployment
}

/// Runs a command that reads this from standard input.
fn fed(deployment: &Deployment, arguments: &[&str], text: &str) -> Output {
    let mut command = deployment.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_list_with_columns_and_none_of_them_named_number_is_refused_with_what_it_has() {
    let deployment = with_series();
    for (head, says) in [
        ("No.;Name;Date", ["\"No.\", \"Name\", \"Date\"", "rename \"No.\" to `number`"]),
        ("เลขที่,date", ["\"เลขที่\", \"date\"", "rename \"เลขที่\" to `number`"]),
        (
            "document_id\tdate",
            ["\"document_id\", \"date\"", "name the column of the numbers `number`"],
        ),
        ("SPO-20240122-001,D1", ["\"SPO-20240122-001\", \"D1\"", "`number`"]),
        ("Document No.", ["\"Document No.\"", "rename \"Document No.\" to `number`"]),
    ] {
        let list = file(&deployment, "list.csv", &format!("{head}\nSPO-20240122-002,D2,\n"));
        let (code, report, stderr) = import(&deployment, &[&list, "--apply"]);
        assert!(code == 1 && report.is_null(), "{head}: {report}");
        assert!(stderr.contains("line 1"), "{stderr}");
        assert!(says.iter().all(|says| stderr.contains(says)), "{head}: {stderr}");
    }
}

#[test]
fn columns_are_matched_whatever_their_case_and_the_blanks_around_them() {
    let deployment = with_series();
    let text = " Number ; DOCUMENT_ID ;Date\nSPO-20240122-001;D1;2024-01-22\n";
    let list = file(&deployment, "list.csv", text);
    let report = imported(&deployment, &[&list]);
    assert_eq!(report["numbers"], 1, "{report}");
    let twice = file(&deployment, "twice.csv", "number,NUMBER\nSPO-20240122-001,x\n");
    let (_, _, stderr) = import(&deployment, &[&twice]);
    assert!(stderr.contains("twice"), "{stderr}");
}

#[test]
fn reference_data_and_codes_may_have_the_separators_of_lists() {
    let deployment = with_series();
    for separator in [";", "\t", ","] {
        let text =
            format!(" ID {separator}code{separator}Name\r\n7{separator}MEMO{separator}Memo\r\n");
        let rows = file(&deployment, "types.csv", &text);
        let told = deployment.ok(&["reference", "import", &rows, "--table", "types"]);
        assert!(told.contains("added 7 MEMO"), "{told}");
        let told = fed(&deployment, &["reference", "import", "-", "--table", "types"], &text);
        assert!(String::from_utf8_lossy(&told.stdout).contains("added 7 MEMO"), "{told:?}");
        let codes = ["table", "id", "code"].join(separator);
        let map = format!("{codes}\n{}\n", ["projects", "1", "P"].join(separator));
        let map = file(&deployment, "map.csv", &map);
        let dump = "INSERT INTO document_sequence (sequence_type, sequence_date, current_no) \
                    VALUES ('SPO', '2024-01-22', 15);\n";
        let dump = file(&deployment, "dump.sql", dump);
        imported(&deployment, &[&dump, "--from-table", "--map", &map]);
    }
}

#[test]
fn lines_are_counted_right_whatever_ends_them_and_a_cell_may_have_several() {
    let deployment = with_series();
    for end in ["\n", "\r\n"] {
        let lines = [
            "number,document_id",
            "X1,D1",
            "",
            "\"X4\",\"D",
            "4\"",
            "X6,\"D6\"",
            "SPO-20240122-001,D7,more",
            "X8,D8",
        ];
        let list = file(&deployment, "list.csv", &lines.join(end));
        let (_, report, stderr) = import(&deployment, &[&list]);
        let told = problems(&report);
        let places: Vec<&str> = told.iter().map(|(place, _)| &**place).collect();
        let expected = ["line 2", "line 4", "line 6", "line 7", "line 8"];
        assert_eq!(places, expected, "{end:?}: {report} {stderr}");
    }
}

#[test]
fn a_list_comes_from_standard_input_as_well() {
    let deployment = with_series();
    let list = "number,document_id\nSPO-20240122-001,D1\nSPO-20240122-002,D2\n";
    let told = fed(&deployment, &["import", "-", "--apply", "--json"], list);
    assert!(told.status.success(), "{told:?}");
    assert!(told.stderr.is_empty(), "no progress is shown where nobody watches: {told:?}");
    let report: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&report["numbers"], &report["source"]), (&2.into(), &"standard input".into()));
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-003\n");
    for empty in ["", "\n\n", "number,document_id\n"] {
        let told = fed(&deployment, &["import", "-", "--apply"], empty);
        let error = String::from_utf8_lossy(&told.stderr).into_owned();
        assert!(!told.status.success() && error.contains("holds no number"), "{error}");
    }
    let refused = fed(&deployment, &["import", "-"], "No.,x\n");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("standard input: line 1"), "{error}");
    let tables = fed(&deployment, &["import", "-", "--from-table"], "");
    let error = String::from_utf8_lossy(&tables.stderr).into_owned();
    assert!(!tables.status.success() && error.contains("name a file"), "{error}");
}

#[test]
fn a_value_below_the_start_of_its_serial_is_told_as_such() {
    let deployment = with_series();
    let serial = "start = 10";
    let series = deployment.series_file("LATE", "LATE/{SEQ:4}", "");
    let text = std::fs::read_to_string(&series).unwrap() + serial + "\n";
    std::fs::write(&series, text).unwrap();
    deployment.apply(&[series]);
    let text = "คคง.-สคฉ.3-0000-2568\nSPO-20240122-000\nLATE/0009\nLATE/0000\n";
    let list = file(&deployment, "low.txt", text);
    let (code, report, stderr) = import(&deployment, &[&list]);
    assert_eq!(code, 1, "{stderr}");
    let found = report["problems"].as_array().unwrap();
    assert_eq!(found.len(), 4, "{report}");
    for (problem, value, start) in
        found.iter().zip([0, 0, 9, 0]).zip([1, 1, 10, 10]).map(|((p, v), s)| (p, v, s))
    {
        assert_eq!(problem["kind"], "value", "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        let said = format!("serial SEQ is {value}, which lies below its start, {start}");
        assert!(detail.contains(&said) && detail.contains("leave the line out"), "{detail}");
    }
}
