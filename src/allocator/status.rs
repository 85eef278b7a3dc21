//! What a worker shows of itself to the rest of the process.

use std::sync::{Arc, Mutex};

use super::Unavailable;
use super::headroom::{Headroom, LeastHeadroom};

/// What others may see of a worker.
#[derive(Debug)]
pub(super) struct WorkerStatus {
    /// Its standing in a word: `idle`, `recovering`, `redis`, `database`, `held`.
    pub standing: &'static str,
    /// What keeps it from issuing right now.
    pub trouble: Option<Unavailable>,
    /// The least headroom that a counter in use had of late.
    pub least_headroom: Option<LeastHeadroom>,
    /// Whether the worker has ended with everything journaled and its outbox empty.
    pub drained: bool,
}

impl WorkerStatus {
    /// What others may know.
    pub(super) fn view(
        &self,
        queue_length: usize,
        journal_has_space: bool,
        ledger_answers: bool,
    ) -> WorkerView {
        // A flight whose records find no space in the journal's queue does not leave.
        let is_full = self.standing == "redis" && !journal_has_space;
        // A worker on the database path hears of the ledger with requests only, and a balancer
        // sends none to a process that is not ready: there the heartbeat shows it.
        let trouble = match (self.standing, self.trouble) {
            ("database", None) if !ledger_answers => Some(Unavailable::Ledger),
            ("database", Some(Unavailable::Ledger | Unavailable::Lock)) if ledger_answers => None,
            (_, trouble) => trouble,
        };
        WorkerView {
            standing: self.standing,
            trouble: trouble.or(is_full.then_some(Unavailable::OutboxFull)),
            queue_length,
            least_headroom: self.least_headroom.and_then(LeastHeadroom::current),
        }
    }
}

impl Default for WorkerStatus {
    fn default() -> Self {
        WorkerStatus { standing: "idle", trouble: None, least_headroom: None, drained: false }
    }
}

/// Shared view of a worker's status.
pub(super) type SharedStatus = Arc<Mutex<WorkerStatus>>;

/// What others may know of a partition's worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerView {
    /// Its standing in a word: `idle`, `redis`, `database`, `recovering` or `held`.
    pub standing: &'static str,
    /// What keeps it from issuing, if anything does.
    pub trouble: Option<Unavailable>,
    /// Requests that wait or are under way.
    pub queue_length: usize,
    /// The least headroom below a ceiling that a counter in use had of late.
    pub least_headroom: Option<Headroom>,
}

impl WorkerView {
    /// Whether it issues numbers.
    #[must_use]
    pub fn serves(&self) -> bool {
        matches!(self.standing, "redis" | "database") && self.trouble.is_none()
    }
}
