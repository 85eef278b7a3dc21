//! A version of a series as answers and listings show it.

use numbering::SeriesDefinition;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger::SeriesVersion;
use crate::web::instant::instant;

/// One version of a series.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConfigAnswer {
    /// Its id.
    pub config_id: i64,
    /// Its code.
    pub code: String,
    /// Its version, from 1; with the id the header `ETag`.
    pub version: u32,
    /// Whether it serves requests.
    pub active: bool,
    /// The series as it was written, with the names of series files.
    #[schema(value_type = Object)]
    pub definition: SeriesDefinition,
    /// Whether a document keeps its number for ever: what the definition says, or else its policy.
    pub once_per_document: bool,
    /// Who saved this version.
    pub saved_by: String,
    /// When.
    #[schema(format = DateTime)]
    pub saved_at: String,
    /// Why.
    pub reason: String,
}

impl ConfigAnswer {
    /// The answer for a version of the ledger.
    #[must_use]
    pub fn of(version: &SeriesVersion) -> Self {
        ConfigAnswer {
            config_id: version.series_id,
            code: version.definition.code.clone(),
            version: version.version,
            active: version.active,
            definition: version.definition.clone(),
            once_per_document: version.definition.is_once_per_document(),
            saved_by: version.saved_by.clone(),
            saved_at: instant(version.saved_at_us),
            reason: version.reason.clone(),
        }
    }
}
