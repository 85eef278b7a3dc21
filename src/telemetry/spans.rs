//! A call as a span for tracing systems: whose trace it belongs to, and its outcome.
//!
//! Knows no exporter, but whether there is one: without it a call is no span, as in a program built
//! without this, and pays for nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderMap;
use opentelemetry::global::get_text_map_propagator;
use opentelemetry_http::HeaderExtractor;
use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The outcome of a call.
pub(crate) struct Answered<'a> {
    pub(crate) method: &'a str,
    /// Pattern of the route.
    pub(crate) route: &'a str,
    pub(crate) status: u16,
    /// The path that took its numbers, where it took any.
    pub(crate) served_by: &'static str,
}

/// Whether spans are sent.
static ARE_SENT: AtomicBool = AtomicBool::new(false);

/// From now on the spans of calls are sent.
pub(crate) fn send_spans() {
    ARE_SENT.store(true, Ordering::Relaxed);
}

/// The span of a call, in the trace that its caller names (`traceparent`).
pub(crate) fn span(request_id: &str, headers: &HeaderMap) -> Span {
    if !ARE_SENT.load(Ordering::Relaxed) {
        return Span::none();
    }
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

/// Records the outcome of its call in the current span. After its last line, which has it already.
pub(crate) fn describe(answered: &Answered<'_>) {
    if !ARE_SENT.load(Ordering::Relaxed) {
        return;
    }
    let Answered { method, route, status, served_by } = answered;
    let span = Span::current();
    span.record("otel.name", format!("{method} {route}"));
    span.set_attribute("http.request.method", (*method).to_owned());
    span.set_attribute("http.route", (*route).to_owned());
    span.set_attribute("http.response.status_code", i64::from(*status));
    span.set_attribute("numerator.path", *served_by);
    if *status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing_subscriber::layer::{Context, SubscriberExt as _};
    use tracing_subscriber::{Layer, registry};

    use super::*;

    /// Names of the fields that spans were given.
    #[derive(Clone, Default)]
    struct Fields(Arc<Mutex<Vec<&'static str>>>);

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, _: &dyn std::fmt::Debug) {
            self.0.lock().expect("not poisoned").push(field.name());
        }
    }

    impl<S: tracing::Subscriber> Layer<S> for Fields {
        fn on_new_span(&self, attributes: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
            attributes.record(&mut self.clone());
        }

        fn on_record(&self, _: &Id, values: &Record<'_>, _: Context<'_, S>) {
            values.record(&mut self.clone());
        }
    }

    #[test]
    fn where_nobody_takes_spans_there_are_none() {
        let fields = Fields::default();
        tracing::subscriber::with_default(registry().with(fields.clone()), || {
            let span = span("order-7", &HeaderMap::new());
            let answered =
                Answered { method: "GET", route: "/healthz", status: 500, served_by: "" };
            span.in_scope(|| describe(&answered));
        });
        assert_eq!(*fields.0.lock().expect("not poisoned"), [""; 0]);
    }
}
