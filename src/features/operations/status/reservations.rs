//! What `status` finds of reservations: how many are live, and for how long the oldest wait.

use std::time::Duration;

use serde::Serialize;

use super::page::{Mood, PageLine};
use crate::config::DurationText;
use crate::ledger::ReservationCounts;

/// From this age on a confirmed one that is not journaled is reported, in milliseconds; the alert
/// has the same limit.
const CONFIRMED_MS_MAX: u64 = 60_000;

/// The same of one that is held although its time is over.
const OVER_MS_MAX: u64 = 900_000;

/// Live reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct ReservationsAnswer {
    /// Those that wait for their callers, whether or not their time is over.
    pub(super) reserved: u64,
    /// Confirmed ones that are not in the journal yet.
    pub(super) confirmed: u64,
    /// Cancelled ones that have not ended yet.
    pub(super) cancelled: u64,
    /// For how long the oldest confirmed one waits for the journal; 0: none does.
    pub(super) confirmed_age_ms: u64,
    /// For how long the time of the oldest is over that is still held; 0: of none.
    pub(super) over_age_ms: u64,
}

impl ReservationsAnswer {
    /// The answer for what was counted.
    pub(super) fn of(counts: ReservationCounts) -> Self {
        let ReservationCounts { reserved, confirmed, cancelled, confirmed_for_us, over_for_us } =
            counts;
        let millis = |us: i64| u64::try_from(us / 1_000).unwrap_or(0);
        ReservationsAnswer {
            reserved,
            confirmed,
            cancelled,
            confirmed_age_ms: millis(confirmed_for_us),
            over_age_ms: millis(over_for_us),
        }
    }

    /// Whether confirmed numbers do not come into the journal.
    pub(super) fn is_late(self) -> bool {
        self.confirmed_age_ms >= CONFIRMED_MS_MAX
    }

    /// Whether a transaction of a caller holds one long after its time.
    pub(super) fn is_held(self) -> bool {
        self.over_age_ms >= OVER_MS_MAX
    }

    /// The line of the page, where any is live.
    pub(super) fn line(self) -> Option<PageLine> {
        let ReservationsAnswer { reserved, confirmed, cancelled, .. } = self;
        if reserved + confirmed + cancelled == 0 {
            return None;
        }
        let ages = [
            (self.confirmed_age_ms, "the oldest confirmed one waits for the journal for"),
            (self.over_age_ms, "the oldest is held although its time is over for"),
        ];
        let ages = ages.into_iter().filter(|(age_ms, _)| *age_ms > 0);
        let ages = ages.map(|(age_ms, what)| format!("; {what} {}", length(age_ms)));
        let text = format!(
            "reservations: reserved {reserved}, confirmed {confirmed}, cancelled {cancelled}{}",
            ages.collect::<String>()
        );
        let mood = if self.is_late() || self.is_held() { Mood::Warning } else { Mood::Plain };
        Some(PageLine { text, mood })
    }
}

/// A length of time in whole seconds, or in milliseconds where it is shorter than one.
fn length(age_ms: u64) -> DurationText {
    let whole = if age_ms < 1_000 { age_ms } else { age_ms / 1_000 * 1_000 };
    DurationText(Duration::from_millis(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_counts_by_state_and_says_what_waits_too_long() {
        let counts = ReservationCounts { reserved: 3, ..ReservationCounts::default() };
        let line = ReservationsAnswer::of(counts).line().expect("a line");
        assert_eq!(line.text, "reservations: reserved 3, confirmed 0, cancelled 0");
        assert_eq!(line.mood, Mood::Plain);
        let late = ReservationCounts { confirmed: 1, confirmed_for_us: 61_500_000, ..counts };
        let line = ReservationsAnswer::of(late).line().expect("a line");
        assert!(line.text.ends_with("waits for the journal for 61s"), "{}", line.text);
        assert_eq!(line.mood, Mood::Warning);
        let held = ReservationCounts { over_for_us: 1_200_000_000, ..counts };
        let line = ReservationsAnswer::of(held).line().expect("a line");
        assert!(line.text.ends_with("its time is over for 20m"), "{}", line.text);
        assert_eq!(line.mood, Mood::Warning);
        assert_eq!(ReservationsAnswer::default().line(), None);
    }
}
