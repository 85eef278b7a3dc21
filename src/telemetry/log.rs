//! Starts the log: to stderr, for people or for machines.
//!
//! Never prints a secret: URLs with passwords and tokens are not logged anywhere.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{IsTerminal, stderr};

use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use crate::telemetry::log_lines::{JsonLines, PrettyLines};
use crate::telemetry::log_writer::{Gathering, LogWriter};
use crate::telemetry::settings::{LogFormat, LogSettings};

/// The level of a service where the settings name none.
const OF_SERVICE: &str = "info";

/// The other recipients of the spans and lines that pass the filter.
pub(crate) type Spans = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts the log of a command: each line is written immediately. Does nothing where a log runs
/// already.
pub(crate) fn start(settings: &LogSettings, default_filter: &str) {
    install(settings, default_filter, None, stderr);
}

/// The filter of the log of a service, while it runs.
pub(crate) struct LogFilter(Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send + Sync>);

impl LogFilter {
    /// Has the log go by the settings from now on; its form stays.
    pub(crate) fn replace(&self, settings: &LogSettings) {
        let filter = settings.filter.as_deref().unwrap_or(OF_SERVICE);
        match (self.0)(EnvFilter::new(filter)) {
            // Under the new one, which may show less than `info`.
            Ok(()) => tracing::warn!(filter, "the log goes by this from now on"),
            Err(error) => tracing::error!(%error, "the log goes on as before"),
        }
    }
}

/// Starts the log of a service, whose lines are gathered as long as the value is kept; what changes
/// its filter, unless a log runs already.
pub(crate) fn start_gathering(
    settings: &LogSettings,
    spans: Option<Spans>,
) -> (Gathering, Option<LogFilter>) {
    let (writer, gathering) = LogWriter::gathering(stderr());
    (gathering, install(settings, OF_SERVICE, spans, writer))
}

fn install(
    settings: &LogSettings,
    default_filter: &str,
    spans: Option<Spans>,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Option<LogFilter> {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    let lines = fmt::layer().with_writer(writer).with_ansi(stderr().is_terminal());
    let lines = match settings.format {
        LogFormat::Pretty => lines.event_format(PrettyLines).boxed(),
        LogFormat::Json => lines.event_format(JsonLines).boxed(),
    };
    let (filter, handle) = reload::Layer::new(EnvFilter::new(filter));
    let log = tracing_subscriber::registry().with(spans).with(lines).with(filter);
    // The only failure is a log that was started before, and that one serves as well.
    let is_ours = log.try_init().is_ok();
    if is_ours && settings.format == LogFormat::Json {
        std::panic::set_hook(Box::new(log_panic));
    }
    is_ours.then(|| LogFilter(Box::new(move |filter| handle.reload(filter))))
}

/// A panic as a line like any other: a reader of JSON lines must not meet another format.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let cause = panic.payload_as_str().unwrap_or("a panic without a text");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        tracing::error!(cause, place, %backtrace, "panic");
    } else {
        tracing::error!(cause, place, "panic");
    }
}
