//! `numerator verify`: proves from the ledger that no number came twice and none is unaccounted
//! for, and compares Redis with it. Exits 0 only if so.

use anyhow::bail;
use clap::Args;

use super::output::{print, print_json};
use super::session::open_stores;
use crate::config::{DurationText, Settings};
use crate::reconciler;

const EXAMPLES: &str = "Examples:
  numerator verify
  numerator verify --json";

/// How to print.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Look again for so long at values that a running service has not journaled yet
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub patience: DurationText,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Prints the report.
///
/// # Errors
/// A ledger that cannot be reached, or that is not clean.
pub async fn run(settings: &Settings, args: &VerifyArgs) -> anyhow::Result<()> {
    let stores = open_stores(settings).await?;
    let report = reconciler::verify(&stores, args.patience.0).await;
    stores.close().await;
    let report = report?;
    if args.json {
        print_json(&report)?;
    } else {
        print([&report])?;
    }
    if !report.is_clean() {
        bail!("not clean; the report lists what is wrong");
    }
    Ok(())
}
