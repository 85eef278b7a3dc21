//! stdout for results, stderr for everything else. Neither ever panics on a closed pipe.
//!
//! A reader that has read enough (`numerator statement … | head`) ends nothing: the rest is not
//! printed, and the command ends as it would have, with the same exit code and without a message.
//! Only a result that cannot be shown again is reported elsewhere: [`must_print`].

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use numbering::{Lines, check_printable, escaped};
use serde::Serialize;

/// Prints a line for people that is not the result. A closed stderr is ignored.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", escaped(&line.to_string()));
}

/// Prints why a command failed, as JSON where its result would be.
pub(crate) fn complain(error: &anyhow::Error, as_json: bool) {
    let line = format!("{error:#}").replace('\n', " ");
    if as_json {
        say(format_args!("{}", serde_json::json!({ "error": line })));
    } else {
        say(format_args!("numerator: {line}"));
    }
}

/// Whether the reader of standard output has closed it.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output has closed it: a command that prints without end stops
/// then.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

/// The meaning of a failed write: a reader that has closed the pipe is no failure.
///
/// # Errors
/// Any other.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        written => written,
    }
}

/// Prints lines of the result. What files and ledgers hold is shown, never obeyed: a character that
/// a terminal would act upon is printed as `\u{1b}`.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print(lines: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    print_drawn(lines.into_iter().map(|line| escaped(&line.to_string()).into_owned()))
}

/// Prints lines that were drawn for a terminal.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print_drawn(lines: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    unless_closed(write_lines(lines))
}

/// Prints the result as one JSON document.
///
/// # Errors
/// When stdout cannot be written.
pub(crate) fn print_json(result: &impl Serialize) -> io::Result<()> {
    unless_closed(must_print_json(result))
}

/// Prints lines that cannot be shown again, such as a secret.
///
/// # Errors
/// When stdout cannot be written, or its reader has closed it.
pub(crate) fn must_print(lines: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    write_lines(lines.into_iter().map(|line| escaped(&line.to_string()).into_owned()))
}

/// The same as one JSON document.
///
/// # Errors
/// The same.
pub(crate) fn must_print_json(result: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(result)?;
    write_lines([escaped_json(&text)])
}

fn write_lines(lines: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

/// The same JSON, in which what is not printable is escaped as JSON.
fn escaped_json(text: &str) -> Cow<'_, str> {
    if check_printable(text, Lines::Many).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        let mut buffer = [0; 4];
        if check_printable(character.encode_utf8(&mut buffer), Lines::Many).is_ok() {
            shown.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(shown, "\\u{unit:04x}");
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_escape_sequences_of_a_file_is_the_same_json_without_them() {
        let value = serde_json::json!({ "number": "a\u{9b}2J\u{202e}\u{e0001}ก" });
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let shown = escaped_json(&text);
        assert!(check_printable(&shown, Lines::Many).is_ok(), "{shown}");
        let read: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
        assert_eq!(read, value);
    }
}
