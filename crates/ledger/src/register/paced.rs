//! Connections of look-ups that may look through many rows: how long each of their statements may
//! take. Knows no query.

use std::time::Duration;

use crate::calls::{Call, SEARCH};
use crate::dialect::{Acquired, Conn, Transaction};
use crate::store::Store;
use crate::{LedgerError, SearchPace};

/// How long a look-up may look through rows where statements have no limit of their own.
const FIND_TIME: Duration = Duration::from_secs(5);

/// A connection whose statements are limited by a pace, until the look-up [ends](Self::end).
pub(crate) enum Paced {
    /// Each within [`FIND_TIME`].
    Request(Acquired),
    /// Each as long as a search through the journal may take.
    Export(Transaction),
}

impl SearchPace {
    /// The call of a look-up: an export is always a search.
    pub(crate) fn call(self, of_request: Call) -> Call {
        match self {
            SearchPace::Request => of_request,
            SearchPace::Export => SEARCH,
        }
    }
}

impl Paced {
    /// A connection for readers.
    pub(crate) async fn begin(store: &Store, pace: SearchPace) -> Result<Self, LedgerError> {
        Ok(match pace {
            SearchPace::Request => {
                let mut conn = store.reader.acquire().await?;
                conn.limit_search(Some(FIND_TIME)).await?;
                Paced::Request(conn)
            }
            SearchPace::Export => {
                let mut tx = store.reader.begin().await?;
                tx.allow_long_search().await?;
                Paced::Export(tx)
            }
        })
    }

    /// The connection itself.
    pub(crate) fn conn(&mut self) -> &mut Conn {
        match self {
            Paced::Request(conn) => &mut **conn,
            Paced::Export(tx) => &mut **tx,
        }
    }

    /// Gives the connection back without a limit, and returns what was found with it.
    pub(crate) async fn end<T>(self, found: Result<T, LedgerError>) -> Result<T, LedgerError> {
        match self {
            Paced::Request(mut conn) => {
                conn.limit_search(None).await?;
                found
            }
            Paced::Export(tx) => {
                let found = found?;
                tx.commit().await?;
                Ok(found)
            }
        }
    }
}
