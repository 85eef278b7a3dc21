//! What a worker shows of itself to the rest of the process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::Unavailable;
use super::headroom::{Headroom, LeastHeadroom};
use crate::engine::node::{Context, Use};

/// A partition that has issued a number within this time still has counters with headroom, whatever
/// else was refused there.
const TAKEN_OF_LATE: Duration = Duration::from_secs(5);

/// So many refusals with no number between them show that no counter in use has headroom.
const REFUSED_IN_A_ROW: u32 = 3;

/// What others may see of a worker.
#[derive(Debug)]
pub(super) struct WorkerStatus {
    /// Its state in a word: `idle`, `recovering`, `redis`, `database`, `held`.
    pub standing: &'static str,
    /// What keeps it from issuing right now.
    pub trouble: Option<Unavailable>,
    /// The least headroom that a counter in use had of late.
    pub least_headroom: Option<LeastHeadroom>,
    /// Whether the worker has ended with everything journaled and its outbox empty.
    pub drained: bool,
    /// When a flight last took a number.
    taken_at: Option<Instant>,
    /// How many requests were refused since because the ledger did not do its part, and for what
    /// the last of them.
    refused: Option<(Unavailable, u32)>,
}

impl WorkerStatus {
    /// Notes that a flight took a number.
    pub(super) fn note_taken(&mut self) {
        (self.taken_at, self.refused) = (Some(Instant::now()), None);
    }

    /// Notes that so many requests were refused because the ledger did not do its part.
    pub(super) fn note_refused(&mut self, why: Unavailable, count: usize) {
        let before = self.refused.map_or(0, |(_, count)| count);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.refused = Some((why, before.saturating_add(count)));
    }

    /// What others may know.
    pub(super) fn view(
        &mut self,
        context: &Context,
        partition: u32,
        queue_length: usize,
    ) -> WorkerView {
        let availability = context.membership.availability();
        let cannot_commit = availability.lacks(Use::Write);
        if !cannot_commit {
            self.refused = None;
        }
        let is_late = self.taken_at.is_none_or(|at| at.elapsed() >= TAKEN_OF_LATE);
        let refused = self.refused.filter(|(_, count)| is_late && *count >= REFUSED_IN_A_ROW);
        let refused = refused.map(|(why, _)| why).filter(|_| self.standing == "redis");
        let trouble = match (self.standing, self.trouble) {
            // A worker on the database path notices the ledger with requests only, and a balancer
            // sends none to a process that is not ready: there the heartbeat shows it.
            ("database", _) if cannot_commit => Some(Unavailable::Ledger),
            ("database", None) if availability.is_locked() => Some(Unavailable::Lock),
            ("database", Some(Unavailable::Ledger | Unavailable::Lock))
                if !availability.is_locked() =>
            {
                None
            }
            // The same of Redis, where only this process has lost it.
            ("redis", None) if context.is_cut_off(partition) => Some(Unavailable::Redis),
            // A flight whose records find no space in the journal's queue does not leave.
            ("redis", None) if !context.journal.has_space() => Some(Unavailable::OutboxFull),
            (_, trouble) => trouble,
        };
        // What is known, and needs no question, continues without the ledger, in its epoch.
        let is_blind = self.standing == "redis" && availability.lacks(Use::Read);
        let is_over = is_blind && context.redis_is_another(partition);
        let remembers = self.standing == "redis" && trouble.is_none() && !is_over;
        let is_in_vain = is_blind && (is_over || !context.asks_for(partition).is_zero());
        let trouble = trouble.or(is_in_vain.then_some(Unavailable::Ledger)).or(refused);
        WorkerView {
            standing: self.standing,
            trouble,
            queue_length,
            least_headroom: self.least_headroom.and_then(LeastHeadroom::current),
            remembers,
            has_room: remembers && refused.is_none(),
        }
    }
}

impl Default for WorkerStatus {
    fn default() -> Self {
        WorkerStatus {
            standing: "idle",
            trouble: None,
            least_headroom: None,
            drained: false,
            taken_at: None,
            refused: None,
        }
    }
}

/// Shared view of a worker's status.
pub(super) type SharedStatus = Arc<Mutex<WorkerStatus>>;

/// What others may know of a partition's worker.
#[derive(Clone, Copy, Debug)]
pub struct WorkerView {
    /// Its state in a word: `idle`, `redis`, `database`, `recovering` or `held`.
    pub standing: &'static str,
    /// What keeps new documents from getting numbers, if anything does.
    pub trouble: Option<Unavailable>,
    /// Requests that wait or are under way.
    pub queue_length: usize,
    /// The least headroom below a ceiling that a counter in use had of late.
    pub least_headroom: Option<Headroom>,
    /// Whether Redis answers for it: retries get the numbers that it knows.
    pub remembers: bool,
    /// Whether counters that it has in Redis give numbers to what is no new document.
    pub has_room: bool,
}

impl WorkerView {
    /// Whether it issues numbers to new documents.
    #[must_use]
    pub fn serves(&self) -> bool {
        matches!(self.standing, "redis" | "database") && self.trouble.is_none()
    }
}
