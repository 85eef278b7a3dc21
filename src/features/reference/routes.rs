//! `GET /api/v1/document-numbering/reference` and below: tables of ids and codes, and memberships,
//! as far as the caller sees them.

use std::collections::BTreeSet;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use numbering::{Membership, ReferenceData, ReferenceRow, SeriesDefinition};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::engine::allocator::Catalog;
use crate::web::App;
use crate::web::body::QueryOf;
use crate::web::etag::{tagged_at, tagged_by_bytes};
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::{Problem, Slug};

/// Which tables to list.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TableQuery {
    /// The `next` of the page before.
    after: Option<String>,
    /// At most so many tables, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

/// Which rows to list; all that is given must match.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RowQuery {
    /// The code that a row has, or had.
    code: Option<String>,
    /// Whether new numbers may use it.
    active: Option<bool>,
    /// The `next` of the page before.
    after: Option<String>,
    /// At most so many rows, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

/// Which memberships to list; all that is given must match.
#[derive(Clone, Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MembershipQuery {
    /// Id of the member.
    id: Option<String>,
    /// Id of what it belongs to.
    of_id: Option<String>,
    /// The `next` of the page before.
    after: Option<String>,
    /// At most so many memberships, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

/// Tables by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TableList {
    tables: Vec<TableAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A table of reference data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TableAnswer {
    /// Its name.
    table: String,
    /// How many rows it has.
    rows: usize,
    /// How many of them new numbers may use.
    active: usize,
}

/// Rows of a table by id.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowList {
    table: String,
    rows: Vec<RowAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A row of reference data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RowAnswer {
    /// Its id, for ever.
    id: String,
    /// Its code now.
    code: String,
    /// Its display name.
    name: String,
    /// Whether new numbers may use it.
    active: bool,
    /// The codes that it had: they are its own for ever.
    former_codes: Vec<String>,
}

/// Memberships of a table's rows, by member.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipList {
    table: String,
    memberships: Vec<MembershipAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A membership.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipAnswer {
    /// Id of the member.
    id: String,
    /// Table of what it belongs to.
    of_table: String,
    /// Id of what it belongs to.
    of_id: String,
    /// Whether it still does.
    active: bool,
}

/// The reference data that a caller is shown: a narrowed caller sees tables that its series refer
/// to, and its own rows in tables of projects.
struct TableVisibility<'c> {
    caller: &'c Caller,
    tables: BTreeSet<&'c str>,
    projects: BTreeSet<&'c str>,
}

impl<'c> TableVisibility<'c> {
    fn of(catalog: &'c Catalog, caller: &'c Caller) -> Self {
        let tables_of = |definition: &'c SeriesDefinition| {
            let own = [&definition.references.project, &definition.references.type_code];
            let of_variables = definition.variables.values().map(|variable| &variable.reference);
            own.into_iter().chain(of_variables).filter_map(Option::as_deref)
        };
        let seen = catalog.all().filter(|served| caller.sees_series(&served.version));
        let tables = seen.flat_map(|served| tables_of(&served.version.definition)).collect();
        let all = catalog.all().map(|served| &served.version.definition);
        let projects = all.filter_map(|it| it.references.project.as_deref()).collect();
        TableVisibility { caller, tables, projects }
    }

    fn has_table(&self, table: &str) -> bool {
        self.caller.scope().is_everything() || self.tables.contains(table)
    }

    fn has(&self, row: &ReferenceRow) -> bool {
        self.has_table(&row.table)
            && (!self.projects.contains(&*row.table)
                || self.caller.scope().has_project(Some(&row.code)))
    }

    /// A list with its tag. A narrowed caller changes no table, and must not learn of changes that
    /// it is not shown: its tag omits the stamp of all tables.
    fn tagged(&self, catalog: &Catalog, headers: &HeaderMap, list: &impl Serialize) -> Response {
        match self.caller.scope().is_everything() {
            true => tagged_at(catalog.stamp().reference(), headers, list),
            false => tagged_by_bytes(headers, list),
        }
    }

    fn has_membership(&self, data: &ReferenceData, membership: &Membership) -> bool {
        let Membership { table, id, of_table, of_id, .. } = membership;
        let ends = [(table, id), (of_table, of_id)];
        ends.iter().all(|(table, id)| data.by_id(table, id).is_some_and(|row| self.has(row)))
    }
}

/// A page of the results in their order, and whether there is more.
fn page<T>(found: impl Iterator<Item = T>, limit: Option<u32>) -> Result<(Vec<T>, bool), Problem> {
    let limit = rows_of_page(limit)? as usize;
    let mut page: Vec<T> = found.take(limit + 1).collect();
    let is_cut = page.len() > limit;
    page.truncate(limit);
    Ok((page, is_cut))
}

pub(crate) fn table_named(table: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let refused = |refusal: PathRejection| Problem::field("table", refusal.body_text());
    table.map(|Path(table)| table).map_err(refused)
}

fn must_have(
    data: &ReferenceData,
    visibility: &TableVisibility<'_>,
    table: &str,
) -> Result<(), Problem> {
    if data.has(table) && visibility.has_table(table) {
        return Ok(());
    }
    Err(Problem::new(Slug::TableNotFound, format!("no table has the name {table:?}")))
}

/// Lists the tables of reference data by name, page by page.
#[utoipa::path(
    get, path = "", tag = "reference",
    params(TableQuery),
    responses(
        (status = 200, body = TableList, headers(("ETag" = String))),
        (status = 304, description = "The list is what `If-None-Match` names"),
    )
)]
pub(crate) async fn list_tables(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<TableQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (catalog, by) = (app.service.allocator.catalog(), caller.clone());
    app.list(&caller, move || tables_of(&catalog, &by, &query, &headers)).await
}

fn tables_of(
    catalog: &Catalog,
    caller: &Caller,
    query: &TableQuery,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let (data, visibility) = (catalog.reference(), TableVisibility::of(catalog, caller));
    let after = query.after.as_deref();
    let names: BTreeSet<&str> = data.tables().filter(|name| visibility.has_table(name)).collect();
    let found = names.into_iter().filter(|name| after.is_none_or(|after| *name > after));
    let (names, is_cut) = page(found, query.limit)?;
    let next = names.last().filter(|_| is_cut).map(|&name| name.to_owned());
    let table = |name: &str| {
        let rows: Vec<&ReferenceRow> = data.rows(name).filter(|row| visibility.has(row)).collect();
        let active = rows.iter().filter(|row| row.active).count();
        TableAnswer { table: name.to_owned(), rows: rows.len(), active }
    };
    let tables = names.into_iter().map(table).collect();
    Ok(visibility.tagged(catalog, headers, &TableList { tables, next }))
}

/// Lists the rows of a table by id, page by page.
#[utoipa::path(
    get, path = "", tag = "reference",
    params(("table" = String, Path), RowQuery),
    responses(
        (status = 200, body = RowList, headers(("ETag" = String))),
        (status = 304, description = "The list is what `If-None-Match` names"),
    )
)]
pub(crate) async fn list_rows(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    table: Result<Path<String>, PathRejection>,
    QueryOf(query): QueryOf<RowQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (table, catalog) = (table_named(table)?, app.service.allocator.catalog());
    let by = caller.clone();
    app.list(&caller, move || rows_of(&catalog, &by, table, query, &headers)).await
}

fn rows_of(
    catalog: &Catalog,
    caller: &Caller,
    table: String,
    query: RowQuery,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let (data, visibility) = (catalog.reference(), TableVisibility::of(catalog, caller));
    must_have(data, &visibility, &table)?;
    let code: Option<String> = query.code.map(|code| code.nfc().collect());
    let is_asked_for = |row: &&ReferenceRow| {
        let has = |code: &String| row.code == *code || row.former_codes.contains(code);
        code.as_ref().is_none_or(has)
            && query.active.is_none_or(|active| row.active == active)
            && query.after.as_ref().is_none_or(|after| row.id > *after)
            && visibility.has(row)
    };
    let mut found: Vec<&ReferenceRow> = data.rows(&table).filter(is_asked_for).collect();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    let (rows, is_cut) = page(found.into_iter(), query.limit)?;
    let next = rows.last().filter(|_| is_cut).map(|row| row.id.clone());
    let shown = |row: &ReferenceRow| {
        let ReferenceRow { id, code, name, active, former_codes, .. } = row.clone();
        RowAnswer { id, code, name, active, former_codes }
    };
    let rows = rows.into_iter().map(shown).collect();
    Ok(visibility.tagged(catalog, headers, &RowList { table, rows, next }))
}

/// Lists what the rows of a table are members of, by member, page by page.
#[utoipa::path(
    get, path = "", tag = "reference",
    params(("table" = String, Path), MembershipQuery),
    responses(
        (status = 200, body = MembershipList, headers(("ETag" = String))),
        (status = 304, description = "The list is what `If-None-Match` names"),
    )
)]
pub(crate) async fn list_memberships(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    table: Result<Path<String>, PathRejection>,
    QueryOf(query): QueryOf<MembershipQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (table, catalog) = (table_named(table)?, app.service.allocator.catalog());
    let by = caller.clone();
    app.list(&caller, move || memberships_of(&catalog, &by, table, &query, &headers)).await
}

fn memberships_of(
    catalog: &Catalog,
    caller: &Caller,
    table: String,
    query: &MembershipQuery,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let (data, visibility) = (catalog.reference(), TableVisibility::of(catalog, caller));
    must_have(data, &visibility, &table)?;
    // No id and no name of a table has a colon.
    let place = |it: &Membership| format!("{}:{}:{}", it.id, it.of_table, it.of_id);
    let is = |wanted: &Option<String>, id: &String| wanted.as_ref().is_none_or(|it| it == id);
    let own = data.memberships().iter().filter(|membership| {
        membership.table == table
            && is(&query.id, &membership.id)
            && is(&query.of_id, &membership.of_id)
            && visibility.has_membership(data, membership)
    });
    let mut found: Vec<(String, &Membership)> = own.map(|it| (place(it), it)).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let later = found.into_iter().filter(|(at, _)| query.after.as_ref().is_none_or(|it| at > it));
    let (memberships, is_cut) = page(later, query.limit)?;
    let next = memberships.last().filter(|_| is_cut).map(|(at, _)| at.clone());
    let memberships = memberships.into_iter().map(|(_, it)| shown(it.clone())).collect();
    Ok(visibility.tagged(catalog, headers, &MembershipList { table, memberships, next }))
}

pub(crate) fn shown(membership: Membership) -> MembershipAnswer {
    let Membership { id, of_table, of_id, active, .. } = membership;
    MembershipAnswer { id, of_table, of_id, active }
}
