//! Versions of series that others have followed: numbers that they issued are read by them. Nobody
//! who only takes numbers needs them, so they are read when somebody asks for the first time, and
//! forgotten with the catalog.

use std::collections::HashMap;
use std::sync::Arc;

use numbering::{Policy, Series, SeriesDefinition};
use tokio::sync::OnceCell;

use super::catalog::{Catalog, ServedSeries};
use crate::ledger::{LedgerError, SeriesVersion, SharedLedger};

/// Most versions that are read; of more, the newest.
const EARLIER_MAX: u32 = 10_000;

/// Those of all series, the newest first.
pub(super) type Earlier = OnceCell<HashMap<i64, Vec<Arc<ServedSeries>>>>;

impl Catalog {
    /// Reads the earlier versions of all series, unless they are known: those that read numbers
    /// otherwise than the ones that followed.
    ///
    /// # Errors
    /// A ledger that does not answer.
    ///
    /// # Panics
    /// Never: compiling does not panic.
    pub async fn know_earlier(self: &Arc<Self>, ledger: &SharedLedger) -> Result<(), LedgerError> {
        let read = async || {
            let versions = ledger.earlier_versions(EARLIER_MAX).await?;
            let catalog = Arc::clone(self);
            let compiling = tokio::task::spawn_blocking(move || catalog.compile_earlier(versions));
            Ok(compiling.await.expect("compiling does not panic"))
        };
        self.earlier.get_or_try_init(read).await.map(drop)
    }

    fn compile_earlier(
        &self,
        versions: Vec<SeriesVersion>,
    ) -> HashMap<i64, Vec<Arc<ServedSeries>>> {
        let mut known: HashMap<i64, Vec<SeriesDefinition>> = HashMap::new();
        for (version, _) in self.known() {
            known.entry(version.series_id).or_default().push(as_it_reads(&version.definition));
        }
        let mut earlier: HashMap<i64, Vec<Arc<ServedSeries>>> = HashMap::new();
        for version in versions {
            let of_series = known.entry(version.series_id).or_default();
            let reads = as_it_reads(&version.definition);
            if of_series.contains(&reads) {
                continue;
            }
            of_series.push(reads);
            // What does not compile any more reads nothing.
            let Ok(series) = Series::restore(version.definition.clone()) else { continue };
            let series = series.with_reference(Arc::clone(self.reference()));
            let list = earlier.entry(version.series_id).or_default();
            list.push(Arc::new(ServedSeries::new(version, series)));
        }
        earlier
    }

    /// The earlier versions of a series, the newest first, as far as they are known.
    pub(crate) fn earlier_of(&self, series_id: i64) -> &[Arc<ServedSeries>] {
        self.earlier.get().and_then(|earlier| earlier.get(&series_id)).map_or(&[], Vec::as_slice)
    }
}

/// A definition without what says nothing of how numbers are read.
fn as_it_reads(definition: &SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition {
        name: String::new(),
        description: String::new(),
        policy: Policy::Fast,
        once_per_document: None,
        chronology: false,
        closed_before: None,
        document_date: None,
        dates: None,
        ambiguity_accepted: None,
        ..definition.clone()
    }
}
