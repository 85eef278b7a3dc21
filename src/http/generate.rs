//! `POST /api/v1/documents/{documentId}/generate-number`: one number for one document.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::App;
use super::answer::{NumberAnswer, written};
use super::body::Json;
use super::gate::Caller;
use super::order::{self, NumberOrder};
use super::problem::{Problem, ProblemBody};
use crate::allocator::KEY_CHARS_MAX;

/// Gives a document its number. Repeating the call gives the same number again.
#[utoipa::path(
    post,
    path = "/api/v1/documents/{documentId}/generate-number",
    tag = "numbers",
    params(
        ("documentId" = String, Path, description = "At most 255 characters, percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = NumberOrder,
    responses(
        (status = 201, body = NumberAnswer, description = "A new number"),
        (status = 200, body = NumberAnswer, description = "The number of an earlier call"),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn generate_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    document_id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    Json(order): Json<NumberOrder>,
) -> Result<Response, Problem> {
    let document_id = order::document_of(document_id)?;
    let key = order::idempotency_key(&headers, KEY_CHARS_MAX)?;
    let request = order.request(Some(document_id), key, &caller)?;
    let issued = app.issue(&caller, request).await?;
    let answer = written(&NumberAnswer::of(&issued))?;
    let (status, headers) = outcome_of(issued.replayed);
    Ok((status, headers, answer).into_response())
}

/// The header that says that an earlier call took what is answered.
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What an answer begins with: its status, and a header where an earlier call took what it shows.
pub(super) fn outcome_of(replayed: bool) -> (StatusCode, HeaderMap) {
    let mut headers = HeaderMap::new();
    if replayed {
        headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    (status_of(replayed), headers)
}

/// A new number is created; an earlier one is only shown again.
pub(super) fn status_of(replayed: bool) -> StatusCode {
    if replayed { StatusCode::OK } else { StatusCode::CREATED }
}
