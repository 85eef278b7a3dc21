//! The JSON of a reservation. Also the output of the commands with `--json`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::allocator::Issued;
use crate::ledger::{
    EndedReservation, Entry, HandedBack, NO_END_US, Reservation, ReservationEnd,
    ReservationStanding,
};
use crate::web::instant::instant;

/// A reservation, or what became of it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReservationAnswer<'a> {
    /// Its id: its caller confirms or cancels it by that.
    pub(crate) reservation_id: String,
    /// `reserved`, `issued`, `cancelled`, `expired`, `lost` or `handed-back`.
    pub(crate) status: &'static str,
    /// The number that its document holds, has, or held; of a block the first one.
    pub(crate) document_number: &'a str,
    /// The last number of a live block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_number: Option<String>,
    /// How many numbers a live block has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
    /// The document.
    pub(crate) document_id: Option<&'a str>,
    /// Document type; none of one that has ended.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) type_code: Option<&'a str>,
    /// While it is reserved: it cannot be confirmed from then on, RFC 3339 in UTC. A block has no
    /// end by time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) expires_at: Option<String>,
    /// When it ended, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) ended_at: Option<String>,
    /// Why it was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    /// What became of the numbers of a block that was handed back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) handed_back: Option<HandedBackAnswer>,
    /// Whether an earlier call did it.
    pub(crate) replayed: bool,
}

/// What became of the numbers of a block.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct HandedBackAnswer {
    /// How many were used, and are issued.
    pub(crate) used: u64,
    /// How many came back, and are the next to be issued.
    pub(crate) returned: u64,
    /// How many never come.
    pub(crate) spent: u64,
}

impl HandedBackAnswer {
    fn of(HandedBack { used, returned, spent, .. }: &HandedBack) -> Self {
        HandedBackAnswer { used: *used, returned: *returned, spent: *spent }
    }
}

/// The last number of a block, and how many it has; nothing of a single number.
fn extent_of(entry: &Entry) -> (Option<String>, Option<u64>) {
    let range = entry.taken.first().map(|taken| taken.range);
    let Some(range) = range.filter(|range| range.first != range.last) else { return (None, None) };
    (entry.text_of(range.last), Some((range.last - range.first) / range.step.max(1) + 1))
}

impl<'a> ReservationAnswer<'a> {
    /// The answer to a request for a reservation.
    #[must_use]
    pub(crate) fn of_issued(issued: &'a Issued) -> Self {
        let record = &issued.entry.record;
        let (last_number, count) = extent_of(&issued.entry);
        ReservationAnswer {
            last_number,
            count,
            handed_back: None,
            reservation_id: record.allocation_id.to_string(),
            status: if issued.reserved_until_us.is_some() { "reserved" } else { "issued" },
            document_number: &issued.entry.number,
            document_id: record.document_id.as_deref(),
            type_code: Some(&record.type_code),
            expires_at: issued.reserved_until_us.filter(|at_us| *at_us != NO_END_US).map(instant),
            ended_at: None,
            reason: None,
            replayed: issued.replayed,
        }
    }

    /// One that is live.
    #[must_use]
    pub(crate) fn of_live(live: &'a Reservation, replayed: bool) -> Self {
        let record = &live.entry.record;
        let status = match live.state {
            _ if live.is_confirmed() => "issued",
            crate::ledger::ReservationState::Cancelled => "cancelled",
            _ if live.is_over => "expired",
            _ => "reserved",
        };
        let (last_number, count) = extent_of(&live.entry);
        ReservationAnswer {
            last_number,
            count,
            handed_back: None,
            reservation_id: live.id().to_string(),
            status,
            document_number: &live.entry.number,
            document_id: record.document_id.as_deref(),
            type_code: Some(&record.type_code),
            expires_at: live.ends_at_us().filter(|_| status == "reserved").map(instant),
            ended_at: live.changed_at_us.filter(|_| status == "cancelled").map(instant),
            reason: live.reason.as_deref(),
            replayed,
        }
    }

    /// One as the ledger shows it; nothing where it knows none.
    #[must_use]
    pub(crate) fn of(found: &'a ReservationStanding, replayed: bool) -> Option<Self> {
        match found {
            ReservationStanding::Unknown => None,
            ReservationStanding::Live(live) => Some(Self::of_live(live, replayed)),
            ReservationStanding::Issued(entry) => Some(ReservationAnswer {
                last_number: None,
                count: None,
                handed_back: None,
                reservation_id: entry.record.allocation_id.to_string(),
                status: "issued",
                document_number: &entry.number,
                document_id: entry.record.document_id.as_deref(),
                type_code: Some(&entry.record.type_code),
                expires_at: None,
                ended_at: None,
                reason: None,
                replayed,
            }),
            ReservationStanding::Ended(ended) => Some(Self::of_ended(ended, replayed)),
        }
    }

    /// One that has ended without being confirmed.
    #[must_use]
    pub(crate) fn of_ended(ended: &'a EndedReservation, replayed: bool) -> Self {
        ReservationAnswer {
            reservation_id: ended.reservation_id.to_string(),
            status: match ended.end {
                ReservationEnd::Cancelled => "cancelled",
                ReservationEnd::Expired => "expired",
                ReservationEnd::Lost => "lost",
                ReservationEnd::HandedBack => "handed-back",
            },
            document_number: &ended.number,
            last_number: None,
            count: None,
            document_id: ended.document_id.as_deref(),
            type_code: None,
            expires_at: None,
            ended_at: Some(instant(ended.ended_at_us)),
            reason: ended.reason.as_deref(),
            handed_back: ended.handed_back.as_ref().map(HandedBackAnswer::of),
            replayed,
        }
    }
}
