//! `numerator events`: events that the ledger recorded besides numbers, for an operator or auditor.
//! Reads only.

use clap::Args;

use crate::config::Settings;
use crate::features::operations::event_query::{EventAnswer, EventQuery};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{open_ledger, refusal};
use crate::terminal::words::table;

const EXAMPLES: &str = "Examples:
  numerator events --limit 5
  numerator events --series SPO --from 2026-01-01
  numerator events --kind recovery --json";

/// Which to list, and how.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EventsArgs {
    /// Which.
    #[command(flatten)]
    pub query: EventQuery,
    /// List so many events, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the newest events that match.
///
/// # Errors
/// A period that ends before it begins, a ledger that cannot be reached, a closed stdout.
pub async fn run(settings: &Settings, args: EventsArgs) -> anyhow::Result<()> {
    let EventsArgs { query, limit, json } = args;
    let filter = query.filter(limit).map_err(refusal)?;
    let ledger = open_ledger(settings).await?;
    let events = ledger.events().find(&filter).await?;
    let events: Vec<EventAnswer> = events.into_iter().map(EventAnswer::of).collect();
    if json {
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
