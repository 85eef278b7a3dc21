//! The series of which a caller narrowed to projects is shown every counter: a counter without a
//! project dimension is a counter of all projects that its series has ever served.

use std::collections::BTreeSet;

use numbering::SeriesDefinition;

use crate::engine::allocator::Catalog;
use crate::ledger::{LedgerError, SeriesVersion, SharedLedger};
use crate::web::App;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// Versions of a series that are examined, in all and per statement; more leave it unknown.
const VERSIONS_MAX: u32 = 1_000;
const PAGE_VERSIONS: u32 = 100;

/// Ids of series; `None`: all of them.
pub(crate) type Whole = Option<BTreeSet<i64>>;

/// Among the requested series, those all of whose numbers the caller is shown.
pub(crate) async fn whole_series(
    app: &App,
    caller: &Caller,
    catalog: &Catalog,
    (series, project): (Option<&str>, Option<&str>),
) -> Result<Whole, Problem> {
    if caller.scope().projects().is_empty() {
        return Ok(None);
    }
    let is_asked = |SeriesDefinition { code, serves, serials, .. }: &SeriesDefinition| {
        let served = |project: &str| serves.projects.iter().any(|one| one == project);
        series.is_none_or(|series| series == code)
            && project.is_some_and(served)
            && serials.iter().any(|serial| !serial.counter.iter().any(|one| one == "project"))
    };
    let asked = catalog.known().map(|(version, _)| version);
    let asked = asked.filter(|version| is_asked(&version.definition));
    let whole = asked.filter(|version| caller.must_hold(version).is_ok());
    let whole: Vec<_> = whole.map(|version| (version.series_id, version.version)).collect();
    let by = caller.clone();
    let looking = app.read(caller, |ledger| async move {
        let mut held = BTreeSet::new();
        for (series_id, version) in whole {
            let is_held = |version: &SeriesVersion| by.must_hold(version).is_ok();
            if were_all(&ledger, (series_id, version), is_held).await? {
                held.insert(series_id);
            }
        }
        Ok::<_, LedgerError>(Some(held))
    });
    looking.await
}

/// Whether every version of a series up to one has a property.
async fn were_all(
    ledger: &SharedLedger,
    (series_id, version): (i64, u32),
    is_so: impl Fn(&SeriesVersion) -> bool,
) -> Result<bool, LedgerError> {
    if version > VERSIONS_MAX {
        return Ok(false);
    }
    let mut upto = version;
    loop {
        let page = ledger.series().versions(series_id, upto, PAGE_VERSIONS).await?;
        let Some(oldest) = page.last().map(|version| version.version) else { return Ok(true) };
        if !page.iter().all(&is_so) {
            return Ok(false);
        }
        upto = oldest.saturating_sub(1);
    }
}
