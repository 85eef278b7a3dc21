//! What a request does not reach, and whose numbers it is not shown (R7.1).
//!
//! A series or project out of reach is refused in the words for a type that nobody serves; an
//! earlier number of somebody else answers no request, and is not named.

use std::sync::Arc;

use jiff::Timestamp;
use numbering::{InputError, RuleError, Told};

use super::pending_request::Order;
use super::{AllocError, Catalog, Request, ServedSeries};
use crate::access::Reach;
use crate::ledger::Entry;

/// The series that serves a request, as far as it may know.
pub(super) fn choose<'a>(
    catalog: &'a Catalog,
    request: &Request,
    now: Timestamp,
    told: Told,
) -> Result<&'a Arc<ServedSeries>, AllocError> {
    let reach = &request.identity.reach;
    let unknown = || Err(out_of_reach(&request.inputs.type_code));
    match catalog.choose_telling(&request.inputs, now, told) {
        Ok(served) if reach.has_series(&served.version.definition.code) => Ok(served),
        Ok(_) => unknown(),
        // The hints of these name types and projects of everybody.
        Err(RuleError::UnknownType { .. } | RuleError::TypeNotConfigured { .. })
            if !reach.is_everything() =>
        {
            unknown()
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a project out of reach. Asked before anything else of the request is told.
pub(super) fn must_have(
    reach: &Reach,
    project: Option<&str>,
    type_code: &str,
) -> Result<(), AllocError> {
    if reach.has_project(project) { Ok(()) } else { Err(out_of_reach(type_code)) }
}

/// What the numbering language refuses is told to who reaches the project only.
pub(super) fn refused(request: &Request, error: InputError) -> AllocError {
    let Request { inputs, identity, .. } = request;
    let named = inputs.project.as_deref();
    match (named, identity.reach.has_project(named)) {
        (Some(_), false) => out_of_reach(&inputs.type_code),
        _ => error.into(),
    }
}

/// The refusal of what is out of reach: in the words for a type that nobody serves.
pub(crate) fn out_of_reach(type_code: &str) -> AllocError {
    let hint = "none within reach of the token; the lists `series` and `projects` of the token say \
                how far it reaches";
    RuleError::UnknownType { type_code: type_code.to_owned(), hint: hint.to_owned() }.into()
}

impl Order {
    /// The answer of an earlier allocation to a request that repeats it.
    pub(super) fn repeated(&self, entry: Entry) -> Result<super::Issued, AllocError> {
        if self.sees(&entry) { self.issued(entry, true) } else { Err(numbered(None)) }
    }

    /// The refusal of another request for a document that has a number.
    pub(super) fn numbered(&self, entry: Entry) -> AllocError {
        let is_shown = self.sees(&entry);
        numbered(is_shown.then_some(entry.number))
    }

    /// Whether whoever asks may be shown an earlier number of the series.
    fn sees(&self, entry: &Entry) -> bool {
        let record = &entry.record;
        let code = &self.served.version.definition.code;
        self.identity.sees_number(&record.user_id, code, record.project.as_deref())
    }
}

fn numbered(number: Option<String>) -> AllocError {
    AllocError::DocumentNumbered { number }
}
