//! What the callers see while the load runs: who answered last, for how long nobody did, errors.
//!
//! Times are microseconds since the start of the drill.

use std::array;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::breaches::Breaches;
use super::load::SERIES;
use super::plan::NODES;

/// Why a caller got no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// Nobody listened, or the connection broke.
    Connection,
    /// No answer in time.
    Silence,
    /// An answer with this status.
    Status(u16),
}

impl Refusal {
    /// What an error of the client means.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        if error.is_timeout() { Refusal::Silence } else { Refusal::Connection }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Connection => f.write_str("no connection"),
            Refusal::Silence => f.write_str("no answer in time"),
            Refusal::Status(status) => write!(f, "{status}"),
        }
    }
}

/// How often callers were refused, by reason.
pub(super) type Refusals = BTreeMap<Refusal, u64>;

/// Shared by all callers and the one who injects the faults.
pub(super) struct Progress {
    started: Instant,
    numbers: AtomicU64,
    /// When a series was last answered by a node.
    answered_us: [[AtomicU64; SERIES.len()]; NODES],
    /// When a series was last answered by any node, and the longest time without since the reset.
    last_us: [AtomicU64; SERIES.len()],
    stall_us: [AtomicU64; SERIES.len()],
    /// When the database path first answered for a series of Redis since the reset; 0: not yet.
    database_us: AtomicU64,
    refusals: Mutex<[Refusals; NODES]>,
    /// Requests that the next node refused as well.
    refused_twice: AtomicU64,
    breaches: Mutex<Breaches>,
}

impl Progress {
    /// Starts the clock.
    pub(super) fn new() -> Self {
        Progress {
            started: Instant::now(),
            numbers: AtomicU64::new(0),
            answered_us: array::from_fn(|_| array::from_fn(|_| AtomicU64::new(0))),
            last_us: array::from_fn(|_| AtomicU64::new(0)),
            stall_us: array::from_fn(|_| AtomicU64::new(0)),
            database_us: AtomicU64::new(0),
            refusals: Mutex::default(),
            refused_twice: AtomicU64::new(0),
            breaches: Mutex::default(),
        }
    }

    /// Now.
    pub(super) fn now_us(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).expect("a drill of this age of the world")
    }

    /// Notes an answer with numbers of a series.
    pub(super) fn answered(&self, node: usize, series: usize, count: u64, fell_back: bool) {
        let now_us = self.now_us();
        self.numbers.fetch_add(count, Ordering::Relaxed);
        self.answered_us[node][series].fetch_max(now_us, Ordering::Relaxed);
        let before_us = self.last_us[series].fetch_max(now_us, Ordering::Relaxed);
        self.stall_us[series].fetch_max(now_us.saturating_sub(before_us), Ordering::Relaxed);
        if fell_back {
            let _ =
                self.database_us.compare_exchange(0, now_us, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Notes that a caller was refused.
    pub(super) fn refused(&self, node: usize, why: Refusal) {
        let mut refusals = self.refusals.lock().expect("no holder of this lock panics");
        *refusals[node].entry(why).or_default() += 1;
    }

    /// Notes that the first repetition of a request was refused as well.
    pub(super) fn refused_again(&self) {
        self.refused_twice.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests so far that were refused twice or more.
    pub(super) fn refused_twice(&self) -> u64 {
        self.refused_twice.load(Ordering::Relaxed)
    }

    /// Notes an answer that breaks a promise by itself.
    pub(super) fn breach(&self, what: &'static str, answer: String) {
        self.breaches.lock().expect("no holder of this lock panics").add(what, answer);
    }

    /// Answers that broke a promise so far.
    pub(super) fn breaches(&self) -> Breaches {
        self.breaches.lock().expect("no holder of this lock panics").clone()
    }

    /// Numbers answered so far, repetitions too.
    pub(super) fn numbers(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Refusals so far, by node.
    pub(super) fn refusals(&self) -> [Refusals; NODES] {
        self.refusals.lock().expect("no holder of this lock panics").clone()
    }

    /// Begins to look for stalls and for the database path anew.
    pub(super) fn reset(&self) {
        for stall_us in &self.stall_us {
            stall_us.store(0, Ordering::Relaxed);
        }
        self.database_us.store(0, Ordering::Relaxed);
    }

    /// The longest time since the reset in which a series had no number from any node.
    pub(super) fn stall(&self) -> Duration {
        let now_us = self.now_us();
        let of_series = |(stall_us, last_us): (&AtomicU64, &AtomicU64)| {
            let open_us = now_us.saturating_sub(last_us.load(Ordering::Relaxed));
            stall_us.load(Ordering::Relaxed).max(open_us)
        };
        let longest = self.stall_us.iter().zip(&self.last_us).map(of_series).max();
        Duration::from_micros(longest.unwrap_or_default())
    }

    /// When the database path first answered for a series of Redis since the reset.
    pub(super) fn first_by_database_us(&self) -> Option<u64> {
        Some(self.database_us.load(Ordering::Relaxed)).filter(|us| *us > 0)
    }

    /// Whether every node has answered for every series since then.
    pub(super) fn all_answered_since(&self, since_us: u64) -> bool {
        let after = |us: &AtomicU64| us.load(Ordering::Relaxed) > since_us;
        self.answered_us.iter().flatten().all(after)
    }
}
