//! `POST /api/v1/document-numbering/preview`: what a number would look like. Takes nothing.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use crate::features::numbers::answer::PreviewAnswer;
use crate::features::numbers::request::NumberRequest;
use crate::web::App;
use crate::web::body::Json;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// Shows the number that the next call would get.
#[utoipa::path(
    post, path = "", tag = "numbers",
    request_body = NumberRequest,
    responses(
        (status = 200, body = PreviewAnswer, description = "The number, not taken"),
    )
)]
pub(crate) async fn preview_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<NumberRequest>,
) -> Result<Response, Problem> {
    order.must_replace_nothing()?;
    let request = order.request(None, None, &caller)?;
    let allocator = app.service.allocator.clone();
    let looking = app.read(&caller, |_| async move { allocator.preview(request).await });
    let preview = looking.await?;
    Ok(axum::Json(PreviewAnswer::of(&preview)).into_response())
}
