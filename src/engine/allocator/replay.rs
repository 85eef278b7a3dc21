//! Whether an earlier number answers a request. One of another identity does not, and is not named.

use numbering::{InputError, Serial};

use super::pending_request::CheckedRequest;
use super::{AllocError, Issued};
use crate::ledger::{Entry, Found};

/// Judges what the journal found under an order's keys; `None`: nothing, a number may be taken. The
/// caller's key is checked before the document, as in the issue script.
pub(super) fn judge(order: &CheckedRequest, found: Found) -> Option<Result<Issued, AllocError>> {
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
pub(super) fn before_last(order: &CheckedRequest, last_date: String) -> AllocError {
    let date = order.record.document_date.clone();
    AllocError::Input(InputError::DateBeforeLast { date, last_date })
}

/// The refusal of an order whose counter has not come to the first value of its serial.
pub(super) fn below_start(
    order: &CheckedRequest,
    serial: usize,
    (counter_id, value): (i64, i64),
) -> AllocError {
    let version = &order.served.version.definition;
    below(&version.code, &order.served.series.serials()[serial], (counter_id, value))
}

/// The same of any series.
pub(super) fn below(code: &str, serial: &Serial, (counter_id, value): (i64, i64)) -> AllocError {
    let Serial { ref name, start, step, .. } = *serial;
    let next = value.saturating_add(i64::try_from(step).unwrap_or(i64::MAX));
    let distance = i128::from(start) - i128::from(next);
    let steps = u64::try_from(distance.max(0)).unwrap_or(0).div_ceil(step);
    let move_to = i128::from(next) + i128::from(steps) * i128::from(step);
    AllocError::BelowStart {
        code: code.to_owned(),
        serial: name.clone(),
        counter_id,
        next,
        start,
        move_to: u64::try_from(move_to).unwrap_or(u64::MAX),
    }
}

/// The refusal of an order one of whose serials has no value left.
pub(super) fn exhausted(order: &CheckedRequest, serial: usize) -> AllocError {
    let name = order.served.series.serials()[serial].name.clone();
    AllocError::Exhausted { serial: name, max: order.specs[serial].max }
}

impl CheckedRequest {
    /// The answer of an earlier allocation to a request that repeats it.
    pub(super) fn repeated(&self, entry: Entry) -> Result<Issued, AllocError> {
        if self.sees(&entry) { self.issued(entry, true) } else { Err(numbered(None)) }
    }

    /// The refusal of another request for a document that has a number.
    pub(super) fn numbered(&self, entry: Entry) -> AllocError {
        let is_shown = self.sees(&entry);
        numbered(is_shown.then_some(entry.number))
    }

    /// Whether the caller may see an earlier number of the series.
    fn sees(&self, entry: &Entry) -> bool {
        let record = &entry.record;
        let code = &self.served.version.definition.code;
        self.identity.sees_number(&record.user_id, code, record.project.as_deref())
    }
}

fn numbered(number: Option<String>) -> AllocError {
    AllocError::DocumentNumbered { number }
}
