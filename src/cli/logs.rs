//! Starts the log: to stderr, for people or for machines.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// Starts the process's log. Does nothing where one runs already.
pub(super) fn start(settings: &LogSettings, default_filter: &str) {
    let filter = settings.filter.as_deref().unwrap_or(default_filter);
    let lines = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal());
    // The only failure is a log that was started before, and that one serves as well.
    let _ = match settings.format {
        LogFormat::Pretty => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).with_span_list(false).try_init(),
    };
}
