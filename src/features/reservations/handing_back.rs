//! Handing a block back, for the route and the command alike: which of its numbers were used, and
//! for which documents.
//!
//! The numbers leave this process only after their commit, while the process may hand out, and once
//! they are kept like those that were taken here: a ledger that forgets them gets them again.

use std::sync::Arc;

use numbering::{DocumentsOf, Inputs};
use thiserror::Error;
use tokio::time::Instant;
use uuid::Uuid;

use super::acting::{ActError, must_be_own};
use crate::engine::allocator::Catalog;
use crate::engine::node::Context;
use crate::features::lifecycle::naming::NumberName;
use crate::features::numbers::request::check_document_id;
use crate::ledger::{
    ActOutcome, BLOCK_MAX, BlockOutcome, EndedReservation, Entry, HandBack, LedgerError,
    ReservationAct, ReservationStanding, UsedFlaw, UsedNumber,
};
use crate::web::problem::{Problem, Slug};

/// A block, and which of its numbers were used.
#[derive(Clone, Debug)]
pub(crate) struct HandBackOrder {
    /// The block.
    pub(crate) id: Uuid,
    /// The numbers that were used.
    pub(crate) used: Vec<UsedNumber>,
    /// The identity whose block it must be; of any for an operator.
    pub(crate) owner: Option<String>,
    /// Who hands it back, for the record.
    pub(crate) by: String,
}

/// A block that was handed back.
#[derive(Clone, Debug)]
pub(crate) struct HandedBackBlock {
    /// What became of it.
    pub(crate) ended: EndedReservation,
    /// Whether an earlier call did it.
    pub(crate) replayed: bool,
}

/// Why a block is not handed back. Nothing was changed, unless the ledger did not answer.
#[derive(Debug, Error)]
pub(crate) enum HandBackError {
    /// There is no such block, it has ended, or the ledger did not do it.
    #[error(transparent)]
    Act(#[from] ActError),
    /// It is a single number.
    #[error("is no block: confirm the reservation, or cancel it")]
    NoBlock,
    /// It was lost with what the ledger forgot.
    #[error(
        "the ledger went back, and all numbers of the block were spent: register those that were \
         used by hand"
    )]
    Lost,
    /// A number that was used is wrong.
    #[error("{}", flaw_in_words(.used, .flaw))]
    Flawed {
        /// Its place in the list, from 0 on.
        place: usize,
        /// The number and its document.
        used: UsedNumber,
        /// What is wrong.
        flaw: UsedFlaw,
    },
}

impl From<LedgerError> for HandBackError {
    fn from(error: LedgerError) -> Self {
        HandBackError::Act(error.into())
    }
}

/// What is to be done with a number that was used and whose document has one already.
const NAME_ANOTHER: &str = "name another document for the number and void it afterwards; what is \
                            left out is issued again";

fn flaw_in_words(used: &UsedNumber, flaw: &UsedFlaw) -> String {
    let UsedNumber { number, document_id } = used;
    match flaw {
        UsedFlaw::Outside { first, last } => {
            format!("{number} is not in the block, which has {first} to {last}; leave it out")
        }
        UsedFlaw::NumberTwice { earlier } => {
            format!("{number} is used[{earlier}].number as well: a number has one document")
        }
        UsedFlaw::DocumentTwice { earlier } => format!(
            "{document_id} is used[{earlier}].document_id as well: a document has one number of \
             the series"
        ),
        UsedFlaw::Numbered => {
            format!("{document_id} has a number of the series already: {NAME_ANOTHER}")
        }
        UsedFlaw::DocumentReserved => {
            format!("{document_id} holds a number of the series: cancel its reservation first")
        }
        UsedFlaw::DocumentArchived { file } => format!(
            "{document_id} has a number of the series in the archive file {file}: {NAME_ANOTHER}"
        ),
        UsedFlaw::Collided => format!(
            "{number} is another document's already: correct what has it on paper, and name \
             another number of the block for {document_id}"
        ),
    }
}

impl From<HandBackError> for Problem {
    fn from(error: HandBackError) -> Self {
        let said = error.to_string();
        match error {
            HandBackError::Act(error) => error.into(),
            HandBackError::NoBlock => Problem::field("reservationId", said),
            HandBackError::Lost => Problem::new(Slug::ReservationLost, said),
            HandBackError::Flawed { place, flaw, .. } => {
                let number = format!("used[{place}].number");
                let document = format!("used[{place}].document_id");
                let told = |slug, field: &str| Problem::new(slug, said.clone()).of_field(field);
                match flaw {
                    UsedFlaw::Outside { .. } | UsedFlaw::NumberTwice { .. } => {
                        Problem::field(number, said)
                    }
                    UsedFlaw::DocumentTwice { .. } => Problem::field(document, said),
                    UsedFlaw::Numbered => told(Slug::DocumentAlreadyNumbered, &document),
                    UsedFlaw::DocumentReserved => told(Slug::DocumentReserved, &document),
                    UsedFlaw::DocumentArchived { .. } => told(Slug::DocumentArchived, &document),
                    UsedFlaw::Collided => told(Slug::NumberTaken, &number),
                }
            }
        }
    }
}

/// The numbers that were used, as (number, document), checked but for what the block shows.
///
/// # Errors
/// The first that is wrong, by its place in the list.
pub(crate) fn used_of(
    used: impl ExactSizeIterator<Item = (String, String)>,
) -> Result<Vec<UsedNumber>, Problem> {
    if used.len() as u64 > BLOCK_MAX {
        let why = format!("lists {} numbers, and a block has at most {BLOCK_MAX}", used.len());
        return Err(Problem::field("used", why));
    }
    let checked =
        |(place, (number, document_id)): (usize, (String, String))| -> Result<_, Problem> {
            let field = format!("used[{place}].document_id");
            let number = NumberName::of(&format!("used[{place}].number"), &number)?.number;
            Ok(UsedNumber { number, document_id: check_document_id(&field, document_id)? })
        };
    used.enumerate().map(checked).collect()
}

/// Hands a block back.
///
/// # Errors
/// See [`HandBackError`]. After a ledger that did not answer it may be done: a repeated call says
/// so.
pub(crate) async fn hand_back(
    context: &Arc<Context>,
    catalog: &Catalog,
    order: HandBackOrder,
) -> Result<HandedBackBlock, HandBackError> {
    let HandBackOrder { id, used, owner, by } = order;
    let reservations = context.ledger.reservations();
    // Whose it is, and whether it is a block, never changes.
    let found = reservations.get(id).await?;
    must_be_own(id, &found, owner.as_deref())?;
    let documents = match &found {
        ReservationStanding::Live(live) if live.is_block() => documents_of(catalog, &live.entry),
        ReservationStanding::Ended(_) => DocumentsOf::Series,
        _ => return Err(HandBackError::NoBlock),
    };
    let order = HandBack { id, used, documents, by };
    let (asked_at, node) = (Instant::now(), context.membership.node());
    let outcome = reservations.hand_back(node, &order).await?;
    context.membership.must_not_have_slept(asked_at, node).await?;
    // The process that issued those of an earlier call may have kept none.
    let (written, found) = match &outcome {
        BlockOutcome::Done { entries, .. } => (entries.clone(), &[][..]),
        BlockOutcome::Repeated { entries, .. } => (Vec::new(), &entries[..]),
        _ => (Vec::new(), &[][..]),
    };
    context.hand_out(node, written, found)?;
    match outcome {
        BlockOutcome::Done { ended, .. } => Ok(HandedBackBlock { ended, replayed: false }),
        BlockOutcome::Repeated { ended, .. } => Ok(HandedBackBlock { ended, replayed: true }),
        BlockOutcome::Held => Err(ActError::Refused(ActOutcome::Held).into()),
        BlockOutcome::Flawed { place, flaw } => match order.used.into_iter().nth(place) {
            Some(used) => Err(HandBackError::Flawed { place, used, flaw }),
            None => Err(ActError::Unknown(id).into()),
        },
        BlockOutcome::Refused(standing) => Err(refused(id, &standing)),
    }
}

/// Why a reservation that is no live block is not handed back.
fn refused(id: Uuid, standing: &ReservationStanding) -> HandBackError {
    match ReservationAct::Confirm.refused(standing) {
        ActOutcome::Unknown => ActError::Unknown(id).into(),
        ActOutcome::Lost => HandBackError::Lost,
        outcome @ (ActOutcome::HandedBack | ActOutcome::Cancelled | ActOutcome::Expired)
            if matches!(standing, ReservationStanding::Ended(_)) =>
        {
            ActError::Refused(outcome).into()
        }
        _ => HandBackError::NoBlock,
    }
}

/// Whose documents the numbers of a block are for. Those of a series that is gone count as its own,
/// whatever their project: more is refused then, and nothing is numbered twice.
fn documents_of(catalog: &Catalog, block: &Entry) -> DocumentsOf {
    let record = &block.record;
    let series = catalog.known().find(|(version, _)| version.series_id == record.series_id);
    let Some((_, Some(series))) = series else { return DocumentsOf::Series };
    let inputs = Inputs { project: record.project.clone(), ..Inputs::default() };
    series.documents_of(&inputs)
}
