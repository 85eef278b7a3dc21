//! What tells running nodes that something which they keep in memory has changed: one question for
//! all of it.

use super::{CALL, Store, query};
use crate::columns::read_uuid;
use crate::{Ledger, LedgerError, Stamps};

impl Ledger {
    /// Where the ledger stands.
    pub async fn stamps(&self) -> Result<Stamps, LedgerError> {
        self.call(CALL, async |store| stamps(store).await).await
    }

    /// The highest version id: changes whenever any series does, and with each activation.
    pub async fn series_stamp(&self) -> Result<i64, LedgerError> {
        Ok(self.stamps().await?.series)
    }

    /// Rises whenever any reference data change.
    pub async fn reference_stamp(&self) -> Result<i64, LedgerError> {
        Ok(self.stamps().await?.reference)
    }
}

/// See [`crate::Ledger::stamps`].
pub(super) async fn stamps(store: &Store) -> Result<Stamps, LedgerError> {
    let row = query(
        "select (select max(series_version_id) from series_version) as series, \
         (select max(reference_change_id) from reference_change) as reference, \
         (select stamp from token_stamp) as tokens, (select nonce from incarnation) as nonce",
    )
    .fetch_one(&store.reader)
    .await?;
    let stamp = |column| row.try_get::<Option<i64>>(column).map(Option::unwrap_or_default);
    let (series, reference, tokens) = (stamp("series")?, stamp("reference")?, stamp("tokens")?);
    for (place, stamp) in [series, reference, tokens].into_iter().enumerate() {
        store.witness.show(place, stamp);
    }
    let nonce: Option<&[u8]> = row.try_get("nonce")?;
    let incarnation = nonce.map(|bytes| read_uuid(bytes, "incarnation.nonce")).transpose()?;
    Ok(Stamps { series, reference, tokens, incarnation })
}
