//! What the process reports about itself: log, spans, gauges, certificates.

pub mod certificates;
#[cfg(feature = "otlp")]
pub(crate) mod export;
pub mod gauges;
pub(crate) mod log;
pub mod log_lines;
pub(crate) mod log_writer;
pub mod settings;
#[cfg(feature = "otlp")]
pub mod spans;
