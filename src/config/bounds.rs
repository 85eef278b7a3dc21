//! The check of a value against its bounds, and the message about one outside them.
//!
//! Knows no setting: the declaration of each has its bounds.

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
    setting: impl FnOnce() -> String,
    value: &T,
    bounds: &RangeInclusive<T>,
) -> Checked<()> {
    if bounds.contains(value) {
        return Ok(());
    }
    let (least, most) = (bounds.start(), bounds.end());
    wrong(setting(), format!("{value} is out of bounds; write {least} to {most}"))
}

pub(super) fn millis(ms: u64) -> DurationText {
    DurationText(Duration::from_millis(ms))
}

pub(super) fn secs(s: u64) -> DurationText {
    DurationText(Duration::from_secs(s))
}

pub(super) fn days(days: u64) -> DurationText {
    secs(days * 86_400)
}
