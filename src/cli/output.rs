//! stdout for results, stderr for everything else. Neither ever panics on a closed pipe.

use std::fmt::Display;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

/// Tells a person something that is not the result. A closed stderr is ignored.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints lines of the result.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn print(lines: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// Prints the result as one JSON document.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn print_json(result: &impl Serialize) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, result)?;
    writeln!(out)?;
    out.flush()
}
