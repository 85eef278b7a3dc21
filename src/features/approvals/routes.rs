//! `POST …/configs/{configId}/reset-counter`, `…/reset-chronology`, and
//! `/api/v1/document-numbering/change-requests` below them: changes that two people answer for.
//!
//! Checks what the ledger does not know, the last value of a serial and its step, when a change is
//! requested and again when it is approved.

mod answer;

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use numbering::{Serial, SeriesDefinition};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::features::approvals::bounds::{must_be_within, serial_in};
use crate::features::approvals::making::NotApproved;
use crate::ledger::{ChangeDecision, Counter, NewChange, WantedChange};
use crate::web::App;
use crate::web::body::read_id;
use crate::web::body::{Json, QueryOf};
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::{Problem, Slug};
use crate::web::reason::ReasonRequest;
use crate::web::reason::check_reason;
use answer::{ChangeAnswer, ChangeList};

/// Fewest characters of the reason for a change of a counter.
const REASON_CHARS_MIN: usize = 20;

/// A counter to go on further up.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetRequest {
    /// The counter, as `GET …/counters` names it.
    counter_id: i64,
    /// The value that is to come next.
    next_value: u64,
    /// Why, in 20 to 500 characters.
    reason: String,
}

/// A last date to set back.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChronologyRequest {
    /// One of the counters that share the date, as `GET …/counters` names it.
    counter_id: i64,
    /// The last date that is to count: documents of that day and later ones are numbered again.
    last_date: String,
    /// Why, in 20 to 500 characters.
    reason: String,
}

/// Why a request is approved.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalRequest {
    /// Why, if there is something to say.
    reason: Option<String>,
}

/// Which requests to list.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangeQuery {
    /// `true`: only those that wait for an answer, and whose time is not over.
    #[serde(default)]
    pending: bool,
    /// The `next` of the page before.
    after: Option<i64>,
    /// At most so many requests, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

/// Asks for a counter to go on further up.
#[utoipa::path(
    post, path = "", tag = "changes",
    params(("configId" = i64, Path)),
    request_body = ResetRequest,
    responses(
        (status = 202, body = ChangeAnswer, description = "It waits for an approval"),
    )
)]
pub(crate) async fn reset_counter(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    Json(order): Json<ResetRequest>,
) -> Result<Response, Problem> {
    let (series_id, reason) = (read_id(config_id)?, check_full_reason(&order.reason)?);
    let ResetRequest { counter_id, next_value, .. } = order;
    let counter = counter_of(&app, &caller, (series_id, counter_id)).await?;
    let (definition, serial) = serial_of(&app, series_id, &counter.serial)?;
    let wanted = WantedChange::NextValue(next_value);
    must_be_within(&wanted, &definition, &serial)?;
    let asked = ChangeAsked { series_id, counter_id, wanted, step: serial.step, reason };
    ask(&app, &caller, asked).await
}

/// Asks for the last date of a series that keeps chronology to be set back.
#[utoipa::path(
    post, path = "", tag = "changes",
    params(("configId" = i64, Path)),
    request_body = ChronologyRequest,
    responses(
        (status = 202, body = ChangeAnswer, description = "It waits for an approval"),
    )
)]
pub(crate) async fn reset_chronology(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    Json(order): Json<ChronologyRequest>,
) -> Result<Response, Problem> {
    let (series_id, reason) = (read_id(config_id)?, check_full_reason(&order.reason)?);
    let ChronologyRequest { counter_id, last_date: date, .. } = order;
    let is_date = date.parse::<jiff::civil::Date>().is_ok_and(|read| read.to_string() == date);
    if !is_date {
        return Err(Problem::field("last_date", "must be a date, such as 2026-03-31"));
    }
    let counter = counter_of(&app, &caller, (series_id, counter_id)).await?;
    let (definition, serial) = serial_of(&app, series_id, &counter.serial)?;
    if !definition.chronology {
        let why = "is of a series that keeps no chronology: no date blocks it";
        return Err(Problem::field("counter_id", why));
    }
    let first = definition.serials.first().filter(|first| first.name == counter.serial);
    let Some(first) = first else {
        let why = "is of a further serial; name a counter of the first one, which keeps the dates";
        return Err(Problem::field("counter_id", why));
    };
    let family = counter.key.split(';').take(first.counter.len()).collect::<Vec<_>>().join(";");
    let wanted = WantedChange::LastDate { family, date };
    let asked = ChangeAsked { series_id, counter_id, wanted, step: serial.step, reason };
    ask(&app, &caller, asked).await
}

/// Lists changes that were asked for, newest first.
#[utoipa::path(
    get, path = "", tag = "changes",
    params(ChangeQuery),
    responses(
        (status = 200, body = ChangeList),
    )
)]
pub(crate) async fn list_changes(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(ChangeQuery { pending, after, limit }): QueryOf<ChangeQuery>,
) -> Result<axum::Json<ChangeList>, Problem> {
    caller.events_must_be_in_scope(None)?;
    let limit = rows_of_page(limit)?;
    let looking =
        app.read(
            &caller,
            |ledger| async move { ledger.approvals().list(after, pending, limit).await },
        );
    let found = looking.await?;
    let last = found.last().filter(|_| found.len() == limit as usize);
    let next = last.map(|request| request.change_id);
    let change_requests = found.into_iter().map(|it| ChangeAnswer::of(&app, it)).collect();
    Ok(axum::Json(ChangeList { change_requests, next }))
}

/// Approves a change that another person asked for; it is made before the answer.
#[utoipa::path(
    post, path = "", tag = "changes",
    params(("changeId" = i64, Path)),
    request_body = ApprovalRequest,
    responses(
        (status = 200, body = ChangeAnswer),
    )
)]
pub(crate) async fn approve_change(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    change_id: Result<Path<i64>, PathRejection>,
    Json(order): Json<ApprovalRequest>,
) -> Result<axum::Json<ChangeAnswer>, Problem> {
    let change_id = read_change(change_id)?;
    must_be_told_apart(&app)?;
    let reason = order.reason.as_deref().map(check_reason).transpose()?;
    let (decided_by, shown) = (caller.user_id.to_string(), caller.shown());
    let own = app.clone();
    let approving = app.note(&caller, |ledger| async move {
        let request = ledger.approvals().get(change_id).await?;
        let (definition, serial) = serial_of(&own, request.series_id, &request.serial)?;
        must_be_within(&request.wanted, &definition, &serial)?;
        let step = serial.step;
        let decision = ChangeDecision { change_id, decided_by, reason, step, shown };
        let approved = own.service.approve_change(&decision).await;
        approved.map_err(Problem::of_approval)
    });
    let request = approving.await?;
    Ok(axum::Json(ChangeAnswer::of(&app, request)))
}

/// Refuses if callers have no tokens: then all of them are one caller.
fn must_be_told_apart(app: &App) -> Result<(), Problem> {
    if app.service.tokens.is_some() {
        return Ok(());
    }
    let why = "callers have no tokens here, so all of them are one, and nobody approves anything \
               over HTTP; `numerator move-counter` moves a counter";
    Err(Problem::new(Slug::OwnChange, why))
}

/// Rejects a change, or withdraws one's own request.
#[utoipa::path(
    post, path = "", tag = "changes",
    params(("changeId" = i64, Path)),
    request_body = ReasonRequest,
    responses(
        (status = 200, body = ChangeAnswer),
    )
)]
pub(crate) async fn reject_change(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    change_id: Result<Path<i64>, PathRejection>,
    Json(order): Json<ReasonRequest>,
) -> Result<axum::Json<ChangeAnswer>, Problem> {
    let (change_id, reason) = (read_change(change_id)?, Some(check_reason(&order.reason)?));
    let (decided_by, shown) = (caller.user_id.to_string(), caller.shown());
    let service = Arc::clone(&app.service);
    let decision = ChangeDecision { change_id, decided_by, reason, step: 1, shown };
    let rejecting = app.note(&caller, |_| async move {
        service.reject_change(&decision).await.map_err(Problem::of_decision)
    });
    let request = rejecting.await?;
    Ok(axum::Json(ChangeAnswer::of(&app, request)))
}

/// The requested change.
struct ChangeAsked {
    series_id: i64,
    counter_id: i64,
    wanted: WantedChange,
    step: u64,
    reason: String,
}

async fn ask(app: &App, caller: &Caller, asked: ChangeAsked) -> Result<Response, Problem> {
    let ChangeAsked { series_id, counter_id, wanted, step, reason } = asked;
    let limit_us = i64::try_from(app.approval_limit.as_micros()).unwrap_or(i64::MAX);
    let expires_at_us = app.service.clock.now_us().saturating_add(limit_us);
    let (requested_by, shown) = (caller.user_id.to_string(), caller.shown());
    let new = NewChange {
        series_id,
        counter_id,
        wanted,
        step,
        reason,
        requested_by,
        expires_at_us,
        shown,
    };
    let asking = app.note(caller, |ledger| async move {
        ledger.approvals().request(&new).await.map_err(Problem::of_decision)
    });
    let request = asking.await?;
    Ok((StatusCode::ACCEPTED, axum::Json(ChangeAnswer::of(app, request))).into_response())
}

fn check_full_reason(reason: &str) -> Result<String, Problem> {
    let reason = check_reason(reason)?;
    if reason.chars().count() < REASON_CHARS_MIN {
        let wanted = format!(
            "must say why in {REASON_CHARS_MIN} characters at least: somebody else has to answer \
             for it, too"
        );
        return Err(Problem::field("reason", wanted));
    }
    Ok(reason)
}

fn read_change(change_id: Result<Path<i64>, PathRejection>) -> Result<i64, Problem> {
    let refused = |_| Problem::field("changeId", "must be the id of a change request");
    change_id.map(|Path(id)| id).map_err(refused)
}

/// The counter that a caller names. Whether it belongs to the series is decided by the ledger.
async fn counter_of(
    app: &App,
    caller: &Caller,
    (series_id, counter_id): (i64, i64),
) -> Result<Counter, Problem> {
    let looking = app.read(caller, |ledger| async move {
        ledger.counters().page(counter_id.saturating_sub(1), 1).await
    });
    let found = looking.await?.into_iter().next();
    let is_it =
        |counter: &Counter| counter.counter_id == counter_id && counter.series_id == series_id;
    found.filter(is_it).ok_or_else(|| {
        Problem::field("counter_id", "is no counter of this configuration; list its counters")
    })
}

/// A serial of a series in force, and its definition.
fn serial_of(app: &App, series_id: i64, name: &str) -> Result<(SeriesDefinition, Serial), Problem> {
    serial_in(&app.service.allocator.catalog(), series_id, name)
}

impl Problem {
    /// The problem of an approval; the request still waits for one, if the ledger says so.
    pub(crate) fn of_approval(error: NotApproved) -> Self {
        match error {
            NotApproved::Ledger(error) => Problem::of_decision(error),
            NotApproved::Lent(_) | NotApproved::TimedOut(_) => {
                Problem::new(Slug::LockTimeout, error.to_string()).retry_soon()
            }
        }
    }
}
