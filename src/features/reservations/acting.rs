//! Confirming, cancelling and showing reservations, for routes and commands alike.
//!
//! A confirmed number leaves this process only after its commit, while the process may hand out,
//! and once it is kept like one that was taken here: a ledger that forgets it gets it again.

use std::sync::Arc;

use numerator_runtime::actor::identity_of;
use thiserror::Error;
use tokio::time::Instant;
use uuid::Uuid;

use crate::engine::node::Context;
use crate::ledger::{
    ActOutcome, Acted, LedgerError, NamedReservation, Reservation, ReservationAct, ReservationEnd,
    ReservationFilter, ReservationStanding,
};
use crate::node::NodeId;
use crate::web::problem::{Problem, Slug};

/// What is done with which reservation, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct ActRequest {
    /// The reservation.
    pub(crate) id: Uuid,
    /// What is done.
    pub(crate) act: ReservationAct,
    /// The document that it must be for, where the caller names one.
    pub(crate) document_id: Option<String>,
    /// The identity whose reservation it must be; of any for an operator.
    pub(crate) owner: Option<String>,
    /// Who does it, for the record.
    pub(crate) user_id: String,
}

/// Why nothing was done.
#[derive(Debug, Error)]
pub(crate) enum ActError {
    /// There is none, or it is another caller's.
    #[error("no reservation {0} is there, or it is another caller's")]
    Unknown(Uuid),
    /// It is for another document.
    #[error("the reservation is for {held}, not for {named}")]
    OtherDocument {
        /// The document that it is for.
        held: String,
        /// The document that the caller names.
        named: String,
    },
    /// It is a block, and nothing says why it is cancelled.
    #[error("is missing: which numbers of a block were used is not known once it is cancelled")]
    NoReason,
    /// It ended, or is confirmed.
    #[error("{}", refusal(.0))]
    Refused(ActOutcome),
    /// The ledger did not do it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

fn refusal(outcome: &ActOutcome) -> &'static str {
    match outcome {
        ActOutcome::Expired => "its time was over before it was confirmed; reserve again",
        ActOutcome::Cancelled => "it was cancelled; reserve again",
        ActOutcome::Lost => "the ledger went back, and its number was spent; reserve again",
        ActOutcome::Confirmed => {
            "it is confirmed, and its number stays; void the number if its document is given up"
        }
        ActOutcome::IsBlock => "it is a block: hand it back with the numbers that were used",
        ActOutcome::HandedBack => "it was a block, and was handed back",
        ActOutcome::Held => "its partition is held until an operator acts; try again then",
        ActOutcome::Done | ActOutcome::Repeated | ActOutcome::Unknown => "nothing was done",
    }
}

impl From<ActError> for Problem {
    fn from(error: ActError) -> Self {
        let told = |slug| Problem::new(slug, error.to_string());
        match error {
            // It may be done: a repeated call says so.
            ActError::Ledger(error) => Problem::of_write(error),
            ActError::Unknown(_) => told(Slug::ReservationNotFound),
            ActError::OtherDocument { .. } => told(Slug::OtherDocument).of_field("document_id"),
            ActError::NoReason => Problem::field("reason", error.to_string()),
            ActError::Refused(outcome) => match outcome {
                ActOutcome::Expired => told(Slug::ReservationExpired),
                ActOutcome::Cancelled => told(Slug::ReservationCancelled),
                ActOutcome::Lost => told(Slug::ReservationLost),
                ActOutcome::Confirmed => told(Slug::ReservationConfirmed),
                ActOutcome::IsBlock => told(Slug::IsABlock),
                ActOutcome::HandedBack => told(Slug::ReservationHandedBack),
                ActOutcome::Held => told(Slug::PartitionHeld).retry_soon(),
                ActOutcome::Unknown | ActOutcome::Done | ActOutcome::Repeated => {
                    told(Slug::ReservationNotFound)
                }
            },
        }
    }
}

/// Does it.
///
/// # Errors
/// See [`ActError`]. After a ledger that did not answer it may be done: a repeated call says so.
pub(crate) async fn act(context: &Arc<Context>, request: ActRequest) -> Result<Acted, ActError> {
    let ActRequest { id, act, document_id, owner, user_id } = request;
    let reservations = context.ledger.reservations();
    // Whose it is, and what it is for, never changes.
    let found = reservations.get(id).await?;
    must_be_own(id, &found, owner.as_deref())?;
    // A block is for no document, whichever is named: its refusal says what it is.
    if let Some(named) = document_id.filter(|_| !is_of_block(&found)) {
        let held = found.document_id().unwrap_or_default();
        if held != named {
            return Err(ActError::OtherDocument { held: held.to_owned(), named });
        }
    }
    let (asked_at, node) = (Instant::now(), context.membership.node());
    let acted = match (&found, &act) {
        (ReservationStanding::Live(live), ReservationAct::Cancel { reason }) if live.is_block() => {
            let reason = reason.as_deref().ok_or(ActError::NoReason)?;
            reservations.cancel_block(node, id, (reason, &user_id)).await?
        }
        _ => reservations.act(node, id, &act, &user_id).await?,
    };
    context.membership.must_not_have_slept(asked_at, node).await?;
    keep(context, node, &acted.standing)?;
    if acted.outcome == ActOutcome::Done {
        context.reservations.urge();
    }
    match acted.outcome {
        ActOutcome::Done | ActOutcome::Repeated => Ok(acted),
        ActOutcome::Unknown => Err(ActError::Unknown(id)),
        refused => Err(ActError::Refused(refused)),
    }
}

/// Whether it is a block that is live, or one that was handed back.
fn is_of_block(found: &ReservationStanding) -> bool {
    match found {
        ReservationStanding::Live(live) => live.is_block(),
        ReservationStanding::Ended(ended) => ended.end == ReservationEnd::HandedBack,
        ReservationStanding::Issued(_) | ReservationStanding::Unknown => false,
    }
}

/// Where a reservation stands, for an answer: a number that it shows confirmed is kept, as after a
/// confirmation.
///
/// # Errors
/// A ledger that does not answer, or that the processes may have agreed on another one meanwhile
/// (F25): worth a retry.
pub(crate) async fn look(
    context: &Arc<Context>,
    id: Uuid,
) -> Result<ReservationStanding, LedgerError> {
    let (asked_at, node) = (Instant::now(), context.membership.node());
    let found = context.ledger.reservations().get(id).await?;
    context.membership.must_not_have_slept(asked_at, node).await?;
    keep(context, node, &found)?;
    Ok(found)
}

/// Live reservations as a reader sees them: those that are shown confirmed are kept, as after a
/// confirmation.
///
/// # Errors
/// As [`look`].
pub(crate) async fn list(
    context: &Arc<Context>,
    filter: &ReservationFilter,
) -> Result<Vec<NamedReservation>, LedgerError> {
    let (asked_at, node) = (Instant::now(), context.membership.node());
    let found = context.ledger.reservations().listed(filter).await?;
    context.membership.must_not_have_slept(asked_at, node).await?;
    let live = found.iter().map(|named| &named.reservation);
    let confirmed = live.filter(|live| live.is_confirmed()).map(Reservation::issued).collect();
    context.hand_out(node, confirmed, [])?;
    Ok(found)
}

/// Refuses a reservation of another identity as one that is not there.
pub(crate) fn must_be_own(
    id: Uuid,
    found: &ReservationStanding,
    owner: Option<&str>,
) -> Result<(), ActError> {
    match found.user_id() {
        Some(user_id) if owner.is_none_or(|owner| identity_of(user_id) == owner) => Ok(()),
        _ => Err(ActError::Unknown(id)),
    }
}

/// Keeps a number that is handed out with the answer, in case that the ledger forgets it (F9).
///
/// # Errors
/// Where the processes may have agreed on a ledger without it (F25).
fn keep(
    context: &Context,
    node: NodeId,
    standing: &ReservationStanding,
) -> Result<(), LedgerError> {
    match standing {
        ReservationStanding::Live(live) if live.is_confirmed() => {
            context.hand_out(node, vec![live.issued()], [])
        }
        ReservationStanding::Issued(entry) => context.hand_out(node, Vec::new(), [entry]),
        _ => context.hand_out(node, Vec::new(), []),
    }
}
