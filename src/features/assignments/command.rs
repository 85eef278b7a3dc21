//! `numerator assign`: assigns a number of a range to a document.

use std::sync::Arc;

use clap::Args;
use tokio::task::JoinError;

use super::answer::AssignmentAnswer;
use super::assigning::{AssignOrder, assign};
use super::error::NotAssigned;
use crate::config::Settings;
use crate::features::lifecycle::naming::{By, NumberName};
use crate::features::numbers::request::check_document_id;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{join_for_command, leave, refusal};
use crate::terminal::user::UserArg;
use crate::web::journal_wait::once_journaled;
use crate::web::problem::Problem;
use crate::web::reason::check_reason;

const EXAMPLES: &str = "Examples:
  numerator assign FIELD-2026-00005 --document tablet-3/sheet-17";

/// Which number of a range, and its document.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AssignArgs {
    /// The number: one of a range that was taken for no document
    #[arg(value_name = "NUMBER")]
    pub number: String,
    /// The document that has it from now on
    #[arg(long, value_name = "ID")]
    pub document: String,
    /// Code of its series, where several numbers have the text
    #[arg(long, value_name = "CODE")]
    pub series: Option<String>,
    /// Its project, likewise
    #[arg(long)]
    pub project: Option<String>,
    /// Why, for the record
    #[arg(long)]
    pub reason: Option<String>,
    /// Who asks.
    #[command(flatten)]
    pub user: UserArg,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
}

/// Assigns the number; prints it.
///
/// # Errors
/// A refusal, with its slug; a service that cannot start; a ledger that cannot be reached.
pub async fn run(settings: &Settings, args: AssignArgs) -> anyhow::Result<()> {
    let AssignArgs { number, document, series, project, reason, user, json } = args;
    let name = NumberName::of("number", &number).map_err(refusal)?;
    let name = NumberName { series, project, ..name };
    let document_id = check_document_id("--document", document).map_err(refusal)?;
    let reason = reason.as_deref().map(check_reason).transpose().map_err(refusal)?;
    let by = By::command(user.actor()?);
    let service = join_for_command(settings).await?;
    let by = by.through(service.context.membership.node());
    let (own, order) = (Arc::clone(&service), AssignOrder { name, document_id, reason, by });
    // A task of its own: a command that is interrupted leaves no partition lent.
    let assigning = async move {
        once_journaled(NotAssigned::is_missing, |try_of| assign(&own, &order, try_of)).await
    };
    let done = tokio::spawn(assigning).await;
    leave(&service).await;
    let done = done.map_err(|error: JoinError| refusal(Problem::internal(&error)))?;
    let done = done.map_err(|error| refusal(Problem::from(error)))?;
    if json {
        print_json(&AssignmentAnswer::of(&done))?;
    } else {
        print([&done.found.number])?;
    }
    Ok(())
}
