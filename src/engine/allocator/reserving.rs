//! Which requests may reserve a number: those of which the ledger keeps value and text apart until
//! they are confirmed. All others number the document, and void the number where it is given up.

use std::sync::Arc;
use std::time::Duration;

use numbering::Policy;
use tokio::time::{Instant, timeout_at};

use super::catalog::ServedSeries;
use super::error::unavailable;
use super::pending_request::CheckedRequest;
use super::{AllocError, Allocator, Issued, NumberTaken, Request, Unavailable};
use crate::ledger::{BLOCK_MAX, BLOCK_MIN, NO_END_US, Reservation};

/// For how long a block is reserved: it has no end by time.
pub const BLOCK_TIME: Duration = Duration::MAX;

/// For how long a request reserves its number, in microseconds; nothing where it takes it.
///
/// # Errors
/// What keeps the number from being reserved, with the remedy.
pub(super) fn reserve_us(
    request: &Request,
    served: &ServedSeries,
    shows_id: bool,
) -> Result<Option<i64>, AllocError> {
    let Some(reserve_us) = micros(request) else { return Ok(None) };
    let definition = &served.version.definition;
    let refused = |field, reason: &str| {
        let reason = format!("series {}: {reason}", definition.code);
        Err(AllocError::Field { field, reason })
    };
    if definition.policy != Policy::Gapless {
        let why = "only numbers of a `gapless` series are reserved; number the document, and void \
                   the number if the document is given up";
        return refused("type", why);
    }
    if definition.ambiguity_accepted.is_some() {
        let why = "its texts are kept apart by their rows alone (`ambiguity_accepted`), and a \
                   reserved number has no row; number the document";
        return refused("type", why);
    }
    if served.series.sourced().is_some() {
        let why = "its values come from a source, which reserves none; number the document";
        return refused("type", why);
    }
    if served.series.serials().len() != 1 || shows_id {
        let why =
            "only a number of one serial, and without an id, is reserved; number the document";
        return refused("type", why);
    }
    if reserve_us == NO_END_US {
        return must_be_block(request).map(|()| Some(reserve_us));
    }
    if request.count != 1 {
        return refused("count", "must be 1: ask for each reservation");
    }
    if request.document_id.is_none() && request.idempotency_key.is_none() {
        let why = "is missing, and so is the header `Idempotency-Key`: a repeated request could \
                   not be known; send one of them";
        return refused("document_id", why);
    }
    Ok(Some(reserve_us))
}

/// Refuses what no block may be.
///
/// # Errors
/// The field that is wrong.
fn must_be_block(request: &Request) -> Result<(), AllocError> {
    let refused = |field, reason: String| Err(AllocError::Field { field, reason });
    if !(BLOCK_MIN..=BLOCK_MAX).contains(&request.count) {
        return refused("count", format!("must be {BLOCK_MIN} to {BLOCK_MAX}"));
    }
    if request.document_id.is_some() {
        let why = "stands beside `count`: the documents of a block are named as it is handed back";
        return refused("document_id", why.to_owned());
    }
    if request.idempotency_key.is_none() {
        let why = "is missing: a repeated request for a block could not be known";
        return refused("Idempotency-Key", why.to_owned());
    }
    Ok(())
}

/// The refusal of a block that is larger than what its counter has left.
pub(super) fn too_few(left: u64) -> AllocError {
    let reason = format!(
        "must be at most {left}, as many as the counter has left: reserve so many, or apply the \
         series with more digits or a higher `max`"
    );
    AllocError::Field { field: "count", reason }
}

/// The refusal of a reservation in a series whose texts are kept apart by journal rows alone.
pub(super) fn not_kept_apart(order: &CheckedRequest) -> AllocError {
    let code = &order.served.version.definition.code;
    let reason = format!(
        "series {code}: its texts may be another series' (`ambiguity_accepted`), and a reserved \
         number has no row that keeps them apart; number the document"
    );
    AllocError::Field { field: "type", reason }
}

/// For how long a request wants its number reserved, in microseconds.
pub(super) fn micros(request: &Request) -> Option<i64> {
    let reserve_for = request.reserve_for?;
    Some(i64::try_from(reserve_for.as_micros()).unwrap_or(NO_END_US))
}

impl CheckedRequest {
    /// The answer for a reservation of this order, or an earlier one of its series; for one that is
    /// confirmed its number, which is issued.
    pub(super) fn reserved(
        &self,
        reservation: Reservation,
        replayed: bool,
    ) -> Result<Issued, AllocError> {
        if reservation.is_confirmed() {
            return self.issued(reservation.issued(), replayed);
        }
        let reserved_until_us = Some(reservation.expires_at_us);
        Ok(Issued { reserved_until_us, ..self.issued(reservation.entry, replayed)? })
    }
}

impl Allocator {
    /// Whether the series of an order had as many live reservations as it may have, by the last
    /// count.
    pub(super) fn is_full_of_reservations(&self, order: &CheckedRequest) -> bool {
        let context = &self.shared.context;
        let live = context.reservations.of(order.served.version.series_id);
        live >= context.settings.reservations.live_max
    }

    /// Has the ledger look which series reserve nothing, where the last look is of earlier ones:
    /// before a worker has the request, for which others would wait.
    ///
    /// # Errors
    /// `SeriesChanged` where that takes longer than until `by`; nothing was taken.
    pub(super) async fn learn_unreserved(&self, by: Instant) -> Result<(), AllocError> {
        let stamp = self.catalog().stamp();
        let (version, reference) = (stamp.series(), stamp.reference());
        let ledger = Arc::clone(&self.shared.context.ledger);
        if ledger.series().knows_unreserved(version, reference) {
            return Ok(());
        }
        // A separate task: it goes on for others when its caller leaves.
        let looking =
            tokio::spawn(async move { ledger.series().learn_unreserved(version, reference).await });
        let looked = timeout_at(by, looking).await;
        let looked =
            looked.map_err(|_| unavailable(Unavailable::SeriesChanged, NumberTaken::No))?;
        if let Err(error) = looked.expect("a look does not panic") {
            // The worker says what comes of it.
            tracing::debug!(%error, "it was not looked which series reserve nothing");
        }
        Ok(())
    }
}
