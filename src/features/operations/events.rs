//! `numerator events`: events that the ledger recorded besides numbers, for an operator or auditor.
//! Reads only.

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::config::Settings;
use crate::features::operations::event_routes::{EventAnswer, check_period};
use crate::ledger::{EVENT_KINDS, EventFilter, EventPlace};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{open_ledger, refusal};
use crate::terminal::words::table;
use crate::web::query_time::read_time;

const EXAMPLES: &str = "Examples:
  numerator events --limit 5
  numerator events --series SPO --from 2026-01-01
  numerator events --kind recovery --json";

/// Which to list, and how.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EventsArgs {
    /// Only of this kind, such as `recovery` or `series-changed`
    #[arg(long, value_parser = PossibleValuesParser::new(EVENT_KINDS), hide_possible_values = true)]
    pub kind: Option<String>,
    /// Only those that name this series
    #[arg(long, value_name = "CODE")]
    pub series: Option<String>,
    /// Only from this date (UTC) or date-time with offset on
    #[arg(long, value_name = "TIME", value_parser = |text: &str| time("from", text))]
    pub from: Option<i64>,
    /// Only before this date (UTC) or date-time with offset
    #[arg(long, value_name = "TIME", value_parser = |text: &str| time("until", text))]
    pub until: Option<i64>,
    /// Go on behind the event with this `position` (`--json` shows it)
    #[arg(long, value_name = "POSITION")]
    pub after: Option<EventPlace>,
    /// List so many events, the newest first
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A time in microseconds of UTC.
fn time(field: &'static str, text: &str) -> Result<i64, String> {
    read_time(field, text).map_err(|problem| problem.to_string())
}

/// Prints the newest events that match.
///
/// # Errors
/// A period that ends before it begins, a ledger that cannot be reached, a closed stdout.
pub async fn run(settings: &Settings, args: EventsArgs) -> anyhow::Result<()> {
    check_period(args.from, args.until).map_err(refusal)?;
    let ledger = open_ledger(settings).await?;
    let EventsArgs { kind, series, from, until, after, limit, json } = args;
    let filter = EventFilter { kind, series, from_us: from, until_us: until, after, limit };
    let events = ledger.find_events(&filter).await?;
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
