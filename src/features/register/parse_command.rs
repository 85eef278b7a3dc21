//! `numerator parse`: reads a number back into its parts, and says where it is void. Does not say
//! whether it was issued.

use std::sync::Arc;

use clap::Args;
use unicode_normalization::UnicodeNormalization as _;

use crate::config::Settings;
use crate::engine::allocator::{AllocError, Catalog, ReadingError};
use crate::features::register::lookups::{ReadingAnswer, look_up};
use crate::features::register::rows::FoundRow;
use crate::ledger::{JournalFilter, LedgerError, SharedLedger};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{clock, foresee_catalog, refusal};

const EXAMPLES: &str = "Examples:
  numerator parse SPO-20240122-001
  numerator parse SPO SPO-20240122-001 --json";

/// What to parse.
#[derive(Clone, Debug, Args)]
#[command(allow_missing_positional = true)]
#[command(after_help = EXAMPLES)]
pub struct ParseArgs {
    /// Document type; with one, only the series that serve it are asked
    #[arg(value_name = "TYPE")]
    pub type_code: Option<String>,
    /// The number
    pub number: String,
    /// Project
    #[arg(long, requires = "type_code")]
    pub project: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A reading for people: a name and its value on each line.
fn lines(reading: &ReadingAnswer) -> Vec<String> {
    let mut lines = vec![format!("series {}", reading.code)];
    lines.push(format!("version {}", reading.version));
    lines.push(format!("type {}", reading.types.join(" or ")));
    if reading.ambiguous {
        lines.push("can be read in more than one way; the template is ambiguous".into());
    }
    lines.extend(reading.date.iter().map(|date| format!("date {date}")));
    lines.extend(reading.fiscal_year.iter().map(|year| format!("fiscal-year {year}")));
    lines.extend(reading.time.iter().map(|time| format!("time {time}")));
    if let Some(id) = &reading.snowflake {
        lines.push(format!("SNOWFLAKE {}", id.id));
        lines.push(format!("snowflake-time {}", id.time));
        lines.push(format!("snowflake-node {}", id.node_number));
        lines.push(format!("snowflake-serial {}", id.serial));
    }
    lines.extend(reading.variables.iter().map(|(name, value)| format!("{name} {value}")));
    lines.extend(reading.serials.iter().map(|serial| format!("{} {}", serial.name, serial.value)));
    lines.extend(reading.status.map(|status| format!("status {}", status.word())));
    lines
}

/// Prints the parts of a number, as read by each active series that can read it.
///
/// # Errors
/// A type without a series, a text that is not a number of it, or of any: with where it differs.
pub async fn run(settings: &Settings, args: ParseArgs) -> anyhow::Result<()> {
    let (ledger, catalog) = foresee_catalog(settings).await?;
    let catalog = Arc::new(catalog);
    catalog.know_earlier(&ledger).await?;
    let readings = match &args.type_code {
        Some(type_code) => {
            let (project, now) = (args.project.as_deref(), clock().now());
            let read = catalog.readings_as(type_code, project, &args.number, now);
            read.map_err(|error| match error {
                ReadingError::NotServed(error) => refusal(AllocError::from(error)),
                error @ ReadingError::Departs(_) => error.into(),
            })?
        }
        None => {
            let read = catalog.readings(&args.number);
            read.map_err(|unread| anyhow::anyhow!("{:?}: {unread}", args.number))?
        }
    };
    let rows = rows_of(&ledger, &catalog, &args.number).await?;
    let answer = |reading| ReadingAnswer::of(reading).with_status(&rows);
    let readings: Vec<_> = readings.into_iter().map(answer).collect();
    if args.json {
        print_json(&readings)?;
    } else {
        // A blank line between two.
        let texts: Vec<String> = readings.iter().map(|reading| lines(reading).join("\n")).collect();
        print([texts.join("\n\n")])?;
    }
    Ok(())
}

/// The rows of numbers with this text, as far as they were searched: what is not found is not known
/// to be void.
async fn rows_of(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    number: &str,
) -> Result<Vec<FoundRow>, LedgerError> {
    let number: String = number.nfc().collect();
    let filter = JournalFilter { number: Some(number.clone()), ..JournalFilter::default() };
    match look_up(ledger, catalog, &number, &filter, |_| true).await?.seen(|_| true) {
        Err(LedgerError::Unsearched(_)) => Ok(Vec::new()),
        found => found,
    }
}
