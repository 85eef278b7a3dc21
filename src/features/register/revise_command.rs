//! `numerator revise`: gives a number of a document another label. Takes nothing and does not join
//! as a node: a revision concerns only the ledger.

use std::sync::Arc;

use clap::Args;
use unicode_normalization::UnicodeNormalization;

use crate::auth::COUNT_MAX;
use crate::auth::{Identity, LOCAL_USER};
use crate::config::Settings;
use crate::features::numbers::request::check_document_id;
use crate::features::register::revision::{RevisionRequest, revise};
use crate::features::register::revisions::{RevisionAnswer, check_revision_texts};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{clock, open_to_write, refusal};

/// What to revise.
#[derive(Clone, Debug, Args)]
pub struct ReviseArgs {
    /// The document
    #[arg(value_name = "DOCUMENT")]
    pub document: String,
    /// The new label
    pub rev: String,
    /// Which number, as it was issued, where the document has several
    #[arg(long)]
    pub number: Option<String>,
    /// Which number: the one of the series with this code
    #[arg(long, value_name = "CODE")]
    pub series: Option<String>,
    /// Why, for the record
    #[arg(long)]
    pub reason: Option<String>,
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
    check_revision_texts(args.number.as_deref(), args.reason.as_deref()).map_err(refusal)?;
    let ledger = open_to_write(settings).await?;
    let request = RevisionRequest {
        document_id,
        rev: args.rev,
        number: args.number.map(|number| number.nfc().collect()),
        series: args.series,
        reason: args.reason,
        identity: Arc::new(Identity::local(LOCAL_USER, COUNT_MAX)),
        user_id: LOCAL_USER.into(),
        ip_address: None,
    };
    let revised = revise(&ledger, &clock(), request).await.map_err(refusal)?;
    if args.json {
        print_json(&RevisionAnswer::of(&revised))?;
    } else {
        print([&revised.number])?;
    }
    Ok(())
}
