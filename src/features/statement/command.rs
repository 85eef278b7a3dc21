//! `numerator statement`: the auditor's paper of a series and a period. Reads only.

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::config::Settings;
use crate::features::statement::question::{StatementQuery, find_statement};
use crate::features::statement::{Bounds, Verdict};
use crate::language::Locale;
use crate::terminal::output::{print, print_drawn, print_json};
use crate::terminal::session::{clock, foresee_catalog, refusal};

/// The limits of the command: it has ten minutes, a request has less.
const BOUNDS: Bounds = Bounds { counters_max: 10_000, rows_max: 50_000_000, entries_max: 10_000 };

const EXAMPLES: &str = "Examples:
  numerator statement --series SPO --period 2026
  numerator statement --series LETTER --period 2026-01 --project LCBP3-C2 --language th
  numerator statement --series SPO --period 2026 --format html";

/// Of what, and how.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatementArgs {
    /// Of what.
    #[command(flatten)]
    pub query: StatementQuery,
    /// The language of its sentences; else that of `LC_ALL`, `LC_MESSAGES` or `LANG`, else English
    #[arg(long, value_enum)]
    pub language: Option<Spoken>,
    /// The form; `html` is a page for the printer
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub format: Form,
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Spoken {
    /// Thai
    Th,
    /// Chinese in simplified characters
    #[value(name = "zh-Hans", alias = "zh")]
    ZhHans,
    /// Chinese in traditional characters
    #[value(name = "zh-Hant")]
    ZhHant,
    /// English
    En,
}

/// Forms of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Lines of text
    Text,
    /// Comma-separated values with a head
    Csv,
    /// What the HTTP interface answers
    Json,
    /// A page for the printer, in one file
    Html,
}

impl Spoken {
    fn language(self) -> Locale {
        match self {
            Spoken::Th => Locale::Thai,
            Spoken::ZhHans => Locale::Chinese,
            Spoken::ZhHant => Locale::TraditionalChinese,
            Spoken::En => Locale::English,
        }
    }
}

/// Prints the paper.
///
/// # Errors
/// An invalid question, a ledger that cannot be reached, a closed stdout; a paper that says that
/// numbers are missing, once it is printed.
pub async fn run(settings: &Settings, args: StatementArgs) -> anyhow::Result<()> {
    let StatementArgs { query, language, format, json } = args;
    let language = language.map_or_else(language_of_locale, Spoken::language);
    let (ledger, catalog) = foresee_catalog(settings).await?;
    let clock = clock();
    let statement = find_statement(&ledger, &clock, &catalog, query, (language, BOUNDS));
    let statement = statement.await.map_err(refusal)?;
    match if json { Form::Json } else { format } {
        Form::Text => print(statement.text())?,
        Form::Csv => print_drawn([statement.csv().trim_end()])?,
        Form::Json => print_json(&statement)?,
        Form::Html => print_drawn([statement.page().trim_end()])?,
    }
    if statement.verdict == Verdict::NotComplete {
        bail!("not complete; the paper lists what is not as it should be");
    }
    Ok(())
}

/// The language of the terminal; the first variable that names one counts.
fn language_of_locale() -> Locale {
    let variables = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter();
    let said = variables.filter_map(|name| std::env::var(name).ok()).find(|said| !said.is_empty());
    said.and_then(|locale| Locale::of_locale(&locale)).unwrap_or_default()
}
