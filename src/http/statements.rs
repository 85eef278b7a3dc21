//! `GET /api/v1/document-numbering/statements`: the auditor's paper of a series and a period.

use axum::Extension;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use jiff::civil::{Date, DateTime};
use serde::Deserialize;
use unicode_normalization::UnicodeNormalization;

use super::body::QueryOf;
use super::counters::{PARTS_OF_YEARS, YEAR_MAX, YEARS, known, of_project, part};
use super::gate::Caller;
use super::numbers::must_be_storable;
use super::problem::{Problem, ProblemBody};
use super::register::unknown_series;
use super::whole::{Whole, whole_series};
use super::{App, language};
use crate::allocator::Catalog;
use crate::clock::SharedClock;
use crate::language::Language;
use crate::ledger::{CounterFilter, KeyCondition, KeyPart, LedgerError, SharedLedger};
use crate::statement::{Asked, Bounds, PERIODS, Statement, Undrawn, draw_up};

/// How much a request may ask for.
const BOUNDS: Bounds = Bounds { counters_max: 1_000, rows_max: 1_000_000, entries_max: 2_000 };

/// Forms of the paper.
const FORMATS: [&str; 4] = ["json", "text", "csv", "html"];

/// Of what the paper is, and its form.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatementQuery {
    /// Code of the series, active or not.
    pub(crate) series: Option<String>,
    /// A period A.D.: `2026`, `2026-Q1`, `2026-01`, `2026-W05`, `2026-01-22`, or a time of such a
    /// day. Counters of periods within it are on the paper; those that never begin anew are on
    /// each, over all time.
    pub(crate) period: Option<String>,
    /// Only what is counted for this project.
    pub(crate) project: Option<String>,
    /// `json` (without it), `text`, `csv` or `html`.
    pub(crate) format: Option<String>,
    /// Of which series a counter that counts no project apart is shown to who asks for a project.
    #[serde(skip)]
    pub(crate) whole: Whole,
}

/// Draws up what became of every number of a series in a period, in the language of
/// `Accept-Language`.
#[utoipa::path(
    get,
    path = "/api/v1/document-numbering/statements",
    tag = "numbers",
    params(StatementQuery),
    responses(
        (status = 200, content(
            (Statement = "application/json"),
            (String = "text/plain"),
            (String = "text/csv"),
            (String = "text/html"),
        )),
        (status = "default", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn draw_up_statement(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    QueryOf(query): QueryOf<StatementQuery>,
) -> Result<Response, Problem> {
    let format = query.format.clone().unwrap_or_else(|| "json".into());
    if !FORMATS.contains(&&*format) {
        return Err(Problem::field("format", format!("must be one of {}", FORMATS.join(", "))));
    }
    let (service, catalog) = (app.service.clone(), app.service.allocator.catalog());
    caller.must_know(&catalog, query.series.as_deref())?;
    let (series, project) = (query.series.as_deref(), query.project.as_deref());
    if !caller.must_reach(series, project)? {
        return Err(uncounted(series.unwrap_or_default(), project.unwrap_or_default()));
    }
    let whole = whole_series(&app, &caller, &catalog, (series, project)).await?;
    let query = StatementQuery { whole, ..query };
    let spoken = caller.language;
    // Few at a time: each holds a connection as long as it reads.
    let work = async move {
        let (ledger, clock) = (&service.ledger, &service.clock);
        find_statement(ledger, clock, &catalog, query, (spoken, BOUNDS)).await
    };
    let statement = app.effort.read(work).await?;
    let headers = language::headers(spoken);
    let of = |kind: &'static str, body: String| (headers.clone(), [(CONTENT_TYPE, kind)], body);
    Ok(match &*format {
        "text" => {
            let text = statement.text().join("\n") + "\n";
            of("text/plain; charset=utf-8", numbering::escaped(&text).into_owned()).into_response()
        }
        "csv" => of("text/csv; charset=utf-8", statement.csv()).into_response(),
        "html" => of("text/html; charset=utf-8", statement.page()).into_response(),
        _ => (headers, axum::Json(statement)).into_response(),
    })
}

/// The paper.
///
/// # Errors
/// A question that is wrong, by its field; a ledger that does not answer.
pub(crate) async fn find_statement(
    ledger: &SharedLedger,
    clock: &SharedClock,
    catalog: &Catalog,
    query: StatementQuery,
    (language, bounds): (Language, Bounds),
) -> Result<Statement, Problem> {
    let StatementQuery { series, period, project, format: _, whole } = query;
    let normal = |text: Option<String>| text.map(|text| text.nfc().collect::<String>());
    let (series, project) = (normal(series), normal(project));
    must_be_storable(&[("series", &series), ("project", &project)])?;
    let series = series.ok_or_else(|| {
        Problem::field("series", "is missing: the code of the series, as `series list` shows it")
    })?;
    let version = known(catalog).map(|(version, _)| version);
    let version = version.into_iter().find(|version| version.definition.code == series);
    let series_id = version.map(|version| version.series_id);
    let series_id = series_id.ok_or_else(|| unknown_series(&series))?;
    let period = period.ok_or_else(not_a_period)?;
    let of_period = of_period(&period, series_id)?;
    let mut filter = CounterFilter { series_id: Some(series_id), ..CounterFilter::default() };
    if let Some(project) = &project {
        filter.keys.push(of_project(catalog, project, &whole));
        let one = CounterFilter { limit: 1, ..filter.clone() };
        if ledger.list_counters(&one).await?.is_none_or(|found| found.is_empty()) {
            return Err(uncounted(&series, project));
        }
    }
    filter.keys.push(of_period);
    let asked = Asked { language, series, period, project, filter };
    draw_up(ledger, clock, asked, bounds).await.map_err(|undrawn| match undrawn {
        Undrawn::TooManyCounters(_) | Undrawn::TooManyRows(_) => {
            Problem::field("period", undrawn.to_string())
        }
        Undrawn::Ledger(error) => of_ledger(error),
    })
}

/// The one refusal of a project for which nothing is counted, as far as who asks is shown.
fn uncounted(series: &str, project: &str) -> Problem {
    let reason = format!(
        "no counter of series {series} counts for the project {project:?}; `counters --series` \
         shows what is counted, or leave it out. A counter that several projects share is shown to \
         who reaches all of them"
    );
    Problem::field("project", reason)
}

/// A search that the database ended is too much of a period.
fn of_ledger(error: LedgerError) -> Problem {
    match error {
        LedgerError::LockTimeout { .. } => {
            Problem::field("period", "takes longer than a search may: ask for a part of it")
        }
        error => error.into(),
    }
}

fn not_a_period() -> Problem {
    Problem::field(
        "period",
        "must be a period A.D. such as 2026 (for 2569 B.E.), 2026-Q1, 2026-01, 2026-W05 or \
         2026-01-22",
    )
}

/// Counters of the period and of those within it, and counters of the series without a period.
fn of_period(text: &str, series_id: i64) -> Result<KeyCondition, Problem> {
    let inner = separator_within(text).ok_or_else(not_a_period)?;
    let of_year = if text.len() == YEAR_DIGITS { &YEARS[..] } else { &[] };
    let names = of_year.iter().chain(&PARTS_OF_YEARS);
    let mut parts: Vec<KeyPart> = names.map(|name| part(name, text)).collect();
    if let Some(separator) = inner {
        let beginning = format!("{text}{separator}");
        let within = PARTS_OF_YEARS
            .iter()
            .map(|name| KeyPart { is_beginning: true, ..part(name, &beginning) });
        parts.extend(within);
    }
    Ok(KeyCondition { parts, absent: PERIODS.to_vec(), series_without: vec![series_id] })
}

/// Digits of a year.
const YEAR_DIGITS: usize = 4;

/// What stands between the name of a period and what names one within it, if there are such; none
/// where the text names no period.
fn separator_within(text: &str) -> Option<Option<char>> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let year = text.get(..YEAR_DIGITS).filter(|year| is_number(year))?;
    year.parse().ok().filter(|year: &u16| (1..=YEAR_MAX).contains(year))?;
    let Some(rest) = text[YEAR_DIGITS..].strip_prefix('-') else {
        return (text.len() == YEAR_DIGITS).then_some(Some('-'));
    };
    let within = |digits: &str, most: u8| {
        let number = Some(digits).filter(|it| is_number(it))?.parse::<u8>().ok()?;
        (1..=most).contains(&number).then_some(())
    };
    match (rest.len(), rest.as_bytes()) {
        (2, [b'Q', _]) => within(&rest[1..], 4).map(|()| None),
        (3, [b'W', ..]) => within(&rest[1..], 53).map(|()| None),
        (2, _) => within(rest, 12).map(|()| Some('-')),
        (5, _) => {
            let date = text.parse::<Date>().ok()?;
            (date.to_string() == text).then_some(Some('T'))
        }
        // A time of a day, written out to its seconds.
        (8 | 11 | 14, _) => {
            let whole = format!("{text}{}", &":00:00"[..14 - rest.len()]);
            let at = whole.parse::<DateTime>().ok()?;
            let is_time = at.strftime("%Y-%m-%dT%H:%M:%S").to_string() == whole;
            is_time.then_some((rest.len() < 14).then_some(':'))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_one_that_counters_may_have() {
        for (text, inner) in [
            ("2026", Some('-')),
            ("2026-Q1", None),
            ("2026-01", Some('-')),
            ("2026-W53", None),
            ("2026-01-22", Some('T')),
            ("2026-01-22T09", Some(':')),
            ("2026-01-22T09:05", Some(':')),
            ("2026-01-22T09:05:07", None),
        ] {
            assert_eq!(separator_within(text), Some(inner), "{text}");
        }
        for text in [
            "",
            "26",
            "2569",
            "0000",
            "+026",
            "2026-",
            "2026-Q5",
            "2026-13",
            "2026-W54",
            "2026-W1",
            "2026-02-30",
            "2026-01-22T",
            "2026-01-22T25",
            "2026-01-22 09",
            "20260122",
            "ปี 1",
            "2026-1",
            "2026-+1",
            "2026-0１",
        ] {
            assert_eq!(separator_within(text), None, "{text}");
        }
    }

    #[test]
    fn a_year_has_all_periods_that_begin_with_it() {
        let KeyCondition { parts, absent, series_without } = of_period("2026", 7).expect("one");
        let told = |name: &str| {
            let of_name = parts.iter().filter(|part| part.name == name);
            of_name.map(|part| (&*part.value, part.is_beginning)).collect::<Vec<_>>()
        };
        assert_eq!(told("fiscal-year"), [("2026", false)]);
        assert_eq!(told("week"), [("2026", false), ("2026-", true)]);
        assert_eq!((absent.len(), series_without), (PERIODS.len(), vec![7]));
        let day = of_period("2026-01-22", 7).expect("one");
        assert!(day.parts.iter().all(|part| !YEARS.contains(&&*part.name)));
    }
}
