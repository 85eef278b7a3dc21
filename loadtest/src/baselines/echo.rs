//! A bare web server: reads the request, answers like the service, takes nothing.

use axum::body::Bytes;

use super::{Path, Response, answer, number};

pub(super) async fn echo(Path(document_id): Path<String>, _body: Bytes) -> Response {
    answer(&document_id, &number("L0-0000000-", 1), 1)
}
