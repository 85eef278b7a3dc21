//! `POST`, `PUT` and `DELETE` below `/api/v1/document-numbering/configs`: changes of series at run
//! time. `saving.rs` checks and saves them.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::features::series::request::{ConfigRequest, RollbackRequest};
use crate::features::series::routes::find_version;
use crate::features::series::saving::{
    ChangedConfig, SavedConfig, must_hold, save, set_activity, write,
};
use crate::ledger::{Expected, SeriesRemoval};
use crate::startup::Service;
use crate::web::App;
use crate::web::body::read_id;
use crate::web::body::{Json, QueryOf};
use crate::web::etag::{needed_if_match, tag_of};
use crate::web::middleware::Caller;
use crate::web::problem::Problem;
use crate::web::reason::ReasonRequest;
use crate::web::reason::check_reason;

/// How to save.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SaveQuery {
    /// `true` checks and previews, and saves nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Creates a numbering configuration.
#[utoipa::path(
    post, path = "", tag = "configs",
    params(SaveQuery),
    request_body(
        content = Object,
        description = "The fields of a series file (`expression` is the JSON itself), `reason`, \
                       and a request to preview, `example`",
    ),
    responses(
        (status = 201, body = SavedConfig, headers(("ETag" = String), ("Location" = String))),
        (status = 200, body = SavedConfig, description = "A dry run; nothing is saved"),
    )
)]
pub(crate) async fn create_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<SaveQuery>,
    Json(order): Json<ConfigRequest>,
) -> Result<Response, Problem> {
    let saved = save(&app, &caller, order, Expected::Nothing, query.dry_run).await?;
    let Some(config_id) = saved.config_id else {
        return Ok(axum::Json(saved).into_response());
    };
    let location = format!("/api/v1/document-numbering/configs/{config_id}");
    let headers = ([(ETAG, tag_of(config_id, saved.version))], [(LOCATION, location)]);
    Ok((StatusCode::CREATED, headers, axum::Json(saved)).into_response())
}

/// Saves a new version of a numbering configuration.
#[utoipa::path(
    put, path = "", tag = "configs",
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
    )
)]
pub(crate) async fn update_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<SaveQuery>,
    headers: HeaderMap,
    Json(order): Json<ConfigRequest>,
) -> Result<Response, Problem> {
    let series_id = read_id(config_id)?;
    let version = needed_if_match(&headers, series_id)?;
    let expected = Expected::Version { series_id, version };
    let saved = save(&app, &caller, order, expected, query.dry_run).await?;
    Ok(saved.answer(series_id))
}

/// Saves the definition of an earlier version as a new one, under the checks of any other change.
#[utoipa::path(
    post, path = "", tag = "configs",
    params(
        ("configId" = i64, Path),
        ("If-Match" = String, Header, description = "The ETag of the version that was read"),
        SaveQuery,
    ),
    request_body = RollbackRequest,
    responses(
        (status = 200, body = SavedConfig, headers(("ETag" = String))),
    )
)]
pub(crate) async fn roll_back_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<SaveQuery>,
    headers: HeaderMap,
    Json(order): Json<RollbackRequest>,
) -> Result<Response, Problem> {
    let series_id = read_id(config_id)?;
    must_hold(&app, &caller, series_id)?;
    let version = needed_if_match(&headers, series_id)?;
    let earlier = find_version(&app, &caller, series_id, order.version).await?;
    let expected = Expected::Version { series_id, version };
    let order = ConfigRequest::of(earlier.definition, order.reason);
    let saved = save(&app, &caller, order, expected, query.dry_run).await?;
    Ok(saved.answer(series_id))
}

/// Lets a numbering configuration serve requests again.
#[utoipa::path(
    post, path = "", tag = "configs",
    params(("configId" = i64, Path), ("If-Match" = Option<String>, Header), SaveQuery),
    request_body = ReasonRequest,
    responses(
        (status = 200, body = ChangedConfig, headers(("ETag" = String))),
    )
)]
pub(crate) async fn activate_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<SaveQuery>,
    headers: HeaderMap,
    Json(order): Json<ReasonRequest>,
) -> Result<Response, Problem> {
    let wanted = (read_id(config_id)?, true);
    set_activity(&app, &caller, wanted, &headers, order, query.dry_run).await
}

/// Keeps a numbering configuration from serving requests; its numbers stay found.
#[utoipa::path(
    post, path = "", tag = "configs",
    params(("configId" = i64, Path), ("If-Match" = Option<String>, Header), SaveQuery),
    request_body = ReasonRequest,
    responses(
        (status = 200, body = ChangedConfig, headers(("ETag" = String))),
    )
)]
pub(crate) async fn deactivate_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<SaveQuery>,
    headers: HeaderMap,
    Json(order): Json<ReasonRequest>,
) -> Result<Response, Problem> {
    let wanted = (read_id(config_id)?, false);
    set_activity(&app, &caller, wanted, &headers, order, query.dry_run).await
}

/// Why a configuration is removed: a `DELETE` has no body.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemovalQuery {
    /// Why.
    #[serde(default)]
    reason: String,
}

/// Removes a numbering configuration that never numbered anything.
#[utoipa::path(
    delete, path = "", tag = "configs",
    params(
        ("configId" = i64, Path),
        ("If-Match" = String, Header, description = "The ETag of the version that was read"),
        RemovalQuery,
    ),
    responses(
        (status = 204, description = "It is removed"),
    )
)]
pub(crate) async fn remove_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    config_id: Result<Path<i64>, PathRejection>,
    QueryOf(query): QueryOf<RemovalQuery>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let series_id = read_id(config_id)?;
    let code = must_hold(&app, &caller, series_id)?;
    let removal = SeriesRemoval {
        series_id,
        expected: Some(needed_if_match(&headers, series_id)?),
        removed_by: caller.user_id.to_string(),
        reason: check_reason(&query.reason)?,
        removed_at_us: app.service.clock.now_us(),
    };
    let (own, by) = (app.clone(), caller.clone());
    let removing = async move {
        let Service { ledger, context, .. } = &*own.service;
        let node = context.membership.node();
        write(&own, &by, &code, async { ledger.series().remove(node, &removal).await }).await
    };
    app.work_permits.check(&caller, removing).await?;
    Ok(StatusCode::NO_CONTENT)
}
