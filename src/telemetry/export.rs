//! Sends spans to a collector over OTLP (http/protobuf), in batches, behind the requests.
//!
//! Only plain HTTP to a collector nearby: that one knows TLS, credentials and where spans end up.
//! Never waits for the collector: what does not fit the queue (2,048 spans) is dropped.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::http::header::HOST;
use axum::http::{HeaderValue, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use opentelemetry::KeyValue;
use opentelemetry::global::set_text_map_propagator;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tracing_subscriber::Layer as _;

use crate::node::host;
use crate::telemetry::log::Spans;
use crate::telemetry::settings::TraceSettings;

/// Longest time that a batch may take to be sent, and the last one at the end of the process.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// Largest answer of a collector that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// What sends the spans of this process.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// The layer that sends spans where the settings ask for it; otherwise none. Call it inside the
/// runtime.
///
/// # Errors
/// A URL that is not one.
pub(crate) fn layer(settings: &TraceSettings) -> anyhow::Result<Option<Spans>> {
    let Some(url) = &settings.otlp_url else { return Ok(None) };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Client { runtime: Handle::current() })
        .with_endpoint(url)
        .with_timeout(SEND_LIMIT)
        .build()
        .context("is not one to send spans to")?;
    let share = Sampler::TraceIdRatioBased(f64::from(settings.sampled_percent) / 100.0);
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_sampler(Sampler::ParentBased(Box::new(share)))
        .with_resource(resource())
        .build();
    set_text_map_propagator(TraceContextPropagator::new());
    crate::telemetry::spans::send_spans();
    let tracer = PROVIDER.get_or_init(|| provider).tracer("numerator");
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        // Else a span's name is fixed before its outcome is known.
        .with_context_activation(false)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    Ok(Some(layer.boxed()))
}

/// Sends what is left. Call it outside of the runtime, while its threads live.
pub(crate) fn finish() {
    if let Some(provider) = PROVIDER.get()
        && let Err(error) = provider.shutdown_with_timeout(SEND_LIMIT)
    {
        tracing::warn!(%error, "the last spans were not sent");
    }
}

/// The sender, as an OpenTelemetry resource.
fn resource() -> Resource {
    Resource::builder()
        .with_service_name("numerator")
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", format!("{}/{}", host(), std::process::id())),
        ])
        .build()
}

/// Sends batches, each over its own connection: there is one in seconds.
#[derive(Debug)]
struct Client {
    /// Batches come from a thread of the exporter.
    runtime: Handle,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        // The time-out too needs the runtime from its beginning.
        let sent = self.runtime.spawn(async move { timeout(SEND_LIMIT, send(request)).await });
        Ok(sent.await???)
    }
}

async fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let authority = parts.uri.authority().ok_or("a URL without a host")?.clone();
    let stream = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Ends with its sender.
    tokio::spawn(connection);
    parts.headers.insert(HOST, HeaderValue::from_str(authority.as_str())?);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    parts.uri = path.parse::<Uri>()?;
    let answer = sender.send_request(Request::from_parts(parts, Body::from(body))).await?;
    let (parts, body) = answer.into_parts();
    Ok(Response::from_parts(parts, to_bytes(Body::new(body), ANSWER_BYTES_MAX).await?))
}
