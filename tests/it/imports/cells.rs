//! Cells that would act upon a terminal or forge a line of a report: refused, and shown as text.

use std::process::Output;

use serde_json::Value;

use super::{file, problems};
use crate::deployment::Deployment;

/// Clears a screen, sets a title, breaks a line, turns the direction of writing, and C1 controls.
const EVIL: [&str; 5] =
    ["\u{1b}[2J", "\u{1b}]0;owned\u{7}", "\nimported\n", "\u{202e}", "\u{9b}2J"];

/// No byte of an output acts upon a terminal, except line breaks and tabs.
fn shows_no_control(what: &str, text: &str) {
    let acts = |c: &char| c.is_control() && !"\n\t".contains(*c) || *c == '\u{202e}';
    assert_eq!(text.chars().find(acts), None, "{what}: {text:?}");
    assert!(!text.lines().any(|line| line == "imported"), "{what} has a forged line: {text}");
}

fn shown(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn cells_with_escape_sequences_are_refused_and_never_reach_terminal_log_or_ledger() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let columns =
        ["document_id", "date", "user", "issued_at", "type", "project", "phase", "ORIGINATOR"];
    let mut text = format!("number,{}\n", columns.join(","));
    let mut rows = 0;
    for evil in EVIL {
        rows += 1;
        text += &format!("\"SPO-20240122-00{evil}1\"{}\n", ",".repeat(columns.len()));
        for at in 0..columns.len() {
            rows += 1;
            let cell = |index: usize| match index == at {
                true => format!("\"a{evil}b\""),
                false => String::new(),
            };
            let cells: Vec<String> = (0..columns.len()).map(cell).collect();
            text += &format!("SPO-20240122-{rows:03},{}\n", cells.join(","));
        }
    }
    let list = file(&deployment, "evil.csv", &text);
    for further in [&["--apply"][..], &["--apply", "--json"]] {
        let debug = ["--setting", "log.filter=trace"];
        let output = deployment.run(&[&["import", &list][..], further, &debug].concat());
        let (stdout, stderr) = shown(&output);
        assert_eq!(output.status.code(), Some(1), "{stdout} {stderr}");
        shows_no_control("stdout", &stdout);
        shows_no_control("stderr and log", &stderr);
        if let Ok(report) = serde_json::from_str::<Value>(&stdout) {
            assert_eq!(report["problems_total"], rows, "{report}");
            assert!(report["numbers"] == 0 && problems(&report).len() == rows, "{report}");
        }
    }
    let (clean, verified) = deployment.verify();
    assert!(clean && verified["totals"]["journal"] == 0, "nothing is stored: {verified}");
    // Names of columns and files are shown the same way.
    for evil in EVIL {
        let head = format!("number,\"x{evil}y\"\nSPO-20240122-001,\n");
        let list = file(&deployment, "head.csv", &head);
        let output = deployment.run(&["import", &list, "--apply"]);
        let (stdout, stderr) = shown(&output);
        assert!(!output.status.success());
        shows_no_control("stdout", &stdout);
        shows_no_control("stderr", &stderr);
    }
}

/// Goal: on a terminal too, where a progress bar is drawn. Method: `script` gives the command one.
#[test]
fn on_a_terminal_a_bar_says_what_it_counts_and_cells_are_shown_as_text() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    let evil = format!("number,document_id\nSPO-20240122-001,\"{}\"\n", EVIL[1]);
    let evil = file(&deployment, "evil.csv", &evil);
    let sound = file(&deployment, "sound.csv", "number,document_id\nSPO-20240122-001,D1\n");
    let terminal = |list: &str| {
        let command = deployment.command(&["import", list, "--apply"]);
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        let line = shlex::try_join(words).unwrap();
        let output = std::process::Command::new("script")
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .output()
            .expect("script of util-linux runs");
        String::from_utf8(output.stdout).unwrap()
    };
    let told = terminal(&evil);
    assert!(!told.contains(EVIL[1]) && told.contains("line 2"), "{told:?}");
    let told = terminal(&sound);
    assert!(told.contains("checking") && told.contains("importing"), "{told:?}");
    assert!(told.contains("sound.csv") && told.lines().any(|line| line == "imported"), "{told:?}");
}
