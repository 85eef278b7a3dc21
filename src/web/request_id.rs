//! The id of a request: read from its head, or made here.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use uuid::Uuid;

use crate::clock::SharedClock;

/// The header that carries a request id, in and out.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is accepted from a caller.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// The caller's request id if it is valid, else a new one.
pub(crate) fn request_id(headers: &HeaderMap, clock: &SharedClock) -> Arc<str> {
    let sent = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    match sent.filter(|id| is_request_id(id)) {
        Some(id) => id.into(),
        None => {
            let now_us = u64::try_from(clock.now_us()).unwrap_or_default();
            let nanos = u32::try_from(now_us % 1_000_000 * 1_000).unwrap_or_default();
            let time = uuid::Timestamp::from_unix(uuid::NoContext, now_us / 1_000_000, nanos);
            let mut text = Uuid::encode_buffer();
            (&*Uuid::new_v7(time).hyphenated().encode_lower(&mut text)).into()
        }
    }
}

/// Whether a caller's request id may go into headers and log lines.
fn is_request_id(id: &str) -> bool {
    (1..=REQUEST_ID_CHARS_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
}
