//! Takes a number in the place of a void one. First the void number is checked, then the number is
//! taken as always, then the link is written, and only then it is handed out. Nothing cancels
//! between the number and its link, and a retry of the same request finds its number and writes the
//! link that is missing.

use std::sync::Arc;

use numbering::Documents;

use super::error::LifecycleError;
use super::naming::{By, FoundNumber, NumberName, find};
use super::standing::sees_replacement;
use crate::engine::allocator::{Allocator, Catalog, Issued, Request};
use crate::ledger::{
    JournalRow, LedgerError, LifeRow, Linked, Record, Replacement, SharedLedger, ValueOf,
};
use crate::startup::Service;
use crate::web::journal_wait::TryOf;
use crate::web::problem::Problem;

/// A void number that is to be replaced.
#[derive(Clone, Debug)]
pub(crate) struct VoidPlace {
    /// The number.
    pub(crate) found: FoundNumber,
    /// Its document: of a number of a range, the one that it is assigned to.
    pub(crate) document_id: Option<String>,
    /// The number that stands in its place already.
    pub(crate) replaced: Option<LifeRow>,
    /// Whether its document is one of its project.
    pub(crate) is_of_project: bool,
}

impl VoidPlace {
    /// The request for the number that is to stand in its place. The same document gets another
    /// number; a request that names neither a document nor a key gets a key, so that a retry of it
    /// finds its number.
    pub(crate) fn request(&self, request: Request) -> Request {
        let (number, record) = (&self.found.number, &self.found.row.entry.record);
        let of_same = request.document_id.is_some()
            && request.document_id == self.document_id
            && (!self.is_of_project || request.inputs.project == record.project);
        let again = request.again || of_same;
        let ValueOf { counter_id, value } = self.found.of;
        let key =
            || request.document_id.is_none().then(|| format!("replaces:{counter_id}:{value}"));
        let idempotency_key = request.idempotency_key.clone().or_else(key);
        Request { again, replaces: Some(number.clone().into()), idempotency_key, ..request }
    }

    /// The answer where another number stands in its place: this request's own, or a refusal. Takes
    /// nothing.
    ///
    /// # Errors
    /// `Replaced`, or why it cannot be known whether the number is this request's own.
    pub(crate) async fn answered(
        &self,
        allocator: &Allocator,
        request: &Request,
        by: Option<tokio::time::Instant>,
    ) -> Result<Option<Issued>, Problem> {
        let Some(row) = &self.replaced else { return Ok(None) };
        let found = match allocator.issued_before(request.clone(), by).await {
            Ok(found) => found,
            Err(error) if error.retry_useful() => return Err(error.into()),
            Err(_) => None,
        };
        let taken = match found {
            Some(issued) if row.other == Some(issued.entry.record.allocation_id) => {
                return Ok(Some(issued));
            }
            other => other.map(|issued| issued.entry.number),
        };
        let (number, row) = (self.found.number.clone(), Box::new(row.clone()));
        Err(LifecycleError::Replaced { number, row, taken }.into())
    }
}

/// Finds a void number that the caller sees. One that is reserved is not void.
///
/// # Errors
/// See [`LifecycleError`].
pub(crate) async fn check(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    (name, by): (&NumberName, &By),
    try_of: TryOf,
) -> Result<VoidPlace, LifecycleError> {
    let found = find(ledger, catalog, (name, by), try_of).await.map_err(not_void)?;
    found.must_be_within(by)?;
    let place = place_of(ledger, found).await?;
    let mut place = place.map_err(|found| LifecycleError::NotVoid { number: found.number })?;
    if let Some(link) = &mut place.replaced {
        // A refusal names what the caller sees.
        if !sees_replacement(ledger, &by.identity, link).await? {
            link.replacement = None;
        }
    }
    Ok(place)
}

/// A number that is only reserved is not void either.
fn not_void(error: LifecycleError) -> LifecycleError {
    match error {
        LifecycleError::Reserved { number, .. } => LifecycleError::NotVoid { number },
        other => other,
    }
}

/// The place of a number, or the number where it is not void.
///
/// # Errors
/// A ledger that does not answer.
pub(crate) async fn place_of(
    ledger: &SharedLedger,
    found: FoundNumber,
) -> Result<Result<VoidPlace, FoundNumber>, LedgerError> {
    let standing = ledger.life().standing_of(found.of).await?;
    let Some(voided) = standing.voided else { return Ok(Err(found)) };
    let Record { series_id, version, .. } = *found.row.entry.record;
    let version = ledger.series().version(series_id, version).await?;
    let is_of_project =
        version.is_some_and(|version| version.definition.documents == Documents::Project);
    let (document_id, replaced) = (voided.document_id, standing.replaced);
    Ok(Ok(VoidPlace { found, document_id, replaced, is_of_project }))
}

/// Writes the link from a void number to the one that was taken in its place.
///
/// # Errors
/// `Replaced` where another one was quicker; `Unlinked` where it is not known.
pub(crate) async fn link(
    ledger: &SharedLedger,
    place: &VoidPlace,
    by: &By,
    issued: &Issued,
) -> Result<(), LifecycleError> {
    let replacement = Replacement {
        allocation_id: issued.entry.record.allocation_id,
        number: issued.entry.number.clone(),
    };
    let (number, taken) = (place.found.number.clone(), issued.entry.number.clone());
    match ledger.life().replace(&place.found.act(by, None), &replacement).await {
        Ok(Linked::Written(_)) => Ok(()),
        Ok(Linked::Other(mut row)) => {
            // A number was taken: what the ledger does not say is left out.
            if !sees_replacement(ledger, &by.identity, &row).await.unwrap_or(false) {
                row.replacement = None;
            }
            Err(LifecycleError::Replaced { number, row: Box::new(row), taken: Some(taken) })
        }
        Ok(Linked::NotVoided) => {
            let error = LedgerError::WentBack("the void that was just read is gone".into());
            Err(LifecycleError::Unlinked { number, taken, error: Box::new(error) })
        }
        Err(error) => Err(LifecycleError::Unlinked { number, taken, error: Box::new(error) }),
    }
}

/// Takes the number for a command, and links it.
///
/// # Errors
/// The problem that HTTP would answer.
pub(crate) async fn take_for_command(
    service: &Service,
    request: Request,
    place: VoidPlace,
    by: By,
) -> Result<Issued, Problem> {
    let request = place.request(request);
    if let Some(issued) = place.answered(&service.allocator, &request, None).await? {
        return Ok(issued);
    }
    let (allocator, ledger) = (service.allocator.clone(), SharedLedger::clone(&service.ledger));
    // A task of its own: a command that is interrupted leaves no number without its link.
    let taking = tokio::spawn(async move {
        let issued = allocator.issue(request).await?;
        link(&ledger, &place, &by, &issued).await?;
        Ok::<_, Problem>(issued)
    });
    taking.await.map_err(|error| Problem::internal(&error))?
}

/// What was asked for a number, as the request for another one for the same: its document, its
/// date, its variables.
pub(crate) fn asked_for(row: &JournalRow) -> numbering::Inputs {
    let record = &row.entry.record;
    numbering::Inputs {
        type_code: record.type_code.clone(),
        project: record.project.clone(),
        date: Some(record.document_date.clone()),
        context: record.context.clone(),
        ..numbering::Inputs::default()
    }
}
