//! Real connections: bounded in number, closed when idle, drained when the server stops; under TLS
//! likewise. Each that asks the router moves to the slow lane, and what holds of it holds there.

mod lanes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use axum::{Extension, Router};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::*;
use crate::config::Sources;
use crate::routes::Routes;
use crate::telemetry::certificates::Certificates;
use crate::web::tls::Tls;
use crate::web::tls::tests::Pair;

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
    slow: SlowLane,
}

/// The runtime of the slow lane: one thread, which has this name.
struct SlowLane(Option<Runtime>);

const SLOW: &str = "slow lane";

impl SlowLane {
    fn start() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name(SLOW).enable_all().build();
        SlowLane(Some(runtime.expect("a thread")))
    }
}

impl Drop for SlowLane {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts a server on a free port, with the bounds that `change` makes of the usual ones.
async fn start(router: Router, change: impl FnOnce(&mut ConnectionBounds)) -> Running {
    start_under(None, router, change).await
}

/// The same, under TLS if it is given.
async fn start_under(
    tls: Option<TlsAcceptor>,
    router: Router,
    change: impl FnOnce(&mut ConnectionBounds),
) -> Running {
    let routes = Routes::from(router);
    start_answering(tls, move |request, peer| routes.answer(request, peer), change).await
}

/// The same with any answers.
async fn start_answering<F: Future<Output = Response> + Send + 'static>(
    tls: Option<TlsAcceptor>,
    answer: impl Fn(Request<Incoming>, Peer) -> (Lane, F) + Clone + Send + Sync + 'static,
    change: impl FnOnce(&mut ConnectionBounds),
) -> Running {
    let flags = vec![("data.dir".into(), "/tmp".into())];
    let settings = Settings::load(&Sources { flags, ..Sources::default() }).expect("settings");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("address");
    let (stop, stopped) = oneshot::channel::<()>();
    let mut bounds = ConnectionBounds::of(&settings);
    change(&mut bounds);
    let slow = SlowLane::start();
    let runtime = slow.0.as_ref().map(|runtime| runtime.handle().clone());
    let served = tokio::spawn(async move {
        serve(listener, tls, answer, runtime, bounds, async { drop(stopped.await) }).await;
    });
    Running { address, stop, served, slow }
}

/// Sends bytes and reads until the server closes or `end` has come.
async fn converse_raw(stream: &TcpStream, send: &[u8], end: &str) -> String {
    let mut sent = 0;
    while sent < send.len() {
        stream.writable().await.expect("writable");
        sent += stream.try_write(&send[sent..]).unwrap_or_default();
    }
    let mut text = String::new();
    loop {
        stream.readable().await.expect("readable");
        let mut buffer = [0; 4_096];
        match stream.try_read(&mut buffer) {
            Ok(0) => return text,
            Ok(read) => text.push_str(&String::from_utf8_lossy(&buffer[..read])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return text,
        }
        if !end.is_empty() && text.ends_with(end) {
            return text;
        }
    }
}

const ASK: &[u8] = b"GET /peer HTTP/1.1\r\nhost: x\r\n\r\n";

fn peer_router() -> Router {
    Router::new().route("/peer", get(async |Extension(Peer(ip)): Extension<Peer>| ip.to_string()))
}

#[tokio::test]
async fn a_connection_serves_many_requests_and_knows_its_peer() {
    let running = start(peer_router(), |_| {}).await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    for _ in 0..3 {
        let text = converse_raw(&stream, ASK, "127.0.0.1").await;
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    }
}

#[tokio::test]
async fn an_answer_says_how_long_its_connection_may_be_idle_unless_it_is_the_last() {
    let told = |text: &str| {
        let lines = text.lines().map(str::to_ascii_lowercase);
        lines.filter_map(|line| Some(line.strip_prefix("keep-alive: ")?.to_owned())).next()
    };
    let last = b"GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    for (timeout, wanted) in [(10_000, Some("timeout=10")), (1_500, Some("timeout=1"))] {
        let timeout = Duration::from_millis(timeout);
        let running = start(peer_router(), |bounds| bounds.header_read_timeout = timeout).await;
        let stream = TcpStream::connect(running.address).await.expect("connected");
        for _ in 0..2 {
            let text = converse_raw(&stream, ASK, "127.0.0.1").await;
            assert_eq!(told(&text).as_deref(), wanted, "{text}");
        }
        let text = converse_raw(&stream, last, "").await;
        assert!(text.starts_with("HTTP/1.1 200") && told(&text).is_none(), "{text}");
    }
    // An end within a second cannot be expressed in whole seconds.
    let timeout = Duration::from_millis(900);
    let running = start(peer_router(), |bounds| bounds.header_read_timeout = timeout).await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    let text = converse_raw(&stream, ASK, "127.0.0.1").await;
    assert!(text.starts_with("HTTP/1.1 200") && told(&text).is_none(), "{text}");
}

#[tokio::test]
async fn a_header_that_never_ends_is_given_up() {
    let timeout = Duration::from_millis(100);
    let running = start(peer_router(), |bounds| bounds.header_read_timeout = timeout).await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    // Returns only because the server closes the connection.
    let text = converse_raw(&stream, b"GET /peer HTTP/1.1\r\nhost", "").await;
    assert!(!text.starts_with("HTTP/1.1 200"), "{text}");
}

#[tokio::test]
async fn connections_past_the_bound_wait_for_a_free_place() {
    let running = start(peer_router(), |bounds| bounds.connections_max = 1).await;
    let first = TcpStream::connect(running.address).await.expect("connected");
    converse_raw(&first, ASK, "127.0.0.1").await;
    let second = TcpStream::connect(running.address).await.expect("connected");
    let mut answer = Box::pin(converse_raw(&second, ASK, "127.0.0.1"));
    let waited = tokio::time::timeout(Duration::from_millis(200), &mut answer).await;
    assert!(waited.is_err(), "the second connection was served beside the first");
    drop(first);
    assert!(answer.await.starts_with("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn a_stopping_server_answers_what_it_began_and_accepts_no_more() {
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let router = Router::new().route(
        "/peer",
        get({
            let (entered, leave) = (entered.clone(), leave.clone());
            async move || {
                entered.notify_one();
                leave.notified().await;
                "done"
            }
        }),
    );
    let Running { address, stop, served, slow: _slow } = start(router, |_| {}).await;
    let idle = TcpStream::connect(address).await.expect("connected");
    let stream = TcpStream::connect(address).await.expect("connected");
    let answer = tokio::spawn(async move { converse_raw(&stream, ASK, "").await });
    entered.notified().await;
    stop.send(()).expect("the server runs");
    // The idle connection is closed; the busy one is not.
    assert_eq!(converse_raw(&idle, b"", "").await, "");
    assert!(TcpStream::connect(address).await.is_err(), "still accepting");
    assert!(!served.is_finished());
    leave.notify_one();
    let text = answer.await.expect("answered");
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("done"), "{text}");
    served.await.expect("served");
}

/// A body that is larger than the socket buffers of both sides.
const LARGE: usize = 64 * 1_024 * 1_024;

#[tokio::test]
async fn a_client_that_does_not_read_is_left_and_one_that_reads_slowly_is_not() {
    let routes = Router::new().route("/peer", get(async || vec![b'x'; LARGE]));
    let running = start(routes, |bounds| {
        bounds.write_timeout = Duration::from_millis(300);
        bounds.connections_max = 1;
    })
    .await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    stream.try_write(ASK).expect("sent");
    // The only place becomes free although the client does not read.
    let second = TcpStream::connect(running.address).await.expect("connected");
    second.writable().await.expect("writable");
    second.try_write(ASK).expect("sent");
    let mut received = 0;
    let mut buffer = vec![0; 1_024 * 1_024];
    while received < LARGE {
        tokio::time::timeout(Duration::from_secs(20), second.readable())
            .await
            .expect("the first client holds the place")
            .expect("readable");
        // Slower than the limit in total, but never without progress for that long.
        tokio::time::sleep(Duration::from_millis(10)).await;
        received += match second.try_read(&mut buffer) {
            Ok(0) => panic!("broke off after {received}"),
            Ok(read) => read,
            Err(_) => 0,
        };
    }
}

#[tokio::test]
async fn a_connection_past_its_age_ends_with_its_answer() {
    let running = start(peer_router(), |bounds| bounds.age_max = Duration::from_secs(1)).await;
    let stream = TcpStream::connect(running.address).await.expect("connected");
    let text = converse_raw(&stream, ASK, "127.0.0.1").await;
    assert!(!text.contains("connection: close"), "{text}");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    // Returns only because the server closes the connection.
    let text = converse_raw(&stream, ASK, "").await;
    assert!(text.contains("connection: close") && text.ends_with("127.0.0.1"), "{text}");
    assert!(!text.contains("keep-alive"), "{text}");
}

#[tokio::test]
async fn an_address_that_has_its_connections_gets_no_more_until_one_ends() {
    let running = start(peer_router(), |bounds| bounds.connections_per_peer_max = 2).await;
    let connect = async || TcpStream::connect(running.address).await.expect("connected");
    let (first, second) = (connect().await, connect().await);
    for stream in [&first, &second] {
        converse_raw(stream, ASK, "127.0.0.1").await;
    }
    assert_eq!(converse_raw(&connect().await, b"", "").await, "", "closed at once");
    drop(first);
    loop {
        // The server may not have noticed yet that the first one is gone.
        if converse_raw(&connect().await, ASK, "127.0.0.1").await.starts_with("HTTP/1.1 200") {
            return;
        }
    }
}

/// A pair of certificate and key, and a server that shows it.
async fn start_tls(change: impl FnOnce(&mut ConnectionBounds)) -> (Pair, Running) {
    let pair = Pair::new();
    let tls = Tls::open(&pair.settings()).expect("a pair");
    let running = start_under(Some(tls.acceptor()), peer_router(), change).await;
    (pair, running)
}

/// A connection of a client that trusts this certificate alone.
async fn connect_tls(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(client)).connect(name, stream).await
}

/// What is answered to it.
async fn ask_tls(address: SocketAddr, trusted: &CertificateDer<'static>) -> io::Result<String> {
    let mut stream = connect_tls(address, trusted).await?;
    stream.write_all(b"GET /peer HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}

#[tokio::test]
async fn under_tls_requests_are_answered_and_a_renewed_certificate_is_shown() {
    let mut pair = Pair::new();
    let mut settings = pair.settings();
    settings.reload_period = Duration::from_millis(20);
    let tls = Tls::open(&settings).expect("a pair");
    let running = start_under(Some(tls.acceptor()), peer_router(), |_| {}).await;
    let _followed = tls.follow(&Certificates::default());
    let text = ask_tls(running.address, &pair.certificate).await.expect("answered");
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("127.0.0.1"), "{text}");
    let stranger = Pair::new();
    assert!(ask_tls(running.address, &stranger.certificate).await.is_err(), "it shows its own");
    pair.renew();
    // Only a failing test waits for long.
    let shown = async {
        while ask_tls(running.address, &pair.certificate).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), shown).await.expect("the new one is shown");
}

#[tokio::test]
async fn plain_http_on_a_port_of_tls_is_closed_and_gets_no_answer() {
    let (pair, running) = start_tls(|_| {}).await;
    let mut stream = TcpStream::connect(running.address).await.expect("connected");
    stream.write_all(ASK).await.expect("sent");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.expect("closed, and not broken off");
    assert!(!received.starts_with(b"HTTP"), "{received:?}");
    assert!(ask_tls(running.address, &pair.certificate).await.is_ok(), "others are served");
}

#[tokio::test]
async fn a_handshake_that_never_ends_is_given_up_like_a_header() {
    let (pair, running) = start_tls(|bounds| {
        bounds.header_read_timeout = Duration::from_millis(100);
        bounds.connections_max = 1;
    })
    .await;
    let silent = TcpStream::connect(running.address).await.expect("connected");
    // The only place becomes free although the client does not speak.
    let asked = ask_tls(running.address, &pair.certificate);
    let text = tokio::time::timeout(Duration::from_secs(20), asked).await.expect("in time");
    assert!(text.expect("answered").starts_with("HTTP/1.1 200 OK"));
    assert_eq!(converse_raw(&silent, b"", "").await, "", "closed");
}

#[tokio::test]
async fn handshakes_count_among_the_connections_of_their_address() {
    let (pair, running) = start_tls(|bounds| bounds.connections_per_peer_max = 2).await;
    let connect = async || TcpStream::connect(running.address).await.expect("connected");
    let (_first, _second) = (connect().await, connect().await);
    assert_eq!(converse_raw(&connect().await, b"", "").await, "", "closed at once");
    assert!(ask_tls(running.address, &pair.certificate).await.is_err());
}

#[tokio::test]
async fn a_stopping_server_waits_for_no_handshake() {
    let (pair, running) =
        start_tls(|bounds| bounds.header_read_timeout = Duration::from_secs(300)).await;
    let mut silent = TcpStream::connect(running.address).await.expect("connected");
    // The first bytes of a hello that does not continue.
    silent.write_all(b"\x16\x03\x01").await.expect("sent");
    // A later connection is accepted later.
    ask_tls(running.address, &pair.certificate).await.expect("answered");
    running.stop.send(()).expect("the server runs");
    let ended = tokio::time::timeout(Duration::from_secs(20), running.served).await;
    ended.expect("it does not wait").expect("served");
}
