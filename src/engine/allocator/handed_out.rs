//! What a worker has handed out, and how much of it the journal has committed.
//!
//! Records go to the journal's queue before any caller sees their number (F11). Answers of durable
//! series are kept back until the journal has committed what they show; they need no check
//! afterwards: whatever the outcome of the epoch, the record is in the queue.

use tokio::sync::watch;

use super::error::unavailable;
use super::pending_request::PendingRequest;
use super::{AllocError, Issued, NumberTaken, Unavailable};
use crate::engine::journal::{Handover, JournalQueue};

/// A request and the answer that it will get.
pub(super) type DueAnswer = (PendingRequest, Result<Issued, AllocError>);

/// Answers that go out once the next flight is under way, so that Redis works while callers are
/// woken. Whatever the outcome of that flight, they are due: their records are with the journal.
/// Dropped ones are answered, too.
#[derive(Default)]
#[must_use]
pub(super) struct DueAnswers(Vec<DueAnswer>);

impl DueAnswers {
    /// Answers them.
    pub(super) fn answer(&mut self) {
        for (pending, answer) in self.0.drain(..) {
            pending.answer(answer);
        }
    }
}

impl Drop for DueAnswers {
    fn drop(&mut self) {
        self.answer();
    }
}

/// What one worker has handed out.
pub(super) struct HandedOut {
    journal: JournalQueue,
    /// The last flight whose records went to the journal.
    flight: u64,
    /// The last flight before which everything is committed.
    committed: watch::Receiver<u64>,
}

impl HandedOut {
    /// Nothing yet.
    pub(super) fn new(journal: &JournalQueue, partition: u32) -> Self {
        let (journal, committed) = (journal.clone(), journal.progress(partition));
        HandedOut { journal, flight: 0, committed }
    }

    /// Hands a flight's records over to the journal.
    pub(super) fn hand_over(&mut self, handover: Handover) {
        let flight = handover.flight;
        self.journal.hand_over(handover);
        self.flight = flight;
    }

    /// The last flight whose records went to the journal.
    pub(super) fn flight(&self) -> u64 {
        self.flight
    }

    /// The last flight before which everything is committed.
    pub(super) fn committed(&self) -> u64 {
        *self.committed.borrow()
    }

    /// Waits until more is committed. Safe to drop.
    pub(super) async fn progressed(&mut self) {
        let _ = self.committed.changed().await;
    }

    /// Has the journal hurry, and ends when everything is committed that was handed out; false when
    /// the journal is gone: then nothing more will be. Safe to drop.
    pub(super) fn all_committed(&self) -> impl Future<Output = bool> + use<> {
        let (flight, mut committed) = (self.flight, self.committed.clone());
        self.journal.hurry();
        async move { committed.wait_for(|committed| *committed >= flight).await.is_ok() }
    }

    /// Answers requests whose records were handed over under `flight`. Those of `durable` series
    /// are answered as soon as the journal has them, replays too: their first record may not be
    /// committed either (F2). The others are due.
    ///
    /// Waiting answers are bounded by `allocator.queue_max`: each request keeps its place.
    pub(super) fn answer(&self, flight: u64, answers: Vec<DueAnswer>) -> DueAnswers {
        let (durable, fast): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(pending, _)| pending.order.is_durable());
        if durable.is_empty() {
            return DueAnswers(fast);
        }
        let mut committed = self.committed.clone();
        tokio::spawn(async move {
            let committed = committed.wait_for(|committed| *committed >= flight).await.is_ok();
            for (pending, answer) in durable {
                // Without a journal loop it is unknown whether the record is there.
                let lost = || Err(unavailable(Unavailable::Stopping, NumberTaken::Maybe));
                pending.answer(if committed { answer } else { lost() });
            }
        });
        DueAnswers(fast)
    }
}
