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
use crate::features::lifecycle::standing::{NumberStanding, chain_of};
use crate::features::numbers::answer::ExpectedSerial;
use crate::features::register::gap_description::GapTexts;
use crate::features::register::gap_explanation::GapExplanation;
use crate::features::register::gap_rows::{FoundGap, GapRow};
use crate::features::register::reserved::{ReservedNumber, reservations_seen};
use crate::features::register::revisions::with_revisions;
use crate::features::register::rows::{FoundAs, FoundRow, NumberRow, seen_by};
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
    /// Where it was not issued, the gaps that have its value; for callers that see all numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<GapRow<'a>>,
    /// The reservations that have, or had, it, as far as the caller sees them: those that are live,
    /// then those that have ended, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reservations: Vec<ReservedNumber>,
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
    /// Where a number of the series with this text is void: `voided` or `replaced`; of the command
    /// `parse` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<NumberStanding>,
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
            status: None,
        }
    }

    /// The same with what became of the number, where it is void.
    pub(crate) fn with_status(self, rows: &[FoundRow]) -> Self {
        let standing = |found: &FoundRow| {
            let is_of_it = found.row.entry.record.series_id == self.config_id;
            let standing = found.life.standing(&found.row);
            (is_of_it && standing != NumberStanding::Issued).then_some(standing)
        };
        let status = rows.iter().find_map(standing);
        ReadingAnswer { status, ..self }
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
    let identity = Arc::clone(&caller.identity);
    let filter = JournalFilter { shown: identity.row_visibility(), ..filter };
    let looking = app.search(caller, |ledger| async move {
        let mut found = look_up(&ledger, &catalog, &number, &filter, sees.clone()).await?;
        found.rows = seen_by(&ledger, &identity, found.rows).await?;
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
    let (members, unsearched) = catalog.find_members(ledger, number, wanted).await?;
    // One text may occur once in each scope of uniqueness; a row that is found is not listed twice.
    let mut values = vec![None; rows.len()];
    for (range, value) in members {
        let scope = |row: &JournalRow| row.entry.record.scope.clone();
        if rows.iter().all(|(_, row)| scope(row) != scope(&range)) {
            rows.push((FoundAs::Range, range));
            values.push(Some(value));
        }
    }
    let (found, rows): (Vec<FoundAs>, Vec<JournalRow>) = rows.into_iter().unzip();
    let mut rows = with_revisions(ledger, rows).await?;
    for (row, (found_as, value)) in rows.iter_mut().zip(found.into_iter().zip(values)) {
        row.found_as = Some(found_as);
        if let Some(value) = value {
            let life = std::mem::take(&mut row.life);
            row.life = life.of_value(ledger, &row.row, value).await?;
        }
        row.chain = chain_of(ledger, &row.row, value).await?;
    }
    rows.retain(|found| found.found_as == Some(FoundAs::Number) || is_wanted(filter, found));
    Ok(LookedUp { rows, unsearched })
}

/// The gaps that have the value of a number, if the caller sees all numbers; of one series, where
/// it is named.
pub(crate) async fn gaps_of(
    app: &App,
    caller: &Caller,
    number: &str,
    series_id: Option<i64>,
) -> Result<Vec<FoundGap>, Problem> {
    if !caller.sees_everything() {
        return Ok(Vec::new());
    }
    let (catalog, number) = (app.service.allocator.catalog(), number.to_owned());
    let looking = app.search(caller, |ledger| async move {
        find_gaps(&ledger, &catalog, &number, series_id).await.map_err(Problem::from)
    });
    looking.await
}

/// The gaps that have the value of a number, as each version of a series, or of all, reads it.
pub(crate) async fn find_gaps(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    number: &str,
    series_id: Option<i64>,
) -> Result<Vec<FoundGap>, LedgerError> {
    let wanted =
        move |version: &SeriesVersion| series_id.is_none_or(|wanted| wanted == version.series_id);
    let gaps = catalog.find_gaps(ledger, number, wanted).await?;
    let mut causes = GapExplanation::of(ledger);
    let mut found = Vec::with_capacity(gaps.len());
    for (_, gap) in gaps {
        let texts = GapTexts::of(ledger, &gap).await?;
        found.push(FoundGap::of(catalog, &mut causes, texts, gap).await?);
    }
    Ok(found)
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
fn is_wanted(filter: &JournalFilter, found: &FoundRow) -> bool {
    let is_revised = found.found_as == Some(FoundAs::Revision);
    let standing = found.life.standing(&found.row);
    let has = |wanted: NumberStatus| match wanted {
        // A range has no revisions.
        NumberStatus::Issued => standing == NumberStanding::Issued && !is_revised,
        NumberStatus::Revised => is_revised,
        NumberStatus::Voided => standing == NumberStanding::Voided,
        NumberStatus::Replaced => standing == NumberStanding::Replaced,
    };
    filter.status.is_none_or(has) && filter.matches(&found.row)
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
    // First: one that is journaled meanwhile is found there.
    let reservations = reservations_seen(&app, &caller, &number, None).await?;
    let (rows, read) = look_up_and_read(&app, &caller, &number, filter).await?;
    let candidates = match read {
        Err(unread) if rows.is_empty() && reservations.is_empty() => {
            let detail = format!("{number:?}: the journal does not have it, and {unread}");
            return Err(Problem::new(Slug::NumberNotFound, detail));
        }
        candidates => candidates.unwrap_or_default(),
    };
    let (issued, numbers) = (!rows.is_empty(), NumberRow::all_of(&rows));
    let lost = if issued { Vec::new() } else { gaps_of(&app, &caller, &number, None).await? };
    let gaps = lost.iter().map(GapRow::of).collect();
    let document_number = number.as_str();
    let found = LookUp { document_number, issued, numbers, gaps, reservations, candidates };
    Ok(axum::Json(found).into_response())
}
