//! Work that is free for a caller, and that costs processor time or a connection of the ledger:
//! reads and notes in the ledger on behalf of a route, checks and proofs of series, readings of
//! numbers, lists of what is in memory. Each kind has its own few places, which callers take in
//! turns, so that no amount of it uses up the runtime's threads and the ledger's connections that
//! taking numbers needs.
//!
//! Routes reach the ledger only through this file. Never cancels its work: the holder of a place
//! continues until it ends; a proof that no caller waits for ends soon.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use numbering::GiveUp;
use serde::Serialize;

use super::problem::{Problem, Slug};
use super::{App, finish};
use crate::ledger::{LedgerSettings, SharedLedger, until_given_up};
use crate::web::middleware::Caller;
use crate::web::permits::{Permit, Permits};

/// Most changes of series that are checked concurrently.
const CHECKS_MAX: usize = 2;

/// Most concurrent searches, however many connections there are: they cost processor time, too.
const SEARCHES_MAX: usize = 4;

/// Most lists of what is in memory that are made concurrently.
const LISTS_MAX: usize = 4;

/// Longest time of one check: then its proof is given up.
const CHECK_TIME_MAX: Duration = Duration::from_secs(20);

/// The places of all kinds.
#[derive(Debug)]
pub(crate) struct WorkPermits {
    /// Changes of series.
    checks: Permits,
    /// Scans of rows, and readings of numbers.
    searches: Permits,
    /// Look-ups by an index.
    reads: Permits,
    /// Notes in addition to numbers: steps, revisions, tokens, change requests.
    notes: Permits,
    /// Lists of what is in memory.
    lists: Permits,
}

impl WorkPermits {
    /// As many places as the ledger's connections allow: searches and reads together hold at most
    /// half of them.
    pub(crate) fn new(ledger: &LedgerSettings) -> Self {
        WorkPermits {
            checks: Permits::new(CHECKS_MAX),
            searches: Permits::new(ledger.searches_max().min(SEARCHES_MAX)),
            reads: Permits::new(ledger.reads_max()),
            notes: Permits::new(ledger.notes_max()),
            lists: Permits::new(LISTS_MAX),
        }
    }

    /// Checks a change of series, and saves it if the work includes that; its proof ends when the
    /// caller leaves or the time is over.
    pub(crate) async fn check<T, E>(
        &self,
        caller: &Caller,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
    {
        let permit = permit(&self.checks, caller).await?;
        let waiting = Attention(GiveUp::default());
        let work = until_given_up(waiting.0.clone(), holding(permit, work));
        let mut work = std::pin::pin!(finish(work));
        match tokio::time::timeout(CHECK_TIME_MAX, &mut work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                waiting.0.give_up();
                // Soon: only the check knows whether the change is saved by now.
                work.await
            }
        }
    }

    /// A place to read.
    pub(crate) async fn to_read(&self, caller: &Caller) -> Option<Permit> {
        self.reads.take(caller.holdings.caller()).await
    }
}

impl App {
    /// Scans rows of the ledger, or reads numbers back.
    pub(crate) async fn search<T, E, W>(
        &self,
        caller: &Caller,
        work: impl FnOnce(SharedLedger) -> W,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.at_the_ledger(&self.work_permits.searches, caller, work).await
    }

    /// Reads rows of the ledger that an index finds.
    pub(crate) async fn read<T, E, W>(
        &self,
        caller: &Caller,
        work: impl FnOnce(SharedLedger) -> W,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.at_the_ledger(&self.work_permits.reads, caller, work).await
    }

    /// Notes something in the ledger that is neither a number nor a series.
    pub(crate) async fn note<T, E, W>(
        &self,
        caller: &Caller,
        work: impl FnOnce(SharedLedger) -> W,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.at_the_ledger(&self.work_permits.notes, caller, work).await
    }

    /// Lists what is in memory, outside the runtime's threads.
    pub(crate) async fn list<T: Send + 'static>(
        &self,
        caller: &Caller,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        caller.holdings.must_have_room_for_an_answer()?;
        let permit = permit(&self.work_permits.lists, caller).await?;
        let listing = move || {
            let listed = work();
            drop(permit);
            listed
        };
        compute(listing).await?
    }

    async fn at_the_ledger<T, E, W>(
        &self,
        permits: &Permits,
        caller: &Caller,
        work: impl FnOnce(SharedLedger) -> W,
    ) -> Result<T, Problem>
    where
        T: Send + 'static,
        E: Into<Problem> + Send + 'static,
        W: Future<Output = Result<T, E>> + Send + 'static,
    {
        let permit = permit(permits, caller).await?;
        finish(holding(permit, work(SharedLedger::clone(&self.service.ledger)))).await
    }
}

/// Computes outside the runtime's threads; for the holder of a place, or for a large answer.
pub(crate) async fn compute<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    // Boxed: the code of a task is compiled for each kind of answer, not of work.
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::internal_taking_nothing(&error))
}

/// An answer that is written outside the runtime's threads.
pub(crate) async fn json(answer: impl Serialize + Send + 'static) -> Result<Response, Problem> {
    compute(move || axum::Json(answer).into_response()).await
}

/// A check that took too long, or that no caller waited for.
pub(crate) fn overdue() -> Problem {
    let limit = CHECK_TIME_MAX.as_secs();
    let detail = format!(
        "the check took longer than {limit} s, and nothing is saved; try again when the service \
         has less to do, or give the series a prefix of its own, which is proved at once"
    );
    Problem::new(Slug::ChecksFull, detail).retry_soon()
}

/// The refusal of a caller that finds no place.
pub(crate) fn no_place() -> Problem {
    let detail = "too many calls of this kind wait at this moment, of this caller or of all: \
                  series to check, numbers to read back, the ledger to look into";
    Problem::new(Slug::ChecksFull, detail).retry_soon()
}

async fn permit(permits: &Permits, caller: &Caller) -> Result<Permit, Problem> {
    permits.take(caller.holdings.caller()).await.ok_or_else(no_place)
}

/// Work that has its place until it ends, whether its caller waits or not.
async fn holding<T>(permit: Permit, work: impl Future<Output = T>) -> T {
    let done = work.await;
    drop(permit);
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
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;
    use crate::ledger::LedgerError;

    fn work_permits() -> WorkPermits {
        WorkPermits::new(&LedgerSettings::default())
    }

    /// Goal: full places are reported to the next caller, and a place that is given back is taken.
    /// Method: as many checks as there are places, held; time advances automatically.
    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_is_told_to_come_again() {
        let (work_permits, caller) = (Arc::new(work_permits()), Caller::anybody());
        let mut holders = Vec::new();
        for _ in 0..CHECKS_MAX {
            let (free, held) = oneshot::channel::<()>();
            let (work_permits, caller) = (Arc::clone(&work_permits), caller.clone());
            let work = async move { held.await.map_err(|_| Problem::internal(&"dropped")) };
            holders
                .push((free, tokio::spawn(async move { work_permits.check(&caller, work).await })));
            tokio::task::yield_now().await;
        }
        let check = || work_permits.check(&caller, async { Ok::<_, Problem>(()) });
        let refused = check().await.expect_err("full");
        assert_eq!((refused.slug(), refused.slug().status().as_u16()), (Slug::ChecksFull, 503));
        // The other kinds have their own.
        assert!(work_permits.to_read(&caller).await.is_some());
        let (free, holder) = holders.pop().expect("a holder");
        free.send(()).expect("somebody waits");
        holder.await.expect("no panic").expect("done");
        check().await.expect("a place");
    }

    #[test]
    fn reads_and_searches_hold_half_of_the_connections_at_most() {
        for connections_max in 2..200 {
            let settings = LedgerSettings { connections_max, ..LedgerSettings::default() };
            let held = settings.searches_max() + settings.reads_max();
            assert!(held <= (connections_max as usize / 2).max(2), "{held} of {connections_max}");
            let noted = held + settings.notes_max();
            assert!(noted < (connections_max as usize).max(4), "{noted} of {connections_max}");
        }
    }

    /// Goal: the place of a caller that leaves is free for others although its work continues to
    /// its end. Method: the call is dropped while its work waits for the signal of that.
    #[tokio::test(start_paused = true)]
    async fn a_proof_ends_with_its_caller_and_when_its_time_is_over() {
        let (work_permits, caller) = (work_permits(), Caller::anybody());
        let (told, is_told) = oneshot::channel();
        // Represents a ledger that proves: it sees what the call says of its caller.
        let proving = async move {
            while !crate::ledger::is_given_up() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let _ = told.send(());
            Err::<(), _>(LedgerError::GivenUp)
        };
        let checking = work_permits.check(&caller, proving);
        let called = tokio::time::timeout(Duration::from_secs(1), checking).await;
        assert!(called.is_err(), "the caller leaves");
        is_told.await.expect("the proof is given up");
        let waits = async {
            while !crate::ledger::is_given_up() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err::<(), _>(LedgerError::GivenUp)
        };
        let overdue = work_permits.check(&caller, waits).await.expect_err("its time is over");
        assert_eq!(overdue.slug(), Slug::ChecksFull);
        assert!(overdue.to_string().contains("nothing is saved"), "{overdue}");
    }
}
