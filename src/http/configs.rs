//! `GET /api/v1/document-numbering/configs`: the active series.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::answer::instant;
use super::problem::{Problem, ProblemBody, Slug};
use crate::ledger::SeriesVersion;
use crate::number::SeriesDefinition;

/// All active series.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigList {
    configs: Vec<ConfigAnswer>,
}

/// One series in its active version.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConfigAnswer {
    /// Its id.
    pub config_id: i64,
    /// Its code.
    pub code: String,
    /// Its version, from 1.
    pub version: u32,
    /// The series as it was written, with the names of series files.
    #[schema(value_type = Object)]
    pub definition: SeriesDefinition,
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
            definition: version.definition.clone(),
            saved_by: version.saved_by.clone(),
            saved_at: instant(version.saved_at_us),
            reason: version.reason.clone(),
        }
    }
}

/// Lists the active numbering configurations by code.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/configs",
    tag = "configs",
    responses(
        (status = 200, body = ConfigList),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list_configs(State(app): State<App>) -> axum::Json<ConfigList> {
    let catalog = app.service.allocator.catalog();
    let configs = catalog.all().iter().map(|served| ConfigAnswer::of(&served.version)).collect();
    axum::Json(ConfigList { configs })
}

/// Shows one active numbering configuration.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/configs/{configId}",
    tag = "configs",
    params(("configId" = i64, Path)),
    responses(
        (status = 200, body = ConfigAnswer),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_config(
    State(app): State<App>,
    config_id: Result<Path<i64>, PathRejection>,
) -> Result<axum::Json<ConfigAnswer>, Problem> {
    let Path(config_id) =
        config_id.map_err(|_| Problem::field("configId", "must be a whole number"))?;
    let catalog = app.service.allocator.catalog();
    let found = catalog.all().iter().find(|served| served.version.series_id == config_id);
    found.map(|served| axum::Json(ConfigAnswer::of(&served.version))).ok_or_else(|| {
        let detail = format!("no active numbering configuration has the id {config_id}");
        Problem::new(Slug::ConfigNotFound, detail)
    })
}
