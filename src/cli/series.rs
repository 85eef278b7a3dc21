//! `numerator series apply | list | show | explain`: series files into the ledger, and out again.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use comfy_table::Table;
use comfy_table::presets;
use serde::Serialize;

use super::explain::ExplainArgs;
use super::output::{print, print_json};
use super::session::{clock, open_catalog, open_ledger};
use crate::config::Settings;
use crate::http::{ConfigAnswer, LOCAL_USER};
use crate::ledger::{SeriesChange, SeriesVersion};
use crate::number::{self, SeriesDefinition};

/// Most bytes read of a series file; whatever is larger is refused by the reader.
const FILE_BYTES_MAX: u64 = 1_048_576;

/// What to do with series.
#[derive(Clone, Debug, Subcommand)]
pub enum SeriesCommand {
    /// Save the series of files, all or none; one that did not change keeps its version
    Apply(ApplyArgs),
    /// List the active series
    List(ListArgs),
    /// Show one series as a series file
    Show(ShowArgs),
    /// Tell which series would serve a request, and why the others would not
    Explain(ExplainArgs),
}

/// What to save.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    /// Series files (TOML)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Why, for the history of the series
    #[arg(long, default_value = "series apply")]
    pub reason: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How to list.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to show.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Code of the series
    pub code: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs a command on series.
///
/// # Errors
/// A file with a mistake (line, column, reason), an unknown code, a ledger that cannot be reached.
pub async fn run(settings: &Settings, command: SeriesCommand) -> anyhow::Result<()> {
    match command {
        SeriesCommand::Apply(args) => apply(settings, args).await,
        SeriesCommand::List(args) => list(settings, &args).await,
        SeriesCommand::Show(args) => show(settings, &args).await,
        SeriesCommand::Explain(args) => super::explain::run(settings, args).await,
    }
}

/// A series that was saved.
#[derive(Serialize)]
struct SavedSeries {
    code: String,
    config_id: i64,
    version: u32,
    is_new: bool,
}

/// Saves the series of all files in one transaction.
async fn apply(settings: &Settings, args: ApplyArgs) -> anyhow::Result<()> {
    let mut definitions: Vec<SeriesDefinition> = Vec::new();
    for file in &args.files {
        for definition in read_file(file)? {
            if definitions.iter().any(|other| other.code == definition.code) {
                bail!("{}: series {} stands there twice", file.display(), definition.code);
            }
            definitions.push(definition);
        }
    }
    let ledger = open_ledger(settings).await?;
    let saved_at_us = clock().now_us();
    let change = |definition| SeriesChange {
        definition,
        saved_by: LOCAL_USER.into(),
        reason: args.reason.clone(),
        saved_at_us,
    };
    let changes: Vec<SeriesChange> = definitions.into_iter().map(change).collect();
    let saved = ledger.apply_series(&changes).await?;
    let saved: Vec<SavedSeries> = saved.into_iter().map(SavedSeries::of).collect();
    if args.json {
        print_json(&saved)?;
    } else {
        print(saved.iter().map(SavedSeries::line))?;
    }
    Ok(())
}

impl SavedSeries {
    fn of(saved: SeriesVersion) -> Self {
        SavedSeries {
            code: saved.definition.code,
            config_id: saved.series_id,
            version: saved.version,
            is_new: saved.is_new,
        }
    }

    fn line(&self) -> String {
        let what = if self.is_new { "saved" } else { "unchanged" };
        format!("{} version {} {what}", self.code, self.version)
    }
}

/// Reads and checks the series of a file; never more of it than a series file may hold.
fn read_file(file: &Path) -> anyhow::Result<Vec<SeriesDefinition>> {
    let name = file.display();
    let mut text = String::new();
    File::open(file)
        .and_then(|opened| opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .with_context(|| format!("{name} cannot be read"))?;
    number::read_series(&text).with_context(|| format!("{name}"))
}

/// The shape of a series file.
#[derive(Serialize)]
struct SeriesFile {
    series: [SeriesDefinition; 1],
}

/// Prints the active series.
async fn list(settings: &Settings, args: &ListArgs) -> anyhow::Result<()> {
    let configs = active(settings).await?;
    if args.json {
        print_json(&configs)?;
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["code", "version", "types", "template", "name"]);
    for config in configs {
        let definition = config.definition;
        table.add_row([
            config.code,
            config.version.to_string(),
            definition.serves.types.join(" "),
            definition.template,
            definition.name,
        ]);
    }
    print([table])?;
    Ok(())
}

/// Prints one series so that `series apply` reads it again.
async fn show(settings: &Settings, args: &ShowArgs) -> anyhow::Result<()> {
    let configs = active(settings).await?;
    let Some(config) = configs.into_iter().find(|config| config.code == args.code) else {
        bail!("no active series has the code {:?}; `numerator series list` lists them", args.code);
    };
    if args.json {
        print_json(&config)?;
    } else {
        print([write_series(config.definition)?.trim_end()])?;
    }
    Ok(())
}

/// The text of a series file with one series.
fn write_series(definition: SeriesDefinition) -> Result<String, toml::ser::Error> {
    toml::to_string_pretty(&SeriesFile { series: [definition] })
}

/// The series that a service would serve.
async fn active(settings: &Settings) -> anyhow::Result<Vec<ConfigAnswer>> {
    let catalog = open_catalog(settings).await?;
    Ok(catalog.all().iter().map(|served| ConfigAnswer::of(&served.version)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_is_shown_can_be_applied_again() {
        for definition in number::builtin_series() {
            let text = write_series(definition.clone()).expect("TOML");
            assert_eq!(number::read_series(&text), Ok(vec![definition]), "{text}");
        }
    }

    #[test]
    fn a_file_with_a_mistake_is_told_by_its_name_and_place() {
        let folder = tempfile::tempdir().expect("folder");
        let file = folder.path().join("orders.toml");
        let missing = format!("{:#}", read_file(&file).expect_err("missing"));
        assert!(missing.contains("orders.toml cannot be read"), "{missing}");
        std::fs::write(&file, "[[series]]\ncode = 5\n").expect("written");
        let wrong = format!("{:#}", read_file(&file).expect_err("wrong"));
        assert!(wrong.contains("orders.toml: line 2, column 8"), "{wrong}");
        let limit = usize::try_from(FILE_BYTES_MAX).expect("fits");
        std::fs::write(&file, " ".repeat(limit + 1)).expect("written");
        let large = format!("{:#}", read_file(&file).expect_err("large"));
        assert!(large.contains("orders.toml") && large.contains("at most"), "{large}");
    }
}
