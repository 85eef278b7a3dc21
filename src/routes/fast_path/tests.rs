//! No answer shows which way the call took: two services with the same initial state get the same
//! calls, one by both ways, one by the router alone.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::to_bytes;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use futures_util::stream;
use hyper::body::Frame;
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::clock::SystemClock;
use crate::config::{Settings, Sources};
use crate::metrics::Metrics;
use crate::startup::{Mode, Service};

const LETTERS: &str = "/api/v1/documents/d1/generate-number";
const BATCHES: &str = "/api/v1/document-numbering/batches";
const UNIFIED: &str = "/api/v1/serials/unified";
const SYSTEM: &str = "/api/v1/serials/system";
const INTERFACE: &str = "/api/v1/serials/interface";

/// A service that answers; its ledger is a file of its own.
struct Answering {
    doors: Routes,
    service: Arc<Service>,
    _folder: TempDir,
}

impl Answering {
    async fn start(time_limit: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().to_str().expect("text");
        let flags = [("data.dir", place), ("http.time_limit", time_limit)];
        let flags = flags.map(|(name, value)| (name.into(), value.into())).to_vec();
        let settings = Settings::load(&Sources { flags, ..Sources::default() }).expect("settings");
        let started = Service::start(&settings, Arc::new(SystemClock), Mode::Serve).await;
        let service = started.expect("a service");
        let prometheus = PrometheusBuilder::new().build_recorder().handle();
        let doors =
            crate::routes::routes(Arc::clone(&service), &settings, Metrics::new(), prometheus);
        Answering { doors, service, _folder: folder }
    }

    /// Two with the same initial state; the second has only the router's way.
    async fn pair(time_limit: &str) -> [Self; 2] {
        let both = Answering::start(time_limit).await;
        let mut plain = Answering::start(time_limit).await;
        plain.doors.numbers = None;
        [both, plain]
    }

    async fn ask(&self, asked: &Asked, body: Body) -> Answered {
        let mut request = Request::builder().method(asked.method.clone()).uri(asked.path);
        request = request.header("x-request-id", "r1");
        let named = [(HOST.as_str(), "localhost"), (CONTENT_TYPE.as_str(), "application/json")];
        let is_other = |name: &str| asked.headers.iter().any(|(other, _)| *other == name);
        let named = named.into_iter().filter(|(name, _)| !is_other(name));
        for (name, value) in named.chain(asked.headers.iter().copied()) {
            request = request.header(name, value);
        }
        let request = request.body(body).expect("a request");
        let peer = Peer::at("192.0.2.7".parse().expect("an address"));
        let (mut parts, body) = self.doors.answer(request, peer).1.await.into_parts();
        // The server writes it if it is missing: the body knows its length.
        let length = body.size_hint().exact();
        parts.headers.remove(CONTENT_LENGTH);
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        let mut body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::from(String::from_utf8(bytes.to_vec()).expect("text")));
        // The only difference between two services with the same initial state.
        if let Some(items) = body.get_mut("items").and_then(Value::as_array_mut) {
            items.iter_mut().for_each(forget_time);
        }
        forget_time(&mut body);
        Answered { status: parts.status.as_u16(), headers: parts.headers, length, body }
    }
}

async fn stop(pair: [Answering; 2]) {
    for answering in pair {
        answering.service.stop().await.expect("stopped");
    }
}

fn forget_time(answer: &mut Value) {
    if let Some(answer) = answer.as_object_mut() {
        answer.remove("issued_at");
    }
}

#[derive(Debug, PartialEq)]
struct Answered {
    status: u16,
    headers: HeaderMap,
    length: Option<u64>,
    body: Value,
}

/// A call: headers that are left out are as they should be.
struct Asked {
    method: Method,
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
}

#[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
fn asked(path: &'static str, body: impl ToString) -> Asked {
    let (method, headers) = (Method::POST, Vec::new());
    Asked { method, path, headers, body: body.to_string().into_bytes() }
}

impl Asked {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

fn spo() -> Value {
    json!({ "type": "SPO", "date": "2024-01-22" })
}

#[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
fn letter(context: Value) -> Value {
    json!({ "type": "LETTER", "project": "P", "date": "2025-01-01", "context": context })
}

/// Calls that take the short way, with the status of their answers.
fn known() -> Vec<(Asked, u16)> {
    let unified = || json!({ "system": "A", "module": "B", "instance": "1" });
    let long_key: &'static str = "k".repeat(256).leak();
    let document = |name: &str| json!({ "document_id": name, "type": "SPO", "date": "2024-01-22" });
    let list = json!({ "documents": [document("d7"), document("d7"), { "type": "SPO" }, 3] });
    vec![
        (asked(LETTERS, spo()), 201),
        (asked(LETTERS, spo()), 200),
        (asked(LETTERS, json!({ "type": "SPO", "date": "2024-01-23" })), 409),
        (
            asked("/api/v1/documents/d2/generate-number?x=1&y", spo()).with("idempotency-key", "k"),
            201,
        ),
        (asked("/api/v1/documents/d2/generate-number", spo()).with("idempotency-key", "k"), 200),
        (asked("/api/v1/documents/d3/generate-number", spo()).with("idempotency-key", "k"), 422),
        (asked("/api/v1/documents/a%2Fb%20%E0%B8%81%25/generate-number", spo()), 201),
        (asked("/api/v1/documents/a+b/generate-number", spo()), 201),
        (asked("/api/v1/documents/a%00b/generate-number", spo()), 422),
        (asked("/api/v1/documents/e%CC%81/generate-number", spo()), 201),
        (asked("/api/v1/documents/%C3%A9/generate-number", spo()), 200),
        (asked(LETTERS, spo()).with("idempotency-key", long_key), 422),
        (asked(LETTERS, spo()).with("idempotency-key", "a").with("idempotency-key", "a"), 422),
        (asked(LETTERS, json!({ "type": "NOPE" })), 422),
        (asked(LETTERS, json!({ "type": "DRAWING", "project": "P" })), 422),
        (asked(LETTERS, letter(json!({ "ORIGINATOR": "A" }))), 422),
        (asked(LETTERS, letter(json!({ "ORIGINATOR": "A-B", "RECIPIENT": "B" }))), 422),
        (asked(LETTERS, json!({ "type": "SPO", "date": "2024-02-30" })), 422),
        (asked(LETTERS, json!({ "type": "SPO", "user_id": "somebody" })), 422),
        (asked(LETTERS, "{\"type\": \"SPO\","), 400),
        (asked(LETTERS, "[\"SPO\", null]"), 422),
        (asked(LETTERS, ""), 400),
        (asked(LETTERS, " ".repeat(70_000)), 413),
        (asked(LETTERS, spo()).with("content-length", "70000"), 413),
        (asked(LETTERS, spo()).with("content-type", "text/plain"), 415),
        (asked(LETTERS, spo()).with("content-type", "application/json; charset=utf-16"), 415),
        (asked(LETTERS, spo()).with("content-encoding", "gzip"), 415),
        (asked(LETTERS, json!({ "type": "NOPE" })).with("accept-language", "th"), 422),
        (asked(LETTERS, spo()).with("on-behalf-of", "somchai"), 200),
        (asked(LETTERS, spo()).with("host", "evil.example"), 403),
        (asked(LETTERS, spo()).with("host", "localhost").with("host", "localhost"), 400),
        (asked(LETTERS, spo()).with("origin", "https://evil.example"), 403),
        (asked(LETTERS, spo()).with("x-request-id", "a b"), 200),
        (asked(BATCHES, json!({ "type": "SPO", "date": "2024-01-22", "count": 3 })), 201),
        (
            asked(
                BATCHES,
                json!({ "type": "SPO", "date": "2024-01-22", "count": 2, "expand": true }),
            ),
            201,
        ),
        (asked(BATCHES, list).with("idempotency-key", "list"), 200),
        (asked(BATCHES, json!({ "type": "SPO", "count": 0 })), 422),
        (asked(BATCHES, json!({ "type": "SPO", "date": "2024-01-22", "count": 1000 })), 409),
        (asked(BATCHES, json!({ "documents": [] })), 422),
        (asked(BATCHES, format!("{}{}", spo(), " ".repeat(70_000))), 422),
        (asked(UNIFIED, unified()), 422),
        (asked(SYSTEM, unified()), 422),
        (asked(INTERFACE, unified()), 422),
    ]
}

/// Calls that the router must answer, with the status.
fn odd() -> Vec<(Asked, u16)> {
    let by = |method: Method, path| Asked { method, ..asked(path, spo()) };
    vec![
        (by(Method::GET, LETTERS), 405),
        (by(Method::PUT, BATCHES), 405),
        (by(Method::OPTIONS, UNIFIED), 405),
        (asked("/api/v1/documents//generate-number", spo()), 422),
        (asked("/api/v1/documents/a/b/generate-number", spo()), 404),
        (asked("/api/v1/documents/a%FFb/generate-number", spo()), 422),
        (asked("/api/v1/documents/d1/generate-number/", spo()), 404),
        (asked("/api/v1/documents/d1/generate%2Dnumber", spo()), 404),
        (asked("/api/v2/documents/d1/generate-number", spo()), 404),
        (asked("/api/v1/document-numbering/batches/", spo()), 404),
    ]
}

#[tokio::test]
async fn no_answer_shows_which_way_the_call_took() {
    let [both, plain] = Answering::pair("30s").await;
    let (known, odd) = (known(), odd());
    let mut wrong = Vec::new();
    let cases = known.iter().map(|case| (true, case)).chain(odd.iter().map(|case| (false, case)));
    for (is_known, (asked, status)) in cases {
        let about = format!("{} {} {:?}", asked.method, asked.path, asked.headers);
        let path = asked.path.split('?').next().unwrap_or_default();
        assert_eq!(Taking::of(&asked.method, path).is_some(), is_known, "{about}");
        let answered = both.ask(asked, asked.body.clone().into()).await;
        if answered.status != *status {
            wrong.push(format!("{about}: {status} expected: {answered:?}"));
        }
        assert_eq!(answered, plain.ask(asked, asked.body.clone().into()).await, "{about}");
    }
    assert_eq!(wrong, Vec::<String>::new());
    stop([both, plain]).await;
}

/// Panics when it is read.
struct Panics;

impl HttpBody for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("a secret")
    }
}

#[tokio::test]
async fn a_panic_a_body_that_breaks_off_and_one_that_never_ends_are_answered_alike() {
    let [both, plain] = Answering::pair("100ms").await;
    let broken = || Body::from_stream(stream::iter([Err::<Bytes, _>("broken off")]));
    let endless = || Body::from_stream(stream::pending::<Result<Bytes, Infallible>>());
    let bodies: [(&dyn Fn() -> Body, u16); 3] =
        [(&|| Body::new(Panics), 500), (&broken, 400), (&endless, 408)];
    for path in [LETTERS, BATCHES, UNIFIED, SYSTEM, INTERFACE] {
        for (body, status) in bodies {
            let asked = asked(path, "");
            let answered = both.ask(&asked, body()).await;
            assert_eq!(answered.status, status, "{path}: {answered:?}");
            assert!(!answered.body.to_string().contains("secret"), "{answered:?}");
            assert_eq!(answered, plain.ask(&asked, body()).await, "{path}");
        }
    }
    stop([both, plain]).await;
}

/// A body of a batch may be larger than that of any other call, by either way.
#[tokio::test]
async fn each_call_has_the_bounds_of_its_route() {
    let [both, plain] = Answering::pair("30s").await;
    for (path, status) in [(LETTERS, 413), (BATCHES, 422), (UNIFIED, 413), (INTERFACE, 413)] {
        let asked = asked(path, format!("{{{}}}", " ".repeat(70_000)));
        let answered = both.ask(&asked, asked.body.clone().into()).await;
        assert_eq!(answered.status, status, "{path}: {answered:?}");
        assert_eq!(answered, plain.ask(&asked, asked.body.clone().into()).await, "{path}");
        let asked = asked_of_length(path, "9999999");
        let answered = both.ask(&asked, Body::empty()).await;
        assert_eq!(answered.status, 413, "{path}: {answered:?}");
        assert_eq!(answered, plain.ask(&asked, Body::empty()).await, "{path}");
    }
    stop([both, plain]).await;
}

fn asked_of_length(path: &'static str, bytes: &'static str) -> Asked {
    asked(path, "").with(CONTENT_LENGTH.as_str(), bytes)
}

/// A body of unknown length may be large.
#[tokio::test]
async fn a_large_batch_and_a_list_belong_to_the_slow_lane() {
    let answering = Answering::start("30s").await;
    let lane = |method: Method, path: &str, bytes: Option<&str>| {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(bytes) = bytes {
            request = request.header(CONTENT_LENGTH, bytes);
        }
        let request = request.body(Body::empty()).expect("a request");
        answering.doors.answer(request, Peer::at("192.0.2.7".parse().expect("an address"))).0
    };
    for (path, bytes) in
        [(LETTERS, Some("70000")), (LETTERS, None), (BATCHES, Some("8192")), (UNIFIED, None)]
    {
        assert_eq!(lane(Method::POST, path, bytes), Lane::Fast, "{path} {bytes:?}");
    }
    for bytes in [Some("8193"), Some("x"), None] {
        assert_eq!(lane(Method::POST, BATCHES, bytes), Lane::Slow, "{bytes:?}");
    }
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(lane(Method::GET, probe, None), Lane::Fast, "{probe}");
    }
    let configs = "/api/v1/document-numbering/configs";
    for (method, path) in [(Method::GET, configs), (Method::GET, LETTERS), (Method::POST, "/")] {
        assert_eq!(lane(method, path, Some("1")), Lane::Slow, "{path}");
    }
    answering.service.stop().await.expect("stopped");
}

/// Goal: rare features cost the most frequent call nothing. Method: the size of its future, which
/// is moved several times before it is first polled.
#[tokio::test]
async fn a_call_for_one_number_takes_little_room() {
    let [both, plain] = Answering::pair("30s").await;
    let fast_path = both.doors.numbers.clone().expect("both ways");
    let request = Request::builder().method(Method::POST).uri(LETTERS).body(Body::empty());
    let peer = Peer::at("192.0.2.7".parse().expect("an address"));
    let taking = Taking::Number;
    let call = fast_path.answer(request.expect("a request"), peer, taking);
    let bytes = size_of_val(&call);
    assert!(bytes <= CALL_BYTES_MAX, "{bytes}");
    drop(call);
    stop([both, plain]).await;
}

/// A seventh more than its size; it was 13,240 while it contained a source, a batch and a draw.
const CALL_BYTES_MAX: usize = 6_144;
