//! Arithmetic on the values that a counter can take: `base + step`, `base + 2 * step`, …
//! Pure; saturates instead of overflowing, always towards fewer numbers.

/// The ceiling that leaves `headroom` values above `base`, but nothing past `max`; at least `base`.
pub(super) fn ceiling(base: i64, step: i64, headroom: u64, max: u64) -> i64 {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let fitting = max.saturating_sub(base).max(0) / step;
    let headroom = i64::try_from(headroom).unwrap_or(i64::MAX).min(fitting);
    // `headroom * step` is at most `max - base`: it cannot overflow.
    base + headroom * step
}

/// The values that follow `base`: first and last of `count`, or `None` past `max`.
pub(super) fn next(base: i64, step: i64, count: u64, max: u64) -> Option<(i64, i64)> {
    let count = i64::try_from(count).ok()?;
    let last = step.checked_mul(count)?.checked_add(base)?;
    (last <= i64::try_from(max).unwrap_or(i64::MAX)).then_some((base + step, last))
}

/// How many values follow `base` up to `max`.
pub(super) fn left(base: i64, step: i64, max: u64) -> u64 {
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    (max.saturating_sub(base).max(0) / step.max(1)).unsigned_abs()
}

/// What is left of the run `first..=last` on `step` without `taken_first..=taken_last`: up to two
/// runs.
pub(super) fn without(
    (first, last, step): (i64, i64, i64),
    (taken_first, taken_last): (i64, i64),
) -> Vec<(i64, i64)> {
    let mut left = Vec::with_capacity(2);
    if taken_first > first {
        let below = (taken_first - 1).min(last);
        left.push((first, first + (below - first) / step * step));
    }
    if taken_last < last {
        let from = (taken_last + 1).max(first);
        // Up to the next value of the progression.
        let above = first + (from - first + step - 1) / step * step;
        if above <= last {
            left.push((above, last));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_stays_on_the_progression_and_below_the_maximum() {
        assert_eq!(ceiling(0, 1, 100, 999), 100);
        assert_eq!(ceiling(990, 1, 100, 999), 999);
        assert_eq!(ceiling(-4, 5, 3, 999), 11);
        assert_eq!(ceiling(1, 5, 1_000, 10), 6, "the largest value of the progression up to 10");
        assert_eq!(ceiling(20, 5, 10, 10), 20, "never below the base");
        assert_eq!(ceiling(0, 1, u64::MAX, u64::MAX), i64::MAX);
    }

    #[test]
    fn values_past_the_maximum_are_not_taken() {
        assert_eq!(next(0, 1, 1, 999), Some((1, 1)));
        assert_eq!(next(-4, 5, 3, 11), Some((1, 11)));
        assert_eq!(next(-4, 5, 4, 11), None);
        assert_eq!(next(i64::MAX - 1, 5, 1, u64::MAX), None);
        assert_eq!(next(0, 1, u64::MAX, u64::MAX), None);
    }

    #[test]
    fn a_run_loses_only_what_was_taken() {
        assert_eq!(without((1, 10, 1), (4, 6)), [(1, 3), (7, 10)]);
        assert_eq!(without((1, 10, 1), (1, 10)), []);
        assert_eq!(without((1, 10, 1), (0, 3)), [(4, 10)]);
        assert_eq!(without((1, 10, 1), (9, 12)), [(1, 8)]);
        assert_eq!(without((5, 25, 5), (10, 10)), [(5, 5), (15, 25)]);
        assert_eq!(without((5, 25, 5), (25, 25)), [(5, 20)]);
    }
}
