//! Assigns a number of a range to a document, for the route and the command alike.
//!
//! Where the series numbers a document once and Redis owns its partition, the partition is lent to
//! the database meanwhile: what Redis took for the document is journaled then, and Redis asks for
//! the document anew afterwards (F29). While it is lent to another call, that loan serves this one,
//! too. Elsewhere nothing is lent, and the answer says that `generate-number` does not look for the
//! assignment.

use std::time::Duration;

use numbering::{DocumentsOf, Inputs};
use numerator_runtime::actor::identity_of;
use serde_json::json;
use tokio::time::Instant;

use super::error::NotAssigned;
use crate::auth::{Act, Whose};
use crate::backoff::Backoff;
use crate::engine::allocator::AllocError;
use crate::engine::reconciler::Loan;
use crate::features::lifecycle::error::LifecycleError;
use crate::features::lifecycle::issuer::compile;
use crate::features::lifecycle::naming::{By, FoundNumber, NumberName, find};
use crate::ledger::{
    Assigned, Assigning, DocumentHas, LedgerError, LifeRow, NewAssignment, SharedLedger,
};
use crate::node::{NodeId, system_random};
use crate::startup::Service;
use crate::web::journal_wait::TryOf;

/// Longest wait for a partition that is lent to something else. Another assignment has it for a
/// fraction of a second.
const LENT_WAIT_MAX: Duration = Duration::from_secs(5);
/// First and longest wait between two tries meanwhile.
const LENT_POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));

/// A number of a range that a document is to have.
#[derive(Clone, Debug)]
pub(crate) struct AssignOrder {
    /// Which.
    pub(crate) name: NumberName,
    /// The document.
    pub(crate) document_id: String,
    /// Why, where that is said.
    pub(crate) reason: Option<String>,
    /// Who.
    pub(crate) by: By,
}

/// A number that is a document's.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    /// The number.
    pub(crate) found: FoundNumber,
    /// The act.
    pub(crate) row: LifeRow,
    /// Whether its series numbers a document once.
    pub(crate) is_once: bool,
    /// Whether an earlier call assigned it.
    pub(crate) replayed: bool,
}

/// Assigns the number, once the journal has its range. Safe to repeat.
///
/// # Errors
/// See [`NotAssigned`]. After a ledger that did not answer it may be assigned: a repeated call says
/// so. No number is taken in any case.
pub(crate) async fn assign(
    service: &Service,
    order: &AssignOrder,
    try_of: TryOf,
) -> Result<Assignment, NotAssigned> {
    let AssignOrder { name, document_id, reason, by } = order;
    let (ledger, catalog) = (&service.ledger, service.allocator.catalog());
    let found = find(ledger, &catalog, (name, by), try_of).await?;
    must_be_within_reach(&found, by)?;
    let (asked_at, node) = (Instant::now(), service.context.membership.node());
    let record = &*found.row.entry.record;
    let new = NewAssignment {
        act: found.act(by, reason.as_deref()),
        series_id: record.series_id,
        project: record.project.clone(),
        taken_by: record.user_id.clone(),
        document_id: document_id.clone(),
        documents: documents_of(ledger, &found).await?,
    };
    let outcome = assign_at_rest(service, node, &new).await?;
    service.context.membership.must_not_have_slept(asked_at, node).await?;
    // A refusal that shows the document's number hands it out (F30).
    let shown = match &outcome {
        Assigning::DocumentHas(DocumentHas::Number(entry)) => Some(&**entry),
        _ => None,
    };
    service.context.hand_out(node, Vec::new(), shown)?;
    let (Assigned { row, is_once }, replayed) = match outcome {
        Assigning::Written(assigned) => (assigned, false),
        Assigning::Known(assigned) => (assigned, true),
        other => return Err(refused(by, &found, document_id, other)),
    };
    Ok(Assignment { found, row, is_once, replayed })
}

/// The same assignment, where an earlier call made it; nothing where none did.
///
/// # Errors
/// A ledger that does not answer, or that the processes may have agreed on another one meanwhile
/// (F25).
pub(crate) async fn assigned_before(
    service: &Service,
    order: &AssignOrder,
) -> Result<Option<Assignment>, NotAssigned> {
    let (ledger, catalog) = (&service.ledger, service.allocator.catalog());
    let found = match find(ledger, &catalog, (&order.name, &order.by), TryOf::First).await {
        Ok(found) => found,
        Err(error @ LifecycleError::Ledger(_)) => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    if must_be_within_reach(&found, &order.by).is_err() {
        return Ok(None);
    }
    let (asked_at, node) = (Instant::now(), service.context.membership.node());
    let series_id = found.row.entry.record.series_id;
    let known = ledger.life().assigned(found.of, series_id).await?;
    service.context.membership.must_not_have_slept(asked_at, node).await?;
    service.context.hand_out(node, Vec::new(), [])?;
    let is_same = |known: &Assigned| known.row.document_id.as_deref() == Some(&*order.document_id);
    let known = known.filter(is_same);
    Ok(known.map(|Assigned { row, is_once }| Assignment { found, row, is_once, replayed: true }))
}

/// Refuses a number that the caller may see, and that is beyond its right: numbers of ranges that
/// it took itself, or within the series and projects of a registrar.
fn must_be_within_reach(found: &FoundNumber, by: &By) -> Result<(), NotAssigned> {
    let record = &*found.row.entry.record;
    let is_own = || identity_of(&record.user_id) == &*by.identity.name;
    let scope = &by.identity.scope;
    let is_within = match by.identity.may(Act::AssignNumbers) {
        Some(Whose::Any) => scope.has(&found.row.series, record.project.as_deref()) || is_own(),
        Some(Whose::Own) => is_own(),
        None => false,
    };
    if is_within {
        return Ok(());
    }
    let (user, number) = (by.user_id.clone(), found.number.clone());
    Err(NotAssigned::OutOfReach { user, number })
}

/// Whose document an id names, by the version that issued the range: that never changes while a
/// series has numbers.
async fn documents_of(
    ledger: &SharedLedger,
    found: &FoundNumber,
) -> Result<DocumentsOf, LedgerError> {
    let series = compile(ledger, &found.row, &mut None).await?;
    let project = found.row.entry.record.project.clone();
    Ok(series.documents_of(&Inputs { project, ..Inputs::default() }))
}

/// Assigns it where the database has the partition or the series does not need that, or once the
/// database has it: by a loan of this call, or by that of another one.
async fn assign_at_rest(
    service: &Service,
    node: NodeId,
    new: &NewAssignment,
) -> Result<Assigning, NotAssigned> {
    let deadline = Instant::now() + LENT_WAIT_MAX;
    let mut wait = Backoff::new(LENT_POLL.0, LENT_POLL.1);
    loop {
        let partition = match service.ledger.life().assign(node, new).await? {
            Assigning::InRedis(partition) => partition,
            outcome => return Ok(outcome),
        };
        match assign_on_loan(service, node, partition, new).await {
            Err(NotAssigned::Lent(_)) if Instant::now() < deadline => wait.wait().await,
            outcome => return outcome,
        }
    }
}

/// Assigns it while the database has the partition of Redis.
async fn assign_on_loan(
    service: &Service,
    node: NodeId,
    partition: u32,
    new: &NewAssignment,
) -> Result<Assigning, NotAssigned> {
    let detail = json!({ "to": "assignment", "number": new.act.number, "user": new.act.user_id });
    let errors = [NotAssigned::Lent, NotAssigned::TimedOut];
    Loan::serve(
        &service.context,
        partition,
        (system_random(), detail),
        errors,
        move || async move {
            let outcome = service.ledger.life().assign(node, new).await?;
            Ok(Some(outcome).filter(|outcome| !matches!(outcome, Assigning::InRedis(_))))
        },
    )
    .await
}

/// Why a number is not assigned. A document's other number is shown to those who see it.
fn refused(by: &By, found: &FoundNumber, document_id: &str, outcome: Assigning) -> NotAssigned {
    let (row, number) = (&found.row, found.number.clone());
    match outcome {
        Assigning::Other(row) => {
            let (held, named) = (row.document_id.unwrap_or_default(), document_id.to_owned());
            NotAssigned::OtherDocument { number, held, named }
        }
        Assigning::Voided(row) => LifecycleError::Void { number, row: Box::new(row) }.into(),
        Assigning::Gone => LifecycleError::Archived { number, file: None }.into(),
        Assigning::NotOfARange => {
            let document_id = row.entry.record.document_id.clone();
            NotAssigned::NotOfARange { number, document_id }
        }
        Assigning::DocumentHas(has) => {
            AllocError::document_has(&by.identity, &row.series, has).into()
        }
        Assigning::Held(partition) => NotAssigned::Held(partition),
        Assigning::BesideOlder => NotAssigned::BesideOlder,
        // Answered otherwise.
        Assigning::InRedis(partition) => NotAssigned::TimedOut(partition),
        Assigning::Written(_) | Assigning::Known(_) => LifecycleError::NotFound { number }.into(),
    }
}
