//! Numbers that are reserved, as far as a caller sees them: their texts are in no row of the
//! journal. Reads only.

use super::error::LifecycleError;
use super::naming::ROWS_MAX;
use crate::auth::Identity;
use crate::ledger::{
    JournalFilter, LedgerError, NamedEnd, NamedReservation, Reservation, ReservedFilter,
    SharedLedger,
};

/// Most ended reservations of one text that are shown, the newest ones.
const ENDS_MAX: u32 = 20;

/// Which reservations of a number a caller sees; of one series, where it is named.
fn filter_of(
    identity: &Identity,
    number: &str,
    series_id: Option<i64>,
    limit: u32,
) -> ReservedFilter {
    ReservedFilter {
        number: number.to_owned(),
        series_id,
        shown: identity.row_visibility(),
        limit,
        ..ReservedFilter::default()
    }
}

/// Live reservations of a number that a caller sees; of one series, where it is named.
pub(crate) async fn live_of(
    ledger: &SharedLedger,
    identity: &Identity,
    number: &str,
    series_id: Option<i64>,
) -> Result<Vec<NamedReservation>, LedgerError> {
    let filter = filter_of(identity, number, series_id, ROWS_MAX);
    ledger.reservations().named(&filter).await
}

/// Reservations of a number that ended without being confirmed, as far as a caller sees them, the
/// newest first; of one series, where it is named. Nothing says for which project one was: a caller
/// that is narrowed to projects sees its own.
pub(crate) async fn ends_of(
    ledger: &SharedLedger,
    identity: &Identity,
    number: &str,
    series_id: Option<i64>,
) -> Result<Vec<NamedEnd>, LedgerError> {
    let filter = filter_of(identity, number, series_id, ENDS_MAX);
    ledger.reservations().ended_named(&filter).await
}

/// Why a number that the journal does not have is none yet: it is reserved, or confirmed and on
/// its way. Nothing where no reservation that the caller sees is meant.
pub(super) async fn held(
    ledger: &SharedLedger,
    identity: &Identity,
    filter: &JournalFilter,
) -> Result<Option<LifecycleError>, LedgerError> {
    let Some(number) = &filter.number else { return Ok(None) };
    let meant = ReservedFilter {
        project: filter.project.clone(),
        document_id: filter.document_id.clone(),
        ..filter_of(identity, number, filter.series_id, ROWS_MAX)
    };
    let live = ledger.reservations().named(&meant).await?;
    let confirmed = live.iter().map(|named| &named.reservation).find(|live| live.is_confirmed());
    let counted =
        |confirmed: &Reservation| Some((confirmed.id(), confirmed.entry.taken.first()?.counter_id));
    if let Some((id, counter_id)) = confirmed.and_then(counted) {
        let number = number.clone();
        return Ok(Some(LifecycleError::BeingRecorded { number, counter_id, id }));
    }
    Ok(live.first().map(|NamedReservation { reservation, .. }| LifecycleError::Reserved {
        number: number.clone(),
        document_id: reservation.entry.record.document_id.clone(),
        until_us: reservation.ends_at_us(),
    }))
}
