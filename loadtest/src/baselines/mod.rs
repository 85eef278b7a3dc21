//! What the service is compared with: other ways to give the same answer to the same request, each
//! implemented as well as possible, on the same stores, in a process of its own.
//!
//! Each is one function that takes a value; everything around it is the same for all, and it runs
//! on the runtime of the service.

mod incr;
mod locked;
mod stores;

use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Json, Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::QueryScalar;
use tokio::net::TcpListener;

use stores::{Stores, TakeError};

/// The route that all of them serve, like the service.
const ROUTE: &str = "/api/v1/documents/{document_id}/generate-number";

/// A baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Baseline {
    /// Answers what the service would, and takes nothing: what HTTP alone costs.
    Echo,
    /// A lock in Redis, a read, an optimistic update with an audit row.
    Locked,
    /// One transaction per number: the counter's row, and a row of the journal.
    RowLock,
    /// INCR in Redis, the answer, and then the rows of many numbers at once.
    IncrBehind,
}

impl Baseline {
    /// Its name on command lines, and of its schema.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value().expect("no baseline is left out");
        value.get_name().to_owned()
    }

    /// Connections to PostgreSQL: the number with which it is fastest.
    fn pool(self) -> u32 {
        match self {
            Baseline::Echo | Baseline::IncrBehind => 1,
            // Only the holder of the lock needs one; more are for other counters.
            Baseline::Locked => 16,
            // All but one wait for the row, and each that waits makes the queue costlier.
            Baseline::RowLock => 8,
        }
    }

    async fn take(self, stores: &Stores, wanted: &Wanted) -> Result<u64, TakeError> {
        match self {
            Baseline::Echo => Ok(1),
            Baseline::Locked => locked::take(stores, wanted).await,
            Baseline::RowLock => locked::take_by_row(stores, wanted).await,
            Baseline::IncrBehind => incr::take(stores, wanted).await,
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

/// What a request names, as far as a baseline needs it.
#[derive(Debug, Deserialize)]
struct Order {
    #[serde(rename = "type")]
    type_code: String,
    context: Context,
}

#[derive(Debug, Deserialize)]
struct Context {
    #[serde(rename = "LINE")]
    line: String,
}

/// What a value is taken for.
#[derive(Clone, Debug)]
struct Wanted {
    /// The counter, as Redis and tables name it.
    counter: String,
    /// The prefix of its numbers.
    prefix: String,
    document_id: String,
    type_code: String,
}

impl Wanted {
    /// Binds the first four parameters of a statement.
    fn bind<'q>(
        &'q self,
        query: QueryScalar<'q, Postgres, i64, PgArguments>,
    ) -> QueryScalar<'q, Postgres, i64, PgArguments> {
        let query = query.bind(&self.counter).bind(&self.prefix);
        query.bind(&self.document_id).bind(&self.type_code)
    }
}

/// Serves until it is killed.
pub(crate) fn run(args: &BaselineArgs) -> ExitCode {
    let runtime = numerator::commands::runtime().expect("threads for the runtime");
    runtime.block_on(async {
        let router = match args.baseline {
            Baseline::Echo => Router::new().route(ROUTE, post(echo)),
            baseline => {
                let stores = Stores::connect(args, baseline.pool()).await;
                Router::new().route(ROUTE, post(generate_number)).with_state((baseline, stores))
            }
        };
        let listener = TcpListener::bind(args.listen).await.expect("a port that is free");
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await.expect("a server");
    });
    ExitCode::SUCCESS
}

/// A bare web server: reads the request, answers like the service, takes nothing.
async fn echo(Path(document_id): Path<String>, _body: Bytes) -> Response {
    answer(&document_id, &number("L0-0000000-", 1), 1)
}

async fn generate_number(
    State((baseline, stores)): State<(Baseline, Stores)>,
    Path(document_id): Path<String>,
    Json(order): Json<Order>,
) -> Response {
    let Order { type_code, context: Context { line } } = order;
    let prefix = format!("L{}-{line}-", type_code.trim_start_matches("LOAD"));
    let counter = format!("{type_code}:{line}");
    let wanted = Wanted { counter, prefix, document_id, type_code };
    match baseline.take(&stores, &wanted).await {
        Ok(value) => answer(&wanted.document_id, &number(&wanted.prefix, value), value),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
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

/// The text of a value.
fn number(prefix: &str, value: u64) -> String {
    format!("{prefix}{value:012}")
}
