//! The arithmetic of a limit: the generic cell rate algorithm (ITU-T I.371, annex A) as a virtual
//! schedule. One number is kept for each account: the time by which all that was asked for
//! would have come if it had come evenly.

/// The length of the window in which a quota counts, in microseconds.
pub(super) const WINDOW_US: i64 = 60_000_000;

/// So many numbers or requests a minute, even all of them at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    per_minute: i64,
}

/// The judgement of a limit on a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The schedule with the load; nothing where the load comes too soon.
    pub(super) scheduled_us: Option<i64>,
    /// How many more are allowed now.
    pub(super) remaining: i64,
    /// Until what was refused would be admitted; for more than a window has, never.
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

    /// The time between two that come evenly.
    const fn spacing_us(self) -> i64 {
        WINDOW_US / self.per_minute
    }

    /// How far so many move the schedule.
    pub(super) fn cost_us(self, count: u64) -> i64 {
        i64::try_from(count).unwrap_or(i64::MAX).saturating_mul(self.spacing_us())
    }

    /// Judges a load of `count` against the schedule at `now_us`; a load of zero shows the state of
    /// the schedule.
    pub(super) fn judge(self, scheduled_us: i64, now_us: i64, count: u64) -> Verdict {
        // A clock that was set back delays a caller by one window at most.
        let begun = scheduled_us.clamp(now_us, now_us.saturating_add(2 * WINDOW_US));
        let cost_us = self.cost_us(count);
        let next = begun.saturating_add(cost_us);
        let ahead = next.saturating_sub(now_us);
        let left = |ahead_us: i64| (WINDOW_US - ahead_us).max(0) / self.spacing_us();
        if count > 0 && ahead > WINDOW_US {
            let is_never = cost_us > WINDOW_US;
            let retry_after_us = if is_never { i64::MAX } else { ahead - WINDOW_US };
            let reset_us = begun - now_us;
            return Verdict {
                scheduled_us: None,
                remaining: left(reset_us),
                retry_after_us,
                reset_us,
            };
        }
        Verdict {
            scheduled_us: Some(next),
            remaining: left(ahead),
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
            let verdict = rate.judge(scheduled, now, 1);
            assert_eq!(verdict.remaining, remaining);
            scheduled = verdict.scheduled_us.expect("within the quota");
        }
        let refused = rate.judge(scheduled, now, 1);
        assert_eq!((refused.scheduled_us, refused.retry_after_us), (None, 6_000_000));
        assert_eq!(rate.judge(scheduled, now + 5_999_999, 1).scheduled_us, None);
        assert!(rate.judge(scheduled, now + 6_000_000, 1).scheduled_us.is_some());
        assert_eq!(rate.judge(scheduled, now + WINDOW_US, 1).remaining, 9);
    }

    #[test]
    fn many_at_once_cost_as_much_as_one_by_one_and_more_than_a_window_has_never_come() {
        let rate = Rate::per_minute(10);
        let (mut one_by_one, now) = (0, 1_000_000_000);
        for _ in 0..7 {
            one_by_one = rate.judge(one_by_one, now, 1).scheduled_us.expect("within the quota");
        }
        let at_once = rate.judge(0, now, 7);
        assert_eq!((at_once.scheduled_us, at_once.remaining), (Some(one_by_one), 3));
        let refused = rate.judge(one_by_one, now, 4);
        assert_eq!((refused.scheduled_us, refused.remaining), (None, 3));
        assert_eq!(refused.retry_after_us, 6_000_000);
        assert!(rate.judge(one_by_one, now + 6_000_000, 4).scheduled_us.is_some());
        assert_eq!(rate.judge(0, now, 11).retry_after_us, i64::MAX);
        assert_eq!(rate.judge(0, now, u64::MAX).scheduled_us, None);
        let looked = rate.judge(one_by_one, now, 0);
        assert_eq!((looked.scheduled_us, looked.remaining), (Some(one_by_one), 3));
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nobody_out_for_longer_than_two_windows() {
        let rate = Rate::per_minute(1);
        let refused = rate.judge(i64::MAX, 0, 1);
        assert_eq!(refused.scheduled_us, None);
        assert!(refused.retry_after_us <= 2 * WINDOW_US, "{refused:?}");
    }
}
