//! Accepts connections and serves them, under TLS or not: bounded in number, in header size and in
//! time, whether a client sends too slowly, does not read, or never ends its handshake.

mod lanes;
mod peers;
mod progress;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::COUNTED_BY;
use crate::config::Settings;
use crate::refusals::Refusals;
use crate::web::middleware::Peer;
pub use lanes::Lane;
use lanes::Lanes;
use peers::{PeerPlace, Peers};
use progress::Progress;

/// Largest header of a request, in bytes.
const HEADER_BYTES_MAX: usize = 64 * 1_024;

/// How long a connection may be idle, or take to send a header, or to end its TLS handshake.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may read nothing of its answer; then its connection is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// After this long a connection's next answer is its last.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(600);

/// Informs a client how long its connection may be idle before it is closed here.
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Wait after a connection could not be accepted (out of file descriptors, say).
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Connections served concurrently at `http.health_listen`; more wait to be accepted.
pub const HEALTH_CONNECTIONS_MAX: usize = 64;

/// Of these, connections of one address.
const HEALTH_CONNECTIONS_PER_PEER_MAX: usize = 16;

/// How long a client of `http.health_listen` may take to send its header, or read nothing.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);

/// Longest life of a connection to `http.health_listen`, which carries one request.
const HEALTH_CONNECTION_AGE_MAX: Duration = Duration::from_secs(15);

/// Bounds of the connections to one listener.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionBounds {
    /// Connections served concurrently; more wait to be accepted.
    pub connections_max: usize,
    /// Connections of one address; more are closed immediately.
    pub connections_per_peer_max: usize,
    /// How long a connection may be idle, or take to send a header, or to end its handshake.
    pub header_read_timeout: Duration,
    /// How long a client may read nothing of its answer.
    pub write_timeout: Duration,
    /// After this long an answer is the connection's last.
    pub age_max: Duration,
    /// How long a connection past its age, and one that is to end, may continue.
    pub grace: Duration,
    /// Whether a connection carries several requests.
    pub keep_alive: bool,
    /// Log lines per second of refusals before there is a request.
    pub refused_per_second_max: u32,
}

impl ConnectionBounds {
    /// Those of `http.listen`.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let http = &settings.http;
        ConnectionBounds {
            connections_max: http.connections_max,
            connections_per_peer_max: http.connections_per_peer_max,
            header_read_timeout: HEADER_READ_TIMEOUT,
            write_timeout: WRITE_TIMEOUT,
            age_max: CONNECTION_AGE_MAX,
            grace: settings.allocator.time_limit,
            keep_alive: true,
            refused_per_second_max: settings.log.refused_per_second_max,
        }
    }

    /// The bounds of `http.health_listen`: monitoring sends one short request at a time.
    #[must_use]
    pub fn of_health(settings: &Settings) -> Self {
        ConnectionBounds {
            connections_max: HEALTH_CONNECTIONS_MAX,
            connections_per_peer_max: HEALTH_CONNECTIONS_PER_PEER_MAX,
            header_read_timeout: HEALTH_TIMEOUT,
            write_timeout: HEALTH_TIMEOUT,
            age_max: HEALTH_CONNECTION_AGE_MAX,
            grace: Duration::ZERO,
            keep_alive: false,
            ..Self::of(settings)
        }
    }
}

/// Answers over connections within bounds, under TLS where it is given, until `stop`
/// resolves; then accepts no more, lets the requests that are being answered end (at most the grace
/// of the bounds), and returns.
///
/// A connection whose request `answer` gives to the slow lane is served by the runtime `slow`;
/// without one, by the runtime of the call, as all others are. `slow` must outlive the call.
///
/// A connection that cannot be accepted or breaks off is logged and never ends the server.
pub async fn serve<F>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    answer: impl Fn(Request<Incoming>, Peer) -> (Lane, F) + Clone + Send + Sync + 'static,
    slow: Option<Handle>,
    bounds: ConnectionBounds,
    stop: impl Future<Output = ()>,
) where
    F: Future<Output = Response> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(bounds.connections_max));
    let graceful = GracefulShutdown::new();
    let server = Server::new(bounds, tls, answer, slow);
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
            Ok((slot, stream, peer)) => server.receive(&graceful, slot, stream, peer),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    // The listener closes first, so that balancers and clients turn to another process immediately.
    drop(listener);
    // A connection without a handshake has no request yet.
    server.stopping.send_replace(true);
    let open = graceful.count();
    tracing::info!(open, "no longer accepting connections");
    if tokio::time::timeout(bounds.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still busy after http.time_limit");
    }
}

/// The state that connections of one listener share.
struct Server<A> {
    bounds: ConnectionBounds,
    tls: Option<TlsAcceptor>,
    stopping: watch::Sender<bool>,
    /// The announced time that a connection may be idle; `None` if each carries one request, or may
    /// not be idle for a second.
    idle: Option<HeaderValue>,
    protocol: http1::Builder,
    answer: A,
    /// The runtime of the slow lane.
    slow: Option<Handle>,
    peers: Peers,
    refusals: Refusals,
}

impl<A, F> Server<A>
where
    A: Fn(Request<Incoming>, Peer) -> (Lane, F) + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    fn new(
        bounds: ConnectionBounds,
        tls: Option<TlsAcceptor>,
        answer: A,
        slow: Option<Handle>,
    ) -> Self {
        let mut protocol = http1::Builder::new();
        protocol
            .timer(TokioTimer::new())
            .header_read_timeout(bounds.header_read_timeout)
            .max_buf_size(HEADER_BYTES_MAX)
            .keep_alive(bounds.keep_alive);
        let peers = Peers::new(bounds.connections_per_peer_max);
        let refusals = Refusals::new(bounds.refused_per_second_max, COUNTED_BY);
        let stopping = watch::Sender::new(false);
        let idle_s = bounds.header_read_timeout.as_secs();
        let idle = (bounds.keep_alive && idle_s > 0).then(|| format!("timeout={idle_s}"));
        let idle = idle.and_then(|idle| HeaderValue::try_from(idle).ok());
        Server { bounds, tls, stopping, idle, protocol, answer, slow, peers, refusals }
    }

    /// Serves a connection in its own task, unless its address has too many.
    fn receive(
        &self,
        graceful: &GracefulShutdown,
        slot: OwnedSemaphorePermit,
        stream: TcpStream,
        peer: SocketAddr,
    ) {
        match self.peers.admit(peer.ip()) {
            Some(place) => self.converse(graceful, (slot, place), stream, Peer::at(peer.ip())),
            None if self.refusals.admit() => tracing::warn!(
                ip = %peer.ip().to_canonical(),
                open = self.bounds.connections_per_peer_max,
                "closed a connection of an address that has as many as it may have; \
                 http.connections_per_peer_max"
            ),
            None => {}
        }
    }

    fn converse(
        &self,
        graceful: &GracefulShutdown,
        places: (OwnedSemaphorePermit, PeerPlace),
        stream: TcpStream,
        peer: Peer,
    ) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let ConnectionBounds { age_max, grace, write_timeout, header_read_timeout, .. } =
            self.bounds;
        let idle = self.idle.clone();
        let (answerer, ip, began) = (self.answer.clone(), Arc::clone(&peer.0), Instant::now());
        let lanes = Lanes::new(self.slow.clone());
        let changed = Arc::clone(&lanes);
        let answer = service_fn(move |request: Request<Incoming>| {
            let idle = idle.clone().filter(|_| !closes(request.headers()));
            let (lane, answered) = answerer(request, peer.clone());
            let lanes = Arc::clone(&changed);
            async move {
                lanes.change_to(lane).await;
                let mut response = answered.await;
                if began.elapsed() >= age_max {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(CONNECTION, close);
                } else if let Some(idle) = idle.filter(|_| !closes(response.headers())) {
                    response.headers_mut().insert(KEEP_ALIVE, idle);
                }
                Ok::<_, Infallible>(response)
            }
        });
        let stream = Progress::new(stream, Arc::clone(&lanes), write_timeout);
        let (tls, stopping) = (self.tls.clone(), self.stopping.subscribe());
        let (protocol, watcher) = (self.protocol.clone(), graceful.watcher());
        let refusals = self.refusals.clone();
        let connection = async move {
            let Some(tls) = tls else {
                return speak(&protocol, watcher, stream, answer).await.map_err(Broken::Off);
            };
            let stream = shake_hands(tls, stream, header_read_timeout, stopping).await?;
            speak(&protocol, watcher, stream, answer).await.map_err(Broken::Off)
        };
        // A connection that is busy at its end may only finish its current answer.
        let connection = tokio::time::timeout(age_max + header_read_timeout + grace, connection);
        lanes.serve(Box::pin(async move {
            match connection.await {
                Ok(Ok(())) => {}
                Ok(Err(Broken::Off(error))) if error.is_parse() => {
                    log_unreadable(&refusals, &ip, &error);
                }
                Ok(Err(Broken::Off(error))) => {
                    tracing::debug!(%ip, %error, "a connection broke off");
                }
                Ok(Err(Broken::Handshake(error))) if refusals.admit() => {
                    tracing::info!(%ip, %error, "no TLS came of a connection; plain HTTP?");
                }
                Ok(Err(Broken::Handshake(_))) => {}
                Err(_) => tracing::debug!(%ip, "a connection was closed, past its age"),
            }
            drop(places);
        }));
    }
}

/// Whether a request, or an answer, is the last of its connection.
fn closes(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|sent| sent.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// How a connection ends before its client ends it.
enum Broken {
    /// No TLS came of it.
    Handshake(io::Error),
    /// While requests were exchanged.
    Off(hyper::Error),
}

/// The stream under TLS; nothing is sent or read for longer than the limit before there is one.
async fn shake_hands(
    tls: TlsAcceptor,
    stream: Progress,
    limit: Duration,
    mut stopping: watch::Receiver<bool>,
) -> Result<TlsStream<Progress>, Broken> {
    let late = || io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long");
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(limit, tls.accept(stream)) => shaken,
        _ = stopping.wait_for(|stopping| *stopping) => Ok(Err(io::ErrorKind::Interrupted.into())),
    };
    shaken.unwrap_or_else(|_| Err(late())).map_err(Broken::Handshake)
}

/// Answers the requests of a connection.
async fn speak<S, A>(
    protocol: &http1::Builder,
    watcher: Watcher,
    stream: S,
    answer: A,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    A: HttpService<Incoming, ResBody = Body, Error = Infallible>,
{
    watcher.watch(protocol.serve_connection(TokioIo::new(stream), answer)).await
}

/// Logs a refusal by the protocol's library: it answers 400, 414 or 431 without a body, and that
/// answer cannot be changed, so that it lacks the line's request id.
fn log_unreadable(refusals: &Refusals, ip: &str, error: &hyper::Error) {
    if refusals.admit() {
        let request_id = uuid::Uuid::new_v4();
        tracing::info!(%request_id, ip, %error, "refused what is no request of HTTP/1.1");
    }
}

#[cfg(test)]
mod tests;
