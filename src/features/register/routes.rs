//! `GET /api/v1/document-numbering/numbers`: looks issued numbers up in the journal.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::features::register::gap_rows::FoundGap;
use crate::features::register::listing::{ListedRow, Listing, RegisterRow};
use crate::features::register::lookups::{ReadingAnswer, archived_in, gaps_of, look_up_and_read};
use crate::features::register::query::{self, NumberQuery};
use crate::features::register::reserved::{ReservedNumber, reservations_seen, why_not};
use crate::ledger::{SearchPace, SharedLedger, Sort};
use crate::web::App;
use crate::web::admission::compute;
use crate::web::body::QueryOf;
use crate::web::middleware::Caller;
use crate::web::problem::{Problem, Slug};

/// Rows of the register, in the order that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberList<'a> {
    numbers: Vec<RegisterRow<'a>>,
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

/// Looks issued numbers up, page by page.
#[utoipa::path(
    get, path = "", tag = "numbers",
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
    let Some(query) = caller.restricted(&catalog, query)? else {
        return number.map_or_else(|| Ok(NumberList::empty()), |number| Err(unknown(&number)));
    };
    let asked = query.check()?;
    asked.must_be_bounded()?;
    caller.holdings.must_have_room_for_an_answer()?;
    let asked = if caller.sees_everything() { asked } else { asked.of_some_numbers()? };
    let known = Arc::clone(&catalog);
    let reading = app.read(&caller, |ledger| async move { asked.read(&ledger, &known).await });
    let listing = reading.await?;
    let (wanted, asked) = (listing.filter.number.clone(), listing.filter.clone());
    let series_id = asked.series_id;
    let (rows, candidates, next) = match wanted.clone() {
        Some(number) => {
            let (rows, read) = look_up_and_read(&app, &caller, &number, listing.filter).await?;
            let rows = rows.into_iter().map(ListedRow::Number).collect();
            (rows, Some(read.unwrap_or_default()), None)
        }
        None => {
            let (rows, next) = find_page(&app, &caller, listing).await?;
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
        let gaps = gaps_of(&app, &caller, &number, series_id).await?;
        let reserved = reservations_seen(&app, &caller, &number, series_id).await?;
        return Err(not_issued(&number, gaps.first(), reserved.first()));
    }
    let answering = move || {
        let numbers = RegisterRow::all_of(&rows);
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

/// A number that the journal does not have: a gap, or one that is reserved or was.
fn not_issued(number: &str, gap: Option<&FoundGap>, held: Option<&ReservedNumber>) -> Problem {
    match why_not(gap, held) {
        Some(why) => Problem::new(
            Slug::NumberNotFound,
            format!("{number:?} is in no row of the journal: {why}"),
        ),
        None => unknown(number),
    }
}

/// A page of matches, and the place of the next one.
async fn find_page(
    app: &App,
    caller: &Caller,
    listing: Listing,
) -> Result<(Vec<ListedRow>, Option<String>), Problem> {
    let filter = &listing.filter;
    let is_of_numbers = !listing.kinds.gaps && !listing.kinds.revisions;
    let may_take_long = filter.looks_at_rows()
        || filter.number_prefix.is_some()
        || filter.sort == Sort::Number
        || !is_of_numbers;
    let catalog = app.service.allocator.catalog();
    let identity = Arc::clone(&caller.identity);
    let looking = |ledger: SharedLedger| async move {
        let found = listing.page(&ledger, &catalog, SearchPace::Request).await;
        let page = found.map_err(|error| query::failed(error, &listing.filter))?;
        // The next page may turn out to be empty: one more row might be one too many to find.
        let next = page.last.map(|last| query::next_of(&listing, &last));
        let mut rows = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            rows.push(row.seen_by(&ledger, &identity).await?);
        }
        Ok::<_, Problem>((rows, next))
    };
    // Scans of rows have their own permits: look-ups by index do not wait for them.
    match may_take_long {
        true => app.search(caller, looking).await,
        false => app.read(caller, looking).await,
    }
}
