//! `GET /api/v1/document-numbering/events`: events that the ledger recorded besides numbers.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::features::operations::event_query::{EventAnswer, EventQuery};
use crate::web::App;
use crate::web::admission::json;
use crate::web::body::QueryOf;
use crate::web::middleware::Caller;
use crate::web::paging::rows_of_page;
use crate::web::problem::Problem;

/// Events, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    events: Vec<EventAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists what the ledger noted beside the numbers, newest first, page by page.
#[utoipa::path(
    get, path = "", tag = "numbers",
    params(EventQuery),
    responses(
        (status = 200, body = EventList),
    )
)]
pub(crate) async fn list_events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<EventQuery>,
) -> Result<Response, Problem> {
    caller.events_must_be_in_scope(query.series.as_deref())?;
    let limit = rows_of_page(query.limit)?;
    let filter = query.filter(limit)?;
    let looking = app.read(&caller, |ledger| async move { ledger.events().find(&filter).await });
    let found = looking.await?;
    let last = found.last().filter(|_| found.len() == limit as usize);
    let next = last.map(|(place, _)| place.to_string());
    let mut events: Vec<EventAnswer> = found.into_iter().map(EventAnswer::of).collect();
    if !caller.scope().is_everything() {
        events.iter_mut().for_each(EventAnswer::name_no_other);
    }
    json(EventList { events, next }).await
}
