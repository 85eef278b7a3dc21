//! `numerator events`: what the ledger noted beside the numbers, for an operator or auditor (R5.2).
//! Reads only.

use clap::Args;
use serde::Serialize;

use super::output::{print, print_json};
use super::session::open_ledger;
use super::words::{moment, table};
use crate::config::Settings;
use crate::ledger::Event;

/// How many to list, and how.
#[derive(Clone, Debug, Args)]
pub struct EventsArgs {
    /// List so many events, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One event.
#[derive(Debug, Serialize)]
struct EventAnswer {
    at: String,
    event: String,
    partition: Option<u32>,
    epoch: Option<u64>,
    /// Which node saw it.
    node_id: Option<String>,
    /// The rest, by the kind of event.
    detail: serde_json::Value,
}

impl EventAnswer {
    fn of(event: Event) -> Self {
        EventAnswer {
            at: moment(event.at_us),
            event: event.kind,
            partition: event.partition,
            epoch: event.epoch,
            node_id: event.node_id.map(|node| node.to_string()),
            detail: event.detail,
        }
    }
}

/// Prints the newest events.
///
/// # Errors
/// A ledger that cannot be reached, a closed stdout.
pub async fn run(settings: &Settings, args: &EventsArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let events = ledger.events(args.limit).await?;
    let events: Vec<EventAnswer> = events.into_iter().map(EventAnswer::of).collect();
    if args.json {
        print_json(&events)?;
    } else if events.is_empty() {
        print(["no events"])?;
    } else {
        print([page(&events)])?;
    }
    Ok(())
}

/// The events for people.
fn page(events: &[EventAnswer]) -> String {
    fn or_dash(value: Option<impl ToString>) -> String {
        value.map_or_else(|| "-".into(), |value| value.to_string())
    }
    let mut table = table(["at", "event", "partition", "epoch", "detail"]);
    for row in events {
        table.add_row([
            row.at.clone(),
            row.event.clone(),
            or_dash(row.partition),
            or_dash(row.epoch),
            row.detail.to_string(),
        ]);
    }
    table.to_string()
}
