//! How a value is held to its bounds, and what is said of one that is not within them.
//!
//! Knows no setting: which bounds each has stands in `checks.rs`.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::DurationText;

/// A setting that is refused.
pub(super) struct Wrong {
    pub(super) setting: Cow<'static, str>,
    pub(super) reason: String,
}

/// A value within its bounds, or the setting to blame.
pub(super) type Checked<T> = Result<T, Wrong>;

/// Refuses a setting.
pub(super) fn wrong<T>(setting: impl Into<Cow<'static, str>>, reason: String) -> Checked<T> {
    Err(Wrong { setting: setting.into(), reason })
}

/// Accepts a value within its bounds, both included.
pub(super) fn within<T: PartialOrd + Display>(
    setting: impl Into<Cow<'static, str>>,
    value: T,
    bounds: RangeInclusive<T>,
) -> Checked<T> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let (least, most) = bounds.into_inner();
    wrong(setting, format!("{value} is out of bounds; write {least} to {most}"))
}

/// Accepts a duration within its bounds, both included.
pub(super) fn wait(
    setting: impl Into<Cow<'static, str>>,
    value: DurationText,
    bounds: RangeInclusive<DurationText>,
) -> Checked<Duration> {
    within(setting, value, bounds).map(|value| value.0)
}

pub(super) fn millis(ms: u64) -> DurationText {
    DurationText(Duration::from_millis(ms))
}

pub(super) fn secs(s: u64) -> DurationText {
    DurationText(Duration::from_secs(s))
}
