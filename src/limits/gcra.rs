//! The arithmetic of a limit: the generic cell rate algorithm (ITU-T I.371, annex A) as a virtual
//! schedule. One number is kept for each who is limited: the time by which all that was asked for
//! would have come if it had come evenly.

/// The length of the window in which a quota counts, in microseconds.
pub(super) const WINDOW_US: i64 = 60_000_000;

/// So many requests a minute, all of them at once if one likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    per_minute: i64,
}

/// What a limit says to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Where the schedule stands with this request; nothing where it comes too soon.
    pub(super) scheduled_us: Option<i64>,
    /// Requests that might follow at once.
    pub(super) remaining: i64,
    /// Until one that was refused would be admitted.
    pub(super) retry_after_us: i64,
    /// Until the whole quota is there again.
    pub(super) reset_us: i64,
}

impl Rate {
    /// A rate; more than one each microsecond is none.
    pub(super) fn per_minute(quota: u64) -> Self {
        Rate { per_minute: i64::try_from(quota).unwrap_or(WINDOW_US).clamp(1, WINDOW_US) }
    }

    /// The quota of a window.
    pub(super) const fn quota(self) -> i64 {
        self.per_minute
    }

    /// The time between two requests that come evenly.
    pub(super) const fn spacing_us(self) -> i64 {
        WINDOW_US / self.per_minute
    }

    /// Judges a request that comes now, where the schedule stands there.
    pub(super) fn judge(self, scheduled_us: i64, now_us: i64) -> Verdict {
        // A clock that was set back owes nobody more than a window.
        let begun = scheduled_us.clamp(now_us, now_us.saturating_add(2 * WINDOW_US));
        let next = begun.saturating_add(self.spacing_us());
        let ahead = next - now_us;
        if ahead > WINDOW_US {
            let (remaining, reset_us) = (0, begun - now_us);
            let retry_after_us = ahead - WINDOW_US;
            return Verdict { scheduled_us: None, remaining, retry_after_us, reset_us };
        }
        Verdict {
            scheduled_us: Some(next),
            remaining: (WINDOW_US - ahead) / self.spacing_us(),
            retry_after_us: 0,
            reset_us: ahead,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_there_at_once_and_comes_back_evenly() {
        let rate = Rate::per_minute(10);
        let (mut scheduled, now) = (0, 1_000_000_000);
        for remaining in (0..10).rev() {
            let verdict = rate.judge(scheduled, now);
            assert_eq!(verdict.remaining, remaining);
            scheduled = verdict.scheduled_us.expect("within the quota");
        }
        let refused = rate.judge(scheduled, now);
        assert_eq!((refused.scheduled_us, refused.retry_after_us), (None, 6_000_000));
        assert_eq!(rate.judge(scheduled, now + 5_999_999).scheduled_us, None);
        assert!(rate.judge(scheduled, now + 6_000_000).scheduled_us.is_some());
        assert_eq!(rate.judge(scheduled, now + WINDOW_US).remaining, 9);
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nobody_out_for_longer_than_two_windows() {
        let rate = Rate::per_minute(1);
        let refused = rate.judge(i64::MAX, 0);
        assert_eq!(refused.scheduled_us, None);
        assert!(refused.retry_after_us <= 2 * WINDOW_US, "{refused:?}");
    }
}
