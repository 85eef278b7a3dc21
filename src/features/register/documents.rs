//! `GET /api/v1/documents/{documentId}/numbers`: all numbers of a document, oldest first, each with
//! its revisions; among them the ranges of which a number is assigned to it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use crate::features::numbers::request;
use crate::features::register::lookups::archived_in;
use crate::features::register::revisions::with_revisions;
use crate::features::register::rows::{FoundAs, FoundRow, NumberRow, seen_by};
use crate::ledger::{AssignedNumber, JournalFilter, LedgerError, Position, SharedLedger, ValueOf};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::body::QueryOf;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// Numbers of a page, at most and by default.
const PAGE_MAX: u32 = 100;

/// The rule for a limit.
const LIMIT_WANTED: &str = "must be a whole number from 1 to 100";
const _: () = assert!(PAGE_MAX == 100);

/// Which page.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The `next` of the page before.
    #[serde(default, deserialize_with = "position")]
    #[param(value_type = Option<String>)]
    after: Option<Position>,
    /// At most so many numbers, 1 to 100; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let limit = String::deserialize(deserializer)?.parse().ok();
    let limit = limit.filter(|limit| (1..=PAGE_MAX).contains(limit));
    limit.map(Some).ok_or_else(|| de::Error::custom(LIMIT_WANTED))
}

/// Reads a position; a refusal states the source of positions.
fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Position>, D::Error> {
    let text = String::deserialize(deserializer)?;
    read_position(&text).map(Some).ok_or_else(|| de::Error::custom("must be a page's `next`"))
}

/// The text of a position; callers are instructed not to interpret it.
pub(crate) fn position_text(position: &Position) -> String {
    let Position { issued_at_us, of } = position;
    format!("{issued_at_us}.{}.{}", of.counter_id, of.value)
}

pub(crate) fn read_position(text: &str) -> Option<Position> {
    let mut parts = text.split('.').map(str::parse);
    let mut next = || parts.next()?.ok();
    let issued_at_us = next()?;
    let of = ValueOf { counter_id: next()?, value: next()? };
    parts.next().is_none().then_some(Position { issued_at_us, of })
}

/// A page of a document's numbers, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentNumbers<'a> {
    /// The document.
    document_id: &'a str,
    /// Its numbers.
    numbers: Vec<NumberRow<'a>>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Archive files that have numbers of the document, where the journal has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archived_in: Vec<String>,
}

/// Lists the numbers of a document. A document that the journal has not heard of has none.
#[utoipa::path(
    get, path = "", tag = "documents",
    params(
        ("documentId" = String, Path, description = "At most 255 characters, percent-encoded"),
        PageQuery,
    ),
    responses(
        (status = 200, body = DocumentNumbers),
    )
)]
pub(crate) async fn list_document_numbers(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    document_id: Result<Path<String>, PathRejection>,
    QueryOf(PageQuery { after, limit }): QueryOf<PageQuery>,
) -> Result<Response, Problem> {
    let document_id = request::document_of(document_id)?;
    let page = limit.unwrap_or(PAGE_MAX);
    caller.holdings.must_have_room_for_an_answer()?;
    let (document, identity) = (document_id.clone(), Arc::clone(&caller.identity));
    let shown = identity.row_visibility();
    let looking = app.read(&caller, |ledger| async move {
        // One row more than requested shows whether there is another page. Only shown rows count,
        // so that the page's `next` reveals nothing else.
        let mut rows =
            ledger.register().numbers_shown_of(&document, after, page + 1, &shown).await?;
        let mut next = None;
        if rows.len() > page as usize {
            rows.truncate(page as usize);
            next = rows.last().and_then(Position::of).as_ref().map(position_text);
        }
        let mut rows = with_revisions(&ledger, rows).await?;
        mean_assigned(&ledger, &document, &mut rows).await?;
        Ok::<_, LedgerError>((seen_by(&ledger, &identity, rows).await?, next))
    });
    let (mut rows, next) = looking.await?;
    rows.retain(|found| caller.sees(&found.row));
    let archived_in = if rows.is_empty() && after.is_none() && caller.sees_everything() {
        let asked = JournalFilter { document_id: Some(document_id.clone()), ..Default::default() };
        let looking =
            app.read(&caller, |ledger| async move { archived_in(&ledger, None, &asked).await });
        looking.await?
    } else {
        Vec::new()
    };
    let answering = move || {
        let (document_id, numbers) = (&*document_id, NumberRow::all_of(&rows));
        axum::Json(DocumentNumbers { document_id, numbers, next, archived_in }).into_response()
    };
    compute(answering).await
}

/// Has the rows of ranges show the number that is assigned to the document.
async fn mean_assigned(
    ledger: &SharedLedger,
    document_id: &str,
    rows: &mut [FoundRow],
) -> Result<(), LedgerError> {
    let is_of_it =
        |found: &FoundRow| found.row.entry.record.document_id.as_deref() == Some(document_id);
    if rows.iter().all(is_of_it) {
        return Ok(());
    }
    let numbers = ledger.life().assigned_to(document_id).await?;
    for found in rows.iter_mut().filter(|found| !is_of_it(found)) {
        let Some(row) = ValueOf::number(&found.row) else { continue };
        let is_its = |number: &&AssignedNumber| {
            (number.counter_id, number.row_first) == (row.counter_id, row.value)
        };
        let value = numbers.iter().find(is_its).and_then(|number| number.value.try_into().ok());
        if let Some(value) = value {
            let life = std::mem::take(&mut found.life);
            found.life = life.of_value(ledger, &found.row, value).await?;
            found.found_as = Some(FoundAs::Range);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_survives_its_text_and_nothing_else_is_one() {
        let of = ValueOf { counter_id: 7, value: 42 };
        let position = Position { issued_at_us: 1_700_000_000_000_000, of };
        assert_eq!(read_position(&position_text(&position)), Some(position));
        for text in ["", "1.2", "1.2.3.4", "1.2.x", "1..3", "1.2.99999999999999999999"] {
            assert_eq!(read_position(text), None, "{text}");
        }
    }
}
