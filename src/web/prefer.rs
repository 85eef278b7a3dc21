//! How long a caller waits: `Prefer: wait=2` (RFC 7240), in one place for both ways of a call.
//!
//! It bounds the wait of calls that take numbers and of look-ups, and no other call. Work continues
//! after its wait has ended: the problem says whether a number may have been taken, and a retry
//! with the same document or key finds it. A malformed or unknown preference is ignored, as the RFC
//! requires.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, timeout_at};

use super::header_lists::split;
use super::problem::{Problem, Slug};
use super::route::{Route, Way};

/// The preferences of a caller.
pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");
/// How the preference was applied.
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// How long a caller waits for the answer to a call.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    /// Until when.
    pub(crate) by: Instant,
    /// Whether the whole call is bounded by it here, instead of where it waits.
    is_look_up: bool,
    /// The header of the answer about it.
    pub(crate) applied: HeaderValue,
}

/// Whether a call can have a wait: it takes numbers, or looks something up.
pub(crate) fn can_wait(method: &Method, route: &Route) -> bool {
    match *method {
        Method::GET | Method::HEAD => !route.is_open(),
        _ => route.operation(method).is_some_and(|operation| operation.way == Way::Fast),
    }
}

impl Wait {
    /// The wait that headers request for a call that began then, no longer than `limit`.
    pub(crate) fn of(
        headers: &HeaderMap,
        (method, route): (&Method, Option<&Route>),
        began: Instant,
        limit: Duration,
    ) -> Option<Self> {
        if !headers.contains_key(PREFER) || !route.is_some_and(|route| can_wait(method, route)) {
            return None;
        }
        let wanted_s = wait_s(headers)?;
        let wait = Duration::from_secs(wanted_s).min(limit);
        let applied = format!("wait={}", wait.as_secs().max(1));
        Some(Wait {
            by: began + wait,
            is_look_up: *method != Method::POST,
            applied: HeaderValue::try_from(applied).expect("digits are a header's text"),
        })
    }

    /// The answer of a call, or the problem of one that took too long to look something up. Its
    /// statements continue, as if a client leaves.
    pub(crate) async fn bound(&self, answering: impl Future<Output = Response>) -> Response {
        if !self.is_look_up {
            return answering.await;
        }
        let answered = Box::pin(timeout_at(self.by, answering)).await;
        answered.unwrap_or_else(|_| overdue().into_response())
    }
}

/// The problem of a look-up that took longer than its caller waits.
pub(crate) fn overdue() -> Problem {
    let detail = "the look-up takes longer than `Prefer: wait` allows; ask again, or wait longer";
    Problem::new(Slug::LockTimeout, detail).retry_soon()
}

/// The seconds of the first preference `wait`, if it is valid: a whole number above zero.
fn wait_s(headers: &HeaderMap) -> Option<u64> {
    let sent = headers.get_all(PREFER).iter();
    let preferences = sent.flat_map(|value| split(value.as_bytes(), b','));
    // The first instance of a preference counts, even if it is invalid.
    let wait = preferences.map(named).find(|(name, _)| name.eq_ignore_ascii_case(b"wait"));
    let value = std::str::from_utf8(wait?.1?).ok()?;
    let is_whole = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // A value too large for a number is longer than any wait here.
    let seconds = is_whole.then(|| value.parse().unwrap_or(u64::MAX / 1_000_000_000));
    seconds.filter(|seconds| *seconds > 0)
}

/// Name and value of a preference, without its parameters.
fn named(preference: &[u8]) -> (&[u8], Option<&[u8]>) {
    let preference = split(preference, b';').next().unwrap_or_default();
    match preference.iter().position(|byte| *byte == b'=') {
        None => (preference.trim_ascii(), None),
        Some(at) => {
            let value = preference[at + 1..].trim_ascii();
            let quoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
            (preference[..at].trim_ascii(), Some(quoted.unwrap_or(value)))
        }
    }
}

#[cfg(test)]
mod tests;
