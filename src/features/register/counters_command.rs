//! `numerator counters`: counters by what they count, with how full they are. Reads only.

use clap::Args;

use crate::config::Settings;
use crate::features::register::counters::{CounterAnswer, CounterQuery, find_counters};
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::{foresee_catalog, refusal};
use crate::terminal::words::table;

const EXAMPLES: &str = "Examples:
  numerator counters --series SPO
  numerator counters --project LCBP3-C2 --type LETTER --year 2025
  numerator counters --originator TEAM --year 2025 --json";

/// Which to list, and how.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CountersArgs {
    /// Which.
    #[command(flatten)]
    pub query: CounterQuery,
    /// List so many counters, by series, serial and key
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the counters that match.
///
/// # Errors
/// An invalid question, a ledger that cannot be reached, a closed stdout.
pub async fn run(settings: &Settings, args: CountersArgs) -> anyhow::Result<()> {
    let (ledger, catalog) = foresee_catalog(settings).await?;
    let CountersArgs { query, limit, json } = args;
    let found = find_counters(ledger, &catalog, query, limit).await.map_err(refusal)?;
    if json {
        print_json(&found)?;
    } else if found.counters.is_empty() {
        print(["no counters"])?;
    } else {
        print([page(&found.counters)])?;
        if let Some(next) = found.next {
            say(format_args!("there are more: --after {next}"));
        }
    }
    Ok(())
}

/// The counters for people.
fn page(counters: &[CounterAnswer]) -> String {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let mut table = table([
        "counter",
        "series",
        "serial",
        "key",
        "first",
        "value",
        "ceiling",
        "width",
        "last used",
    ]);
    for row in counters {
        let width = row.width_used.zip(row.width_max);
        table.add_row([
            row.counter_id.to_string(),
            or_dash(&row.series),
            row.serial.clone(),
            row.counter_key.clone(),
            row.first.clone(),
            or_dash(&row.value),
            row.ceiling.clone(),
            width.map_or_else(|| "-".into(), |(used, max)| format!("{used}/{max}")),
            or_dash(&row.last_used_at),
        ]);
    }
    table.to_string()
}
