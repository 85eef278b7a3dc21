//! Series whose numbers come from outside: asked once for each document, refused if a value comes
//! twice, and never two numbers for one document, whatever the source does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use testkit::load;
use testkit::postgres::Postgres;
use testkit::service::Service;
use tokio::sync::{Semaphore, watch};

use crate::deployment::Deployment;

/// What the source does with its next call.
#[derive(Clone, Debug)]
enum Act {
    /// Gives this value.
    Give(&'static str),
    /// Gives it when the test allows it.
    GiveLate(&'static str),
    /// Answers this status.
    Say(u16),
    /// Answers nothing until the test ends.
    Silence,
}

/// A source that does one thing after the other. It gives a key the value that it gave it before,
/// as a source should, unless it is to give another one.
#[derive(Clone)]
struct Erp {
    acts: Arc<Mutex<VecDeque<Act>>>,
    /// Keys and documents of the calls so far.
    calls: Arc<Mutex<Vec<(String, Value)>>>,
    count: watch::Sender<usize>,
    go: Arc<Semaphore>,
}

impl Erp {
    async fn start() -> (Self, String) {
        let erp = Erp {
            acts: Arc::default(),
            calls: Arc::default(),
            count: watch::Sender::new(0),
            go: Arc::new(Semaphore::new(0)),
        };
        let router = Router::new().route("/next", post(answer)).with_state(erp.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/next", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (erp, url)
    }

    /// What it does next.
    fn will(&self, acts: &[Act]) {
        *self.acts.lock().unwrap() = acts.iter().cloned().collect();
    }

    /// How often it was asked, and by how many keys.
    fn asked(&self) -> (usize, usize) {
        let calls = self.calls.lock().unwrap();
        let keys: BTreeMap<_, _> = calls.iter().map(|(key, body)| (key, body)).collect();
        (calls.len(), keys.len())
    }
}

async fn answer(State(erp): State<Erp>, headers: HeaderMap, body: String) -> (StatusCode, String) {
    let key = headers["idempotency-key"].to_str().unwrap().to_owned();
    assert_eq!(headers["authorization"], "Bearer s3cret");
    erp.calls.lock().unwrap().push((key, serde_json::from_str(&body).unwrap()));
    let act = erp.acts.lock().unwrap().pop_front();
    erp.count.send_modify(|count| *count += 1);
    let value = match act {
        Some(Act::Give(value)) => value,
        Some(Act::GiveLate(value)) => {
            erp.go.acquire().await.unwrap().forget();
            value
        }
        Some(Act::Say(status)) => {
            return (StatusCode::from_u16(status).unwrap(), "secret reason".into());
        }
        Some(Act::Silence) => std::future::pending().await,
        None => panic!("nobody should ask"),
    };
    (StatusCode::OK, json!({ "value": value, "unknown": true }).to_string())
}

const SERIES: &str = "[[series]]\ncode = \"CONTRACT\"\nname = \"Contract numbers of the ERP\"\n\
    policy = \"gapless\"\ntemplate = \"HT{ERP}\"\nserves = { types = [\"HT\"] }\n\
    [series.variables.ERP]\nsource = \"erp\"\nalphabet = \"0-9\"\nwidth_max = 12\n";

struct Stand {
    erp: Erp,
    deployment: Deployment,
    service: Service,
    client: Client,
}

impl Stand {
    async fn on(mut deployment: Deployment, time_limit: &str) -> Self {
        let (erp, url) = Erp::start().await;
        let token = deployment.path("token");
        std::fs::write(&token, "s3cret\n").unwrap();
        // Continues the section of whatever precedes it.
        deployment.extra = format!(
            "[external.erp]\naddress = \"{url}\"\ntime_limit = \"{time_limit}\"\nattempts_max = 2\n\
             token_file = \"{}\"\n",
            token.display()
        );
        let file = deployment.path("contract.toml");
        std::fs::write(&file, SERIES).unwrap();
        deployment.apply(&[file]);
        let service = deployment.serve();
        Stand { erp, deployment, service, client: testkit::client() }
    }

    async fn take_with(&self, document: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/api/v1/documents/{document}/generate-number", self.service.url);
        load::post(&self.client, &url, body).await
    }

    /// Status and number, or the problem's code with what it says of a retry.
    async fn take(&self, document: &str) -> (u16, String) {
        let (status, body) = self.take_with(document, &order()).await;
        match body["document_number"].as_str() {
            Some(number) => (status, number.to_owned()),
            None => (status, format!("{} {}", text(&body["code"]), body["retryable"])),
        }
    }

    async fn post(&self, route: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/api/v1/document-numbering/{route}", self.service.url);
        load::post(&self.client, &url, body).await
    }
}

fn order() -> Value {
    json!({ "type": "HT", "date": "2026-01-22" })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn got(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

/// Goal: a document has one number, whatever happens to the source, and a value one document.
async fn numbers_come_from_the_source(deployment: Deployment) {
    let stand = Stand::on(deployment, "500ms").await;
    let erp = &stand.erp;
    erp.will(&[Act::Give("4711")]);
    assert_eq!(stand.take("d1").await, got(201, "HT4711"));
    // A retry is no question of the source.
    assert_eq!((stand.take("d1").await, erp.asked()), (got(200, "HT4711"), (1, 1)));
    let asked = erp.calls.lock().unwrap()[0].1.clone();
    let question = json!({
        "series": "CONTRACT", "type": "HT", "project": null, "date": "2026-01-22",
        "document_id": "d1", "context": {},
    });
    assert_eq!(asked, question);

    // It is slow twice, and the same request asks under the same key later.
    erp.will(&[Act::Silence, Act::Silence]);
    let away = got(503, "external-unavailable true");
    assert_eq!((stand.take("d2").await, erp.asked()), (away, (3, 2)));
    erp.will(&[Act::Give("4712")]);
    assert_eq!((stand.take("d2").await, erp.asked()), (got(201, "HT4712"), (4, 2)));
    assert_eq!(stand.take("d2").await, got(200, "HT4712"));

    // Another number on purpose is another request, and its retry none.
    let again = json!({ "type": "HT", "date": "2026-01-22", "again": true });
    erp.will(&[Act::Give("4720")]);
    let taken = [stand.take_with("d2", &again).await, stand.take_with("d2", &again).await];
    assert!(taken.iter().all(|(_, body)| text(&body["document_number"]) == "HT4720"), "{taken:?}");
    assert_eq!(erp.asked(), (5, 3));

    // A value that came before is refused, and the document numbered with the next one.
    erp.will(&[Act::Give("4711"), Act::Give("4713")]);
    let taken = got(502, "external-number-taken false");
    assert_eq!(stand.take("d3").await, taken);
    assert_eq!((stand.take("d3").await, erp.asked()), (got(201, "HT4713"), (7, 4)));

    assert!(stand.service.terminate());
    stand.deployment.assert_clean();
}

/// Goal: whatever the source says that is not a value is distinguished and takes nothing, and what
/// can be refused is refused before it is asked.
async fn what_is_no_value_is_told_apart(deployment: Deployment) {
    let stand = Stand::on(deployment, "500ms").await;
    let erp = &stand.erp;
    erp.will(&[Act::Give("4711"), Act::Give("4711")]);
    assert_eq!(stand.take("d1").await, got(201, "HT4711"));
    assert_eq!(stand.take("d2").await, got(502, "external-number-taken false"));
    // Nothing of what it says is shown.
    for (act, problem) in [
        (Act::Say(409), got(503, "external-unavailable true")),
        (Act::Say(302), got(502, "external-refused false")),
        (Act::Say(422), got(502, "external-refused false")),
        (Act::Give("47a"), got(502, "external-invalid false")),
        (Act::Give(""), got(502, "external-invalid false")),
        (Act::Give("1234567890123"), got(502, "external-invalid false")),
    ] {
        erp.will(&[act.clone(), act.clone()]);
        let (status, body) = stand.take_with("d4", &order()).await;
        let found = (status, format!("{} {}", text(&body["code"]), body["retryable"]));
        assert_eq!((found, &body["number_taken"]), (problem, &json!("no")), "{act:?}");
        assert!(!body.to_string().contains("secret"), "{body}");
    }
    let before = erp.asked();
    let brought = json!({ "type": "HT", "context": { "ERP": "4799" } });
    let (status, body) = stand.take_with("d4", &brought).await;
    assert_eq!((status, text(&body["field"])), (422, "context.ERP"), "{body}");
    let (status, body) = stand.post("batches", &json!({ "type": "HT", "count": 2 })).await;
    assert_eq!((status, text(&body["field"])), (422, "count"), "{body}");
    let (status, body) = stand.post("preview", &order()).await;
    assert_eq!((status, text(&body["document_number"])), (200, "HT000000000000"), "{body}");
    let other = json!({
        "code": "SAP", "name": "SAP", "policy": "gapless", "template": "S{SAP}",
        "serves": { "types": ["SAP"] }, "variables": { "SAP": { "source": "sap" } },
        "reason": "test",
    });
    let (status, body) = stand.post("configs?dry_run=true", &other).await;
    let warning = text(&body["warnings"][0]);
    assert!(status == 200 && warning.contains("set external.sap.address"), "{body}");
    assert_eq!(erp.asked(), before, "what can be refused is refused before");

    // Each document of a list asks for itself.
    let document = |id: &str| json!({ "document_id": id, "type": "HT" });
    erp.will(&[Act::Give("4714"), Act::Give("4715")]);
    let list = json!({ "documents": [document("d5"), document("d1"), document("d6")] });
    let (_, body) = stand.post("batches", &list).await;
    let items = body["items"].as_array().unwrap();
    let statuses: Vec<_> = items.iter().map(|item| item["status"].as_u64().unwrap()).collect();
    // A different payload is a conflict.
    assert_eq!(statuses, [201, 409, 201], "{body}");

    let log = stand.service.log();
    assert!(log.contains("source") && !log.contains("s3cret"), "{log}");
    let metrics = testkit::get(format!("{}/metrics", stand.service.url)).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for (outcome, count) in [("taken", 1), ("invalid", 3), ("refused", 2), ("unavailable", 1)] {
        let line = format!("numerator_external_calls_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    let events = stand.deployment.ok(&["events"]);
    assert!(!events.contains("collision"), "{events}");
    assert!(stand.service.terminate());
    stand.deployment.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_numbers_each_document_once_on_the_embedded_ledger() {
    numbers_come_from_the_source(Deployment::embedded()).await;
    what_is_no_value_is_told_apart(Deployment::embedded()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_numbers_each_document_once_on_postgresql() {
    let postgres = Postgres::start();
    numbers_come_from_the_source(Deployment::new(&postgres.url("sources"), None)).await;
}

/// Goal: two requests for one document at once, and a source that breaks its promise and gives each
/// another value, or two documents one value: one number, and the other request finds it. Method:
/// the source answers once it has been asked by both.
#[tokio::test(flavor = "multi_thread")]
async fn requests_at_once_for_one_document_or_of_one_value_get_one_number() {
    let stand = Stand::on(Deployment::embedded(), "20s").await;
    let erp = &stand.erp;
    let both = |one: &'static str, other: &'static str, values: [&'static str; 2]| {
        let stand = &stand;
        async move {
            let erp = &stand.erp;
            erp.will(&values.map(Act::GiveLate));
            let due = *erp.count.borrow() + 2;
            let mut count = erp.count.subscribe();
            let asked = async {
                let limit = Duration::from_secs(30);
                let waited = tokio::time::timeout(limit, count.wait_for(|count| *count >= due));
                waited.await.unwrap().unwrap();
                erp.go.add_permits(2);
            };
            let (mut answers, ()) =
                tokio::join!(join_all([stand.take(one), stand.take(other)]), asked);
            answers.sort();
            answers
        }
    };
    let answers = both("d1", "d1", ["1", "2"]).await;
    assert_eq!([answers[0].0, answers[1].0], [200, 201], "{answers:?}");
    assert_eq!(answers[0].1, answers[1].1);
    assert_eq!(erp.asked(), (2, 1));
    let answers = both("d2", "d3", ["3", "3"]).await;
    assert_eq!(answers, [got(201, "HT3"), got(502, "external-number-taken false")]);
    stand.deployment.assert_clean();
}
