//! The only reader of the system time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Reads the civil time. Waits and time-outs use the runtime's monotonic clock instead.
pub trait Clock: Send + Sync + 'static {
    /// Now, in microseconds of UTC since 1970.
    fn now_us(&self) -> i64;

    /// Now, as a timestamp.
    fn now(&self) -> Timestamp {
        Timestamp::from_microsecond(self.now_us()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Now, in milliseconds.
    fn now_ms(&self) -> i64 {
        self.now_us() / 1_000
    }
}

/// Shared handle to a clock.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]
    fn now_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// A clock that a test sets.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that is set to `now_us`.
    #[must_use]
    pub fn at(now_us: i64) -> Self {
        ManualClock(AtomicI64::new(now_us))
    }

    /// Sets the clock.
    pub fn set(&self, now_us: i64) {
        self.0.store(now_us, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
