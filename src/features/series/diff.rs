//! `GET …/configs/{configId}/versions/{version}/diff`: the differences between two versions of a
//! series, and the effect of going from one to the other now.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::features::series::effect::{ConfigEffect, FieldChange, changed_fields, effect_between};
use crate::features::series::routes::{find_version, version_named};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::body::QueryOf;
use crate::web::etag::tagged_by_bytes;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// With what to compare.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// The version before; without it the one with the number before.
    against: Option<u32>,
}

/// What differs between two versions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConfigDiff {
    /// The configuration.
    config_id: i64,
    /// Its code.
    code: String,
    /// The version before; `null` where the first is compared with nothing.
    against: Option<u32>,
    /// The version after.
    version: u32,
    /// The fields that differ.
    changes: Vec<FieldChange>,
    /// What going from one to the other would do now; `null` to who may not read the counters of
    /// the whole series, or where a version does not compile any more.
    effect: Option<ConfigEffect>,
}

/// Compares two versions of a numbering configuration.
#[utoipa::path(
    get, path = "", tag = "configs",
    params(
        ("configId" = String, Path, description = "Its id, or its code"),
        ("version" = u32, Path, description = "The version after"),
        DiffQuery,
    ),
    responses(
        (status = 200, body = ConfigDiff, headers(("ETag" = String))),
        (status = 304, description = "The answer is what `If-None-Match` names"),
    )
)]
pub(crate) async fn diff_versions(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    names: Result<Path<(String, u32)>, PathRejection>,
    QueryOf(query): QueryOf<DiffQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (config_id, version) = version_named(&app, &caller, names)?;
    let after = find_version(&app, &caller, config_id, version).await?;
    let against = query.against.or_else(|| version.checked_sub(1).filter(|before| *before > 0));
    let before = match against {
        Some(against) => Some(find_version(&app, &caller, config_id, against).await?),
        None => None,
    };
    let (own, by) = (app.clone(), caller.clone());
    let comparing = Box::pin(async move {
        let was = before.as_ref().map(|before| (&before.definition, before.active));
        let changes = changed_fields(was, (&after.definition, after.active));
        let effect = effect_between(&own, &caller, before.as_ref(), &after).await?;
        let code = after.definition.code;
        Ok::<_, Problem>(ConfigDiff { config_id, code, against, version, changes, effect })
    });
    let diff = app.search(&by, |_| comparing).await?;
    compute(move || tagged_by_bytes(&headers, &diff)).await
}
