//! How long retries find their numbers, and how much Redis keeps for that.

use std::time::Duration;

use super::layer::{Layer, RECORDS_MAX_MAX};

/// Numbers a second of one series whose records are all kept where the settings name no bound.
const RECORDS_PER_SECOND: u64 = 500;
/// Least such bound, however short the window is.
const RECORDS_BUSY_MIN: u64 = 10_000_000;

/// How long retries find their numbers, and how many records Redis keeps for that.
pub(super) fn idempotency(layer: &Layer) -> (Duration, u64) {
    let asked = &layer.idempotency;
    let window = asked.window.0;
    let records_max = asked.records_max.unwrap_or_else(|| busy_records(window));
    // Removed records are looked up in the journal: they must be there by then.
    let unjournaled = u64::try_from(layer.journal.queue_max).unwrap_or(u64::MAX);
    (window, records_max.max(unjournaled.saturating_mul(10)))
}

/// Records that one series leaves within a window at 500 numbers a second.
fn busy_records(window: Duration) -> u64 {
    window.as_secs().saturating_mul(RECORDS_PER_SECOND).clamp(RECORDS_BUSY_MIN, RECORDS_MAX_MAX)
}
