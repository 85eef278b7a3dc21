//! Every route of the service in one table: path, method, right, bounds of the body, way, handler.
//! The router, the rights, the fast path and the OpenAPI document are made of it. Decides nothing.

pub(crate) mod fast_path;
#[macro_use]
mod table;

pub use fast_path::Routes;

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use crate::auth::Act;
use crate::config::Settings;
use crate::features::{
    approvals, assignments, by_hand, exchange, lifecycle, numbers, operations, reference, register,
    reservations, series, statement, tokens,
};
use crate::metrics::Metrics;
use crate::refusals::Refusals;
use crate::startup::Service;
use crate::web::body::{BATCH_BODY_BYTES_MAX, BODY_BYTES_MAX, BodyBounds};
use crate::web::budget::{ANSWERS_BYTES_MAX, BODIES_BYTES_MAX, Budget, Budgets};
use crate::web::forwarded::Proxies;
use crate::web::hosts::Hosts;
use crate::web::middleware::{self, Admission, CallLog, Middleware, SLOW_AFTER};
use crate::web::route::{Operation, Route, RouteTable, Way};
use crate::web::{
    App, COUNTED_BY, Problem, ProblemBody, Slug, health, openapi, paging, problems, start,
};
use fast_path::{FastPath, Taking};

/// The head of the OpenAPI document.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "numerator",
        description = "Hands out document numbers: formatted, audited, and never the same one \
                       twice.",
        license(name = "Apache-2.0 OR MIT")
    ),
    components(schemas(ProblemBody))
)]
struct Document;

table! {
    /// What callers ask for. Those that take numbers, most of all calls, are first.
    API, add_api {
        "/api/v1/documents/{documentId}/generate-number":
            POST TakeNumbers single Fast(Number) => numbers::generate::generate_number;
        "/api/v1/document-numbering/batches":
            POST TakeNumbers batch Fast(Batch) => numbers::batches::create_batch;
        "/api/v1/serials/unified":
            POST TakeNumbers single Fast(UnifiedSerial) => exchange::generate_unified_serial;
        "/api/v1/serials/system":
            POST TakeNumbers single Fast(SystemSerial) => exchange::generate_system_serial;
        "/api/v1/serials/interface":
            POST TakeNumbers single Fast(InterfaceSerial) => exchange::generate_interface_serial;
        "/api/v1/document-numbering/reservations":
            POST TakeNumbers single Routed => reservations::routes::create_reservation;
            GET ReadNumbers none Routed => reservations::listing::list_reservations;
        "/api/v1/document-numbering/reservations/{reservationId}":
            GET ReadNumbers none Routed => reservations::routes::show_reservation;
        "/api/v1/document-numbering/reservations/{reservationId}/confirm":
            POST TakeNumbers single Routed => reservations::routes::confirm_reservation;
        "/api/v1/document-numbering/reservations/{reservationId}/cancel":
            POST TakeNumbers single Routed => reservations::routes::cancel_reservation;
        "/api/v1/document-numbering/reservations/{reservationId}/hand-back":
            POST TakeNumbers batch Routed => reservations::routes::hand_back_reservation;
        "/api/v1/document-numbering/preview":
            POST Preview single Routed => numbers::preview::preview_number;
        "/api/v1/documents/{documentId}/numbers":
            GET ReadNumbers none Routed => register::documents::list_document_numbers;
        "/api/v1/documents/{documentId}/revisions":
            POST TakeNumbers single Routed => register::revisions::create_revision;
        "/api/v1/document-numbering/numbers":
            GET ReadNumbers none Routed => register::routes::list_numbers;
        "/api/v1/document-numbering/numbers/{number}":
            GET ReadNumbers none Routed => register::lookups::look_up_number;
        "/api/v1/document-numbering/numbers/void":
            POST VoidNumbers single Routed => lifecycle::routes::void_number;
        "/api/v1/document-numbering/numbers/correct":
            POST VoidNumbers single Routed => lifecycle::routes::correct_number;
        "/api/v1/document-numbering/numbers/register":
            POST VoidNumbers single Routed => by_hand::routes::register_number;
        "/api/v1/document-numbering/numbers/assign":
            POST AssignNumbers single Routed => assignments::routes::assign_number;
        "/api/v1/document-numbering/counters":
            GET ReadRegisters none Routed => register::counters::list_counters;
        "/api/v1/document-numbering/statements":
            GET ReadRegisters none Routed => statement::routes::draw_up_statement;
        "/api/v1/document-numbering/events":
            GET ReadEvents none Routed => operations::event_routes::list_events;
        "/api/v1/document-numbering/configs":
            GET ReadSeries none Routed => series::routes::list_configs;
            POST ChangeSeries single Routed => series::changes::create_config;
        "/api/v1/document-numbering/configs/{configId}":
            GET ReadSeries none Routed => series::routes::show_config;
            PUT ChangeSeries single Routed => series::changes::update_config;
            DELETE ChangeSeries none Routed => series::changes::remove_config;
        "/api/v1/document-numbering/configs/{configId}/activate":
            POST ChangeSeries single Routed => series::changes::activate_config;
        "/api/v1/document-numbering/configs/{configId}/deactivate":
            POST ChangeSeries single Routed => series::changes::deactivate_config;
        "/api/v1/document-numbering/configs/{configId}/versions":
            GET ReadSeries none Routed => series::routes::list_versions;
        "/api/v1/document-numbering/configs/{configId}/versions/{version}":
            GET ReadSeries none Routed => series::routes::show_version;
        "/api/v1/document-numbering/configs/{configId}/versions/{version}/diff":
            GET ReadSeries none Routed => series::diff::diff_versions;
        "/api/v1/document-numbering/configs/{configId}/rollback":
            POST ChangeSeries single Routed => series::changes::roll_back_config;
        "/api/v1/document-numbering/configs/{configId}/reset-counter":
            POST AnswerForChanges single Routed => approvals::routes::reset_counter;
        "/api/v1/document-numbering/configs/{configId}/reset-chronology":
            POST AnswerForChanges single Routed => approvals::routes::reset_chronology;
        "/api/v1/document-numbering/change-requests":
            GET ReadEvents none Routed => approvals::routes::list_changes;
        "/api/v1/document-numbering/change-requests/{changeId}/approve":
            POST AnswerForChanges single Routed => approvals::routes::approve_change;
        "/api/v1/document-numbering/change-requests/{changeId}/reject":
            POST AnswerForChanges single Routed => approvals::routes::reject_change;
        "/api/v1/document-numbering/reference":
            GET ReadReference none Routed => reference::routes::list_tables;
        "/api/v1/document-numbering/reference/{table}":
            GET ReadReference none Routed => reference::routes::list_rows;
            POST ChangeReference batch Routed => reference::changes::change_rows;
        "/api/v1/document-numbering/reference/{table}/memberships":
            GET ReadReference none Routed => reference::routes::list_memberships;
        "/api/v1/document-numbering/tokens":
            GET ManageTokens none Routed => tokens::routes::list_tokens;
            POST ManageTokens single Routed => tokens::routes::create_token;
        "/api/v1/document-numbering/tokens/{name}/revoke":
            POST ManageTokens single Routed => tokens::routes::revoke_token;
        "/api/v1/document-numbering/tokens/{name}/rotate":
            POST ManageTokens single Routed => tokens::routes::rotate_token;
        "/api/v1/serials/unified/{serial}":
            GET ReadNumbers none Routed => exchange::show_chain;
        "/api/v1/serials/system/begin":
            POST TakeNumbers single Routed => exchange::begin_step;
        "/api/v1/serials/system/succeed":
            POST TakeNumbers single Routed => exchange::succeed_step;
        "/api/v1/serials/system/fail":
            POST TakeNumbers single Routed => exchange::fail_step;
        "/api/v1/serials/interface/check":
            POST TakeNumbers single Routed => exchange::check_interface_serial;
    }

    /// The pages that the `type` of a problem leads to; at both listeners.
    PROBLEMS, add_problems {
        "/problems":
            GET Open none Routed => problems::list_problems;
        "/problems/{code}":
            GET Open none Routed => problems::show_problem;
    }

    /// What machines watch; at `http.health_listen` alone, if that is set.
    WATCHED, add_watched {
        "/healthz":
            GET Open none Probe => health::show_health;
        "/readyz":
            GET Open none Probe => health::show_readiness;
        "/metrics":
            GET Open none Routed => health::show_metrics;
    }
}

/// Where the interface is described; needs no token and has no description itself.
const START: Route = open("/");
/// The description.
const DOCUMENT: Route = open("/openapi.json");

const fn open(path: &'static str) -> Route {
    const GET: Operation = Operation { method: Method::GET, act: None, way: Way::Routed };
    Route { path, operations: &[GET] }
}

/// Every route of the service, for the middleware and for the description.
pub(crate) const TABLE: RouteTable = RouteTable(&[API, PROBLEMS, WATCHED, &[START, DOCUMENT]]);

/// Every route, the OpenAPI document included.
pub fn routes(
    service: Arc<Service>,
    settings: &Settings,
    metrics: Metrics,
    prometheus: PrometheusHandle,
) -> Routes {
    // Without tokens the listener is on loopback: see `config`.
    let is_checked = !settings.asks_for_tokens || !settings.http.hosts.is_empty();
    let middleware = middleware_of(&service, settings, metrics, is_checked);
    let limits = BodyLimits::of(settings);
    let (routes, document) = described(settings, &limits).split_for_parts();
    // Shared by all answers: clients that read slowly hold it once.
    let document =
        Bytes::from(openapi::complete(&document, TABLE, settings.asks_for_tokens).to_string());
    let describe = move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, "application/json")], document) }
    };
    let (app, middleware) = (App::new(service, settings, prometheus), Arc::new(middleware));
    let BodyLimits { single, batch } = limits;
    let numbers = FastPath { middleware: Arc::clone(&middleware), app: app.clone(), single, batch };
    let routes = routes.with_state(app).route(DOCUMENT.path, get(describe));
    let routes = routes.route(START.path, get(start::show_start));
    let routes = match settings.health_listen {
        Some(address) => start::health_elsewhere(routes, WATCHED, address),
        None => routes,
    };
    Routes::new(behind(middleware, routes), numbers)
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

    /// A route that reads no body.
    #[expect(clippy::unused_self, reason = "the table of routes names bounds by methods")]
    fn none(&self, route: UtoipaMethodRouter<App>) -> UtoipaMethodRouter<App> {
        route
    }

    /// A route with the bounds of a single document.
    fn single(&self, route: UtoipaMethodRouter<App>) -> UtoipaMethodRouter<App> {
        route.layer(Extension(self.single))
    }

    /// A route with the bounds of a batch.
    fn batch(&self, route: UtoipaMethodRouter<App>) -> UtoipaMethodRouter<App> {
        route.layer(Extension(self.batch))
    }
}

/// The routes that have descriptions.
fn described(settings: &Settings, limits: &BodyLimits) -> OpenApiRouter<App> {
    let router = OpenApiRouter::with_openapi(Document::openapi());
    let router = add_problems(add_api(router, limits), limits);
    // Where they have a listener of their own, no other one shows them.
    if settings.health_listen.is_some() { router } else { add_watched(router, limits) }
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
    let middleware = middleware_of(&service, settings, metrics, is_checked);
    let limits = BodyLimits::of(settings);
    let routes = add_watched(add_problems(OpenApiRouter::new(), &limits), &limits);
    let routes = routes.split_for_parts().0;
    let app = App::new(service, settings, prometheus);
    behind(Arc::new(middleware), routes.with_state(app)).into()
}

fn middleware_of(
    service: &Service,
    settings: &Settings,
    metrics: Metrics,
    is_checked: bool,
) -> Middleware {
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
    let call_log = CallLog {
        slow_after: SLOW_AFTER,
        time_limit: settings.allocator.time_limit,
        refusals: Refusals::new(settings.log.refused_per_second_max, COUNTED_BY),
    };
    Middleware::new(TABLE, admission, metrics, service.clock.clone(), call_log)
}

/// Protects routes by the gate: unknown paths, wrong methods and panics become problems too.
pub(crate) fn behind(middleware: Arc<Middleware>, routes: Router) -> Router {
    routes
        .fallback(async |uri: Uri| {
            Problem::new(Slug::RouteNotFound, format!("nothing answers at {}", uri.path()))
        })
        .method_not_allowed_fallback(async || {
            Problem::new(Slug::MethodNotAllowed, "the header Allow lists the methods of this route")
        })
        .layer(CatchPanicLayer::custom(middleware::answer_panic))
        .layer(from_fn_with_state(middleware, middleware::watch))
}

#[cfg(test)]
mod tests;
