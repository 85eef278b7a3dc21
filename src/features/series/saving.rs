//! How a change of a series is checked, previewed and saved: by the ledger alone, which checks it
//! against all others under its lock.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::ETAG;
use axum::response::{IntoResponse, Response};
use numbering::{Inputs, Series};
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::allocator::AllocError;
use crate::features::series::answer::ConfigAnswer;
use crate::features::series::effect::{
    Compared, ConfigEffect, FieldChange, PREVIEWED, changed_fields, compiled, effect_between,
};
use crate::features::series::request::ConfigRequest;
use crate::ledger::{ActivityChange, Expected, LedgerError, SeriesChange, SeriesVersion, warnings};
use crate::startup::{self, Service};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::etag::{if_match, tag_of};
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;
use crate::web::reason::ReasonRequest;
use crate::web::reason::check_reason;
use crate::web::visibility::not_found;

/// What became of a definition.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedConfig {
    /// Its id; `null` where a dry run would create it.
    pub(crate) config_id: Option<i64>,
    /// Its code.
    code: String,
    /// The version in force, or that would be.
    pub(crate) version: u32,
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
    /// The fields that would change, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<FieldChange>>,
    /// What that would do, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<ConfigEffect>,
}

impl SavedConfig {
    /// The answer for a change of a configuration.
    pub(crate) fn answer(self, config_id: i64) -> Response {
        if self.changes.is_some() {
            return axum::Json(self).into_response();
        }
        ([(ETAG, tag_of(config_id, self.version))], axum::Json(self)).into_response()
    }
}

/// A configuration that was activated or deactivated.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedConfig {
    /// The configuration as it is, or would be.
    #[serde(flatten)]
    config: ConfigAnswer,
    /// Whether a version was written: not by a dry run, nor where it was so already.
    saved: bool,
    /// The fields that would change, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Vec<FieldChange>>,
    /// What that would do, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<ConfigEffect>,
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

/// Checks, previews and saves a definition, at one of the places for that.
pub(crate) async fn save(
    app: &App,
    caller: &Caller,
    order: ConfigRequest,
    expected: Expected,
    dry_run: bool,
) -> Result<SavedConfig, Problem> {
    if let Expected::Version { series_id, .. } = expected {
        must_hold(app, caller, series_id)?;
    }
    let reason = check_reason(&order.reason)?;
    let (own, by, saved_by) = (app.clone(), caller.clone(), caller.user_id.to_string());
    // Boxed: the state of a check does not become part of its callers.
    let checking = Box::pin(async move {
        let saving = Saving { saved_by, reason, expected, dry_run, by };
        check_and_save(&own, order, saving).await
    });
    app.work_permits.check(caller, checking).await
}

/// Refuses a change of a series that is not wholly within the caller's reach. A series that is not
/// known here is refused by the ledger, and for a narrowed caller as if it did not exist. Its code,
/// if it is known.
pub(crate) fn must_hold(app: &App, caller: &Caller, series_id: i64) -> Result<String, Problem> {
    let catalog = app.service.allocator.catalog();
    let version = catalog.known().map(|(version, _)| version);
    let mut of_id = version.filter(|version| version.series_id == series_id);
    match of_id.next() {
        Some(version) => {
            caller.must_hold(version)?;
            Ok(version.definition.code.clone())
        }
        None if caller.scope().is_everything() => Ok(String::new()),
        None => Err(not_found(series_id)),
    }
}

/// The user who saves a definition, and how.
struct Saving {
    saved_by: String,
    reason: String,
    expected: Expected,
    dry_run: bool,
    by: Caller,
}

async fn check_and_save(
    app: &App,
    order: ConfigRequest,
    saving: Saving,
) -> Result<SavedConfig, Problem> {
    let (catalog, now) = (app.service.allocator.catalog(), app.service.clock.now());
    let principal = saving.by.clone();
    let shared = Arc::clone(&app.shared);
    let compiling = compute(move || {
        let (definition, example) = (order.define()?, order.example);
        principal.must_hold_definition(&definition)?;
        principal.must_be_in_scope_beyond(&shared, &definition)?;
        let series = Series::compile(definition.clone())?;
        let series = series.with_reference(Arc::clone(catalog.reference()));
        let sample = series.sample(now);
        let asked = example.map(|example| example.inputs(sample.clone()));
        Ok::<_, Problem>((definition, series, asked.ok_or(sample)))
    });
    let (definition, series, asked) = compiling.await??;
    let Saving { saved_by, reason, expected, dry_run, by } = saving;
    let ledger = &app.service.ledger;
    let may_see = |code: &str| scope_has_all_of(app, &by, code);
    let mut warnings = warnings(ledger, std::slice::from_ref(&series), may_see).await.concat();
    warnings.extend(app.service.allocator.warning_of(&series));
    let series_id = match expected {
        Expected::Version { series_id, .. } => Some(series_id),
        Expected::Nothing | Expected::Anything => None,
    };
    let preview = preview(app, &series, series_id, asked.clone()).await?;
    let saved_at_us = app.service.clock.now_us();
    let code = definition.code.clone();
    let change = [SeriesChange { definition, expected, saved_by, reason, saved_at_us }];
    let version = keep(app, (&by, &code), &change, dry_run).await?;
    let (mut changes, mut effect) = (None, None);
    if dry_run {
        let before = before(app, expected).await?;
        let is_before = before.as_ref().map(|before| (&before.definition, before.active));
        changes = Some(changed_fields(is_before, (&version.definition, version.active)));
        let catalog = app.service.allocator.catalog();
        let restored = before.map(|before| compiled(&catalog, &before.definition));
        // A stored version that does not compile is ignored: its numbers cannot be predicted.
        if let Ok(before) = restored.transpose() {
            let (is_active, asked) = (version.active, asked.ok());
            let compared = Compared { series_id, before, after: series, is_active, asked };
            effect = Some(compared.effect(app, &by).await?);
        }
    }
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
        changes,
        effect,
    })
}

/// Saves a version, or predicts the result.
async fn keep(
    app: &App,
    (by, code): (&Caller, &str),
    change: &[SeriesChange],
    dry_run: bool,
) -> Result<SeriesVersion, Problem> {
    let ledger = &app.service.ledger;
    let told = |error| by.told(app, code, error);
    match (dry_run, by.scope().projects()) {
        (true, []) => one(ledger.series().try_apply(change).await).map_err(told),
        (true, _) => one(ledger.series().try_of_projects(change).await).map_err(told),
        (false, []) => {
            write(app, by, code, async { one(ledger.series().apply(change).await) }).await
        }
        (false, _) => {
            let saved = async { one(ledger.series().apply_of_projects(change).await) };
            write(app, by, code, saved).await
        }
    }
}

/// Whether every number of a series is within reach.
fn scope_has_all_of(app: &App, caller: &Caller, code: &str) -> bool {
    let catalog = app.service.allocator.catalog();
    let is_held = |version: &SeriesVersion| {
        version.definition.code == code && caller.must_hold(version).is_ok()
    };
    caller.scope().is_everything() || catalog.known().any(|(version, _)| is_held(version))
}

/// The version that a change builds on.
async fn before(app: &App, expected: Expected) -> Result<Option<SeriesVersion>, Problem> {
    let Expected::Version { series_id, version } = expected else { return Ok(None) };
    Ok(app.service.ledger.series().version(series_id, version).await?)
}

/// The one version that one change gives.
fn one(saved: Result<Vec<SeriesVersion>, LedgerError>) -> Result<SeriesVersion, LedgerError> {
    saved.map(|mut versions| versions.pop().expect("a version for each change"))
}

/// Shows the next numbers for a given request, or else for a made-up one: it does not matter if
/// the series refuses the latter.
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
        // A save that would bring this about is refused for itself.
        Err(AllocError::BelowStart { .. }) => Vec::new(),
        numbers => numbers?,
    };
    let Inputs { type_code, project, date, context, .. } = inputs;
    Ok(ConfigPreview { type_code, project, date, context, numbers })
}

/// Completes a change of the series with this code. This process serves by it before the caller is
/// answered, and so do the others, as far as they confirm it in time.
pub(crate) async fn write(
    app: &App,
    caller: &Caller,
    code: &str,
    work: impl Future<Output = Result<SeriesVersion, LedgerError>>,
) -> Result<SeriesVersion, Problem> {
    let version = work.await.map_err(|error| caller.told(app, code, error))?;
    if let Err(error) = app.service.allocator.refresh_catalog().await {
        tracing::warn!(%error, "a change of series is saved, and not served by here yet");
    }
    until_known(app).await;
    Ok(version)
}

/// Waits, for a bounded time, until the other processes know the saved version.
pub(crate) async fn until_known(app: &App) {
    let Service { ledger, context, .. } = &*app.service;
    let unaware = startup::until_known(ledger, Some(context.membership.node())).await;
    if unaware > 0 {
        tracing::warn!(unaware, "processes have not said that they know of a change");
    }
}

/// Activates or deactivates a series, or reports what that would do.
pub(crate) async fn set_activity(
    app: &App,
    caller: &Caller,
    (series_id, active): (i64, bool),
    headers: &HeaderMap,
    order: ReasonRequest,
    dry_run: bool,
) -> Result<Response, Problem> {
    let code = must_hold(app, caller, series_id)?;
    let mut change = ActivityChange {
        series_id,
        active,
        expected: if_match(headers, series_id)?,
        saved_by: caller.user_id.to_string(),
        reason: check_reason(&order.reason)?,
        saved_at_us: app.service.clock.now_us(),
    };
    let (own, by) = (app.clone(), caller.clone());
    let changing = Box::pin(async move {
        let ledger = &own.service.ledger;
        if active {
            activated_must_be_in_scope(&own, &by, &mut change).await?;
        }
        if dry_run {
            return try_activity(&own, &by, &code, &change).await;
        }
        let version =
            write(&own, &by, &code, async { ledger.series().set_activity(&change).await }).await?;
        let (config, saved) = (ConfigAnswer::of(&version), version.is_new);
        Ok(ChangedConfig { config, saved, changes: None, effect: None })
    });
    let changed = app.work_permits.check(caller, changing).await?;
    if dry_run {
        return Ok(axum::Json(changed).into_response());
    }
    let tag = tag_of(series_id, changed.config.version);
    Ok(([(ETAG, tag)], axum::Json(changed)).into_response())
}

/// For a narrowed caller, refuses to activate a series that reaches beyond its own projects, and
/// any version of it other than the one that was checked.
async fn activated_must_be_in_scope(
    app: &App,
    caller: &Caller,
    change: &mut ActivityChange,
) -> Result<(), Problem> {
    if caller.scope().is_everything() {
        return Ok(());
    }
    let series = app.service.ledger.series().list().await?;
    let Some(version) = series.iter().find(|one| one.series_id == change.series_id) else {
        return Err(not_found(change.series_id));
    };
    caller.must_hold(version)?;
    caller.must_be_in_scope_beyond(&app.shared, &version.definition)?;
    change.expected = change.expected.or(Some(version.version));
    Ok(())
}

async fn try_activity(
    app: &App,
    caller: &Caller,
    code: &str,
    change: &ActivityChange,
) -> Result<ChangedConfig, Problem> {
    let ledger = &app.service.ledger;
    let tried = ledger.series().try_activity(change).await;
    let after = tried.map_err(|error| caller.told(app, code, error))?;
    let before = if after.is_new {
        let version = after.version - 1;
        let before = ledger.series().version(after.series_id, version).await?;
        before.ok_or_else(|| not_found(after.series_id))?
    } else {
        after.clone()
    };
    let changes = changed_fields(
        Some((&before.definition, before.active)),
        (&after.definition, after.active),
    );
    let effect = effect_between(app, caller, Some(&before), &after).await?;
    let config = ConfigAnswer::of(&after);
    Ok(ChangedConfig { config, saved: false, changes: Some(changes), effect })
}
