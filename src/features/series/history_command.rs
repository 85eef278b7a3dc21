//! `numerator series versions | activate | deactivate | rollback | remove`: the versions of a
//! series, what a change of it would do, and whether it serves.

use std::sync::Arc;

use anyhow::bail;
use clap::Args;
use numbering::{ReferenceData, Series, Succession, TemplateError, succession};
use serde::Serialize;
use serde_json::Value;

use crate::config::Settings;
use crate::engine::allocator::{AllocError, next_numbers};
use crate::engine::node::hear_redis;
use crate::engine::reconciler::Stores;
use crate::features::series::answer::ConfigAnswer;
use crate::features::series::command::{print_saved, save};
use crate::features::series::effect::{
    FieldChange, NextNumbers, changed_fields, counters_in_words, next_in_words,
};
use crate::features::series::request::RollbackRequest;
use crate::ledger::{
    ActivityChange, Expected, SeriesChange, SeriesRemoval, SeriesVersion, SharedLedger,
};
use crate::startup::Service;
use crate::terminal::output::{print, print_json};
use crate::terminal::session::{
    clock, open_ledger_and_catalog, open_stores, operator, refusal, until_known, with_onlooker,
};
use crate::terminal::words::{moment, table};
use crate::web::reason::check_reason;

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
    /// The version, and why.
    #[command(flatten)]
    pub order: RollbackRequest,
    /// Do all that a save does but save: prints what would change, or refuses as the save would
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a dry run predicts of a version, or what a save did.
#[derive(Default, Serialize)]
pub(crate) struct Foreseen {
    /// Counters of the series, up to 10,000.
    counters: u64,
    /// Serials whose counters restart.
    begin_anew: Vec<String>,
    /// The fields that would change.
    changes: Vec<FieldChange>,
    /// The next number of the version in force, and of the new one, for a sample request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_after: Vec<String>,
    /// The effect on the next number.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip)]
    words: String,
    /// Whether it is saved, and not only predicted.
    #[serde(skip)]
    is_saved: bool,
}

impl Foreseen {
    /// The effect of a version that is saved, or would be; if it is new, with its compiled form.
    pub(crate) async fn of(
        stores: &Stores,
        version: &SeriesVersion,
        (compiled, tables): (Option<Series>, &Arc<ReferenceData>),
        dry_run: bool,
    ) -> anyhow::Result<Self> {
        let (ledger, is_saved) = (&stores.ledger, !dry_run);
        let after = (&version.definition, version.active);
        // The id of a series that a dry run would create belongs to no series.
        if version.is_new && version.version == 1 {
            let words = "a new series".to_owned();
            let mut told = Foreseen { words, is_saved, ..Foreseen::default() };
            told.changes = changed_fields(None, after);
            return Ok(told.with_next(stores, (None, compiled), version).await);
        }
        let counters = ledger.counters().count_of(version.series_id).await?;
        let number = version.version - 1;
        let before = ledger.series().version(version.series_id, number).await?;
        let before = before.filter(|_| version.is_new);
        let mut told = Foreseen { counters, is_saved, ..Foreseen::default() };
        let mut compiled = (None, compiled);
        if let Some(before) = &before {
            told.changes = changed_fields(Some((&before.definition, before.active)), after);
            compiled.0 = restored(before, tables).ok().filter(|_| before.active);
            if let (Some(before), Some(after)) = &compiled {
                let succession = succession(before, after);
                told.words = counters_in_words(counters, &succession);
                told.begin_anew = succession.begin_anew;
            }
        }
        if told.words.is_empty() {
            told.words = counters_in_words(counters, &Succession::default());
        }
        if !version.is_new {
            return Ok(told);
        }
        Ok(told.with_next(stores, compiled, version).await)
    }

    /// Adds the effect on the next number for a made-up request. A check that fails is not a
    /// failure.
    async fn with_next(
        mut self,
        stores: &Stores,
        (before, after): (Option<Series>, Option<Series>),
        version: &SeriesVersion,
    ) -> Self {
        let is_there = self.is_saved || version.version > 1;
        let series_id = is_there.then_some(version.series_id);
        let next = async |series: Option<Series>| -> NextNumbers {
            let Some(series) = series else { return Ok(Vec::new()) };
            let sample = series.sample(stores.clock.now());
            match next_numbers(stores, &series, series_id, (&sample, 1)).await {
                Err(below @ AllocError::BelowStart { .. }) => Err(below.to_string()),
                numbers => Ok(numbers.unwrap_or_default()),
            }
        };
        let (before, after) = (next(before).await, next(after.filter(|_| version.active)).await);
        self.next = next_in_words(&before, &after, version.active);
        self.next_before = before.unwrap_or_default();
        self.next_after = after.unwrap_or_default();
        self
    }

    /// The effect on the counters.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// A line for each field that differs from the earlier version, and one for the next number.
    /// The fields of saved versions are known.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        let shown = |value: &Option<Value>| value.as_ref().map_or("–".into(), Value::to_string);
        let changes = self.changes.iter().filter(|change| change.path != "/definition");
        let is_new = self.changes.iter().any(|change| change.path == "/definition");
        let is_told = !is_new && !self.is_saved;
        let changes = changes.filter(move |_| is_told).map(move |change| {
            let FieldChange { path, before, after } = change;
            format!("  {path}: {} → {}", shown(before), shown(after))
        });
        changes.chain(self.next.iter().map(|next| format!("  {next}")))
    }

    /// Whether it is saved.
    pub(crate) fn is_saved(&self) -> bool {
        self.is_saved
    }
}

/// The compiled form of a version of the ledger, with the tables there.
pub(crate) fn restored(
    version: &SeriesVersion,
    tables: &Arc<ReferenceData>,
) -> Result<Series, TemplateError> {
    Ok(Series::restore(version.definition.clone())?.with_reference(Arc::clone(tables)))
}

/// Prints the versions of a series, newest first.
///
/// # Errors
/// An unknown code, a ledger that cannot be reached, a closed stdout.
pub async fn versions(settings: &Settings, args: &VersionsArgs) -> anyhow::Result<()> {
    let (ledger, newest) = open(settings, &args.code).await?;
    let versions = ledger.series().versions(newest.series_id, u32::MAX, LISTED_MAX).await?;
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

/// Activates or deactivates a series.
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
        saved_by: operator(),
        reason,
        saved_at_us: clock().now_us(),
    };
    let version = ledger.series().set_activity(&change).await?;
    until_known(&ledger).await;
    let what = if active { "active" } else { "not active" };
    let since = if version.is_new { "from now on" } else { "already" };
    print([format!("{} version {} is {what} {since}", args.code, version.version)])?;
    Ok(())
}

/// Saves the definition of an earlier version as a new one, under the checks of any other change.
///
/// # Errors
/// An unknown code or version, a definition that the ledger refuses now, a ledger that cannot be
/// reached.
pub async fn roll_back(settings: &Settings, args: RollbackArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.order.reason).map_err(refusal)?;
    let (ledger, newest) = open(settings, &args.code).await?;
    let stores = open_stores(settings).await?;
    let earlier = version_of(&ledger, &newest, args.order.version).await?;
    Series::compile(earlier.definition.clone())?;
    let change = [SeriesChange {
        definition: earlier.definition,
        expected: Expected::Version { series_id: newest.series_id, version: newest.version },
        saved_by: operator(),
        reason,
        saved_at_us: clock().now_us(),
    }];
    let saved = save(&ledger, &change, args.dry_run).await?;
    print_saved(&stores, saved, args.dry_run, args.json).await
}

/// Removes a series that has issued nothing. Joins as a node first: that compares the ledger with
/// what was confirmed to others, and holds one that may have forgotten the series' numbers.
///
/// # Errors
/// An unknown code, a series that has counters, a ledger that cannot be reached, a configured Redis
/// that does not answer.
pub async fn remove(settings: &Settings, args: ActivityArgs) -> anyhow::Result<()> {
    let reason = check_reason(&args.reason).map_err(refusal)?;
    let (_, newest) = open(settings, &args.code).await?;
    let removal = SeriesRemoval {
        series_id: newest.series_id,
        expected: None,
        removed_by: operator(),
        reason,
        removed_at_us: clock().now_us(),
    };
    let remove = async |service: &Service| {
        let Service { ledger, context, .. } = service;
        if let Some(redis) = &context.redis
            && !hear_redis(ledger, redis, &context.keys, &context.deployment).await?
        {
            // It cannot be undone, and numbers of the series may be known only there.
            bail!("redis does not answer, and may know of numbers of the series; try again later");
        }
        ledger.series().remove(context.membership.node(), &removal).await?;
        until_known(ledger).await;
        Ok(())
    };
    with_onlooker(settings, remove).await?;
    Ok(print([format!("{} removed", args.code)])?)
}

/// A version of a series; the one in force if none is named.
///
/// # Errors
/// There is no such version.
pub(crate) async fn find(
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
    match ledger.series().version(newest.series_id, wanted).await? {
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
