//! `numerator parse`: reads a number back into its parts (R2.8). Does not look whether it was
//! issued.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::output::{print, print_json};
use super::session::{open_catalog, refusal};
use crate::allocator::AllocError;
use crate::config::Settings;
use crate::number::Parsed;

/// What to parse.
#[derive(Clone, Debug, Args)]
pub struct ParseArgs {
    /// Document type
    #[arg(value_name = "TYPE")]
    pub type_code: String,
    /// The number
    pub number: String,
    /// Project
    #[arg(long)]
    pub project: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The parts of a number.
#[derive(Debug, Serialize)]
struct PartsAnswer {
    code: String,
    variables: BTreeMap<String, String>,
    date: Option<String>,
    serials: Vec<SerialPart>,
}

/// A serial read from a number.
#[derive(Debug, Serialize)]
struct SerialPart {
    name: String,
    value: String,
}

impl PartsAnswer {
    fn of(code: &str, parsed: Parsed) -> Self {
        let part = |name: String, value: u64| SerialPart { name, value: value.to_string() };
        PartsAnswer {
            code: code.into(),
            variables: parsed.variables,
            date: parsed.date,
            serials: parsed.serials.into_iter().map(|read| part(read.name, read.value)).collect(),
        }
    }

    /// The same for people: a name and its value on each line.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("series {}", self.code)];
        lines.extend(self.date.iter().map(|date| format!("date {date}")));
        lines.extend(self.variables.iter().map(|(name, value)| format!("{name} {value}")));
        lines.extend(self.serials.iter().map(|serial| format!("{} {}", serial.name, serial.value)));
        lines
    }
}

/// Prints the parts of a number.
///
/// # Errors
/// A type without a series, a text that is not a number of it.
pub async fn run(settings: &Settings, args: ParseArgs) -> anyhow::Result<()> {
    let catalog = open_catalog(settings).await?;
    let served = catalog
        .choose(&args.type_code, args.project.as_deref())
        .map_err(AllocError::from)
        .map_err(refusal)?;
    let parsed = served.series.parse(&args.number)?;
    let parts = PartsAnswer::of(&served.version.definition.code, parsed);
    if args.json {
        print_json(&parts)?;
    } else {
        print(parts.lines())?;
    }
    Ok(())
}
