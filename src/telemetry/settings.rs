//! How the log is written, and where spans are sent.

use serde::{Deserialize, Serialize};

/// What is logged, and how. Logs go to stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// `log.format`.
    pub format: LogFormat,
    /// `log.filter`: a level, or directives such as `info,numerator::web=debug`; absent: `info`
    /// for `serve`, `warn` for the other commands.
    pub filter: Option<String>,
    /// `log.refused_per_second_max`: lines in a second of requests that are refused.
    pub refused_per_second_max: u32,
}

/// Which spans leave the process, and whereto.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSettings {
    /// `trace.otlp_url`: a collector that takes OTLP over HTTP; absent: none leaves.
    pub otlp_url: Option<String>,
    /// `trace.sampled_percent`: how many of a hundred requests are traced where the caller does not
    /// decide.
    pub sampled_percent: u32,
}

/// Shape of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object per line.
    Json,
}
