//! The sections of a process's own output, and of records for auditors: `log`, `audit`, `archive`,
//! `trace`, `metrics`.

use serde::{Deserialize, Serialize};

use crate::config::bounds::{millis, secs};
use crate::config::{DurationText, LogFormat};
use crate::telemetry::gauges::GaugeSettings;

section! {
    /// `log.*`
    Log {
        /// `pretty` for people, or one JSON object per line. Logs go to standard error.
        format: LogFormat = LogFormat::default(), "`pretty` or `json`";
        /// What is logged. `serve` reads it again at SIGHUP ([the filter](#the-filter)).
        filter: Option<String> = None,
            "a level, or directives such as `info,numerator::web=debug`",
            absent "none: `info` for `serve`, `warn` for the other commands", like "" "\"info\"";
        /// Lines in a second of requests that are answered with a problem, at each listener; then
        /// one line says how many more there were ([what is left out](#what-is-left-out)).
        refused_per_second_max: u32 = 100, 0..=1_000_000;
    }
}

section! {
    /// `audit.*`
    Audit {
        /// The private key with which [checkpoints](record.md#under-seal) are signed:
        /// [who has it](#the-key).
        key: Option<String> = None, "path of a file, or the key itself in PEM form",
            absent "none: nothing is signed",
            like "a path in quotes, or a key in PEM form" "\"/etc/numerator/audit.pem\"";
        /// Whether a process or a command without `audit.key` may write to a ledger that knows a
        /// key: [what follows](#the-key).
        without_key: bool = false, "";
        /// Time between two checkpoints: for so long, a user with write access to the database
        /// could remove what was just written without a trace in them.
        checkpoint: DurationText = secs(60), secs(1)..=secs(3_600);
    }
}

section! {
    /// `archive.*`
    Archive {
        /// For so many years after the last of its numbers was issued, `numerator archive delete`
        /// refuses to delete an [archive file](record.md#archive). None is deleted automatically.
        retention_years: u32 = 7, 1..=100;
    }
}

section! {
    /// `trace.*`
    Trace {
        /// A collector nearby that takes OTLP over HTTP, such as `http://127.0.0.1:4318/v1/traces`.
        /// Only for a program built with `--features otlp`; `serve` of any other refuses it.
        otlp_url: Option<String> = None, "begins with `http://`", absent "none: no spans are sent",
            like "an address in quotes" "\"http://127.0.0.1:4318/v1/traces\"";
        /// How many of a hundred requests are traced if the caller's `traceparent` does not decide.
        sampled_percent: u32 = 100, 0..=100;
    }
}

section! {
    /// `metrics.*`
    Metrics {
        /// Whether the label `key` of a counter is its counter key, which shows projects and
        /// organizations, and not its id ([which it is](runbook.md#a-counter-is-nearly-full)).
        counter_keys: bool = GaugeSettings::default().counter_keys, "";
        /// Time between two readings of counters, collisions and outboxes; the other metrics show
        /// the moment of the request.
        period: DurationText = DurationText(GaugeSettings::default().period),
            millis(100)..=secs(600);
    }
}
