//! `numerator revise`: gives a number of a document another label. Takes nothing and does not join
//! as a node: a revision concerns only the ledger.

use std::sync::Arc;

use clap::Args;

use crate::auth::COUNT_MAX;
use crate::auth::{Identity, LOCAL_USER};
use crate::config::Settings;
use crate::features::numbers::request::check_document_id;
use crate::features::register::revision::revise;
use crate::features::register::revisions::{NewRevision, RevisionAnswer};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{clock, open_to_write, refusal};
use crate::terminal::user::UserArg;

/// What to revise.
#[derive(Clone, Debug, Args)]
pub struct ReviseArgs {
    /// The document
    #[arg(value_name = "DOCUMENT")]
    pub document: String,
    /// Its label.
    #[command(flatten)]
    pub order: NewRevision,
    /// Who asks.
    #[command(flatten)]
    pub user: UserArg,
    /// Print everything about the revision, as JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the number with its label.
///
/// # Errors
/// A refusal, with its slug; a ledger that cannot be reached.
pub async fn run(settings: &Settings, args: ReviseArgs) -> anyhow::Result<()> {
    let document_id = check_document_id("DOCUMENT", args.document).map_err(refusal)?;
    let identity = Arc::new(Identity::local(LOCAL_USER, COUNT_MAX));
    let by = (identity, args.user.actor()?);
    let request = args.order.request(document_id, by, None).map_err(refusal)?;
    let ledger = open_to_write(settings).await?;
    let revised = revise(&ledger, &clock(), request).await.map_err(refusal)?;
    if args.json {
        print_json(&RevisionAnswer::of(&revised))?;
    } else {
        print([&revised.number])?;
    }
    Ok(())
}
