//! `/healthz`, `/readyz`, `/metrics`: for monitoring; no token needed.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::problem::{NotReady, Problem, Slug};
use super::readiness::Ready;

/// The process answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Answers as long as the process runs.
#[utoipa::path(get, path = "", tag = "health", responses((status = 200, body = Health)))]
pub(crate) async fn show_health() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Answers 200 while a new document of some series would get its number, until the process is asked
/// to stop.
#[utoipa::path(
    get, path = "", tag = "health",
    responses(
        (status = 200, body = Ready),
        (status = 503, body = NotReady, content_type = "application/problem+json"),
    )
)]
pub(crate) async fn show_readiness(State(app): State<App>) -> Result<axum::Json<Ready>, Problem> {
    let readiness = app.service.readiness();
    let is_stopping = readiness.is_stopping();
    let ready = Ready::of(readiness);
    if ready.ready {
        return Ok(axum::Json(ready));
    }
    let why: Vec<&str> = ready.reasons.iter().map(|reason| &*reason.detail).collect();
    let why = why.join("; ");
    let problem = if is_stopping {
        let waiting = ready.journal_lag_records;
        Problem::new(Slug::Stopping, format!("{why}; {waiting} records wait for the journal"))
    } else {
        let states = ready.partitions.join(", ");
        Problem::new(Slug::NotReady, format!("{why}; partitions from 0 on: {states}"))
    };
    Err(problem.retry_soon().of_state(ready))
}

/// All metrics in Prometheus's text format, made at most once a second.
#[utoipa::path(
    get, path = "", tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn show_metrics(State(app): State<App>) -> Result<Response, Problem> {
    let text = app.metrics_page.text().await.map_err(|error| Problem::internal(&error))?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
