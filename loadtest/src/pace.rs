//! When requests are meant to start.
//!
//! Closed: each connection sends its next request when it has the answer to the last one. Open:
//! requests start at times that were fixed before, whatever became of the ones before them; latency
//! counts from that time, so a server that stalls cannot keep the requests away that would have
//! found it stalled (no coordinated omission).

use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, mpsc};

/// Requests that may be due and not sent yet; more are given up, and counted.
const DUE_MAX: usize = 1_000_000;

/// How late the kernel may wake the pacer, to save power; its default is 50 µs.
const SLACK_NS: u64 = 1_000;

/// The pace of a load.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// As fast as the answers come.
    Closed,
    /// So many requests per second from the start, in each phase for its time.
    Open(Vec<Phase>),
}

/// A time at one rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    /// Its length.
    pub(crate) length: Duration,
    /// Requests per second.
    pub(crate) rate: f64,
}

impl Pace {
    /// So many requests, all due at once.
    pub(crate) fn once(requests: usize) -> Self {
        Self::open(1e6, Duration::from_micros(requests as u64))
    }

    /// One rate all along.
    pub(crate) fn open(rate: f64, length: Duration) -> Self {
        Pace::Open(vec![Phase { length, rate }])
    }
}

/// When each request of an open load starts, counted from the load's start; in order.
fn starts(phases: &[Phase]) -> impl Iterator<Item = Duration> {
    let mut begun = Duration::ZERO;
    let with_begin = phases.iter().map(move |phase| {
        let from = begun;
        begun += phase.length;
        (from, *phase)
    });
    with_begin.flat_map(|(from, phase)| {
        let gap_s = 1.0 / phase.rate;
        #[expect(clippy::cast_precision_loss, reason = "no load has 2^53 requests")]
        let offsets = (0_u64..).map(move |i| Duration::from_secs_f64(i as f64 * gap_s));
        offsets.take_while(move |offset| *offset < phase.length).map(move |offset| from + offset)
    })
}

/// Hands the requests of an open load to the connections, each at its time.
///
/// Waits on a thread of its own: the runtime's timer waits to the millisecond, which is longer than
/// what is measured.
pub(crate) struct Pacer {
    due: Mutex<mpsc::Receiver<Instant>>,
    /// Gives how many requests were never sent, because too many others were due.
    thread: thread::JoinHandle<u64>,
}

impl Pacer {
    /// Begins now, and ends with the last phase.
    pub(crate) fn start(phases: Vec<Phase>, begun: Instant) -> Self {
        let (sender, due) = mpsc::channel(DUE_MAX);
        let thread = thread::spawn(move || {
            // Without it requests are some microseconds later, which their latency tells.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(SLACK_NS));
            let mut given_up = 0;
            for start in starts(&phases) {
                let at = begun + start;
                while let Some(left) = at.checked_duration_since(Instant::now()) {
                    if left.is_zero() {
                        break;
                    }
                    thread::park_timeout(left);
                }
                given_up += u64::from(sender.try_send(at).is_err());
            }
            given_up
        });
        Pacer { due: Mutex::new(due), thread }
    }

    /// The time at which the next request was meant to start, once that has come; none at the end.
    pub(crate) async fn next(&self) -> Option<Instant> {
        self.due.lock().await.recv().await
    }

    /// Requests that were never sent, because too many others were due. Waits for the end.
    pub(crate) fn given_up(self) -> u64 {
        self.thread.join().expect("the pacer does not panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_rate() {
        let second = Duration::from_secs(1);
        let phases = [Phase { length: second, rate: 4.0 }, Phase { length: second, rate: 2.0 }];
        let starts: Vec<u128> = starts(&phases).map(|start| start.as_millis()).collect();
        assert_eq!(starts, [0, 250, 500, 750, 1_000, 1_500]);
    }

    #[test]
    fn what_is_due_at_once_is_counted() {
        for requests in [1, 8, 1_000, 123_457] {
            let Pace::Open(phases) = Pace::once(requests) else { unreachable!("an open pace") };
            assert_eq!(starts(&phases).count(), requests);
        }
    }
}
