//! What no second try mends. A test that looks at how soon things happen may be tried again where
//! the machine stopped for a moment; a number that came twice may not.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::Location;

/// The variable that names the file in which each broken promise gets a line. `scripts/test` fails
/// where there is one, whatever a later try of that test says. Without it the panic is all.
pub const BROKEN_PROMISES: &str = "NUMERATOR_BROKEN_PROMISES";

/// Panics unless a promise holds: no number twice, none lost.
#[track_caller]
pub fn must_hold(holds: bool, promise: &str) {
    if !holds {
        note(std::env::var_os(BROKEN_PROMISES).as_deref(), promise);
        panic!("{promise}");
    }
}

#[track_caller]
fn note(path: Option<&OsStr>, promise: &str) {
    let Some(path) = path else { return };
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{}: {promise}", Location::caller()).unwrap();
}

#[test]
fn each_broken_promise_leaves_a_line_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken");
    for promise in ["the first one", "the second one"] {
        note(Some(path.as_os_str()), promise);
    }
    let lines = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines[0].contains("promise.rs") && lines[0].ends_with(": the first one"), "{lines:?}");
    assert!(lines[1].ends_with(": the second one"), "{lines:?}");
}
