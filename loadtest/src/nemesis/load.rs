//! The callers: what they ask for, and what they are given.
//!
//! Each caller has a home node. If that fails it asks the next one, with the same request, as a
//! client behind a balancer would, until it has its number. It never gives a request up while the
//! load runs, and keeps everything that it was ever given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use numerator::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::asking::{Addresses, Asker};
use super::orders::{BATCHES, GAPLESS, LINES, Order, Received, SUCCESSOR, TURNING, TYPES};
use super::plan::NODES;
use super::progress::Progress;

/// How old a document may be that is asked for again, if its number may later be moved to a file:
/// far younger than what moves, however long a fault delays its answer.
const REPEATED_WITHIN: Duration = Duration::from_secs(15);

/// Documents that a caller remembers to ask for again.
const REMEMBERED: usize = 256;

/// Everything that the callers of a load were given.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The first answer for each document.
    pub(super) received: Vec<Received>,
    /// Those of the gapless series, and when each was answered, in microseconds of UTC.
    pub(super) gapless: Vec<(Received, i64)>,
    /// Later answers for a document that differ from the first one.
    pub(super) second: Vec<Received>,
    /// Repeated requests that were answered.
    pub(super) repeated: u64,
    /// Those for a number from before the turn, without a date, after it.
    pub(super) across: u64,
    /// Documents without a number at the end.
    pub(super) unanswered: u64,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.received.extend(other.received);
        self.gapless.extend(other.gapless);
        self.second.extend(other.second);
        self.repeated += other.repeated;
        self.across += other.across;
        self.unanswered += other.unanswered;
    }
}

/// A load that runs until it is ended.
pub(super) struct Load {
    stop: watch::Sender<bool>,
    callers: Vec<JoinHandle<Seen>>,
}

impl Load {
    /// Starts `callers` callers, which together ask for at most `rate` documents per second.
    pub(super) fn start(
        addresses: &Arc<Addresses>,
        progress: &Arc<Progress>,
        seed: u64,
        (connections, rate): (u32, u32),
        (day, is_archived): (&str, bool),
    ) -> Self {
        let stop = watch::Sender::new(false);
        let next = Arc::new(AtomicU64::new(0));
        let pace = Duration::from_secs(1) * connections / rate.max(1);
        let mut seeds = Rng::with_seed(seed);
        let start = |i: u32| {
            let caller = Caller {
                asker: Asker::new(addresses, progress, stop.subscribe()),
                next: Arc::clone(&next),
                rng: seeds.fork(),
                home: i as usize % NODES,
                pace,
                remembered: Vec::new(),
                day: day.to_owned(),
                repeated_within: if is_archived { REPEATED_WITHIN } else { Duration::MAX },
                seen: Seen::default(),
            };
            tokio::spawn(caller.run())
        };
        Load { callers: (0..connections).map(start).collect(), stop }
    }

    /// Ends the load: each caller waits for its last number.
    pub(super) async fn finish(self) -> Seen {
        self.stop.send_replace(true);
        let mut all = Seen::default();
        for caller in self.callers {
            all.add(caller.await.expect("a caller does not panic"));
        }
        all
    }
}

struct Caller {
    asker: Asker,
    next: Arc<AtomicU64>,
    rng: Rng,
    home: usize,
    pace: Duration,
    /// Documents to ask for again, and what they were given.
    remembered: Vec<(Order, Received, Instant)>,
    /// The day on which the successor begins.
    day: String,
    repeated_within: Duration,
    seen: Seen,
}

impl Caller {
    async fn run(mut self) -> Seen {
        let mut due = Instant::now();
        while !self.asker.has_ended() {
            match self.rng.u32(..100) {
                0..10 => self.repeat().await,
                10..15 => {
                    let count = self.rng.u64(2..=20);
                    self.ask(count).await;
                }
                15..20 => self.batch().await,
                _ => self.ask(1).await,
            }
            due = (due + self.pace).max(Instant::now() - self.pace);
            tokio::time::sleep_until(due).await;
        }
        self.seen
    }

    fn order(&mut self, count: u64) -> Order {
        let document = self.next.fetch_add(1, Ordering::Relaxed);
        let (kind, line) = (self.rng.usize(..TYPES.len()), self.rng.u64(..LINES));
        let is_dated = TYPES[kind] == TURNING && self.rng.u32(..4) == 0;
        Order { document, kind, line, count, is_dated }
    }

    /// Asks for numbers of a new document until they come.
    async fn ask(&mut self, count: u64) {
        let order = self.order(count);
        match self.insist(order.path(), order.body(&self.day), self.home).await {
            Some((node, answer)) => self.keep(node, &order, &answer),
            None => self.seen.unanswered += 1,
        }
    }

    /// Several documents in one call; those that were refused are repeated with all the others.
    async fn batch(&mut self) {
        let orders: Vec<Order> = (0..self.rng.usize(2..=5)).map(|_| self.order(1)).collect();
        let documents: Vec<Value> = orders
            .iter()
            .map(|order| {
                let mut body = order.body(&self.day);
                body["document_id"] = order.name().into();
                body
            })
            .collect();
        let body = json!({ "documents": documents });
        let Some((node, answer)) = self.insist(BATCHES.into(), body, self.home).await else {
            self.seen.unanswered += orders.len() as u64;
            return;
        };
        let items = answer["items"].as_array().map_or(&[][..], Vec::as_slice);
        for (order, item) in orders.iter().zip(items) {
            self.keep(node, order, item);
        }
        // A short answer leaves documents without a number: the journal will show them.
        self.seen.unanswered += orders.len().saturating_sub(items.len()) as u64;
    }

    /// Asks any node for a document that has its number: the same one must come.
    async fn repeat(&mut self) {
        if self.remembered.is_empty() {
            return;
        }
        let place = self.rng.usize(..self.remembered.len());
        let (order, before, since) = self.remembered[place];
        if since.elapsed() > self.repeated_within {
            self.remembered.swap_remove(place);
            return;
        }
        let node = self.rng.usize(..NODES);
        let Some((node, answer)) = self.insist(order.path(), order.body(&self.day), node).await
        else {
            return;
        };
        let Some(again) = self.read(node, &order, &answer) else { return };
        self.seen.repeated += 1;
        let is_across = TYPES[order.kind] == TURNING && !before.is_of_successor();
        self.seen.across += u64::from(is_across && self.asker.progress.has_turned());
        if again != before {
            self.seen.second.push(again);
        }
    }

    /// Repeats until the whole is answered successfully; `None` if the load ended first.
    async fn insist(&self, path: String, body: Value, first: usize) -> Option<(usize, Value)> {
        let (path, body) = (&path, &body);
        let ask = |node| async move { Ok((node, self.post(node, path, body).await?)) };
        self.asker.ask_around(first, ask).await
    }

    /// Asks once; the answer if all of it succeeded, else why there is no number.
    async fn post(&self, node: usize, path: &str, body: &Value) -> Result<Value, String> {
        let (status, answer) = self.asker.post(node, path, body).await?;
        let items = answer["items"].as_array().into_iter().flatten();
        let items =
            items.map(|item| (item["status"].as_u64().unwrap_or_default(), &item["problem"]));
        let refused = std::iter::once((u64::from(status), &answer))
            .chain(items)
            .find(|(status, _)| !matches!(status, 200 | 201))
            .map(|(status, problem)| (status, is_of_a_fault(status, problem)));
        match refused {
            None => Ok(answer),
            Some((status, is_of_a_fault)) => {
                if !is_of_a_fault {
                    // Every request of the drill is valid: only a fault may refuse it.
                    let told = format!("{status} for {path}: {answer}");
                    self.asker.progress.breach("refusal that no fault excuses", told);
                }
                Err(status.to_string())
            }
        }
    }

    fn keep(&mut self, node: usize, order: &Order, answer: &Value) {
        let Some(received) = self.read(node, order, answer) else { return };
        if received.is_of_successor() && !order.is_dated {
            self.asker.progress.note_turn();
        }
        self.seen.received.push(received);
        if order.kind == GAPLESS {
            self.seen.gapless.push((received, SystemClock.now_us()));
        }
        if self.remembered.len() < REMEMBERED {
            self.remembered.push((*order, received, Instant::now()));
        } else {
            let place = self.rng.usize(..REMEMBERED);
            self.remembered[place] = (*order, received, Instant::now());
        }
    }

    /// What an answer gives; `None`, and recorded, if it does not fit the order.
    fn read(&self, node: usize, order: &Order, answer: &Value) -> Option<Received> {
        let serial = &answer["serials"][0];
        let value = |field: &str| serial[field].as_str().and_then(|text| text.parse().ok());
        let single = &answer["document_number"];
        let text = if single.is_null() { &answer["first_number"] } else { single };
        let is_late = text.as_str().is_some_and(|text| text.starts_with(&SUCCESSOR[..1]));
        let is_successor = TYPES[order.kind] == TURNING && (order.is_dated || is_late);
        let counter = (order.kind as u64 + u64::from(is_successor)) * LINES + order.line;
        let received = match (value("first"), value("last")) {
            (Some(first), Some(last)) => {
                Received { document: order.document, counter, first, last }
            }
            _ => Received { document: order.document, counter, first: 0, last: 0 },
        };
        let fits = received.first > 0
            && received.last.checked_sub(received.first) == Some(order.count - 1)
            && text.as_str() == Some(&Received::text(counter, received.first))
            && answer["document_id"].as_str() == Some(&order.name());
        if !fits {
            let told = format!("{order:?} was answered {answer}");
            self.asker.progress.breach("answer that does not fit its request", told);
            return None;
        }
        self.asker.progress.answered(node, order.kind, order.count);
        Some(received)
    }
}

/// Whether a fault explains a refusal: an error of the server, or that other transactions came
/// first at each try. A restore drops tables, and the database ends who stands in its way.
fn is_of_a_fault(status: u64, problem: &Value) -> bool {
    let is_overtaken = problem["code"] == "version-conflict" && problem["retryable"] == true;
    (500..600).contains(&status) || is_overtaken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_of_a_fault;

    #[test]
    fn a_refusal_that_no_retry_would_change_is_of_no_fault() {
        let conflict = |retryable| json!({ "code": "version-conflict", "retryable": retryable });
        assert!(is_of_a_fault(503, &json!({})) && is_of_a_fault(409, &conflict(true)));
        assert!(!is_of_a_fault(409, &conflict(false)));
        assert!(!is_of_a_fault(422, &json!({ "retryable": false })));
    }
}
