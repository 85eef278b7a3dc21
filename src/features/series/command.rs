//! `numerator series`: series files into the ledger, and out of it again. Which of them serves a
//! request is in `explain_command.rs`, rule expressions are in `expression_command.rs`.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, Subcommand};
use numbering::{Series, SeriesDefinition};
use serde::Serialize;

use crate::config::Settings;
use crate::engine::reconciler::Stores;
use crate::features::series::answer::ConfigAnswer;
use crate::features::series::check_command::{self, CheckArgs, has_no_ledger};
use crate::features::series::explain_command::ExplainArgs;
use crate::features::series::expression_command::{self, FromExpressionArgs, ToExpressionArgs};
use crate::features::series::history_command::{
    self, ActivityArgs, Foreseen, RollbackArgs, VersionsArgs, restored,
};
use crate::features::series::periods::{self, ClosePeriodArgs};
use crate::features::series::series_file::write_series;
use crate::ledger::{
    Expected, LedgerError, SeriesChange, SeriesRefusal, SeriesVersion, SharedLedger, warnings,
};
use crate::startup::read_series_file;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{
    clock, open_catalog, open_ledger, open_stores, operator, refusal, until_known,
};
use crate::terminal::words::table;
use crate::web::reason::check_reason;

/// What to do with series.
#[derive(Clone, Debug, Subcommand)]
pub enum SeriesCommand {
    /// Check series files alone and beside each other, with the tables of the ledger where there is
    /// one; saves nothing. `apply --dry-run` compares them with the ledger's series
    Check(CheckArgs),
    /// Save the series of files, all or none; one that did not change keeps its version
    Apply(ApplyArgs),
    /// List the active series
    List(ListArgs),
    /// Show one series as a series file
    Show(ShowArgs),
    /// Tell which series would serve a request, and why the others would not
    Explain(ExplainArgs),
    /// Give no numbers any more to documents dated before a day
    ClosePeriod(ClosePeriodArgs),
    /// List the versions of a series, newest first
    Versions(VersionsArgs),
    /// Have a series serve requests again
    Activate(ActivityArgs),
    /// Keep a series from serving requests; its numbers stay
    Deactivate(ActivityArgs),
    /// Save the definition of an earlier version as a new one
    Rollback(RollbackArgs),
    /// Remove a series that has issued nothing; one that has is deactivated instead
    Remove(ActivityArgs),
    /// Print a rule expression (JSON) as a series file; saves nothing
    FromExpression(FromExpressionArgs),
    /// Print a series as a rule expression
    ToExpression(ToExpressionArgs),
}

const EXAMPLES: &str = "Examples:
  numerator series apply invoices.toml
  numerator series apply *.toml --only-new --reason 'first series'";

/// What to save.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ApplyArgs {
    /// Series files (TOML)
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Why, for the history of the series
    #[arg(long, default_value = "series apply")]
    pub reason: String,
    /// Save only series that the ledger does not have; leave the others as they are
    #[arg(long)]
    pub only_new: bool,
    /// Do all that a save does but save: prints what would change, or refuses as the save would
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// How to list.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Those that are deactivated instead
    #[arg(long)]
    pub inactive: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What to show.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// Code of the series
    pub code: String,
    /// A version of it; the one in force without it
    #[arg(long, value_name = "N")]
    pub version: Option<u32>,
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
        SeriesCommand::Check(args) => check_command::run(settings, &args).await,
        SeriesCommand::Apply(args) => apply(settings, args).await,
        SeriesCommand::List(args) => list(settings, &args).await,
        SeriesCommand::Show(args) => show(settings, &args).await,
        SeriesCommand::Explain(args) => {
            crate::features::series::explain_command::run(settings, args).await
        }
        SeriesCommand::ClosePeriod(args) => periods::close(settings, args).await,
        SeriesCommand::Versions(args) => history_command::versions(settings, &args).await,
        SeriesCommand::Activate(args) => history_command::set_activity(settings, args, true).await,
        SeriesCommand::Deactivate(args) => {
            history_command::set_activity(settings, args, false).await
        }
        SeriesCommand::Rollback(args) => history_command::roll_back(settings, args).await,
        SeriesCommand::Remove(args) => history_command::remove(settings, args).await,
        SeriesCommand::FromExpression(args) => expression_command::from_expression(args),
        SeriesCommand::ToExpression(args) => {
            expression_command::to_expression(settings, &args).await
        }
    }
}

/// A series that was saved.
#[derive(Serialize)]
pub(crate) struct SavedSeries {
    code: String,
    config_id: i64,
    version: u32,
    active: bool,
    is_new: bool,
    saved: bool,
    /// What a dry run predicts, or what a save did.
    #[serde(flatten)]
    foreseen: Option<Foreseen>,
    warnings: Vec<String>,
}

/// Saves the series of all files in one transaction.
async fn apply(settings: &Settings, args: ApplyArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal);
    let read = read_files(&args.files).and_then(|definitions| Ok((definitions, reason?)));
    let (mut definitions, reason) = match read {
        Ok(read) => read,
        Err(mistake) => {
            if !args.dry_run {
                note_own(settings).await;
            }
            return Err(mistake);
        }
    };
    if args.dry_run && has_no_ledger(settings) {
        bail!(
            "there is no ledger at {} for a dry run; `series check` proves files by themselves, \
             `series apply` makes the ledger",
            settings.database_url
        );
    }
    let stores = open_stores(settings).await?;
    let ledger = &stores.ledger;
    if !args.dry_run {
        ledger.series().note_own().await?;
    }
    let expected = if args.only_new { Expected::Nothing } else { Expected::Anything };
    let kept = if args.only_new { keep_known(ledger, &mut definitions).await? } else { vec![] };
    let saved_at_us = clock().now_us();
    let change = |definition| SeriesChange {
        definition,
        expected,
        saved_by: operator(),
        reason: reason.clone(),
        saved_at_us,
    };
    let changes: Vec<SeriesChange> = definitions.into_iter().map(change).collect();
    let mut saved = save(ledger, &changes, args.dry_run).await?;
    saved.extend(kept);
    print_saved(&stores, saved, args.dry_run, args.json).await
}

/// Saves changes, all or none, or predicts the result of that.
pub(crate) async fn save(
    ledger: &SharedLedger,
    changes: &[SeriesChange],
    dry_run: bool,
) -> anyhow::Result<Vec<SeriesVersion>> {
    if dry_run {
        return ledger.series().try_apply(changes).await.map_err(refused);
    }
    let saved = ledger.series().apply(changes).await.map_err(refused)?;
    until_known(ledger).await;
    Ok(saved)
}

/// Records that the operator has series of their own, in files with a mistake or for an invalid
/// reason. The mistake is reported even if the record cannot be written.
async fn note_own(settings: &Settings) {
    let noting =
        async { Ok::<_, anyhow::Error>(open_ledger(settings).await?.series().note_own().await?) };
    if let Err(error) = noting.await {
        tracing::debug!(%error, "it is not noted that there are series of one's own");
    }
}

/// An ambiguity names the field at fault.
fn refused(error: LedgerError) -> anyhow::Error {
    match error {
        LedgerError::Series(
            ambiguous @ (SeriesRefusal::Ambiguous(_)
            | SeriesRefusal::Hasty(_)
            | SeriesRefusal::ReadsKept { .. }),
        ) => refusal(&ambiguous),
        other => other.into(),
    }
}

/// Removes the definitions that the ledger has, active or not, and returns them as stored there.
async fn keep_known(
    ledger: &SharedLedger,
    definitions: &mut Vec<SeriesDefinition>,
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut kept = ledger.series().list().await?;
    kept.retain(|known| definitions.iter().any(|new| new.code == known.definition.code));
    definitions.retain(|new| kept.iter().all(|known| known.definition.code != new.code));
    Ok(kept)
}

/// Reports which versions are in force now, and which numbers of others the new ones would read. If
/// the versions are saved, a check that fails is reported, and is not a failure.
pub(crate) async fn print_saved(
    stores: &Stores,
    saved: Vec<SeriesVersion>,
    dry_run: bool,
    json: bool,
) -> anyhow::Result<()> {
    let new: Vec<&SeriesVersion> = saved.iter().filter(|version| version.is_new).collect();
    let (mut tables, mut unread) = (Arc::default(), None);
    if !new.is_empty() {
        match stores.ledger.reference().data().await {
            Ok(read) => tables = Arc::new(read),
            Err(error) => unread = Some(error),
        }
    }
    let compiled: Result<Vec<Series>, _> =
        new.iter().map(|version| restored(version, &tables)).collect();
    let compiled = compiled.or_else(|error| if dry_run { Err(error) } else { Ok(Vec::new()) })?;
    let mut warned = match unread {
        _ if compiled.is_empty() => Vec::new(),
        None => warnings(&stores.ledger, &compiled, |_| true).await,
        Some(error) => {
            vec![vec![format!("the tables were not looked at: {error}")]; compiled.len()]
        }
    }
    .into_iter();
    let mut compiled = compiled.into_iter();
    let mut lines = Vec::with_capacity(saved.len());
    for version in saved {
        let mut warnings = version.is_new.then(|| warned.next()).flatten().unwrap_or_default();
        let after = version.is_new.then(|| compiled.next()).flatten();
        // Boxed: the state of a forecast does not become part of its callers.
        let foreseen = match dry_run || version.is_new {
            true => Some(Box::pin(Foreseen::of(stores, &version, (after, &tables), dry_run)).await),
            false => None,
        };
        let foreseen = match foreseen.transpose() {
            Err(error) if !dry_run => {
                warnings.push(format!("what it means for its counters is not known: {error:#}"));
                None
            }
            foreseen => foreseen?,
        };
        lines.push(SavedSeries { warnings, foreseen, ..SavedSeries::of(version, dry_run) });
    }
    if json {
        print_json(&lines)?;
        return Ok(());
    }
    let told = |saved: &SavedSeries| {
        let warned = saved.warnings.iter().map(|warning| format!("warning: {warning}"));
        let changed = saved.foreseen.iter().flat_map(Foreseen::lines);
        std::iter::once(saved.line()).chain(changed).chain(warned).collect::<Vec<_>>()
    };
    Ok(print(lines.iter().flat_map(told))?)
}

impl SavedSeries {
    /// A version that was saved, or that a dry run would save.
    pub(crate) fn of(saved: SeriesVersion, dry_run: bool) -> Self {
        SavedSeries {
            saved: saved.is_new && !dry_run,
            foreseen: None,
            code: saved.definition.code,
            config_id: saved.series_id,
            version: saved.version,
            active: saved.active,
            is_new: saved.is_new,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn line(&self) -> String {
        let what = match (self.is_new, &self.foreseen) {
            (false, _) => "unchanged".to_owned(),
            (true, Some(foreseen)) if foreseen.is_saved() => "saved".to_owned(),
            (true, None) => "saved".to_owned(),
            (true, Some(foreseen)) => format!("would be saved: {}", foreseen.words()),
        };
        let idle = if self.active { "" } else { "; not active, see `series activate`" };
        format!("{} version {} {what}{idle}", self.code, self.version)
    }
}

/// Reads and checks the series of all files.
pub(crate) fn read_files(files: &[PathBuf]) -> anyhow::Result<Vec<SeriesDefinition>> {
    let mut definitions: Vec<SeriesDefinition> = Vec::new();
    for file in files {
        for definition in read_series_file(file)? {
            if definitions.iter().any(|other| other.code == definition.code) {
                bail!("{}: series {} appears twice", file.display(), definition.code);
            }
            definitions.push(definition);
        }
    }
    Ok(definitions)
}

/// Prints the active series, or the others.
async fn list(settings: &Settings, args: &ListArgs) -> anyhow::Result<()> {
    let catalog = open_catalog(settings).await?;
    let listed = if args.inactive { catalog.inactive() } else { catalog.active() };
    let configs: Vec<ConfigAnswer> =
        listed.iter().map(|served| ConfigAnswer::of(&served.version)).collect();
    if args.json {
        print_json(&configs)?;
        return Ok(());
    }
    let mut table = table(["code", "version", "types", "template", "name"]);
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
    let config =
        ConfigAnswer::of(&history_command::find(settings, &args.code, args.version).await?);
    if args.json {
        print_json(&config)?;
    } else {
        let unsaid = config.definition.once_per_document.is_none();
        let told = format!("# once_per_document = {}, by its policy", config.once_per_document);
        let text = write_series(config.definition)?;
        print(unsaid.then_some(&*told).into_iter().chain([text.trim_end()]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_is_shown_can_be_applied_again() {
        for definition in numbering::builtin_series() {
            let text = write_series(definition.clone()).expect("TOML");
            assert_eq!(numbering::read_series(&text), Ok(vec![definition]), "{text}");
        }
    }
}
