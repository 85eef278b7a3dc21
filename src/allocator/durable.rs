//! Answers of durable series: kept back until the journal has committed what they show.
//!
//! Their numbers are handed out like all others, in the worker (F11); only the answer waits. It
//! needs no check afterwards: whatever becomes of the epoch, the record is in the journal queue.

use super::pending_request::PendingRequest;
use super::worker::{PartitionWorker, unavailable};
use super::{AllocError, Issued, NumberTaken, Unavailable};

/// A request and the answer that it will get.
pub(super) type DueAnswer = (PendingRequest, Result<Issued, AllocError>);

impl PartitionWorker {
    /// Answers requests whose records were handed over under `flight`: at once, or, for a series
    /// that is `durable`, as soon as the journal has them. That goes for replays too: their first
    /// record may not be committed either (F2).
    ///
    /// Waiting answers are bounded by `allocator.queue_max`: each request keeps its place.
    pub(super) fn answer_handed_out(&self, flight: u64, answers: Vec<DueAnswer>) {
        let (durable, fast): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|(pending, _)| pending.order.is_durable());
        for (pending, answer) in fast {
            pending.answer(answer);
        }
        if durable.is_empty() {
            return;
        }
        let mut progress = self.progress.clone();
        tokio::spawn(async move {
            let committed = progress.wait_for(|committed| *committed >= flight).await.is_ok();
            for (pending, answer) in durable {
                // Without a journal loop nobody can say whether the record is there.
                let lost = || Err(unavailable(Unavailable::Stopping, NumberTaken::Maybe));
                pending.answer(if committed { answer } else { lost() });
            }
        });
    }
}
