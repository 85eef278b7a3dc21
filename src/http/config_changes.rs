//! `POST`, `PUT` and `DELETE` below `/api/v1/document-numbering/configs`: changes of series at run
//! time (R4).
//!
//! A definition is compiled and previewed here, and saved by the ledger alone, which checks it
//! against all others under its lock.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use numbering::{Inputs, Series};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::App;
use super::answer::instant;
use super::body::{Json, QueryOf};
use super::config_order::{ConfigOrder, ReasonOrder, check_reason, if_match, needed_if_match};
use super::configs::{ConfigAnswer, etag, read_id};
use super::counters::known;
use super::effort::compute;
use super::gate::Caller;
use super::problem::{Problem, ProblemBody};
use crate::allocator::AllocError;
use crate::ledger::{
    ActivityChange, Expected, LedgerError, SeriesChange, SeriesRemoval, SeriesVersion, warnings,
};
use crate::service::Service;

/// Numbers in a preview.
const PREVIEWED: u64 = 3;

/// How to save.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SaveQuery {
    /// `true` checks and previews, and saves nothing.
    #[serde(default)]
    dry_run: bool,
}

/// What became of a definition.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SavedConfig {
    /// Its id; `null` where a dry run would create it.
    config_id: Option<i64>,
    /// Its code.
    code: String,
    /// The version in force, or that would be.
    version: u32,
    /// Whether it serves requests.
    active: bool,
    /// Whether a version was written: not by a dry run, nor by a definition equal to the one in
    /// force.
    saved: bool,
    /// Who saved the version.
    saved_by: String,
    /// When.
    #[schema(format = DateTime)]
    saved_at: String,
    /// Why.
    reason: String,
    /// What its next numbers look like.
    preview: ConfigPreview,
    /// Numbers of other series that read like its own.
    warnings: Vec<String>,
}

/// Numbers that a definition would give.
#[derive(Debug, Serialize, ToSchema)]
struct ConfigPreview {
    /// Document type of the request.
    #[serde(rename = "type")]
    type_code: String,
    /// Its project.
    project: Option<String>,
    /// Its date; `null`: now.
    date: Option<String>,
    /// Its variables.
    context: std::collections::BTreeMap<String, String>,
    /// The next numbers for this request; fewer than three where the serial ends.
    numbers: Vec<String>,
}

/// Creates a numbering configuration.
#[utoipa::path(
    post,
    path = "/api/v1/document-numbering/configs",
    tag = "configs",
    params(SaveQuery),
    request_body(
        content = Object,
        description = "The fields of a series file (`expression` is the JSON itself), `reason`, \
                       and a request to preview, `example`",
    ),
    responses(
        (status = 201, body = SavedConfig, headers(("ETag" = String), ("Location" = String))),
        (status = 200, body = SavedConfig, description = "A dry run; nothing is saved"),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<SaveQuery>,
    Json(order): Json<ConfigOrder>,
) -> Result<Response, Problem> {
    let saved = save(&app, &caller, order, Expected::Nothing, query.dry_run).await?;
    let Some(config_id) = saved.config_id else {
        return Ok(axum::Json(saved).into_response());
    };
    let location = format!("/api/v1/document-numbering/configs/{config_id}");
    let headers = (etag(saved.version), [(LOCATION, location)]);
    Ok((StatusCode::CREATED, headers, axum::Json(saved)).into_response())
}

/// Saves a new version of a numbering configuration.
#[utoipa::path(
    put,
    path = "/api/v1/document-numbering/configs/{configId}",
    tag = "configs",
    params(
        ("configId" = i64, Path),
        ("If-Match" = String, Header, description = "The ETag of the version that was read"),
        SaveQuery,
    ),
    request_body(
        content = Object,
        description = "The fields of a series file (`expression` is the JSON itself), `reason`, \
                       and a request to preview, `example`",
    ),
    responses(
        (status = 200, body = SavedConfig, headers(("ETag" = String))),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn update_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<SaveQuery>,
    headers: HeaderMap,
    Json(order): Json<ConfigOrder>,
) -> Result<Response, Problem> {
    let (series_id, version) = (read_id(config_id)?, needed_if_match(&headers)?);
    let expected = Expected::Version { series_id, version };
    let saved = save(&app, &caller, order, expected, query.dry_run).await?;
    if query.dry_run {
        return Ok(axum::Json(saved).into_response());
    }
    Ok((etag(saved.version), axum::Json(saved)).into_response())
}

/// Lets a numbering configuration serve requests again.
#[utoipa::path(
    post,
    path = "/api/v1/document-numbering/configs/{configId}/activate",
    tag = "configs",
    params(("configId" = i64, Path), ("If-Match" = Option<String>, Header)),
    request_body = ReasonOrder,
    responses(
        (status = 200, body = ConfigAnswer, headers(("ETag" = String))),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn activate_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    headers: HeaderMap,
    Json(order): Json<ReasonOrder>,
) -> Result<Response, Problem> {
    set_activity(&app, &caller, (read_id(config_id)?, true), &headers, order).await
}

/// Keeps a numbering configuration from serving requests; its numbers stay found (R4.3).
#[utoipa::path(
    post,
    path = "/api/v1/document-numbering/configs/{configId}/deactivate",
    tag = "configs",
    params(("configId" = i64, Path), ("If-Match" = Option<String>, Header)),
    request_body = ReasonOrder,
    responses(
        (status = 200, body = ConfigAnswer, headers(("ETag" = String))),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn deactivate_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    headers: HeaderMap,
    Json(order): Json<ReasonOrder>,
) -> Result<Response, Problem> {
    set_activity(&app, &caller, (read_id(config_id)?, false), &headers, order).await
}

/// Why a configuration is removed: a `DELETE` has no body.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RemovalQuery {
    /// Why.
    #[serde(default)]
    reason: String,
}

/// Removes a numbering configuration that never numbered anything.
#[utoipa::path(
    delete,
    path = "/api/v1/document-numbering/configs/{configId}",
    tag = "configs",
    params(
        ("configId" = i64, Path),
        ("If-Match" = String, Header, description = "The ETag of the version that was read"),
        RemovalQuery,
    ),
    responses(
        (status = 204, description = "It is removed"),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn remove_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<RemovalQuery>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let series_id = read_id(config_id)?;
    must_hold(&app, &caller, series_id)?;
    let removal = SeriesRemoval {
        series_id,
        expected: Some(needed_if_match(&headers)?),
        removed_by: caller.user_id.to_string(),
        reason: check_reason(&query.reason)?,
        removed_at_us: app.service.clock.now_us(),
    };
    let own = app.clone();
    let removing = async move {
        let Service { ledger, context, .. } = &*own.service;
        let node = context.membership.node();
        write(&own, async { ledger.remove_series(node, &removal).await }).await
    };
    app.effort.check(removing).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn set_activity(
    app: &App,
    caller: &Caller,
    (series_id, active): (i64, bool),
    headers: &HeaderMap,
    order: ReasonOrder,
) -> Result<Response, Problem> {
    must_hold(app, caller, series_id)?;
    let change = ActivityChange {
        series_id,
        active,
        expected: if_match(headers)?,
        saved_by: caller.user_id.to_string(),
        reason: check_reason(&order.reason)?,
        saved_at_us: app.service.clock.now_us(),
    };
    let own = app.clone();
    let changing = async move {
        let ledger = &own.service.ledger;
        write(&own, async { ledger.set_activity(&change).await }).await
    };
    let version = app.effort.check(changing).await?;
    Ok((etag(version.version), axum::Json(ConfigAnswer::of(&version))).into_response())
}

/// Checks, previews and saves a definition, at one of the places for that.
async fn save(
    app: &App,
    caller: &Caller,
    order: ConfigOrder,
    expected: Expected,
    dry_run: bool,
) -> Result<SavedConfig, Problem> {
    if let Expected::Version { series_id, .. } = expected {
        must_hold(app, caller, series_id)?;
    }
    let reason = check_reason(&order.reason)?;
    let (own, by, saved_by) = (app.clone(), caller.clone(), caller.user_id.to_string());
    // Boxed: what a check keeps meanwhile is no part of its callers.
    let checking = Box::pin(async move {
        let saving = Saving { saved_by, reason, expected, dry_run, by };
        check_and_save(&own, order, saving).await
    });
    app.effort.check(checking).await
}

/// Refuses a change of a series that is not wholly within the caller's reach; one that is not
/// there is the ledger's to refuse.
fn must_hold(app: &App, caller: &Caller, series_id: i64) -> Result<(), Problem> {
    let catalog = app.service.allocator.catalog();
    let version = known(&catalog).map(|(version, _)| version);
    let mut of_id = version.filter(|version| version.series_id == series_id);
    of_id.next().map_or(Ok(()), |version| caller.must_hold(version))
}

/// Who saves a definition, and how.
struct Saving {
    saved_by: String,
    reason: String,
    expected: Expected,
    dry_run: bool,
    by: Caller,
}

async fn check_and_save(
    app: &App,
    order: ConfigOrder,
    saving: Saving,
) -> Result<SavedConfig, Problem> {
    let catalog = app.service.allocator.catalog();
    let compiling = compute(move || {
        let (definition, example) = (order.define()?, order.example);
        let series = Series::compile(definition.clone())?;
        let series = series.with_reference(Arc::clone(catalog.reference()));
        let sample = series.sample();
        let asked = example.map(|example| example.inputs(sample.clone()));
        Ok::<_, Problem>((definition, series, asked.ok_or(sample)))
    });
    let (definition, series, asked) = compiling.await??;
    let Saving { saved_by, reason, expected, dry_run, by } = saving;
    by.must_hold_definition(&definition)?;
    let series_id = match expected {
        Expected::Version { series_id, .. } => Some(series_id),
        Expected::Nothing | Expected::Anything => None,
    };
    let ledger = &app.service.ledger;
    let warnings = warnings(ledger, std::slice::from_ref(&series)).await.concat();
    let preview = preview(app, &series, series_id, asked).await?;
    let saved_at_us = app.service.clock.now_us();
    let change = [SeriesChange { definition, expected, saved_by, reason, saved_at_us }];
    let version = if dry_run {
        one(ledger.try_series(&change).await)?
    } else {
        write(app, async { one(ledger.apply_series(&change).await) }).await?
    };
    Ok(SavedConfig {
        config_id: if dry_run { series_id } else { Some(version.series_id) },
        code: version.definition.code,
        version: version.version,
        active: version.active,
        saved: version.is_new && !dry_run,
        saved_by: version.saved_by,
        saved_at: instant(version.saved_at_us),
        reason: version.reason,
        preview,
        warnings,
    })
}

/// The one version that one change gives.
fn one(saved: Result<Vec<SeriesVersion>, LedgerError>) -> Result<SeriesVersion, LedgerError> {
    saved.map(|mut versions| versions.pop().expect("a version for each change"))
}

/// Shows the next numbers for a request that was asked for, or else for one that was made up: of
/// that it does not matter if the series refuses it.
async fn preview(
    app: &App,
    series: &Series,
    series_id: Option<i64>,
    asked: Result<Inputs, Inputs>,
) -> Result<ConfigPreview, Problem> {
    let (inputs, made_up) = match asked {
        Ok(inputs) => (inputs, false),
        Err(sample) => (sample, true),
    };
    let allocator = &app.service.allocator;
    let numbers = match allocator.preview_series(series, series_id, &inputs, PREVIEWED).await {
        Err(AllocError::Input(_)) if made_up => Vec::new(),
        numbers => numbers?,
    };
    let Inputs { type_code, project, date, context, .. } = inputs;
    Ok(ConfigPreview { type_code, project, date, context, numbers })
}

/// Writes a change to the end, and has this process serve by it before the caller is answered. The
/// others see it within a second.
async fn write(
    app: &App,
    work: impl Future<Output = Result<SeriesVersion, LedgerError>>,
) -> Result<SeriesVersion, Problem> {
    let version = work.await.map_err(Problem::of_change)?;
    if let Err(error) = app.service.allocator.refresh_catalog().await {
        tracing::warn!(%error, "a change of series is saved, and not served by here yet");
    }
    Ok(version)
}
