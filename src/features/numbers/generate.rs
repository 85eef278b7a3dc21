//! `POST /api/v1/documents/{documentId}/generate-number`: one number for one document.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};

use crate::engine::allocator::KEY_CHARS_MAX;
use crate::features::lifecycle::standing::status_of_earlier;
use crate::features::numbers::answer::{EarlierNumber, NumberAnswer, written};
use crate::features::numbers::replacing::issue_replacing;
use crate::features::numbers::request::{self, NumberRequest};
use crate::web::App;
use crate::web::body::Json;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::problem::Problem;

/// Gives a document its number. Repeating the call gives the same number again.
#[utoipa::path(
    post, path = "", tag = "numbers",
    params(
        ("documentId" = String, Path, description = "At most 255 characters, percent-encoded"),
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = NumberRequest,
    responses(
        (status = 201, body = NumberAnswer, description = "A new number"),
        (status = 200, body = EarlierNumber, description = "The number of an earlier call"),
    )
)]
pub(crate) async fn generate_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    document_id: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    Json(mut order): Json<NumberRequest>,
) -> Result<Response, Problem> {
    let document_id = request::document_of(document_id)?;
    let key = request::idempotency_key(&headers, KEY_CHARS_MAX)?;
    let replaced = order.replaces.take();
    let request = order.request(Some(document_id), key, &caller)?;
    let issued = match replaced {
        None => app.issue(&caller, request).await?,
        // Boxed: the most frequent call would carry room for it.
        Some(number) => Box::pin(issue_replacing(&app, &caller, request, &number)).await?,
    };
    let number = NumberAnswer::of(&issued);
    // A number that is taken now is not asked about.
    let answer = if issued.replayed {
        let status = Box::pin(status_of_earlier(&app, &caller, &issued.entry)).await;
        written(&EarlierNumber { number, status })?
    } else {
        written(&number)?
    };
    let (status, headers) = outcome_of(issued.replayed);
    Ok((status, headers, answer).into_response())
}
