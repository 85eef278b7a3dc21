//! Which events of the ledger are listed, as a query or a command line says it, and how each is
//! shown.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use crate::ledger::{EVENT_KINDS, Event, EventFilter, EventPlace};
use crate::web::body::must_be_storable;
use crate::web::instant::instant;
use crate::web::paging::limit;
use crate::web::problem::Problem;
use crate::web::query_time::read_time;

/// The accepted ambiguity, in words, which show the numbers of the other series.
const OF_ANOTHER: &str = "ambiguity";

/// Which events to list; all that is given must match.
#[derive(Clone, Debug, Default, Args, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    /// What: `recovery`, `series-changed`, `import`, …
    #[arg(long, value_parser = PossibleValuesParser::new(EVENT_KINDS), hide_possible_values = true)]
    #[arg(help = "Only of this kind, such as `recovery` or `series-changed`")]
    kind: Option<String>,
    /// Code of the series that it names.
    #[arg(long, value_name = "CODE", help = "Only those that name this series")]
    pub(super) series: Option<String>,
    /// Noted at or after: a date (UTC) or a date-time with offset.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| time("from", text))]
    #[arg(help = "Only from this date (UTC) or date-time with offset on")]
    from: Option<String>,
    /// Noted before: a date (UTC) or a date-time with offset.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| time("until", text))]
    #[arg(help = "Only before this date (UTC) or date-time with offset")]
    until: Option<String>,
    /// The `next` of the page before.
    #[arg(long, value_name = "POSITION")]
    #[arg(help = "Go on behind the event with this `position` (`--json` shows it)")]
    #[serde(default, deserialize_with = "place")]
    #[param(value_type = Option<String>)]
    after: Option<EventPlace>,
    /// At most so many events, 1 to 1,000; 100 without it.
    #[arg(skip)]
    #[serde(default, deserialize_with = "limit")]
    pub(super) limit: Option<u32>,
}

impl EventQuery {
    /// The filter for the ledger, for so many events.
    ///
    /// # Errors
    /// A field that nothing can match, a kind that there is not, a period that ends before it
    /// begins.
    pub(super) fn filter(self, limit: u32) -> Result<EventFilter, Problem> {
        let EventQuery { kind, series, from, until, after, limit: _ } = self;
        must_be_storable(&[("series", &series)])?;
        if kind.as_deref().is_some_and(|kind| !EVENT_KINDS.contains(&kind)) {
            let known = EVENT_KINDS.join(", ");
            return Err(Problem::field("kind", format!("must be one of {known}")));
        }
        let from_us = from.map(|text| read_time("from", &text)).transpose()?;
        let until_us = until.map(|text| read_time("until", &text)).transpose()?;
        check_period(from_us, until_us)?;
        Ok(EventFilter { kind, series, from_us, until_us, after, limit })
    }
}

/// A time as it is written, where it is one.
fn time(field: &'static str, text: &str) -> Result<String, String> {
    let read = read_time(field, text).map_err(|problem| problem.to_string());
    read.map(|_| text.to_owned())
}

fn place<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EventPlace>, D::Error> {
    String::deserialize(deserializer)?.parse().map(Some).map_err(de::Error::custom)
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
    /// Leaves out everything that may name another series than the event's own.
    pub(super) fn name_no_other(&mut self) {
        if let Some(detail) = self.detail.as_object_mut() {
            detail.remove(OF_ANOTHER);
        }
    }
}

/// Refuses a period that ends before it begins, or is empty: its end is exclusive.
fn check_period(from_us: Option<i64>, until_us: Option<i64>) -> Result<(), Problem> {
    if from_us.zip(until_us).is_some_and(|(from, until)| until <= from) {
        let reason = "must be after `from`, for it is not in the period itself: the day 2026-02-01 \
                      is from=2026-02-01 and until=2026-02-02";
        return Err(Problem::field("until", reason));
    }
    Ok(())
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
