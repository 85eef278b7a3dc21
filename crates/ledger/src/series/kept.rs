//! What the last look found of the series whose rows stay in the journal, and when another one is
//! due. Owns no statement, and compares no texts.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

/// Least time between a look that failed and the next one of the same versions.
const FAILED_LOOK_PERIOD: Duration = Duration::from_secs(10);

/// What a look depends on: the newest version and the newest change of reference data, each with
/// its time. The id of one that was removed, or that a restored ledger forgot, may be another's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptStamp {
    /// The newest version.
    pub(crate) version: i64,
    /// When it was saved.
    pub(crate) saved_at_us: i64,
    /// The newest change of reference data.
    pub(crate) reference: i64,
    /// When it was made.
    pub(crate) changed_at_us: i64,
}

/// Series whose rows stay in the journal, as of a stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptSeries {
    /// Nothing was saved later.
    pub(crate) stamp: KeptStamp,
    /// Their ids.
    pub(crate) ids: Vec<i64>,
}

/// What is known of the series that reserve nothing: their rows stay in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreserved {
    /// Their ids.
    Ids(Vec<i64>),
    /// They could not be found, and why.
    Failed(String),
    /// Series or reference data are being saved, or were since the last look.
    Changing,
}

/// A look that found nothing out.
#[derive(Debug)]
struct FailedLook {
    stamp: KeptStamp,
    at: Instant,
    why: String,
}

#[derive(Debug, Default)]
struct State {
    last: Option<KeptSeries>,
    failed: Option<FailedLook>,
    /// Whether a transaction has seen something newer than the last look.
    is_outdated: bool,
    /// The look by which an archive began to choose rows.
    chosen: Option<KeptStamp>,
}

/// The looks of one process.
#[derive(Debug, Default)]
pub(crate) struct KeptLooks {
    state: Mutex<State>,
    /// Held by who looks for reservations: one at a time, and the others take what it found.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

impl KeptLooks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    /// What the last look of these versions and reference data found; `None` where there was none.
    pub(crate) fn of(&self, stamp: KeptStamp) -> Option<Unreserved> {
        let state = self.state();
        if let Some(last) = state.last.as_ref().filter(|last| last.stamp == stamp) {
            return Some(Unreserved::Ids(last.ids.clone()));
        }
        let failed = state.failed.as_ref().filter(|failed| failed.stamp == stamp);
        failed.map(|failed| Unreserved::Failed(failed.why.clone()))
    }

    /// Notes what a look found.
    pub(crate) fn found(&self, kept: KeptSeries) {
        let mut state = self.state();
        (state.last, state.failed, state.is_outdated) = (Some(kept), None, false);
    }

    /// Notes that a look failed.
    pub(crate) fn failed(&self, stamp: KeptStamp, why: String) {
        let mut state = self.state();
        let at = Instant::now();
        (state.failed, state.is_outdated) = (Some(FailedLook { stamp, at, why }), false);
    }

    /// Notes that the last look is of earlier versions or reference data.
    pub(crate) fn outdate(&self) {
        self.state().is_outdated = true;
    }

    /// Whether another look is due, where a version and a change of reference data are known that
    /// it must have seen.
    pub(crate) fn is_due(&self, (version, reference): (i64, i64)) -> bool {
        let state = self.state();
        let is_before = |stamp: KeptStamp| stamp.version < version || stamp.reference < reference;
        if state.is_outdated {
            return true;
        }
        match (&state.failed, &state.last) {
            (Some(failed), _) => {
                is_before(failed.stamp) || failed.at.elapsed() >= FAILED_LOOK_PERIOD
            }
            (None, Some(last)) => is_before(last.stamp),
            (None, None) => true,
        }
    }

    /// Notes by which look an archive chooses rows; of several the one with which it began.
    pub(crate) fn choose(&self, stamp: KeptStamp, is_first: bool) {
        let mut state = self.state();
        if is_first || state.chosen.is_none() {
            state.chosen = Some(stamp);
        }
    }

    /// The look by which rows of an archive were chosen.
    pub(crate) fn chosen(&self) -> Option<KeptStamp> {
        self.state().chosen
    }

    /// The rows that were chosen are not archived.
    pub(crate) fn forget_chosen(&self) {
        self.state().chosen = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: KeptStamp =
        KeptStamp { version: 3, saved_at_us: 30, reference: 2, changed_at_us: 20 };

    #[tokio::test(start_paused = true)]
    async fn a_look_is_due_where_something_is_newer() {
        let looks = KeptLooks::default();
        assert!(looks.is_due((0, 0)), "there was none");
        looks.found(KeptSeries { stamp: STAMP, ids: vec![7] });
        assert_eq!(looks.of(STAMP), Some(Unreserved::Ids(vec![7])));
        assert!(!looks.is_due((3, 2)));
        assert!(looks.is_due((4, 2)) && looks.is_due((3, 3)));
        let changed = KeptStamp { changed_at_us: 21, ..STAMP };
        assert_eq!(looks.of(changed), None, "reference data of another time");
        looks.outdate();
        assert!(looks.is_due((3, 2)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_failed_is_repeated_after_its_period_or_where_something_is_newer() {
        let looks = KeptLooks::default();
        looks.failed(STAMP, "why".to_owned());
        assert_eq!(looks.of(STAMP), Some(Unreserved::Failed("why".to_owned())));
        assert!(!looks.is_due((3, 2)));
        assert!(looks.is_due((4, 2)));
        tokio::time::advance(FAILED_LOOK_PERIOD).await;
        assert!(looks.is_due((3, 2)));
        looks.found(KeptSeries { stamp: STAMP, ids: Vec::new() });
        assert!(!looks.is_due((3, 2)));
    }
}
