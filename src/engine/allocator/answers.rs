//! Where the answers to requests go, and what is counted of them.

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{AllocError, Issued};
use crate::metrics::Metrics;

/// Where the answer to a request goes.
pub(super) enum Reply {
    /// To a caller that gets a number.
    Number(oneshot::Sender<Result<Issued, AllocError>>),
    /// To a caller that asks whether there is one (F40).
    Found(oneshot::Sender<Result<Option<Issued>, AllocError>>),
}

impl Reply {
    /// Whether the caller is gone.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Reply::Number(reply) => reply.is_closed(),
            Reply::Found(reply) => reply.is_closed(),
        }
    }

    /// Answers the caller; without a number only one that asked for an earlier one.
    pub(super) fn send(self, answer: Result<Option<Issued>, AllocError>) {
        match self {
            Reply::Found(reply) => drop(reply.send(answer)),
            Reply::Number(reply) => {
                if let Some(answer) = answer.transpose() {
                    drop(reply.send(answer));
                }
            }
        }
    }
}

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
