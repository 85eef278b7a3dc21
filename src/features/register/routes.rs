//! `GET /api/v1/document-numbering/numbers`: looks issued numbers up in the journal.

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use numerator_runtime::actor::{person_of, service_of};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::features::numbers::answer::{SourceAnswer, ValuesAnswer};
use crate::features::register::lookups::{ReadingAnswer, archived_in, look_up_and_read};
use crate::features::register::query::{self, NumberQuery};
use crate::features::register::revisions::RevisionRow;
use crate::ledger::{IssuePath, JournalFilter, JournalRow, Revision, SharedLedger, Sort};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::body::QueryOf;
use crate::web::instant::instant;
use crate::web::middleware::Caller;
use crate::web::problem::{Problem, Slug};

/// Journal rows, in the order that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberList<'a> {
    numbers: Vec<NumberRow<'a>>,
    /// The series that can read the number, where one is looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<ReadingAnswer>>,
    /// What to send as `after` for the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Archive files that have numbers of the document, where the journal has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    archived_in: Vec<String>,
}

impl NumberList<'_> {
    fn empty() -> Response {
        let (numbers, archived_in) = (Vec::new(), Vec::new());
        let empty = NumberList { numbers, candidates: None, next: None, archived_in };
        axum::Json(empty).into_response()
    }
}

/// As what a number stands in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FoundAs {
    /// It was issued: alone, or as the first of a range.
    Number,
    /// It was issued within a range, whose row this is.
    Range,
    /// It is a revision of the number whose row this is.
    Revision,
}

/// A journal row to show.
#[derive(Debug)]
pub(crate) struct FoundRow {
    pub(crate) row: JournalRow,
    /// Its revisions, where they were looked up.
    pub(crate) revisions: Option<Vec<Revision>>,
    /// As what the number that was looked for stands there.
    pub(crate) found_as: Option<FoundAs>,
}

impl FoundRow {
    /// A row of which nothing else was looked up.
    pub(crate) fn of(row: JournalRow) -> Self {
        FoundRow { row, revisions: None, found_as: None }
    }
}

/// One allocation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberRow<'a> {
    /// The number; the first one of a range.
    pub(crate) document_number: &'a str,
    /// When the request was accepted.
    #[schema(format = DateTime)]
    pub(crate) issued_at: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub(crate) about: NumberAbout<'a>,
}

/// One allocation with the names that the audit trail has for it (R5.1).
#[derive(Debug, Serialize)]
pub(crate) struct ExportedRow<'a> {
    pub(crate) generated_number: &'a str,
    pub(crate) timestamp: String,
    #[serde(flatten)]
    pub(crate) about: NumberAbout<'a>,
}

impl<'a> From<NumberRow<'a>> for ExportedRow<'a> {
    fn from(NumberRow { document_number, issued_at, about }: NumberRow<'a>) -> Self {
        ExportedRow { generated_number: document_number, timestamp: issued_at, about }
    }
}

/// What a row says beside the number and its time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberAbout<'a> {
    /// The allocation.
    #[schema(value_type = String)]
    pub(crate) allocation_id: Uuid,
    /// The document, where one was named.
    pub(crate) document_id: Option<&'a str>,
    /// Where it comes from.
    #[serde(flatten)]
    pub(crate) source: SourceAnswer<'a>,
    /// The values taken, one range per serial.
    pub(crate) serials: Vec<ValuesAnswer>,
    /// The template.
    pub(crate) template_used: &'a str,
    /// Civil date of the document.
    pub(crate) document_date: &'a str,
    /// Who asked: the person, or the identity that asked for itself.
    pub(crate) user_id: &'a str,
    /// The service through which the person asked.
    pub(crate) service: Option<&'a str>,
    /// From where.
    pub(crate) ip_address: Option<&'a str>,
    /// When the row was written.
    #[schema(format = DateTime)]
    pub(crate) journaled_at: String,
    /// How often the request was tried again.
    pub(crate) retry_count: u32,
    /// `redis` or `database`.
    #[schema(value_type = String)]
    pub(crate) path: IssuePath,
    /// The caller's key.
    pub(crate) idempotency_key: Option<&'a str>,
    /// Its revisions, oldest first; left out in look-ups by other fields than the number.
    #[serde(skip_serializing_if = "Option::is_none")]
    revisions: Option<Vec<RevisionRow<'a>>>,
    /// As what the number that was looked for stands here.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_as: Option<FoundAs>,
    /// True where the ledger refused the record and keeps it beside the journal: it was issued all
    /// the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    put_aside: bool,
}

impl<'a> NumberRow<'a> {
    /// The answer for rows.
    pub(crate) fn all_of(rows: &'a [FoundRow]) -> Vec<Self> {
        rows.iter().map(Self::of).collect()
    }

    /// The answer for one.
    pub(crate) fn of(FoundRow { row, revisions, found_as }: &'a FoundRow) -> Self {
        let (entry, record) = (&row.entry, &row.entry.record);
        let revisions = revisions.as_ref();
        let about = NumberAbout {
            allocation_id: record.allocation_id,
            document_id: record.document_id.as_deref(),
            source: SourceAnswer::of(record, &row.series),
            serials: entry.taken.iter().map(|taken| ValuesAnswer::of(taken.range)).collect(),
            template_used: &row.template,
            document_date: &record.document_date,
            user_id: person_of(&record.user_id),
            service: service_of(&record.user_id),
            ip_address: record.ip_address.as_deref(),
            journaled_at: instant(row.journaled_at_us),
            retry_count: entry.retry_count,
            path: entry.path,
            idempotency_key: record.idempotency_key.as_deref(),
            revisions: revisions.map(|revisions| revisions.iter().map(RevisionRow::of).collect()),
            found_as: *found_as,
            put_aside: row.is_put_aside,
        };
        let issued_at = instant(record.issued_at_us);
        NumberRow { document_number: &entry.number, issued_at, about }
    }
}

/// Looks issued numbers up, page by page.
#[utoipa::path(
    get,
    path = "",
    tag = "numbers",
    params(NumberQuery),
    responses(
        (status = 200, body = NumberList),
    )
)]
pub(crate) async fn list_numbers(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<NumberQuery>,
) -> Result<Response, Problem> {
    let number = query.number.clone();
    let catalog = app.service.allocator.catalog();
    let Some(query) = caller.narrowed(&catalog, query)? else {
        return number.map_or_else(|| Ok(NumberList::empty()), |number| Err(unknown(&number)));
    };
    let asked = query.check()?;
    asked.must_be_bounded()?;
    caller.holdings.must_have_room_for_an_answer()?;
    let filter = app.read(&caller, |ledger| async move { asked.read(&ledger).await }).await?;
    let wanted = filter.number.clone();
    let asked = filter.clone();
    let (rows, candidates, next) = match wanted.clone() {
        Some(number) => {
            let (rows, read) = look_up_and_read(&app, &caller, &number, filter).await?;
            (rows, Some(read.unwrap_or_default()), None)
        }
        None => {
            let (rows, next) = find_page(&app, &caller, filter).await?;
            (rows, None, next)
        }
    };
    let archived_in = if rows.is_empty() && asked.after.is_none() && caller.sees_everything() {
        let looking = app.read(&caller, |ledger| async move {
            archived_in(&ledger, Some(&catalog), &asked).await
        });
        looking.await?
    } else {
        Vec::new()
    };
    if let (Some(number), false) = (&wanted, archived_in.is_empty()) {
        let files = archived_in.join(", ");
        let detail =
            format!("{number:?} is in the archive, file {files}: `numerator find --archive`");
        return Err(Problem::new(Slug::NumberNotFound, detail));
    }
    if let (Some(number), true) = (wanted, rows.is_empty()) {
        return Err(unknown(&number));
    }
    let answering = move || {
        let numbers = NumberRow::all_of(&rows);
        axum::Json(NumberList { numbers, candidates, next, archived_in }).into_response()
    };
    compute(answering).await
}

fn unknown(number: &str) -> Problem {
    let detail = format!(
        "no journal row that matches begins with {number:?}, no revision has that text, and no \
         range is known to hold it; a number inside a range stands under the range's first number"
    );
    Problem::new(Slug::NumberNotFound, detail)
}

/// A page of matches, and the place of the next one.
async fn find_page(
    app: &App,
    caller: &Caller,
    filter: JournalFilter,
) -> Result<(Vec<FoundRow>, Option<String>), Problem> {
    let may_take_long =
        filter.looks_at_rows() || filter.number_prefix.is_some() || filter.sort == Sort::Number;
    let looking = |ledger: SharedLedger| async move {
        let found = ledger.find(&filter).await;
        let rows = found.map_err(|error| query::failed(error, &filter))?;
        // The next page may turn out to be empty: one more row might be one too many to find.
        let last = rows.last().filter(|_| rows.len() == filter.limit as usize);
        let next = last.and_then(|last| query::next_of(&filter, last));
        Ok::<_, Problem>((rows.into_iter().map(FoundRow::of).collect(), next))
    };
    // Scans of rows have their own permits: look-ups by index do not wait for them.
    match may_take_long {
        true => app.search(caller, looking).await,
        false => app.read(caller, looking).await,
    }
}
