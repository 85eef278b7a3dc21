//! Whether an earlier number answers a request. One of another identity does not, and is not named.

use numbering::{InputError, Serial};

use super::pending_request::CheckedRequest;
use super::{AllocError, Issued};
use crate::auth::Identity;
use crate::ledger::{DocumentHas, Entry, Found, Reservation};

/// Judges what the journal found under an order's keys; `None`: nothing, a number may be taken. The
/// caller's key is checked before the document, as in the issue script.
pub(super) fn judge(order: &CheckedRequest, found: Found) -> Option<Result<Issued, AllocError>> {
    let same = |digest: &str| digest == order.record.payload_digest;
    let Found { by_key, by_document, archived, reserved_by_key, reserved_by_document, assigned } =
        found;
    // One that is over or cancelled is no answer.
    let live = |found: Option<Box<Reservation>>| found.filter(|found| !found.is_due());
    let (reserved_by_key, reserved_by_document) =
        (live(reserved_by_key), live(reserved_by_document));
    // What is issued answers before what is reserved: a document may have both.
    let (by_document, other) = match by_document {
        Some(entry) if same(&entry.record.payload_digest) => (Some(entry), None),
        other => (None, other),
    };
    match (by_key, reserved_by_key, by_document) {
        (Some(entry), ..) if same(&entry.record.payload_digest) => Some(order.repeated(entry)),
        (None, Some(reserved), _) if same(&reserved.entry.record.payload_digest) => {
            Some(order.reserved_before(*reserved))
        }
        (Some(_), ..) | (None, Some(_), _) => Some(Err(AllocError::KeyReused)),
        (None, None, Some(entry)) => Some(order.repeated(entry)),
        (None, None, None) => match (reserved_by_document, other, assigned) {
            (Some(reserved), ..) => Some(order.reserved_before(*reserved)),
            (None, Some(entry), _) => Some(Err(order.numbered(entry))),
            (None, None, Some(assigned)) => {
                Some(Err(order.document_has(DocumentHas::Assigned(assigned))))
            }
            (None, None, None) => archived.map(|file| Err(AllocError::DocumentArchived { file })),
        },
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

    /// The answer of a live reservation: to the request that made it itself, else a refusal.
    fn reserved_before(&self, reserved: Reservation) -> Result<Issued, AllocError> {
        let is_shown = self.sees(&reserved.entry);
        let is_same = reserved.entry.record.payload_digest == self.record.payload_digest;
        if is_shown && is_same && self.reserve_us.is_some() {
            return self.reserved(reserved, true);
        }
        Err(self.document_has(DocumentHas::Reserved(Box::new(reserved))))
    }

    /// The refusal of another request for a document that has a number.
    pub(super) fn numbered(&self, entry: Entry) -> AllocError {
        self.document_has(DocumentHas::Number(Box::new(entry)))
    }

    /// The refusal of a request for a document that has something else.
    fn document_has(&self, has: DocumentHas) -> AllocError {
        AllocError::document_has(&self.identity, &self.served.version.definition.code, has)
    }

    /// Whether the caller may see an earlier number of the series.
    fn sees(&self, entry: &Entry) -> bool {
        let record = &entry.record;
        let code = &self.served.version.definition.code;
        self.identity.sees_number(&record.user_id, code, record.project.as_deref())
    }
}

impl AllocError {
    /// The refusal of another number for a document of a series. What it has is shown to those who
    /// see it.
    pub(crate) fn document_has(identity: &Identity, series: &str, has: DocumentHas) -> Self {
        let sees =
            |user_id: &str, project: Option<&str>| identity.sees_number(user_id, series, project);
        let seen = |entry: Entry| {
            let is_seen = sees(&entry.record.user_id, entry.record.project.as_deref());
            is_seen.then_some(entry.number)
        };
        match has {
            DocumentHas::Number(entry) => numbered(seen(*entry)),
            DocumentHas::Assigned(assigned) => {
                let is_seen = sees(&assigned.taken_by, assigned.project.as_deref());
                numbered(is_seen.then_some(assigned.number))
            }
            DocumentHas::Reserved(held) => {
                AllocError::DocumentReserved { number: seen(held.entry) }
            }
            DocumentHas::Archived(file) => AllocError::DocumentArchived { file },
        }
    }
}

fn numbered(number: Option<String>) -> AllocError {
    AllocError::DocumentNumbered { number }
}
