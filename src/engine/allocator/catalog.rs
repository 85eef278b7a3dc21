//! The series, compiled; replaced as a whole, so that no number is made by half a change.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use numbering::{Policy, ReferenceData, Series, SeriesDefinition, TypesServed};
use uuid::Uuid;

use super::earlier::Earlier;
use crate::engine::node::Context;
use crate::engine::sources::{SourceError, Sources};
use crate::ledger::{LedgerError, RestingSeries, SeriesVersion, SharedLedger, Stamps};
use crate::metrics::{Metrics, SeriesMeter};

/// The log line of a series that gives no numbers.
const SET_ASIDE: &str =
    "a stored series cannot be used and is set aside; save it again as it should be";

/// How often a catalog is read anew because something was changed while it was read.
const READS_MAX: usize = 5;

/// The series of the ledger, compiled; replaced as a whole when any of them changes.
#[derive(Debug, Default)]
pub struct Catalog {
    pub(super) active: Vec<Arc<ServedSeries>>,
    /// Those that serve no request: their numbers can still be read.
    pub(super) inactive: Vec<Arc<ServedSeries>>,
    /// As these served requests by last.
    pub(super) resting: Vec<Resting>,
    pub(super) set_aside: Vec<SetAside>,
    in_turns: Vec<Arc<ServedSeries>>,
    /// What refusals list.
    pub(super) types: TypesServed,
    /// Versions that others have followed, once a request has needed them.
    pub(super) earlier: Earlier,
    reference: Arc<ReferenceData>,
    stamp: CatalogStamp,
}

/// The state of the ledger when a catalog was loaded: differs once anything in it has changed, and
/// once the ledger is of another incarnation, where the same numbers may mean other series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogStamp {
    series: i64,
    reference: i64,
    incarnation: Option<Uuid>,
}

impl CatalogStamp {
    /// The stamp of the ledger now.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn read(ledger: &SharedLedger) -> Result<Self, LedgerError> {
        Ok(Self::of(ledger.stamps().await?))
    }

    /// Rises whenever any series changes.
    #[must_use]
    pub const fn series(self) -> i64 {
        self.series
    }

    /// Rises whenever any reference data change.
    #[must_use]
    pub const fn reference(self) -> i64 {
        self.reference
    }

    /// What of the ledger's stamps concerns a catalog.
    #[must_use]
    pub fn of(Stamps { series, reference, incarnation, .. }: Stamps) -> Self {
        CatalogStamp { series, reference, incarnation }
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
    pub(super) fn new(version: SeriesVersion, series: Series) -> Self {
        ServedSeries { version, series, meter: OnceLock::new() }
    }

    /// What is counted of it; looked up once.
    pub(super) fn meter(&self, metrics: &Metrics) -> &SeriesMeter {
        self.meter.get_or_init(|| metrics.series(&self.version.definition.code))
    }
}

/// A series that is deactivated, with its compiled form.
#[derive(Debug)]
pub(super) struct Resting {
    pub(super) from: RestingSeries,
    pub(super) series: Series,
}

/// A stored series that gives no numbers, since it does not compile, as one that another version of
/// the program saved, or accepts an ambiguity that no ledger would refuse in time (F43). No other
/// series is given its requests: they would get other numbers.
#[derive(Clone, Debug)]
pub struct SetAside {
    /// Its row in the ledger; of one that rests, the version by which it served last.
    pub version: SeriesVersion,
    /// What is wrong.
    pub why: String,
    /// Its compiled form, where it compiles: its numbers can still be read.
    pub(super) served: Option<Arc<ServedSeries>>,
}

impl Catalog {
    /// Reads and compiles the series.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub async fn load(ledger: &SharedLedger) -> Result<Self, LedgerError> {
        // What rests and what serves belong together: a series that was in neither of two answers
        // would leave its requests to another one.
        for _ in 0..READS_MAX {
            let stamp = CatalogStamp::read(ledger).await?;
            let reference = Arc::new(ledger.reference().data().await?);
            let (series, resting) =
                (ledger.series().list().await?, ledger.series().resting().await?);
            let hasty = ledger.series().hasty().await?;
            if CatalogStamp::read(ledger).await? == stamp {
                // Thousands of series take time to compile; other tasks must not wait for it.
                let compile = move || Self::of(series, resting, &hasty, reference, stamp);
                let compiled = tokio::task::spawn_blocking(compile).await;
                return Ok(compiled.expect("compiling does not panic"));
            }
        }
        let why = "series are being changed all the time; try again";
        Err(LedgerError::Conflict(why.into()))
    }

    /// Series that are not saved, as a ledger without any would have them together with its tables.
    #[must_use]
    pub fn foreseen(definitions: Vec<SeriesDefinition>, reference: Arc<ReferenceData>) -> Self {
        // No series of a ledger has such an id.
        let versions = (1..).zip(definitions).map(|(place, definition)| SeriesVersion {
            series_id: -place,
            version: 1,
            active: true,
            partition: 0,
            definition,
            saved_by: String::new(),
            saved_at_us: 0,
            reason: String::new(),
            is_new: false,
            stamp: place,
        });
        Self::of(versions, [], &[], reference, CatalogStamp::default())
    }

    /// Whether its series are not saved, and only [foreseen](Self::foreseen).
    #[must_use]
    pub fn is_foreseen(&self) -> bool {
        self.all().any(|served| served.version.series_id < 0)
    }

    /// The same series, as they read what was issued at any time: rows of tables that are not
    /// active any more, and memberships that have ended, count like the others.
    #[must_use]
    pub fn of_any_time(&self) -> Self {
        let reference = Arc::new(self.reference.all_active());
        let resting = self.resting.iter().map(|resting| resting.from.clone());
        let versions = self.active.iter().chain(&self.inactive).map(|served| &served.version);
        let versions = versions.chain(self.set_aside.iter().map(|aside| &aside.version)).cloned();
        let hasty = self.set_aside.iter().filter(|aside| aside.served.is_some());
        let hasty: Vec<_> =
            hasty.map(|aside| (aside.version.series_id, aside.why.clone())).collect();
        Self::of(versions, resting, &hasty, reference, self.stamp)
    }

    /// Compiles series; those that do not compile, or are `hasty`, are set aside, and the others
    /// serve.
    fn of(
        versions: impl IntoIterator<Item = SeriesVersion>,
        resting: impl IntoIterator<Item = RestingSeries>,
        hasty: &[(i64, String)],
        reference: Arc<ReferenceData>,
        stamp: CatalogStamp,
    ) -> Self {
        let mut catalog = Catalog { reference, stamp, ..Catalog::default() };
        for from in resting {
            if let Some(series) = catalog.compile(&from.last) {
                catalog.resting.push(Resting { from, series });
            }
        }
        for version in versions {
            let Some(series) = catalog.compile(&version) else { continue };
            let why = hasty.iter().find(|(series_id, _)| *series_id == version.series_id);
            let served = Arc::new(ServedSeries::new(version.clone(), series));
            match why.filter(|_| version.active) {
                Some((_, why)) => {
                    let (why, served) = (why.clone(), Some(served));
                    catalog.set_aside.push(SetAside { version, why, served });
                }
                None if version.active => catalog.active.push(served),
                None => catalog.inactive.push(served),
            }
        }
        let served = catalog.active.iter().chain(&catalog.inactive);
        catalog.in_turns = served.filter(|one| one.series.takes_turns()).cloned().collect();
        catalog.types = TypesServed::of(catalog.offered());
        catalog
    }

    /// The compiled form of a stored version, unless it has to be set aside.
    fn compile(&mut self, version: &SeriesVersion) -> Option<Series> {
        match Series::restore(version.definition.clone()) {
            Ok(series) => Some(series.with_reference(Arc::clone(&self.reference))),
            Err(error) => {
                let why = format!("this version of the program cannot use it: {error}");
                let version = version.clone();
                self.set_aside.push(SetAside { version, why, served: None });
                None
            }
        }
    }

    /// Those that give no numbers, and are not read where they do not compile.
    #[must_use]
    pub fn set_aside(&self) -> &[SetAside] {
        &self.set_aside
    }

    /// Counts every series from 0 on, and logs those that were set aside.
    pub(super) fn start_counting(&self, context: &Context) {
        context.metrics.series_set_aside.set(self.set_aside.len() as f64);
        context.series_set_aside.store(self.set_aside.len() as u64, Ordering::Relaxed);
        for SetAside { version, why, .. } in &self.set_aside {
            let (code, version) = (&version.definition.code, version.version);
            tracing::error!(code, version, error = why, "{SET_ASIDE}");
        }
        let codes = self.all().map(|served| served.version.definition.code.as_str());
        context.metrics.keep_series(codes);
        for served in self.all() {
            served.meter(&context.metrics);
        }
    }

    /// Logs series whose source is not in the settings: their requests are refused until it is.
    pub(super) fn tell_unknown(&self, sources: &Sources) {
        for served in &self.active {
            if let Some(warning) = unknown_source(&served.series, sources) {
                let code = &served.version.definition.code;
                tracing::warn!(code, "{warning}; it gives no numbers here until then");
            }
        }
    }

    /// All active series, by code.
    #[must_use]
    pub fn active(&self) -> &[Arc<ServedSeries>] {
        &self.active
    }

    /// All series that are deactivated, by code.
    #[must_use]
    pub fn inactive(&self) -> &[Arc<ServedSeries>] {
        &self.inactive
    }

    /// All series that can be read, the active ones first, those last that are set aside.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ServedSeries>> {
        let aside = self.set_aside.iter().filter_map(|aside| aside.served.as_ref());
        self.active.iter().chain(&self.inactive).chain(aside)
    }

    /// All series in their versions in force, compiled where they compile.
    pub fn known(&self) -> impl Iterator<Item = (&SeriesVersion, Option<&Series>)> {
        let all = self.all().map(|served| (&served.version, Some(&served.series)));
        let unread = self.set_aside.iter().filter(|aside| aside.served.is_none());
        all.chain(unread.map(|aside| (&aside.version, None)))
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

    /// Those that serve documents of some days alone, active or not: they take turns with others.
    pub(super) fn in_turns(&self) -> &[Arc<ServedSeries>] {
        &self.in_turns
    }
}

/// The warning of a series whose source this process does not know.
pub(super) fn unknown_source(series: &Series, sources: &Sources) -> Option<String> {
    let name = series.sourced()?.source;
    let unknown = || SourceError::Unknown { name: name.to_owned() }.to_string();
    (!sources.knows(name)).then(unknown)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use numbering::Inputs;
    use serde_json::json;

    use super::*;

    fn version(code: &str, template: &str, serves: &serde_json::Value) -> SeriesVersion {
        let definition = json!({
            "code": code, "name": "n", "template": template, "serves": serves, "serials": [{}],
        });
        SeriesVersion {
            series_id: 1,
            version: 1,
            active: true,
            partition: 0,
            definition: serde_json::from_value(definition).expect("a definition"),
            saved_by: "me".into(),
            saved_at_us: 0,
            reason: "because".into(),
            is_new: false,
            stamp: 1,
        }
    }

    /// Goal: an invalid stored series keeps no other from serving, and no other gets its requests.
    /// Method: a rule that does not compile next to a default for the same type, active, and as
    /// what served before it was deactivated.
    #[test]
    fn a_stored_series_that_cannot_be_used_is_set_aside_and_nobody_gets_its_requests() {
        let broken = || version("RULE", "{NOPE}", &json!({ "types": ["T"] }));
        let default =
            || version("DEF", "D{SEQ:3}", &json!({ "types": ["T", "U"], "default": true }));
        let of = |versions: Vec<SeriesVersion>, resting: Vec<RestingSeries>| {
            Catalog::of(versions, resting, &[], Arc::default(), CatalogStamp::default())
        };
        let asked = |catalog: &Catalog, type_code: &str| {
            let inputs = Inputs { type_code: type_code.into(), ..Inputs::default() };
            let chosen =
                catalog.choose(&inputs, Timestamp::UNIX_EPOCH).map_err(|error| error.to_string());
            chosen.map(|served| served.version.definition.code.clone())
        };
        let resting = RestingSeries { last: broken(), since: 0 };
        for catalog in [of(vec![broken(), default()], vec![]), of(vec![default()], vec![resting])] {
            assert_eq!(asked(&catalog, "U").as_deref(), Ok("DEF"));
            let told = asked(&catalog, "T").expect_err("RULE may number it");
            assert!(told.contains("series RULE") && told.contains("set aside"), "{told}");
            assert_eq!(catalog.set_aside().len(), 1);
            assert_eq!(catalog.of_any_time().set_aside().len(), 1);
        }
        // A series that serves no request keeps no request from others.
        let idle = SeriesVersion { active: false, ..broken() };
        assert_eq!(asked(&of(vec![idle, default()], vec![]), "T").as_deref(), Ok("DEF"));
    }
}
