//! When requests are due to start.
//!
//! Closed: each connection sends its next request when it has the answer to the last one. Open:
//! requests start at times that were fixed before, whatever happened to earlier ones; latency
//! counts from that time, so a stalled server cannot suppress the requests that would have found it
//! stalled (no coordinated omission).

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;

/// The pace of a load.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// As fast as the answers come.
    Closed,
    /// This many requests per second from the start, in each phase for its time.
    Open(Vec<(f64, Duration)>),
}

impl Pace {
    /// This many requests, all due immediately.
    pub(crate) fn once(requests: usize) -> Self {
        Self::open(1e6, Duration::from_micros(requests as u64))
    }

    /// One constant rate.
    pub(crate) fn open(rate: f64, length: Duration) -> Self {
        Pace::Open(vec![(rate, length)])
    }
}

/// When each request of an open load starts, counted from the load's start; in order.
fn starts(phases: Vec<(f64, Duration)>) -> impl Iterator<Item = Duration> {
    let mut begun = Duration::ZERO;
    phases.into_iter().flat_map(move |(rate, length)| {
        let from = begun;
        begun += length;
        let gap_s = 1.0 / rate;
        #[expect(clippy::cast_precision_loss, reason = "no load has 2^53 requests")]
        let offsets = (0_u64..).map(move |i| Duration::from_secs_f64(i as f64 * gap_s));
        offsets.take_while(move |offset| *offset < length).map(move |offset| from + offset)
    })
}

/// Hands the requests of an open load to the connections, each at its time.
///
/// Waits by a timer of the kernel: the runtime's own waits are precise to the millisecond, which is
/// longer than what is measured, and a thread that waits would have to wake this one.
pub(crate) struct Pacer {
    schedule: Mutex<Schedule>,
}

/// The requests that are not due yet.
struct Schedule {
    begun: Instant,
    starts: Box<dyn Iterator<Item = Duration>>,
    timer: AsyncFd<OwnedFd>,
}

impl Pacer {
    /// Begins now, and ends with the last phase. Call it inside the runtime.
    ///
    /// # Panics
    /// When the kernel gives no timer.
    pub(crate) fn start(phases: Vec<(f64, Duration)>, begun: Instant) -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer");
        #[expect(deprecated, reason = "its successor is unsafe; this one owns the descriptor")]
        let timer = AsyncFd::new(timer).expect("a timer that can be waited for");
        let starts = Box::new(starts(phases));
        Pacer { schedule: Mutex::new(Schedule { begun, starts, timer }) }
    }

    /// The time at which the next request was due, once it has come; `None` at the end.
    pub(crate) async fn next(&self) -> Option<Instant> {
        let mut course = self.schedule.lock().await;
        let at = course.begun + course.starts.next()?;
        while let Some(left) = at.checked_duration_since(Instant::now()).filter(|l| !l.is_zero()) {
            course.wait(left).await;
        }
        Some(at)
    }
}

impl Schedule {
    async fn wait(&self, left: Duration) {
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let left = Timespec::try_from(left).expect("a load does not last for years");
        let when = Itimerspec { it_interval: once, it_value: left };
        // Setting it again clears its expiry.
        let set = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &when);
        set.expect("a time that a timer takes");
        let mut rung = self.timer.readable().await.expect("the runtime lives");
        rung.clear_ready();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_rate() {
        let second = Duration::from_secs(1);
        let starts: Vec<u128> =
            starts(vec![(4.0, second), (2.0, second)]).map(|start| start.as_millis()).collect();
        assert_eq!(starts, [0, 250, 500, 750, 1_000, 1_500]);
    }

    #[test]
    fn what_is_due_at_once_is_counted() {
        for requests in [1, 8, 1_000, 123_457] {
            let Pace::Open(phases) = Pace::once(requests) else { unreachable!("an open pace") };
            assert_eq!(starts(phases).count(), requests);
        }
    }
}
