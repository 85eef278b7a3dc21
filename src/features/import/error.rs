//! Why an import cannot proceed. A flaw of one row is a problem of the report instead.

use thiserror::Error;

use crate::ledger::LedgerError;

/// Why an import ended. Nothing is written unless the ledger reports that it may have been.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("{file}: {cause}")]
    File {
        /// Its name.
        file: String,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The file, or its first line, is not what an import reads.
    #[error("{place}: {reason}")]
    Form {
        /// The file and line, or the option.
        place: String,
        /// The flaw, and the remedy.
        reason: String,
    },
    /// The database that is read does not answer as it should.
    #[error("source: {0}")]
    Source(#[from] sqlx::Error),
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl ImportError {
    /// Whether the ledger may have taken the import nevertheless.
    #[must_use]
    pub fn maybe_written(&self) -> bool {
        matches!(self, ImportError::Ledger(error) if error.maybe_written())
    }

    /// A file that cannot be read.
    pub(super) fn file(file: &std::path::Path, cause: std::io::Error) -> Self {
        ImportError::File { file: file.display().to_string(), cause }
    }

    /// A file or option that is not as required.
    pub(super) fn form(place: impl std::fmt::Display, reason: impl std::fmt::Display) -> Self {
        ImportError::Form { place: place.to_string(), reason: reason.to_string() }
    }
}
