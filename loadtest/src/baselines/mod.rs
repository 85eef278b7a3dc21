//! What the service is compared with: other ways to give the same answer to the same request, each
//! done as well as we can, on the same stores, in a process of its own.

mod echo;

use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;

/// The route that all of them have, as the service does.
const ROUTE: &str = "/api/v1/documents/{document_id}/generate-number";

/// A baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Baseline {
    /// Answers what the service would, and takes nothing: what HTTP alone costs.
    Echo,
}

impl Baseline {
    /// Its name on command lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Baseline::Echo => "echo",
        }
    }

    /// The schema that holds its tables.
    pub(crate) fn schema(self) -> &'static str {
        match self {
            Baseline::Echo => "echo",
        }
    }
}

/// Which baseline, and on what.
#[derive(Clone, Debug, Args)]
pub(crate) struct BaselineArgs {
    /// The baseline
    baseline: Baseline,
    /// Where it listens
    #[arg(long)]
    listen: SocketAddr,
    /// Its Redis
    #[arg(long)]
    redis_url: String,
    /// Its PostgreSQL
    #[arg(long)]
    database_url: String,
}

/// Serves until it is killed.
pub(crate) fn run(args: &BaselineArgs) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("threads for the runtime");
    runtime.block_on(async {
        let router = match args.baseline {
            Baseline::Echo => echo::router(),
        };
        let listener = TcpListener::bind(args.listen).await.expect("a port that is free");
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await.expect("a server");
    });
    ExitCode::SUCCESS
}

/// The answer of the service for a number, field by field of about the same length.
fn answer(document_id: &str, number: &str, value: u64) -> Response {
    let body = format!(
        "{{\"document_number\":\"{number}\",\"document_id\":\"{document_id}\",\"type\":\"LOAD0\",\
         \"project\":null,\"config_id\":1,\"config_version\":1,\
         \"counter_key\":{{\"type\":\"LOAD0\",\"LINE\":\"0000000\"}},\
         \"serials\":[{{\"name\":\"SEQ\",\"first\":\"{value}\",\
         \"last\":\"{value}\",\"step\":\"1\"}}],\
         \"issued_at\":\"2025-12-02T03:04:05.678901Z\",\
         \"path\":\"redis\",\"replayed\":false}}"
    );
    let json = HeaderValue::from_static("application/json");
    (StatusCode::CREATED, [(header::CONTENT_TYPE, json)], body).into_response()
}

/// The text of a value of the one counter that baselines have.
fn number(value: u64) -> String {
    format!("L0-0000000-{value:012}")
}
