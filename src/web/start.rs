//! `GET /`: where to read on with only the address; and the address of health, if it has a listener
//! of its own.

use std::net::SocketAddr;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use super::problem::{Problem, Slug};
use super::route::Route;

/// The line.
const LINE: &str = "numerator hands out document numbers. /openapi.json describes its interface, \
                    /problems what can be refused; docs/api.md and docs/integrate.md of its source \
                    explain both.\n";

/// Shows where the interface is described.
pub(crate) async fn show_start() -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], LINE).into_response()
}

/// Answers for the routes that machines watch: they are answered at that address.
pub(crate) fn health_elsewhere(
    routes: Router,
    watched: &'static [Route],
    address: SocketAddr,
) -> Router {
    watched.iter().fold(routes, |routes, &Route { path, .. }| {
        let refused = move || async move {
            let detail = format!("{path} is answered at http.health_listen, {address}, alone");
            Problem::new(Slug::RouteNotFound, detail)
        };
        routes.route(path, any(refused))
    })
}
