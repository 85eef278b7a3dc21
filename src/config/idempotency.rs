//! How long retries find their numbers, and how much Redis keeps for that.

use std::time::Duration;

use super::DurationText;
use super::bounds::{Checked, secs, wait, within};
use super::layer::Layer;

/// For windows that are written in days.
const DAY: Duration = Duration::from_secs(86_400);

/// Between the look into the journal for a key and its flight, no record of that time may go (F21).
const RECORDS_MAX_MIN: u64 = 100_000;
/// Most that may be asked for.
const RECORDS_MAX_MAX: u64 = 1_000_000_000;
/// Numbers a second of one series whose records are all kept where the settings name no bound.
const RECORDS_PER_SECOND: u64 = 500;
/// Least such bound, however short the window is.
const RECORDS_BUSY_MIN: u64 = 10_000_000;

/// How long retries find their numbers, and how many records Redis keeps for that.
pub(super) fn idempotency(layer: &Layer) -> Checked<(Duration, u64)> {
    let asked = &layer.idempotency;
    let longest = DurationText(DAY * 400);
    let window = wait("idempotency.window", asked.window, secs(1)..=longest)?;
    let bounds = RECORDS_MAX_MIN..=RECORDS_MAX_MAX;
    let records_max = match asked.records_max {
        Some(records_max) => within("idempotency.records_max", records_max, bounds)?,
        None => busy_records(window),
    };
    // What went is looked up in the journal: it must be there by then.
    let unjournaled = u64::try_from(layer.journal.queue_max).unwrap_or(u64::MAX);
    Ok((window, records_max.max(unjournaled.saturating_mul(10))))
}

/// Records that one series leaves within a window at 500 numbers a second.
fn busy_records(window: Duration) -> u64 {
    window.as_secs().saturating_mul(RECORDS_PER_SECOND).clamp(RECORDS_BUSY_MIN, RECORDS_MAX_MAX)
}
