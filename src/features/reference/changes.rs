//! `POST /api/v1/document-numbering/reference/{table}`: rows and memberships by the rules of
//! `numerator reference import`. Erases nothing.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use numbering::ReferenceRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::features::reference::routes::{MembershipAnswer, shown, table_named};
use crate::features::series::saving::until_known;
use crate::ledger::{
    Effect, LedgerError, MembershipChange, ReferenceChange, ReferencePlan, RowChange,
};
use crate::web::App;
use crate::web::body::{Json, QueryOf};
use crate::web::etag::stamp_if_match;
use crate::web::middleware::Caller;
use crate::web::problem::{Problem, Slug};
use crate::web::reason::check_reason;

/// Rows and memberships to save, all or none. What is not listed stays as it is.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReferenceRequest {
    /// Rows of the table.
    #[serde(default)]
    rows: Vec<RowRequest>,
    /// Memberships of its rows, in rows that are there already.
    #[serde(default)]
    memberships: Vec<MembershipRequest>,
    /// Why.
    reason: String,
}

/// A row to save.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowRequest {
    /// Its id.
    id: String,
    /// Its code from now on.
    code: String,
    /// Its display name; without it as it is.
    name: Option<String>,
    /// Whether new numbers may use it; without it as it is, a new row may be used.
    active: Option<bool>,
}

/// A membership to save.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MembershipRequest {
    /// Id of the member.
    id: String,
    /// Table of what it belongs to.
    of_table: String,
    /// Id of what it belongs to.
    of_id: String,
    /// Whether it still does; without it as it is, a new one begins.
    active: Option<bool>,
}

/// How to save.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TableChangeQuery {
    /// `true` checks, and saves nothing.
    #[serde(default)]
    dry_run: bool,
}

/// What became of rows and memberships.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReferenceAnswer {
    table: String,
    /// Whether anything was written: not by a dry run, nor where nothing changes.
    saved: bool,
    rows: Vec<ChangedRow>,
    memberships: Vec<ChangedMembership>,
}

/// What became of a row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedRow {
    id: String,
    code: String,
    name: String,
    active: bool,
    /// `added`, `renamed`, `activated`, `deactivated`, `changed` (its name) or `unchanged`.
    effect: &'static str,
    /// The code that it had, where it is renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// What became of a membership.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedMembership {
    #[serde(flatten)]
    membership: MembershipAnswer,
    /// `added`, `activated`, `deactivated` or `unchanged`.
    effect: &'static str,
}

/// Saves rows and memberships of a table, all or none.
#[utoipa::path(
    post, path = "", tag = "reference",
    params(
        ("table" = String, Path),
        ("If-Match" = Option<String>, Header, description = "An ETag of what was read of it"),
        TableChangeQuery,
    ),
    request_body = ReferenceRequest,
    responses(
        (status = 200, body = ReferenceAnswer),
    )
)]
pub(crate) async fn change_rows(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    table: Result<Path<String>, PathRejection>,
    QueryOf(query): QueryOf<TableChangeQuery>,
    headers: HeaderMap,
    Json(order): Json<ReferenceRequest>,
) -> Result<axum::Json<ReferenceAnswer>, Problem> {
    let (table, expected) = (table_named(table)?, stamp_if_match(&headers)?);
    let row =
        |RowRequest { id, code, name, active }: RowRequest| RowChange { id, code, name, active };
    let membership = |MembershipRequest { id, of_table, of_id, active }: MembershipRequest| {
        MembershipChange { id, of_table, of_id, active }
    };
    let change = ReferenceChange {
        table: table.clone(),
        rows: order.rows.into_iter().map(row).collect(),
        memberships: order.memberships.into_iter().map(membership).collect(),
        changed_by: caller.user_id.to_string(),
        reason: check_reason(&order.reason)?,
        changed_at_us: app.service.clock.now_us(),
    };
    let own = app.clone();
    let changing = async move {
        let ledger = &own.service.ledger;
        let plan = match query.dry_run {
            true => ledger.reference().try_apply(&change, expected).await,
            false => ledger.reference().apply_upon(&change, expected).await,
        };
        let plan = plan.map_err(refused)?.ok_or_else(|| {
            let detail = "the table was changed since you read it; read it again, and change that";
            Problem::new(Slug::VersionConflict, detail).of_field("If-Match")
        })?;
        if !query.dry_run
            && let Err(error) = own.service.allocator.refresh_catalog().await
        {
            tracing::warn!(%error, "a change of a table is saved, and not served by here yet");
        }
        if !query.dry_run {
            until_known(&own).await;
        }
        Ok::<_, Problem>(plan)
    };
    let plan = app.work_permits.check(&caller, changing).await?;
    Ok(axum::Json(answer(table, plan, query.dry_run)))
}

/// A change that the rules of reference data refuse names its mistakes, each with its row.
fn refused(error: LedgerError) -> Problem {
    match error {
        LedgerError::Refused(mistakes) => Problem::field("rows", mistakes),
        other => Problem::of_change(other),
    }
}

fn answer(table: String, plan: ReferencePlan, dry_run: bool) -> ReferenceAnswer {
    let rows = plan.rows.into_iter().map(|(row, effect)| {
        let ReferenceRow { id, code, name, active, .. } = row;
        let (effect, from) = words(effect);
        ChangedRow { id, code, name, active, effect, from }
    });
    let rows: Vec<ChangedRow> = rows.collect();
    let memberships = plan.memberships.into_iter().map(|(membership, effect)| ChangedMembership {
        membership: shown(membership),
        effect: words(effect).0,
    });
    let memberships: Vec<ChangedMembership> = memberships.collect();
    let changes = |effect: &'static str| effect != "unchanged";
    let is_changed = rows.iter().any(|row| changes(row.effect))
        || memberships.iter().any(|membership| changes(membership.effect));
    ReferenceAnswer { table, saved: is_changed && !dry_run, rows, memberships }
}

/// An effect as a word, and the previous code.
fn words(effect: Effect) -> (&'static str, Option<String>) {
    match effect {
        Effect::Added => ("added", None),
        Effect::Renamed { from, .. } => ("renamed", Some(from)),
        Effect::Activated => ("activated", None),
        Effect::Deactivated => ("deactivated", None),
        Effect::Changed => ("changed", None),
        Effect::Unchanged => ("unchanged", None),
    }
}
