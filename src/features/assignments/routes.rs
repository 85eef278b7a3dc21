//! `POST /api/v1/document-numbering/numbers/assign`: a document on one number of a range.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::AssignmentAnswer;
use super::assigning::{AssignOrder, Assignment, assign, assigned_before};
use crate::features::lifecycle::naming::{By, NumberName};
use crate::features::numbers::request;
use crate::web::App;
use crate::web::body::{Json, must_be_storable};
use crate::web::journal_wait::once_journaled;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::problem::{Problem, Slug};
use crate::web::reason::check_reason;

/// A number of a range, and its document.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AssignRequest {
    /// The number: one of a range that was taken for no document.
    number: String,
    /// The document that has it from now on.
    document_id: String,
    /// Code of its series, where several numbers have the text.
    #[serde(default)]
    series: Option<String>,
    /// Its project, likewise.
    #[serde(default)]
    project: Option<String>,
    /// Why, at most 500 characters.
    #[serde(default)]
    reason: Option<String>,
}

/// Whether the record of the range may be on its way.
fn is_missing(problem: &Problem) -> bool {
    problem.slug() == Slug::NumberNotFound
}

/// Assigns a number of a range to a document. Repeating the call shows the same assignment.
#[utoipa::path(
    post, path = "", tag = "numbers",
    request_body = AssignRequest,
    responses(
        (status = 201, body = AssignmentAnswer, description = "The number is the document's"),
        (status = 200, body = AssignmentAnswer, description = "An earlier call assigned it"),
    )
)]
pub(crate) async fn assign_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<AssignRequest>,
) -> Result<Response, Problem> {
    let AssignRequest { number, document_id, series, project, reason } = order;
    must_be_storable(&[("series", &series), ("project", &project)])?;
    let name = NumberName { series, project, ..NumberName::of("number", &number)? };
    let document_id = request::check_document_id("document_id", document_id)?;
    let reason = reason.as_deref().map(check_reason).transpose()?;
    let by = By::of(&caller).through(app.service.context.membership.node());
    let order = AssignOrder { name, document_id, reason, by };
    // No place is held while its record may be on its way.
    let assigning = once_journaled(is_missing, |try_of| {
        let (service, order) = (Arc::clone(&app.service), order.clone());
        app.note(&caller, move |_| async move { assign(&service, &order, try_of).await })
    });
    let (service, again) = (Arc::clone(&app.service), order.clone());
    let looking = app.read(&caller, |_| async move { assigned_before(&service, &again).await });
    let noting = app.noted(&caller, assigning, |done: &Assignment| done.replayed, looking);
    let done = Box::pin(noting).await?;
    let (status, headers) = outcome_of(done.replayed);
    Ok((status, headers, axum::Json(AssignmentAnswer::of(&done))).into_response())
}
