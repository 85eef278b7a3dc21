//! A source that many ask: one caller has at most half of its places, the others find theirs, and
//! its refusals fill no log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::service::Service;
use tokio::sync::{Semaphore, watch};

use crate::deployment::Deployment;

/// `external.erp.concurrency_max` here.
const PLACES: usize = 8;

/// Longest wait for a signal; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Log lines of refusals in a second here.
const LINES_MAX: usize = 3;

/// A source that gives each document a number of its own, those of `greedy` on the test's signal.
#[derive(Clone)]
struct Erp {
    given: Arc<std::sync::atomic::AtomicUsize>,
    /// Calls for documents of `greedy` that it has now, and the most that it ever had.
    held: watch::Sender<(usize, usize)>,
    go: Arc<Semaphore>,
}

async fn answer(State(erp): State<Erp>, body: String) -> (StatusCode, String) {
    let asked: Value = serde_json::from_str(&body).unwrap();
    let document = asked["document_id"].as_str().unwrap();
    if document.starts_with("refused") {
        return (StatusCode::UNPROCESSABLE_ENTITY, String::new());
    }
    if document.starts_with("greedy") {
        erp.held.send_modify(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
        erp.go.acquire().await.unwrap().forget();
        erp.held.send_modify(|(now, _)| *now -= 1);
    }
    let value = erp.given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    (StatusCode::OK, json!({ "value": value.to_string() }).to_string())
}

struct Stand {
    erp: Erp,
    _deployment: Deployment,
    service: Service,
    /// Of `greedy` and of `modest`.
    tokens: [String; 2],
}

impl Stand {
    async fn start() -> Self {
        let erp = Erp {
            given: Arc::default(),
            held: watch::Sender::new((0, 0)),
            go: Arc::new(Semaphore::new(0)),
        };
        let router = Router::new().route("/next", post(answer)).with_state(erp.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/next", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut deployment = Deployment::embedded();
        deployment.extra = format!(
            "[auth]\nmode = \"on\"\n[log]\nrefused_per_second_max = {LINES_MAX}\n[external.erp]\n\
             address = \"{url}\"\ntime_limit = \"30s\"\nattempts_max = 1\n\
             concurrency_max = {PLACES}\n"
        );
        let file = deployment.path("contract.toml");
        let series = "[[series]]\ncode = \"HT\"\nname = \"HT\"\npolicy = \"gapless\"\n\
            template = \"HT{ERP}\"\nserves = { types = [\"HT\"] }\n[series.variables.ERP]\n\
            source = \"erp\"\nalphabet = \"0-9\"\nwidth_max = 12\n";
        std::fs::write(&file, series).unwrap();
        deployment.apply(&[file]);
        let tokens = ["greedy", "modest"]
            .map(|name| deployment.ok(&["token", "create", name]).trim().to_owned());
        let service = deployment.serve();
        Stand { erp, _deployment: deployment, service, tokens }
    }

    /// Status, and the problem's code if there is one.
    async fn take(&self, token: usize, document: String) -> (u16, String) {
        let url = format!("{}/api/v1/documents/{document}/generate-number", self.service.url);
        let order = testkit::client().post(url).bearer_auth(&self.tokens[token]);
        let answer = order.json(&json!({ "type": "HT" })).send().await.unwrap();
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        (status, body["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// Goal: a caller that asks a source for much at once takes no place from another. Method: the
/// source blocks all calls for one caller, and answers the other.
#[tokio::test(flavor = "multi_thread")]
async fn one_caller_holds_half_of_a_source_and_the_others_are_answered() {
    let stand = Arc::new(Stand::start().await);
    let greedy: Vec<_> = (0..64)
        .map(|index| {
            let stand = Arc::clone(&stand);
            tokio::spawn(async move { stand.take(0, format!("greedy-{index}")).await })
        })
        .collect();
    let mut held = stand.erp.held.subscribe();
    let waited = tokio::time::timeout(LIMIT, held.wait_for(|(now, _)| *now >= PLACES / 2));
    waited.await.unwrap().unwrap();
    for index in 0..24 {
        let taken = stand.take(1, format!("modest-{index}")).await;
        assert_eq!(taken, (201, String::new()), "one after the other");
    }
    let at_once = (0..24).map(|index| stand.take(1, format!("many-{index}")));
    for taken in join_all(at_once).await {
        assert_eq!(taken, (201, String::new()), "some wait a moment for their places");
    }
    stand.erp.go.add_permits(64);
    let mut statuses: Vec<(u16, String)> = Vec::new();
    for taken in greedy {
        statuses.push(taken.await.unwrap());
    }
    let of = |wanted: u16| statuses.iter().filter(|(status, _)| *status == wanted).count();
    assert_eq!(of(201) + of(503), 64, "{statuses:?}");
    assert!(of(201) >= PLACES / 2, "{statuses:?}");
    let refused = statuses.iter().find(|(status, _)| *status == 503);
    assert!(refused.is_none_or(|(_, code)| code == "external-unavailable"), "{refused:?}");
    assert_eq!(held.borrow().1, PLACES / 2, "never more of one caller");
    // All places are free again.
    assert_eq!(stand.take(0, "again".into()).await, (201, String::new()));
}

#[tokio::test]
async fn what_a_source_refuses_fills_no_log_and_the_rest_is_counted() {
    let stand = Stand::start().await;
    let began = Instant::now();
    for index in 0..60 {
        let refused = stand.take(0, format!("refused-{index}")).await;
        assert_eq!(refused, (502, "external-refused".to_owned()));
    }
    // A second is counted from its first line: what lasts less than one can touch two.
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    let lines = stand.service.log();
    let lines = lines.lines().filter(|line| line.contains("a source of numbers refuses")).count();
    assert!((1..=LINES_MAX * seconds).contains(&lines), "{lines} lines in {seconds} s");
    let deadline = Instant::now() + LIMIT;
    while !stand.service.log().contains("numerator_external_calls_total counts them all") {
        assert!(Instant::now() < deadline, "{}", stand.service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
