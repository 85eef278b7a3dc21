//! Runs many futures concurrently in one task that yields its thread between them: whatever each of
//! them costs, other tasks get their turn.
//!
//! The library's `join_all` polls a thousand ready ones one after the other, and the thread runs no
//! other task meanwhile.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tokio::task::yield_now;

/// How long a task keeps its thread: after a costlier future it yields, and cheaper ones run
/// several together.
const TURN: Duration = Duration::from_micros(100);

/// The ready futures, by their index and in the order in which they became ready.
#[derive(Default)]
struct ReadyItems(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    indices: VecDeque<usize>,
    /// The task that waits for the next one.
    task: Option<Waker>,
}

impl ReadyItems {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// The next one that is ready.
    fn poll_next(&self, context: &mut Context<'_>) -> Poll<usize> {
        let mut queue = self.queue();
        if let Some(index) = queue.indices.pop_front() {
            return Poll::Ready(index);
        }
        queue.task = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Wakes one of them.
struct Bell {
    index: usize,
    is_ready: AtomicBool,
    ready: Arc<ReadyItems>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_ready.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut queue = self.ready.queue();
        queue.indices.push_back(self.index);
        let task = queue.task.take();
        drop(queue);
        if let Some(task) = task {
            task.wake();
        }
    }
}

/// One of them, on its way.
struct Running<F> {
    future: Pin<Box<F>>,
    bell: Arc<Bell>,
    waker: Waker,
}

impl<F: Future> Running<F> {
    fn new(index: usize, future: F, ready: &Arc<ReadyItems>) -> Self {
        let bell = Bell { index, is_ready: AtomicBool::new(true), ready: Arc::clone(ready) };
        let bell = Arc::new(bell);
        let waker = Waker::from(Arc::clone(&bell));
        Running { future: Box::pin(future), bell, waker }
    }

    fn poll(&mut self) -> Poll<F::Output> {
        // A wake-up from here on counts for the next poll. A swap, not a store: it reads the write
        // of a waker that found it ready and queued nothing, so that the poll sees what that waker
        // did before.
        self.bell.is_ready.swap(false, Ordering::AcqRel);
        self.future.as_mut().poll(&mut Context::from_waker(&self.waker))
    }
}

/// The results of the futures, in their order. They begin in that order, too.
pub(crate) async fn join_in_turns<F: Future>(
    futures: impl IntoIterator<Item = F>,
) -> Vec<F::Output> {
    let ready = Arc::new(ReadyItems::default());
    let running = |(index, future)| Some(Running::new(index, future, &ready));
    let mut running: Vec<_> = futures.into_iter().enumerate().map(running).collect();
    ready.queue().indices.extend(0..running.len());
    let mut outputs: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    let (mut left, mut began) = (running.len(), Instant::now());
    while left > 0 {
        let index = poll_fn(|context| ready.poll_next(context)).await;
        // A waker may outlive its future.
        let Some(one) = &mut running[index] else { continue };
        if let Poll::Ready(output) = one.poll() {
            (running[index], outputs[index]) = (None, Some(output));
            left -= 1;
        }
        if began.elapsed() >= TURN {
            yield_now().await;
            began = Instant::now();
        }
    }
    outputs.into_iter().map(|output| output.expect("all have ended")).collect()
}

#[cfg(test)]
mod tests {
    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn they_run_at_once_and_begin_and_answer_in_their_order() {
        for count in [0, 1, 3, 1_000] {
            let barrier = Barrier::new(count);
            let begun = Mutex::new(Vec::new());
            let futures = (0..count).map(|index| {
                let (barrier, begun) = (&barrier, &begun);
                async move {
                    begun.lock().expect("lock").push(index);
                    barrier.wait().await;
                    yield_now().await;
                    index
                }
            });
            let in_order: Vec<usize> = (0..count).collect();
            assert_eq!(join_in_turns(futures).await, in_order);
            assert_eq!(*begun.lock().expect("lock"), in_order);
        }
    }

    /// Goal: other tasks of the thread have their turn between two costly futures. Method: a task
    /// next to them counts its turns, on the only thread.
    #[tokio::test]
    async fn whoever_waits_for_the_thread_has_a_turn_behind_each_that_is_dear() {
        let turns = Arc::new(Mutex::new(0_usize));
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                *counted.lock().expect("lock") += 1;
                yield_now().await;
            }
        });
        let dear = (0..50).map(|_| async {
            let before = *turns.lock().expect("lock");
            let began = Instant::now();
            while began.elapsed() < TURN {}
            before
        });
        let seen = join_in_turns(dear).await;
        assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
        other.abort();
    }
}
