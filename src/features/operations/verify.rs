//! `numerator verify`: proves from the ledger that no number was issued twice and none is
//! unaccounted for, and compares Redis with it. Exits 0 only if so.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use crate::config::{DurationText, Settings};
use crate::engine::reconciler::{self, VerifyReport};
use crate::engine::sealing::{AuditKey, PublicKey};
use crate::features::archive::{Checked, Folder, check};
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{clock, open_own_stores};
use crate::web::query_time::read_time;

const EXAMPLES: &str = "Examples:
  numerator verify
  numerator verify --from 2026-11-01
  numerator verify --archive /srv/numerator/archive
  numerator verify --json";

/// How to print.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// Look again for so long at values that a running service has not journaled yet
    #[arg(long, value_name = "DURATION", default_value = "5s")]
    pub patience: DurationText,
    /// Only what was issued from this date (UTC) or date-time with offset on
    #[arg(long, value_name = "TIME", value_parser = from)]
    pub from: Option<i64>,
    /// The folder of an archive, whose files are checked too
    #[arg(long, value_name = "DIR")]
    pub archive: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A time in microseconds of UTC.
fn from(text: &str) -> Result<i64, String> {
    read_time("from", text).map_err(|problem| problem.to_string())
}

/// The findings, with those of the archive if it was checked.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    ledger: VerifyReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<Checked>,
}

/// Prints the report.
///
/// # Errors
/// A ledger that cannot be reached, or that is not clean.
pub async fn run(settings: &Settings, args: &VerifyArgs) -> anyhow::Result<()> {
    if args.from.is_some_and(|from| from > clock().now_us()) {
        bail!("--from: it is to come, and nothing was issued since then; give an earlier one");
    }
    let folder = args.archive.as_deref().map(Folder::open).transpose().context("--archive")?;
    let trusted: Vec<PublicKey> = settings.audit.read_key()?.iter().map(AuditKey::public).collect();
    let stores = open_own_stores(settings).await?;
    let report = reconciler::verify_from(&stores, args.patience.0, args.from).await;
    let archive = match &folder {
        Some(folder) => Some(check(&stores.ledger, folder, &trusted).await),
        None => None,
    };
    stores.close().await;
    let report = Report { ledger: report?, archive: archive.transpose()? };
    if args.json {
        print_json(&report)?;
    } else {
        if let Some(Checked { files, rows, deleted, findings, more }) = &report.archive {
            print([format!("archive     {files} files with {rows} rows, {deleted} deleted")])?;
            print(findings.iter().map(|finding| format!("archive: {finding}")))?;
            if *more > 0 {
                print([format!("archive: and {more} findings more")])?;
            }
        }
        print([&report.ledger])?;
    }
    if report.archive.is_some_and(|archive| !archive.findings.is_empty()) {
        bail!("the archive is not as it was; the report lists what is wrong");
    }
    if !report.ledger.is_clean() {
        bail!("not clean; the report lists what is wrong");
    }
    Ok(())
}
