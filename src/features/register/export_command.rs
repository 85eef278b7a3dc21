//! `numerator export`: the register of numbers as a file. Reads the ledger only, a page at a time:
//! its memory does not grow with the file.
//!
//! A file is written under a temporary name in its folder and renamed at the end: it is never
//! incomplete.

mod columns;
mod formats;
mod sheet;
mod target;

use std::io::IsTerminal as _;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::config::Settings;
use crate::features::register::gap_rows::ExportedGap;
use crate::features::register::pages::Register;
use crate::features::register::query::NumberQuery;
use crate::language::Locale;
use crate::ledger::SEARCH_ROWS_MAX;
use crate::terminal::output::{is_closed, say};
use crate::terminal::session::clock;
use crate::web::instant::instant;
use columns::{Chosen, chosen};
use formats::Writer;
use target::Target;

const EXAMPLES: &str = "Examples:
  numerator export --series SPO --from 2026-01-01 --to spo-2026.csv
  numerator export --format xlsx --language th --project LCBP3-C2 --to register.xlsx
  numerator export --bom --columns generated_number,document_date,RECIPIENT --to letters.csv
  numerator export --counters --to for-another-ledger.csv";

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
    /// Write these columns alone, in this order
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Option<Vec<String>>,
    /// Write the heads of columns in a language instead of their names: th, zh-Hant, zh-Hans, en
    #[arg(long, value_name = "TAG", value_parser = language)]
    pub language: Option<Locale>,
    /// Begin CSV with a byte order mark, by which Excel knows UTF-8
    #[arg(long)]
    pub bom: bool,
    /// End with a row for each counter, which says what it has counted: `import` needs them
    #[arg(long)]
    pub counters: bool,
    // Last: its heading applies to all options after it.
    /// What to look for.
    #[command(flatten)]
    pub register: NumberQuery,
}

/// How a file is written.
struct Look {
    format: Format,
    columns: Vec<Chosen>,
    /// The language of its heads; their names without one.
    language: Option<Locale>,
    /// Whether CSV begins with a byte order mark.
    with_mark: bool,
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
    let ExportArgs { register, format, to, columns, language, bom, counters } = args;
    must_suit(format, &[("columns", columns.is_some()), ("language", language.is_some())])?;
    if bom && format != Format::Csv {
        bail!("--bom is for CSV: leave it out with --format");
    }
    if format == Format::Xlsx && to.is_none() {
        bail!("a workbook is written to a file: name it with --to FILE");
    }
    let mut register = Register::open(settings, register, None).await?;
    let columns = chosen(columns.as_deref(), register.variables().await?)?;
    let bar = progress(to.is_some());
    let target = Target::open(to)?;
    let left = target.left();
    let mut writer = Writer::begin(Look { format, columns, language, with_mark: bom }, target)?;
    // The temporary file survives an interrupted process unless it is removed.
    let mut interrupted = tokio::spawn(tokio::signal::ctrl_c());
    let mut count = 0;
    loop {
        let rows = tokio::select! {
            rows = register.page(SEARCH_ROWS_MAX) => rows?,
            _ = &mut interrupted => bail!("interrupted; {left}"),
        };
        // A cell of a workbook has no room for all.
        let is_whole = format != Format::Xlsx;
        let rows = if is_whole { register.with_all_assigned(rows).await? } else { rows };
        writer.write(&rows)?;
        count += rows.len();
        bar.set_position(count as u64);
        if is_closed() {
            return Ok(());
        }
        // A page of gaps alone may have none.
        if register.next.is_none() {
            break;
        }
    }
    if counters {
        write_counters(&register, &mut writer).await?;
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

/// Writes the counters of the series.
async fn write_counters(register: &Register, writer: &mut Writer) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let (counters, last) = register.counters(after).await?;
        for counter in &counters {
            let Some(series) = register.code(counter.series_id) else { continue };
            let at = instant(clock().now_us());
            if let Some(row) = ExportedGap::of_counter(counter, series, at) {
                writer.write_counter(row)?;
            }
        }
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Refuses what JSON lines do not have.
fn must_suit(format: Format, given: &[(&str, bool)]) -> anyhow::Result<()> {
    match given.iter().find(|(_, is_given)| *is_given && format == Format::Jsonl) {
        Some((flag, _)) => bail!("--{flag} is for csv and xlsx: JSON lines have names and all"),
        None => Ok(()),
    }
}

/// A language by its tag.
fn language(tag: &str) -> Result<Locale, String> {
    Locale::of_tag(tag).ok_or_else(|| "write th, zh-Hant, zh-Hans or en".to_owned())
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
