//! `numerator acknowledge`: records that a collision or a rejected record is explained. It stays in
//! place, with the user and the reason; `verify` and the metrics then report the next one.

use anyhow::bail;
use clap::Args;
use uuid::Uuid;

use crate::config::Settings;
use crate::features::register::revisions::check_revision_texts;
use crate::ledger::Acknowledgement;
use crate::terminal::output::print;
use crate::terminal::session::{open_ledger, operator, refusal};

/// What is explained, and how.
#[derive(Clone, Debug, Args)]
pub struct AcknowledgeArgs {
    /// The allocation that came second, as `verify` names it, or that was rejected
    #[arg(value_name = "ALLOCATION")]
    pub allocation_id: Uuid,
    /// What happened, and what was done about the documents
    #[arg(long)]
    pub reason: String,
}

/// Marks the entry under the allocation.
///
/// # Errors
/// A ledger that cannot be reached; an allocation under which nothing is to be explained.
pub async fn run(settings: &Settings, args: AcknowledgeArgs) -> anyhow::Result<()> {
    check_revision_texts(None, Some(&args.reason)).map_err(refusal)?;
    if args.reason.trim().is_empty() {
        bail!("--reason: say what happened");
    }
    let ledger = open_ledger(settings).await?;
    let AcknowledgeArgs { allocation_id, reason } = args;
    let explained = Acknowledgement { allocation_id, user_id: operator(), reason };
    match ledger.audits().acknowledge(&explained).await? {
        0 => bail!("allocation {allocation_id}: nothing of it is to be explained; see `verify`"),
        count => print([format!("acknowledged: {count} of allocation {allocation_id}")])?,
    }
    Ok(())
}
