//! Whether an earlier number answers a request (R1.8).

use numbering::InputError;

use super::pending_request::Order;
use super::{AllocError, Issued};
use crate::ledger::Found;

/// Judges what the journal found under an order's keys; `None`: nothing, a number may be taken.
/// The caller's key is looked at before the document, as in the issue script.
pub(super) fn judge(order: &Order, found: Found) -> Option<Result<Issued, AllocError>> {
    let same = |digest: &str| digest == order.record.payload_digest;
    match (found.by_key, found.by_document) {
        (Some(entry), _) if same(&entry.record.payload_digest) => Some(order.repeated(entry)),
        (Some(_), _) => Some(Err(AllocError::KeyReused)),
        (None, Some(entry)) if same(&entry.record.payload_digest) => Some(order.repeated(entry)),
        (None, Some(entry)) => Some(Err(order.numbered(entry))),
        (None, None) => found.archived.map(|file| Err(AllocError::DocumentArchived { file })),
    }
}

/// The refusal of an order that is dated before the last number of its counters.
pub(super) fn before_last(order: &Order, last_date: String) -> AllocError {
    let date = order.record.document_date.clone();
    AllocError::Input(InputError::DateBeforeLast { date, last_date })
}

/// The refusal of an order one of whose serials has no value left (R2.5).
pub(super) fn exhausted(order: &Order, serial: usize) -> AllocError {
    let name = order.served.series.serials()[serial].name.clone();
    AllocError::Exhausted { serial: name, max: order.specs[serial].max }
}
