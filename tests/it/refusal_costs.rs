//! What refusals cost other callers: a thousand of the most expensive of each kind, in one batch,
//! delay a probe no longer than an answer takes. And what the first few of them say.

mod dear;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use numerator::web::Slug;
use reqwest::Client;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use testkit::service::Service;

use crate::deployment::Deployment;
use dear::{DOCUMENTS, documents};

/// Longest that `/healthz` may take meanwhile, over what an idle service takes beside it.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// How often it is tried: the machine may be busy with something else, but not each time.
const TRIES: usize = 4;

/// Refusals of a batch that say what would have been right.
const HINTS_MAX: usize = 10;

/// By constant words, without a search: they cost what those of `external-unavailable` do, or what
/// that of the neighbouring kind does.
const WORDS: [&str; 19] = [
    "database-connection",
    "lock-timeout",
    "series-changed",
    "ceiling-reached",
    "outbox-full",
    "queue-full",
    "redis-unavailable",
    "partition-held",
    "clock-behind",
    "number-not-journaled",
    "node-numbers-held",
    "stopping",
    "internal",
    // `sequence-exhausted`: by the same answer of the counter.
    "counter-below-start",
    // `too-many-requests`: no place in which to look for what already exists.
    "checks-full",
    // `document-already-numbered`: by the same question of the ledger.
    "document-archived",
    "document-reserved",
    // `template-ambiguous`: by the same refusal of the ledger.
    "external-number-taken",
    // `unknown-type`: by the same choice, and two codes; a save distinguishes series.
    "series-ambiguous",
];

/// What a limit refuses, which has a test of its own: that service has callers with tokens.
const OVER_LIMIT: &str = "too-many-requests";

/// Those that no document of a batch has: they are of the call, before any document of it is read,
/// or of calls that take no numbers.
const OF_OTHER_CALLS: [&str; 51] = [
    "invalid-host",
    "unauthenticated",
    "host-not-allowed",
    "cross-site",
    "not-permitted",
    "route-not-found",
    "method-not-allowed",
    "body-timeout",
    "body-too-large",
    "unsupported-media-type",
    "unknown-transfer-coding",
    "own-change",
    "table-not-found",
    "config-not-found",
    "token-not-found",
    "change-not-found",
    "number-not-found",
    "document-not-numbered",
    "step-not-found",
    "version-conflict",
    "token-name-taken",
    "token-revoked",
    "change-answered",
    "below-least-allowed",
    "code-taken",
    "series-in-use",
    "revisions-exhausted",
    "number-voided",
    "not-voided",
    "already-replaced",
    "number-archived",
    "number-reserved",
    "number-collided",
    "number-taken",
    "reservation-not-found",
    "reservation-confirmed",
    "is-a-block",
    "reservation-handed-back",
    "other-document",
    "reservation-expired",
    "reservation-cancelled",
    "reservation-lost",
    "older-process",
    "series-unread",
    "reservations-full",
    "interface-serial-repeated",
    "state-unknown",
    "already-processed",
    "attempt-not-current",
    "precondition-required",
    "not-ready",
];

/// A service and everything that makes its refusals expensive.
struct Stand {
    _deployments: [Deployment; 2],
    service: Service,
    /// Asked by nobody else: its answers wait for the machine alone.
    idle: Service,
    client: Client,
}

/// Documents with the most expensive refusals of a kind, as JSON, and the key of their batch.
struct Dear {
    documents: Vec<String>,
    key: Option<&'static str>,
}

impl Stand {
    fn of(deployment: Deployment, client: Client) -> Self {
        let other = Deployment::embedded();
        let (service, idle) = (deployment.serve(), other.serve());
        Stand { _deployments: [deployment, other], service, idle, client }
    }

    /// How much longer than the idle service the asked one lets a probe wait, meanwhile.
    async fn excess<T>(&self, meanwhile: impl Future<Output = T>) -> (Duration, T) {
        let (asked, idle) = (Probe::start(&self.service), Probe::start(&self.idle));
        let outcome = meanwhile.await;
        (asked.longest().await.saturating_sub(idle.longest().await), outcome)
    }

    /// Sends a batch; the problem of each document, or nothing.
    async fn batch(&self, documents: &[String], key: Option<&str>) -> Vec<Value> {
        let body = format!("{{\"documents\":[{}]}}", documents.join(","));
        let url = format!("{}/api/v1/document-numbering/batches", self.service.url);
        let request = self.client.post(url).header("content-type", "application/json").body(body);
        let request = key.iter().fold(request, |asked, key| asked.header("idempotency-key", *key));
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        let items = answer["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
        items.iter().map(|item| item["problem"].clone()).collect()
    }

    /// Takes what has to be taken before a refusal.
    async fn take(&self, documents: &[String], key: Option<&str>) {
        let refused = self.batch(documents, key).await;
        let refused: Vec<_> = refused.iter().filter(|problem| !problem.is_null()).collect();
        assert!(refused.is_empty(), "{:?}", refused.first());
    }
}

/// Asks `/healthz` all the time, and remembers the longest wait for an answer.
struct Probe {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<Duration>,
}

impl Probe {
    fn start(service: &Service) -> Self {
        let (stop, url) = (Arc::new(AtomicBool::new(false)), format!("{}/healthz", service.url));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let (client, mut longest) = (testkit::client(), Duration::ZERO);
            // The first answer opens the connection.
            client.get(&url).send().await.unwrap();
            while !stopped.load(Ordering::Acquire) {
                let began = Instant::now();
                let answer = client.get(&url).send().await.unwrap();
                assert_eq!(answer.status(), 200);
                longest = longest.max(began.elapsed());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            longest
        });
        Probe { stop, task }
    }

    async fn longest(self) -> Duration {
        self.stop.store(true, Ordering::Release);
        self.task.await.unwrap()
    }
}

/// Sends the most expensive refusals of a kind; returns how much longer a probe waits meanwhile.
async fn longest_wait(stand: &Stand, slug: &str, attempt: usize) -> Duration {
    let Dear { documents, key } = stand.dearest(slug, attempt).await;
    assert_eq!(documents.len(), DOCUMENTS);
    let began = Instant::now();
    let (waited, problems) = stand.excess(stand.batch(&documents, key)).await;
    let took = began.elapsed();
    // A ledger that does not answer on a busy machine is a try that failed, and no other refusal.
    if problems.iter().any(|problem| problem["code"] == "database-connection") {
        println!("{slug}: the ledger did not answer, the batch {took:?}");
        return 2 * WAIT_MAX;
    }
    // A source has this many places for one caller.
    let is_other = |problem: &&Value| {
        problem["code"] != slug
            && !(slug.starts_with("external") && problem["code"] == "external-unavailable")
    };
    assert_eq!(problems.iter().find(is_other), None, "{slug}");
    assert!(problems.iter().any(|problem| problem["code"] == slug), "{slug}");
    println!("{slug}: /healthz at most {waited:?} longer, the batch {took:?}");
    waited
}

/// The shortest of a few tries.
async fn shortest(wait: impl AsyncFn(usize) -> Duration) -> Duration {
    let mut shortest = Duration::MAX;
    for attempt in 0..TRIES {
        shortest = shortest.min(wait(attempt).await);
        // A value that is far too long is not tried again.
        if shortest < WAIT_MAX || shortest > 10 * WAIT_MAX {
            break;
        }
    }
    shortest
}

/// Goal: one caller's refusals delay no other caller's answer. Method: the most expensive refusal
/// of each kind, a thousand in a batch, next to a probe, and one of an idle service. A kind
/// that no list here has fails it.
/// What it does not show: other load, and what refusals cost the refused caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_thousand_of_the_dearest_refusals_of_each_kind_keep_no_probe_waiting() {
    let stand = Stand::start().await;
    let mut too_long = Vec::new();
    for slug in Slug::ALL.iter().map(|slug| slug.name()) {
        if WORDS.contains(&slug) || OF_OTHER_CALLS.contains(&slug) || slug == OVER_LIMIT {
            continue;
        }
        let shortest = shortest(async |attempt| longest_wait(&stand, slug, attempt).await).await;
        if shortest >= WAIT_MAX {
            too_long.push(format!("{slug}: /healthz took {shortest:?} longer"));
        }
    }
    assert!(too_long.is_empty(), "{too_long:#?}");
    assert!(stand.service.terminate());
}

/// The same for a list over the caller's limit: each of its documents is looked up among those that
/// already have a number. One of them has, so that the others are refused one by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_thousand_documents_over_a_limit_keep_no_probe_waiting() {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[auth]\nmode = \"on\"\n[limits]\nuser_per_minute = 1\n".into();
    let token = deployment.ok(&["token", "create", "erp", "--speaks-for-people"]);
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {}", token.trim()).parse().unwrap());
    headers.insert("on-behalf-of", "ann".parse().unwrap());
    let client = testkit::client_builder().default_headers(headers).build().unwrap();
    let stand = Stand::of(deployment, client);
    let documents = documents(&json!({ "type": "SPO", "date": "2024-01-22" }));
    stand.take(&documents[..1], None).await;
    let wait = async |_| {
        let (waited, problems) = stand.excess(stand.batch(&documents, None)).await;
        assert_eq!(problems[0], Value::Null, "it has its number");
        // One more is admitted with each minute.
        let refused = problems.iter().filter(|problem| problem["code"] == OVER_LIMIT).count();
        assert!(refused > DOCUMENTS - 10, "{refused}");
        println!("{OVER_LIMIT}: /healthz at most {waited:?} longer");
        waited
    };
    let shortest = shortest(wait).await;
    assert!(shortest < WAIT_MAX, "/healthz took {shortest:?} longer");
    assert!(stand.service.terminate());
}

#[tokio::test]
async fn of_a_batch_the_first_ten_refusals_say_what_would_have_been_right() {
    let deployment = Deployment::embedded();
    let more = "serials = [{ counter = [\"type\"] }]\n[series.variables.V]\nvalues = [\"ACME\"]\n\
                excluded = \"-\"";
    let file = deployment.path("values.toml");
    std::fs::write(&file, dear::series("VALUES", "{V}-{SEQ:3}", "\"VALUES\"", more)).unwrap();
    deployment.apply(&[file]);
    let stand = Stand::of(deployment, testkit::client());
    for (asked, says) in [
        (json!({ "type": "VALUES", "context": { "V": "ACNE" } }), "nearest is \"ACME\""),
        (json!({ "type": "VALUE" }), "VALUES"),
    ] {
        let documents = &documents(&asked)[..HINTS_MAX + 5];
        let told = stand.batch(documents, None).await;
        let is_told = |problem: &Value| problem["detail"].as_str().unwrap().contains(says);
        assert_eq!(told.iter().filter(|problem| is_told(problem)).count(), HINTS_MAX, "{told:?}");
        assert!(told.iter().take(HINTS_MAX).all(is_told), "{told:?}");
        for problem in &told[HINTS_MAX..] {
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("send the request alone"), "{detail}");
        }
        // Only one is reported, however many were refused before.
        let url = format!("{}/api/v1/documents/d1/generate-number", stand.service.url);
        let (_, alone) = testkit::load::post(&stand.client, &url, &asked).await;
        assert!(is_told(&alone), "{alone}");
    }
}
