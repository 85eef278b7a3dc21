//! Options of `compare` that contradict each other.

use std::process::Command;

#[test]
fn a_smoke_test_takes_no_options_that_it_would_not_follow() {
    for option in ["--rows=5000", "--connections=4", "--seconds=1", "--runs=2"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
        let output = command.args(["compare", "--smoke", option]).output().expect("loadtest runs");
        assert_eq!(output.status.code(), Some(2), "{option}");
        let said = String::from_utf8_lossy(&output.stderr);
        let name = option.split('=').next().expect("a name");
        assert!(said.contains(name) && said.contains("--smoke"), "{said}");
    }
}
