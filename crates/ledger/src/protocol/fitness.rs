//! Whether the database has what records need, and the rights of its writing users.

use crate::calls::CALL;
use crate::fitness::all_lacks;
use crate::store::Store;
use crate::{Lack, Ledger, LedgerError};

impl Ledger {
    /// The missing tables, columns, unique keys and rights, without which records are not written,
    /// or not only once (F45). Mostly none is missing.
    pub async fn lacks(&self) -> Result<Vec<Lack>, LedgerError> {
        self.call(CALL.uncounted(), async |store| store.pool().lacks().await).await
    }

    /// Gives the roles of the ledger their rights to its tables, and revokes all their others:
    /// deploy/postgres/roles.sql. Safe to repeat. Returns whether it changed any.
    ///
    /// # Errors
    /// `Fault` where the user of `database.url` does not own the tables, or there are no such
    /// roles; `Refused` on an engine without roles.
    pub async fn grant_roles(&self) -> Result<bool, LedgerError> {
        self.call(CALL, async |store| store.pool().grant_roles().await).await
    }

    /// Ends once a call has failed for a fault of the database since this was last asked.
    pub async fn faulted(&self) {
        let faults = self.0.store(crate::connections::Share::Common).faults();
        faults.notified().await;
    }
}

/// Refuses a ledger without all tables and keys that records need: what is written to one that is
/// being restored table by table would be there twice, or in the place of a restored row. A missing
/// right shows itself.
pub(crate) async fn must_be_whole(store: &Store) -> Result<(), LedgerError> {
    let mut lacks = store.pool().lacks().await?;
    lacks.retain(|lack| !matches!(lack, Lack::Right { .. }));
    if lacks.is_empty() { Ok(()) } else { Err(LedgerError::Fault(all_lacks(&lacks))) }
}
