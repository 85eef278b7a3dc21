//! `/healthz`, `/readyz`, `/metrics`: for monitoring; no token needed.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use super::problem::{Problem, ProblemBody, Slug};
use crate::startup::Readiness;

/// The process answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Whether a new document would get its number, and what works.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// Whether a new document of some series would get its number now.
    ready: bool,
    /// Why not; nothing where it would.
    reasons: Vec<ReasonAnswer>,
    /// Partitions in which new documents get numbers, by the path that serves them.
    serving: ServingAnswer,
    /// What works besides.
    works: WorksAnswer,
    /// Whether the ledger answers.
    ledger: LedgerAnswer,
    /// Records handed out and not journaled yet.
    journal_lag_records: usize,
    /// How long ago the oldest of them was handed out, in milliseconds.
    journal_lag_ms: u64,
    /// Records for which the journal has space.
    journal_space: usize,
    /// Partitions in which new documents need the ledger for a while, as Redis does not have all
    /// records of earlier ones.
    asking_partitions: usize,
    /// For how long at most, in milliseconds.
    asking_ms: u64,
    /// Tables, keys and rights that the ledger lacks and records wait for; left out where there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ledger_lacks: Vec<String>,
    /// State of each partition in words.
    partitions: Vec<String>,
}

/// A reason against being ready.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReasonAnswer {
    /// In a word: the slug of the problem that callers meet, where there is one.
    reason: &'static str,
    /// In a sentence.
    detail: String,
}

/// Partitions that can issue, by path.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ServingAnswer {
    /// Redis takes the numbers.
    redis: usize,
    /// The database takes the numbers.
    database: usize,
}

/// What works whether new documents get numbers or not.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WorksAnswer {
    /// Partitions in which retries get the numbers that were taken for them.
    replays: usize,
    /// Partitions in which counters in use give numbers to what names no document and no key.
    warm_counters: usize,
    /// Whether a counter can be begun.
    new_counters: bool,
    /// Whether gapless series issue.
    gapless: bool,
}

/// The ledger as this process sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LedgerAnswer {
    /// Whether it answers.
    answers: bool,
    /// For how long it has not, in milliseconds.
    unanswered_ms: u64,
}

/// The problem of a process that is not ready, with all that one that is ready says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NotReady {
    #[serde(flatten)]
    pub(crate) problem: ProblemBody,
    #[serde(flatten)]
    pub(crate) state: Ready,
}

impl Ready {
    fn of(readiness: Readiness) -> Self {
        let is_ready = readiness.is_ready();
        let Readiness { reasons, serving, works, .. } = readiness;
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let reason = |reason: crate::startup::Reason| ReasonAnswer {
            reason: reason.word(),
            detail: reason.to_string(),
        };
        Ready {
            ready: is_ready,
            reasons: reasons.into_iter().map(reason).collect(),
            serving: ServingAnswer { redis: serving.redis, database: serving.database },
            works: WorksAnswer {
                replays: works.replays,
                warm_counters: works.warm_counters,
                new_counters: works.new_counters,
                gapless: works.gapless,
            },
            ledger: LedgerAnswer {
                answers: readiness.ledger_unanswered.is_none(),
                unanswered_ms: readiness.ledger_unanswered.map_or(0, ms),
            },
            ledger_lacks: readiness.ledger_lacks,
            journal_lag_records: readiness.journal_lag_records,
            journal_lag_ms: ms(readiness.journal_lag),
            journal_space: readiness.journal_space,
            asking_partitions: readiness.asking_partitions,
            asking_ms: ms(readiness.asking_for),
            partitions: readiness.partitions,
        }
    }
}

/// Answers as long as the process runs.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, body = Health)))]
pub(crate) async fn show_health() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// Answers 200 while a new document of some series would get its number, until the process is told
/// to stop.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "health",
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
    get,
    path = "/metrics",
    tag = "health",
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(crate) async fn show_metrics(State(app): State<App>) -> Result<Response, Problem> {
    let text = app.metrics_page.text().await.map_err(|error| Problem::internal(&error))?;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
