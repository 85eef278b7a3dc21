//! Rows of the journal as an engine gives them, to be read elsewhere: reading takes as long as
//! fetching them.

use sqlx::sqlite::SqliteRow;

use crate::columns::unreadable;
use crate::{JournalTexts, LedgerError, SealedRow, postgres, sqlite};

/// Rows that are not read yet.
pub(crate) enum RawRows {
    /// The bytes of COPY.
    Copied(Vec<u8>),
    /// The rows of a statement.
    Fetched(Vec<SqliteRow>),
}

impl std::fmt::Debug for RawRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawRows(..)")
    }
}

impl RawRows {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            RawRows::Copied(_) => false,
            RawRows::Fetched(rows) => rows.is_empty(),
        }
    }

    /// Reads them.
    pub(crate) fn read(&self, texts: &JournalTexts) -> Result<Vec<SealedRow>, LedgerError> {
        match self {
            RawRows::Copied(bytes) => {
                let rows = postgres::rows_of(bytes, texts);
                rows.ok_or_else(|| unreadable("journal", "what COPY gave"))
            }
            RawRows::Fetched(rows) => {
                rows.iter().map(|row| Ok(sqlite::row_of(row, texts)?)).collect()
            }
        }
    }
}
