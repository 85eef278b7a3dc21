//! The format of a log line, for people and for machines. Each line that is written while a request
//! is processed has the id of the request.
//!
//! No spans: one costs more than all checks of a request together. Knows no request but its id; the
//! commands choose where lines go.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer as _};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::VisitOutput as _;
use tracing_subscriber::fmt::format::{DefaultVisitor, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::registry::LookupSpan;

tokio::task_local! {
    /// The request that the task works for.
    static WORKED_FOR: Arc<str>;
}

/// Work for a request: its lines have the request's id.
pub fn working_for<W: Future>(request_id: Arc<str>, work: W) -> impl Future<Output = W::Output> {
    WORKED_FOR.scope(request_id, work)
}

/// Work that continues in its own task, for the request for which it was begun, where there is one.
pub fn along<W: Future>(work: W) -> impl Future<Output = W::Output> {
    let request_id = current();
    async move {
        match request_id {
            Some(id) => working_for(id, work).await,
            None => work.await,
        }
    }
}

/// The request that is worked for.
fn current() -> Option<Arc<str>> {
    WORKED_FOR.try_with(Arc::clone).ok()
}

/// For people: time, level, request, place and fields.
pub struct PrettyLines;

/// For machines: an object, its fields next to `timestamp`, `level` and `target`.
pub struct JsonLines;

impl<S, N> FormatEvent<S, N> for PrettyLines
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
        let about = event.metadata();
        SystemTime.format_time(&mut line)?;
        let (level, color) = shown(*about.level());
        match line.has_ansi_escapes() {
            true => write!(line, " \x1b[{color}m{level}\x1b[0m ")?,
            false => write!(line, " {level} ")?,
        }
        if let Some(id) = current() {
            write!(line, "request{{request_id={id}}}: ")?;
        }
        write!(line, "{}: ", about.target())?;
        if line.has_ansi_escapes() {
            context.field_format().format_fields(line.by_ref(), event)?;
        } else {
            write_plainly(&mut line, event)?;
        }
        writeln!(line)
    }
}

/// Writes fields as they are written for a terminal, but for the colors: a line for each number
/// costs half as much so.
fn write_plainly(line: &mut Writer<'_>, event: &Event<'_>) -> fmt::Result {
    let mut fields = PlainFields { line, is_empty: true, outcome: Ok(()) };
    event.record(&mut fields);
    fields.outcome
}

struct PlainFields<'w, 'l> {
    line: &'w mut Writer<'l>,
    is_empty: bool,
    outcome: fmt::Result,
}

impl PlainFields<'_, '_> {
    /// The name of a field, where nothing about it is odd; then its value follows.
    fn name(&mut self, field: &Field) -> bool {
        let name = field.name();
        if name == "message" || name.starts_with("r#") || name.starts_with("log.") {
            return false;
        }
        let gap = if self.is_empty { "" } else { " " };
        self.is_empty = false;
        for part in [gap, name, "="] {
            self.put(part);
        }
        true
    }

    fn put(&mut self, text: &str) {
        if self.outcome.is_ok() {
            self.outcome = self.line.write_str(text);
        }
    }

    /// Has a field written as it usually is.
    fn usual(&mut self, field: &Field, write: impl FnOnce(&mut DefaultVisitor<'_>)) {
        if self.outcome.is_ok() {
            let mut usual = DefaultVisitor::new(self.line.by_ref(), self.is_empty);
            write(&mut usual);
            // Fields that another logger adds about a line are left out.
            self.is_empty &= field.name().starts_with("log.");
            self.outcome = usual.finish();
        }
    }

    fn number(&mut self, field: &Field, digits: &str) {
        match self.name(field) {
            true => self.put(digits),
            false => self.record_debug(field, &format_args!("{digits}")),
        }
    }
}

impl Visit for PlainFields<'_, '_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, itoa::Buffer::new().format(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, itoa::Buffer::new().format(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if value.bytes().all(is_plain) && self.name(field) {
            for part in ["\"", value, "\""] {
                self.put(part);
            }
        } else if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.usual(field, |usual| usual.record_debug(field, value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.usual(field, |usual| usual.record_error(field, value));
    }
}

/// How a level is written, and its color on a terminal.
fn shown(level: Level) -> (&'static str, u8) {
    match level {
        Level::ERROR => ("ERROR", 31),
        Level::WARN => (" WARN", 33),
        Level::INFO => (" INFO", 32),
        Level::DEBUG => ("DEBUG", 34),
        Level::TRACE => ("TRACE", 35),
    }
}

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut text = Vec::with_capacity(LINE_BYTES);
        write_object(&mut text, event).map_err(|_| fmt::Error)?;
        writeln!(line, "{}", std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Room for the line of an ordinary request.
const LINE_BYTES: usize = 512;

fn write_object(text: &mut Vec<u8>, event: &Event<'_>) -> serde_json::Result<()> {
    let about = event.metadata();
    let mut time = String::new();
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let mut writer = serde_json::Serializer::new(text);
    let mut object = writer.serialize_map(None)?;
    object.serialize_entry("timestamp", &time)?;
    object.serialize_entry("level", about.level().as_str())?;
    let mut fields = Fields { object, outcome: Ok(()) };
    event.record(&mut fields);
    let Fields { mut object, outcome } = fields;
    outcome?;
    object.serialize_entry("target", about.target())?;
    if let Some(id) = current() {
        object.serialize_entry("span", &About { request_id: &id, name: "request" })?;
    }
    SerializeMap::end(object)
}

/// The fields of a line, written as they come.
struct Fields<O: SerializeMap> {
    object: O,
    outcome: Result<(), O::Error>,
}

impl<O: SerializeMap> Fields<O> {
    fn put(&mut self, field: &Field, value: impl Serialize) {
        if self.outcome.is_ok() {
            self.outcome = self.object.serialize_entry(field.name(), &value);
        }
    }
}

impl<O: SerializeMap> Visit for Fields<O> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }
}

/// The request that a line is about.
#[derive(Serialize)]
struct About<'a> {
    request_id: &'a str,
    name: &'static str,
}

#[cfg(test)]
mod tests;
