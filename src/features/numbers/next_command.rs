//! `numerator next`: joins as a node, takes a number or a range, prints it, drains and leaves.

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use crate::auth::COUNT_MAX;
use crate::config::Settings;
use crate::engine::allocator::Issued;
use crate::features::numbers::answer::{NumberAnswer, RangeAnswer};
use crate::features::numbers::inputs::InputArgs;
use crate::features::numbers::replacing::issue_by_command;
use crate::features::numbers::texts::Texts;
use crate::terminal::output::{must_print, must_print_json, say};
use crate::terminal::session::{refusal, with_service};
use crate::terminal::user::UserArg;

const EXAMPLES: &str = "Examples:
  numerator next SPO --date 2024-01-22
  numerator next SPO --count 10 --document order-7
  numerator next SPO --replaces SPO-20240122-001
  numerator next LETTER --project P --set ORIGINATOR=A --set RECIPIENT=B --json";

/// What to take.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
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
    /// Give a document that has a number already another one
    #[arg(long, requires = "document")]
    pub again: bool,
    /// Take it in the place of this void number, and for its document
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["count", "again"])]
    pub replaces: Option<String>,
    /// Who asks.
    #[command(flatten)]
    pub user: UserArg,
    /// Print everything about the allocation, as JSON
    #[arg(long)]
    pub json: bool,
}

/// A range with all its texts.
#[derive(Serialize)]
struct ExpandedRange<'a> {
    #[serde(flatten)]
    range: RangeAnswer<'a>,
    numbers: Vec<String>,
}

/// Takes the numbers and prints them.
///
/// # Errors
/// A refusal, with its slug; a service that cannot start; a stdout that cannot be written: the
/// error then names the taken numbers.
pub async fn run(settings: &Settings, args: NextArgs) -> anyhow::Result<()> {
    let mut request = args.inputs.request(args.document, args.count)?;
    request.again = args.again;
    request.user_id = args.user.actor()?;
    let issued = with_service(settings, async |service| match &args.replaces {
        None => service.allocator.issue(request).await.map_err(refusal),
        Some(number) => issue_by_command(service, request, number).await.map_err(refusal),
    })
    .await?;
    for key in &issued.new_counters {
        say(format_args!("the first number of a new counter: {key}"));
    }
    let printed = if args.count == 1 {
        print_number(&issued, args.json)
    } else {
        print_range(&issued, args.json)
    };
    printed.with_context(|| {
        let first = &issued.entry.number;
        let taken = match &issued.last_number {
            Some(last) => format!("{first} to {last} are"),
            None => format!("{first} is"),
        };
        format!("{taken} taken, but could not be printed whole")
    })
}

fn print_number(issued: &Issued, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        must_print_json(&NumberAnswer::of(issued))?;
    } else {
        must_print([&issued.entry.number])?;
    }
    Ok(())
}

fn print_range(issued: &Issued, as_json: bool) -> anyhow::Result<()> {
    let numbers = Texts::of(issued)?.collect::<Result<Vec<_>, _>>()?;
    if as_json {
        must_print_json(&ExpandedRange { range: RangeAnswer::of(issued), numbers })?;
    } else {
        must_print(numbers)?;
    }
    Ok(())
}
