//! What this process remembers of reservations, for a ledger that goes back: the highest values
//! that were shown reserved (L10), and the last reservation of each value and of each document with
//! how far it came (L12). Reads no row.
//!
//! What is shown to a caller is compared before, and noted after the commit. A ledger that shows
//! less than what is known has gone back: nothing is answered, and the next heartbeat reports it.

use std::collections::HashSet;

use numerator_runtime::node::NodeId;
use uuid::Uuid;

use crate::last_seen::takes::NamedCounter;
use crate::last_seen::takes::known::{Sighting, finds_sole};
use crate::store::Store;
use crate::{
    Entry, Found, IssuePath, LedgerError, Question, Reservation, ReservationStanding, TakeOutcome,
    TakeRequest,
};

/// The node that asks, where one does, and how many notes there were before it read.
pub(crate) type Asked = (Option<NodeId>, u64);

/// The notes that a locked row is compared with: all. No act on it is still to be committed.
const LOCKED: u64 = u64::MAX;

/// The counter of a reserved number, and its value.
fn held_value(entry: &Entry) -> Option<(NamedCounter, i64)> {
    let record = &entry.record;
    let (serial, key) = (record.serials.first()?, record.counter_keys.first()?);
    let last = entry.taken.first()?.range.last;
    Some(((record.series_id, serial.clone(), key.clone()), i64::try_from(last).ok()?))
}

/// Remembers values that are shown reserved to callers.
fn hold<'r>(store: &Store, shown: impl IntoIterator<Item = &'r Reservation>) {
    for reservation in shown {
        let entry = &reservation.entry;
        store.last_seen.takes().hold(entry.at.partition, held_value(entry));
    }
}

fn went_back(store: &Store, node: Option<NodeId>, why: String) -> LedgerError {
    // The next heartbeat must report the loss.
    match node {
        Some(node) => store.last_seen.forget(node),
        None => store.last_seen.forget_agreed(),
    }
    LedgerError::WentBack(why)
}

/// Refuses rows that show less than what was known before they were read. To be called before
/// anything is changed or answered by them.
///
/// # Errors
/// `WentBack` where one does.
pub(crate) fn must_show_known<'r>(
    store: &Store,
    (node, upto): Asked,
    found: impl IntoIterator<Item = &'r Reservation>,
) -> Result<(), LedgerError> {
    for row in found.into_iter().filter_map(Sighting::of) {
        must_not_miss(store, (node, upto), &row)?;
    }
    Ok(())
}

/// The same for rows that are locked, and for all that is known.
///
/// # Errors
/// `WentBack` where one shows less.
pub(crate) fn locked_must_show_known<'r>(
    store: &Store,
    node: NodeId,
    locked: impl IntoIterator<Item = &'r Reservation>,
) -> Result<(), LedgerError> {
    must_show_known(store, (Some(node), LOCKED), locked)
}

/// The same for a row that this transaction has just changed: it waited for its caller.
///
/// # Errors
/// `WentBack` where it cannot have.
pub(crate) fn must_have_waited(
    store: &Store,
    node: NodeId,
    changed: &Reservation,
) -> Result<(), LedgerError> {
    let Some(row) = Sighting::of(changed).map(Sighting::unchanged) else { return Ok(()) };
    must_not_miss(store, (Some(node), LOCKED), &row)
}

/// The same for a number that is about to have a value and a document, under their locks.
///
/// # Errors
/// `WentBack` where the value is another's for good, or its document has had a later one.
pub(crate) fn new_number_must_miss_nothing(
    store: &Store,
    node: NodeId,
    new: &Sighting,
) -> Result<(), LedgerError> {
    must_not_miss(store, (Some(node), LOCKED), new)
}

fn must_not_miss(store: &Store, (node, upto): Asked, row: &Sighting) -> Result<(), LedgerError> {
    if !store.last_seen.takes().is_missed_by(row, upto) {
        return Ok(());
    }
    let id = row.id();
    let why = format!("reservation {id} shows less than what was known of it or of its value");
    Err(went_back(store, node, why))
}

/// Notes what was seen or committed.
///
/// # Errors
/// `WentBack` where it contradicts what was noted before: one of the two is an answer from before
/// a ledger went back, and is not handed out. It may be committed.
pub(crate) fn note(
    store: &Store,
    node: Option<NodeId>,
    seen: &[Sighting],
) -> Result<(), LedgerError> {
    let noted = store.last_seen.takes().note_seen(seen);
    noted.map_err(|id| {
        let why = format!("{id} was answered, whose value or time another one has");
        went_back(store, node, why)
    })
}

/// Notes where a reservation stands that is shown to its caller.
///
/// # Errors
/// See [`note`].
pub(crate) fn note_standing(
    store: &Store,
    node: Option<NodeId>,
    standing: &ReservationStanding,
) -> Result<(), LedgerError> {
    match standing {
        ReservationStanding::Live(live) => note_shown(store, node, [live]),
        ReservationStanding::Issued(entry) => {
            note(store, node, Sighting::confirmed(entry).as_slice())
        }
        ReservationStanding::Unknown | ReservationStanding::Ended(_) => Ok(()),
    }
}

/// Notes live reservations that are shown.
///
/// # Errors
/// See [`note`].
pub(crate) fn note_shown<'r>(
    store: &Store,
    node: Option<NodeId>,
    shown: impl IntoIterator<Item = &'r Reservation> + Clone,
) -> Result<(), LedgerError> {
    hold(store, shown.clone());
    let seen: Vec<Sighting> = shown.into_iter().filter_map(Sighting::of).collect();
    note(store, node, &seen)
}

/// Compares what was found for questions with what is known, then notes it.
///
/// # Errors
/// `WentBack` where something shows less, or contradicts it.
pub(crate) fn note_found(
    store: &Store,
    asked: Asked,
    questions: &[Question],
    found: &[Found],
) -> Result<(), LedgerError> {
    must_show_known(store, asked, found.iter().flat_map(Found::reserved))?;
    hold(store, found.iter().flat_map(Found::reserved));
    let all = questions.iter().zip(found);
    let seen: Vec<Sighting> = all.flat_map(|(question, found)| seen_in(question, found)).collect();
    note(store, asked.0, &seen)
}

/// Notes what a committed take answers, and the numbers that it took without a reservation.
///
/// # Errors
/// See [`note`].
pub(crate) fn note_taken(
    store: &Store,
    node: NodeId,
    orders: &[TakeRequest],
    outcomes: &[TakeOutcome],
    plain: Vec<Sighting>,
) -> Result<(), LedgerError> {
    hold(store, outcomes.iter().flat_map(TakeOutcome::reserved));
    let made: HashSet<Uuid> = outcomes.iter().filter_map(made_by).collect();
    let mut seen = plain;
    for (order, outcome) in orders.iter().zip(outcomes) {
        match outcome {
            TakeOutcome::Reserved(reservation) => {
                let is_sole = finds_sole(&order.question);
                seen.extend(Sighting::of(reservation).map(|seen| seen.sole(is_sole)));
            }
            TakeOutcome::Found(found) => {
                let found = seen_in(&order.question, found).into_iter();
                // One of this batch may stand beside another one of it.
                seen.extend(found.map(|seen| match made.contains(&seen.id()) {
                    true => seen.sole(false),
                    false => seen,
                }));
            }
            // An earlier attempt took it: what this one took is among the others.
            TakeOutcome::Taken(entry) if order.retry_count > 0 => {
                seen.extend(Sighting::confirmed(entry));
            }
            _ => {}
        }
    }
    note(store, Some(node), &seen)
}

/// The reservation that an outcome made, or an earlier attempt at it.
fn made_by(outcome: &TakeOutcome) -> Option<Uuid> {
    match outcome {
        TakeOutcome::Reserved(reservation) => Some(reservation.id()),
        _ => None,
    }
}

/// What was found for a question, of the database path.
fn seen_in(question: &Question, found: &Found) -> Vec<Sighting> {
    let by_key = found.reserved_by_key.as_deref().and_then(Sighting::of);
    // A confirmed one may be an earlier one of the document that is live.
    let is_sole = finds_sole(question) && found.by_document.is_none();
    let by_document = found.reserved_by_document.as_deref().and_then(Sighting::of);
    let by_document = by_document.map(|seen| seen.sole(is_sole));
    let issued = found.entries().filter(|entry| entry.path == IssuePath::Database);
    let issued = issued.filter_map(Sighting::confirmed);
    by_key.into_iter().chain(by_document).chain(issued).collect()
}
