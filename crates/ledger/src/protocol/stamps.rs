//! The stamps by which running nodes notice that something they keep in memory has changed: one
//! query for all of it.

use sqlx_macros::FromRow;

use crate::calls::CALL;
use crate::columns::read_uuid;
use crate::query::query_as;
use crate::store::Store;
use crate::{Ledger, LedgerError, Reference, Series, Stamps};

impl Ledger {
    /// The current stamps of the ledger.
    pub async fn stamps(&self) -> Result<Stamps, LedgerError> {
        self.call(CALL, async |store| stamps(store).await).await
    }
}

impl Series<'_> {
    /// The highest version id: changes whenever any series does, and with each activation.
    pub async fn stamp(self) -> Result<i64, LedgerError> {
        Ok(self.0.stamps().await?.series)
    }
}

impl Reference<'_> {
    /// Rises whenever any reference data change.
    pub async fn stamp(self) -> Result<i64, LedgerError> {
        Ok(self.0.stamps().await?.reference)
    }
}

/// The stamps, none of what was never changed.
#[derive(FromRow)]
struct StampsRow {
    series: Option<i64>,
    reference: Option<i64>,
    tokens: Option<i64>,
    nonce: Option<Vec<u8>>,
}

/// See [`crate::Ledger::stamps`].
pub(crate) async fn stamps(store: &Store) -> Result<Stamps, LedgerError> {
    let row: StampsRow = query_as(
        "select (select max(series_version_id) from series_version) as series,
         (select max(reference_change_id) from reference_change) as reference,
         (select stamp from token_stamp) as tokens, (select nonce from incarnation) as nonce",
    )
    .fetch_one(&store.reader)
    .await?;
    let [series, reference, tokens] =
        [row.series, row.reference, row.tokens].map(Option::unwrap_or_default);
    for (place, stamp) in [series, reference, tokens].into_iter().enumerate() {
        store.last_seen.show(place, stamp);
    }
    let incarnation = row.nonce.map(|bytes| read_uuid(&bytes, "incarnation.nonce"));
    Ok(Stamps { series, reference, tokens, incarnation: incarnation.transpose()? })
}
