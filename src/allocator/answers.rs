//! Counts what becomes of requests for a number.

use tokio::time::Instant;

use super::{AllocError, Issued};
use crate::metrics::Metrics;

/// Counts an answer, and how long it took where it is a number.
pub(super) fn count(metrics: &Metrics, began: Instant, answer: &Result<Issued, AllocError>) {
    metrics.answers.of(outcome(answer)).increment(1);
    if answer.is_ok() {
        metrics.issue_seconds.record(began.elapsed());
    }
}

fn outcome(answer: &Result<Issued, AllocError>) -> &'static str {
    match answer {
        Ok(issued) if issued.replayed => "replayed",
        Ok(_) => "issued",
        Err(error) if error.retry_useful() => "unavailable",
        // A series that was saved although it is ambiguous, or a bug: not the request's fault.
        Err(AllocError::Collided { .. }) => "failed",
        Err(_) => "refused",
    }
}
