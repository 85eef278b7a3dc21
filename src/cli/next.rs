//! `numerator next`: joins as a node, takes a number or a range, prints it, drains and leaves.

use clap::Args;
use serde::Serialize;

use super::inputs::InputArgs;
use super::output::{print, print_json};
use super::session::{refusal, with_service};
use crate::allocator::{COUNT_MAX, Issued};
use crate::config::Settings;
use crate::http::{NumberAnswer, RangeAnswer, Texts};

/// What to take.
#[derive(Clone, Debug, Args)]
pub struct NextArgs {
    /// What is to be numbered.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// Take so many numbers, a contiguous range of one counter; printed one per line
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=COUNT_MAX))]
    pub count: u64,
    /// The document: asking again for it gives its number again
    #[arg(long, value_name = "ID")]
    pub document: Option<String>,
    /// Print everything about the allocation, as JSON
    #[arg(long)]
    pub json: bool,
}

/// A range with all its texts.
#[derive(Serialize)]
struct ExpandedRange {
    #[serde(flatten)]
    range: RangeAnswer,
    numbers: Vec<String>,
}

/// Takes the numbers and prints them.
///
/// # Errors
/// A refusal, with its slug; a service that cannot start; a closed stdout.
pub async fn run(settings: &Settings, args: NextArgs) -> anyhow::Result<()> {
    let request = args.inputs.request(args.document, args.count)?;
    let issued = with_service(settings, async |service| {
        service.allocator.issue(request).await.map_err(refusal)
    })
    .await?;
    if args.count == 1 {
        return print_number(&issued, args.json);
    }
    let numbers = Texts::of(&issued)?.collect::<Result<Vec<_>, _>>()?;
    if args.json {
        print_json(&ExpandedRange { range: RangeAnswer::of(&issued), numbers })?;
    } else {
        print(numbers)?;
    }
    Ok(())
}

fn print_number(issued: &Issued, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        print_json(&NumberAnswer::of(issued))?;
    } else {
        print([&issued.entry.number])?;
    }
    Ok(())
}
