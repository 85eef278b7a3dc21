//! A reader that has read enough ends no command with an error.

use std::process::{Command, Output, Stdio};

use crate::deployment::Deployment;

/// Commands that print, and what they exit with.
const PRINT: [(&[&str], i32); 22] = [
    (&["statement", "--series", "LOAD", "--period", "2026"], 0),
    (&["statement", "--series", "LOAD", "--period", "2026", "--json"], 0),
    (&["statement", "--series", "LOAD", "--period", "2026", "--format", "html"], 0),
    (&["statement", "--series", "LOAD", "--period", "2026", "--format", "csv"], 0),
    (&["find", "--series", "LOAD"], 0),
    (&["find", "--series", "LOAD", "--json"], 0),
    (&["export"], 0),
    (&["export", "--format", "jsonl"], 0),
    (&["events"], 0),
    (&["gaps", "--explain"], 0),
    (&["counters"], 0),
    (&["status"], 0),
    (&["status", "--json"], 0),
    (&["verify"], 0),
    (&["verify", "--json"], 0),
    (&["series", "list"], 0),
    (&["series", "show", "LOAD"], 0),
    (&["preview", "LOAD"], 0),
    (&["parse", "L-00000001"], 0),
    (&["token", "list"], 0),
    (&["drain"], 0),
    (&["completions", "bash"], 0),
];

/// Runs a command whose standard output is not read.
fn unread(mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

#[test]
fn a_reader_that_has_read_enough_ends_every_command_quietly() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    for _ in 0..3 {
        deployment.ok(&["next", "LOAD"]);
    }
    let says = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for (arguments, code) in PRINT {
        let output = unread(deployment.command(arguments));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", says(&output));
        assert_eq!(says(&output), "", "{arguments:?}");
    }
    // A failure remains one if the output is not read.
    let file = deployment.path(testkit::service::SQLITE_FILE);
    let taken = "update counter set taken = taken + 1, ceiling = ceiling + 1";
    let wrong = Command::new("sqlite3").arg(file).arg(taken).output().unwrap();
    assert!(wrong.status.success(), "{}", says(&wrong));
    let output = unread(deployment.command(&["verify"]));
    assert_eq!(output.status.code(), Some(1));
    assert!(says(&output).contains("not clean"), "{}", says(&output));
    // A number or a secret that was not delivered is reported.
    let output = unread(deployment.command(&["token", "create", "desk"]));
    assert_eq!(output.status.code(), Some(1));
}
