//! Whether an answer shows what this call did, or what an earlier one did.

use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};

/// The start of an answer: its status, and a header if an earlier call took what it shows.
pub(crate) fn outcome_of(replayed: bool) -> (StatusCode, HeaderMap) {
    let mut headers = HeaderMap::new();
    if replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    (status_of(replayed), headers)
}

/// A new number is 201 Created; an earlier one is only shown again.
pub(crate) fn status_of(replayed: bool) -> StatusCode {
    if replayed { StatusCode::OK } else { StatusCode::CREATED }
}

/// The header for an answer whose numbers an earlier call took.
pub(crate) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
