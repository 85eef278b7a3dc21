//! `POST /api/v1/document-numbering/reservations` and what is done with one of them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::acting::{ActError, ActRequest, act, look, must_be_own};
use super::answer::ReservationAnswer;
use super::bounds::{extent_of, read_reason};
use super::handing_back::{HandBackOrder, hand_back, used_of};
use crate::engine::allocator::{KEY_CHARS_MAX, Request};
use crate::features::numbers::request::{self, ReservationRequest};
use crate::ledger::{ActOutcome, ReservationAct};
use crate::web::App;
use crate::web::body::Json;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::problem::{Problem, Slug};

/// A confirmation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmRequest {
    /// The document that the reservation must be for, where the caller wants to be sure.
    #[serde(default)]
    document_id: Option<String>,
}

/// A cancellation.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// Why, at most 500 characters.
    #[serde(default)]
    reason: Option<String>,
}

/// A block that is handed back.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandBackRequest {
    /// The numbers that were used, at most 1,000; all others of the block were not.
    used: Vec<UsedRequest>,
}

/// A number of a block that was used.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsedRequest {
    /// The number.
    pub(crate) number: String,
    /// The document that has it.
    pub(crate) document_id: String,
}

/// Reserves a number for a document, or a block. Repeating the call shows the same reservation.
#[utoipa::path(
    post, path = "", tag = "reservations",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "At most 255 characters"),
    ),
    request_body = ReservationRequest,
    responses(
        (status = 201, body = ReservationAnswer, description = "A new reservation"),
        (status = 200, body = ReservationAnswer,
            description = "That of an earlier call, or the number that the document has"),
    )
)]
pub(crate) async fn create_reservation(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(mut order): Json<ReservationRequest>,
) -> Result<Response, Problem> {
    let key = request::idempotency_key(&headers, KEY_CHARS_MAX)?;
    order.must_replace_nothing()?;
    let document_id = order.document_id.take();
    let document_id =
        document_id.map(|id| request::check_document_id("document_id", id)).transpose()?;
    let bounds = app.service.context.settings.reservations;
    let count = order.count.take();
    let (count, reserve_for) = extent_of(count, order.ttl.take().as_deref(), bounds)?;
    caller.check_count("count", count)?;
    let request = order.request(document_id, key, &caller)?;
    let request = Request { count, reserve_for: Some(reserve_for), ..request };
    let issued = app.issue(&caller, request).await?;
    let (status, headers) = outcome_of(issued.replayed);
    let answer = axum::Json(ReservationAnswer::of_issued(&issued));
    Ok((status, headers, answer).into_response())
}

/// Shows a reservation of the caller, or what became of it.
#[utoipa::path(
    get, path = "", tag = "reservations",
    params(("reservationId" = String, Path, description = "As the reservation was answered")),
    responses((status = 200, body = ReservationAnswer))
)]
pub(crate) async fn show_reservation(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    reservation_id: Result<Path<Uuid>, PathRejection>,
) -> Result<Response, Problem> {
    let id = read_reservation(reservation_id)?;
    let context = Arc::clone(&app.service.context);
    let looking = app.read(&caller, move |_| async move { look(&context, id).await });
    let found = looking.await?;
    let owner = (!caller.sees_everything()).then_some(&*caller.identity.name);
    must_be_own(id, &found, owner).map_err(Problem::from)?;
    let answer = ReservationAnswer::of(&found, false);
    let answer = answer.ok_or_else(|| Problem::from(ActError::Unknown(id)))?;
    Ok(axum::Json(answer).into_response())
}

/// Confirms a reservation: its number is the document's for good.
#[utoipa::path(
    post, path = "", tag = "reservations",
    params(("reservationId" = String, Path, description = "As the reservation was answered")),
    request_body = ConfirmRequest,
    responses((status = 200, body = ReservationAnswer))
)]
pub(crate) async fn confirm_reservation(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    reservation_id: Result<Path<Uuid>, PathRejection>,
    Json(order): Json<ConfirmRequest>,
) -> Result<Response, Problem> {
    let id = read_reservation(reservation_id)?;
    let document_id = order.document_id;
    let document_id =
        document_id.map(|id| request::check_document_id("document_id", id)).transpose()?;
    change(&app, &caller, (id, ReservationAct::Confirm, document_id)).await
}

/// Cancels a reservation: its number comes back, for another document.
#[utoipa::path(
    post, path = "", tag = "reservations",
    params(("reservationId" = String, Path, description = "As the reservation was answered")),
    request_body = CancelRequest,
    responses((status = 200, body = ReservationAnswer))
)]
pub(crate) async fn cancel_reservation(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    reservation_id: Result<Path<Uuid>, PathRejection>,
    Json(CancelRequest { reason }): Json<CancelRequest>,
) -> Result<Response, Problem> {
    let id = read_reservation(reservation_id)?;
    let reason = read_reason(reason.as_deref())?;
    change(&app, &caller, (id, ReservationAct::Cancel { reason }, None)).await
}

/// Hands a block back: the numbers that were used are issued, and all others come back.
#[utoipa::path(
    post, path = "", tag = "reservations",
    params(("reservationId" = String, Path, description = "As the block was answered")),
    request_body = HandBackRequest,
    responses((status = 200, body = ReservationAnswer))
)]
pub(crate) async fn hand_back_reservation(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    reservation_id: Result<Path<Uuid>, PathRejection>,
    Json(order): Json<HandBackRequest>,
) -> Result<Response, Problem> {
    let id = read_reservation(reservation_id)?;
    let used = order.used.into_iter().map(|used| (used.number, used.document_id));
    let order = HandBackOrder {
        id,
        used: used_of(used)?,
        owner: Some(caller.identity.name.to_string()),
        by: caller.user_id.to_string(),
    };
    let (context, catalog) = (Arc::clone(&app.service.context), app.service.allocator.catalog());
    let handing =
        app.note(&caller, move |_| async move { hand_back(&context, &catalog, order).await });
    let done = handing.await;
    count_nothing(&caller, done.as_ref().err());
    let done = done?;
    Ok(axum::Json(ReservationAnswer::of_ended(&done.ended, done.replayed)).into_response())
}

async fn change(
    app: &App,
    caller: &Caller,
    (id, wanted, document_id): (Uuid, ReservationAct, Option<String>),
) -> Result<Response, Problem> {
    let request = ActRequest {
        id,
        act: wanted,
        document_id,
        owner: Some(caller.identity.name.to_string()),
        user_id: caller.user_id.to_string(),
    };
    let context = Arc::clone(&app.service.context);
    let acting = app.note(caller, move |_| async move { act(&context, request).await });
    let acted = acting.await;
    count_nothing(caller, acted.as_ref().err());
    let acted = acted?;
    let replayed = acted.outcome == ActOutcome::Repeated;
    let answer = ReservationAnswer::of(&acted.standing, replayed);
    let answer = answer.ok_or_else(|| Problem::from(ActError::Unknown(id)))?;
    Ok(axum::Json(answer).into_response())
}

/// Has a call not count against limits: the number counted when it was reserved. A guess at an id
/// counts.
fn count_nothing(caller: &Caller, refused: Option<&Problem>) {
    let is_guess = refused.is_some_and(|problem| problem.slug() == Slug::ReservationNotFound);
    if let Some(limited) = caller.limited.as_ref().filter(|_| !is_guess) {
        limited.takes_nothing();
    }
}

/// The reservation that a path names.
fn read_reservation(path: Result<Path<Uuid>, PathRejection>) -> Result<Uuid, Problem> {
    let Path(id) = path.map_err(|refusal| Problem::field("reservationId", refusal.body_text()))?;
    Ok(id)
}
