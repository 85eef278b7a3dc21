//! `GET /api/v1/document-numbering/configs` and below: series as they are, and as they were.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use numbering::SeriesDefinition;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::engine::allocator::Catalog;
use crate::features::series::answer::ConfigAnswer;
use crate::ledger::SeriesVersion;
use crate::web::App;
use crate::web::admission::compute;
use crate::web::body::QueryOf;
use crate::web::etag::{tagged, tagged_by_bytes};
use crate::web::middleware::Caller;
use crate::web::paging::LargePage;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::{Problem, Slug};
use crate::web::visibility::not_found;

/// Versions that are read in one statement: each may be as large as a body.
const VERSIONS_AT_ONCE: u32 = 16;

/// Which configurations to list; all that is given must match.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ConfigQuery {
    /// `false` lists those that are deactivated; `is_active` says the same.
    #[serde(default = "yes", alias = "is_active")]
    active: bool,
    /// Code of the series.
    code: Option<String>,
    /// Document type that they serve, by name or as the default for all types of a table.
    #[serde(rename = "type")]
    type_code: Option<String>,
    /// Project that they serve, by name or because they serve any.
    project: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// At most so many configurations, 1 to 1,000; 100 without it, and as many as fit into 1 MiB.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

impl ConfigQuery {
    /// Whether the query matches a series.
    fn asks_for(&self, definition: &SeriesDefinition) -> bool {
        let SeriesDefinition { code, serves, references, .. } = definition;
        let is = |wanted: &Option<String>, it: &dyn Fn(String) -> bool| {
            wanted.as_ref().is_none_or(|wanted| it(wanted.nfc().collect()))
        };
        let serves_all = serves.default && references.type_code.is_some();
        is(&self.code, &|wanted| wanted == *code)
            && is(&self.type_code, &|wanted| serves_all || serves.types.contains(&wanted))
            && is(&self.project, &|wanted| {
                serves.projects.is_empty() || serves.projects.contains(&wanted)
            })
            && is(&self.after, &|wanted| wanted < *code)
    }
}

/// Which versions to list.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct VersionQuery {
    /// Only versions up to this one: the `next` of the page before.
    #[serde(default = "newest", alias = "after")]
    upto: u32,
    /// At most so many versions, 1 to 1,000; 100 without it, and as many as fit into 1 MiB.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

fn yes() -> bool {
    true
}

fn newest() -> u32 {
    u32::MAX
}

/// Configurations by code.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConfigList {
    configs: Vec<ConfigAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Versions of one configuration, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionList {
    versions: Vec<ConfigAnswer>,
    /// What to send as `upto` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u32>,
}

/// Lists numbering configurations by code.
#[utoipa::path(
    get, path = "", tag = "configs",
    params(ConfigQuery),
    responses(
        (status = 200, body = ConfigList, headers(("ETag" = String))),
        (status = 304, description = "The list is what `If-None-Match` names"),
    )
)]
pub(crate) async fn list_configs(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<ConfigQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let limit = rows_of_page(query.limit)? as usize;
    let (catalog, by) = (app.service.allocator.catalog(), caller.clone());
    app.list(&caller, move || page_of(&catalog, &by, &query, limit, &headers)).await
}

/// A page of configurations.
fn page_of(
    catalog: &Catalog,
    caller: &Caller,
    query: &ConfigQuery,
    limit: usize,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let listed = if query.active { catalog.active() } else { catalog.inactive() };
    let versions = listed.iter().map(|served| &served.version);
    let mut found: Vec<&SeriesVersion> = versions
        .filter(|version| caller.sees_series(version) && query.asks_for(&version.definition))
        .collect();
    found.sort_by(|a, b| a.definition.code.cmp(&b.definition.code));
    let (mut page, mut next) = (LargePage::new(limit), None);
    for version in found {
        if !page.push(ConfigAnswer::of(version))? {
            next = page.rows().last().map(|last| last.code.clone());
            break;
        }
    }
    Ok(tagged_by_bytes(headers, &ConfigList { configs: page.into_rows(), next }))
}

/// Shows one numbering configuration, active or not, in the version in force.
#[utoipa::path(
    get, path = "", tag = "configs",
    params(("configId" = String, Path, description = "Its id, or its code")),
    responses(
        (status = 200, body = ConfigAnswer, headers(("ETag" = String))),
        (status = 304, description = "It is what `If-None-Match` names"),
    )
)]
pub(crate) async fn show_config(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let config_id = named(&app, &caller, name)?;
    let catalog = app.service.allocator.catalog();
    let mut seen = catalog.all().map(|served| &served.version);
    let found = seen.find(|it| it.series_id == config_id && caller.sees_series(it));
    let version = found.ok_or_else(|| not_found(config_id))?;
    Ok(tagged(&headers, version, &ConfigAnswer::of(version)))
}

/// Lists the versions of a numbering configuration, newest first.
#[utoipa::path(
    get, path = "", tag = "configs",
    params(
        ("configId" = String, Path, description = "Its id, or its code"),
        VersionQuery,
    ),
    responses(
        (
            status = 200,
            body = VersionList,
            description = "At most 1,000, and 1 MiB",
            headers(("ETag" = String))
        ),
        (status = 304, description = "The list is what `If-None-Match` names"),
    )
)]
pub(crate) async fn list_versions(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    name: Result<Path<String>, PathRejection>,
    QueryOf(query): QueryOf<VersionQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let config_id = named(&app, &caller, name)?;
    let (limit, by) = (rows_of_page(query.limit)? as usize, caller.clone());
    caller.holdings.must_have_room_for_an_answer()?;
    let reading = app.read(&caller, |ledger| async move {
        let (mut page, mut upto) = (LargePage::new(limit), query.upto);
        loop {
            let found = ledger.series().versions(config_id, upto, VERSIONS_AT_ONCE).await?;
            let oldest = found.last().map_or(0, |version| version.version);
            let is_all = found.len() < VERSIONS_AT_ONCE as usize;
            for version in found.iter().filter(|version| by.sees_series(version)) {
                if !page.push(ConfigAnswer::of(version))? {
                    let (versions, next) = (page.into_rows(), Some(version.version));
                    return Ok::<_, Problem>(VersionList { versions, next });
                }
            }
            if is_all || oldest <= 1 {
                return Ok(VersionList { versions: page.into_rows(), next: None });
            }
            upto = oldest - 1;
        }
    });
    let list = reading.await?;
    if list.versions.is_empty() || is_hidden(&app, &caller, config_id) {
        return Err(not_found(config_id));
    }
    compute(move || tagged_by_bytes(&headers, &list)).await
}

/// Shows one version of a numbering configuration.
#[utoipa::path(
    get, path = "", tag = "configs",
    params(
        ("configId" = String, Path, description = "Its id, or its code"),
        ("version" = u32, Path),
    ),
    responses(
        (status = 200, body = ConfigAnswer, headers(("ETag" = String))),
        (status = 304, description = "It is what `If-None-Match` names"),
    )
)]
pub(crate) async fn show_version(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    names: Result<Path<(String, u32)>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (config_id, wanted) = version_named(&app, &caller, names)?;
    let version = find_version(&app, &caller, config_id, wanted).await?;
    Ok(tagged(&headers, &version, &ConfigAnswer::of(&version)))
}

/// The configuration and the version that a path names.
pub(crate) fn version_named(
    app: &App,
    caller: &Caller,
    names: Result<Path<(String, u32)>, PathRejection>,
) -> Result<(i64, u32), Problem> {
    let Path((name, wanted)) =
        names.map_err(|_| Problem::field("version", "must be a whole number"))?;
    Ok((named(app, caller, Ok(Path(name)))?, wanted))
}

/// A version that the caller sees. A version out of its sight looks like one that does not exist,
/// and so does a configuration none of whose versions it sees.
pub(crate) async fn find_version(
    app: &App,
    caller: &Caller,
    config_id: i64,
    wanted: u32,
) -> Result<SeriesVersion, Problem> {
    let reading =
        app.read(caller, |ledger| async move { ledger.series().version(config_id, wanted).await });
    let found = reading.await?.filter(|version| caller.sees_series(version));
    found.filter(|_| !is_hidden(app, caller, config_id)).ok_or_else(|| {
        let catalog = app.service.allocator.catalog();
        let is_seen =
            |known: &SeriesVersion| known.series_id == config_id && caller.sees_series(known);
        if !catalog.known().any(|(known, _)| is_seen(known)) {
            return not_found(config_id);
        }
        let detail = format!("configuration {config_id} has no version {wanted}");
        Problem::new(Slug::ConfigNotFound, detail)
    })
}

/// Whether such a configuration exists, and the caller does not see it as it is. Checked after the
/// ledger is queried: a missing one is searched for as long.
fn is_hidden(app: &App, caller: &Caller, config_id: i64) -> bool {
    let catalog = app.service.allocator.catalog();
    let is_it =
        |version: &SeriesVersion| version.series_id == config_id && !caller.sees_series(version);
    catalog.known().any(|(version, _)| is_it(version))
}

/// The id of the configuration that a path names: digits alone are an id, whether it exists or not;
/// anything else is the code of one that the caller sees.
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
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return name.parse().map_err(|_| unknown("id"));
    }
    let catalog = app.service.allocator.catalog();
    let all = catalog.all().map(|served| &served.version);
    let code: String = name.nfc().collect();
    let mut all = all.filter(|version| caller.sees_series(version));
    let found = all.find(|version| version.definition.code == code);
    found.map(|version| version.series_id).ok_or_else(|| unknown("code"))
}
