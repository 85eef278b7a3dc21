//! Every metric once: its definition, its handles, its place in the text that Prometheus reads.
//!
//! Other rooms count through the handles of [`Metrics`] and never name a metric themselves. Handles
//! are looked up once and begin at 0: a panel without events shows a line, not a hole. No label is
//! allocated while a request is served. Without a recorder (one-shot commands, tests) the handles
//! do nothing.

pub mod definitions;
mod families;
mod fullest;
mod lines;
mod partitions;
mod process;
mod reservations;
mod series;
mod stores;

pub use families::{ByPartition, Family};
pub use fullest::Fullness;
pub use partitions::{PartitionGauges, counter_gauges, partition_gauges, redis_gauges};
pub use process::ProcessUse;
pub use reservations::ReservationMeters;
pub use series::SeriesMeter;
pub use stores::{LedgerMeter, RedisMeter, count_gap};

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub use metrics::{Counter, Gauge, Histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use definitions as defined;
use definitions::{ALL, Kind};
use families::Found;
use fullest::Fullest;
use process::ProcessMeter;
use series::SeriesMeters;

/// How often [`PrometheusHandle::run_upkeep`] must run: between two runs every sample is kept.
pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// Outcomes of a request for a number.
const OUTCOMES: [&str; 5] = ["issued", "replayed", "refused", "unavailable", "failed"];
/// Who takes numbers.
const PATHS: [&str; 2] = ["redis", "database"];
/// Why a transaction of the database path is retried.
const DATABASE_RETRIES: [&str; 3] = ["lock", "conflict", "connection"];
/// Why a flight to Redis is sent again.
const REDIS_RETRIES: [&str; 2] = ["unknown", "not-executed"];
/// How the database may lose commits.
const LEDGER_HAZARDS: [&str; 4] =
    ["asynchronous-standby", "lazy-commit", "no-fsync", "no-full-page-writes"];
/// Outcomes for the locks of a transaction of the database path.
const LOCK_OUTCOMES: [&str; 3] = ["granted", "contended", "timeout"];
/// Kinds of recoveries.
const RECOVERY_KINDS: [&str; 3] = ["recovery", "fallback", "return"];
/// What a sweep removes.
const SWEPT: [&str; 3] = ["counters", "participants", "nodes"];
/// How epochs close.
const CLOSINGS: [&str; 2] = ["exact", "ceiling"];
/// Outcomes of the check of an interface serial.
const CHECK_OUTCOMES: [&str; 2] = ["accepted", "repeated"];
/// Outcomes of the values that sources are asked for.
const EXTERNAL_OUTCOMES: [&str; 5] = ["answered", "unavailable", "refused", "invalid", "taken"];
/// Outcomes of a call about a step.
const STEP_OUTCOMES: [&str; 6] =
    ["begun", "in-progress", "already-processed", "succeeded", "failed", "refused"];

/// What is counted for the calls of one route.
struct RouteMeter {
    statuses: Found<u16, Counter>,
    seconds: Histogram,
}

/// Whose certificates expire.
pub const CERTIFICATES: [&str; 4] =
    ["server", "database-authority", "database-client", "authority"];

/// What expires, and what is due.
pub struct DueMeters {
    /// How long ago the whole record was last covered by a checkpoint.
    pub checkpoint_age: Gauge,
    /// `audit.checkpoint`.
    pub checkpoint_period: Gauge,
    /// Time until certificates expire, by their owner.
    pub certificate_left: Family<Gauge>,
    /// Time until the first token expires.
    pub token_left: Gauge,
}

impl DueMeters {
    fn new() -> Self {
        let certificate = |of| defined::CERTIFICATE_LEFT.gauge(&[of]);
        DueMeters {
            checkpoint_age: defined::CHECKPOINT_AGE.gauge(&[]),
            checkpoint_period: defined::CHECKPOINT_PERIOD.gauge(&[]),
            certificate_left: Family::new(CERTIFICATES, certificate),
            token_left: defined::TOKEN_LEFT.gauge(&[]),
        }
    }
}

/// Handles of all metrics, looked up once. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Handles>);

/// The handles.
pub struct Handles {
    /// Requests for a number, by outcome.
    pub answers: Family<Counter>,
    /// From a checked request to its number.
    pub issue_seconds: Histogram,
    /// How long a request waits for its first flight or transaction.
    pub queue_wait_seconds: Histogram,
    /// `allocator.queue_max`.
    pub queue_max: Gauge,
    /// How long a flight or transaction took, by path.
    pub flight_seconds: Family<Histogram>,
    /// How many requests it carried, by path.
    pub flight_requests: Family<Histogram>,
    /// Flights and transactions that a request needed beyond the first.
    pub request_retries: Histogram,
    /// Transactions of the database path that were retried, by reason.
    pub retries_database: Family<Counter>,
    /// Flights sent again, by reason.
    pub retries_redis: Family<Counter>,
    /// Transactions of the database path, by the outcome for their locks.
    pub lock_acquisitions: Family<Counter>,
    /// Background jobs that panicked. Must stay 0.
    pub jobs_failed: Counter,
    /// Idempotency records removed before their window was over.
    pub records_shed: Counter,
    /// Epochs given up because a script refused or showed an inconsistency.
    pub fenced: Counter,
    recoveries: Family<Family<Counter>>,
    recovery_seconds: Family<Histogram>,
    /// Outbox entries of dead nodes that this node journaled.
    pub adopted: Counter,
    /// Nodes that fell silent and that this node retired.
    pub nodes_died: Counter,
    /// Numbers that were issued twice, as seen by this process. Must stay 0.
    pub duplicates: Counter,
    /// Collisions that the ledger holds. Must stay 0.
    pub collisions: Gauge,
    /// Records that the ledger refused and that were put into the table of rejected ones.
    pub rejected: Counter,
    /// Rows of records that are set aside.
    pub rejected_records: Gauge,
    /// Tokens that differ from what their events say. Must stay 0.
    pub tokens_untold: Gauge,
    /// The same, as seen by this process.
    pub tokens_untold_total: Counter,
    /// How often the ledger was held because it had gone back.
    pub ledger_went_back: Counter,
    /// What was swept, by kind.
    pub swept: Family<Counter>,
    /// Rounds of the sweep that ended early.
    pub sweeps_failed: Counter,
    /// Reservations.
    pub reservations: ReservationMeters,
    /// Ceilings raised.
    pub ceiling_raises: Counter,
    /// Requests that met a ceiling.
    pub ceiling_waits: Counter,
    /// Records committed to the journal after their answers were sent.
    pub journaled: Counter,
    /// Records handed out and not committed yet.
    pub journal_lag_records: Gauge,
    /// How long the oldest of them has waited.
    pub journal_lag_seconds: Gauge,
    /// `journal.queue_max`.
    pub journal_queue_max: Gauge,
    /// How long a batch of the journal took.
    pub journal_batch_seconds: Histogram,
    /// How many records it carried.
    pub journal_batch_records: Histogram,
    /// Whether the ledger answers the heartbeat.
    pub ledger_up: Gauge,
    /// How far this process's clock is ahead of the one it is compared with.
    pub clock_offset: Gauge,
    /// Whether the database may lose commits, by hazard.
    pub ledger_hazards: Family<Gauge>,
    /// Connections in use.
    pub ledger_connections_used: Gauge,
    /// Connections that are idle.
    pub ledger_connections_idle: Gauge,
    /// Connections that may be open.
    pub ledger_connections_max: Gauge,
    /// Whether Redis is configured.
    pub redis_configured: Gauge,
    /// Whether this node can issue.
    pub ready: Gauge,
    /// Nodes whose heartbeat moves.
    pub nodes_alive: Gauge,
    /// Nodes whose heartbeat has stopped.
    pub nodes_silent: Gauge,
    /// Stored series that cannot be used. Must stay 0.
    pub series_set_aside: Gauge,
    /// Checks of interface serials, by outcome.
    pub serial_checks: Family<Counter>,
    /// Calls about steps, by outcome.
    pub serial_steps: Family<Counter>,
    /// Values asked of sources, by outcome.
    pub external_calls: Family<Counter>,
    series: SeriesMeters,
    fullest: Fullest,
    /// What expires, and what is due.
    pub due: DueMeters,
    process: ProcessMeter,
    routes: Found<String, Arc<RouteMeter>>,
}

/// A counter for each value of a label.
fn counters(definition: defined::Definition, values: &[&'static str]) -> Family<Counter> {
    Family::new(values.iter().copied(), |value| definition.counter(&[value]))
}

/// A histogram for each value of a label.
fn histograms(definition: defined::Definition, values: &[&'static str]) -> Family<Histogram> {
    Family::new(values.iter().copied(), |value| definition.histogram(&[value]))
}

impl Metrics {
    /// Looks up every handle. Install the recorder first: a handle is bound to the one it finds.
    #[must_use]
    pub fn new() -> Self {
        // For their zeros only: the stores look up their own, and may not be configured.
        let _ = (LedgerMeter::new(), RedisMeter::new(), stores::start_counting_gaps());
        let retries = |path, reasons: &[&'static str]| {
            Family::new(reasons.iter().copied(), |reason| defined::RETRIES.counter(&[path, reason]))
        };
        Metrics(Arc::new(Handles {
            answers: counters(defined::ANSWERS, &OUTCOMES),
            issue_seconds: defined::ISSUE_SECONDS.histogram(&[]),
            queue_wait_seconds: defined::QUEUE_WAIT_SECONDS.histogram(&[]),
            queue_max: defined::QUEUE_MAX.gauge(&[]),
            flight_seconds: histograms(defined::FLIGHT_SECONDS, &PATHS),
            flight_requests: histograms(defined::FLIGHT_REQUESTS, &PATHS),
            request_retries: defined::REQUEST_RETRIES.histogram(&[]),
            retries_database: retries("database", &DATABASE_RETRIES),
            retries_redis: retries("redis", &REDIS_RETRIES),
            lock_acquisitions: counters(defined::LOCK_ACQUISITIONS, &LOCK_OUTCOMES),
            jobs_failed: defined::JOBS_FAILED.counter(&[]),
            records_shed: defined::RECORDS_SHED.counter(&[]),
            fenced: defined::FENCED.counter(&[]),
            recoveries: Family::new(RECOVERY_KINDS, |kind| {
                Family::new(CLOSINGS, |closing| defined::RECOVERIES.counter(&[kind, closing]))
            }),
            recovery_seconds: histograms(defined::RECOVERY_SECONDS, &RECOVERY_KINDS),
            adopted: defined::ADOPTED.counter(&[]),
            nodes_died: defined::NODES_DIED.counter(&[]),
            duplicates: defined::DUPLICATES.counter(&[]),
            collisions: defined::COLLISIONS.gauge(&[]),
            rejected: defined::REJECTED.counter(&[]),
            rejected_records: defined::REJECTED_RECORDS.gauge(&[]),
            tokens_untold: defined::TOKENS_UNTOLD.gauge(&[]),
            tokens_untold_total: defined::TOKENS_UNTOLD_TOTAL.counter(&[]),
            ledger_went_back: defined::LEDGER_WENT_BACK.counter(&[]),
            swept: counters(defined::SWEPT, &SWEPT),
            sweeps_failed: defined::SWEEPS_FAILED.counter(&[]),
            reservations: ReservationMeters::new(),
            ceiling_raises: defined::CEILING_RAISES.counter(&[]),
            ceiling_waits: defined::CEILING_WAITS.counter(&[]),
            journaled: defined::JOURNALED.counter(&[]),
            journal_lag_records: defined::JOURNAL_LAG_RECORDS.gauge(&[]),
            journal_lag_seconds: defined::JOURNAL_LAG_SECONDS.gauge(&[]),
            journal_queue_max: defined::JOURNAL_QUEUE_MAX.gauge(&[]),
            journal_batch_seconds: defined::JOURNAL_BATCH_SECONDS.histogram(&[]),
            journal_batch_records: defined::JOURNAL_BATCH_RECORDS.histogram(&[]),
            ledger_up: defined::LEDGER_UP.gauge(&[]),
            clock_offset: defined::CLOCK_OFFSET.gauge(&[]),
            ledger_hazards: Family::new(LEDGER_HAZARDS, |name| {
                defined::LEDGER_HAZARD.gauge(&[name])
            }),
            ledger_connections_used: defined::LEDGER_CONNECTIONS.gauge(&["used"]),
            ledger_connections_idle: defined::LEDGER_CONNECTIONS.gauge(&["idle"]),
            ledger_connections_max: defined::LEDGER_CONNECTIONS_MAX.gauge(&[]),
            redis_configured: defined::REDIS_CONFIGURED.gauge(&[]),
            ready: defined::READY.gauge(&[]),
            nodes_alive: defined::NODES.gauge(&["alive"]),
            nodes_silent: defined::NODES.gauge(&["silent"]),
            series_set_aside: defined::SERIES_SET_ASIDE.gauge(&[]),
            serial_checks: counters(defined::SERIAL_CHECKS, &CHECK_OUTCOMES),
            serial_steps: counters(defined::SERIAL_STEPS, &STEP_OUTCOMES),
            external_calls: counters(defined::EXTERNAL_CALLS, &EXTERNAL_OUTCOMES),
            series: SeriesMeters::default(),
            fullest: Fullest::default(),
            due: DueMeters::new(),
            process: ProcessMeter::new(),
            routes: Found::default(),
        }))
    }

    /// The counters of a series, to be kept together with the series.
    #[must_use]
    pub fn series(&self, code: &str) -> Arc<SeriesMeter> {
        self.series.of(code)
    }

    /// Forgets the counters of all series but these.
    pub fn keep_series<'c>(&self, codes: impl IntoIterator<Item = &'c str>) {
        self.series.keep(&codes.into_iter().collect());
    }

    /// Counts a recovery led by this node.
    pub fn count_recovery(&self, kind: &str, closing: &str, took: Duration) {
        self.recoveries.of(kind).of(closing).increment(1);
        self.recovery_seconds.of(kind).record(took);
    }

    /// Counts an answered HTTP request. `route` is the route's pattern, never the path itself: the
    /// number of label values stays bounded.
    pub fn count_request(&self, route: &str, status: u16, took: Duration) {
        let seconds = || defined::REQUEST_SECONDS.histogram(&[route]);
        let meter = || Arc::new(RouteMeter { statuses: Found::default(), seconds: seconds() });
        let meter = self.routes.of(route, meter);
        let code = || defined::REQUESTS.counter(&[route, &status.to_string()]);
        meter.statuses.of(&status, code).increment(1);
        meter.seconds.record(took);
    }

    /// Counters of problems by their slug; the caller knows the slugs.
    #[must_use]
    pub fn problems(slugs: impl IntoIterator<Item = &'static str>) -> Family<Counter> {
        Family::new(slugs, |slug| defined::PROBLEMS.counter(&[slug]))
    }

    /// Shows the version that runs here, and since when.
    pub fn say_build(&self, engine: &str, started_at_us: i64) {
        // Prometheus's own name and unit: by it, alert rules see what a young process counted.
        defined::PROCESS_START.gauge(&[]).set(started_at_us as f64 / 1e6);
        defined::BUILD_INFO.gauge(&[env!("CARGO_PKG_VERSION"), engine]).set(1.0);
    }

    /// Replaces the fullest counters.
    pub fn replace_fullest(&self, counters: Vec<Fullness>) {
        self.fullest.replace(counters);
    }

    /// Shows what this process uses.
    pub fn show_process(&self, seen: &ProcessUse) {
        self.process.show(seen);
    }

    /// All metrics in Prometheus's text format. Walks every series and drains samples: too long for
    /// a worker thread of the runtime.
    #[must_use]
    pub fn render(&self, prometheus: &PrometheusHandle) -> String {
        let mut text = prometheus.render();
        self.series.render(&mut text);
        self.fullest.render(&mut text);
        self.process.render(&mut text);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Metrics {
    type Target = Handles;

    fn deref(&self) -> &Handles {
        &self.0
    }
}

/// Makes the process's recorder and describes every metric. Call once, before [`Metrics::new`].
///
/// # Errors
/// When a recorder is already installed.
pub fn install_recorder() -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    describe();
    Ok(handle)
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    // Without buckets, histograms would be exposed as summaries, which cannot be added up.
    ALL.iter().try_fold(PrometheusBuilder::new(), |builder, definition| match definition.kind {
        Kind::Histogram(bounds) => {
            builder.set_buckets_for_metric(Matcher::Full(definition.name.into()), bounds)
        }
        _ => Ok(builder),
    })
}

fn describe() {
    ALL.iter().for_each(defined::Definition::describe);
}

#[cfg(test)]
mod tests;
