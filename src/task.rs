//! The one shape of a background loop: started with a stop signal, ended by asking, never aborted.
//!
//! A loop is never cancelled from outside: dropping a future in the middle of ledger or Redis work
//! leaves transactions and flights in the air. It sees the signal between two units of work.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// A running loop.
#[derive(Debug)]
pub struct Task {
    name: &'static str,
    stop: watch::Sender<bool>,
    handle: JoinHandle<()>,
}

/// The pace of a loop that looks at something again and again.
#[derive(Debug)]
pub struct Ticks {
    interval: tokio::time::Interval,
    stop: Stop,
}

impl Ticks {
    /// One tick at once, then one per period; a late tick delays those after it.
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
pub struct Stop(watch::Receiver<bool>);

impl Task {
    /// Starts a loop.
    pub fn start<F>(name: &'static str, body: impl FnOnce(Stop) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (stop, signal) = watch::channel(false);
        Task { name, stop, handle: tokio::spawn(body(Stop(signal))) }
    }

    /// Asks the loop to end, without waiting.
    pub fn request_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Asks the loop to end and waits until it has. A loop that panicked is reported, not hidden.
    pub async fn stop(self) {
        self.request_stop();
        if let Err(error) = self.handle.await {
            tracing::error!(task = self.name, %error, "background loop failed");
        }
    }
}

impl Stop {
    /// Whether the loop should end.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the loop should end. Safe to drop.
    pub async fn requested(&mut self) {
        // An error means that the Task is gone: nobody will ever ask, so end as well.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
