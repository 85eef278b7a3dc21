//! `numerator series versions | activate | deactivate | rollback | remove`: what a series was, what
//! a change of it would do, and whether it serves.

use anyhow::bail;
use clap::Args;
use numbering::{Series, Succession, succession};
use serde::Serialize;
use serde_json::Value;

use super::output::{print, print_json};
use super::series::{print_saved, refused};
use super::session::{clock, open_ledger_and_catalog, refusal, until_known, with_onlooker};
use super::words::{moment, table};
use crate::access::LOCAL_USER;
use crate::config::Settings;
use crate::http::{ConfigAnswer, FieldChange, changed_fields, check_reason, counters_in_words};
use crate::ledger::{
    ActivityChange, Expected, SeriesChange, SeriesRemoval, SeriesVersion, SharedLedger,
};
use crate::process::hear_redis;
use crate::service::Service;

/// Most versions that are listed.
const LISTED_MAX: u32 = 1_000;

/// Whose versions to list.
#[derive(Clone, Debug, Args)]
pub struct VersionsArgs {
    /// Code of the series
    pub code: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Which series, and why.
#[derive(Clone, Debug, Args)]
pub struct ActivityArgs {
    /// Code of the series
    pub code: String,
    /// Why, for the history of the series
    #[arg(long)]
    pub reason: String,
}

const EXAMPLES: &str = "Examples:
  numerator series rollback INV --to 3 --reason 'version 4 lost the branch' --dry-run
  numerator series rollback INV --to 3 --reason 'version 4 lost the branch'";

/// To which version, and why.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RollbackArgs {
    /// Code of the series
    pub code: String,
    /// The version whose definition is saved again
    #[arg(long, value_name = "N")]
    pub to: u32,
    /// Why, for the history of the series
    #[arg(long)]
    pub reason: String,
    /// Do all that a save does but save: prints what would change, or refuses as the save would
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a dry run foresees of a version.
#[derive(Serialize)]
pub(super) struct Foreseen {
    /// Counters that the series has, as far as 10,000.
    counters: u64,
    /// Serials whose counters begin anew.
    begin_anew: Vec<String>,
    /// The fields that would change.
    changes: Vec<FieldChange>,
    #[serde(skip)]
    words: String,
}

impl Foreseen {
    /// What a version would do that is not saved yet.
    pub(super) async fn of(ledger: &SharedLedger, version: &SeriesVersion) -> anyhow::Result<Self> {
        let after = (&version.definition, version.active);
        // The id of a series that a dry run would create is nobody's.
        if version.is_new && version.version == 1 {
            let (words, changes) = ("a new series".into(), changed_fields(None, after));
            return Ok(Foreseen { counters: 0, begin_anew: Vec::new(), changes, words });
        }
        let counters = ledger.counters_of(version.series_id).await?;
        let (mut told, mut changes) = (Succession::default(), Vec::new());
        let number = version.version - 1;
        let before = ledger.series_version(version.series_id, number).await?;
        if let Some(before) = before.filter(|_| version.is_new) {
            changes = changed_fields(Some((&before.definition, before.active)), after);
            let compile = |version: &SeriesVersion| Series::restore(version.definition.clone());
            if let (Ok(before), Ok(after)) = (compile(&before), compile(version)) {
                told = succession(&before, &after);
            }
        }
        let words = counters_in_words(counters, &told);
        Ok(Foreseen { counters, begin_anew: told.begin_anew, changes, words })
    }

    /// What becomes of the counters.
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    /// A line for each field that a version of before would have otherwise.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let shown = |value: &Option<Value>| value.as_ref().map_or("–".into(), Value::to_string);
        let changes = self.changes.iter().filter(|change| change.path != "/definition");
        let is_new = self.changes.iter().any(|change| change.path == "/definition");
        changes.filter(move |_| !is_new).map(move |FieldChange { path, before, after }| {
            format!("  {path}: {} → {}", shown(before), shown(after))
        })
    }
}

/// Prints the versions of a series, newest first.
///
/// # Errors
/// An unknown code, a ledger that cannot be reached, a closed stdout.
pub async fn versions(settings: &Settings, args: &VersionsArgs) -> anyhow::Result<()> {
    let (ledger, newest) = open(settings, &args.code).await?;
    let versions = ledger.series_versions(newest.series_id, u32::MAX, LISTED_MAX).await?;
    if args.json {
        print_json(&versions.iter().map(ConfigAnswer::of).collect::<Vec<_>>())?;
        return Ok(());
    }
    let mut table = table(["version", "active", "saved", "by", "template", "reason"]);
    for version in versions {
        table.add_row([
            version.version.to_string(),
            if version.active { "yes" } else { "no" }.to_owned(),
            moment(version.saved_at_us),
            version.saved_by,
            version.definition.template,
            version.reason,
        ]);
    }
    print([table])?;
    Ok(())
}

/// Activates or deactivates a series (R4.3).
///
/// # Errors
/// An unknown code, a series that would be one too many, a ledger that cannot be reached.
pub async fn set_activity(
    settings: &Settings,
    args: ActivityArgs,
    active: bool,
) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal)?;
    let (ledger, newest) = open(settings, &args.code).await?;
    let change = ActivityChange {
        series_id: newest.series_id,
        active,
        expected: None,
        saved_by: LOCAL_USER.into(),
        reason,
        saved_at_us: clock().now_us(),
    };
    let version = ledger.set_activity(&change).await?;
    until_known(&ledger).await;
    let what = if active { "active" } else { "not active" };
    let since = if version.is_new { "from now on" } else { "already" };
    print([format!("{} version {} is {what} {since}", args.code, version.version)])?;
    Ok(())
}

/// Saves the definition of an earlier version as a new one, under the checks of any other change.
///
/// # Errors
/// An unknown code or version, a definition that the ledger refuses by now, a ledger that cannot be
/// reached.
pub async fn roll_back(settings: &Settings, args: RollbackArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal)?;
    let (ledger, newest) = open(settings, &args.code).await?;
    let earlier = version_of(&ledger, &newest, args.to).await?;
    Series::compile(earlier.definition.clone())?;
    let change = [SeriesChange {
        definition: earlier.definition,
        expected: Expected::Version { series_id: newest.series_id, version: newest.version },
        saved_by: LOCAL_USER.into(),
        reason,
        saved_at_us: clock().now_us(),
    }];
    let saved = match args.dry_run {
        true => ledger.try_series(&change).await,
        false => ledger.apply_series(&change).await,
    };
    let saved = saved.map_err(refused)?;
    if !args.dry_run {
        until_known(&ledger).await;
    }
    print_saved(&ledger, saved, args.dry_run, args.json).await
}

/// Removes a series that has issued nothing. Joins as a node first: what joins compares the ledger
/// with what was confirmed to others, and holds one that may have forgotten the series' numbers.
///
/// # Errors
/// An unknown code, a series that has counters, a ledger that cannot be reached, a Redis that the
/// settings name and that does not answer.
pub async fn remove(settings: &Settings, args: ActivityArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal)?;
    let (_, newest) = open(settings, &args.code).await?;
    let removal = SeriesRemoval {
        series_id: newest.series_id,
        expected: None,
        removed_by: LOCAL_USER.into(),
        reason,
        removed_at_us: clock().now_us(),
    };
    let remove = async |service: &Service| {
        let Service { ledger, context, .. } = service;
        if let Some(redis) = &context.redis
            && !hear_redis(ledger, redis, &context.keys, &context.deployment).await?
        {
            // It cannot be undone, and numbers of the series may be known there alone.
            bail!("redis does not answer, and may know of numbers of the series; try again later");
        }
        ledger.remove_series(context.membership.node(), &removal).await?;
        until_known(ledger).await;
        Ok(())
    };
    with_onlooker(settings, remove).await?;
    Ok(print([format!("{} removed", args.code)])?)
}

/// A version of a series; the one in force where none is named.
///
/// # Errors
/// Where there is none.
pub(super) async fn find(
    settings: &Settings,
    code: &str,
    version: Option<u32>,
) -> anyhow::Result<SeriesVersion> {
    let (ledger, newest) = open(settings, code).await?;
    match version {
        Some(wanted) => version_of(&ledger, &newest, wanted).await,
        None => Ok(newest),
    }
}

/// A version of the series that this is the newest of.
async fn version_of(
    ledger: &SharedLedger,
    newest: &SeriesVersion,
    wanted: u32,
) -> anyhow::Result<SeriesVersion> {
    match ledger.series_version(newest.series_id, wanted).await? {
        Some(found) => Ok(found),
        None => {
            let code = &newest.definition.code;
            bail!("series {code} has the versions 1 to {}, not {wanted}", newest.version)
        }
    }
}

/// The ledger, and the version of a series in force there.
async fn open(settings: &Settings, code: &str) -> anyhow::Result<(SharedLedger, SeriesVersion)> {
    let (ledger, catalog) = open_ledger_and_catalog(settings).await?;
    match catalog.all().find(|served| served.version.definition.code == code) {
        Some(found) => Ok((ledger, found.version.clone())),
        None => bail!("no series has the code {code:?}; `numerator series list` lists them"),
    }
}
