//! Guarded calls: what they ask and answer; encoded once, sent again byte for byte (F10).
//!
//! A repeated call must use the same `Flight`, never a rebuilt one: its digest distinguishes a
//! repetition from another process under the same identity.

use std::borrow::Borrow;
use std::sync::Arc;

use numbering::TakenRange;
use numerator_runtime::node::NodeId;
use serde::Serialize;

use super::Keys;
use super::call::{Call, KeyList, Verb, fingerprint};
use super::flight_requests::{FlightRequests, flight_requests};
use super::record::PayloadMark;

/// Largest value of a counter: beyond it a Lua number skips values.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The ownership under which a call is made, its caller and its flight number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The partition.
    pub partition: u32,
    /// The epoch that the node participates in.
    pub epoch: u64,
    /// The incarnation that the ledger names as owner.
    pub incarnation: String,
    /// The caller.
    pub node: NodeId,
    /// Flight number: rises for the life of the process over all partitions and epochs.
    pub flight: u64,
    /// The caller's last flight of this epoch whose outcome it knows; 0: none.
    pub confirmed: u64,
}

/// One serial's share of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// Name of the counter within its partition: `<series id>:<serial>:<counter key>`.
    pub counter: String,
    /// How many values.
    pub count: u64,
    /// Distance between values.
    pub step: u64,
    /// Smallest value that may be taken.
    pub start: u64,
    /// Largest value that may be taken.
    pub max: u64,
    /// Highest value of it in this epoch that the caller has seen, or that the ledger has shown it
    /// (second safety net of F3); without one nothing is taken (F33).
    pub seen: Option<i64>,
}

/// One request of a flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueRequest {
    /// What to take, all or nothing.
    pub takes: Vec<Take>,
    /// Key of the caller's idempotency record: `k:<series id>:<user>:<key>`.
    pub caller_key: Option<String>,
    /// Key of the document's idempotency record: `d:<series id>:<document>`.
    pub document_key: Option<String>,
    /// Distinguishes its payload from others under the same keys.
    pub payload: PayloadMark,
    /// Whether a document that already has a number gets another one.
    pub again: bool,
    /// Whether the journal must be asked for a document that has no record, whatever the data set
    /// remembers: it is numbered once, forever.
    pub once_per_document: bool,
    /// Whether the journal was asked for these keys in this epoch (F1).
    pub asked: bool,
    /// The allocation's record in one line, opaque to the script.
    pub record: Arc<str>,
}

/// Outcome of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueOutcome {
    /// Taken now, one range per take.
    Taken(Vec<TakenRange>),
    /// An earlier allocation under the same key and payload; it is in this flight's outbox entry
    /// too (F2).
    Replayed {
        /// Its values.
        taken: Vec<TakenRange>,
        /// Its record.
        record: String,
    },
    /// The document has a number for another payload. Nothing taken; the number that is shown is in
    /// this flight's outbox entry (F30).
    DocumentNumbered {
        /// Its values.
        taken: Vec<TakenRange>,
        /// Its record.
        record: String,
    },
    /// The caller's key was used for another payload. Nothing taken.
    KeyReused,
    /// The keys must be looked up in the journal first. Nothing taken.
    Ask,
    /// An earlier allocation answers and is by now only in the journal. Nothing taken.
    Journaled,
    /// A counter is not in Redis in this epoch. Nothing taken.
    Cold {
        /// Index of the first such take.
        take: usize,
    },
    /// The caller has not seen a counter in this epoch: it must first be compared with the ledger
    /// (F33). Nothing taken.
    Unverified {
        /// Index of the first such take.
        take: usize,
        /// Its id, as Redis shows it.
        counter_id: i64,
        /// Its ceiling, as Redis shows it.
        ceiling: i64,
    },
    /// A counter's ceiling leaves no room. Nothing taken.
    Ceiling {
        /// Index of the first such take.
        take: usize,
        /// Its value.
        value: i64,
        /// Its ceiling.
        ceiling: i64,
    },
    /// A counter has not reached the smallest value that may be taken. Nothing taken.
    Below {
        /// Index of the first such take.
        take: usize,
        /// Its id.
        counter_id: i64,
        /// Its value.
        value: i64,
    },
    /// A counter is past its last value. Nothing taken.
    Exhausted {
        /// Index of the first such take.
        take: usize,
    },
    /// A counter was written from outside (F3). Nothing taken; the epoch must end.
    Regressed {
        /// Index of the first such take.
        take: usize,
    },
    /// Only idempotency records vanished, and the request's may be among them: the journal may not
    /// have their numbers yet (F28). Nothing taken; the epoch must end.
    Vanished,
    /// The flight was executed before, and this request took nothing then: ask again in another
    /// flight.
    Nothing,
}

/// Outcome of a flight of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueAnswer {
    /// The outcome of each request.
    pub outcomes: Vec<IssueOutcome>,
    /// Idempotency records removed before their time, to keep the partition within its bound (F21).
    pub records_shed: u64,
}

/// How long idempotency records last, how many there may be, and what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyLimits {
    /// `idempotency.window`, in milliseconds.
    pub window_ms: u64,
    /// `idempotency.records_max`: most records of a partition.
    pub records_max: u64,
    /// `idempotency.keep_whole`: records hold the allocation itself, not only where it is.
    pub keep_whole: bool,
}

/// Outcome of a guarded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion<T> {
    /// It was executed, now or when it was first sent.
    Completed(T),
    /// The owner record is missing or names another epoch or incarnation, the server is not a
    /// master, or it has forgotten a confirmed flight. Nothing done.
    Fenced {
        /// The epoch of the owner record, if there is one.
        epoch: Option<u64>,
        /// What did not match.
        reason: String,
    },
    /// The node was barred from this partition (F7). Nothing done.
    Barred,
    /// A later flight of this node was already executed: this one is a ghost. Nothing done.
    Late,
    /// The flight number was sent with other bytes: two processes share an identity (F10).
    Mismatch,
    /// The outbox does not hold as many entries as its count (F7). Nothing done.
    Miscounted,
}

/// Where a counter is to be seeded, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeedPlace {
    /// Name of the counter within its partition.
    pub counter: String,
    /// Its id in the ledger.
    pub counter_id: i64,
    /// The value to start above.
    pub value: i64,
    /// The ceiling.
    pub ceiling: i64,
}

/// Outcome of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedState {
    /// Written now.
    Seeded,
    /// The counter was already warm in this epoch; left as it is.
    Warm,
}

/// Outcome of a raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raised {
    /// The ceiling in force now.
    Ceiling(i64),
    /// The counter is not in Redis in this epoch.
    Cold,
    /// The counter was written from outside (F3).
    Regressed,
}

/// A guarded call, encoded. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct Flight {
    call: Call,
    guard: Guard,
    digest: String,
    requests: usize,
}

impl Flight {
    /// Most requests that one flight may carry; a larger one is refused by the script.
    pub const REQUESTS_MAX: usize = 1_000;

    /// A flight of requests. `limits` judge idempotency records at `now_ms`; `None`: by the
    /// server's clock when it executes the flight. Each request has at least one take, each take a
    /// count and a step of at least 1.
    #[must_use]
    pub fn issue(
        keys: &Keys,
        guard: &Guard,
        requests: &[impl Borrow<IssueRequest>],
        now_ms: Option<i64>,
        limits: IdempotencyLimits,
    ) -> Self {
        let mut list = guarded_keys(keys, guard);
        list.add(keys.records(guard.partition));
        let FlightRequests { baskets, marks } = flight_requests(keys, guard, requests, &mut list);
        let kept = if limits.keep_whole { "whole" } else { "place" };
        let mut rest: Vec<Vec<u8>> = vec![
            named(now_ms).into(),
            window_text(limits.window_ms).into(),
            limits.records_max.to_string().into(),
            kept.into(),
            json(&baskets).into(),
            marks,
        ];
        rest.push(records(requests));
        Flight::new(Verb::Issue, guard, list.into_keys(), rest, requests.len())
    }

    /// A flight that seeds counters.
    #[must_use]
    pub fn seed(keys: &Keys, guard: &Guard, places: &[SeedPlace]) -> Self {
        let mut list = guarded_keys(keys, guard).into_keys();
        list.extend(places.iter().map(|place| keys.counter(guard.partition, &place.counter)));
        let texts = places.iter().map(|place| {
            let texts = [place.counter_id, place.value, bounded(place.ceiling)];
            let [id, value, ceiling] = texts.map(|number| number.to_string());
            Place { id, value, ceiling }
        });
        let rest = vec![json(&texts.collect::<Vec<_>>()).into()];
        Flight::new(Verb::Seed, guard, list, rest, places.len())
    }

    /// A flight that raises ceilings: `(counter name, ceiling)`.
    #[must_use]
    pub fn raise(keys: &Keys, guard: &Guard, raises: &[(String, i64)]) -> Self {
        let mut list = guarded_keys(keys, guard).into_keys();
        list.extend(raises.iter().map(|(name, _)| keys.counter(guard.partition, name)));
        let ceilings = raises.iter().map(|(_, ceiling)| bounded(*ceiling).to_string());
        let rest = vec![json(&ceilings.collect::<Vec<_>>()).into()];
        Flight::new(Verb::Raise, guard, list, rest, raises.len())
    }

    /// Encodes the guard before the rest; the digest covers every byte but itself and the echo.
    fn new(
        verb: Verb,
        guard: &Guard,
        keys: Vec<String>,
        rest: Vec<Vec<u8>>,
        requests: usize,
    ) -> Self {
        let Guard { partition, epoch, incarnation, node, flight, confirmed } = guard;
        let echo = format!("{verb:?} {partition} {node} {flight}");
        let mut args: Vec<Vec<u8>> = vec![
            epoch.to_string().into(),
            incarnation.clone().into(),
            node.to_string().into(),
            flight.to_string().into(),
            confirmed.to_string().into(),
        ];
        let parts = args.iter().chain(&rest).map(Vec::as_slice);
        let digest = fingerprint(verb, keys.iter().map(String::as_bytes).chain(parts));
        args.push(digest.clone().into());
        args.extend(rest);
        let call = Call::new(verb, echo, keys, args);
        Flight { call, guard: guard.clone(), digest, requests }
    }

    /// The ownership under which it is sent.
    pub(super) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Fingerprint of its bytes.
    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// The call.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// How many answers the call expects.
    pub(super) fn requests(&self) -> usize {
        self.requests
    }
}

/// The records of requests, one per line.
fn records(requests: &[impl Borrow<IssueRequest>]) -> Vec<u8> {
    let bytes = requests.iter().map(|request| request.borrow().record.len() + 1).sum();
    let mut lines = Vec::with_capacity(bytes);
    for IssueRequest { record, .. } in requests.iter().map(Borrow::borrow) {
        assert!(!record.is_empty() && !record.contains('\n'), "a record stands in one line");
        lines.extend_from_slice(record.as_bytes());
        lines.push(b'\n');
    }
    lines
}

/// A counter's place as `seed.lua` reads it.
#[derive(Serialize)]
struct Place {
    id: String,
    value: String,
    ceiling: String,
}

/// Owner record and outbox: the first two keys of each flight.
fn guarded_keys(keys: &Keys, guard: &Guard) -> KeyList {
    let mut list = KeyList::default();
    list.add(keys.owner(guard.partition));
    list.add(keys.outbox(guard.partition, guard.node));
    list
}

/// A ceiling that Lua holds exactly; a ceiling below the ledger's is always safe.
fn bounded(ceiling: i64) -> i64 {
    ceiling.min(i64::try_from(NUMBER_MAX).unwrap_or(i64::MAX))
}

/// The idempotency window as the scripts read and compare it. An expiry time must be a number that
/// Redis and Lua can hold.
pub(super) fn window_text(window_ms: u64) -> String {
    window_ms.clamp(1, NUMBER_MAX / 4).to_string()
}

/// A time, or that the server is to use its own.
pub(super) fn named(now_ms: Option<i64>) -> String {
    now_ms.map_or_else(String::new, |now_ms| now_ms.to_string())
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("texts, numbers and lists have a JSON form")
}
