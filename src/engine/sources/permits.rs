//! The permits of a source: a bounded number of concurrent calls, half of them of one caller at
//! most. A call without a permit waits for one for a limited time, in turn; a caller with too many
//! waiting calls is refused immediately.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Longest wait for a permit: the caller holds a permit of its partition meanwhile.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Calls of one caller that wait at once.
const WAITING_MAX: usize = 256;

/// The places of a source.
#[derive(Debug)]
pub(super) struct Permits {
    all: Semaphore,
    /// Of one caller.
    each_max: usize,
    /// Callers that have a place, or wait for one.
    callers: Mutex<HashMap<String, Caller>>,
}

/// One that asks the source now.
#[derive(Debug)]
struct Caller {
    permits: Arc<Semaphore>,
    /// Its calls, those that wait among them.
    calls: usize,
}

/// A call that counts as its caller's, until it is dropped.
#[derive(Debug)]
struct Call<'p> {
    permits: &'p Permits,
    caller: &'p str,
    of_caller: Arc<Semaphore>,
}

/// A place; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit<'p> {
    _of_all: SemaphorePermit<'p>,
    _of_caller: OwnedSemaphorePermit,
    _call: Call<'p>,
}

impl Permits {
    /// So many, at least one.
    pub(super) fn new(count: usize) -> Self {
        let (all, each_max) = (Semaphore::new(count), count.div_ceil(2));
        Permits { all, each_max, callers: Mutex::default() }
    }

    /// A place for a call of a caller; nothing where none came free in time. Safe to drop.
    pub(super) async fn take<'p>(&'p self, caller: &'p str) -> Option<Permit<'p>> {
        let call = self.begin(caller)?;
        let waited = timeout(WAIT_MAX, async {
            // The caller's own permit first: a call that waits for it does not keep other callers
            // from one of all.
            let own = Arc::clone(&call.of_caller).acquire_owned().await;
            (own.expect("nobody closes it"), self.all.acquire().await.expect("nobody closes it"))
        });
        let (_of_caller, _of_all) = waited.await.ok()?;
        Some(Permit { _of_all, _of_caller, _call: call })
    }

    fn begin<'p>(&'p self, caller: &'p str) -> Option<Call<'p>> {
        let mut callers = self.callers.lock().expect("no holder of this lock panics");
        let known = callers.entry(caller.to_owned()).or_insert_with(|| Caller {
            permits: Arc::new(Semaphore::new(self.each_max)),
            calls: 0,
        });
        if known.calls >= self.each_max + WAITING_MAX {
            return None;
        }
        known.calls += 1;
        Some(Call { permits: self, caller, of_caller: Arc::clone(&known.permits) })
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut callers = self.permits.callers.lock().expect("no holder of this lock panics");
        if let Entry::Occupied(mut known) = callers.entry(self.caller.to_owned()) {
            known.get_mut().calls -= 1;
            // A caller without calls is not kept.
            if known.get().calls == 0 {
                known.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_half_of_the_places_and_the_others_theirs() {
        let permits = Permits::new(4);
        let greedy = [permits.take("a").await, permits.take("a").await].map(Option::unwrap);
        let began = Instant::now();
        assert!(permits.take("a").await.is_none());
        assert_eq!(began.elapsed(), WAIT_MAX);
        let others = [permits.take("b").await, permits.take("c").await].map(Option::unwrap);
        assert!(permits.take("d").await.is_none(), "all are taken");
        let waiting = permits.take("d");
        let freed = async {
            tokio::time::sleep(WAIT_MAX / 2).await;
            drop(others);
        };
        let (waited, ()) = tokio::join!(waiting, freed);
        assert!(waited.is_some());
        drop((greedy, waited));
        assert!(permits.callers.lock().expect("lock").is_empty(), "nobody is remembered");
        assert_eq!(permits.all.available_permits(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn one_place_is_for_any_caller_and_who_has_too_much_waiting_is_refused_at_once() {
        let permits = Permits::new(1);
        let only = permits.take("a").await.expect("a place");
        let waiting = join_all((0..WAITING_MAX).map(|_| permits.take("a")));
        let mut waiting = Box::pin(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(permits.take("a").now_or_never().is_some_and(|place| place.is_none()));
        assert!(permits.take("b").now_or_never().is_none(), "another one waits");
        drop(waiting);
        drop(only);
        assert!(permits.take("b").await.is_some());
    }
}
