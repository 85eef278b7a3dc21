//! Registers a number that was given by hand, for the route and the command alike.
//!
//! A number leaves this process only after its commit, while the process may hand out, and once it
//! is kept like one that was taken here: a ledger that forgets it gets its record again.

use std::sync::Arc;

use numbering::InputError;
use serde_json::json;
use tokio::time::Instant;

use super::error::NotRegistered;
use crate::auth::Identity;
use crate::engine::allocator::{AllocError, Request, SaidByHand};
use crate::engine::reconciler::Loan;
use crate::ledger::{DocumentHas, Entry, NumberByHand, RegisteredNumber, Registering};
use crate::node::{NodeId, system_random};
use crate::startup::Service;
use crate::web::instant::reserved_until;

/// A number to be registered.
#[derive(Clone, Debug)]
pub(crate) struct RegisterOrder {
    /// What is said of it: its document, date and variables, and who registers it.
    pub(crate) request: Request,
    /// The number, in normal form C.
    pub(crate) number: String,
    /// Why it was given by hand.
    pub(crate) reason: String,
    /// Whether it is to be kept as written, since no series could render it.
    pub(crate) is_as_written: bool,
}

impl RegisterOrder {
    /// The number as it is said to have been given.
    fn said(&self) -> SaidByHand<'_> {
        let RegisterOrder { number, reason, is_as_written, .. } = self;
        SaidByHand { number, reason, is_as_written: *is_as_written }
    }
}

/// A number that is registered.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    /// Its record, and the act.
    pub(crate) number: RegisteredNumber,
    /// Code of its series.
    pub(crate) series: String,
    /// Whether an earlier call registered it.
    pub(crate) replayed: bool,
}

/// Registers the number. Safe to repeat.
///
/// # Errors
/// See [`NotRegistered`]. After a ledger that did not answer it may be registered: a repeated call
/// says so.
pub(crate) async fn register(
    service: &Service,
    order: RegisterOrder,
) -> Result<Registration, NotRegistered> {
    let identity = Arc::clone(&order.request.identity);
    let read = service.allocator.read_by_hand(order.request.clone(), order.said()).await?;
    let (asked_at, node) = (Instant::now(), service.context.membership.node());
    // What the journal has needs no partition to be lent.
    let known = service.ledger.imports().registered(&read.new).await?;
    let outcome = match (known, read.closed) {
        (Some(known), _) => known,
        (None, Some(closed)) => return Err(closed.into()),
        (None, None) => register_at_rest(service, node, &read.new).await?,
    };
    service.context.membership.must_not_have_slept(asked_at, node).await?;
    // A refusal that shows the document's number hands it out, too (F30).
    let (written, found) = match &outcome {
        Registering::Written(number) => (vec![number.entry.clone()], None),
        Registering::Known(number) => (Vec::new(), Some(&number.entry)),
        Registering::DocumentHas(DocumentHas::Number(entry)) => (Vec::new(), Some(&**entry)),
        _ => (Vec::new(), None),
    };
    service.context.hand_out(node, written, found)?;
    let (number, replayed) = match outcome {
        Registering::Written(number) => (*number, false),
        Registering::Known(number) => (*number, true),
        other => return Err(refused(&identity, &read.series, &read.new, other)),
    };
    Ok(Registration { number, series: read.series, replayed })
}

/// The same registration, where an earlier call made it.
///
/// # Errors
/// What is wrong with the request; a ledger that does not answer, or that the processes may have
/// agreed on another one meanwhile (F25).
pub(crate) async fn registered_before(
    service: &Service,
    order: RegisterOrder,
) -> Result<Option<Registration>, NotRegistered> {
    let read = service.allocator.read_by_hand(order.request.clone(), order.said()).await?;
    let (asked_at, node) = (Instant::now(), service.context.membership.node());
    let known = service.ledger.imports().registered(&read.new).await?;
    service.context.membership.must_not_have_slept(asked_at, node).await?;
    let Some(Registering::Known(number)) = known else { return Ok(None) };
    service.context.hand_out(node, Vec::new(), [&number.entry])?;
    Ok(Some(Registration { number: *number, series: read.series, replayed: true }))
}

/// Registers it where its counter is at rest, or once the database has its partition.
async fn register_at_rest(
    service: &Service,
    node: NodeId,
    new: &NumberByHand,
) -> Result<Registering, NotRegistered> {
    match service.ledger.imports().register(node, new).await? {
        Registering::InRedis(partition) => register_on_loan(service, node, partition, new).await,
        outcome => Ok(outcome),
    }
}

/// Registers it while the database has the partition of a counter that Redis counts, or of a
/// document whose numbers Redis knows.
async fn register_on_loan(
    service: &Service,
    node: NodeId,
    partition: u32,
    new: &NumberByHand,
) -> Result<Registering, NotRegistered> {
    let user = &new.order.record.user_id;
    let detail = json!({ "to": "registration", "number": new.number, "user": user });
    let errors = [NotRegistered::Lent, NotRegistered::TimedOut];
    Loan::serve(
        &service.context,
        partition,
        (system_random(), detail),
        errors,
        move || async move {
            let outcome = service.ledger.imports().register(node, new).await?;
            Ok(Some(outcome).filter(|outcome| !matches!(outcome, Registering::InRedis(_))))
        },
    )
    .await
}

/// Why a number is not registered. A document's other number, and the document that holds a number,
/// are shown to those who see the number.
fn refused(
    identity: &Identity,
    series: &str,
    new: &NumberByHand,
    outcome: Registering,
) -> NotRegistered {
    let sees = |entry: &Entry| {
        let record = &*entry.record;
        identity.sees_number(&record.user_id, series, record.project.as_deref())
    };
    let asked = match outcome {
        Registering::Reserved(held) => {
            let document_id = held.entry.record.document_id.clone().filter(|_| sees(&held.entry));
            let (number, until) = (new.number.clone(), reserved_until(held.ends_at_us()));
            return NotRegistered::Reserved { number, document_id, until };
        }
        Registering::DocumentHas(has) => AllocError::document_has(identity, series, has),
        Registering::BelowStart { counter_id, next, start, step } => {
            let steps = (start - next + step - 1) / step;
            let serial = new.order.specs.first().map(|spec| spec.serial.clone());
            AllocError::BelowStart {
                code: series.to_owned(),
                serial: serial.unwrap_or_default(),
                counter_id,
                next,
                start: start.unsigned_abs(),
                move_to: (next + steps * step).unsigned_abs(),
            }
        }
        Registering::BeforeLast(last_date) => {
            let date = new.order.record.document_date.clone();
            InputError::DateBeforeLast { date, last_date }.into()
        }
        Registering::Readable { code, version } => {
            let is_shown = code == series || identity.scope.is_everything();
            let (number, reader) = (new.number.clone(), is_shown.then_some((code, version)));
            return NotRegistered::Readable { number, reader };
        }
        outcome => return NotRegistered::Refused { number: new.number.clone(), outcome },
    };
    asked.into()
}
