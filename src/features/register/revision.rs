//! Revisions: gives an issued number of a document another label.
//!
//! Finds the number in the journal, has the numbering language render it with the version of its
//! series that issued it, and has the ledger write that. Only the ledger is used, whatever owns the
//! partition: nothing is taken, no partition worker and no Redis is asked.

mod members;

use std::sync::Arc;

use numbering::{Inputs, Original, RevisionError, first_values};
use thiserror::Error;

use crate::auth::Identity;
use crate::clock::SharedClock;
use crate::ledger::{
    IssuePath, JournalFilter, JournalRow, LedgerError, LifeRow, NewRevision, REVISIONS_MAX,
    Revised, Revision, SharedLedger, ValueOf,
};
use crate::web::instant::instant;
use crate::web::journal_wait::{TryOf, once_journaled};
use members::{Issuers, must_be_no_member};

/// Most numbers of a document among which one is found by its series.
const NUMBERS_MAX: u32 = 100;

/// How much of an unknown code is shown, in characters: no code is longer.
const CODE_SHOWN_MAX: usize = 64;

/// Numbers that are named if a document has several.
const NAMED_MAX: usize = 5;

/// A request for a revision.
#[derive(Clone, Debug)]
pub struct RevisionRequest {
    /// The document.
    pub document_id: String,
    /// The new label.
    pub rev: String,
    /// Which of its numbers, if it has several: the number as issued.
    pub number: Option<String>,
    /// Which of its numbers: the one of the series with this code.
    pub series: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The caller: numbers that it does not see are treated as absent.
    pub identity: Arc<Identity>,
    /// The user of the request, as recorded in the ledger.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
}

/// A number with the requested label.
#[derive(Clone, Debug)]
pub struct RevisedDocument {
    /// The number as issued.
    pub original: JournalRow,
    /// Names of the serials, in the order of their values.
    pub serials: Vec<String>,
    /// The label.
    pub rev: String,
    /// The number with it.
    pub number: String,
    /// When the label was given.
    pub revised_at_us: i64,
    /// Whether the number had this label before: from an earlier call, or from its issue.
    pub replayed: bool,
}

/// Why there is no revision. In no case is anything taken.
#[derive(Debug, Error)]
pub enum ReviseError {
    /// The journal has no such number of the document, after a wait for it.
    #[error(
        "the journal has no such number of document {document_id:?}; one that was issued a moment \
         ago appears once its record is committed"
    )]
    NotNumbered {
        /// The document.
        document_id: String,
    },
    /// The requested series does not exist.
    #[error("no active series has the code {code:?}")]
    NoSeries {
        /// The code.
        code: String,
    },
    /// The document has several numbers.
    #[error("the document has several numbers; name one of them: {numbers}")]
    Several {
        /// Some of them.
        numbers: String,
    },
    /// The number represents a range of values.
    #[error("{number} begins a range; only single numbers have revisions")]
    Range {
        /// The first number of the range.
        number: String,
    },
    /// The number is one of such a range.
    #[error(
        "{number} is within the range that begins with {first}; only single numbers have revisions"
    )]
    Member {
        /// The number.
        number: String,
        /// The first number of the range.
        first: String,
    },
    /// The number is kept as written: no template of the series shows it with a label.
    #[error(
        "{number} is kept as written, and shows no label that could be another one: keep the text \
         of the revision as a number of its own"
    )]
    AsWritten {
        /// The number.
        number: String,
    },
    /// The label or the series does not allow it.
    #[error(transparent)]
    Number(#[from] RevisionError),
    /// Another number or revision has the text.
    #[error("another number or revision has the text {number} already")]
    Collided {
        /// The text.
        number: String,
    },
    /// The number is void.
    #[error(
        "{number} is void since {}, by {}: {}; a void number gets no revision", instant(row.at_us),
        row.user_id, row.reason.as_deref().unwrap_or_default()
    )]
    Void {
        /// The number as issued.
        number: String,
        /// The void.
        row: Box<LifeRow>,
    },
    /// The number has too many revisions.
    #[error("{number} has {REVISIONS_MAX} revisions, as many as a number may have")]
    TooMany {
        /// The number as issued.
        number: String,
    },
    /// An error of the ledger, or of its content.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Gives a number of a document another label, once the journal has the number; returns the same
/// again if it has that label already.
///
/// # Errors
/// See [`ReviseError`].
pub async fn revise(
    ledger: &SharedLedger,
    clock: &SharedClock,
    request: RevisionRequest,
) -> Result<RevisedDocument, ReviseError> {
    let is_missing = |error: &ReviseError| matches!(error, ReviseError::NotNumbered { .. });
    once_journaled(is_missing, |try_of| revise_now(ledger, clock, request.clone(), try_of)).await
}

/// The same, tried once.
///
/// # Errors
/// See [`ReviseError`].
pub(crate) async fn revise_now(
    ledger: &SharedLedger,
    clock: &SharedClock,
    request: RevisionRequest,
    try_of: TryOf,
) -> Result<RevisedDocument, ReviseError> {
    let draft = Draft::of(ledger, clock, request, try_of).await?;
    if draft.is_issued {
        return Ok(draft.issued());
    }
    match ledger.register().revise(&draft.new).await? {
        Revised::Written(revision) => Ok(draft.with(revision, false)),
        Revised::Known(revision) => Ok(draft.with(revision, true)),
        Revised::Collided => Err(ReviseError::Collided { number: draft.new.number }),
        Revised::TooMany => Err(ReviseError::TooMany { number: draft.original.entry.number }),
        Revised::Voided(row) => {
            Err(ReviseError::Void { number: draft.original.entry.number, row: Box::new(row) })
        }
    }
}

/// The number if it has the label already; `None` if not, for any reason.
///
/// # Errors
/// A ledger that does not answer.
pub async fn revised_before(
    ledger: &SharedLedger,
    clock: &SharedClock,
    request: RevisionRequest,
) -> Result<Option<RevisedDocument>, LedgerError> {
    let draft = match Draft::of(ledger, clock, request, TryOf::Later).await {
        Ok(draft) if draft.is_issued => return Ok(Some(draft.issued())),
        Ok(draft) => draft,
        Err(ReviseError::Ledger(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let known = ledger.register().revisions_of(&[draft.new.of]).await?;
    let same = known.into_iter().find(|revision| revision.rev == draft.new.rev);
    Ok(same.map(|revision| draft.with(revision, true)))
}

/// A number of a document with another label, before it is written.
struct Draft {
    original: JournalRow,
    serials: Vec<String>,
    new: NewRevision,
    /// Whether the number has the label since its issue: then nothing needs to be written.
    is_issued: bool,
}

impl Draft {
    async fn of(
        ledger: &SharedLedger,
        clock: &SharedClock,
        request: RevisionRequest,
        try_of: TryOf,
    ) -> Result<Self, ReviseError> {
        let original = find(ledger, &request, try_of).await?;
        let record = &original.entry.record;
        if original.entry.taken.iter().any(|taken| taken.range.first != taken.range.last) {
            return Err(ReviseError::Range { number: original.entry.number.clone() });
        }
        if original.entry.path == IssuePath::AsWritten {
            return Err(ReviseError::AsWritten { number: original.entry.number.clone() });
        }
        let series = Issuers::default().compile(ledger, &original).await?;
        let inputs = Inputs {
            type_code: record.type_code.clone(),
            project: record.project.clone(),
            date: Some(record.document_date.clone()),
            context: record.context.clone(),
            ..Inputs::default()
        };
        let values = first_values(&original.entry.taken);
        let number = &original.entry.number;
        let revised =
            series.revise(&Original { inputs: &inputs, values: &values, number }, &request.rev)?;
        let serials = series.serials().iter().map(|serial| serial.name.clone()).collect();
        let nothing_taken = || LedgerError::Refused(format!("journal: {number} took nothing"));
        let is_issued = revised.number == *number;
        let new = NewRevision {
            of: ValueOf::number(&original).ok_or_else(nothing_taken)?,
            allocation_id: record.allocation_id,
            rev: revised.rev,
            number: revised.number,
            user_id: request.user_id,
            ip_address: request.ip_address,
            reason: request.reason,
            revised_at_us: clock.now_us(),
        };
        Ok(Draft { original, serials, new, is_issued })
    }

    /// The number as issued.
    fn issued(self) -> RevisedDocument {
        let Draft { original, serials, new: NewRevision { rev, number, .. }, .. } = self;
        let revised_at_us = original.entry.record.issued_at_us;
        RevisedDocument { original, serials, rev, number, revised_at_us, replayed: true }
    }

    /// The number with the label that the ledger has.
    fn with(self, revision: Revision, replayed: bool) -> RevisedDocument {
        let Draft { original, serials, .. } = self;
        let Revision { rev, number, revised_at_us, .. } = revision;
        RevisedDocument { original, serials, rev, number, revised_at_us, replayed }
    }
}

/// The number that the request means.
async fn find(
    ledger: &SharedLedger,
    request: &RevisionRequest,
    try_of: TryOf,
) -> Result<JournalRow, ReviseError> {
    let series_id = match &request.series {
        None => None,
        Some(code) => {
            let active = ledger.series().list().await?;
            // A number out of reach is treated as absent.
            let scope = &request.identity.scope;
            let found = active.iter().find(|version| {
                let served = &version.definition.serves.projects;
                version.definition.code == *code && scope.shows(code, served)
            });
            let no_series =
                || ReviseError::NoSeries { code: code.chars().take(CODE_SHOWN_MAX).collect() };
            Some(found.ok_or_else(no_series)?.series_id)
        }
    };
    let mut rows = poll(ledger, request).await?;
    rows.retain(|row| {
        series_id.is_none_or(|id| row.entry.record.series_id == id)
            && request.identity.sees_row(row)
    });
    if rows.len() > 1 {
        let named = rows.iter().take(NAMED_MAX).map(|row| row.entry.number.as_str());
        return Err(ReviseError::Several { numbers: named.collect::<Vec<_>>().join(", ") });
    }
    if let Some(row) = rows.pop() {
        return Ok(row);
    }
    if try_of == TryOf::First {
        must_be_no_member(ledger, request).await?;
    }
    Err(ReviseError::NotNumbered { document_id: request.document_id.clone() })
}

/// The numbers of the document that could be meant.
async fn poll(
    ledger: &SharedLedger,
    request: &RevisionRequest,
) -> Result<Vec<JournalRow>, LedgerError> {
    let shown = request.identity.row_visibility();
    if request.number.is_none() {
        let document = &request.document_id;
        let mut rows =
            ledger.register().numbers_shown_of(document, None, NUMBERS_MAX, &shown).await?;
        // A number of a range has no revision: its document is revised by the number of its own.
        rows.retain(|row| row.entry.record.document_id.as_ref() == Some(document));
        return Ok(rows);
    }
    let filter = JournalFilter {
        number: request.number.clone(),
        document_id: Some(request.document_id.clone()),
        limit: NUMBERS_MAX,
        shown,
        ..JournalFilter::default()
    };
    ledger.register().find(&filter).await
}
