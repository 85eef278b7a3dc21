//! The series, compiled; replaced as a whole, so that no number is made by half a change.

use std::sync::{Arc, OnceLock};

use numbering::{
    Explanation, Inputs, PartialNumber, Policy, ReferenceData, RuleError, Series, TemplateError,
    choose, comes_before, explain,
};
use thiserror::Error;

use crate::ledger::{Entry, JournalRow, LedgerError, RestingSeries, SeriesVersion, SharedLedger};
use crate::metrics::{Metrics, SeriesMeter};

/// Most counters asked for in the search for one number.
const PROBES_MAX: usize = 64;

/// How often a catalog is read anew because something was changed while it was read.
const READS_MAX: usize = 5;

/// The series of the ledger, compiled; replaced as a whole when any of them changes.
#[derive(Debug, Default)]
pub struct Catalog {
    active: Vec<Arc<ServedSeries>>,
    /// Those that serve no request: their numbers can still be read.
    inactive: Vec<Arc<ServedSeries>>,
    /// As these served requests by last.
    resting: Vec<Resting>,
    reference: Arc<ReferenceData>,
    stamp: CatalogStamp,
}

/// Where the ledger stood when a catalog was loaded: differs once anything in it has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogStamp {
    series: i64,
    reference: i64,
}

impl CatalogStamp {
    /// The stamp of the ledger now.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn read(ledger: &SharedLedger) -> Result<Self, LedgerError> {
        let (series, reference) = (ledger.series_stamp().await?, ledger.reference_stamp().await?);
        Ok(CatalogStamp { series, reference })
    }
}

/// One series.
#[derive(Debug)]
pub struct ServedSeries {
    /// Its row in the ledger.
    pub version: SeriesVersion,
    /// Its compiled form.
    pub series: Series,
    meter: OnceLock<Arc<SeriesMeter>>,
}

impl ServedSeries {
    fn new(version: SeriesVersion, series: Series) -> Self {
        ServedSeries { version, series, meter: OnceLock::new() }
    }

    /// What is counted of it; looked up once.
    pub(super) fn meter(&self, metrics: &Metrics) -> &SeriesMeter {
        self.meter.get_or_init(|| metrics.series(&self.version.definition.code))
    }
}

/// A series that is deactivated, with its compiled form.
#[derive(Debug)]
struct Resting {
    from: RestingSeries,
    series: Series,
}

/// Why the catalog could not be loaded.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// The ledger did not answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A stored definition does not compile: it was saved by a newer version.
    #[error("series {code} version {version}: {error}")]
    Series {
        /// Its code.
        code: String,
        /// Its version.
        version: u32,
        /// What is wrong.
        error: TemplateError,
    },
}

impl Catalog {
    /// Reads and compiles the series.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub async fn load(ledger: &SharedLedger) -> Result<Self, CatalogError> {
        // What rests and what serves belong together: a series that was in neither of two answers
        // would leave its requests to another one.
        for _ in 0..READS_MAX {
            let stamp = CatalogStamp::read(ledger).await?;
            let reference = Arc::new(ledger.reference_data().await?);
            let (series, resting) = (ledger.series().await?, ledger.resting_series().await?);
            if CatalogStamp::read(ledger).await? == stamp {
                return Self::of(series, resting, reference, stamp);
            }
        }
        let why = "series are being changed all the time; try again";
        Err(LedgerError::Conflict(why.into()).into())
    }

    /// The same series, as they read what was issued at any time: rows of tables that are not
    /// active any more, and memberships that have ended, count like the others.
    ///
    /// # Errors
    /// None for series that were compiled before.
    pub fn of_any_time(&self) -> Result<Self, CatalogError> {
        let reference = Arc::new(self.reference.all_active());
        let resting = self.resting.iter().map(|resting| resting.from.clone());
        Self::of(self.all().map(|served| served.version.clone()), resting, reference, self.stamp)
    }

    /// Compiles series.
    fn of(
        versions: impl IntoIterator<Item = SeriesVersion>,
        resting: impl IntoIterator<Item = RestingSeries>,
        reference: Arc<ReferenceData>,
        stamp: CatalogStamp,
    ) -> Result<Self, CatalogError> {
        let (mut active, mut inactive) = (Vec::new(), Vec::new());
        let compile = |version: &SeriesVersion| {
            let compiled = Series::compile(version.definition.clone()).map_err(|error| {
                CatalogError::Series {
                    code: version.definition.code.clone(),
                    version: version.version,
                    error,
                }
            })?;
            Ok::<_, CatalogError>(compiled.with_reference(Arc::clone(&reference)))
        };
        let resting = resting.into_iter().map(|from| {
            let series = compile(&from.last)?;
            Ok::<_, CatalogError>(Resting { from, series })
        });
        let resting = resting.collect::<Result<Vec<_>, _>>()?;
        for version in versions {
            let compiled = compile(&version)?;
            let list = if version.active { &mut active } else { &mut inactive };
            list.push(Arc::new(ServedSeries::new(version, compiled)));
        }
        Ok(Catalog { active, inactive, resting, reference, stamp })
    }

    /// Has every series counted from 0 on.
    pub(super) fn start_counting(&self, metrics: &Metrics) {
        for served in self.all() {
            served.meter(metrics);
        }
    }

    /// All active series, by code.
    #[must_use]
    pub fn active(&self) -> &[Arc<ServedSeries>] {
        &self.active
    }

    /// All series that are deactivated, by code (R4.3).
    #[must_use]
    pub fn inactive(&self) -> &[Arc<ServedSeries>] {
        &self.inactive
    }

    /// All series, the active ones first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ServedSeries>> {
        self.active.iter().chain(&self.inactive)
    }

    /// Whether a series is active whose numbers the database always takes.
    #[must_use]
    pub fn has_gapless(&self) -> bool {
        self.active.iter().any(|served| served.version.definition.policy == Policy::Gapless)
    }

    /// The ledger's stamp when this was loaded.
    #[must_use]
    pub fn stamp(&self) -> CatalogStamp {
        self.stamp
    }

    /// The reference data that all its series share.
    #[must_use]
    pub fn reference(&self) -> &Arc<ReferenceData> {
        &self.reference
    }

    /// The active series that serves a request (R2.9). One that would be given it only because
    /// another was deactivated since it was saved has not been proved for it, and does not.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn choose(&self, inputs: &Inputs) -> Result<&Arc<ServedSeries>, RuleError> {
        let active = || self.active.iter().map(|served| &served.series);
        let chosen = match choose(active(), inputs) {
            Ok(index) => &self.active[index],
            Err(error) => return Err(self.know_inactive(error, inputs)),
        };
        let later = self.resting.iter().filter(|resting| {
            let code = &resting.from.last.definition.code;
            resting.from.since > chosen.version.stamp && *code != chosen.version.definition.code
        });
        let mut before =
            later.filter(|resting| comes_before(&resting.series, &chosen.series, active(), inputs));
        match before.next() {
            None => Ok(chosen),
            Some(resting) => Err(RuleError::waiting(&resting.series, &chosen.series, inputs)),
        }
    }

    /// Which active series would serve a request, and why the others would not (R2.9).
    #[must_use]
    pub fn explain(&self, inputs: &Inputs) -> Vec<Explanation> {
        explain(self.active.iter().map(|served| &served.series), inputs)
    }

    /// A type that only series serve that are deactivated is not unknown (R4.3).
    fn know_inactive(&self, error: RuleError, inputs: &Inputs) -> RuleError {
        let serves = |served: &&Arc<ServedSeries>| served.series.names_type_of(inputs);
        match (error, self.inactive.iter().find(serves)) {
            (RuleError::UnknownType { type_code, .. }, Some(served)) => {
                let code = &served.version.definition.code;
                let hint = format!("series {code} numbers it, and is not active");
                RuleError::TypeNotConfigured { type_code, hint }
            }
            (error, _) => error,
        }
    }

    /// The journal rows of the ranges that hold a number, one for each scope of uniqueness at most,
    /// as far as a series can read the number and it shows which counter it came from. A range
    /// stands in the journal under its first number only, so its other numbers are found by their
    /// value.
    ///
    /// # Errors
    /// Whatever keeps the ledger from answering.
    pub async fn find_ranges(
        &self,
        ledger: &SharedLedger,
        number: &str,
    ) -> Result<Vec<JournalRow>, LedgerError> {
        let mut found: Vec<JournalRow> = Vec::new();
        let mut probes = 0;
        for served in self.all() {
            let Ok(parsed) = served.series.parse(number) else { continue };
            let Some(first) = parsed.serials.first() else { continue };
            let value = first.value;
            for key in served.series.origins(&parsed) {
                if probes == PROBES_MAX {
                    return Ok(found);
                }
                probes += 1;
                let series_id = served.version.series_id;
                let key = key.to_string();
                let Some(counter) = ledger.counter(series_id, &first.name, &key).await? else {
                    continue;
                };
                let row = ledger.row_of(counter.counter_id, value).await?;
                found.extend(row.filter(|row| shows(&row.entry, value, number)));
            }
        }
        Ok(found)
    }
}

/// Whether an entry has rendered a number for a value of its first serial.
fn shows(entry: &Entry, value: u64, number: &str) -> bool {
    let Some(head) = entry.taken.first() else { return false };
    let place = (value - head.range.first) / head.range.step;
    let values: Vec<u64> =
        entry.taken.iter().map(|taken| taken.range.first + place * taken.range.step).collect();
    let text = PartialNumber::parse(&entry.record.mask)
        .ok()
        .and_then(|partial| partial.fill(&values).ok());
    text.as_deref() == Some(number)
}
