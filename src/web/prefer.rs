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

/// Whether a call can be told how long to wait: it takes numbers, or looks something up.
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
mod tests {
    use super::*;
    use crate::routes::TABLE;

    const GENERATE: &str = "/api/v1/documents/{documentId}/generate-number";
    const BATCHES: &str = "/api/v1/document-numbering/batches";

    fn seconds(sent: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for value in sent {
            // As one byte each: a value need not be text.
            let byte = |sign: char| u8::try_from(u32::from(sign)).expect("one byte");
            let bytes: Vec<u8> = value.chars().map(byte).collect();
            headers.append(PREFER, HeaderValue::from_bytes(&bytes).expect("a header"));
        }
        wait_s(&headers)
    }

    #[test]
    fn the_first_wait_of_all_headers_counts_and_what_is_none_is_ignored() {
        for (sent, wanted) in [
            (&["wait=2"][..], Some(2)),
            (&["WAIT = \"10\" ; foo=\"a,wait=1\", wait=3"][..], Some(10)),
            (&["respond-async, handling=\"a\\\", wait=1\"; x", "wait=4"][..], Some(4)),
            (&["", ",,", "wait=5"][..], Some(5)),
            (&["wait=007"][..], Some(7)),
            (&["\u{ff}, x=\u{80}, wait=6"][..], Some(6)),
            (&["wait=\u{ff}", "wait=2"][..], None),
            (&["wait=99999999999999999999999"][..], Some(u64::MAX / 1_000_000_000)),
            (&["wait"][..], None),
            (&["wait="][..], None),
            (&["wait=0"][..], None),
            (&["wait=-1"][..], None),
            (&["wait=1.5"][..], None),
            (&["wait=2s", "wait=2"][..], None),
            (&["waits=2"][..], None),
            (&["x=\"wait=2"][..], None),
            (&[][..], None),
        ] {
            assert_eq!(seconds(sent), wanted, "{sent:?}");
        }
    }

    #[test]
    fn a_wait_is_no_longer_than_the_limit_and_says_what_it_is() {
        let headers = HeaderMap::from_iter([(PREFER, HeaderValue::from_static("wait=60"))]);
        let began = Instant::now();
        let of = |method: Method, path| {
            let (limit, route) = (Duration::from_secs(40), TABLE.find(path));
            Wait::of(&headers, (&method, route), began, limit).map(|wait| (wait.by, wait.applied))
        };
        let applied = (began + Duration::from_secs(40), HeaderValue::from_static("wait=40"));
        for taking in [GENERATE, BATCHES] {
            assert_eq!(of(Method::POST, taking), Some(applied.clone()));
        }
        assert_eq!(of(Method::GET, "/api/v1/document-numbering/numbers"), Some(applied));
        assert_eq!(of(Method::GET, "/readyz"), None);
        assert_eq!(of(Method::POST, "/api/v1/document-numbering/configs"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_up_ends_with_its_wait_and_a_call_that_takes_numbers_does_not() {
        let headers = HeaderMap::from_iter([(PREFER, HeaderValue::from_static("wait=1"))]);
        let numbers = "/api/v1/document-numbering/numbers";
        for (method, path, status) in [(Method::GET, numbers, 503), (Method::POST, BATCHES, 200)] {
            let (limit, asked) = (Duration::from_secs(40), (&method, TABLE.find(path)));
            let wait = Wait::of(&headers, asked, Instant::now(), limit).expect("a wait");
            let answering = async {
                tokio::time::sleep(Duration::from_secs(2)).await;
                "late".into_response()
            };
            assert_eq!(wait.bound(answering).await.status(), status, "{path}");
        }
    }
}
