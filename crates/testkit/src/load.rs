//! Many concurrent callers, and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde_json::{Value, json};

/// What the callers of one load saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// Number by document, from 201 and 200 answers.
    pub numbers: BTreeMap<String, String>,
    /// Answers other than success, by status (0: no answer).
    pub failures: BTreeMap<u16, u64>,
    /// Requests whose first retry failed too, where the load counts them.
    pub failed_twice: u64,
    /// Longest time in which no caller got a number.
    pub longest_stall: Duration,
}

impl Seen {
    /// Panics unless every number was given to one document only.
    #[track_caller]
    pub fn assert_no_duplicate(&self) {
        let distinct: BTreeSet<&String> = self.numbers.values().collect();
        assert_eq!(distinct.len(), self.numbers.len(), "a number was handed out twice");
    }

    /// Panics unless the numbers are the first `count` of series LOAD, without a hole.
    pub fn assert_contiguous(&self, count: usize) {
        self.assert_no_duplicate();
        let distinct: BTreeSet<String> = self.numbers.values().cloned().collect();
        let expected: BTreeSet<String> = (1..=count).map(|n| format!("L-{n:08}")).collect();
        assert_eq!(distinct, expected);
    }
}

/// Asks for one number of series LOAD.
pub async fn take(client: &reqwest::Client, url: &str, document: &str) -> (u16, Value) {
    post(
        client,
        &format!("{url}/api/v1/documents/{document}/generate-number"),
        &json!({ "type": "LOAD" }),
    )
    .await
}

/// Posts JSON; status 0 where no answer came.
pub async fn post(client: &reqwest::Client, url: &str, body: &Value) -> (u16, Value) {
    match client.post(url).json(body).send().await {
        Ok(answer) => {
            let status = answer.status().as_u16();
            (status, answer.json().await.unwrap_or(Value::Null))
        }
        Err(error) => (0, json!({ "error": error.to_string() })),
    }
}

/// A load of a fixed number of documents from some connections, each trying again until answered.
pub async fn documents(url: &str, connections: usize, count: u64) -> Seen {
    let next = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    run(url, Callers::of(connections, "doc"), next, Some(count), stop).await
}

/// The same from one connection, of documents that begin with `name`.
pub async fn run_of(url: &str, name: &'static str, count: u64) -> Seen {
    let next = Arc::new(AtomicU64::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    run(url, Callers::of(1, name), next, Some(count), stop).await
}

/// Pause of a calm caller between two numbers.
const CALM: Duration = Duration::from_millis(10);

/// Callers of one load.
struct Callers {
    connections: usize,
    /// The prefix of their documents.
    name: &'static str,
    /// The headers that name the caller of each request.
    headers: HeaderMap,
    /// Pause of each between two numbers.
    pause: Duration,
}

impl Callers {
    /// Those that send the next request after each answer.
    fn of(connections: usize, name: &'static str) -> Self {
        Callers { connections, name, headers: HeaderMap::new(), pause: Duration::ZERO }
    }
}

/// A load that runs until it is stopped.
pub struct Running {
    stop: Arc<AtomicBool>,
    given: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<Seen>,
}

impl Running {
    /// Starts the callers; each new document is requested once, and again while it fails.
    pub fn start(url: &str, connections: usize) -> Self {
        Self::start_as(url, connections, "doc")
    }

    /// Starts callers whose documents begin with `name`.
    pub fn start_as(url: &str, connections: usize, name: &'static str) -> Self {
        Self::start_callers(url, Callers::of(connections, name))
    }

    /// Starts callers that show a bearer token and pause between two numbers: the test runs under
    /// load, and has the machine for itself most of the time.
    ///
    /// # Panics
    /// With a token that no header takes.
    pub fn start_calm(url: &str, connections: usize, name: &'static str, token: &str) -> Self {
        let bearer = HeaderValue::try_from(format!("Bearer {token}")).expect("a token");
        let headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        Self::start_callers(url, Callers { connections, name, headers, pause: CALM })
    }

    fn start_callers(url: &str, callers: Callers) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let given = Arc::new(AtomicU64::new(0));
        let (url, flag, counter) = (url.to_owned(), Arc::clone(&stop), Arc::clone(&given));
        let task = tokio::spawn(async move { run(&url, callers, counter, None, flag).await });
        Running { stop, given, task }
    }

    /// Waits until the callers have requested so many documents.
    pub async fn reach(&self, count: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.given.load(Ordering::Relaxed) < count {
            assert!(Instant::now() < deadline, "the load does not get to {count}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many documents were requested so far.
    pub fn asked(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Ends the load; its results.
    pub async fn finish(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.task.await.unwrap()
    }
}

async fn run(
    url: &str,
    callers: Callers,
    next: Arc<AtomicU64>,
    count: Option<u64>,
    stop: Arc<AtomicBool>,
) -> Seen {
    let Callers { connections, name, headers, pause } = callers;
    let started = Instant::now();
    let last_us = Arc::new(AtomicU64::new(0));
    let stall_us = Arc::new(AtomicU64::new(0));
    let mut callers = Vec::new();
    for _ in 0..connections {
        let (url, next, stop) = (url.to_owned(), Arc::clone(&next), Arc::clone(&stop));
        let (last_us, stall_us) = (Arc::clone(&last_us), Arc::clone(&stall_us));
        let client = crate::client_builder().default_headers(headers.clone());
        callers.push(tokio::spawn(async move {
            let client = client.pool_max_idle_per_host(1).build().unwrap();
            let mut seen = Seen::default();
            while !stop.load(Ordering::Relaxed) {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if count.is_some_and(|count| index >= count) {
                    break;
                }
                let document = format!("{name}-{index}");
                if let Some(number) = insist(&client, &url, &document, &stop, &mut seen).await {
                    seen.numbers.insert(document, number);
                    let now_us = u64::try_from(started.elapsed().as_micros()).unwrap();
                    let stalled_us = now_us.saturating_sub(last_us.swap(now_us, Ordering::AcqRel));
                    stall_us.fetch_max(stalled_us, Ordering::AcqRel);
                }
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
            }
            seen
        }));
    }
    let mut all = Seen::default();
    for caller in callers {
        let seen = caller.await.unwrap();
        all.numbers.extend(seen.numbers);
        for (status, failures) in seen.failures {
            *all.failures.entry(status).or_default() += failures;
        }
    }
    all.longest_stall = Duration::from_micros(stall_us.load(Ordering::Acquire));
    all
}

/// Asks for one document's number until there is an answer, as a client that retries would.
async fn insist(
    client: &reqwest::Client,
    url: &str,
    document: &str,
    stop: &AtomicBool,
    seen: &mut Seen,
) -> Option<String> {
    loop {
        let (status, body) = take(client, url, document).await;
        if status == 201 || status == 200 {
            return Some(body["document_number"].as_str().unwrap().to_owned());
        }
        *seen.failures.entry(status).or_default() += 1;
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
