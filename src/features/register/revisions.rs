//! `POST /api/v1/documents/{documentId}/revisions`: an issued number with another label.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use clap::Args;
use numbering::{Lines, RevisionError, check_printable};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::auth::Identity;
use crate::features::numbers::answer::RecordAnswer;
use crate::features::numbers::request;
use crate::features::register::revision::{
    ReviseError, RevisedDocument, RevisionRequest, revise_now, revised_before,
};
use crate::features::register::rows::FoundRow;
use crate::ledger::{JournalRow, LedgerError, Revision, SharedLedger, ValueOf};
use crate::web::App;
use crate::web::body::Json;
use crate::web::instant::instant;
use crate::web::journal_wait::once_journaled;
use crate::web::middleware::Caller;
use crate::web::outcome::outcome_of;
use crate::web::problem::{Problem, Slug};

/// Longest reason, in characters.
const REASON_CHARS_MAX: usize = 500;

/// A label for a number of the document.
#[derive(Clone, Debug, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRevision {
    /// The label, a value of the variable `REV`.
    #[arg(help = "The new label")]
    rev: String,
    /// Which number, as it was issued, where the document has several.
    #[arg(long, help = "Which number, as it was issued, where the document has several")]
    #[serde(default)]
    number: Option<String>,
    /// Which number: the one of the series with this code.
    #[arg(long, value_name = "CODE")]
    #[arg(help = "Which number: the one of the series with this code")]
    #[serde(default)]
    series: Option<String>,
    /// Why, at most 500 characters.
    #[arg(long, help = "Why, for the record")]
    #[serde(default)]
    reason: Option<String>,
}

impl NewRevision {
    /// The request for a label of this document's number, by whom and from where.
    ///
    /// # Errors
    /// A number or a reason that no ledger stores or looks for.
    pub(super) fn request(
        self,
        document_id: String,
        (identity, user_id): (Arc<Identity>, String),
        ip_address: Option<String>,
    ) -> Result<RevisionRequest, Problem> {
        check_revision_texts(self.number.as_deref(), self.reason.as_deref())?;
        let NewRevision { rev, number, series, reason } = self;
        Ok(RevisionRequest {
            document_id,
            rev,
            number: number.map(|number| number.nfc().collect()),
            series,
            reason,
            identity,
            user_id,
            ip_address,
        })
    }
}

/// Refuses texts that no ledger stores or searches for.
pub(crate) fn check_revision_texts(
    number: Option<&str>,
    reason: Option<&str>,
) -> Result<(), Problem> {
    if number.is_some_and(|number| number.chars().any(char::is_control)) {
        return Err(Problem::field("number", "must not hold control characters"));
    }
    if let Some(Err(flaw)) = reason.map(|reason| check_printable(reason, Lines::One)) {
        return Err(Problem::field("reason", flaw.to_string()));
    }
    if reason.is_some_and(|reason| reason.chars().count() > REASON_CHARS_MAX) {
        let wanted = format!("must be at most {REASON_CHARS_MAX} characters long");
        return Err(Problem::field("reason", wanted));
    }
    Ok(())
}

/// A number with its label.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RevisionAnswer<'a> {
    /// The number with the label.
    pub document_number: &'a str,
    /// The number as it was issued.
    pub revision_of: &'a str,
    /// The label.
    pub rev: &'a str,
    /// What the number was issued for, and what it took.
    #[serde(flatten)]
    pub record: RecordAnswer<'a>,
    /// When the label was given, RFC 3339 in UTC.
    #[schema(format = DateTime)]
    pub revised_at: String,
    /// Whether the number had the label already.
    pub replayed: bool,
}

impl<'a> RevisionAnswer<'a> {
    /// The answer for a revised document.
    #[must_use]
    pub fn of(revised: &'a RevisedDocument) -> Self {
        RevisionAnswer {
            document_number: &revised.number,
            revision_of: &revised.original.entry.number,
            rev: &revised.rev,
            record: RecordAnswer::of(
                &revised.original.entry,
                &revised.serials,
                &revised.original.series,
            ),
            revised_at: instant(revised.revised_at_us),
            replayed: revised.replayed,
        }
    }
}

/// A revision of a number, as the number's row shows it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RevisionRow<'a> {
    /// The label.
    rev: &'a str,
    /// The number with it.
    document_number: &'a str,
    /// Who asked.
    user_id: &'a str,
    /// From where.
    ip_address: Option<&'a str>,
    /// Why.
    reason: Option<&'a str>,
    /// When the label was given.
    #[schema(format = DateTime)]
    revised_at: String,
}

impl<'a> RevisionRow<'a> {
    pub(crate) fn of(revision: &'a Revision) -> Self {
        RevisionRow {
            rev: &revision.rev,
            document_number: &revision.number,
            user_id: &revision.user_id,
            ip_address: revision.ip_address.as_deref(),
            reason: revision.reason.as_deref(),
            revised_at: instant(revision.revised_at_us),
        }
    }
}

/// Journal rows with their revisions, and what became of their numbers.
pub(crate) async fn with_revisions(
    ledger: &SharedLedger,
    rows: Vec<JournalRow>,
) -> Result<Vec<FoundRow>, LedgerError> {
    let names: Vec<ValueOf> = rows.iter().filter_map(ValueOf::number).collect();
    let mut revisions: HashMap<ValueOf, Vec<Revision>> = HashMap::new();
    for revision in ledger.register().revisions_of(&names).await? {
        revisions.entry(revision.of).or_default().push(revision);
    }
    let found = FoundRow::with_lives(ledger, rows).await?.into_iter().map(|found| {
        let of = ValueOf::number(&found.row).and_then(|name| revisions.remove(&name));
        FoundRow { revisions: Some(of.unwrap_or_default()), ..found }
    });
    Ok(found.collect())
}

/// Gives a number of a document another label. Takes nothing; repeating it changes nothing.
#[utoipa::path(
    post, path = "", tag = "documents",
    params(("documentId" = String, Path, description = "At most 255 characters, percent-encoded")),
    request_body = NewRevision,
    responses(
        (status = 201, body = RevisionAnswer, description = "A new label"),
        (status = 200, body = RevisionAnswer, description = "The number had the label already"),
    )
)]
pub(crate) async fn create_revision(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    document_id: Result<Path<String>, PathRejection>,
    Json(order): Json<NewRevision>,
) -> Result<Response, Problem> {
    let document_id = request::document_of(document_id)?;
    let by = (Arc::clone(&caller.identity), caller.user_id.to_string());
    let request = order.request(document_id, by, caller.address())?;
    // Its record may be on its way: no place is held meanwhile.
    let is_missing = |problem: &Problem| problem.slug() == Slug::DocumentNotNumbered;
    let revising = once_journaled(is_missing, |try_of| {
        let (clock, request) = (app.service.clock.clone(), request.clone());
        app.note(&caller, move |ledger| async move {
            revise_now(&ledger, &clock, request, try_of).await
        })
    });
    let (clock, again) = (app.service.clock.clone(), request.clone());
    let looking =
        app.read(&caller, |ledger| async move { revised_before(&ledger, &clock, again).await });
    let noting = app.noted(&caller, revising, |revised| revised.replayed, looking);
    let revised = Box::pin(noting).await?;
    let answer = axum::Json(RevisionAnswer::of(&revised));
    let (status, headers) = outcome_of(revised.replayed);
    Ok((status, headers, answer).into_response())
}

impl From<ReviseError> for Problem {
    fn from(error: ReviseError) -> Self {
        let error = match error {
            ReviseError::Ledger(error) => return error.into(),
            other => other,
        };
        let told = |slug| Problem::new(slug, error.to_string());
        match &error {
            // Its record may be on its way.
            ReviseError::NotNumbered { .. } => told(Slug::DocumentNotNumbered).retry_soon(),
            ReviseError::NoSeries { .. } => Problem::field("series", error.to_string()),
            ReviseError::Several { .. }
            | ReviseError::Range { .. }
            | ReviseError::Member { .. }
            | ReviseError::AsWritten { .. } => Problem::field("number", error.to_string()),
            ReviseError::Number(RevisionError::NotShown { .. }) => {
                Problem::field("rev", error.to_string())
            }
            ReviseError::Number(RevisionError::Input(input)) => Problem::of_input(input),
            ReviseError::Number(RevisionError::Departed { .. }) | ReviseError::Ledger(_) => {
                Problem::internal_taking_nothing(&error)
            }
            ReviseError::Collided { .. } => told(Slug::TemplateAmbiguous),
            ReviseError::TooMany { .. } => told(Slug::RevisionsExhausted),
            ReviseError::Void { .. } => told(Slug::NumberVoided),
        }
    }
}
