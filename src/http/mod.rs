//! HTTP: all routes on this page, one file per resource.
//!
//! Handlers check what the numbering language does not see, ask the allocator or the ledger, and
//! answer with the result; no SQL, no Redis and no numbering rule lives here. Status codes of
//! refusals are known to `problem` alone.

mod answer;
mod asker;
mod batches;
mod body;
mod budget;
mod changes;
mod codings;
mod collisions;
mod config_changes;
mod config_diff;
mod config_effect;
mod config_order;
mod config_saving;
mod configs;
mod counters;
mod document;
mod documents;
mod doors;
mod effort;
mod etag;
mod events;
mod forwarded;
mod gate;
mod generate;
mod header_lists;
mod health;
mod holdings;
mod hosts;
mod in_turns;
mod issuing;
mod language;
mod limited;
mod lookups;
mod metrics_page;
mod numbers;
mod order;
mod paging;
mod places;
mod prefer;
mod preview;
mod problem;
mod problems;
mod reference;
mod reference_changes;
mod register;
mod request_id;
mod revisions;
mod rights;
mod serials;
mod server;
mod sight;
mod start;
mod statements;
mod texts;
mod tls;
mod tokens;
#[cfg(feature = "otlp")]
mod traces;
mod whole;

pub use answer::{
    AllocationAnswer, CounterKeyAnswer, ExpectedSerial, NextSerial, NumberAnswer, PreviewAnswer,
    RangeAnswer, RecordAnswer, SerialAnswer, SourceAnswer, ValuesAnswer,
};
pub(crate) use changes::{must_be_within, serial_in};
pub(crate) use config_effect::{
    FieldChange, NextNumbers, changed_fields, counters_in_words, next_in_words,
};
pub(crate) use config_order::check_reason;
pub use configs::ConfigAnswer;
pub(crate) use counters::{CounterAnswer, CounterQuery, find_counters};
pub use doors::Doors;
pub use events::EventAnswer;
pub(crate) use events::check_period;
pub use lookups::ReadingAnswer;
pub(crate) use lookups::{archived_in, look_up};
pub(crate) use numbers::{ExportedRow, FoundRow, NumberRow, read_time};
pub(crate) use order::check_document_id;
pub use problem::{Problem, ProblemBody, Slug};
pub(crate) use register::{NumberQuery, next_of};
pub use revisions::RevisionAnswer;
pub(crate) use revisions::check_revision_texts;
pub use server::{ConnectionBounds, HEALTH_CONNECTIONS_MAX, serve};
pub(crate) use statements::{StatementQuery, find_statement};
pub use texts::Texts;
pub use tls::{Tls, TlsError};
pub use tokens::{NewTokenAnswer, TokenAnswer};
pub(crate) use tokens::{check_grace, new_token};
#[cfg(feature = "otlp")]
pub(crate) use traces::send_spans;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use axum::{Extension, Router, middleware};
use metrics_exporter_prometheus::PrometheusHandle;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::access::Shared;
use crate::config::Settings;
use crate::log_lines::along;
use crate::metrics::Metrics;
use crate::refusals::Refusals;
use crate::service::Service;
use body::BodyBounds;
use budget::{Budget, Budgets};
use doors::NumberDoor;
use effort::Effort;
use forwarded::Proxies;
use gate::{Admission, Gate, Told};
use hosts::Hosts;
use metrics_page::MetricsPage;

/// What has those refusals that have no log line of their own.
const COUNTED_BY: &str = "numerator_problems_total";

/// What handlers share.
#[derive(Clone)]
struct App {
    /// Allocator, ledger and clock.
    service: Arc<Service>,
    /// The text of `/metrics`.
    metrics_page: MetricsPage,
    /// Places for work that costs processor time, or connections of the ledger.
    effort: Arc<Effort>,
    /// How long a change that was asked for can be approved.
    approval_limit: Duration,
    /// To whom sources and tables are given.
    shared: Arc<Shared>,
}

impl App {
    fn new(service: Arc<Service>, settings: &Settings, prometheus: PrometheusHandle) -> Self {
        let shown = Arc::clone(&service);
        let metrics_page = MetricsPage::new(move || {
            shown.observe();
            shown.metrics.render(&prometheus)
        });
        let (approval_limit, shared) = (settings.approval_limit, Arc::new(settings.shared.clone()));
        let effort = Arc::new(Effort::new(&settings.database));
        App { service, metrics_page, effort, approval_limit, shared }
    }
}

/// The head of the OpenAPI document.
#[derive(OpenApi)]
#[openapi(info(
    title = "numerator",
    description = "Hands out document numbers: formatted, audited, and never the same one twice.",
    license(name = "Apache-2.0 OR MIT")
))]
struct Document;

/// Every route, the OpenAPI document included.
pub fn doors(
    service: Arc<Service>,
    settings: &Settings,
    metrics: Metrics,
    prometheus: PrometheusHandle,
) -> Doors {
    // Without tokens the listener is on loopback: see `config`.
    let is_checked = !settings.asks_for_tokens || !settings.http.hosts.is_empty();
    let gate = gate_of(&service, settings, metrics, is_checked);
    let (routes, document) = api(settings).split_for_parts();
    // Shared by all answers: clients that read slowly hold it once.
    let document = Bytes::from(document::complete(&document, settings.asks_for_tokens).to_string());
    let describe = move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, "application/json")], document) }
    };
    let (app, gate) = (App::new(service, settings, prometheus), Arc::new(gate));
    let BodyLimits { single, batch } = BodyLimits::of(settings);
    let numbers = NumberDoor { gate: Arc::clone(&gate), app: app.clone(), single, batch };
    let routes = routes.with_state(app).route("/openapi.json", get(describe));
    let routes = routes.route("/", get(start::show_start));
    let routes = match settings.health_listen {
        Some(address) => start::health_elsewhere(routes, address),
        None => routes,
    };
    Doors::new(behind(gate, routes), numbers)
}

/// Bounds of the bodies that routes read.
struct BodyLimits {
    /// Of a batch, or a table of reference data.
    batch: BodyBounds,
    /// Of all others.
    single: BodyBounds,
}

impl BodyLimits {
    fn of(settings: &Settings) -> Self {
        let (http, time_limit) = (&settings.http, settings.allocator.time_limit);
        BodyLimits {
            batch: BodyBounds { max_bytes: http.batch_body_max_bytes, time_limit },
            single: BodyBounds { max_bytes: http.body_max_bytes, time_limit },
        }
    }
}

/// The routes of `http.health_listen`: those for machines that watch, which need no token.
pub fn health_doors(
    service: Arc<Service>,
    settings: &Settings,
    metrics: Metrics,
    prometheus: PrometheusHandle,
) -> Doors {
    // Beyond loopback, probes ask by address.
    let is_checked = settings.health_listen.is_some_and(|address| address.ip().is_loopback());
    let gate = gate_of(&service, settings, metrics, is_checked);
    let routes = health_routes().merge(problem_routes()).split_for_parts().0;
    let app = App::new(service, settings, prometheus);
    behind(Arc::new(gate), routes.with_state(app)).into()
}

fn gate_of(service: &Service, settings: &Settings, metrics: Metrics, is_checked: bool) -> Gate {
    let hosts = if is_checked { Hosts::Named(settings.http.hosts.clone()) } else { Hosts::Any };
    let http = &settings.http;
    let admission = Admission {
        tokens: service.tokens.clone(),
        jwts: service.jwts.clone(),
        hosts,
        proxies: Proxies::new(http.trusted_proxies.clone(), http.forwarded_header),
        limits: Arc::clone(&service.limits),
        budgets: Budgets {
            bodies: Budget::new(http.bodies_max_bytes, http.batch_body_max_bytes),
            answers: Budget::new(http.answers_max_bytes, paging::PAGE_BYTES_MAX),
        },
    };
    let told = Told {
        slow_after: settings.http.slow_after,
        time_limit: settings.allocator.time_limit,
        refusals: Refusals::new(settings.log.refused_per_second_max, COUNTED_BY),
    };
    Gate::new(admission, metrics, service.clock.clone(), told)
}

/// The routes for machines that watch.
fn health_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(health::show_health))
        .routes(routes!(health::show_readiness))
        .routes(routes!(health::show_metrics))
}

/// The pages that the `type` of a problem leads to.
fn problem_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(problems::list_problems))
        .routes(routes!(problems::show_problem))
}

/// The routes with their descriptions.
fn api(settings: &Settings) -> OpenApiRouter<App> {
    let BodyLimits { single, batch } = BodyLimits::of(settings);
    let routes = OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(generate::generate_number).layer(Extension(single)))
        .routes(routes!(batches::create_batch).layer(Extension(batch)))
        .routes(routes!(preview::preview_number).layer(Extension(single)))
        .routes(routes!(documents::list_document_numbers))
        .routes(routes!(revisions::create_revision).layer(Extension(single)))
        .routes(routes!(configs::list_configs))
        .routes(routes!(config_changes::create_config).layer(Extension(single)))
        .routes(routes!(configs::show_config))
        .routes(routes!(config_changes::update_config).layer(Extension(single)))
        .routes(routes!(config_changes::remove_config))
        .routes(routes!(config_changes::activate_config).layer(Extension(single)))
        .routes(routes!(config_changes::deactivate_config).layer(Extension(single)))
        .routes(routes!(configs::list_versions))
        .routes(routes!(configs::show_version))
        .routes(routes!(config_diff::diff_versions))
        .routes(routes!(config_changes::roll_back_config).layer(Extension(single)))
        .routes(routes!(numbers::list_numbers))
        .routes(routes!(counters::list_counters))
        .routes(routes!(statements::draw_up_statement))
        .routes(routes!(events::list_events))
        .routes(routes!(reference::list_tables))
        .routes(routes!(reference::list_rows))
        .routes(routes!(reference_changes::change_rows).layer(Extension(batch)))
        .routes(routes!(reference::list_memberships))
        .routes(routes!(tokens::list_tokens))
        .routes(routes!(tokens::create_token).layer(Extension(single)))
        .routes(routes!(tokens::revoke_token).layer(Extension(single)))
        .routes(routes!(tokens::rotate_token).layer(Extension(single)))
        .routes(routes!(changes::reset_counter).layer(Extension(single)))
        .routes(routes!(changes::reset_chronology).layer(Extension(single)))
        .routes(routes!(changes::list_changes))
        .routes(routes!(changes::approve_change).layer(Extension(single)))
        .routes(routes!(changes::reject_change).layer(Extension(single)))
        .routes(routes!(lookups::look_up_number))
        .routes(routes!(serials::generate_unified_serial).layer(Extension(single)))
        .routes(routes!(serials::generate_system_serial).layer(Extension(single)))
        .routes(routes!(serials::generate_interface_serial).layer(Extension(single)))
        .routes(routes!(serials::check_interface_serial).layer(Extension(single)))
        .routes(routes!(serials::begin_step).layer(Extension(single)))
        .routes(routes!(serials::succeed_step).layer(Extension(single)))
        .routes(routes!(serials::fail_step).layer(Extension(single)))
        .routes(routes!(serials::show_chain))
        .merge(problem_routes());
    // Where they have a listener of their own, nobody else is shown them.
    if settings.health_listen.is_some() { routes } else { routes.merge(health_routes()) }
}

/// Puts routes behind the gate: unknown paths, wrong methods and panics become problems too.
fn behind(gate: Arc<Gate>, routes: Router) -> Router {
    routes
        .fallback(async |uri: Uri| {
            Problem::new(Slug::RouteNotFound, format!("nothing answers at {}", uri.path()))
        })
        .method_not_allowed_fallback(async || {
            Problem::new(Slug::MethodNotAllowed, "the header Allow lists the methods of this route")
        })
        .layer(CatchPanicLayer::custom(gate::answer_panic))
        .layer(middleware::from_fn_with_state(gate, gate::watch))
}

/// Runs ledger work to its end even if the client leaves: a statement that is dropped half way
/// leaves its connection in a transaction.
async fn finish<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Into<Problem> + Send + 'static,
{
    let work = along(work);
    #[cfg(feature = "otlp")]
    let work = tracing::Instrument::in_current_span(work);
    match tokio::spawn(work).await {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(error) => Err(Problem::internal(&error)),
    }
}

#[cfg(test)]
mod tests;
