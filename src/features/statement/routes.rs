//! `GET /api/v1/document-numbering/statements`: the auditor's paper of a series and a period.

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::features::register::whole::whole_series;
use crate::features::statement::question::{StatementQuery, find_statement, uncounted};
use crate::features::statement::{Bounds, Statement};
use crate::language::Locale;
use crate::web::admission::compute;
use crate::web::body::QueryOf;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;
use crate::web::{App, language};

/// The limits of a request.
const BOUNDS: Bounds = Bounds { counters_max: 1_000, rows_max: 1_000_000, entries_max: 2_000 };

/// Forms of the paper.
const FORMATS: [&str; 4] = ["json", "text", "csv", "html"];

/// Draws up what became of every number of a series in a period, in the language of
/// `Accept-Language`.
#[utoipa::path(
    get, path = "", tag = "numbers",
    params(StatementQuery),
    responses(
        (status = 200, content(
            (Statement = "application/json"),
            (String = "text/plain"),
            (String = "text/csv"),
            (String = "text/html"),
        )),
    )
)]
pub(crate) async fn draw_up_statement(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<StatementQuery>,
) -> Result<Response, Problem> {
    let format = query.format.clone().unwrap_or_else(|| "json".into());
    if !FORMATS.contains(&&*format) {
        return Err(Problem::field("format", format!("must be one of {}", FORMATS.join(", "))));
    }
    let (clock, catalog) = (app.service.clock.clone(), app.service.allocator.catalog());
    caller.must_know(&catalog, query.series.as_deref())?;
    let (series, project) = (query.series.as_deref(), query.project.as_deref());
    if !caller.must_be_in_scope(series, project)? {
        return Err(uncounted(series.unwrap_or_default(), project.unwrap_or_default()));
    }
    caller.holdings.must_have_room_for_an_answer()?;
    let whole = whole_series(&app, &caller, &catalog, (series, project)).await?;
    let query = StatementQuery { whole, ..query };
    let spoken = caller.language;
    // Few at a time: each holds a connection as long as it reads.
    let report_builder = app.search(&caller, |ledger| async move {
        find_statement(&ledger, &clock, &catalog, query, (spoken, BOUNDS)).await
    });
    let statement = report_builder.await?;
    compute(move || written(&statement, &format, spoken)).await
}

/// The paper in the requested form.
fn written(statement: &Statement, format: &str, spoken: Locale) -> Response {
    let headers = language::headers(spoken);
    let of = |kind: &'static str, body: String| (headers.clone(), [(CONTENT_TYPE, kind)], body);
    match format {
        "text" => {
            let text = statement.text().join("\n") + "\n";
            of("text/plain; charset=utf-8", numbering::escaped(&text).into_owned()).into_response()
        }
        "csv" => of("text/csv; charset=utf-8", statement.csv()).into_response(),
        "html" => of("text/html; charset=utf-8", statement.page()).into_response(),
        _ => (headers, axum::Json(statement)).into_response(),
    }
}
