//! What the callers see while the load runs: which node answered last, how long none did, errors.
//!
//! Times are those since the start of the drill.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::breaches::Breaches;
use super::orders::TYPES;
use super::plan::NODES;

/// What has been noted so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    /// Numbers answered, repetitions too.
    pub(super) numbers: u64,
    /// How often callers were refused, by reason.
    pub(super) refusals: BTreeMap<String, u64>,
    /// Answers that break a promise on their own.
    pub(super) breaches: Breaches,
    /// Whether a successor has given a number for no date.
    has_turned: bool,
    /// When a series was last answered by a node.
    answered: [[Duration; TYPES.len()]; NODES],
    /// When a series was last answered by any node, and the longest time without since the reset.
    last: [Duration; TYPES.len()],
    stall: [Duration; TYPES.len()],
}

impl Noted {
    /// Refusals for whatever reason.
    pub(super) fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }
}

/// From the last change to the begin of a fault: longer than a heartbeat and its proof take.
const QUIET: Duration = Duration::from_secs(3);

/// Pause between two looks whether changes have ended.
const POLL: Duration = Duration::from_millis(20);

/// Shared by all callers and the injector of faults.
pub(super) struct Progress {
    started: Instant,
    noted: Mutex<Noted>,
    /// Whether nothing is changed now that no process tells a ledger again.
    is_quiet: AtomicBool,
    /// Such changes that are under way.
    changing: AtomicUsize,
}

/// A change that is under way.
pub(super) struct Change<'p>(&'p Progress);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.changing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Progress {
    /// Starts the clock.
    pub(super) fn new() -> Self {
        Progress {
            started: Instant::now(),
            noted: Mutex::default(),
            is_quiet: AtomicBool::new(false),
            changing: AtomicUsize::new(0),
        }
    }

    /// Begins a change that no process tells a ledger again, such as a void; none while it is
    /// quiet.
    pub(super) fn change(&self) -> Option<Change<'_>> {
        self.changing.fetch_add(1, Ordering::SeqCst);
        let change = Change(self);
        (!self.is_quiet.load(Ordering::SeqCst)).then_some(change)
    }

    /// Keeps such changes from beginning, and waits until a ledger that goes back has forgotten
    /// none: the processes then agree on it without an operator.
    pub(super) async fn quiet(&self) {
        self.is_quiet.store(true, Ordering::SeqCst);
        while self.changing.load(Ordering::SeqCst) > 0 {
            sleep(POLL).await;
        }
        sleep(QUIET).await;
    }

    /// Changes begin again.
    pub(super) fn stir(&self) {
        self.is_quiet.store(false, Ordering::SeqCst);
    }

    /// Now.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// What has been noted so far. Callers wait while it is held.
    pub(super) fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().expect("no holder of this lock panics")
    }

    /// Notes an answer with numbers of a series.
    pub(super) fn answered(&self, node: usize, series: usize, count: u64) {
        let noted = &mut *self.noted();
        let now = self.now();
        noted.numbers += count;
        noted.answered[node][series] = now;
        let pause = now - noted.last[series];
        noted.stall[series] = noted.stall[series].max(pause);
        noted.last[series] = now;
    }

    /// Notes that a successor has taken over.
    pub(super) fn note_turn(&self) {
        self.noted().has_turned = true;
    }

    /// Whether one has.
    pub(super) fn has_turned(&self) -> bool {
        self.noted().has_turned
    }

    /// Notes why a caller was refused.
    pub(super) fn refused(&self, why: String) {
        *self.noted().refusals.entry(why).or_default() += 1;
    }

    /// Records an answer that breaks a promise on its own.
    pub(super) fn breach(&self, what: &'static str, answer: String) {
        self.noted().breaches.add(what, answer);
    }

    /// Begins to look for stalls anew.
    pub(super) fn reset(&self) {
        self.noted().stall = Default::default();
    }

    /// The longest time since the reset in which a series had no number from any node.
    pub(super) fn stall(&self) -> Duration {
        let noted = self.noted();
        let now = self.now();
        let of_series =
            |(stall, last): (&Duration, &Duration)| now.saturating_sub(*last).max(*stall);
        noted.stall.iter().zip(&noted.last).map(of_series).max().unwrap_or_default()
    }

    /// Whether every node has answered for every series since then.
    pub(super) fn all_answered_since(&self, since: Duration) -> bool {
        self.noted().answered.iter().flatten().all(|answered| *answered > since)
    }
}
