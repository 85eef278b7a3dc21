//! The questions: every route, each parameter of its query, about what exists, what is hidden and
//! what does not exist. Names in braces are ids of the place, and of the caller.

use std::fmt;

use reqwest::Method;
use serde_json::{Value, json};

use super::orders;

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The route, as the service describes it.
    pub(super) route: &'static str,
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    pub(super) body: Option<Value>,
    pub(super) if_match: Option<String>,
    /// Whether it changes nothing.
    pub(super) reads: bool,
    /// Whether it takes its time if nothing is found.
    pub(super) waits: bool,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        self.body.as_ref().map_or(Ok(()), |body| write!(f, " {body}"))
    }
}

impl Ask {
    pub(super) fn get(route: &'static str, path: &str) -> Self {
        let (method, path) = (Method::GET, path.to_owned());
        Ask { route, method, path, body: None, if_match: None, reads: true, waits: false }
    }

    pub(super) fn post(route: &'static str, path: &str, body: Value) -> Self {
        let (method, body) = (Method::POST, Some(body));
        Ask { method, body, reads: false, ..Ask::get(route, path) }
    }

    /// The same from a cursor of its list on.
    pub(super) fn behind(&self, next: &str) -> Self {
        let path = self.path.split_once("&after=").map_or(&*self.path, |(path, _)| path);
        let sign = if path.contains('?') { '&' } else { '?' };
        Ask { path: format!("{path}{sign}after={next}"), ..self.clone() }
    }

    /// Whether its query names a parameter.
    pub(super) fn names(&self, parameter: &str) -> bool {
        let query = self.path.split_once('?').map_or("", |(_, query)| query);
        query
            .split('&')
            .any(|pair| pair.split_once('=').map_or(pair, |(name, _)| name) == parameter)
    }

    /// The same about what does not exist; nothing if it asks about nothing that is hidden.
    pub(super) fn of_nowhere(&self) -> Option<Self> {
        let renamed = |text: &str| {
            text.replace("HID", "HIE").replace("P2", "P9").replace("secret", "nowhere")
        };
        let (path, body) = (renamed(&self.path), self.body.as_ref().map(Value::to_string));
        let body = body.map(|text| serde_json::from_str(&renamed(&text)).unwrap());
        let is_by_id =
            ["{hidden}", "{counter}", "{reservation}"].iter().any(|id| self.path.contains(id));
        let is_other = path != self.path || body != self.body || is_by_id;
        is_other.then(|| Ask { path, body, ..self.clone() })
    }
}

pub(super) const NUMBERING: &str = "/api/v1/document-numbering";

macro_rules! route {
    ($path:literal) => {
        concat!("/api/v1/document-numbering", $path)
    };
}
pub(super) use route;

/// All of them.
pub(super) fn asks() -> Vec<Ask> {
    let mut asks = Vec::new();
    asks.extend(numbers());
    asks.extend(registers());
    asks.extend(configs());
    asks.extend(reference());
    asks.extend(documents());
    asks.extend(orders::asks());
    asks
}

/// Looks a list up, by each of these queries.
pub(super) fn lists(route: &'static str, queries: &[&str]) -> Vec<Ask> {
    queries.iter().map(|query| Ask::get(route, &format!("{route}{query}"))).collect()
}

/// Numbers.
fn numbers() -> Vec<Ask> {
    let mut asks = lists(
        route!("/numbers"),
        &[
            "?project=P1&series=OPEN&from=2020-01-01&limit=1",
            "?project=P1&series=BOTH&from=2020-01-01",
            "?project=P1&series=SHARED&from=2020-01-01&sort=number&limit=1",
            "?project=P1&series=HID&from=2020-01-01",
            "?project=P2&series=HID&from=2020-01-01",
            "?project=P2&series=ONE&from=2020-01-01",
            "?project=P1&from=2020-01-01&limit=2",
            "?series=OPEN&from=2020-01-01&until=2999-01-01&path=imported",
            "?series=HID&user_id=other",
            "?from=2020-01-01",
            "?number=OPEN-P1-0001",
            "?number=OPEN-P1-0001&limit=1",
            "?number=HIDP2-0001",
            "?number=BOTH-P4-0001-A",
            "?number=BOTH-P4-0004-B",
            "?number_prefix=BOTH&project=P1&series=ONE",
            "?number_prefix=HID",
            "?number_containing=P2-&from=2020-01-01&project=P1&series=OPEN",
            "?document_id=shared&limit=1",
            "?document_id=shared&project=P1&series=ONE&sort=number&limit=1",
            "?document_id=hidden&project=P1&series=OPEN",
            "?user_id=other&project=P1&series=OPEN",
            "?service=other",
            "?service=own&project=P1&series=ONE",
            "?type=HID&from=2020-01-01&project=P1&series=ONE",
            "?originator=A&from=2020-01-01&project=P1",
            "?originator=B&from=2020-01-01&project=P1",
            "?recipient=B&from=2020-01-01&project=P1",
            "?context=%7B%22ORIGINATOR%22:%22B%22%7D&from=2020-01-01&project=P1",
            "?kinds=number,gap&from=2020-01-01&project=P1",
            "?document_date_from=2020-01-01&from=2020-01-01&project=P1",
            "?document_date_until=2999-01-01&from=2020-01-01&project=P1",
            "?status=revised&from=2020-01-01&project=P1&series=OPEN",
            "?from=2020-01-01&project=P1&series=OPEN&after=0.0.0",
        ],
    );
    for number in [
        "OPEN-P1-0001",
        "OPEN-P1-0005",
        "HIDP2-0001",
        "HIDP2-000O",
        "HIDP2",
        "HOFFP2-0001",
        "BOTH-P4-0004-B",
        "BOTH-P4-0001-A",
        "SHARED-0002",
        "nothing",
    ] {
        asks.push(Ask::get(route!("/numbers/{number}"), &format!("{NUMBERING}/numbers/{number}")));
    }
    asks
}

/// Documents and their labels.
fn documents() -> Vec<Ask> {
    let mut asks = Vec::new();
    let of_document = "/api/v1/documents/{documentId}/numbers";
    for path in [
        "shared/numbers?limit=1",
        "shared/numbers",
        "hidden/numbers?limit=1",
        "nobody/numbers",
        "labelled/numbers?limit=1",
        "shared/numbers?limit=1&after=0.0.0",
    ] {
        asks.push(Ask::get(of_document, &format!("/api/v1/documents/{path}")));
    }
    let labels = "/api/v1/documents/{documentId}/revisions";
    for (document, order) in [
        ("hidden", json!({ "rev": "B" })),
        ("hidden", json!({ "rev": "B", "series": "HID" })),
        ("nobody", json!({ "rev": "B", "series": "HIE" })),
        ("labelled", json!({ "rev": "B", "number": "BOTH-P4-0002-A" })),
        ("counted", json!({ "rev": "B", "series": "BOTH" })),
        // It has this label already.
        ("labelled", json!({ "rev": "C", "series": "BOTH" })),
    ] {
        let ask = Ask::post(labels, &format!("/api/v1/documents/{document}/revisions"), order);
        asks.push(Ask { reads: true, waits: true, ..ask });
    }
    asks
}

/// Counters, statements, events.
fn registers() -> Vec<Ask> {
    let mut asks = lists(
        route!("/counters"),
        &[
            "?project=P1&series=OPEN&limit=1",
            "?project=P1&series=BOTH",
            "?project=P1&series=SHARED",
            "?project=P1&series=MINE",
            "?project=P1&series=REFD",
            "?project=P1&limit=1",
            "?project=P1&series=HID",
            "?project=P1&series=HIDOFF",
            "?project=P2&series=HID",
            "?project=P2&series=ONE",
            "?project=P1&series=ONE&type=HID",
            "?project=P1&originator=B",
            "?project=P1&year=2026",
            "?series=OPEN&limit=1",
            "?project=P1&series=ONE&after={counter}.00000000",
            "",
        ],
    );
    asks.extend(lists(
        route!("/statements"),
        &[
            "?series=OPEN&period=2026&project=P1",
            "?series=BOTH&period=2026&project=P1&format=csv",
            "?series=SHARED&period=2026&project=P1",
            "?series=MINE&period=2026&project=P1",
            "?series=HID&period=2026&project=P1",
            "?series=HID&period=2026&project=P2",
            "?series=HIDOFF&period=2026&project=P1",
            "?series=ONE&period=2026&project=P2",
            "?series=ONE&period=2026&format=text",
            "?series=HID&period=2026",
            "?period=2026&project=P1&format=html",
        ],
    ));
    asks.extend(lists(
        route!("/events"),
        &[
            "?series=OPEN&limit=1",
            "?series=HID",
            "?series=HID&kind=series-changed&from=2020-01-01&until=2999-01-01",
            "?series=ONE&kind=series-changed&after=0.0",
            "?series=ONE&from=2020-01-01&until=2999-01-01",
            "?kind=change-requested",
            "",
        ],
    ));
    asks
}

/// Configurations as they are and were.
fn configs() -> Vec<Ask> {
    let mut asks = lists(
        route!("/configs"),
        &[
            "",
            "?limit=1",
            "?active=false",
            "?code=HID",
            "?type=HID",
            "?project=P2",
            "?project=P2&type=HID&limit=1",
            "?after=HID&limit=1",
        ],
    );
    for name in ["{one}", "ONE", "{hidden}", "HID", "HIDOFF", "HIDOUT"] {
        for (route, below) in [
            (route!("/configs/{configId}"), ""),
            (route!("/configs/{configId}/versions"), "/versions"),
            (route!("/configs/{configId}/versions"), "/versions?upto=1"),
            (route!("/configs/{configId}/versions"), "/versions?limit=1"),
            (route!("/configs/{configId}/versions/{version}"), "/versions/1"),
            (route!("/configs/{configId}/versions/{version}"), "/versions/7"),
            (route!("/configs/{configId}/versions/{version}/diff"), "/versions/1/diff"),
            (route!("/configs/{configId}/versions/{version}/diff"), "/versions/1/diff?against=2"),
        ] {
            asks.push(Ask::get(route, &format!("{NUMBERING}/configs/{name}{below}")));
        }
    }
    asks
}

/// Tables.
fn reference() -> Vec<Ask> {
    let mut asks = lists(route!("/reference"), &["", "?limit=1", "?after=orgs&limit=1"]);
    for table in ["projects", "orgs", "secret"] {
        for (route, below) in [
            (route!("/reference/{table}"), ""),
            (route!("/reference/{table}"), "?code=P2"),
            (route!("/reference/{table}"), "?active=true&limit=1"),
            (route!("/reference/{table}"), "?after=1&limit=1"),
            (route!("/reference/{table}/memberships"), "/memberships?limit=1"),
            (route!("/reference/{table}/memberships"), "/memberships?id=1&after=1"),
            (route!("/reference/{table}/memberships"), "/memberships?of_id=2"),
        ] {
            asks.push(Ask::get(route, &format!("{NUMBERING}/reference/{table}{below}")));
        }
    }
    asks
}
