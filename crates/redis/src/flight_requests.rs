//! The requests of a flight in the form that `lua/lib/admitted.lua` reads. Decides nothing.

use std::borrow::Borrow;
use std::collections::HashMap;

use serde::Serialize;

use super::Keys;
use super::call::KeyList;
use super::flight::{Guard, IssueRequest, Take};
use super::record::{Mark, mark};

/// A take as `issue.lua` reads it; numbers travel as text.
#[derive(Serialize)]
pub(super) struct Wish {
    key: usize,
    count: String,
    step: String,
    /// Left out if every value is above it.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<String>,
    max: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
}

/// The requests of a flight as `issue.lua` reads them.
pub(super) struct FlightRequests {
    /// What they take: a basket for all requests that take the same.
    pub(super) baskets: Vec<Vec<Wish>>,
    /// What text cannot hold, as [`mark`] writes it for each request.
    pub(super) marks: Vec<u8>,
}

/// Lists the counters in `list`, and describes what the requests take of them.
pub(super) fn flight_requests(
    keys: &Keys,
    guard: &Guard,
    requests: &[impl Borrow<IssueRequest>],
    list: &mut KeyList,
) -> FlightRequests {
    let mut wish = |take: &Take| Wish {
        key: list.place(&take.counter, || keys.counter(guard.partition, &take.counter)),
        count: take.count.to_string(),
        step: take.step.to_string(),
        start: Some(take.start).filter(|start| *start > 1).map(|start| start.to_string()),
        max: take.max.to_string(),
        seen: take.seen.map(|seen| seen.to_string()),
    };
    let mut baskets: Vec<Vec<Wish>> = Vec::new();
    let mut places: HashMap<&[Take], u16> = HashMap::new();
    let mut marks = Vec::new();
    for request in requests.iter().map(Borrow::borrow) {
        let basket = *places.entry(&request.takes).or_insert_with(|| {
            baskets.push(request.takes.iter().map(&mut wish).collect());
            u16::try_from(baskets.len()).expect("a flight has no more baskets than requests")
        });
        mark(
            &mut marks,
            &Mark {
                basket,
                again: request.again,
                asked: request.asked,
                once_per_document: request.once_per_document,
                payload: request.payload,
                caller: request.caller_key.as_deref(),
                document: request.document_key.as_deref(),
            },
        );
    }
    FlightRequests { baskets, marks }
}
