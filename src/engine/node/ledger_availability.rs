//! Whether the ledger answers this process, and since when it does not.
//!
//! The heartbeat asks all the time, on a dedicated connection. So no request is lost to find out
//! that the ledger is away, or back: while that is known, requests for it are refused immediately.
//! A pause under [`AWAY_AFTER`] is waited out. Only observes; takes nothing, refuses nothing.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::ledger::LedgerError;

/// How long every heartbeat must have failed before the ledger counts as away. A fail-over takes
/// less as a rule, and requests wait for it.
const AWAY_AFTER: Duration = Duration::from_secs(2);

/// A heartbeat without an answer for so long is noted by those whose own time is over.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// A ledger that is known to be away may be back in this very moment: a request waits this long
/// before it is refused.
const JUST_BACK: Duration = Duration::from_millis(100);

/// Time between two tries to connect to a ledger that is away. A heartbeat waits for its connection
/// for longer between two, up to a few tenths of a second.
const KNOCK_PERIOD: Duration = Duration::from_millis(25);

/// Time between two judgements while a heartbeat is under way.
const JUDGED_EVERY: Duration = Duration::from_millis(100);

/// The use of the ledger that a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// To read what it has.
    Read,
    /// To have something committed.
    Write,
}

/// The known abilities of the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fitness {
    /// Everything, as far as is known.
    #[default]
    Whole,
    /// Reading: it is read-only, or its disk is full.
    Reading,
    /// Nothing.
    Nothing,
}

impl Fitness {
    fn lacks(self, what: Use) -> bool {
        match self {
            Fitness::Whole => false,
            Fitness::Reading => what == Use::Write,
            Fitness::Nothing => true,
        }
    }
}

/// Whether the ledger is available, as the heartbeats show it.
#[derive(Debug)]
pub struct LedgerAvailability {
    beats: Mutex<Beats>,
    known: watch::Sender<Fitness>,
    /// The same for callers that need it with each request.
    is_whole: AtomicBool,
    /// Whether a peer may vanish without a word: there is none behind a file.
    has_peer: bool,
    /// `node.ttl`: a process whose heartbeat is not answered for so long is dead to the others.
    silent_after: Duration,
}

#[derive(Debug, Default)]
struct Beats {
    /// Since when the heartbeat that is under way waits.
    asked_at: Option<Instant>,
    /// How every heartbeat has failed of late.
    failing: Option<Failing>,
    /// When anything else was answered last.
    heard_at: Option<Instant>,
    /// Whether the last heartbeat got no lock.
    is_locked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    /// Since when.
    since: Instant,
    /// Whether reading may continue.
    spares_reads: bool,
    /// Whether the ledger is silent.
    is_silence: bool,
}

impl LedgerAvailability {
    /// A ledger that has just answered.
    #[must_use]
    pub fn new(has_peer: bool, silent_after: Duration) -> Self {
        LedgerAvailability {
            beats: Mutex::default(),
            known: watch::Sender::default(),
            is_whole: AtomicBool::new(true),
            has_peer,
            silent_after,
        }
    }

    /// Whether the ledger is known not to be fit for something. Costs nothing while all is well.
    #[must_use]
    pub fn lacks(&self, what: Use) -> bool {
        !self.is_whole.load(Ordering::Relaxed) && self.known.borrow().lacks(what)
    }

    /// The same a moment later, where it is so: it may just be back. Safe to drop.
    pub async fn still_lacks(&self, what: Use) -> bool {
        if !self.lacks(what) {
            return false;
        }
        let mut known = self.known.subscribe();
        let back = known.wait_for(|known| !known.lacks(what));
        tokio::time::timeout(JUST_BACK, back).await.is_err()
    }

    /// Waits until the ledger is known not to be fit for something, and stays so. Safe to drop.
    pub async fn until_lacking(&self, what: Use) {
        let mut known = self.known.subscribe();
        loop {
            // The sender is this very object: it is there.
            let _ = known.wait_for(|known| known.lacks(what)).await;
            if self.still_lacks(what).await {
                return;
            }
        }
    }

    /// Tries to connect to a ledger that is known to be silent, again and again: one that refused
    /// connections and accepts one now is back. One that accepts connections all the time, and
    /// answers no heartbeat, is not.
    pub(super) async fn knocking<F>(&self, knock: impl Fn() -> F) -> Infallible
    where
        F: Future<Output = bool>,
    {
        let mut known = self.known.subscribe();
        let mut was_shut = false;
        loop {
            if !self.lacks(Use::Read) {
                was_shut = false;
                let _ = known.wait_for(|known| known.lacks(Use::Read)).await;
            }
            let is_silent = self.beats().failing.is_none_or(|failing| failing.is_silence);
            if is_silent {
                match knock().await {
                    true if was_shut => self.let_in(),
                    true => {}
                    false => was_shut = true,
                }
            }
            tokio::time::sleep(KNOCK_PERIOD).await;
        }
    }

    /// A connection was accepted. Callers that wait for an old connection do not know it yet.
    fn let_in(&self) {
        {
            let mut beats = self.beats();
            beats.failing = None;
            beats.heard_at = Some(Instant::now());
        }
        self.judge();
    }

    /// For how long it has not answered; `None` while it does, as far as is known yet.
    #[must_use]
    pub fn unanswered_for(&self) -> Option<Duration> {
        let seen = self.beats();
        let late = seen.asked_at.filter(|at| self.has_peer && at.elapsed() >= LATE_AFTER);
        seen.failing.map(|failing| failing.since).or(late).map(|since| since.elapsed())
    }

    /// Whether the last heartbeat got no lock: another session locks what this process writes to.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.beats().is_locked
    }

    /// Something else than a heartbeat was answered.
    pub fn hear(&self) {
        self.beats().heard_at = Some(Instant::now());
    }

    /// A heartbeat is sent.
    pub(super) fn ask(&self) {
        self.beats().asked_at = Some(Instant::now());
    }

    /// A heartbeat has ended, well or with an error.
    pub(super) fn answer(&self, error: Option<&LedgerError>) {
        let mut seen = self.beats();
        let asked_at = seen.asked_at.take().unwrap_or_else(Instant::now);
        seen.is_locked = matches!(error, Some(LedgerError::LockTimeout { .. }));
        seen.failing = match error {
            Some(error @ LedgerError::Unreachable { .. }) => {
                let heard_at = seen.heard_at.unwrap_or(asked_at);
                let since = seen.failing.map(|failing| failing.since);
                Some(Failing {
                    since: since.unwrap_or(asked_at.max(heard_at)),
                    spares_reads: error.spares_reads(),
                    is_silence: error.is_silence(),
                })
            }
            // Any other error is an answer.
            _ => None,
        };
    }

    /// Does the work of a heartbeat, and judges what is known meanwhile and afterwards.
    pub(super) async fn watching<T>(&self, beat: impl Future<Output = T>) -> T {
        let mut beat = pin!(beat);
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut beat => break outcome,
                () = tokio::time::sleep(JUDGED_EVERY) => self.judge(),
            }
        };
        self.judge();
        outcome
    }

    fn judge(&self) {
        let known =
            {
                let seen = self.beats();
                let is_long = |since: &Instant| since.elapsed() >= self.silent_after;
                match seen.failing {
                    Some(failing) if failing.since.elapsed() >= AWAY_AFTER => {
                        if failing.spares_reads { Fitness::Reading } else { Fitness::Nothing }
                    }
                    // Nothing is answered, not only what is locked.
                    None if self.has_peer
                        && seen.asked_at.as_ref().is_some_and(is_long)
                        && seen.heard_at.as_ref().is_none_or(is_long) =>
                    {
                        Fitness::Nothing
                    }
                    _ => Fitness::Whole,
                }
            };
        let is_news =
            self.known.send_if_modified(|before| std::mem::replace(before, known) != known);
        self.is_whole.store(known == Fitness::Whole, Ordering::Relaxed);
        match known {
            _ if !is_news => {}
            Fitness::Whole => tracing::info!("the ledger answers again"),
            Fitness::Reading => {
                tracing::warn!("the ledger takes no writes; what needs them is refused at once");
            }
            Fitness::Nothing => {
                tracing::warn!("the ledger does not answer; what needs it is refused at once");
            }
        }
    }

    fn beats(&self) -> std::sync::MutexGuard<'_, Beats> {
        self.beats.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    const TTL: Duration = Duration::from_secs(3);

    fn lost(cause: &str) -> LedgerError {
        LedgerError::Unreachable { cause: cause.into(), maybe_written: false }
    }

    fn lacks(availability: &LedgerAvailability) -> [bool; 2] {
        availability.judge();
        [Use::Read, Use::Write].map(|what| availability.lacks(what))
    }

    #[tokio::test(start_paused = true)]
    async fn a_ledger_is_away_once_heartbeats_have_failed_for_a_while_until_one_is_answered() {
        let availability = LedgerAvailability::new(true, TTL);
        for _ in 0..4 {
            assert_eq!(lacks(&availability), [false, false], "{:?}", availability.unanswered_for());
            availability.ask();
            tokio::time::advance(AWAY_AFTER / 4).await;
            availability.answer(Some(&lost("refused")));
        }
        assert_eq!(lacks(&availability), [true, true]);
        assert_eq!(availability.unanswered_for(), Some(AWAY_AFTER));
        assert!(availability.still_lacks(Use::Read).await);
        availability.until_lacking(Use::Read).await;
        // A read on another connection does not contradict heartbeats that fail.
        availability.hear();
        assert_eq!(lacks(&availability), [true, true]);
        availability.ask();
        availability.answer(None);
        assert_eq!((lacks(&availability), availability.unanswered_for()), ([false, false], None));
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_let_in_has_as_long_again_and_a_heartbeat_of_before_says_nothing() {
        let availability = LedgerAvailability::new(true, TTL);
        availability.ask();
        availability.answer(Some(&lost("refused")));
        availability.ask();
        tokio::time::advance(AWAY_AFTER).await;
        assert_eq!(lacks(&availability), [true, true]);
        availability.let_in();
        availability.answer(Some(&lost("waited for a connection in vain")));
        tokio::time::advance(AWAY_AFTER / 2).await;
        assert_eq!(lacks(&availability), [false, false]);
        tokio::time::advance(AWAY_AFTER / 2).await;
        assert_eq!(lacks(&availability), [true, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_ledger_that_takes_no_writes_is_read_and_one_that_waits_for_a_lock_answers() {
        let availability = LedgerAvailability::new(true, TTL);
        for cause in ["25006: read-only", "53100: full", "1032: moved", "13: full"] {
            availability.ask();
            tokio::time::advance(AWAY_AFTER).await;
            availability.answer(Some(&lost(cause)));
            assert_eq!(lacks(&availability), [false, true], "{cause}");
            availability.answer(None);
        }
        availability.ask();
        tokio::time::advance(AWAY_AFTER).await;
        availability
            .answer(Some(&LedgerError::LockTimeout { cause: "held".into(), counter: None }));
        assert_eq!((lacks(&availability), availability.is_locked()), ([false, false], true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_that_hangs_for_a_time_to_live_is_no_answer_unless_others_get_some() {
        let availability = LedgerAvailability::new(true, TTL);
        availability.ask();
        tokio::time::advance(TTL / 2).await;
        availability.hear();
        tokio::time::advance(TTL / 2).await;
        assert_eq!(lacks(&availability), [false, false], "a lock that is held is no fault");
        tokio::time::advance(TTL / 2).await;
        assert_eq!(lacks(&availability), [true, true]);
        let file = LedgerAvailability::new(false, TTL);
        file.ask();
        tokio::time::advance(TTL * 2).await;
        assert_eq!(
            (lacks(&file), file.unanswered_for()),
            ([false, false], None),
            "a file is there"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_hangs_is_judged_while_it_hangs() {
        let availability = LedgerAvailability::new(true, TTL);
        availability.ask();
        let beat = tokio::time::sleep(TTL * 4);
        tokio::select! {
            () = availability.watching(beat) => panic!("nobody noticed"),
            () = availability.until_lacking(Use::Write) => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_lets_everybody_in_and_answers_no_heartbeat_is_not_back_until_it_was_shut() {
        let (availability, knocks) = (LedgerAvailability::new(true, TTL), AtomicUsize::new(0));
        availability.ask();
        tokio::time::advance(TTL).await;
        assert_eq!(lacks(&availability), [true, true]);
        // Shut at the hundredth knock alone.
        let knock = || std::future::ready(knocks.fetch_add(1, Ordering::Relaxed) != 99);
        let back = async {
            let mut known = availability.known.subscribe();
            let _ = known.wait_for(|known| !known.lacks(Use::Read)).await;
        };
        tokio::select! {
            never = availability.knocking(knock) => match never {},
            () = back => {}
        }
        assert_eq!(knocks.load(Ordering::Relaxed), 101);
    }
}
