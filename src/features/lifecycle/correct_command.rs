//! `numerator correct`: notes what variables of a number should have been. Takes nothing and does
//! not join as a node.

use std::sync::Arc;

use clap::Args;

use super::answer::CorrectAnswer;
use super::correcting::{CorrectionOrder, correct};
use super::naming::By;
use super::void_command::NumberArgs;
use super::voiding::check_long_reason;
use crate::config::Settings;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{foresee_catalog, refusal};
use crate::terminal::settings::{name_value, set_once};
use crate::web::journal_wait::once_journaled;

const EXAMPLES: &str = "Examples:
  numerator correct INV-2026-00005 --set COST_CENTRE=4711 --reason 'booked on the wrong one'";

/// What to correct, and why.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CorrectArgs {
    /// Which number.
    #[command(flatten)]
    pub number: NumberArgs,
    /// What a variable should have been, or its id where it has a table; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value, required = true)]
    pub set: Vec<(String, String)>,
    /// Why, for the record, in 10 characters or more
    #[arg(long)]
    pub reason: String,
    /// Print everything about the correction, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Corrects the variables, and prints the number.
///
/// # Errors
/// A refusal, with its slug; a ledger that cannot be reached.
pub async fn run(settings: &Settings, args: CorrectArgs) -> anyhow::Result<()> {
    let CorrectArgs { number, set, reason, json } = args;
    let by = By::command(number.user.actor()?);
    let order = CorrectionOrder {
        name: number.name().map_err(refusal)?,
        context: set_once("--set", set)?,
        reason: check_long_reason(&reason).map_err(refusal)?,
        by,
    };
    let (ledger, catalog) = foresee_catalog(settings).await?;
    let catalog = Arc::new(catalog);
    let is_missing = super::error::LifecycleError::is_missing;
    let correcting =
        once_journaled(is_missing, |try_of| correct(&ledger, &catalog, &order, try_of));
    let corrected = correcting.await.map_err(refusal)?;
    if json {
        print_json(&CorrectAnswer::of(&corrected))?;
    } else {
        print([&corrected.found.number])?;
    }
    Ok(())
}
