//! A few places that callers take in turns: three hundred concurrent calls of one caller wait in a
//! line of their own, and delay no other caller.
//!
//! A place that is given to a call whose client has left goes to the next one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

/// Most calls that wait for the places of one kind.
const WAITING_MAX: usize = 4_096;

/// Of them, calls of one caller.
const CALLER_WAITING_MAX: usize = 256;

/// Longest wait for a place. Callers that came together would leave together, and come again
/// together: each waits for a time of its own, at least half as long.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(5);

/// The places of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Permits(Arc<Mutex<Line>>);

/// One of them; until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Permits);

/// Waiting calls. While there are any, no place is free.
#[derive(Debug, Default)]
struct Line {
    free: usize,
    waiting: usize,
    lines: HashMap<Arc<str>, VecDeque<Waiting>>,
    /// Callers with waiting calls, the next one first.
    turns: VecDeque<Arc<str>>,
    /// The number of the latest waiting call.
    tickets: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    told: oneshot::Sender<Permit>,
}

/// Leaves the line when it is dropped.
struct Stand<'p> {
    permits: &'p Permits,
    caller: &'p Arc<str>,
    ticket: u64,
}

impl Permits {
    /// So many places, at least one.
    pub(crate) fn new(count: usize) -> Self {
        Permits(Arc::new(Mutex::new(Line { free: count.max(1), ..Line::default() })))
    }

    /// A place for a caller, in its turn; `None` if too many wait, or for too long.
    pub(crate) async fn take(&self, caller: &Arc<str>) -> Option<Permit> {
        let (ticket, told) = {
            let mut line = self.line();
            if line.free > 0 {
                line.free -= 1;
                return Some(Permit(self.clone()));
            }
            line.join(caller)?
        };
        let _stand = Stand { permits: self, caller, ticket };
        tokio::time::timeout(wait_of(ticket), told).await.ok()?.ok()
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().expect("no holder of this lock panics")
    }
}

/// How long the holder of a ticket waits: tickets that follow each other are spread evenly (a
/// multiplicative hash: Knuth, The Art of Computer Programming, 6.4).
fn wait_of(ticket: u64) -> Duration {
    let part = ticket.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let half = WAIT_MAX / 2;
    half + half.mul_f64(part as f64 / f64::from(u32::MAX))
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut line = self.0.line();
        let Some(next) = line.pop() else {
            line.free += 1;
            return;
        };
        drop(line);
        // A place that no call waits for any more comes back here automatically.
        let _ = next.told.send(Permit(self.0.clone()));
    }
}

impl Drop for Stand<'_> {
    fn drop(&mut self) {
        self.permits.line().leave(self.caller, self.ticket);
    }
}

impl Line {
    fn join(&mut self, caller: &Arc<str>) -> Option<(u64, oneshot::Receiver<Permit>)> {
        let own = self.lines.get(caller).map_or(0, VecDeque::len);
        if self.waiting >= WAITING_MAX || own >= CALLER_WAITING_MAX {
            return None;
        }
        let (told, tells) = oneshot::channel();
        self.tickets += 1;
        self.waiting += 1;
        if own == 0 {
            self.turns.push_back(Arc::clone(caller));
        }
        let waiting = Waiting { ticket: self.tickets, told };
        self.lines.entry(Arc::clone(caller)).or_default().push_back(waiting);
        Some((self.tickets, tells))
    }

    fn pop(&mut self) -> Option<Waiting> {
        let caller = self.turns.pop_front()?;
        let line = self.lines.get_mut(&caller)?;
        let next = line.pop_front();
        self.waiting -= usize::from(next.is_some());
        if line.is_empty() {
            self.lines.remove(&caller);
        } else {
            self.turns.push_back(caller);
        }
        next
    }

    fn leave(&mut self, caller: &Arc<str>, ticket: u64) {
        let Some(line) = self.lines.get_mut(caller) else { return };
        let before = line.len();
        line.retain(|waiting| waiting.ticket != ticket);
        self.waiting -= before - line.len();
        if line.is_empty() {
            self.lines.remove(caller);
            self.turns.retain(|other| other != caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt;

    use super::*;

    type Taking<'p> = Pin<Box<dyn Future<Output = Option<Permit>> + 'p>>;

    /// A call that has come, and waits if necessary.
    fn come<'p>(permits: &'p Permits, caller: &'p Arc<str>) -> Taking<'p> {
        let mut taking: Taking<'p> = Box::pin(permits.take(caller));
        assert!(taking.as_mut().now_or_never().is_none(), "no place is free");
        taking
    }

    #[tokio::test(start_paused = true)]
    async fn callers_take_turns_whoever_came_first_and_however_often() {
        let (permits, [heavy, light]) = (Permits::new(1), ["heavy".into(), "light".into()]);
        let first = permits.take(&heavy).await.expect("free");
        let mut heavies: Vec<_> = (0..10).map(|_| come(&permits, &heavy)).collect();
        let mut lights: Vec<_> = (0..2).map(|_| come(&permits, &light)).collect();
        drop(first);
        for round in 0..2 {
            let permit = heavies[round].as_mut().now_or_never().flatten().expect("heavy's turn");
            assert!(lights[round].as_mut().now_or_never().is_none());
            drop(permit);
            drop(lights[round].as_mut().now_or_never().flatten().expect("light's turn"));
        }
        // A call that has left has no turn.
        let rest = heavies.split_off(3);
        drop(rest);
        drop(heavies[2].as_mut().now_or_never().flatten().expect("the last one"));
        let line = permits.line();
        assert_eq!((line.free, line.waiting, line.lines.len(), line.turns.len()), (1, 0, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_was_given_to_who_leaves_goes_to_the_next_one() {
        let (permits, [a, b]) = (Permits::new(1), ["a".into(), "b".into()]);
        let first = permits.take(&a).await.expect("free");
        let gone = come(&permits, &a);
        let mut next = come(&permits, &b);
        drop(first);
        drop(gone);
        assert!(next.as_mut().now_or_never().flatten().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_finds_too_many_or_waits_too_long_has_no_place_and_others_have_theirs() {
        let (permits, [a, b]) = (Permits::new(1), ["a".into(), "b".into()]);
        let first = permits.take(&a).await.expect("free");
        let waiting: Vec<_> = (0..CALLER_WAITING_MAX).map(|_| come(&permits, &a)).collect();
        assert!(permits.take(&a).await.is_none(), "its line is full");
        let mut other = come(&permits, &b);
        tokio::time::sleep(WAIT_MAX).await;
        assert!(other.as_mut().await.is_none(), "it waited too long");
        drop((waiting, other, first));
        assert!(permits.take(&b).await.is_some());
    }

    /// Two hundred calls that came together return over two and a half seconds, a few at a time.
    #[test]
    fn those_that_came_together_do_not_leave_together() {
        let mut leave: Vec<_> = (1..=200).map(wait_of).collect();
        leave.sort();
        assert!(WAIT_MAX / 2 <= leave[0] && leave[199] <= WAIT_MAX);
        let tenth = WAIT_MAX / 20;
        for begin in 0..10 {
            let from = WAIT_MAX / 2 + tenth * begin;
            let count = leave.iter().filter(|at| (from..from + tenth).contains(*at)).count();
            assert!((15..=25).contains(&count), "{count} from {from:?}");
        }
    }
}
