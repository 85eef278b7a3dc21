//! What is counted in the stores themselves: calls to the ledger and to Redis.
//!
//! The rooms of the stores are opened before a service has its metrics, and by commands that count
//! nothing, so they look up their handles themselves.

use std::time::Duration;

use metrics::{Counter, Histogram};

use super::definitions::{
    GAP_VALUES, GAPS, LEDGER_CALL_SECONDS, LEDGER_ERRORS, LOCK_WAIT_SECONDS, REDIS_CALL_SECONDS,
    REDIS_ERRORS,
};
use super::families::Family;

/// Kinds of calls to the ledger.
pub(super) const LEDGER_CALLS: [&str; 7] =
    ["heartbeat", "append", "take", "seed", "raise", "replays", "other"];
/// Why the ledger did not carry out a call.
const LEDGER_REASONS: [&str; 5] = ["lock", "conflict", "connection", "fenced", "refused"];
/// Why values will never be issued.
const GAP_REASONS: [&str; 8] = [
    "discarded",
    "unaccounted",
    "collided",
    "before-import",
    "skipped",
    "returned",
    "cancelled",
    "expired",
];
/// Verbs of scripts; the verbs that only commands call share the last one.
const REDIS_VERBS: [&str; 13] = [
    "issue",
    "seed",
    "raise",
    "open",
    "trim",
    "bar",
    "read_outbox",
    "sweep",
    "limit",
    "drop_outbox",
    "settle",
    "probe",
    "other",
];
/// Why a reply of Redis cannot be used.
const REDIS_REASONS: [&str; 4] = ["unknown", "not-executed", "broken", "garbled"];

/// Calls to the ledger.
#[derive(Debug)]
pub struct LedgerMeter {
    calls: Family<Histogram>,
    errors: Family<Counter>,
    lock_wait: Histogram,
}

impl LedgerMeter {
    /// Looks up the handles.
    #[must_use]
    pub fn new() -> Self {
        LedgerMeter {
            calls: Family::new(LEDGER_CALLS, |call| LEDGER_CALL_SECONDS.histogram(&[call])),
            errors: Family::new(LEDGER_REASONS, |reason| LEDGER_ERRORS.counter(&[reason])),
            lock_wait: LOCK_WAIT_SECONDS.histogram(&[]),
        }
    }

    /// Counts a call; `failure` is why it was not carried out.
    pub fn count(&self, call: &str, took: Duration, failure: Option<&str>) {
        self.calls.of(call).record(took);
        if let Some(reason) = failure {
            self.errors.of(reason).increment(1);
        }
    }

    /// Counts the wait of a transaction for its locks, granted or not.
    pub fn count_lock_wait(&self, waited: Duration) {
        self.lock_wait.record(waited);
    }
}

impl Default for LedgerMeter {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes the counters of runs of values that go to the gap register start from 0.
pub(super) fn start_counting_gaps() {
    GAP_REASONS.iter().for_each(|reason| count_gaps(reason, 0, 0));
}

/// Counts a run of `values` values that goes to the gap register: rare enough to look up the
/// handles each time.
pub fn count_gap(reason: &str, values: u64) {
    count_gaps(reason, 1, values);
}

fn count_gaps(reason: &str, runs: u64, values: u64) {
    GAPS.counter(&[reason]).increment(runs);
    GAP_VALUES.counter(&[reason]).increment(values);
}

/// Script calls to Redis.
#[derive(Debug)]
pub struct RedisMeter {
    calls: Family<Histogram>,
    errors: Family<Counter>,
}

impl RedisMeter {
    /// Looks up the handles.
    #[must_use]
    pub fn new() -> Self {
        RedisMeter {
            calls: Family::new(REDIS_VERBS, |verb| REDIS_CALL_SECONDS.histogram(&[verb])),
            errors: Family::new(REDIS_REASONS, |reason| REDIS_ERRORS.counter(&[reason])),
        }
    }

    /// Counts a call; `failure` is why its reply cannot be used.
    pub fn count(&self, verb: &str, took: Duration, failure: Option<&str>) {
        self.calls.of(verb).record(took);
        if let Some(reason) = failure {
            self.errors.of(reason).increment(1);
        }
    }
}

impl Default for RedisMeter {
    fn default() -> Self {
        Self::new()
    }
}
