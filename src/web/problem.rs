//! Problems: the answer to a caller that gets no number (RFC 9457).
//!
//! Owns every slug (`slug`) and is the only place that knows status codes. The cause of an internal
//! error is logged, never sent.

mod exchange;
mod ledger;
pub(crate) mod serial_state;
mod slug;
mod unavailable;

use std::fmt;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use numbering::{InputError, RuleError};
use serde::Serialize;
use utoipa::ToSchema;

use super::language::{self, Locale, user_message};
use super::readiness::Ready;
use crate::engine::allocator::{AllocError, NumberTaken};
use crate::engine::sources::SourceError;
use crate::ledger::LedgerError;
use crate::web::problem::serial_state::SerialState;
pub use slug::Slug;
use unavailable::unavailable;

/// How long to wait before a retry if the error itself does not say.
const RETRY_AFTER_MS: u64 = 1_000;

impl Slug {
    /// The slug of a refusal of the numbering language; its words are the same.
    fn of_input(error: &InputError) -> Self {
        let name = error.slug();
        Slug::ALL.iter().copied().find(|slug| slug.name() == name).unwrap_or(Slug::InvalidField)
    }
}

/// A problem, before it has the language and the request id of a call.
#[derive(Clone, Debug)]
pub struct Problem {
    slug: Slug,
    /// Suitable for every reader: never an internal cause.
    detail: String,
    field: Option<String>,
    number_taken: NumberTaken,
    /// When a retry makes sense; `None`: never.
    retry_after_ms: Option<u64>,
    /// The number that the document has already.
    document_number: Option<String>,
    /// The state of the refused serial.
    standing: Option<Box<SerialState>>,
    /// What works in a process that is not ready.
    state: Option<Box<Ready>>,
    /// Whether a token was sent, and is not accepted.
    is_token_refused: bool,
    /// Whether the rest of the body is not read: the next request needs another connection.
    is_body_left: bool,
}

impl Problem {
    /// A problem that no retry solves and that took no number.
    #[must_use]
    pub fn new(slug: Slug, detail: impl Into<String>) -> Self {
        Problem {
            slug,
            detail: detail.into(),
            field: None,
            number_taken: NumberTaken::No,
            retry_after_ms: None,
            document_number: None,
            standing: None,
            state: None,
            is_token_refused: false,
            is_body_left: matches!(
                slug,
                Slug::BodyTooLarge | Slug::BodyTimeout | Slug::UnknownTransferCoding
            ),
        }
    }

    /// A token, of any kind, that is not accepted.
    #[must_use]
    pub(crate) fn refused_token(detail: impl Into<String>) -> Self {
        Problem { is_token_refused: true, ..Problem::new(Slug::Unauthenticated, detail) }
    }

    /// A wrong field. `field` is a path such as `context.REV`; `reason` names the remedy.
    #[must_use]
    pub fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Problem { field: Some(field.into()), ..Problem::new(Slug::InvalidField, reason) }
    }

    /// An internal bug. The cause is logged here, once; the caller learns only that it happened.
    pub(crate) fn internal(cause: &dyn fmt::Display) -> Self {
        tracing::error!(%cause, "internal error");
        Problem {
            // The call may have got further than the bug.
            number_taken: NumberTaken::Maybe,
            ..Problem::new(Slug::Internal, "see the service's log under this request id")
        }
    }

    /// The same for a call that takes nothing, however far it got.
    pub(crate) fn internal_taking_nothing(cause: &dyn fmt::Display) -> Self {
        Problem { number_taken: NumberTaken::No, ..Problem::internal(cause) }
    }

    /// A refusal of the numbering language.
    pub(crate) fn of_input(input: &InputError) -> Self {
        let problem = Problem::new(Slug::of_input(input), input.to_string());
        Problem { field: Some(input.field()), ..problem }
    }

    /// The same problem of a field.
    pub(crate) fn of_field(self, field: &str) -> Self {
        Problem { field: Some(field.into()), ..self }
    }

    /// The same problem, worth a retry after a short time.
    pub(crate) fn retry_soon(self) -> Self {
        self.retry_in(RETRY_AFTER_MS)
    }

    /// The same problem, worth a retry after this time.
    pub(crate) fn retry_in(self, ms: u64) -> Self {
        Problem { retry_after_ms: Some(ms), ..self }
    }

    /// The same problem, of a body that is not read to its end.
    pub(crate) fn leaving_the_body(self) -> Self {
        Problem { is_body_left: true, ..self }
    }

    /// The same problem, with the state of the refused serial.
    pub(crate) fn standing(self, standing: SerialState) -> Self {
        Problem { standing: Some(Box::new(standing)), ..self }
    }

    /// The same problem, with what works in a process that is not ready.
    pub(crate) fn of_state(self, state: Ready) -> Self {
        Problem { state: Some(Box::new(state)), ..self }
    }

    /// The same problem of a call that may have taken a number.
    pub(crate) fn maybe_taken(self) -> Self {
        Problem { number_taken: NumberTaken::Maybe, ..self }
    }

    /// The same problem, which names a number of its document.
    pub(crate) fn naming(self, number: String) -> Self {
        Problem { document_number: Some(number), ..self }
    }

    /// The problem of a call that writes: it states if its outcome is unknown.
    pub(crate) fn of_write(error: LedgerError) -> Self {
        let maybe = error.maybe_written();
        let number_taken = if maybe { NumberTaken::Maybe } else { NumberTaken::No };
        Problem { number_taken, ..error.into() }
    }

    /// Its slug.
    #[must_use]
    pub fn slug(&self) -> Slug {
        self.slug
    }

    /// Whether nothing was done, and a retry may succeed soon: the caller was not at fault.
    pub(crate) fn is_untaken_for_now(&self) -> bool {
        self.retry_after_ms.is_some() && self.number_taken == NumberTaken::No
    }

    /// The problem as sent.
    #[must_use]
    pub(crate) fn body(&self, request_id: &str, language: Locale) -> ProblemBody {
        let (status, message) = (self.slug.status(), user_message(self.slug, language));
        ProblemBody {
            kind: self.slug.page(),
            code: self.slug.name(),
            title: self.slug.title(),
            status: status.as_u16(),
            detail: self.said(),
            instance: request_id.into(),
            retryable: self.retry_after_ms.is_some(),
            number_taken: match self.number_taken {
                NumberTaken::No => "no",
                NumberTaken::Maybe => "maybe",
            },
            retry_after_ms: self.retry_after_ms,
            field: self.field.clone(),
            document_number: self.document_number.clone(),
            standing: self.standing.as_deref().cloned(),
            user_message: match &self.field {
                Some(field) => format!("{message} ({})", field.trim_start_matches("context.")),
                None => message.to_owned(),
            },
        }
    }

    /// The cause and the place.
    fn said(&self) -> String {
        // Most details name their field themselves.
        match self.field.as_ref().filter(|field| !self.detail.contains(*field)) {
            Some(field) => format!("{field}: {}", self.detail),
            None => self.detail.clone(),
        }
    }

    /// The wrong field, by its name in the request.
    pub(crate) fn wrong_field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// The whole response.
    pub(crate) fn render(&self, request_id: &str, language: Locale) -> Response {
        let problem = self.body(request_id, language);
        let body = match &self.state {
            Some(state) => {
                let state = state.as_ref().clone();
                serde_json::to_vec(&NotReady { problem, state })
            }
            None => serde_json::to_vec(&problem),
        };
        let body = body.expect("a struct of texts and numbers is JSON");
        let mut response =
            (self.slug.status(), language::headers(language), self.headers()).into_response();
        *response.body_mut() = Body::from(body);
        response
    }

    /// Headers that repeat the body, for clients and proxies that never read it.
    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(ms) = self.retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000).max(1)));
        }
        if self.is_body_left {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.slug == Slug::Unauthenticated {
            let said = match self.is_token_refused {
                true => "Bearer error=\"invalid_token\"",
                false => "Bearer",
            };
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(said));
        }
        headers
    }
}

/// One line for the command line: the place, the cause and the slug.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.said(), self.slug.name())
    }
}

/// A response that only carries the problem; the gate renders it, since it knows the call.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.slug.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// A problem as JSON (`application/problem+json`).
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    /// The page of the problem on this service, `/problems/` and the code: what it means, and what
    /// to do.
    #[serde(rename = "type")]
    #[schema(format = "uri-reference")]
    pub kind: &'static str,
    /// The slug: a stable word that programs may act on.
    pub code: &'static str,
    /// What the slug means.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong in this case, and the remedy.
    pub detail: String,
    /// The request id, which is also in the service's log.
    pub instance: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// `no`, or `maybe`: then a retry with the same document or key finds the number.
    pub number_taken: &'static str,
    /// When a retry makes sense; in whole seconds also in the header `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The field at fault, such as `context.REV`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The number that the document has already (`document-already-numbered`), or that is reserved
    /// for it (`document-reserved`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document_number: Option<String>,
    /// How the serial stands that was refused (`/api/v1/serials/…`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standing: Option<SerialState>,
    /// A sentence for the user in the language of `Accept-Language`.
    pub user_message: String,
}

/// The problem of a process that is not ready, with all that one that is ready says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotReady {
    #[serde(flatten)]
    problem: ProblemBody,
    #[serde(flatten)]
    state: Ready,
}

impl From<&AllocError> for Problem {
    fn from(error: &AllocError) -> Self {
        let told = |slug| Problem::new(slug, error.to_string());
        match error {
            AllocError::Rule(rule) => {
                use RuleError::{Ambiguous, TypeNotConfigured, UnknownType, Unsettled, Zones};
                let slug = match rule {
                    UnknownType { .. } => Slug::UnknownType,
                    TypeNotConfigured { .. } => Slug::TypeNotConfigured,
                    Ambiguous { .. } | Unsettled { .. } | Zones { .. } => Slug::SeriesAmbiguous,
                };
                Problem { field: Some("type".into()), ..told(slug) }
            }
            AllocError::Input(input) => Problem::of_input(input),
            AllocError::Field { field, reason } => Problem::field(*field, reason.clone()),
            AllocError::DocumentNumbered { number } => {
                Problem { document_number: number.clone(), ..told(Slug::DocumentAlreadyNumbered) }
            }
            AllocError::DocumentReserved { number } => {
                Problem { document_number: number.clone(), ..told(Slug::DocumentReserved) }
            }
            AllocError::DocumentArchived { .. } => told(Slug::DocumentArchived),
            AllocError::KeyReused => Problem {
                field: Some("Idempotency-Key".into()),
                ..told(Slug::IdempotencyKeyReused)
            },
            AllocError::BelowStart { serial, .. } => {
                Problem { field: Some(serial.clone()), ..told(Slug::CounterBelowStart) }
            }
            AllocError::Exhausted { serial, .. } => {
                Problem { field: Some(serial.clone()), ..told(Slug::SequenceExhausted) }
            }
            AllocError::Collided { .. } => told(Slug::TemplateAmbiguous),
            AllocError::Source(source) => {
                let problem = told(match source {
                    SourceError::Refused { .. } => Slug::ExternalRefused,
                    SourceError::Invalid { .. } => Slug::ExternalInvalid,
                    SourceError::Taken { .. } => Slug::ExternalNumberTaken,
                    _ => Slug::ExternalUnavailable,
                });
                if source.retry_useful() { problem.retry_soon() } else { problem }
            }
            AllocError::Unavailable { why, retry_after_ms, taken } => {
                let (slug, detail) = unavailable(*why);
                Problem { number_taken: *taken, ..Problem::new(slug, detail) }
                    .retry_in(*retry_after_ms)
            }
            AllocError::Conflict { taken } => {
                Problem { number_taken: *taken, ..told(Slug::VersionConflict) }.retry_soon()
            }
            AllocError::TimedOut { taken } => {
                Problem { number_taken: *taken, ..told(Slug::LockTimeout) }.retry_soon()
            }
        }
    }
}

impl From<AllocError> for Problem {
    fn from(error: AllocError) -> Self {
        Problem::from(&error)
    }
}

#[cfg(test)]
mod tests;
