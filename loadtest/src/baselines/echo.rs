//! A bare web server: reads the request, answers like the service, takes nothing.

use axum::routing::post;

use super::{Bytes, Path, ROUTE, Response, Router, answer, number};

pub(super) fn router() -> Router {
    Router::new().route(ROUTE, post(echo))
}

async fn echo(Path(document_id): Path<String>, _body: Bytes) -> Response {
    answer(&document_id, &number(1), 1)
}
