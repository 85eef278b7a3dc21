//! `numerator series versions | activate | deactivate | remove`: what a series was, and whether it
//! serves.

use anyhow::bail;
use clap::Args;

use super::output::{print, print_json};
use super::session::{clock, refusal, with_service};
use super::words::{moment, table};
use crate::access::LOCAL_USER;
use crate::config::Settings;
use crate::http::{ConfigAnswer, check_reason};
use crate::ledger::{ActivityChange, SeriesRemoval, SeriesVersion, SharedLedger};
use crate::process::hear_redis;
use crate::service::{self, Service};

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
    let what = if active { "active" } else { "not active" };
    let since = if version.is_new { "from now on" } else { "already" };
    print([format!("{} version {} is {what} {since}", args.code, version.version)])?;
    Ok(())
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
        Ok(ledger.remove_series(context.membership.node(), &removal).await?)
    };
    with_service(settings, remove).await?;
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
    let Some(wanted) = version else { return Ok(newest) };
    match ledger.series_version(newest.series_id, wanted).await? {
        Some(found) => Ok(found),
        None => bail!("series {code} has the versions 1 to {}, not {wanted}", newest.version),
    }
}

/// The ledger, and the version of a series in force there.
async fn open(settings: &Settings, code: &str) -> anyhow::Result<(SharedLedger, SeriesVersion)> {
    let (ledger, _, catalog) = service::open_catalog(settings, &clock()).await?;
    match catalog.all().find(|served| served.version.definition.code == code) {
        Some(found) => Ok((ledger, found.version.clone())),
        None => bail!("no series has the code {code:?}; `numerator series list` lists them"),
    }
}
