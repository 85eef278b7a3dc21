//! Lines without colors have the text of lines of a terminal.

use std::io;
use std::sync::{Mutex, MutexGuard};

use tracing_subscriber::fmt::MakeWriter;

use super::*;

/// How fields are written without our help, or with it.
struct Lines {
    plainly: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.plainly {
            write_plainly(&mut line, event)?;
        } else {
            context.field_format().format_fields(line.by_ref(), event)?;
        }
        writeln!(line)
    }
}

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Keeping<'a>;

    fn make_writer(&'a self) -> Keeping<'a> {
        Keeping(self.0.lock().expect("no holder panics"))
    }
}

struct Keeping<'a>(MutexGuard<'a, Vec<u8>>);

impl io::Write for Keeping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An error with a cause.
fn caused() -> Box<dyn std::error::Error> {
    let failed = "x".parse::<i32>().expect_err("no number");
    Box::new(io::Error::other(io::Error::other(failed)))
}

fn written(plainly: bool) -> String {
    let kept = Kept::default();
    let builder = tracing_subscriber::fmt().with_ansi(false).with_max_level(Level::TRACE);
    let subscriber = builder.event_format(Lines { plainly }).with_writer(kept.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        let (user, ip, route) = ("a \"b\" \\ ก\n\u{1b}[31m", "192.0.2.7", "/api/v1/{id}");
        tracing::info!(user, ip, route, status = 201_u16, took_us = u64::MAX, "answered");
        tracing::warn!(slug = "", at = -7_i64, ok = true, share = 0.5, "a {} line", "\u{1b}[1m");
        tracing::debug!(error = %"shown", debug = ?Some("x"), r#type = 1_u8, r#as = "y");
        tracing::info!(message = "a text", "log.line" = 3_u32, "log.file" = "f");
        tracing::info!("log.line" = 3_u32, after = "b");
        tracing::error!(error = caused().as_ref(), after = "c", "failed");
        tracing::info!(big = i128::MIN, other = u128::MAX);
        tracing::info!("alone");
    });
    let text = kept.0.lock().expect("no holder panics").clone();
    String::from_utf8(text).expect("text")
}

#[test]
fn fields_are_written_as_they_are_for_a_terminal_but_for_the_colors() {
    let (usual, plain) = (written(false), written(true));
    assert_eq!(usual.lines().count(), plain.lines().count());
    for (usual, plain) in usual.lines().zip(plain.lines()) {
        assert_eq!(usual, plain);
    }
    assert!(plain.contains(" ip=\"192.0.2.7\" route=\"/api/v1/{id}\" status=201 "), "{plain}");
}
