//! `numerator register`: registers a number that was given by hand.

use std::sync::Arc;

use clap::Args;
use tokio::task::JoinError;

use super::answer::RegistrationAnswer;
use super::registering::{RegisterOrder, Registration, register};
use crate::config::Settings;
use crate::features::lifecycle::naming::NumberName;
use crate::features::lifecycle::voiding::check_long_reason;
use crate::features::numbers::inputs::InputArgs;
use crate::terminal::output::{must_print, must_print_json, say};
use crate::terminal::session::{join_for_command, leave, refusal};
use crate::web::problem::Problem;

const EXAMPLES: &str = "Examples:
  numerator register INVOICE INV-2026-00017 --document shop/4711 --reason 'line was down'
  numerator register INVOICE 17/26-b --as-written --document shop/17 --reason 'of the old book'";

/// Which number, for what, and why.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RegisterArgs {
    /// What it was given for.
    #[command(flatten)]
    pub inputs: InputArgs,
    /// The number as it was given
    #[arg(value_name = "NUMBER")]
    pub number: String,
    /// The document that has it
    #[arg(long, value_name = "ID")]
    pub document: Option<String>,
    /// Why it was given by hand, in 10 characters or more
    #[arg(long)]
    pub reason: String,
    /// Keep the number as written, where no series could render it
    #[arg(long)]
    pub as_written: bool,
    /// Print everything about the registration, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Registers the number, and prints it.
///
/// # Errors
/// A refusal, with its slug; a service that cannot start; a ledger that cannot be reached.
pub async fn run(settings: &Settings, args: RegisterArgs) -> anyhow::Result<()> {
    let RegisterArgs { inputs, number, document, reason, as_written, json } = args;
    let reason = check_long_reason(&reason).map_err(refusal)?;
    let number = NumberName::of("number", &number).map_err(refusal)?.number;
    let (request, is_as_written) = (inputs.request(document, 1)?, as_written);
    let order = RegisterOrder { request, number, reason, is_as_written };
    let service = join_for_command(settings).await?;
    let own = Arc::clone(&service);
    // A task of its own: a command that is interrupted leaves no partition lent.
    let done = tokio::spawn(async move { register(&own, order).await }).await;
    leave(&service).await;
    let done = done.map_err(|error: JoinError| refusal(Problem::internal(&error)))?;
    print_answer(&done.map_err(|error| refusal(Problem::from(error)))?, json)
}

fn print_answer(done: &Registration, json: bool) -> anyhow::Result<()> {
    let answer = RegistrationAnswer::of(done);
    if json {
        return Ok(must_print_json(&answer)?);
    }
    if let Some(passed) = &answer.passed_over {
        let told = match passed.became {
            "returned" => "are the next to be issued",
            _ => "are never issued",
        };
        say(format_args!("{} to {} {told}", passed.first, passed.last));
    }
    must_print([answer.document_number])?;
    Ok(())
}
