//! `numerator parse`: reads a number back into its parts (R2.8). Does not look whether it was
//! issued.

use anyhow::bail;
use clap::Args;

use super::output::{print, print_json};
use super::session::{open_catalog, refusal};
use crate::allocator::{AllocError, Catalog, Reading};
use crate::config::Settings;
use crate::http::ReadingAnswer;
use crate::number::Inputs;

/// What to parse.
#[derive(Clone, Debug, Args)]
#[command(allow_missing_positional = true)]
pub struct ParseArgs {
    /// Document type; without one, every series that can read the number is listed
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
    lines
}

/// Prints the parts of a number, as one series reads it or as each does that can.
///
/// # Errors
/// A type without a series, a text that is not a number of it, or of any.
pub async fn run(settings: &Settings, args: ParseArgs) -> anyhow::Result<()> {
    let catalog = open_catalog(settings).await?;
    if let Some(type_code) = &args.type_code {
        let reading = ReadingAnswer::of(read_as(&catalog, type_code, &args)?);
        if args.json {
            print_json(&reading)?;
        } else {
            print(lines(&reading))?;
        }
        return Ok(());
    }
    let readings: Vec<_> =
        catalog.readings(&args.number).into_iter().map(ReadingAnswer::of).collect();
    if readings.is_empty() {
        bail!(
            "no active series can read {:?}; name the type to see where it departs: numerator \
             parse TYPE NUMBER",
            args.number
        );
    }
    if args.json {
        print_json(&readings)?;
    } else {
        // A blank line between two.
        let texts: Vec<String> = readings.iter().map(|reading| lines(reading).join("\n")).collect();
        print([texts.join("\n\n")])?;
    }
    Ok(())
}

/// The number as the series of a type reads it.
fn read_as(catalog: &Catalog, type_code: &str, args: &ParseArgs) -> anyhow::Result<Reading> {
    let (type_code, project) = (type_code.to_owned(), args.project.clone());
    let served = catalog
        .choose(&Inputs { type_code, project, ..Inputs::default() })
        .map_err(AllocError::from)
        .map_err(refusal)?;
    let parsed = served.series.parse(&args.number)?;
    let types = served.series.types_of(&parsed);
    Ok(Reading { served: served.clone(), types, parsed: Some(parsed) })
}
