//! HTTP, as shared by every route: the server, what every call passes, bodies, problems, entity
//! tags, the bounds of a caller's work. Knows no feature and no route except those for monitoring.
//! Only `problem` knows the status codes of refusals.

pub(crate) mod admission;
pub(crate) mod app;
pub mod body;
pub(crate) mod budget;
pub(crate) mod codings;
pub(crate) mod etag;
pub(crate) mod forwarded;
pub(crate) mod header_lists;
pub(crate) mod health;
pub(crate) mod holdings;
pub(crate) mod hosts;
pub(crate) mod in_turns;
pub(crate) mod instant;
pub(crate) mod journal_wait;
pub(crate) mod language;
pub(crate) mod limited;
pub(crate) mod metrics_page;
pub mod middleware;
pub(crate) mod openapi;
pub(crate) mod outcome;
pub(crate) mod paging;
pub(crate) mod permits;
pub(crate) mod prefer;
pub(crate) mod principal;
pub mod problem;
pub(crate) mod problems;
pub(crate) mod query_time;
pub(crate) mod readiness;
pub(crate) mod reason;
pub(crate) mod request_id;
pub(crate) mod rights;
pub(crate) mod route;
pub mod server;
pub(crate) mod start;
pub mod tls;
pub(crate) mod visibility;

pub(crate) use app::App;
pub use problem::{Problem, ProblemBody, Slug};
pub use server::{ConnectionBounds, HEADER_READ_TIMEOUT, HEALTH_CONNECTIONS_MAX, Lane, serve};
pub use tls::{Tls, TlsError};

use futures_util::TryFutureExt as _;

use crate::task::spawn;
use crate::telemetry::log_lines::along;

/// The counter for refusals that have no log line of their own.
pub(crate) const COUNTED_BY: &str = "numerator_problems_total";

/// Runs ledger work to its end even if the client leaves: a statement that is dropped before its
/// end leaves its connection in a transaction.
pub(crate) async fn finish<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Into<Problem> + Send + 'static,
{
    // An error is logged as it becomes a problem: under the request, too.
    let work = along(work.map_err(Into::into));
    #[cfg(feature = "otlp")]
    let work = tracing::Instrument::in_current_span(work);
    match spawn(work).await {
        Ok(outcome) => outcome,
        Err(error) => Err(Problem::internal(&error)),
    }
}
