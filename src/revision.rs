//! Revisions: gives an issued number of a document another label (R2.10).
//!
//! Finds the number in the journal, has the numbering language render it with the version of its
//! series that issued it, and has the ledger write that. Ledger work alone, whoever owns the
//! partition: nothing is taken, no partition worker and no Redis is asked.

use std::sync::Arc;
use std::time::Duration;

use numbering::{Inputs, Original, RevisionError, Series, first_values};
use thiserror::Error;
use tokio::time::Instant;

use crate::access::Identity;
use crate::backoff::Backoff;
use crate::clock::SharedClock;
use crate::ledger::{
    JournalFilter, JournalRow, LedgerError, NewRevision, REVISIONS_MAX, Record, Revised, Revision,
    SharedLedger, ValueOf,
};

/// Longest wait for the journal to have a number that was issued a moment ago.
const JOURNAL_WAIT: Duration = Duration::from_secs(2);

/// Shortest and longest wait between two looks at it.
const LOOK_DELAYS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// Most numbers of a document among which one is looked for by its series.
const NUMBERS_MAX: u32 = 100;

/// How much of an unknown code is shown back, in characters: no code is longer.
const CODE_SHOWN_MAX: usize = 64;

/// Numbers named where a document has several.
const NAMED_MAX: usize = 5;

/// A request for a revision.
#[derive(Clone, Debug)]
pub struct RevisionRequest {
    /// The document.
    pub document_id: String,
    /// The new label.
    pub rev: String,
    /// Which of its numbers, where it has several: the number as it was issued.
    pub number: Option<String>,
    /// Which of its numbers: the one of the series with this code.
    pub series: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Who asks: of numbers that it does not see the document has none.
    pub identity: Arc<Identity>,
    /// Whose request it is, as the ledger keeps it.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
}

/// A number with the label that was asked for.
#[derive(Clone, Debug)]
pub struct RevisedDocument {
    /// The number as it was issued.
    pub original: JournalRow,
    /// Names of the serials, in the order of what was taken.
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

/// Why there is no revision. Nothing was taken, whatever it is.
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
    /// The series that should show it is none.
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
    /// The number stands for a range of values.
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
    /// The label or the series does not allow it.
    #[error(transparent)]
    Number(#[from] RevisionError),
    /// Another number or revision has the text.
    #[error("another number or revision has the text {number} already")]
    Collided {
        /// The text.
        number: String,
    },
    /// The number has too many revisions.
    #[error("{number} has {REVISIONS_MAX} revisions, as many as a number may have")]
    TooMany {
        /// The number as it was issued.
        number: String,
    },
    /// The ledger, or what it holds.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Gives a number of a document another label, once the journal has the number; the same again
/// where it has that label already.
///
/// # Errors
/// See [`ReviseError`].
pub async fn revise(
    ledger: &SharedLedger,
    clock: &SharedClock,
    request: RevisionRequest,
) -> Result<RevisedDocument, ReviseError> {
    let is_missing = |error: &ReviseError| matches!(error, ReviseError::NotNumbered { .. });
    once_journaled(is_missing, || revise_now(ledger, clock, request.clone())).await
}

/// Tries for a moment, for as long as a number is missing: its record may be on its way.
///
/// # Errors
/// Those of the last try.
pub async fn once_journaled<T, E, F: Future<Output = Result<T, E>>>(
    is_missing: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, E> {
    let deadline = Instant::now() + JOURNAL_WAIT;
    let mut wait = Backoff::new(LOOK_DELAYS.0, LOOK_DELAYS.1);
    loop {
        match attempt().await {
            Err(error) if is_missing(&error) && Instant::now() < deadline => wait.wait().await,
            tried => return tried,
        }
    }
}

/// The same, tried once.
///
/// # Errors
/// See [`ReviseError`].
pub async fn revise_now(
    ledger: &SharedLedger,
    clock: &SharedClock,
    request: RevisionRequest,
) -> Result<RevisedDocument, ReviseError> {
    let original = find(ledger, &request).await?;
    let record = &original.entry.record;
    if original.entry.taken.iter().any(|taken| taken.range.first != taken.range.last) {
        return Err(ReviseError::Range { number: original.entry.number.clone() });
    }
    let series = issuing_series(ledger, &original).await?;
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
    if revised.number == *number {
        let (rev, number, revised_at_us) = (revised.rev, number.clone(), record.issued_at_us);
        return Ok(RevisedDocument {
            original,
            serials,
            rev,
            number,
            revised_at_us,
            replayed: true,
        });
    }
    let nothing_taken = || LedgerError::Refused(format!("journal: {number} took nothing"));
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
    let (revision, replayed) = match ledger.revise(&new).await? {
        Revised::Written(revision) => (revision, false),
        Revised::Known(revision) => (revision, true),
        Revised::Collided => return Err(ReviseError::Collided { number: new.number }),
        Revised::TooMany => return Err(ReviseError::TooMany { number: number.clone() }),
    };
    let Revision { rev, number, revised_at_us, .. } = revision;
    Ok(RevisedDocument { original, serials, rev, number, revised_at_us, replayed })
}

/// Refuses a number within a range of the document, which no row of the journal begins with.
async fn must_be_no_member(
    ledger: &SharedLedger,
    request: &RevisionRequest,
) -> Result<(), ReviseError> {
    let Some(number) = &request.number else { return Ok(()) };
    for row in ledger.numbers_of(&request.document_id, None, NUMBERS_MAX).await? {
        let range = row.entry.taken.first().map(|taken| taken.range);
        let Some(range) = range.filter(|range| range.first != range.last) else { continue };
        let Ok(parsed) = issuing_series(ledger, &row).await?.parse(number) else { continue };
        let value = parsed.serials.first().map(|serial| serial.value);
        let is_in = |value: &u64| (range.first..=range.last).contains(value);
        let is_shown = |value: u64| row.entry.shows(value, number);
        let Record { user_id, project, .. } = &*row.entry.record;
        let is_seen = request.identity.sees_number(user_id, &row.series, project.as_deref());
        if is_seen && value.filter(is_in).is_some_and(is_shown) {
            let (number, first) = (number.clone(), row.entry.number.clone());
            return Err(ReviseError::Member { number, first });
        }
    }
    Ok(())
}

/// The number that the request means.
async fn find(ledger: &SharedLedger, request: &RevisionRequest) -> Result<JournalRow, ReviseError> {
    let series_id = match &request.series {
        None => None,
        Some(code) => {
            let active = ledger.series().await?;
            // One out of reach is as if there were none.
            let reach = &request.identity.reach;
            let found = active.iter().find(|version| {
                let served = &version.definition.serves.projects;
                version.definition.code == *code && reach.shows(code, served)
            });
            let no_series =
                || ReviseError::NoSeries { code: code.chars().take(CODE_SHOWN_MAX).collect() };
            Some(found.ok_or_else(no_series)?.series_id)
        }
    };
    let mut rows = look(ledger, request).await?;
    rows.retain(|row| {
        let Record { series_id: of, user_id, project, .. } = &*row.entry.record;
        series_id.is_none_or(|id| *of == id)
            && request.identity.sees_number(user_id, &row.series, project.as_deref())
    });
    if rows.len() > 1 {
        let named = rows.iter().take(NAMED_MAX).map(|row| row.entry.number.as_str());
        return Err(ReviseError::Several { numbers: named.collect::<Vec<_>>().join(", ") });
    }
    if let Some(row) = rows.pop() {
        return Ok(row);
    }
    must_be_no_member(ledger, request).await?;
    Err(ReviseError::NotNumbered { document_id: request.document_id.clone() })
}

/// The numbers of the document that could be meant.
async fn look(
    ledger: &SharedLedger,
    request: &RevisionRequest,
) -> Result<Vec<JournalRow>, LedgerError> {
    let shown = request.identity.row_sight();
    if request.number.is_none() {
        let document = &request.document_id;
        return ledger.numbers_shown_of(document, None, NUMBERS_MAX, &shown).await;
    }
    let filter = JournalFilter {
        number: request.number.clone(),
        document_id: Some(request.document_id.clone()),
        limit: NUMBERS_MAX,
        shown,
        ..JournalFilter::default()
    };
    ledger.find(&filter).await
}

/// The series in the version that issued a number.
async fn issuing_series(ledger: &SharedLedger, row: &JournalRow) -> Result<Series, LedgerError> {
    let record = &row.entry.record;
    let version = ledger.series_version(record.series_id, record.version).await?;
    let named = || format!("series {} version {}", record.series_id, record.version);
    let version = version.ok_or_else(|| LedgerError::Refused(format!("{} is gone", named())))?;
    let series = Series::restore(version.definition)
        .map_err(|error| LedgerError::Refused(format!("{}: {error}", named())))?;
    if !series.refers() {
        return Ok(series);
    }
    Ok(series.with_reference(Arc::new(ledger.reference_data().await?)))
}
