//! Versions of series that others have followed: they read the numbers that they issued. Taking
//! numbers does not need them, so they are read when a request first needs them, and forgotten with
//! the catalog.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use numbering::{Documents, Policy, Series, SeriesDefinition};
use sha2::{Digest, Sha256};
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
    /// A ledger that does not answer, or a process that ends.
    pub async fn know_earlier(self: &Arc<Self>, ledger: &SharedLedger) -> Result<(), LedgerError> {
        let read = async || {
            let versions = ledger.series().earlier_versions(EARLIER_MAX).await?;
            let catalog = Arc::clone(self);
            let compiling = tokio::task::spawn_blocking(move || catalog.compile_earlier(versions));
            compiling.await.map_err(|error| LedgerError::Unreachable {
                cause: format!("earlier versions were not compiled: {error}"),
                maybe_written: false,
            })
        };
        self.earlier.get_or_try_init(read).await.map(drop)
    }

    fn compile_earlier(
        &self,
        versions: Vec<SeriesVersion>,
    ) -> HashMap<i64, Vec<Arc<ServedSeries>>> {
        let reads = |version: &SeriesVersion| (version.series_id, as_it_reads(&version.definition));
        let mut known: HashSet<_> = self.known().map(|(version, _)| reads(version)).collect();
        let mut earlier: HashMap<i64, Vec<Arc<ServedSeries>>> = HashMap::new();
        for version in versions {
            if !known.insert(reads(&version)) {
                continue;
            }
            // A version that no longer compiles reads nothing.
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

/// The hash of a definition without the fields that do not affect how numbers are read: there may
/// be ten thousand of one series.
fn as_it_reads(definition: &SeriesDefinition) -> [u8; 32] {
    let reads = SeriesDefinition {
        name: String::new(),
        description: String::new(),
        policy: Policy::Fast,
        once_per_document: None,
        documents: Documents::Series,
        chronology: false,
        by_hand: false,
        closed_before: None,
        document_date: None,
        dates: None,
        ambiguity_accepted: None,
        ..definition.clone()
    };
    Sha256::digest(serde_json::to_vec(&reads).expect("a definition is plain data")).into()
}
