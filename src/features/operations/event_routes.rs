//! `GET /api/v1/document-numbering/events`: events that the ledger recorded besides numbers.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use crate::ledger::{EVENT_KINDS, Event, EventFilter, EventPlace};
use crate::web::App;
use crate::web::admission::json;
use crate::web::body::QueryOf;
use crate::web::body::must_be_storable;
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::paging::limit;
use crate::web::paging::rows_of_page;
use crate::web::problem::Problem;
use crate::web::query_time::read_time;

/// What was accepted, in words, which show the numbers of the other series.
const OF_ANOTHER: &str = "ambiguity";

/// Which events to list; all that is given must match.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// What: `recovery`, `series-changed`, `import`, …
    kind: Option<String>,
    /// Code of the series that it names.
    series: Option<String>,
    /// Noted at or after: a date (UTC) or a date-time with offset.
    from: Option<String>,
    /// Noted before: a date (UTC) or a date-time with offset.
    until: Option<String>,
    /// The `next` of the page before.
    #[serde(default, deserialize_with = "place")]
    #[param(value_type = Option<String>)]
    after: Option<EventPlace>,
    /// At most so many events, 1 to 1,000; 100 without it.
    #[serde(default, deserialize_with = "limit")]
    limit: Option<u32>,
}

fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EventPlace>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(de::Error::custom)
}

/// Events, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventList {
    events: Vec<EventAnswer>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Something that the ledger noted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EventAnswer {
    /// When.
    #[schema(format = DateTime)]
    pub at: String,
    /// What.
    pub event: String,
    /// Of which partition.
    pub partition: Option<u32>,
    /// In which epoch of it.
    pub epoch: Option<u64>,
    /// Which node saw it.
    pub node_id: Option<String>,
    /// The rest, by the kind of event.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
    /// Its place in the list, to go on behind it.
    pub position: String,
}

impl EventAnswer {
    /// The answer for an event and its place.
    #[must_use]
    pub fn of((place, event): (EventPlace, Event)) -> Self {
        EventAnswer {
            at: instant(event.at_us),
            event: event.kind,
            partition: event.partition,
            epoch: event.epoch,
            node_id: event.node_id.map(|node| node.to_string()),
            detail: event.detail,
            position: place.to_string(),
        }
    }
}

impl EventAnswer {
    /// Leaves out what may name another series than that which the event is of.
    fn name_no_other(&mut self) {
        if let Some(detail) = self.detail.as_object_mut() {
            detail.remove(OF_ANOTHER);
        }
    }
}

/// Refuses a period that ends before it begins, or holds nothing: its end is not in it.
pub(crate) fn check_period(from_us: Option<i64>, until_us: Option<i64>) -> Result<(), Problem> {
    if from_us.zip(until_us).is_some_and(|(from, until)| until <= from) {
        let reason = "must be after `from`, for it is not in the period itself: the day 2026-02-01 \
                      is from=2026-02-01 and until=2026-02-02";
        return Err(Problem::field("until", reason));
    }
    Ok(())
}

/// Lists what the ledger noted beside the numbers, newest first, page by page.
#[utoipa::path(
    get,
    path = "",
    tag = "numbers",
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
    caller.must_reach_events(query.series.as_deref())?;
    let EventQuery { kind, series, from, until, after, limit } = query;
    must_be_storable(&[("series", &series)])?;
    if kind.as_deref().is_some_and(|kind| !EVENT_KINDS.contains(&kind)) {
        let known = EVENT_KINDS.join(", ");
        return Err(Problem::field("kind", format!("must be one of {known}")));
    }
    let limit = rows_of_page(limit)?;
    let from_us = from.map(|text| read_time("from", &text)).transpose()?;
    let until_us = until.map(|text| read_time("until", &text)).transpose()?;
    check_period(from_us, until_us)?;
    let filter = EventFilter { kind, series, from_us, until_us, after, limit };
    let looking = app.read(&caller, |ledger| async move { ledger.find_events(&filter).await });
    let found = looking.await?;
    let last = found.last().filter(|_| found.len() == limit as usize);
    let next = last.map(|(place, _)| place.to_string());
    let mut events: Vec<EventAnswer> = found.into_iter().map(EventAnswer::of).collect();
    if !caller.reach().is_everything() {
        events.iter_mut().for_each(EventAnswer::name_no_other);
    }
    json(EventList { events, next }).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_narrowed_is_not_told_with_which_series_an_ambiguity_was_accepted() {
        let detail = serde_json::json!({ "code": "A", "ambiguity": "B-1 of series B" });
        let (kind, place) = ("ambiguity-accepted".to_owned(), EventPlace { at_us: 0, event_id: 1 });
        let (partition, epoch, node_id) = (None, None, None);
        let event = Event { at_us: 0, kind, partition, epoch, node_id, detail };
        let mut answer = EventAnswer::of((place, event));
        answer.name_no_other();
        assert_eq!(answer.detail, serde_json::json!({ "code": "A" }));
    }
}
