//! `POST /api/v1/document-numbering/numbers/void` and `…/numbers/correct`: a number in the body,
//! since numbers may hold a slash.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use super::answer::{CorrectAnswer, UnusedAnswer, VoidAnswer, VoidOutcome};
use super::correcting::{CorrectedNumber, CorrectionOrder, correct};
use super::naming::{By, NumberName};
use super::unused::{UnusedNumbers, unused_voided_before, void_unused};
use super::voiding::{VoidNumber, VoidOrder, check_long_reason, void, voided_before};
use crate::web::App;
use crate::web::body::{Json, must_be_storable};
use crate::web::journal_wait::once_journaled;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::problem::{Problem, Slug};

/// A number to be voided.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct VoidRequest {
    /// The number as it was issued; of a range, one of its numbers.
    number: String,
    /// Code of its series, where several numbers have the text.
    #[serde(default)]
    series: Option<String>,
    /// Its project, likewise.
    #[serde(default)]
    project: Option<String>,
    /// Its document, likewise.
    #[serde(default)]
    document_id: Option<String>,
    /// Why, in 10 to 500 characters.
    reason: String,
    /// Whether every number of its range is voided that has neither a document nor a void, at most
    /// 10,000 of them, instead of the number alone.
    #[serde(default)]
    unused: bool,
}

/// Variables of a number to be corrected.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorrectRequest {
    /// The number as it was issued; of a range, one of its numbers.
    number: String,
    /// Code of its series, where several numbers have the text.
    #[serde(default)]
    series: Option<String>,
    /// Its project, likewise.
    #[serde(default)]
    project: Option<String>,
    /// Its document, likewise.
    #[serde(default)]
    document_id: Option<String>,
    /// What its variables should have been: of those on which the number does not depend.
    context: BTreeMap<String, String>,
    /// Why, in 10 to 500 characters.
    reason: String,
}

/// The name of a number from a body.
fn name_of(
    number: &str,
    series: Option<String>,
    project: Option<String>,
    document_id: Option<String>,
) -> Result<NumberName, Problem> {
    let texts = [("series", &series), ("project", &project), ("document_id", &document_id)];
    must_be_storable(&texts)?;
    Ok(NumberName { series, project, document_id, ..NumberName::of("number", number)? })
}

/// Whether the record of a number may be on its way.
fn is_missing(problem: &Problem) -> bool {
    problem.slug() == Slug::NumberNotFound
}

/// The status and the headers of an answer.
fn outcome(replayed: bool) -> (StatusCode, HeaderMap) {
    (StatusCode::OK, outcome_of(replayed).1)
}

/// A caller, through this node: a number that is confirmed is journaled before it is looked for.
fn by(app: &App, caller: &Caller) -> By {
    By::of(caller).through(app.service.context.membership.node())
}

/// Voids a number, or what its range did not use. Its value never returns.
#[utoipa::path(
    post, path = "", tag = "numbers",
    request_body = VoidRequest,
    responses(
        (status = 200, body = VoidOutcome, description = "The number is void, or what is unused"),
    )
)]
pub(crate) async fn void_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<VoidRequest>,
) -> Result<Response, Problem> {
    let VoidRequest { number, series, project, document_id, reason, unused } = order;
    let name = name_of(&number, series, project, document_id)?;
    let reason = check_long_reason(&reason)?;
    let order = VoidOrder { name, reason, by: by(&app, &caller) };
    if unused {
        return void_unused_numbers(&app, &caller, &order).await;
    }
    let catalog = app.service.allocator.catalog();
    // No place is held while its record may be on its way.
    let voiding = once_journaled(is_missing, |try_of| {
        let (catalog, order) = (Arc::clone(&catalog), order.clone());
        app.note(
            &caller,
            move |ledger| async move { void(&ledger, &catalog, &order, try_of).await },
        )
    });
    let (known, again) = (Arc::clone(&catalog), order.clone());
    let looking =
        app.read(&caller, |ledger| async move { voided_before(&ledger, &known, &again).await });
    let noting = app.noted(&caller, voiding, |done: &VoidNumber| done.replayed, looking);
    let done = Box::pin(noting).await?;
    let (status, headers) = outcome(done.replayed);
    Ok((status, headers, axum::Json(VoidAnswer::of(&done))).into_response())
}

/// Voids what a range did not use.
async fn void_unused_numbers(
    app: &App,
    caller: &Caller,
    order: &VoidOrder,
) -> Result<Response, Problem> {
    let catalog = app.service.allocator.catalog();
    let voiding = once_journaled(is_missing, |try_of| {
        let (catalog, order) = (Arc::clone(&catalog), order.clone());
        app.note(caller, move |ledger| async move {
            void_unused(&ledger, &catalog, &order, try_of).await
        })
    });
    let (known, again) = (Arc::clone(&catalog), order.clone());
    let looking = app
        .read(caller, |ledger| async move { unused_voided_before(&ledger, &known, &again).await });
    let noting = app.noted(caller, voiding, UnusedNumbers::is_replayed, looking);
    let done = Box::pin(noting).await?;
    let (status, headers) = outcome(done.is_replayed());
    Ok((status, headers, axum::Json(UnusedAnswer::of(&done))).into_response())
}

/// Corrects variables that a number does not show.
#[utoipa::path(
    post, path = "", tag = "numbers",
    request_body = CorrectRequest,
    responses(
        (status = 200, body = CorrectAnswer, description = "What the variables should have been"),
    )
)]
pub(crate) async fn correct_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(order): Json<CorrectRequest>,
) -> Result<Response, Problem> {
    let CorrectRequest { number, series, project, document_id, context, reason } = order;
    let name = name_of(&number, series, project, document_id)?;
    let reason = check_long_reason(&reason)?;
    let order = CorrectionOrder { name, context, reason, by: by(&app, &caller) };
    let catalog = app.service.allocator.catalog();
    let correcting = once_journaled(is_missing, |try_of| {
        let (catalog, order) = (Arc::clone(&catalog), order.clone());
        app.note(
            &caller,
            move |ledger| async move { correct(&ledger, &catalog, &order, try_of).await },
        )
    });
    // Nothing shows what a correction that a limit refuses would change.
    let looking = async { Ok(None) };
    let noting = app.noted(&caller, correcting, |done: &CorrectedNumber| done.replayed, looking);
    let done = Box::pin(noting).await?;
    let (status, headers) = outcome(done.replayed);
    Ok((status, headers, axum::Json(CorrectAnswer::of(&done))).into_response())
}
