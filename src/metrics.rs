//! Every metric once, with its help text.
//!
//! Other rooms count through the handles of [`Metrics`] and never name a metric themselves. Without
//! a recorder (one-shot commands, tests) the handles do nothing.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// How often [`PrometheusHandle::run_upkeep`] has to run: until then every sample is kept.
pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

const ISSUED: &str = "numerator_issued_total";
const REPLAYED: &str = "numerator_replayed_total";
const REQUESTS: &str = "numerator_requests_total";
const REQUEST_SECONDS: &str = "numerator_request_seconds";
const FLIGHT_SECONDS: &str = "numerator_flight_seconds";
const FLIGHT_REQUESTS: &str = "numerator_flight_requests";
const JOURNAL_LAG: &str = "numerator_journal_lag_records";
const JOURNAL_BATCH_SECONDS: &str = "numerator_journal_batch_seconds";
const RECOVERIES: &str = "numerator_recoveries_total";
const RECORDS_SHED: &str = "numerator_idempotency_records_shed_total";
const FENCED: &str = "numerator_fenced_total";
const ADOPTED: &str = "numerator_adopted_total";
const DUPLICATES: &str = "numerator_duplicates_total";
const REJECTED: &str = "numerator_rejected_total";
const LEDGER_WENT_BACK: &str = "numerator_ledger_went_back_total";
const GAPS: &str = "numerator_gaps_total";
const LEDGER_RETRIES: &str = "numerator_ledger_retries_total";
const SERIAL_CHECKS: &str = "numerator_serial_checks_total";
const SERIAL_STEPS: &str = "numerator_serial_steps_total";
const CEILING_RAISES: &str = "numerator_ceiling_raises_total";

/// From half a millisecond to the time limit of a request, in seconds.
const SECONDS_BUCKETS: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0,
    40.0,
];

/// Powers of two up to the largest flight.
const REQUESTS_BUCKETS: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 1_024.0];

/// Handles of all metrics, looked up once. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    /// Numbers issued by flights to Redis.
    pub issued_redis: Counter,
    /// Numbers issued by transactions of the ledger.
    pub issued_database: Counter,
    /// Requests answered with an earlier number.
    pub replayed: Counter,
    /// How long a flight, or a transaction of the database path, took.
    pub flight_seconds: Histogram,
    /// How many requests it carried.
    pub flight_requests: Histogram,
    /// Records that wait for the journal.
    pub journal_lag_records: Gauge,
    /// How long a batch of the journal took.
    pub journal_batch_seconds: Histogram,
    /// Recoveries led by this node.
    pub recoveries: Counter,
    /// Script calls refused: wrong epoch, wrong incarnation or no owner record.
    pub fenced: Counter,
    /// Idempotency records that went before their window was over.
    pub records_shed: Counter,
    /// Outbox entries of dead nodes that this node journaled.
    pub adopted: Counter,
    /// Numbers that came twice. Must stay 0.
    pub duplicates: Counter,
    /// Records that the ledger refused and that went to the table of rejected ones.
    pub rejected: Counter,
    /// How often the ledger was held because it had gone back.
    pub ledger_went_back: Counter,
    /// Runs of values that went to the gap register.
    pub gaps: Counter,
    /// Ceilings raised.
    pub ceiling_raises: Counter,
    /// Transactions of the database path tried again because a lock was not granted.
    pub retries_lock: Counter,
    /// The same because of a deadlock or a serialisation failure.
    pub retries_conflict: Counter,
    /// The same because the ledger was lost.
    pub retries_connection: Counter,
}

impl Metrics {
    /// Looks every handle up. Install the recorder first: handles are bound to the one they met.
    #[must_use]
    pub fn new() -> Self {
        Metrics {
            issued_redis: counter!(ISSUED, "path" => "redis"),
            issued_database: counter!(ISSUED, "path" => "database"),
            replayed: counter!(REPLAYED),
            flight_seconds: histogram!(FLIGHT_SECONDS),
            flight_requests: histogram!(FLIGHT_REQUESTS),
            journal_lag_records: gauge!(JOURNAL_LAG),
            journal_batch_seconds: histogram!(JOURNAL_BATCH_SECONDS),
            recoveries: counter!(RECOVERIES),
            fenced: counter!(FENCED),
            records_shed: counter!(RECORDS_SHED),
            adopted: counter!(ADOPTED),
            duplicates: counter!(DUPLICATES),
            rejected: counter!(REJECTED),
            ledger_went_back: counter!(LEDGER_WENT_BACK),
            gaps: counter!(GAPS),
            ceiling_raises: counter!(CEILING_RAISES),
            retries_lock: counter!(LEDGER_RETRIES, "reason" => "lock"),
            retries_conflict: counter!(LEDGER_RETRIES, "reason" => "conflict"),
            retries_connection: counter!(LEDGER_RETRIES, "reason" => "connection"),
        }
    }

    /// Counts an answered HTTP request. `route` is the route's pattern, never the path itself: the
    /// number of label values stays bounded.
    pub fn count_request(&self, route: &'static str, status: u16, took: Duration) {
        counter!(REQUESTS, "route" => route, "status" => status.to_string()).increment(1);
        histogram!(REQUEST_SECONDS, "route" => route).record(took.as_secs_f64());
    }

    /// Counts a check of an interface serial: `accepted` or `repeated`.
    pub fn count_serial_check(&self, outcome: &'static str) {
        counter!(SERIAL_CHECKS, "outcome" => outcome).increment(1);
    }

    /// Counts a call about a step, by what became of it.
    pub fn count_serial_step(&self, outcome: &'static str) {
        counter!(SERIAL_STEPS, "outcome" => outcome).increment(1);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes the process's recorder and describes every metric. Call once, before [`Metrics::new`].
///
/// # Errors
/// When a recorder is installed already.
pub fn install_recorder() -> Result<PrometheusHandle, BuildError> {
    let handle = builder()?.install_recorder()?;
    describe();
    Ok(handle)
}

fn builder() -> Result<PrometheusBuilder, BuildError> {
    // Without buckets, histograms would be exposed as summaries, which cannot be added up.
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS_BUCKETS)?
        .set_buckets_for_metric(Matcher::Full(FLIGHT_REQUESTS.into()), &REQUESTS_BUCKETS)
}

fn describe() {
    for (name, help) in [
        (ISSUED, "Numbers issued, by path (redis, database)."),
        (REPLAYED, "Requests answered with an earlier number."),
        (REQUESTS, "HTTP requests answered, by route and status (499: the client left)."),
        (RECOVERIES, "Recoveries of a partition led by this node."),
        (FENCED, "Script calls refused by epoch, incarnation or owner record."),
        (RECORDS_SHED, "Idempotency records that went before their window was over."),
        (ADOPTED, "Outbox entries of dead nodes journaled by this node."),
        (DUPLICATES, "Numbers that the ledger saw twice. Must stay 0."),
        (REJECTED, "Records refused by the ledger and kept as rejected."),
        (LEDGER_WENT_BACK, "Times that the ledger was held because it had gone back."),
        (GAPS, "Runs of values entered into the gap register."),
        (CEILING_RAISES, "Ceilings raised."),
        (SERIAL_CHECKS, "Checks of interface serials, by outcome (accepted, repeated)."),
        (SERIAL_STEPS, "Calls about steps of system serials, by outcome."),
        (LEDGER_RETRIES, "Transactions tried again, by reason (lock, conflict, connection)."),
    ] {
        describe_counter!(name, Unit::Count, help);
    }
    describe_gauge!(JOURNAL_LAG, Unit::Count, "Records that wait for the journal.");
    for (name, help) in [
        (REQUEST_SECONDS, "Time to answer an HTTP request, by route."),
        (FLIGHT_SECONDS, "Time of a flight to Redis or a transaction of the database path."),
        (JOURNAL_BATCH_SECONDS, "Time of a journal transaction."),
    ] {
        describe_histogram!(name, Unit::Seconds, help);
    }
    describe_histogram!(FLIGHT_REQUESTS, Unit::Count, "Requests in a flight or transaction.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_help_and_counters_start_at_zero() {
        let recorder = builder().expect("buckets").build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            let metrics = Metrics::new();
            metrics.issued_database.increment(2);
            metrics.flight_seconds.record(0.003);
            metrics.flight_requests.record(3.0);
            metrics.journal_batch_seconds.record(0.1);
            metrics.count_request("/healthz", 200, Duration::from_millis(2));
        });
        let text = handle.render();
        for line in [
            "numerator_duplicates_total 0",
            "numerator_issued_total{path=\"redis\"} 0",
            "numerator_issued_total{path=\"database\"} 2",
            "numerator_requests_total{route=\"/healthz\",status=\"200\"} 1",
            "numerator_flight_seconds_bucket{le=\"0.005\"} 1",
            "numerator_flight_requests_bucket{le=\"4\"} 1",
            "numerator_journal_lag_records 0",
        ] {
            assert!(text.contains(line), "{line} is missing from\n{text}");
        }
        let metrics = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        for name in metrics.filter_map(|line| line.split(' ').next()) {
            assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help text");
        }
    }

    #[test]
    fn without_a_recorder_counting_does_nothing() {
        let metrics = Metrics::new();
        metrics.issued_redis.increment(1);
        metrics.count_request("/healthz", 200, Duration::ZERO);
    }
}
