//! Turns rows of the journal over that an earlier version wrote, beside everything else and slice
//! by slice, until none is left. Nobody waits for it: such rows are read as they are (F31).

use std::sync::Arc;
use std::time::Duration;

use crate::process::Context;
use crate::task::{Task, Ticks};

/// Time between two slices: a fifth of a core of the ledger at most.
const PERIOD: Duration = Duration::from_millis(100);

/// Rows of one slice, most
const SLICE_ROWS_MAX: u32 = 1_000;

/// and least, where the ledger is too slow for more.
const SLICE_ROWS_MIN: u32 = 10;

/// Time until it looks again after it found nothing to do: another process may be at it.
const LOOKS: Duration = Duration::from_secs(60);

/// Turns over what is left, as long as the process runs.
pub(crate) fn turn_over(context: Arc<Context>) -> Task {
    Task::start("turning over", move |stop| async move {
        let mut rows = SLICE_ROWS_MAX;
        let mut total = 0_u64;
        let mut looks = Ticks::every(LOOKS, stop.clone());
        while looks.next().await {
            let mut slices = Ticks::every(PERIOD, stop.clone());
            while slices.next().await {
                match context.ledger.turn_over(rows).await {
                    Ok(0) => break,
                    Ok(turned) => {
                        total += turned;
                        rows = rows.saturating_mul(2).min(SLICE_ROWS_MAX);
                    }
                    Err(error) => {
                        rows = (rows / 2).max(SLICE_ROWS_MIN);
                        if error.retry_useful() {
                            tracing::debug!(%error, rows, "a slice is not turned over yet");
                        } else {
                            // It stays as it is, and is read as it is.
                            tracing::warn!(%error, "rows of the journal cannot be turned over");
                        }
                        break;
                    }
                }
            }
            if total > 0 {
                tracing::info!(rows = total, "rows of the journal were turned over");
                total = 0;
            }
        }
    })
}
