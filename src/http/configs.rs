//! `GET /api/v1/document-numbering/configs` and below: series as they are, and as they were.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderValue;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use numbering::SeriesDefinition;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use super::App;
use super::answer::instant;
use super::body::QueryOf;
use super::gate::Caller;
use super::problem::{Problem, ProblemBody, Slug};
use crate::ledger::SeriesVersion;

/// Most versions in one answer.
const VERSIONS_MAX: u32 = 1_000;

/// Which configurations to list.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConfigQuery {
    /// `false` lists those that are deactivated.
    #[serde(default = "yes")]
    active: bool,
}

/// Which versions to list.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct VersionQuery {
    /// Only versions up to this one: the page after the oldest of the page before.
    #[serde(default = "newest")]
    upto: u32,
}

fn yes() -> bool {
    true
}

fn newest() -> u32 {
    u32::MAX
}

/// Configurations by code.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigList {
    configs: Vec<ConfigAnswer>,
}

/// Versions of one configuration, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VersionList {
    versions: Vec<ConfigAnswer>,
}

/// One version of a series.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConfigAnswer {
    /// Its id.
    pub config_id: i64,
    /// Its code.
    pub code: String,
    /// Its version, from 1; the header `ETag` where it is the one in force.
    pub version: u32,
    /// Whether it serves requests.
    pub active: bool,
    /// The series as it was written, with the names of series files.
    #[schema(value_type = Object)]
    pub definition: SeriesDefinition,
    /// Whether a document keeps its number for ever: what the definition says, or else its policy.
    pub once_per_document: bool,
    /// Who saved this version.
    pub saved_by: String,
    /// When.
    #[schema(format = DateTime)]
    pub saved_at: String,
    /// Why.
    pub reason: String,
}

impl ConfigAnswer {
    /// The answer for a version of the ledger.
    #[must_use]
    pub fn of(version: &SeriesVersion) -> Self {
        ConfigAnswer {
            config_id: version.series_id,
            code: version.definition.code.clone(),
            version: version.version,
            active: version.active,
            definition: version.definition.clone(),
            once_per_document: version.definition.is_once_per_document(),
            saved_by: version.saved_by.clone(),
            saved_at: instant(version.saved_at_us),
            reason: version.reason.clone(),
        }
    }
}

/// Lists numbering configurations by code.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/configs",
    tag = "configs",
    params(ConfigQuery),
    responses(
        (status = 200, body = ConfigList),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_configs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<ConfigQuery>,
) -> axum::Json<ConfigList> {
    let catalog = app.service.allocator.catalog();
    let listed = if query.active { catalog.active() } else { catalog.inactive() };
    let seen = listed.iter().filter(|served| caller.sees_series(&served.version));
    let configs = seen.map(|served| ConfigAnswer::of(&served.version)).collect();
    axum::Json(ConfigList { configs })
}

/// Shows one numbering configuration, active or not, in the version in force.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/configs/{configId}",
    tag = "configs",
    params(("configId" = String, Path, description = "Its id, or its code")),
    responses(
        (status = 200, body = ConfigAnswer, headers(("ETag" = String))),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let config_id = named(&app, &caller, name)?;
    let catalog = app.service.allocator.catalog();
    let found = catalog.all().find(|served| served.version.series_id == config_id);
    let version = &found.ok_or_else(|| not_found(config_id))?.version;
    Ok((etag(version.version), axum::Json(ConfigAnswer::of(version))).into_response())
}

/// Lists the versions of a numbering configuration, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/configs/{configId}/versions",
    tag = "configs",
    params(
        ("configId" = String, Path, description = "Its id, or its code"),
        VersionQuery,
    ),
    responses(
        (status = 200, body = VersionList, description = "At most 1,000"),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_versions(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    QueryOf(query): QueryOf<VersionQuery>,
) -> Result<axum::Json<VersionList>, Problem> {
    let config_id = named(&app, &caller, name)?;
    let ledger = app.service.ledger.clone();
    let found =
        super::finish(
            async move { ledger.series_versions(config_id, query.upto, VERSIONS_MAX).await },
        )
        .await?;
    if found.is_empty() {
        return Err(not_found(config_id));
    }
    Ok(axum::Json(VersionList { versions: found.iter().map(ConfigAnswer::of).collect() }))
}

/// Shows one version of a numbering configuration.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/configs/{configId}/versions/{version}",
    tag = "configs",
    params(
        ("configId" = String, Path, description = "Its id, or its code"),
        ("version" = u32, Path),
    ),
    responses(
        (status = 200, body = ConfigAnswer),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_version(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    names: Result<Path<(String, u32)>, PathRejection>,
) -> Result<axum::Json<ConfigAnswer>, Problem> {
    let Path((name, wanted)) =
        names.map_err(|_| Problem::field("version", "must be a whole number"))?;
    let config_id = named(&app, &caller, Ok(Path(name)))?;
    let ledger = app.service.ledger.clone();
    let found = super::finish(async move { ledger.series_version(config_id, wanted).await });
    found.await?.map(|version| axum::Json(ConfigAnswer::of(&version))).ok_or_else(|| {
        let detail = format!("configuration {config_id} has no version {wanted}");
        Problem::new(Slug::ConfigNotFound, detail)
    })
}

/// The id of the configuration that a path names, where the caller sees it: digits alone are an id,
/// anything else is a code.
fn named(
    app: &App,
    caller: &Caller,
    name: Result<Path<String>, PathRejection>,
) -> Result<i64, Problem> {
    let Path(name) = name.map_err(|refusal| Problem::field("configId", refusal.body_text()))?;
    let unknown = |what| {
        let detail = format!("no numbering configuration has the {what} {name}");
        Problem::new(Slug::ConfigNotFound, detail)
    };
    let catalog = app.service.allocator.catalog();
    let mut all = catalog.all().map(|served| &served.version);
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        let id = name.parse().map_err(|_| unknown("id"))?;
        let is_hidden = all.any(|version| version.series_id == id && !caller.sees_series(version));
        return if is_hidden { Err(not_found(id)) } else { Ok(id) };
    }
    let code: String = name.nfc().collect();
    let mut all = all.filter(|version| caller.sees_series(version));
    let found = all.find(|version| version.definition.code == code);
    found.map(|version| version.series_id).ok_or_else(|| unknown("code"))
}

/// The id in a path.
pub(super) fn read_id(config_id: Result<Path<i64>, PathRejection>) -> Result<i64, Problem> {
    let refused = |_| Problem::field("configId", "must be a whole number");
    config_id.map(|Path(id)| id).map_err(refused)
}

/// The header that names a version.
pub(super) fn etag(version: u32) -> [(axum::http::HeaderName, HeaderValue); 1] {
    let tag = HeaderValue::from_str(&format!("\"{version}\"")).expect("digits and quotes");
    [(ETAG, tag)]
}

pub(super) fn not_found(config_id: i64) -> Problem {
    let detail = format!("no numbering configuration has the id {config_id}");
    Problem::new(Slug::ConfigNotFound, detail)
}
