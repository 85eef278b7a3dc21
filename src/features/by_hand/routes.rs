//! `POST /api/v1/document-numbering/numbers/register`: a number that was given by hand.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::answer::RegistrationAnswer;
use super::registering::{RegisterOrder, Registration, register, registered_before};
use crate::features::lifecycle::naming::NumberName;
use crate::features::lifecycle::voiding::check_long_reason;
use crate::features::numbers::request::{self, RegisterRequest};
use crate::web::App;
use crate::web::body::Json;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::problem::Problem;

/// Registers a number that was given by hand. Repeating the call shows the same registration.
#[utoipa::path(
    post, path = "", tag = "numbers",
    request_body = RegisterRequest,
    responses(
        (status = 201, body = RegistrationAnswer, description = "The number is registered"),
        (status = 200, body = RegistrationAnswer, description = "An earlier call registered it"),
    )
)]
pub(crate) async fn register_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(mut order): Json<RegisterRequest>,
) -> Result<Response, Problem> {
    order.must_replace_nothing()?;
    let reason = check_long_reason(&order.reason)?;
    let number = NumberName::of("number", &order.number)?.number;
    let document_id = order.document_id.take();
    let document_id =
        document_id.map(|id| request::check_document_id("document_id", id)).transpose()?;
    let is_as_written = order.as_written;
    let request = order.request(document_id, None, &caller)?;
    let order = RegisterOrder { request, number, reason, is_as_written };
    let (service, asked) = (Arc::clone(&app.service), order.clone());
    let registering = app.note(&caller, move |_| async move { register(&service, asked).await });
    let service = Arc::clone(&app.service);
    let looking =
        app.read(&caller, move |_| async move { registered_before(&service, order).await });
    let noting = app.noted(&caller, registering, |done: &Registration| done.replayed, looking);
    let done = Box::pin(noting).await?;
    let (status, headers) = outcome_of(done.replayed);
    Ok((status, headers, axum::Json(RegistrationAnswer::of(&done))).into_response())
}
