//! `numerator export`: the register of numbers as a file. Reads the ledger only, a page at a time:
//! its memory does not grow with the file.
//!
//! A file is written under a temporary name in its folder and renamed at the end: it is never
//! incomplete.

mod formats;
mod target;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Settings;
use crate::features::register::pages::Register;
use crate::features::register::query::NumberQuery;
use crate::ledger::SEARCH_ROWS_MAX;
use crate::terminal::output::{is_closed, say};
use formats::Writer;
use target::Target;

const EXAMPLES: &str = "Examples:
  numerator export --series SPO --from 2026-01-01 --to spo-2026.csv
  numerator export --format xlsx --project LCBP3-C2 --to register.xlsx
  numerator export --format jsonl --sort number";

/// Which to write, and how.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExportArgs {
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    pub format: Format,
    /// The file, replaced where there is one; standard output without it
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    // Last: its heading applies to all options after it.
    /// What to look for.
    #[command(flatten)]
    pub register: NumberQuery,
}

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a head, for spreadsheets and programs
    Csv,
    /// A JSON object on each line, as the HTTP interface shows a number
    Jsonl,
    /// A workbook; needs --to
    Xlsx,
}

/// Writes the numbers that match.
///
/// # Errors
/// A filter that nothing can match, a number that nothing holds, a ledger that cannot be reached, a
/// file that cannot be written: then it is unchanged.
pub async fn run(settings: &Settings, args: ExportArgs) -> anyhow::Result<()> {
    let ExportArgs { register, format, to } = args;
    if format == Format::Xlsx && to.is_none() {
        bail!("a workbook is written to a file: name it with --to FILE");
    }
    let mut register = Register::open(settings, register, None).await?;
    let bar = progress(to.is_some());
    let target = Target::open(to)?;
    let left = target.left();
    let mut writer = Writer::begin(format, target)?;
    // The temporary file survives an interrupted process unless it is removed.
    let mut interrupted = tokio::spawn(tokio::signal::ctrl_c());
    let mut count = 0;
    loop {
        let rows = tokio::select! {
            rows = register.page(SEARCH_ROWS_MAX) => rows?,
            _ = &mut interrupted => bail!("interrupted; {left}"),
        };
        writer.write(&rows)?;
        count += rows.len();
        bar.set_position(count as u64);
        if is_closed() {
            return Ok(());
        }
        if register.next.is_none() || rows.is_empty() {
            break;
        }
    }
    let archive_files = register.archive_files().await?;
    writer.finish()?.keep()?;
    bar.finish_and_clear();
    if is_closed() {
        return Ok(());
    }
    say(format_args!("{count} rows"));
    if archive_files > 0 {
        say(format_args!(
            "numbers that moved to the archive are not among them; {archive_files} of its files \
             may have some: numerator archive list, numerator find --archive DIR"
        ));
    }
    Ok(())
}

/// The number of written rows, for a person at a terminal without other output.
fn progress(is_to_file: bool) -> ProgressBar {
    let is_shown = is_to_file || !std::io::stdout().is_terminal();
    let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} rows, {elapsed}") {
        bar.set_style(style);
    }
    bar
}
