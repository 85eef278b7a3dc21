//! The scope of a request: a series or project out of scope is refused in the words for a type that
//! no series serves.

use std::sync::Arc;

use jiff::Timestamp;
use numbering::{InputError, RuleError, Told};

use super::{AllocError, Catalog, Request, ServedSeries};

/// The name of a series that the caller does not see, where a message must mention it.
const BEYOND: &str = "another one, beyond your reach,";

/// The series that serves a request, as far as it may know.
pub(super) fn choose<'a>(
    catalog: &'a Catalog,
    request: &Request,
    now: Timestamp,
    told: Told,
) -> Result<&'a Arc<ServedSeries>, AllocError> {
    let scope = &request.identity.scope;
    match catalog.choose_telling(&request.inputs, now, told) {
        Ok(served) if scope.has_series(&served.version.definition.code) => Ok(served),
        Ok(_) => Err(out_of_scope(request)),
        Err(error) if scope.is_everything() => Err(error.into()),
        Err(RuleError::Ambiguous { type_code, first, second }) => {
            let is_seen = |code: &String| {
                let mut known = catalog.known().map(|(version, _)| &version.definition);
                known.any(|one| one.code == *code && scope.shows(code, &one.serves.projects))
            };
            // The series in scope are named; of the other one only the existence is mentioned.
            let mut seen: Vec<String> = [first, second].into_iter().filter(is_seen).collect();
            if seen.is_empty() {
                return Err(out_of_scope(request));
            }
            let second = seen.split_off(1).pop().unwrap_or_else(|| BEYOND.to_owned());
            let first = seen.pop().unwrap_or_default();
            Err(RuleError::Ambiguous { type_code, first, second }.into())
        }
        // The hints of these name types, projects and series of other identities.
        Err(_) => Err(out_of_scope(request)),
    }
}

/// Refuses a project out of scope. Checked before any other detail of the request is shown.
pub(super) fn must_have(request: &Request, project: Option<&str>) -> Result<(), AllocError> {
    if request.identity.scope.has_project(project) { Ok(()) } else { Err(out_of_scope(request)) }
}

/// A refusal of the numbering language is shown only to a caller with the project in scope.
pub(super) fn refused(request: &Request, error: InputError) -> AllocError {
    let Request { inputs, identity, .. } = request;
    let named = inputs.project.as_deref();
    match (named, identity.scope.has_project(named)) {
        (Some(_), false) => out_of_scope(request),
        _ => error.into(),
    }
}

/// Shows no more than the token's own lists and the request.
fn out_of_scope(request: &Request) -> AllocError {
    let Request { inputs, identity, .. } = request;
    match &inputs.project {
        Some(project) if !identity.scope.has_project(Some(project)) => {
            let hint = "`project` is none of the token's `projects`, for which alone it asks";
            unknown(&inputs.type_code, hint.to_owned())
        }
        _ => AllocError::out_of_scope(&inputs.type_code),
    }
}

fn unknown(type_code: &str, hint: String) -> AllocError {
    RuleError::UnknownType { type_code: type_code.to_owned(), hint }.into()
}

impl AllocError {
    /// The one refusal of what there is not and of what is out of reach, whatever was found of it.
    #[must_use]
    pub fn out_of_scope(type_code: &str) -> Self {
        let hint = "no series that the token reaches serves it with what the request says; the \
                    lists `series` and `projects` of the token say how far it reaches";
        unknown(type_code, hint.to_owned())
    }
}
