//! Every route of the service, on one page: the path and the right of each stand beside its handler
//! and in [`rights`](crate::web::rights). Decides nothing.

pub(crate) mod fast_path;

pub use fast_path::Routes;

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::config::Settings;
use crate::features::{
    approvals, exchange, numbers, operations, reference, register, series, statement, tokens,
};
use crate::metrics::Metrics;
use crate::refusals::Refusals;
use crate::startup::Service;
use crate::web::body::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX, BodyBounds};
use crate::web::budget::{ANSWERS_BYTES_MAX, BODIES_BYTES_MAX, Budget, Budgets};
use crate::web::forwarded::Proxies;
use crate::web::hosts::Hosts;
use crate::web::middleware::{self, Admission, Gate, SLOW_AFTER, Told};
use crate::web::{App, COUNTED_BY, Problem, Slug, health, openapi, paging, problems, start};
use fast_path::FastPath;

/// The head of the OpenAPI document.
#[derive(OpenApi)]
#[openapi(info(
    title = "numerator",
    description = "Hands out document numbers: formatted, audited, and never the same one twice.",
    license(name = "Apache-2.0 OR MIT")
))]
struct Document;

/// Every route, the OpenAPI document included.
pub fn routes(
    service: Arc<Service>,
    settings: &Settings,
    metrics: Metrics,
    prometheus: PrometheusHandle,
) -> Routes {
    // Without tokens the listener is on loopback: see `config`.
    let is_checked = !settings.asks_for_tokens || !settings.http.hosts.is_empty();
    let gate = gate_of(&service, settings, metrics, is_checked);
    let (routes, document) = api(settings).split_for_parts();
    // Shared by all answers: clients that read slowly hold it once.
    let document = Bytes::from(openapi::complete(&document, settings.asks_for_tokens).to_string());
    let describe = move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, "application/json")], document) }
    };
    let (app, gate) = (App::new(service, settings, prometheus), Arc::new(gate));
    let BodyLimits { single, batch } = BodyLimits::of(settings);
    let numbers = FastPath { gate: Arc::clone(&gate), app: app.clone(), single, batch };
    let routes = routes.with_state(app).route("/openapi.json", get(describe));
    let routes = routes.route("/", get(start::show_start));
    let routes = match settings.health_listen {
        Some(address) => start::health_elsewhere(routes, address),
        None => routes,
    };
    Routes::new(behind(gate, routes), numbers)
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
        let time_limit = settings.allocator.time_limit;
        BodyLimits {
            batch: BodyBounds { max_bytes: BATCH_BODY_BYTES_MAX, time_limit },
            single: BodyBounds { max_bytes: BODY_BYTES_MAX, time_limit },
        }
    }
}

/// The routes of `http.health_listen`: those for monitoring, which need no token.
pub fn health_routes(
    service: Arc<Service>,
    settings: &Settings,
    metrics: Metrics,
    prometheus: PrometheusHandle,
) -> Routes {
    // Beyond loopback, probes use the address.
    let is_checked = settings.health_listen.is_some_and(|address| address.ip().is_loopback());
    let gate = gate_of(&service, settings, metrics, is_checked);
    let routes = watching_routes().merge(problem_routes()).split_for_parts().0;
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
            bodies: Budget::new(BODIES_BYTES_MAX, BATCH_BODY_BYTES_MAX),
            answers: Budget::new(ANSWERS_BYTES_MAX, paging::PAGE_BYTES_MAX),
        },
    };
    let told = Told {
        slow_after: SLOW_AFTER,
        time_limit: settings.allocator.time_limit,
        refusals: Refusals::new(settings.log.refused_per_second_max, COUNTED_BY),
    };
    Gate::new(admission, metrics, service.clock.clone(), told)
}

/// The routes for machines that watch.
fn watching_routes() -> OpenApiRouter<App> {
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
        .routes(routes!(numbers::generate::generate_number).layer(Extension(single)))
        .routes(routes!(numbers::batches::create_batch).layer(Extension(batch)))
        .routes(routes!(numbers::preview::preview_number).layer(Extension(single)))
        .routes(routes!(register::documents::list_document_numbers))
        .routes(routes!(register::revisions::create_revision).layer(Extension(single)))
        .routes(routes!(series::routes::list_configs))
        .routes(routes!(series::changes::create_config).layer(Extension(single)))
        .routes(routes!(series::routes::show_config))
        .routes(routes!(series::changes::update_config).layer(Extension(single)))
        .routes(routes!(series::changes::remove_config))
        .routes(routes!(series::changes::activate_config).layer(Extension(single)))
        .routes(routes!(series::changes::deactivate_config).layer(Extension(single)))
        .routes(routes!(series::routes::list_versions))
        .routes(routes!(series::routes::show_version))
        .routes(routes!(series::diff::diff_versions))
        .routes(routes!(series::changes::roll_back_config).layer(Extension(single)))
        .routes(routes!(register::routes::list_numbers))
        .routes(routes!(register::counters::list_counters))
        .routes(routes!(statement::routes::draw_up_statement))
        .routes(routes!(operations::event_routes::list_events))
        .routes(routes!(reference::routes::list_tables))
        .routes(routes!(reference::routes::list_rows))
        .routes(routes!(reference::changes::change_rows).layer(Extension(batch)))
        .routes(routes!(reference::routes::list_memberships))
        .routes(routes!(tokens::routes::list_tokens))
        .routes(routes!(tokens::routes::create_token).layer(Extension(single)))
        .routes(routes!(tokens::routes::revoke_token).layer(Extension(single)))
        .routes(routes!(tokens::routes::rotate_token).layer(Extension(single)))
        .routes(routes!(approvals::routes::reset_counter).layer(Extension(single)))
        .routes(routes!(approvals::routes::reset_chronology).layer(Extension(single)))
        .routes(routes!(approvals::routes::list_changes))
        .routes(routes!(approvals::routes::approve_change).layer(Extension(single)))
        .routes(routes!(approvals::routes::reject_change).layer(Extension(single)))
        .routes(routes!(register::lookups::look_up_number))
        .routes(routes!(exchange::generate_unified_serial).layer(Extension(single)))
        .routes(routes!(exchange::generate_system_serial).layer(Extension(single)))
        .routes(routes!(exchange::generate_interface_serial).layer(Extension(single)))
        .routes(routes!(exchange::check_interface_serial).layer(Extension(single)))
        .routes(routes!(exchange::begin_step).layer(Extension(single)))
        .routes(routes!(exchange::succeed_step).layer(Extension(single)))
        .routes(routes!(exchange::fail_step).layer(Extension(single)))
        .routes(routes!(exchange::show_chain))
        .merge(problem_routes());
    // Where they have a listener of their own, nobody else is shown them.
    if settings.health_listen.is_some() { routes } else { routes.merge(watching_routes()) }
}

/// Puts routes behind the gate: unknown paths, wrong methods and panics become problems too.
pub(crate) fn behind(gate: Arc<Gate>, routes: Router) -> Router {
    routes
        .fallback(async |uri: Uri| {
            Problem::new(Slug::RouteNotFound, format!("nothing answers at {}", uri.path()))
        })
        .method_not_allowed_fallback(async || {
            Problem::new(Slug::MethodNotAllowed, "the header Allow lists the methods of this route")
        })
        .layer(CatchPanicLayer::custom(middleware::answer_panic))
        .layer(from_fn_with_state(gate, middleware::watch))
}

#[cfg(test)]
mod tests;
