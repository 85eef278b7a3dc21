//! Reservations of a number that is looked up: a text that is reserved, or was, is in no row of the
//! journal. Reads only, and shows what the caller sees.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::Identity;
use crate::features::lifecycle::reserved::{ends_of, live_of};
use crate::features::register::gap_rows::FoundGap;
use crate::ledger::{
    LedgerError, NamedEnd, NamedReservation, ReservationEnd, ReservationState, SharedLedger,
};
use crate::web::App;
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// A reservation that has, or had, the number.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReservedNumber {
    /// Its id.
    reservation_id: String,
    /// `reserved`; `issued`: confirmed, and about to be in the journal; `cancelled`, `expired` or
    /// `lost`: it is over, and its document never had the number; `handed-back`: it was a block.
    status: &'static str,
    /// Code of the series.
    series: String,
    /// The document.
    document_id: Option<String>,
    /// Until when it is, or was, reserved; nothing where the ledger does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Who reserved it.
    reserved_by: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl ReservedNumber {
    fn of_live(NamedReservation { reservation, series }: NamedReservation) -> Self {
        let record = &reservation.entry.record;
        let status = match reservation.state {
            ReservationState::Confirmed => "issued",
            ReservationState::Cancelled => "cancelled",
            ReservationState::Reserved if reservation.is_over => "expired",
            ReservationState::Reserved => "reserved",
        };
        let ended_at_us = match status {
            "cancelled" => reservation.changed_at_us,
            "expired" => Some(reservation.expires_at_us),
            _ => None,
        };
        ReservedNumber {
            reservation_id: reservation.id().to_string(),
            status,
            series,
            document_id: record.document_id.clone(),
            expires_at: reservation.ends_at_us().map(instant),
            reserved_by: record.user_id.clone(),
            ended_at: ended_at_us.map(instant),
            reason: reservation.reason.clone(),
        }
    }

    fn of_end(NamedEnd { ended, series, expires_at_us, .. }: NamedEnd) -> Self {
        ReservedNumber {
            reservation_id: ended.reservation_id.to_string(),
            status: match ended.end {
                ReservationEnd::Cancelled => "cancelled",
                ReservationEnd::Expired => "expired",
                ReservationEnd::Lost => "lost",
                ReservationEnd::HandedBack => "handed-back",
            },
            series,
            document_id: ended.document_id,
            expires_at: expires_at_us.map(instant),
            reserved_by: ended.user_id,
            ended_at: Some(instant(ended.ended_at_us)),
            reason: ended.reason,
        }
    }

    /// The same in a sentence, for people.
    pub(crate) fn sentence(&self) -> String {
        let ReservedNumber { reservation_id, status, reserved_by, .. } = self;
        let document = self.document_id.as_deref().unwrap_or("its caller");
        let until = self.expires_at.as_deref().map(|at| format!(" until {at}")).unwrap_or_default();
        let of = format!("{document}{until} by {reserved_by} (reservation {reservation_id})");
        match *status {
            "reserved" => format!("it is reserved for {of}"),
            "issued" => format!("it is issued, and being recorded: it was reserved for {of}"),
            ended => {
                let at = self.ended_at.as_deref().unwrap_or("an unknown time");
                let reason = self.reason.as_deref();
                let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("it was reserved for {of}, {ended} at {at}{why}")
            }
        }
    }
}

/// The reservations of a number, as far as an identity sees them: the live ones, then those that
/// have ended, the newest first; of one series, where it is named.
pub(crate) async fn reservations_of(
    ledger: &SharedLedger,
    identity: &Identity,
    number: &str,
    series_id: Option<i64>,
) -> Result<Vec<ReservedNumber>, LedgerError> {
    let live = live_of(ledger, identity, number, series_id).await?.into_iter();
    let mut found: Vec<ReservedNumber> = live.map(ReservedNumber::of_live).collect();
    let ends = ends_of(ledger, identity, number, series_id).await?.into_iter();
    found.extend(ends.map(ReservedNumber::of_end));
    Ok(found)
}

/// The same for a caller over HTTP.
pub(crate) async fn reservations_seen(
    app: &App,
    caller: &Caller,
    number: &str,
    series_id: Option<i64>,
) -> Result<Vec<ReservedNumber>, Problem> {
    let (identity, number) = (Arc::clone(&caller.identity), number.to_owned());
    let looking = app.read(caller, |ledger| async move {
        reservations_of(&ledger, &identity, &number, series_id).await
    });
    looking.await
}

/// Why the journal does not have a number, in words: the gap that has its value, and the
/// reservation that has, or had, its text.
pub(crate) fn why_not(gap: Option<&FoundGap>, held: Option<&ReservedNumber>) -> Option<String> {
    let gap = gap.map(|gap| format!("it was not issued: {}", gap.explanation));
    let reasons: Vec<String> = gap.into_iter().chain(held.map(ReservedNumber::sentence)).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}
