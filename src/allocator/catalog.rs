//! The active series, compiled; replaced as a whole, so that no number is made by half a change.

use std::sync::Arc;

use thiserror::Error;

use crate::ledger::{LedgerError, SeriesVersion, SharedLedger};
use crate::number::{RuleError, Series, TemplateError, choose};

/// The active series of the ledger, compiled; replaced as a whole when any of them changes.
#[derive(Debug, Default)]
pub struct Catalog {
    series: Vec<Arc<ServedSeries>>,
    stamp: i64,
}

/// One active series.
#[derive(Debug)]
pub struct ServedSeries {
    /// Its row in the ledger.
    pub version: SeriesVersion,
    /// Its compiled form.
    pub series: Series,
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
    /// Reads and compiles the active series.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub async fn load(ledger: &SharedLedger) -> Result<Self, CatalogError> {
        // The stamp is read first: a change in between is seen again, never missed.
        let stamp = ledger.series_stamp().await?;
        let mut series = Vec::new();
        for version in ledger.series().await? {
            let compiled = Series::compile(version.definition.clone()).map_err(|error| {
                CatalogError::Series {
                    code: version.definition.code.clone(),
                    version: version.version,
                    error,
                }
            })?;
            series.push(Arc::new(ServedSeries { version, series: compiled }));
        }
        Ok(Catalog { series, stamp })
    }

    /// All active series, by code.
    #[must_use]
    pub fn all(&self) -> &[Arc<ServedSeries>] {
        &self.series
    }

    /// The ledger's stamp when this was loaded.
    #[must_use]
    pub fn stamp(&self) -> i64 {
        self.stamp
    }

    /// The series that serves a type and project (R2.9).
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn choose(
        &self,
        type_code: &str,
        project: Option<&str>,
    ) -> Result<&Arc<ServedSeries>, RuleError> {
        let index = choose(self.series.iter().map(|served| &served.series), type_code, project)?;
        Ok(&self.series[index])
    }
}
