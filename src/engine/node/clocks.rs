//! This process's clock compared with the times in the ledger (F37): how far apart they are, and
//! which of them decides where an act removes evidence.
//!
//! Such an act uses the lowest of three: the own clock; a reference clock, of the server or, where
//! the ledger is a file, of another process there; and the newest time that was written by others
//! or earlier, advanced by the monotonic clock. A time that was written by a clock ahead of the own
//! one by more than the bound counts for nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::settings::ProcessSettings;
use crate::clock::SharedClock;
use crate::ledger::{Heard, LedgerError, LedgerTimes, SharedLedger};
use crate::node::NodeId;

/// Heartbeats between two reports of a node's time.
const REPORTED_AFTER_BEATS: u32 = 8;

/// The longest time between them.
const REPORTED_AFTER_MAX: Duration = Duration::from_secs(10);

/// From this difference on the log reports it; the alert uses the same bound.
pub const CLOCK_NOTICED_US: i64 = 5_000_000;

/// Why a process does not start, or a command does nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The clocks are too far apart.
    #[error("{0}")]
    Off(ClockOff),
    /// The ledger does not answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Clocks that are further apart than they may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockOff {
    own_us: i64,
    other_us: i64,
    whose: Whose,
    max: Duration,
}

/// The origin of another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Server,
    Process,
    Journal,
    Written,
}

impl fmt::Display for ClockOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |at_us| {
            let at = Timestamp::from_microsecond(at_us).unwrap_or_default();
            at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
        };
        let (own, other) = (moment(self.own_us), moment(self.other_us));
        let whose = match self.whose {
            Whose::Server => "that of PostgreSQL",
            Whose::Process => "that of another process at this ledger",
            Whose::Journal => "the newest row of the journal",
            Whose::Written => "what the ledger showed before",
        };
        let apart = SignedDuration::from_micros(self.own_us.saturating_sub(self.other_us)).abs();
        let max = SignedDuration::try_from(self.max).unwrap_or(SignedDuration::MAX);
        let apart = SignedDuration::from_secs(apart.as_secs());
        write!(
            f,
            "the clock of this process says {own}, {whose} {other}: {apart:#} apart, and \
             node.clock_offset_max allows {max:#}; set the clock that is wrong (NTP)"
        )
    }
}

/// The own clock, and the times of others.
pub struct Clocks {
    own: SharedClock,
    max: Duration,
    /// How long the time of another process counts after its last report.
    patience: Duration,
    known: Mutex<Known>,
}

/// What is known of other clocks.
#[derive(Default)]
struct Known {
    /// The reference clock.
    beside: Option<(Heard, Whose)>,
    /// The newest time that was written, by others or before this process wrote any.
    written: Option<Heard>,
    /// The last times of other nodes: one that reports a new time lives.
    told: HashMap<NodeId, i64>,
    looked: Option<Instant>,
    standing: ClockState,
}

/// How far apart the clocks are, as last logged.
#[derive(Debug, Default, PartialEq, Eq)]
enum ClockState {
    #[default]
    Close,
    Noticed,
    Off(ClockOff),
}

/// Time between two reports of a node.
pub(super) fn reported_after(settings: &ProcessSettings) -> Duration {
    (settings.node_heartbeat() * REPORTED_AFTER_BEATS).min(REPORTED_AFTER_MAX)
}

impl Clocks {
    /// Compares the own clock with the times in the ledger, before this process writes anything. In
    /// a file, where nothing that is written confirms the own clock, a process that reports another
    /// time counts if it lives, which is waited for.
    ///
    /// # Errors
    /// `Off` where they are further apart than `node.clock_offset_max`; a ledger that does not
    /// answer.
    pub async fn compare(
        ledger: &SharedLedger,
        own: SharedClock,
        settings: &ProcessSettings,
    ) -> Result<Arc<Self>, ClockError> {
        let reported_after = reported_after(settings);
        let patience = settings.node_ttl.max(reported_after * 3);
        let max = settings.clock_offset_max;
        let clocks = Clocks { own, max, patience, known: Mutex::default() };
        let times = clocks.poll(ledger).await?;
        if times.server.is_none() {
            let own_us = clocks.own.now_us();
            // A clock behind what is written is off, whatever process wrote it.
            if let Some(other_us) = times.journaled_us.filter(|it| *it > clocks.latest_us()) {
                let whose = Whose::Journal;
                return Err(ClockError::Off(ClockOff { own_us, other_us, whose, max }));
            }
            let mut told = times.nodes.iter().map(|(_, at_us)| *at_us).chain(times.journaled_us);
            let is_confirmed = told.any(|at_us| clocks.is_close(own_us.saturating_sub(at_us)));
            let is_doubted = !times.nodes.is_empty() && !is_confirmed;
            let limit = Instant::now() + settings.node_ttl.max(reported_after * 2);
            while is_doubted && Instant::now() < limit && !clocks.agrees_with_one() {
                tokio::time::sleep(settings.node_heartbeat()).await;
                clocks.poll(ledger).await?;
            }
        }
        match clocks.judge() {
            ClockState::Off(off) => Err(ClockError::Off(off)),
            ClockState::Close | ClockState::Noticed => Ok(Arc::new(clocks)),
        }
    }

    /// The time used by an act that removes evidence, in microseconds of UTC.
    #[must_use]
    pub fn evidence_us(&self) -> i64 {
        let (known, now) = (self.known(), Instant::now());
        let words = known.beside.iter().map(|(heard, _)| heard).chain(&known.written);
        words.map(|heard| heard.least_us(now)).fold(self.own.now_us(), i64::min)
    }

    /// The time that queries of the journal use: that of the own clock, or that of the reference
    /// clock where the own one is behind. Without a reference clock, the newest written time
    /// counts: in a ledger without writes for long, the query reaches that much further back.
    #[must_use]
    pub fn asking_us(&self) -> i64 {
        let (known, now) = (self.known(), Instant::now());
        let beside = known.beside.as_ref().map(|(heard, _)| heard);
        let word = beside.or(known.written.as_ref()).map(|heard| heard.least_us(now));
        word.unwrap_or(i64::MAX).min(self.own.now_us())
    }

    /// What is wrong, where the clocks are further apart than they may be.
    #[must_use]
    pub fn off(&self) -> Option<ClockOff> {
        match &self.known().standing {
            ClockState::Off(off) => Some(off.clone()),
            ClockState::Close | ClockState::Noticed => None,
        }
    }

    /// How far the own clock is ahead of the reference clock, at the least; none where there is
    /// none.
    pub(super) fn offset_us(&self) -> Option<i64> {
        let (heard, _) = self.known().beside?;
        Some(heard.offset_us(self.own.now_us(), Instant::now()))
    }

    /// Whether a reference clock shows about the same time.
    fn agrees_with_one(&self) -> bool {
        self.offset_us().is_some_and(|offset_us| self.is_close(offset_us))
    }

    async fn poll(&self, ledger: &SharedLedger) -> Result<LedgerTimes, LedgerError> {
        let times = ledger.times(self.latest_us()).await?;
        self.hear(times.server, &times.nodes);
        let newest = times.journaled_us.filter(|it| *it <= self.latest_us()).max(times.told_us);
        let mut known = self.known();
        if known.written.is_none() {
            // A ledger in which nothing is written yet begins now.
            let (at_us, now) = (newest.unwrap_or_else(|| self.own.now_us()), Instant::now());
            known.written = Some(Heard { at_us, asked: now, answered: now });
        }
        drop(known);
        Ok(times)
    }

    /// Takes over the times of others.
    pub(super) fn hear(&self, server: Option<Heard>, others: &[(NodeId, i64)]) {
        let (now, own_us, latest_us) = (Instant::now(), self.own.now_us(), self.latest_us());
        let mut known = self.known();
        let asked = known.looked.replace(now);
        let before = std::mem::replace(&mut known.told, others.iter().copied().collect());
        // A node that reported another time than at the last read did so since then.
        let voices = others.iter().filter_map(|(node, at_us)| {
            let is_new = before.get(node).is_some_and(|before| before != at_us);
            let asked = asked.filter(|_| is_new)?;
            Some(Heard { at_us: *at_us, asked, answered: now })
        });
        let voices: Vec<Heard> = voices.collect();
        for voice in voices.iter().filter(|voice| voice.at_us <= latest_us) {
            if known.written.is_none_or(|written| written.least_us(now) < voice.at_us) {
                known.written = Some(*voice);
            }
        }
        // Of several processes on a file, one that agrees with another is right.
        let nearest = voices.into_iter().min_by_key(|voice| voice.offset_us(own_us, now).abs());
        let is_over = |(heard, _): &(Heard, Whose)| now - heard.answered > self.patience;
        if let Some(server) = server {
            known.beside = Some((server, Whose::Server));
        } else if let Some(nearest) = nearest {
            known.beside = Some((nearest, Whose::Process));
        } else if known.beside.as_ref().is_some_and(is_over) {
            known.beside = None;
        }
    }

    /// How far apart the clocks are now.
    fn judge(&self) -> ClockState {
        let (now, own_us) = (Instant::now(), self.own.now_us());
        let known = self.known();
        let behind = known.written.filter(|heard| heard.least_us(now) > self.latest_us());
        let (heard, whose) = match (known.beside, behind) {
            (Some(beside), _) => beside,
            (None, Some(written)) => (written, Whose::Written),
            (None, None) => return ClockState::Close,
        };
        let offset_us = heard.offset_us(own_us, now);
        if !self.is_close(offset_us) {
            let other_us = own_us.saturating_sub(offset_us);
            return ClockState::Off(ClockOff { own_us, other_us, whose, max: self.max });
        }
        // What was logged once is over only where that is clear.
        let was_close = known.standing == ClockState::Close;
        let noticed_us = if was_close { CLOCK_NOTICED_US } else { CLOCK_NOTICED_US / 2 };
        if offset_us.abs() > noticed_us { ClockState::Noticed } else { ClockState::Close }
    }

    /// Logs what has changed.
    pub(super) fn tell(&self) {
        let offset_ms = self.offset_us().map(|offset_us| offset_us / 1_000);
        let standing = self.judge();
        let mut known = self.known();
        match (&known.standing, &standing) {
            (ClockState::Off(_), ClockState::Off(_)) => {}
            (_, ClockState::Off(off)) => {
                tracing::error!("THE CLOCK IS OFF: {off}; nothing is swept until it is right");
            }
            (ClockState::Close, ClockState::Noticed) => {
                let offset_ms = offset_ms.unwrap_or_default();
                tracing::warn!(offset_ms, "the clock differs from the ledger's word");
            }
            (ClockState::Off(_) | ClockState::Noticed, ClockState::Close) => {
                tracing::info!("the clock is right again");
            }
            _ => {}
        }
        known.standing = standing;
    }

    /// What is written later was written by a clock that was ahead.
    fn latest_us(&self) -> i64 {
        self.own.now_us().saturating_add(self.max_us())
    }

    fn is_close(&self, offset_us: i64) -> bool {
        offset_us.abs() <= self.max_us()
    }

    fn max_us(&self) -> i64 {
        i64::try_from(self.max.as_micros()).unwrap_or(i64::MAX)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no holder of this lock panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    const NOW_US: i64 = 1_700_000_000_000_000;
    const MINUTE_US: i64 = 60_000_000;
    const DAY_US: i64 = 1_440 * MINUTE_US;

    fn heard(at_us: i64) -> Heard {
        Heard { at_us, asked: Instant::now(), answered: Instant::now() }
    }

    /// Clocks whose own one is off by so much, on a ledger whose newest time is this.
    fn clocks(off_us: i64, written_us: Option<i64>) -> (Arc<ManualClock>, Clocks) {
        let own = Arc::new(ManualClock::at(NOW_US + off_us));
        let known = Known { written: written_us.map(heard), ..Known::default() };
        let (max, patience) = (Duration::from_secs(30 * 60), Duration::from_secs(6));
        (own.clone(), Clocks { own, max, patience, known: Mutex::new(known) })
    }

    fn is_off(clocks: &Clocks) -> bool {
        clocks.tell();
        clocks.off().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_evidence_away_goes_by_the_lowest_word() {
        // The own clock, the server's, the newest that is written; all relative to the right time.
        for (own, server, written, lowest) in [
            (0, 0, 0, 0),
            (DAY_US, 0, 0, 0),
            (-DAY_US, 0, 0, -DAY_US),
            (0, DAY_US, 0, 0),
            (0, -DAY_US, 0, -DAY_US),
            (DAY_US, DAY_US, 0, 0),
            (DAY_US, DAY_US, -9 * DAY_US, -9 * DAY_US),
            (0, 0, DAY_US, 0),
        ] {
            let (_, clocks) = clocks(own, Some(NOW_US + written));
            clocks.hear(Some(heard(NOW_US + server)), &[]);
            assert_eq!(clocks.evidence_us() - NOW_US, lowest, "{own} {server} {written}");
            assert_eq!(clocks.asking_us() - NOW_US, own.min(server), "{own} {server}");
        }
        let (_, alone) = clocks(DAY_US, None);
        assert_eq!(alone.asking_us(), NOW_US + DAY_US, "nobody else tells the time");
        let (_, alone) = clocks(DAY_US, Some(NOW_US));
        assert_eq!(alone.asking_us(), NOW_US, "what is written does");
    }

    #[tokio::test(start_paused = true)]
    async fn what_others_said_grows_older_whatever_the_own_clock_does() {
        let (own, clocks) = clocks(0, Some(NOW_US));
        own.set(NOW_US + DAY_US);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(clocks.evidence_us(), NOW_US + MINUTE_US, "no longer than it took");
        assert!(!is_off(&clocks), "nobody says so at a file that has one process");
        own.set(NOW_US - DAY_US);
        assert!(is_off(&clocks), "it is behind what was written before");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_beyond_the_bound_is_off_until_it_is_right() {
        let (own, clocks) = clocks(0, Some(NOW_US));
        for (off_us, expected) in [
            (0, ClockState::Close),
            (4_000_000, ClockState::Close),
            (6_000_000, ClockState::Noticed),
            (4_000_000, ClockState::Noticed),
            (-2_000_000, ClockState::Close),
            (-30 * MINUTE_US, ClockState::Noticed),
        ] {
            own.set(NOW_US + off_us);
            clocks.hear(Some(heard(NOW_US)), &[]);
            clocks.tell();
            assert_eq!(clocks.known().standing, expected, "{off_us}");
        }
        for off_us in [31 * MINUTE_US, -31 * MINUTE_US] {
            own.set(NOW_US + off_us);
            assert!(is_off(&clocks), "{off_us}");
            let says = clocks.off().expect("off").to_string();
            let named =
                ["2023-11-14T22:13:20Z", "PostgreSQL", "31m", "clock_offset_max allows 30m"];
            assert!(named.iter().all(|part| says.contains(part)), "{says}");
        }
        own.set(NOW_US);
        assert!(!is_off(&clocks));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_no_difference_of_clocks() {
        let (own, clocks) = clocks(0, None);
        let asked = Instant::now();
        tokio::time::advance(Duration::from_secs(3_600)).await;
        own.set(NOW_US + 60 * MINUTE_US);
        for told_us in [NOW_US, NOW_US + 60 * MINUTE_US] {
            let server = Heard { at_us: told_us, asked, answered: Instant::now() };
            clocks.hear(Some(server), &[]);
            assert_eq!(clocks.offset_us(), Some(0), "told between question and answer");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn at_a_file_who_lives_has_a_say_and_who_agrees_with_one_is_right() {
        let (dead, ahead, right) = (NodeId::random(), NodeId::random(), NodeId::random());
        let (own, clocks) = clocks(0, Some(NOW_US - DAY_US));
        let poll = async |told: &[(NodeId, i64)], after_us: i64| {
            tokio::time::advance(Duration::from_secs(2)).await;
            own.set(NOW_US + after_us);
            clocks.hear(None, told);
        };
        let (month_us, s) = (32 * DAY_US, 1_000_000);
        let gone = (dead, NOW_US + month_us);
        poll(&[gone, (ahead, NOW_US + month_us)], 2 * s).await;
        assert_eq!(clocks.offset_us(), None, "nobody was heard to tell another time");
        poll(&[gone, (ahead, NOW_US + month_us + 2 * s)], 4 * s).await;
        assert!(is_off(&clocks), "one is there that says another time");
        assert_eq!(clocks.evidence_us(), NOW_US - DAY_US + 4 * s, "it was ahead: no word");
        let ahead = |s_us| (ahead, NOW_US + month_us + s_us);
        poll(&[gone, ahead(4 * s), (right, NOW_US + 4 * s)], 6 * s).await;
        poll(&[gone, ahead(6 * s), (right, NOW_US + 6 * s)], 8 * s).await;
        assert_eq!(clocks.offset_us(), Some(0));
        assert!(!is_off(&clocks), "it agrees with one");
        assert_eq!(clocks.evidence_us(), NOW_US + 6 * s, "what that one said is written");
        poll(&[gone], 10 * s).await;
        assert_eq!(clocks.offset_us(), Some(0), "it may only be late");
        for after in 0..4 {
            poll(&[gone], (12 + 2 * after) * s).await;
        }
        assert_eq!(clocks.offset_us(), None, "nobody is there any more");
        assert!(!is_off(&clocks));
    }
}
