//! The one form of a background loop: started with a stop signal, ended by request, never aborted.
//! The request names a deadline, and the wait ends with it.
//!
//! A loop is never cancelled from outside: dropping a future in the middle of ledger or Redis work
//! leaves transactions and flights in flight. The loop sees the signal between two units of work.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, timeout_at};

/// Runs work in a task of its own, as [`tokio::spawn`] does. It is boxed: the code of a task is
/// compiled for each kind of answer, not of work.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let work: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    tokio::spawn(work)
}

/// A running loop.
#[derive(Debug)]
pub struct Task {
    /// By when the loop should end; `None` until it should.
    stop: watch::Sender<Option<Instant>>,
    handle: JoinHandle<()>,
}

/// The pace of a loop that repeats a check.
#[derive(Debug)]
pub struct Ticks {
    interval: tokio::time::Interval,
    stop: Stop,
}

impl Ticks {
    /// One tick immediately, then one per period; a late tick delays those after it.
    #[must_use]
    pub fn every(period: Duration, stop: Stop) -> Self {
        let mut interval = tokio::time::interval(period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ticks { interval, stop }
    }

    /// Waits for the next tick; false when the loop should end. Safe to drop.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interval.tick() => !self.stop.is_requested(),
            () = self.stop.requested() => false,
        }
    }
}

/// The loop's side of the stop signal.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<Option<Instant>>);

impl Task {
    /// Starts a loop. A loop that panics aborts the process: an assertion of this program has
    /// failed, and without the loop the process would continue half alive. What it handed out is in
    /// the outbox or committed.
    pub fn start<F>(name: &'static str, body: impl FnOnce(Stop) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, signal) = watch::channel(None);
        let body = spawn(body(Stop(signal)));
        let handle = spawn(async move {
            if body.await.is_err_and(|error| error.is_panic()) {
                tracing::error!(task = name, "background loop failed; aborting");
                std::process::abort();
            }
        });
        Task { stop, handle }
    }

    /// Asks the loop to end by a moment, without waiting.
    pub fn request_stop(&self, by: Instant) {
        self.stop.send_replace(Some(by));
    }

    /// Asks the loop to end and waits until it has, at most until the moment. False if it has not
    /// ended by then: it finishes its present unit of work, and ends with the process.
    pub async fn stop(self, by: Instant) -> bool {
        self.request_stop(by);
        // It neither panics nor is aborted; if the runtime is gone, the loop has ended as well.
        timeout_at(by, self.handle).await.is_ok()
    }
}

impl Stop {
    /// Whether the loop should end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.deadline().is_some()
    }

    /// By when the loop should have ended; `None` until it should. Now if the [`Task`] was dropped
    /// without a request: no request can follow, and nothing waits.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        // In this order, so that a request made just before the drop is still seen.
        let is_abandoned = self.0.has_changed().is_err();
        let asked = *self.0.borrow();
        asked.or_else(|| is_abandoned.then(Instant::now))
    }

    /// Waits until the loop should end. Safe to drop.
    pub async fn requested(&mut self) {
        // An error means that the Task is gone, which `deadline` takes for a stop as well.
        let _ = self.0.wait_for(Option::is_some).await;
    }
}

/// Waits until a moment; without one, forever. Safe to drop.
pub async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_loop_whose_task_was_dropped_is_to_end_at_once() {
        let (ended, seen) = tokio::sync::oneshot::channel();
        let task = Task::start("test", move |mut stop| async move {
            assert_eq!((stop.is_requested(), stop.deadline()), (false, None));
            stop.requested().await;
            let _ = ended.send((stop.is_requested(), stop.deadline()));
        });
        // The loop runs, and waits, before its task is dropped.
        tokio::task::yield_now().await;
        drop(task);
        let (is_requested, deadline) = seen.await.unwrap();
        assert!(is_requested);
        assert!(deadline.is_some_and(|by| by <= Instant::now()), "{deadline:?}");
    }

    #[tokio::test]
    async fn a_stop_that_was_asked_for_keeps_its_moment_when_the_task_is_gone() {
        let (stop, signal) = watch::channel(None);
        let by = Instant::now() + Duration::from_secs(60);
        stop.send_replace(Some(by));
        drop(stop);
        assert_eq!(Stop(signal).deadline(), Some(by));
    }
}
