//! The requests of a flight in the form that `lua/lib/boarded.lua` reads. Decides nothing.

use std::collections::HashMap;

use serde::Serialize;

use super::Keys;
use super::call::KeyList;
use super::flight::{Guard, IssueRequest, Take};
use super::record::mark;

/// The requests of a flight as `issue.lua` reads them, but for what no text can hold.
#[derive(Serialize)]
pub(super) struct Orders {
    /// What they take; many of them the same.
    wishes: Vec<Wish>,
    requests: Vec<Order>,
}

/// A request; wishes are named by their place in the list.
#[derive(Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is an answer to a question of its own")]
struct Order {
    takes: Vec<usize>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    caller: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    document: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    asked: bool,
}

/// A take as `issue.lua` reads it; numbers travel as text.
#[derive(Serialize)]
struct Wish {
    key: usize,
    count: String,
    step: String,
    max: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
}

/// Names the counters in `list`, and says what the requests take of them.
pub(super) fn orders<'a>(
    keys: &Keys,
    guard: &Guard,
    requests: &'a [IssueRequest],
    list: &mut KeyList,
) -> Orders {
    let mut wishes = Vec::new();
    let mut places: HashMap<&Take, usize> = HashMap::new();
    let mut place_of = |take: &'a Take| {
        *places.entry(take).or_insert_with(|| {
            wishes.push(Wish {
                key: list.place(&take.counter, || keys.counter(guard.partition, &take.counter)),
                count: take.count.to_string(),
                step: take.step.to_string(),
                max: take.max.to_string(),
                seen: take.seen.map(|seen| seen.to_string()),
            });
            wishes.len()
        })
    };
    let order = |request: &'a IssueRequest| Order {
        takes: request.takes.iter().map(&mut place_of).collect(),
        caller: request.caller_key.is_some(),
        document: request.document_key.is_some(),
        again: request.again,
        asked: request.asked,
    };
    let requests = requests.iter().map(order).collect();
    Orders { wishes, requests }
}

/// What no text can hold: 32 bytes per request, as [`mark`] writes them.
pub(super) fn marks(requests: &[IssueRequest]) -> Vec<u8> {
    let mut marks = Vec::new();
    for IssueRequest { payload, caller_key, document_key, .. } in requests {
        mark(&mut marks, *payload, caller_key.as_deref(), document_key.as_deref());
    }
    marks
}
