//! Of what a paper is drawn up, as a query or a command line says it, and the paper.

use std::sync::Arc;

use clap::Args;
use numbering::Series;
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;

use crate::clock::SharedClock;
use crate::engine::allocator::Catalog;
use crate::features::register::counters::of_project;
use crate::features::register::whole::Whole;
use crate::features::statement::{Asked, AskedPeriod, Bounds, Labels, Statement, Undrawn, draw_up};
use crate::language::Locale;
use crate::ledger::{CounterFilter, LedgerError, SeriesVersion, SharedLedger};
use crate::web::body::must_be_storable;
use crate::web::problem::Problem;
use crate::web::visibility::unknown_series;

/// Versions of a series that are read at once.
const VERSIONS_PAGE: u32 = 100;

/// The period, as the command line says it.
const PERIOD_HELP: &str = "\
    Of counters of this period A.D. and of those within it: 2026, 2026-Q1, 2026-01, 2026-W05, \
    2026-01-22. Counters that go on beyond it are shown as a whole, with the part that is dated in \
    it";

/// Of what the paper is, and its form.
#[derive(Clone, Debug, Default, Args, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatementQuery {
    /// Code of the series, active or not.
    #[arg(long, required = true, value_name = "CODE", help = "Of this series, active or not")]
    pub(crate) series: Option<String>,
    /// A period A.D.: `2026`, `2026-Q1`, `2026-01`, `2026-W05`, `2026-01-22`, or a time of such a
    /// day. Counters of periods within it are on the paper. One that goes on beyond it, or never
    /// begins anew, is shown as a whole, with the part whose documents are dated in the period.
    #[arg(long, required = true, value_name = "PERIOD", help = PERIOD_HELP)]
    pub(crate) period: Option<String>,
    /// Only what is counted for this project.
    #[arg(long, help = "Only what is counted for this project")]
    pub(crate) project: Option<String>,
    /// `json` (without it), `text`, `csv` or `html`.
    #[arg(skip)]
    pub(crate) format: Option<String>,
    /// Of which series a counter that counts no project apart is shown to who asks for a project.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) whole: Whole,
}

/// The paper.
///
/// # Errors
/// An invalid question, by its field; a ledger that does not answer.
pub(crate) async fn find_statement(
    ledger: &SharedLedger,
    clock: &SharedClock,
    catalog: &Catalog,
    query: StatementQuery,
    (language, bounds): (Locale, Bounds),
) -> Result<Statement, Problem> {
    let StatementQuery { series, period, project, format: _, whole } = query;
    let normal = |text: Option<String>| text.map(|text| text.nfc().collect::<String>());
    let (series, project) = (normal(series), normal(project));
    must_be_storable(&[("series", &series), ("project", &project)])?;
    let series = series.ok_or_else(|| {
        Problem::field("series", "is missing: the code of the series, as `series list` shows it")
    })?;
    let known = catalog.known().find(|(version, _)| version.definition.code == series);
    let (version, compiled) = known.ok_or_else(|| unknown_series(&series))?;
    let eras = compiled.map(Series::eras).unwrap_or_default();
    let reference = Arc::clone(catalog.reference());
    let labels = Labels::of(language, &eras, version.definition.clone(), reference);
    let series_id = version.series_id;
    let period = period.as_deref().and_then(AskedPeriod::read).ok_or_else(not_a_period)?;
    let keys = period.keys(series_id, &fiscal_year_starts(ledger, version).await?);
    let mut filter = CounterFilter { series_id: Some(series_id), ..CounterFilter::default() };
    if let Some(project) = &project {
        filter.keys.push(of_project(catalog, project, &whole));
        let one = CounterFilter { limit: 1, ..filter.clone() };
        if ledger.counters().list(&one).await?.is_none_or(|found| found.is_empty()) {
            return Err(uncounted(&series, project));
        }
    }
    let asked = Asked { language, labels, series, period, project, filter, keys };
    draw_up(ledger, clock, asked, bounds).await.map_err(|undrawn| match undrawn {
        Undrawn::TooManyCounters(_) | Undrawn::TooManyRows(_) => {
            Problem::field("period", undrawn.to_string())
        }
        Undrawn::Ledger(error) => of_ledger(error),
    })
}

/// The months in which the fiscal year of a series begins, or began in an earlier version: counters
/// keep the names that they got then.
async fn fiscal_year_starts(
    ledger: &SharedLedger,
    in_force: &SeriesVersion,
) -> Result<Vec<Option<u8>>, LedgerError> {
    let mut starts = vec![in_force.definition.fiscal_year_start];
    let mut upto = u32::MAX;
    loop {
        let page = ledger.series().versions(in_force.series_id, upto, VERSIONS_PAGE).await?;
        starts.extend(page.iter().map(|version| version.definition.fiscal_year_start));
        starts.sort_unstable();
        starts.dedup();
        match page.last().map(|last| last.version) {
            Some(last) if last > 1 => upto = last - 1,
            _ => return Ok(starts),
        }
    }
}

/// The only refusal of a project for which nothing is counted, as far as the caller can see.
pub(super) fn uncounted(series: &str, project: &str) -> Problem {
    let reason = format!(
        "no counter of series {series} counts for the project {project:?}; `counters --series` \
         shows what is counted, or leave it out. A counter that several projects share is shown to \
         who reaches all of them"
    );
    Problem::field("project", reason)
}

/// A search that the database ended covers too much of a period.
fn of_ledger(error: LedgerError) -> Problem {
    match error {
        LedgerError::LockTimeout { .. } => {
            Problem::field("period", "takes longer than a search may: ask for a part of it")
        }
        error => error.into(),
    }
}

fn not_a_period() -> Problem {
    Problem::field(
        "period",
        "must be a period A.D. such as 2026 (for 2569 B.E.), 2026-Q1, 2026-01, 2026-W05 or \
         2026-01-22",
    )
}
