//! Work that costs processor time and that a caller pays nothing for: series that are checked and
//! proved, numbers that are read back. Each kind has its own few places, so that whatever is asked
//! of them leaves the runtime's threads to those who take numbers.
//!
//! Never cancels ledger work: what holds a place goes on until it ends; a proof that nobody waits
//! for ends soon.

use std::sync::Arc;
use std::time::Duration;

use numbering::GiveUp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::problem::{Problem, Slug};
use crate::ledger::until_given_up;

/// Most changes of series that are checked at once.
const CHECKS_MAX: usize = 2;

/// Most numbers that are read back at once.
const READINGS_MAX: usize = 4;

/// Most calls that wait for each kind of place.
const WAITING_MAX: usize = 64;

/// Longest wait for a place.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Longest time of one check: then its proof is given up.
const CHECK_TIME_MAX: Duration = Duration::from_secs(20);

/// The places of one kind.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    waiting: Semaphore,
}

/// The places of both kinds.
#[derive(Debug)]
pub(super) struct Effort {
    checks: Places,
    readings: Places,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { checks: Places::new(CHECKS_MAX), readings: Places::new(READINGS_MAX) }
    }
}

impl Effort {
    /// Checks a change of series, and saves it where the work does so; its proof ends when the
    /// caller leaves or the time is over.
    pub(super) async fn check<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let place = self.checks.take().await?;
        let waiting = Attention(GiveUp::default());
        let work = until_given_up(waiting.0.clone(), holding(place, work));
        let mut work = std::pin::pin!(super::finish(work));
        match tokio::time::timeout(CHECK_TIME_MAX, &mut work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                waiting.0.give_up();
                // Soon: and only it knows whether the change is saved by now.
                work.await
            }
        }
    }

    /// Reads numbers back, and looks them up.
    pub(super) async fn read<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let place = self.readings.take().await?;
        super::finish(holding(place, work)).await
    }
}

/// Computes beside the runtime's threads; for whoever holds a place.
pub(super) async fn compute<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::internal_taking_nothing(&error))
}

/// A check that took too long, or that nobody waited for.
pub(super) fn overdue() -> Problem {
    let limit = CHECK_TIME_MAX.as_secs();
    let detail = format!(
        "the check took longer than {limit} s, and nothing is saved; try again when the service \
         has less to do, or give the series a prefix of its own, which is proved at once"
    );
    Problem::new(Slug::ChecksFull, detail).retry_soon()
}

impl Places {
    fn new(most: usize) -> Self {
        Places { free: Arc::new(Semaphore::new(most)), waiting: Semaphore::new(WAITING_MAX) }
    }

    async fn take(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let full = || {
            let detail = "too many series are checked, or numbers read back, at this moment";
            Problem::new(Slug::ChecksFull, detail).retry_soon()
        };
        let _waits = self.waiting.try_acquire().map_err(|_| full())?;
        let free = Arc::clone(&self.free).acquire_owned();
        let place = tokio::time::timeout(WAIT_MAX, free).await.map_err(|_| full())?;
        Ok(place.expect("nobody closes the places"))
    }
}

/// Work that has its place until it ends, whether its caller waits or not.
async fn holding<T>(place: OwnedSemaphorePermit, work: impl Future<Output = T>) -> T {
    let done = work.await;
    drop(place);
    done
}

/// Lasts while a caller waits; its proofs end with it.
struct Attention(GiveUp);

impl Drop for Attention {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::ledger::LedgerError;

    /// Goal: whoever comes to full places is told so, and a place that is given back is taken.
    /// Method: as many checks as there are places, held; time goes by itself.
    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_is_told_to_come_again() {
        let effort = Arc::new(Effort::default());
        let mut holders = Vec::new();
        for _ in 0..CHECKS_MAX {
            let (free, held) = oneshot::channel::<()>();
            let effort = Arc::clone(&effort);
            let work = async move { held.await.map_err(|_| Problem::internal(&"dropped")) };
            holders.push((free, tokio::spawn(async move { effort.check(work).await })));
            tokio::task::yield_now().await;
        }
        let refused = effort.check(async { Ok::<_, Problem>(()) }).await.expect_err("full");
        assert_eq!((refused.slug(), refused.slug().status().as_u16()), (Slug::ChecksFull, 503));
        // The other kind has its own.
        effort.read(async { Ok::<_, Problem>(()) }).await.expect("a place");
        let (free, holder) = holders.pop().expect("a holder");
        free.send(()).expect("somebody waits");
        holder.await.expect("no panic").expect("done");
        effort.check(async { Ok::<_, Problem>(()) }).await.expect("a place");
    }

    /// Goal: a caller that leaves gets its place back to others although the work goes on to its
    /// end. Method: the call is dropped while its work waits for the signal that it is.
    #[tokio::test(start_paused = true)]
    async fn a_proof_ends_with_its_caller_and_when_its_time_is_over() {
        let effort = Effort::default();
        let (told, is_told) = oneshot::channel();
        // Stands for a ledger that proves: it sees what the call says of its caller.
        let proving = async move {
            while !crate::ledger::is_given_up() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let _ = told.send(());
            Err::<(), _>(LedgerError::GivenUp)
        };
        let called = tokio::time::timeout(Duration::from_secs(1), effort.check(proving)).await;
        assert!(called.is_err(), "the caller leaves");
        is_told.await.expect("the proof is given up");
        let waits = async {
            while !crate::ledger::is_given_up() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err::<(), _>(LedgerError::GivenUp)
        };
        let overdue = effort.check(waits).await.expect_err("its time is over");
        assert_eq!(overdue.slug(), Slug::ChecksFull);
        assert!(overdue.to_string().contains("nothing is saved"), "{overdue}");
    }
}
