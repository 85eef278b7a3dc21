//! `numerator series close-period`: closes a series for documents dated before a day.

use anyhow::bail;
use clap::Args;
use numbering::Series;

use crate::config::Settings;
use crate::features::series::command::print_saved;
use crate::ledger::{Expected, SeriesChange};
use crate::terminal::session::{clock, open_ledger, open_stores, operator, refusal, until_known};
use crate::web::reason::check_reason;

/// What to close.
#[derive(Clone, Debug, Args)]
pub struct ClosePeriodArgs {
    /// Code of the series
    pub code: String,
    /// The first day that stays open, such as 2025-01-01
    #[arg(long, value_name = "DATE")]
    pub before: String,
    /// Why, for the history of the series
    #[arg(long)]
    pub reason: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Saves the series with its new day.
///
/// # Errors
/// An unknown code, a day that is invalid or that would open a closed period again, a ledger that
/// cannot be reached.
pub(crate) async fn close(settings: &Settings, args: ClosePeriodArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let active = ledger.series().list().await?;
    let Some(version) = active.into_iter().find(|version| version.definition.code == args.code)
    else {
        bail!("no active series has the code {:?}; `numerator series list` lists them", args.code);
    };
    let mut definition = version.definition.clone();
    let closed = definition.closed_before.replace(args.before);
    // Only a valid day can be compared with another.
    let definition = Series::restore(definition)?.definition().clone();
    if let Some(closed) = closed.filter(|closed| Some(closed) > definition.closed_before.as_ref()) {
        bail!(
            "series {} is closed before {closed} already; to open a period again, apply the series \
             with another `closed_before`",
            args.code
        );
    }
    let (series_id, version) = (version.series_id, version.version);
    let change = SeriesChange {
        definition,
        expected: Expected::Version { series_id, version },
        saved_by: operator(),
        reason: check_reason(&args.reason).map_err(refusal)?,
        saved_at_us: clock().now_us(),
    };
    let saved = ledger.series().apply(&[change]).await?;
    until_known(&ledger).await;
    print_saved(&open_stores(settings).await?, saved, false, args.json).await
}
