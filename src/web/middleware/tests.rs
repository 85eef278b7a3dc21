//! Tokens, request ids, panics, unknown routes: through a small router behind the real gate.

use axum::Extension;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::routing::get;
use serde_json::Value;
use tower::ServiceExt;

use super::super::budget::{Budget, Budgets};
use super::super::forwarded::Proxies;
use super::super::hosts::Hosts;
use super::*;
use crate::auth::limits::{LimitSettings, Limits};
use crate::auth::tokens::Tokens;
use crate::auth::{Grant, hash_of};
use crate::clock::ManualClock;
use crate::config::{ForwardedHeader, Token};
use crate::ledger::{IssuePath, LedgerError};
use crate::routes::TABLE;
use crate::telemetry::log_lines::{PrettyLines, working_for};

impl Caller {
    /// A caller for tests of others.
    pub(crate) fn anybody() -> Self {
        Caller {
            identity: Arc::new(Identity::local("u", COUNT_MAX)),
            user_id: "u".into(),
            ip_address: None,
            request_id: "r".into(),
            language: Locale::English,
            served_by: ServedBy::default(),
            by: None,
            limited: None,
            holdings: Holdings::of(&budgets(), "u".into()),
        }
    }
}

fn router(tokens: Vec<Token>) -> Router {
    router_with(tokens, Duration::MAX)
}

/// The same, with a warning about calls that take longer than `slow_after`.
fn router_with(tokens: Vec<Token>, slow_after: Duration) -> Router {
    let clock = Arc::new(ManualClock::at(1_700_000_000_123_456));
    let asks = !tokens.is_empty();
    let tokens = asks.then_some(Arc::new(Tokens::new(tokens, None, clock.clone())));
    let admission = Admission { tokens, ..admission(Hosts::Named(Vec::new())) };
    let middleware = Middleware::new(TABLE, admission, Metrics::new(), clock, call_log(slow_after));
    let who = async |Extension(caller): Extension<Caller>| {
        format!("{} {}", caller.user_id, caller.ip_address.unwrap_or_default())
    };
    let routes = Router::new()
        .route("/api/v1/document-numbering/configs", get(who))
        .route("/healthz", get(async || "ok"))
        .route(
            "/api/v1/document-numbering/numbers",
            get(async |Extension(caller): Extension<Caller>| {
                caller.served_by.note(IssuePath::Redis);
                caller.served_by.note(IssuePath::Database);
            }),
        )
        .route("/api/v1/documents/{documentId}/numbers", get(who))
        .route(PANIC, get(async || -> String { panic!("secret cause") }));
    crate::routes::behind(Arc::new(middleware), routes)
}

/// Room for all that tests send.
fn budgets() -> Budgets {
    let [bodies, answers] = [1 << 20, 1 << 20].map(|bytes| Budget::new(bytes, bytes));
    Budgets { bodies, answers }
}

/// Every caller, without limits.
fn admission(hosts: Hosts) -> Admission {
    let proxies = Proxies::new(Vec::new(), ForwardedHeader::XForwardedFor);
    let none = LimitSettings { user_per_minute: 0, address_per_minute: 0 };
    let limits = Arc::new(Limits::new(none, Arc::new(ManualClock::at(0)), false));
    Admission { tokens: None, jwts: None, hosts, proxies, limits, budgets: budgets() }
}

fn call_log(slow_after: Duration) -> CallLog {
    CallLog {
        slow_after,
        time_limit: Duration::MAX,
        refusals: Refusals::new(3, "numerator_problems_total"),
    }
}

fn get_request(path: &str) -> axum::http::request::Builder {
    Request::builder().uri(path).header(HOST, "localhost:8080")
}

async fn ask(tokens: Vec<Token>, request: axum::http::request::Builder) -> (Response, String) {
    let mut request = request.body(Body::empty()).expect("request");
    request.extensions_mut().insert(Peer::at("::ffff:192.0.2.7".parse().expect("address")));
    let response = router(tokens).oneshot(request).await.expect("infallible");
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, usize::MAX).await.expect("body");
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    (Response::from_parts(parts, Body::empty()), text)
}

fn token(name: &str, token: &str) -> Token {
    let granted = Grant { identity: Arc::new(Identity::local(name, 9)), expires_at_us: None };
    Token { sha256: hash_of(token), granted }
}

/// A route of the service, whose handler here panics.
const PANIC: &str = "/api/v1/document-numbering/counters";

const CONFIGS: &str = "/api/v1/document-numbering/configs";

#[tokio::test]
async fn without_tokens_everybody_on_the_machine_is_local() {
    let (response, body) = ask(Vec::new(), get_request(CONFIGS)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(body, "local 192.0.2.7");
}

#[tokio::test]
async fn a_token_tells_who_calls() {
    let tokens = vec![token("billing", "nbr_1"), token("archive", "nbr_2")];
    let request = get_request(CONFIGS).header(AUTHORIZATION, "bearer nbr_2");
    let (response, body) = ask(tokens, request).await;
    assert_eq!(response.status(), 200);
    assert_eq!(body, "archive 192.0.2.7");
}

#[tokio::test]
async fn a_missing_or_wrong_token_is_refused_everywhere_but_on_health() {
    for header in ["", "Bearer", "Bearer ", "Bearer nbr_2", "Basic nbr_1", "nbr_1"] {
        for path in [CONFIGS, "/openapi.json/", "/nowhere"] {
            let request = get_request(path).header(AUTHORIZATION, header);
            let (response, body) = ask(vec![token("billing", "nbr_1")], request).await;
            assert_eq!(response.status(), 401, "{header:?} on {path}");
            assert!(body.contains("unauthenticated"), "{body}");
            // A client that sent a token learns that it is at fault (RFC 6750).
            let is_token = header.to_lowercase().starts_with("bearer ");
            let call_log = &response.headers()[WWW_AUTHENTICATE];
            assert_eq!(
                call_log.to_str().expect("text").contains("invalid_token"),
                is_token,
                "{header:?}"
            );
        }
    }
    let (response, _) = ask(vec![token("billing", "nbr_1")], get_request("/healthz")).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_sane_request_id_is_kept_and_any_other_is_replaced() {
    let request = get_request("/nowhere").header(REQUEST_ID, "order-7:try.2");
    let (response, body) = ask(Vec::new(), request).await;
    assert_eq!(response.headers()[REQUEST_ID], "order-7:try.2");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["instance"], "order-7:try.2");
    for wrong in ["", "a b", "a\"b", &"x".repeat(129)] {
        let request = get_request("/healthz").header(REQUEST_ID, wrong);
        let (response, _) = ask(Vec::new(), request).await;
        let id = response.headers()[REQUEST_ID].to_str().expect("text");
        let id: uuid::Uuid = id.parse().expect("a UUID");
        assert_eq!(id.get_version_num(), 7);
        let (seconds, _) = id.get_timestamp().expect("a time").to_unix();
        assert_eq!(seconds, 1_700_000_000);
    }
}

#[tokio::test]
async fn a_foreign_host_is_refused_before_a_token_is_looked_at_and_on_every_route() {
    for path in [CONFIGS, "/healthz", "/nowhere"] {
        let request = Request::builder().uri(path).header(HOST, "evil.example");
        let (response, body) = ask(vec![token("billing", "nbr_1")], request).await;
        assert_eq!(response.status(), 403, "{path}");
        assert!(body.contains("host-not-allowed") && body.contains("http.hosts"), "{body}");
    }
}

#[tokio::test]
async fn an_unknown_route_and_a_wrong_method_are_problems() {
    let (response, body) = ask(Vec::new(), get_request("/nowhere")).await;
    assert_eq!(response.status(), 404);
    assert!(body.contains("\"code\":\"route-not-found\""), "{body}");
    let (response, body) = ask(Vec::new(), get_request(CONFIGS).method("DELETE")).await;
    assert_eq!(response.status(), 405);
    assert!(body.contains("\"code\":\"method-not-allowed\""), "{body}");
    assert!(response.headers()["allow"].to_str().expect("text").contains("GET"));
}

#[tokio::test]
async fn a_panic_is_a_problem_that_hides_its_cause() {
    let request = get_request(PANIC).header("accept-language", "th");
    let (response, body) = ask(Vec::new(), request).await;
    assert_eq!(response.status(), 500);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    assert!(body.contains("\"code\":\"internal\"") && !body.contains("secret"), "{body}");
    assert!(body.contains("กรุณาติดต่อผู้ดูแลระบบ"), "{body}");
}

/// The destination of a log.
#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Everything that is logged while the guard lives.
    fn capture(filter: &str) -> (Self, tracing::subscriber::DefaultGuard) {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .event_format(PrettyLines)
            .finish();
        (lines, tracing::subscriber::set_default(log))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("lock").clone()).expect("text")
    }
}

#[tokio::test]
async fn every_call_to_a_numbering_endpoint_is_logged_refused_ones_too() {
    let (lines, _log) = Lines::capture("info");
    let tokens = || vec![token("billing", "nbr_1")];
    let request = get_request(CONFIGS).header(REQUEST_ID, "first");
    ask(tokens(), request.header(AUTHORIZATION, "Bearer nbr_1")).await;
    ask(tokens(), get_request(CONFIGS).header(REQUEST_ID, "second")).await;
    ask(tokens(), get_request("/healthz").header(REQUEST_ID, "third")).await;
    let text = lines.text();
    let logged: Vec<&str> = text.lines().collect();
    assert_eq!(logged.len(), 2, "{text}");
    for (line, parts) in logged.iter().zip([
        ["request_id=first", "user=\"billing\"", "status=200", "slug=\"\""],
        ["request_id=second", "user=\"\"", "status=401", "slug=\"unauthenticated\""],
    ]) {
        let common = [CONFIGS, "ip=\"192.0.2.7\"", "method=\"GET\""];
        for part in parts.into_iter().chain(common) {
            assert!(line.contains(part), "{part} is missing from {line}");
        }
    }
    assert!(!text.contains("nbr_1"), "a token was logged");
}

#[tokio::test]
async fn refusals_have_so_many_lines_in_a_second_and_what_is_let_in_has_them_all() {
    let (lines, _log) = Lines::capture("info");
    let router = router(vec![token("billing", "nbr_1")]);
    let call = async |request: axum::http::request::Builder| {
        let request = request.body(Body::empty()).expect("request");
        router.clone().oneshot(request).await.expect("infallible").status()
    };
    for _ in 0..50 {
        assert_eq!(call(get_request(CONFIGS)).await, 401);
        assert_eq!(call(get_request(CONFIGS).header(AUTHORIZATION, "Bearer nbr_1")).await, 200);
    }
    let text = lines.text();
    assert!(text.matches("status=401").count() <= 6, "three in each second: {text}");
    assert_eq!(text.matches("status=200").count(), 50, "{text}");
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(lines.text().contains("left_out=4"), "{}", lines.text());
}

#[tokio::test]
async fn a_call_is_labelled_by_the_pattern_of_its_route_and_never_by_its_path() {
    let (lines, _log) = Lines::capture("info");
    let pattern = "/api/v1/documents/{documentId}/numbers";
    for (path, method, label) in [
        ("/api/v1/documents/a%2Fb/numbers", "GET", pattern),
        ("/api/v1/documents/7/numbers", "DELETE", pattern),
        (CONFIGS, "GET", CONFIGS),
        ("/api/v1/documents//numbers", "GET", pattern),
        ("/api/v1/document-numbering/configs/", "GET", "other"),
        ("/healthz/", "GET", "other"),
        ("/", "GET", "other"),
    ] {
        ask(Vec::new(), get_request(path).method(method).header(REQUEST_ID, "one")).await;
        let text = lines.text();
        let line = text.lines().last().expect("logged");
        assert!(line.contains(&format!("route=\"{label}\"")), "{path}: {line}");
    }
}

#[tokio::test]
async fn a_warning_carries_the_request_id_whatever_the_filter() {
    let (lines, _log) = Lines::capture("warn");
    ask(Vec::new(), get_request(PANIC).header(REQUEST_ID, "seven")).await;
    let text = lines.text();
    let cause = text.lines().find(|line| line.contains("secret cause")).expect("logged");
    assert!(cause.contains("request_id=seven"), "{cause}");
}

#[tokio::test]
async fn what_fails_in_a_task_of_its_own_is_logged_under_its_request() {
    let (lines, _log) = Lines::capture("warn");
    let failing =
        [LedgerError::Refused("secret cause".into()), LedgerError::Fault("secret cause".into())];
    for error in failing {
        let work = async { Err::<(), _>(error) };
        let failed = working_for("eight".into(), crate::web::finish(work)).await;
        failed.expect_err("it fails");
    }
    let text = lines.text();
    let causes: Vec<&str> = text.lines().filter(|line| line.contains("secret cause")).collect();
    assert_eq!(causes.len(), 2, "{text}");
    assert!(causes.iter().all(|line| line.contains("request_id=eight")), "{text}");
}

#[tokio::test]
async fn a_slow_request_is_warned_of_with_the_path_that_served_it() {
    let (lines, _log) = Lines::capture("warn");
    let call = |slow_after, id: &str| {
        let request = get_request("/api/v1/document-numbering/numbers").header(REQUEST_ID, id);
        let request = request.body(Body::empty()).expect("request");
        router_with(Vec::new(), slow_after).oneshot(request)
    };
    call(Duration::from_secs(3_600), "quick").await.expect("infallible");
    call(Duration::ZERO, "slow").await.expect("infallible");
    let text = lines.text();
    let [line] = &text.lines().collect::<Vec<_>>()[..] else { panic!("one line: {text}") };
    for part in
        ["WARN", "request_id=slow", "slow request", "status=200", "served_by=\"redis\"", "took_ms="]
    {
        assert!(line.contains(part), "{part} is missing from {line}");
    }
}

#[test]
fn a_client_that_leaves_early_is_counted() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let clock = Arc::new(ManualClock::at(0));
        let (admission, call_log) = (admission(Hosts::Any), call_log(Duration::MAX));
        let middleware = Middleware::new(TABLE, admission, Metrics::new(), clock, call_log);
        let routes = Router::new().route(CONFIGS, get(std::future::pending::<String>));
        let request = get_request(CONFIGS).body(Body::empty()).expect("request");
        let mut call =
            Box::pin(crate::routes::behind(Arc::new(middleware), routes).oneshot(request));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(call.as_mut().poll(&mut context).is_pending());
        drop(call);
    });
    let text = handle.render();
    assert!(text.contains("status=\"499\"} 1"), "{text}");
}
