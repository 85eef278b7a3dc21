//! On which of two runtimes a connection is served: calls for one number on the runtime that
//! accepted it, all that takes long on another.
//!
//! A connection moves as a whole, between two polls: what it reads, parses, answers and writes
//! costs the runtime of its lane alone. It stays where its last request belongs. Must never poll a
//! connection in two tasks, nor keep one from its end.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// To which runtime a request belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Calls for one number, short batches, and probes.
    Fast,
    /// Lists, large batches, everything else.
    Slow,
}

/// The lanes of one connection.
#[derive(Debug)]
pub(super) struct Lanes {
    fast: Handle,
    /// Absent: all requests are answered by the runtime that accepted the connection.
    slow: Option<Handle>,
    /// Whether the last request belongs to the slow lane, and whether the connection is polled
    /// there. Only the task that polls the connection reads and writes them.
    wanted_slow: AtomicBool,
    is_slow: AtomicBool,
}

impl Lanes {
    /// Both lanes of a connection that this runtime has accepted.
    pub(super) fn new(slow: Option<Handle>) -> Arc<Self> {
        let (wanted_slow, is_slow) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Lanes { fast: Handle::current(), slow, wanted_slow, is_slow })
    }

    /// The lane in which the connection is polled.
    pub(super) fn now(&self) -> Lane {
        if self.is_slow.load(Ordering::Relaxed) { Lane::Slow } else { Lane::Fast }
    }

    /// Resolves once the connection that polls it has come to a lane.
    pub(super) async fn change_to(&self, lane: Lane) {
        if self.slow.is_none() {
            return;
        }
        self.wanted_slow.store(lane == Lane::Slow, Ordering::Relaxed);
        // The task that moves the connection polls it at once: there is nothing to wake.
        poll_fn(|_| if self.now() == lane { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Serves a connection to its end, in a task of the lane where its requests belong.
    pub(super) fn serve(self: Arc<Self>, mut connection: BoxFuture<'static, ()>) {
        let is_slow = self.wanted_slow.load(Ordering::Relaxed);
        let runtime = self.slow.as_ref().filter(|_| is_slow).unwrap_or(&self.fast).clone();
        runtime.spawn(async move {
            self.is_slow.store(is_slow, Ordering::Relaxed);
            let moves = poll_fn(|context| match connection.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(false),
                Poll::Pending if self.wanted_slow.load(Ordering::Relaxed) != is_slow => {
                    Poll::Ready(true)
                }
                Poll::Pending => Poll::Pending,
            });
            // A wake-up that comes in between is not lost: the next task begins with a poll.
            if moves.await {
                self.serve(connection);
            }
        });
    }
}
