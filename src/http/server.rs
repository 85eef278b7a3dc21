//! Accepts connections and serves them: bounded in number, in header size and in time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

use super::gate::Peer;
use crate::config::Settings;

/// Largest header of a request, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1_024;

/// Wait after a connection could not be accepted (out of file descriptors, say).
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Connections served at once at `http.health_listen`; more wait to be accepted.
pub const HEALTH_CONNECTIONS_MAX: usize = 64;

/// Serves `router`, over so many connections at once, until `stop` resolves; then accepts no more,
/// lets the requests that are being answered end (at most one `http.time_limit`), and returns.
///
/// An idle connection is closed after `http.header_read_timeout`.
///
/// A connection that cannot be accepted or breaks off is logged and never ends the server.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections_max: usize,
    settings: &Settings,
    stop: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(connections_max));
    let graceful = GracefulShutdown::new();
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(settings.http.header_read_timeout)
        .max_buf_size(HEADER_BYTES_MAX)
        .keep_alive(true);
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let slot = slots.clone().acquire_owned().await.expect("nobody closes the slots");
            listener.accept().await.map(|(stream, peer)| (slot, stream, peer))
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((slot, stream, peer)) => {
                converse(&protocol, &graceful, router.clone(), slot, stream, Peer::at(peer.ip()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    // The listener goes first, so that balancers and clients turn to another process at once.
    drop(listener);
    let open = graceful.count();
    tracing::info!(open, "no longer accepting connections");
    if tokio::time::timeout(settings.allocator.time_limit, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still busy after http.time_limit");
    }
}

/// Serves one connection in its own task.
fn converse(
    protocol: &http1::Builder,
    graceful: &GracefulShutdown,
    router: Router,
    slot: OwnedSemaphorePermit,
    stream: TcpStream,
    peer: Peer,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let answer = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        router.clone().oneshot(request)
    });
    let connection = graceful.watch(protocol.serve_connection(TokioIo::new(stream), answer));
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke off");
        }
        drop(slot);
    });
}

#[cfg(test)]
mod tests;
