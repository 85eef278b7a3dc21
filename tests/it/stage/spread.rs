//! A load over many series and counters: each series has callers of its own, so that one that has
//! stopped does not hide that the others continue.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use serde_json::json;

use testkit::load::{Seen, post};

/// Codes of the series, which spread them over all eight partitions.
pub(super) const CODES: [&str; 12] = ["A", "B", "C", "D", "E", "G", "H", "I", "J", "K", "L", "Y"];

/// Counters of each series.
const TEAMS: u64 = 10;

/// Callers of each series, shared by the nodes.
const CALLERS: usize = 2;

/// How long a series may go without a number.
const LIMIT: Duration = Duration::from_secs(30);

/// The series' file.
pub(super) fn series_file() -> String {
    let mut text = String::new();
    for code in CODES {
        write!(
            text,
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\n\
             template = \"{code}-{{TEAM}}-{{SEQ:8}}\"\nserves = {{ types = [\"{code}\"] }}\n\
             [series.variables]\nTEAM = {{ required = true, alphabet = \"0-9\", width_max = 3 }}\n\
             [[series.serials]]\ncounter = [\"type\", \"TEAM\"]\n"
        )
        .unwrap();
    }
    text
}

/// A load that runs until it is stopped.
pub(super) struct Spread {
    shared: Arc<Shared>,
    callers: Vec<tokio::task::JoinHandle<Caller>>,
}

struct Shared {
    urls: RwLock<Vec<String>>,
    stop: AtomicBool,
    refusals: AtomicU64,
    answered: Vec<AtomicU64>,
}

/// One caller and what it saw.
struct Caller {
    name: String,
    series: usize,
    node: usize,
    numbers: BTreeMap<String, String>,
    failures: BTreeMap<u16, u64>,
    failed_twice: u64,
    longest_stall: Duration,
}

impl Spread {
    /// Starts the callers, evenly over the nodes.
    pub(super) fn start(urls: Vec<String>) -> Self {
        let answered = (0..CODES.len()).map(|_| AtomicU64::new(0)).collect();
        let shared = Arc::new(Shared {
            urls: RwLock::new(urls),
            stop: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
            answered,
        });
        let mut callers = Vec::new();
        for (series, code) in CODES.iter().enumerate() {
            for node in 0..CALLERS {
                let name = format!("{code}-{node}");
                let caller = Caller {
                    name,
                    series,
                    node,
                    numbers: BTreeMap::new(),
                    failures: BTreeMap::new(),
                    failed_twice: 0,
                    longest_stall: Duration::ZERO,
                };
                callers.push(tokio::spawn(caller.run(Arc::clone(&shared))));
            }
        }
        Spread { shared, callers }
    }

    /// Waits until each of the series that `which` names got this many more numbers; otherwise
    /// names those that did not.
    pub(super) async fn advance(
        &self,
        count: u64,
        which: impl Fn(usize) -> bool,
    ) -> Result<(), Vec<&str>> {
        let read = |series: usize| self.shared.answered[series].load(Ordering::Relaxed);
        let goals: Vec<(usize, u64)> =
            (0..CODES.len()).filter(|&s| which(s)).map(|s| (s, read(s) + count)).collect();
        assert!(!goals.is_empty(), "no series to wait for");
        let deadline = Instant::now() + LIMIT;
        loop {
            let late = goals.iter().filter(|&&(series, goal)| read(series) < goal);
            let late: Vec<&str> = late.map(|&(series, _)| CODES[series]).collect();
            if late.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(late);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// How many requests were refused so far.
    pub(super) fn refusals(&self) -> u64 {
        self.shared.refusals.load(Ordering::Relaxed)
    }

    /// Makes callers ask one more node.
    pub(super) fn ask_too(&self, url: String) {
        self.shared.urls.write().unwrap().push(url);
    }

    /// Makes callers stop asking a node, as a balancer does before the node ends.
    pub(super) fn ask_no_more(&self, url: &str) {
        self.shared.urls.write().unwrap().retain(|known| known != url);
    }

    /// Ends the load; returns what was seen.
    pub(super) async fn finish(self) -> Seen {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut all = Seen::default();
        for caller in self.callers {
            let caller = caller.await.unwrap();
            all.numbers.extend(caller.numbers);
            for (status, failures) in caller.failures {
                *all.failures.entry(status).or_default() += failures;
            }
            all.failed_twice += caller.failed_twice;
            all.longest_stall = all.longest_stall.max(caller.longest_stall);
        }
        all
    }
}

impl Caller {
    /// Asks for one document after another, each until there is an answer.
    async fn run(mut self, shared: Arc<Shared>) -> Self {
        let client = testkit::client_builder().pool_max_idle_per_host(1).build().unwrap();
        let mut last = Instant::now();
        for index in 0.. {
            let document = format!("{}-{index}", self.name);
            let Some(number) = self.insist(&shared, &client, &document, index % TEAMS).await else {
                break;
            };
            self.numbers.insert(document, number);
            self.longest_stall = self.longest_stall.max(last.elapsed());
            last = Instant::now();
            shared.answered[self.series].fetch_add(1, Ordering::Relaxed);
        }
        self
    }

    /// A document's number; the other node is asked when one fails, as a balancer would.
    async fn insist(
        &mut self,
        shared: &Shared,
        client: &reqwest::Client,
        document: &str,
        team: u64,
    ) -> Option<String> {
        let body = json!({ "type": CODES[self.series], "context": { "TEAM": team.to_string() } });
        let mut attempts = 0;
        while !shared.stop.load(Ordering::Relaxed) {
            attempts += 1;
            let url = {
                let urls = shared.urls.read().unwrap();
                urls[self.node % urls.len()].clone()
            };
            let url = format!("{url}/api/v1/documents/{document}/generate-number");
            let (status, answer) = post(client, &url, &body).await;
            if status == 201 || status == 200 {
                return Some(answer["document_number"].as_str().unwrap().to_owned());
            }
            *self.failures.entry(status).or_default() += 1;
            shared.refusals.fetch_add(u64::from(status != 0), Ordering::Relaxed);
            self.failed_twice += u64::from(attempts == 2);
            self.node += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        None
    }
}
