//! `/healthz`, `/readyz`, `/metrics`: for machines that watch; no token needed.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::problem::{Problem, ProblemBody, Slug};

/// The process answers.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Whether numbers can be issued.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// Always true here; otherwise the answer is a problem.
    ready: bool,
    /// Partitions in which numbers can be issued, by the path that serves them.
    serving: ServingAnswer,
    /// Records handed out and not journaled yet.
    journal_lag_records: usize,
    /// How long ago the oldest of them was handed out, in milliseconds.
    journal_lag_ms: u64,
    /// Partitions in which new documents need the ledger for a while, as Redis has lost records of
    /// earlier ones.
    asking_partitions: usize,
    /// For how long at most, in milliseconds.
    asking_ms: u64,
    /// State of each partition in words.
    partitions: Vec<String>,
}

/// Partitions that can issue, by path.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ServingAnswer {
    /// Redis takes the numbers.
    redis: usize,
    /// The database takes the numbers.
    database: usize,
}

/// Answers as long as the process runs.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(super) async fn show_health() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Answers 200 while a number of any series could be issued, until the process is told to stop.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
    responses(
        (status = 200, body = Ready),
        (status = 503, body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn show_readiness(State(app): State<App>) -> Result<axum::Json<Ready>, Problem> {
    let readiness = app.service.readiness();
    if readiness.ready {
        return Ok(axum::Json(Ready {
            ready: true,
            serving: ServingAnswer {
                redis: readiness.serving.redis,
                database: readiness.serving.database,
            },
            journal_lag_records: readiness.journal_lag_records,
            journal_lag_ms: readiness.journal_lag_ms,
            asking_partitions: readiness.asking_partitions,
            asking_ms: readiness.asking_ms,
            partitions: readiness.partitions,
        }));
    }
    if readiness.stopping {
        let waiting = readiness.journal_lag_records;
        let why = format!("this process is stopping; {waiting} records wait for the journal");
        return Err(Problem::new(Slug::Stopping, why).retry_soon());
    }
    if let Some(why) = readiness.clock.or(readiness.cut_off) {
        return Err(Problem::new(Slug::NotReady, why).retry_soon());
    }
    let states = readiness.partitions.join(", ");
    Err(Problem::new(Slug::NotReady, format!("partitions from 0 on: {states}")).retry_soon())
}

/// All metrics in Prometheus's text format, made at most once a second.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(super) async fn show_metrics(State(app): State<App>) -> Result<Response, Problem> {
    let text = app.metrics_page.text().await.map_err(|error| Problem::internal(&error))?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
