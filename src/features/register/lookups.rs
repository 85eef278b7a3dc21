//! `GET /api/v1/document-numbering/numbers/{number}`: the parts of a number, and whether it was
//! issued.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use numbering::{Parsed, ParsedSerial, Snowflake};
use serde::Serialize;
use unicode_normalization::UnicodeNormalization;
use utoipa::ToSchema;

use crate::engine::allocator::{Catalog, Reading, Unread};
use crate::features::numbers::answer::ExpectedSerial;
use crate::features::register::revisions::with_revisions;
use crate::features::register::rows::{FoundAs, FoundRow, NumberRow};
use crate::ledger::{
    JournalFilter, JournalRow, LedgerError, NumberStatus, SeriesVersion, SharedLedger,
};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::middleware::Caller;
use crate::web::problem::{Problem, Slug};

/// Most rows with one text: one per scope of uniqueness.
const ROWS_MAX: u32 = 20;

/// A number that is looked up.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LookUp<'a> {
    /// The number, in normal form.
    document_number: &'a str,
    /// Whether the journal has it: as a number, within a range, or as a revision.
    issued: bool,
    /// Its rows, one per scope of uniqueness.
    numbers: Vec<NumberRow<'a>>,
    /// The series that can read it as a number of theirs, active or not, in a version in force or
    /// an earlier one.
    candidates: Vec<ReadingAnswer>,
}

/// A number as one series reads it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReadingAnswer {
    /// The numbering configuration (series).
    pub config_id: i64,
    /// Its code.
    pub code: String,
    /// The version of it that reads the number so.
    pub version: u32,
    /// Document types that the number may be of.
    pub types: Vec<String>,
    /// Variables shown, by name; the project and the type under the names of their tokens.
    pub variables: BTreeMap<String, String>,
    /// The date as far as it is shown.
    pub date: Option<String>,
    /// The time of day as far as it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The year A.D. in which the fiscal year shown ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fiscal_year: Option<i16>,
    /// The id shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snowflake: Option<SnowflakeAnswer>,
    /// The serials shown.
    pub serials: Vec<ExpectedSerial>,
    /// Whether the series can read it in more than one way; nothing of it is shown then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ambiguous: bool,
}

/// An id that a number shows, taken apart.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SnowflakeAnswer {
    /// The id, 19 digits.
    pub id: String,
    /// When it was drawn, by the clock of the node that drew it.
    pub time: String,
    /// The number of that node.
    pub node_number: u16,
    /// Its serial within the millisecond.
    pub serial: u16,
}

impl SnowflakeAnswer {
    fn of(id: Snowflake) -> Self {
        SnowflakeAnswer {
            id: id.to_string(),
            time: id.time().to_string(),
            node_number: id.node_number(),
            serial: id.serial(),
        }
    }
}

impl ReadingAnswer {
    /// The answer for a reading.
    #[must_use]
    pub fn of(reading: Reading) -> Self {
        let Reading { served, types, parsed } = reading;
        let ambiguous = parsed.is_none();
        let Parsed { variables, date, time, fiscal_year, snowflake, serials } =
            parsed.unwrap_or_default();
        let serial = |serial: ParsedSerial| ExpectedSerial {
            name: serial.name,
            value: serial.value.to_string(),
        };
        ReadingAnswer {
            config_id: served.version.series_id,
            code: served.version.definition.code.clone(),
            version: served.version.version,
            types,
            variables,
            date,
            time,
            fiscal_year,
            snowflake: snowflake.map(SnowflakeAnswer::of),
            serials: serials.into_iter().map(serial).collect(),
            ambiguous,
        }
    }

    /// All readings of a number by series that the caller sees.
    ///
    /// # Errors
    /// No such series can read it; a problem if it could not be tried.
    async fn all_of(
        catalog: &Arc<Catalog>,
        number: &str,
        sees: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<Result<Vec<Self>, Unread>, Problem> {
        let (catalog, number) = (Arc::clone(catalog), number.to_owned());
        let read = move || {
            let readings = catalog.readings_seen(&number, sees)?;
            Ok(readings.into_iter().map(Self::of).collect())
        };
        compute(read).await
    }
}

/// Everything in the journal that a number may be, and the series that can read it, as far as the
/// caller sees both. Takes one of the places. All other fields of the filter must match too.
pub(crate) async fn look_up_and_read(
    app: &App,
    caller: &Caller,
    number: &str,
    filter: JournalFilter,
) -> Result<(Vec<FoundRow>, Result<Vec<ReadingAnswer>, Unread>), Problem> {
    let (catalog, number) = (app.service.allocator.catalog(), number.to_owned());
    let sees = caller.series_visibility();
    let filter = JournalFilter { shown: caller.identity.row_visibility(), ..filter };
    let looking = app.search(caller, |ledger| async move {
        let found = look_up(&ledger, &catalog, &number, &filter, sees.clone()).await?;
        catalog.know_earlier(&ledger).await?;
        Ok::<_, Problem>((found, ReadingAnswer::all_of(&catalog, &number, sees).await?))
    });
    let (found, read) = looking.await?;
    Ok((found.seen(|row| caller.sees(row))?, read))
}

/// The result of a look-up of one number.
pub(crate) struct LookedUp {
    rows: Vec<FoundRow>,
    /// The error to report if the number may be within a range that was not searched.
    unsearched: Option<LedgerError>,
}

impl LookedUp {
    /// The rows that the caller sees. Other rows are treated as absent before it is decided whether
    /// anything was found.
    ///
    /// # Errors
    /// `Unsearched` if no row is seen and not all were examined.
    pub(crate) fn seen(
        mut self,
        sees: impl Fn(&JournalRow) -> bool,
    ) -> Result<Vec<FoundRow>, LedgerError> {
        self.rows.retain(|found| sees(&found.row));
        match self.unsearched.filter(|_| self.rows.is_empty()) {
            Some(unsearched) => Err(unsearched),
            None => Ok(self.rows),
        }
    }
}

/// Everything in the journal that a number may be, and its role there; within ranges of the series
/// that the caller sees. All other fields of the filter must match too.
pub(crate) async fn look_up(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    number: &str,
    filter: &JournalFilter,
    sees: impl Fn(&SeriesVersion) -> bool + Send + 'static,
) -> Result<LookedUp, LedgerError> {
    let mut rows = Vec::new();
    for row in ledger.register().find(filter).await? {
        rows.push((FoundAs::Number, row));
    }
    for revision in ledger.register().revisions_shown_named(number, ROWS_MAX, &filter.shown).await?
    {
        let value = u64::try_from(revision.of.value).unwrap_or(u64::MAX);
        let row = ledger.register().row_of(revision.of.counter_id, value).await?;
        rows.extend(row.map(|row| (FoundAs::Revision, row)));
    }
    let of_series = filter.series_id;
    let wanted = move |version: &SeriesVersion| {
        of_series.is_none_or(|wanted| wanted == version.series_id) && sees(version)
    };
    let (ranges, unsearched) = catalog.find_ranges(ledger, number, wanted).await?;
    // One text may occur once in each scope of uniqueness; a row that is found is not listed twice.
    for range in ranges {
        let scope = |row: &JournalRow| row.entry.record.scope.clone();
        if rows.iter().all(|(_, row)| scope(row) != scope(&range)) {
            rows.push((FoundAs::Range, range));
        }
    }
    rows.retain(|(found_as, row)| {
        *found_as == FoundAs::Number || is_wanted(filter, *found_as, row)
    });
    let (found, rows): (Vec<FoundAs>, Vec<JournalRow>) = rows.into_iter().unzip();
    let mut rows = with_revisions(ledger, rows).await?;
    rows.iter_mut().zip(found).for_each(|(row, found_as)| row.found_as = Some(found_as));
    Ok(LookedUp { rows, unsearched })
}

/// The archive files with matches of a filter by number or document.
pub(crate) async fn archived_in(
    ledger: &SharedLedger,
    catalog: Option<&Arc<Catalog>>,
    filter: &JournalFilter,
) -> Result<Vec<String>, LedgerError> {
    let mut files = match (&filter.number, &filter.document_id) {
        (Some(number), _) => ledger.archive().of_number(number).await?,
        (None, Some(document)) => ledger.archive().of_document(document).await?,
        (None, None) => Vec::new(),
    };
    if let (Some(number), Some(catalog), true) = (&filter.number, catalog, files.is_empty()) {
        // Within a range, which is found by its first number only.
        files.extend(catalog.find_archived(ledger, number).await?);
    }
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// Whether a row that was found without the filter matches the rest of it.
fn is_wanted(filter: &JournalFilter, found_as: FoundAs, row: &JournalRow) -> bool {
    let status = match found_as {
        FoundAs::Revision => NumberStatus::Revised,
        // A range has no revisions.
        FoundAs::Number | FoundAs::Range => NumberStatus::Issued,
    };
    filter.status.is_none_or(|wanted| wanted == status) && filter.matches(row)
}

/// Reads a number back, and says whether it was issued.
#[utoipa::path(
    get, path = "", tag = "numbers",
    params(("number" = String, Path, description = "The number, percent-encoded")),
    responses(
        (status = 200, body = LookUp),
    )
)]
pub(crate) async fn look_up_number(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    number: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let Path(number) = number.map_err(|refusal| Problem::field("number", refusal.body_text()))?;
    if number.chars().any(char::is_control) {
        return Err(Problem::field("number", "must not hold control characters"));
    }
    let number: String = number.nfc().collect();
    let filter =
        JournalFilter { number: Some(number.clone()), limit: ROWS_MAX, ..JournalFilter::default() };
    let (rows, read) = look_up_and_read(&app, &caller, &number, filter).await?;
    let candidates = match read {
        Err(unread) if rows.is_empty() => {
            let detail = format!("{number:?}: the journal does not have it, and {unread}");
            return Err(Problem::new(Slug::NumberNotFound, detail));
        }
        candidates => candidates.unwrap_or_default(),
    };
    let (issued, numbers) = (!rows.is_empty(), NumberRow::all_of(&rows));
    let found = LookUp { document_number: &number, issued, numbers, candidates };
    Ok(axum::Json(found).into_response())
}
