//! A call as a span for tracing systems: whose trace it belongs to, and what became of it.
//!
//! Knows no exporter. Log lines show of a span what they show without this: its request id.

use axum::http::HeaderMap;
use opentelemetry::global::get_text_map_propagator;
use opentelemetry_http::HeaderExtractor;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// What became of a call.
pub(super) struct Answered<'a> {
    pub(super) method: &'a str,
    /// Pattern of the route.
    pub(super) route: &'static str,
    pub(super) status: u16,
    /// The path that took its numbers, where it took any.
    pub(super) served_by: &'static str,
}

/// The span of a call, in the trace that its caller names (`traceparent`).
pub(super) fn span(request_id: &str, headers: &HeaderMap) -> Span {
    let span = tracing::error_span!(
        "request",
        %request_id,
        otel.kind = "server",
        otel.name = Empty,
        otel.status_code = Empty
    );
    let caller = get_text_map_propagator(|names| names.extract(&HeaderExtractor(headers)));
    // It fails only where no spans are sent.
    let _ = span.set_parent(caller);
    span
}

/// Tells the current span what became of its call. After its last line, which has it already.
pub(super) fn describe(answered: &Answered<'_>) {
    let Answered { method, route, status, served_by } = answered;
    let span = Span::current();
    span.record("otel.name", format!("{method} {route}"));
    span.set_attribute("http.request.method", (*method).to_owned());
    span.set_attribute("http.route", *route);
    span.set_attribute("http.response.status_code", i64::from(*status));
    span.set_attribute("numerator.path", *served_by);
    if *status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}
