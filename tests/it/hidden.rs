//! What is out of reach looks like what does not exist, byte for byte.
//!
//! Two services that differ only in what some callers do not see; every route is called on both, by
//! every kind of narrowed token and by a caller, and the answers are compared: status, headers,
//! body. Times, ids of allocations and what follows from these are masked.
//!
//! A route that is not called, or one of its parameters, fails the test: see `asks`.

mod asks;
mod mask;
mod orders;
mod place;

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;
use crate::load::is_long;
use asks::{Ask, asks};
use mask::{masked, replaced};
use place::{Answer, Hidden, Ids, Place};

/// A caller, with the lines of its token, and what is hidden from it.
const OBSERVERS: [(&str, &str, Hidden); 14] = [
    ("own", "", Hidden::Numbers),
    ("own-p", "projects = [\"P1\"]", Hidden::Everything),
    ("own-s", SERIES, Hidden::Everything),
    ("own-ps", BOTH, Hidden::Everything),
    ("admin", "roles = [\"project-admin\"]\nprojects = [\"P1\"]", Hidden::Everything),
    (
        "admin-own",
        "roles = [\"project-admin\", \"caller\"]\nprojects = [\"P1\"]",
        Hidden::Everything,
    ),
    ("super-p", "roles = [\"super-admin\"]\nprojects = [\"P1\"]", Hidden::Everything),
    ("super-s", SUPER_OF_SERIES, Hidden::Everything),
    ("audit-p", "roles = [\"auditor\"]\nprojects = [\"P1\"]", Hidden::Everything),
    ("audit-s", AUDITOR_OF_SERIES, Hidden::Everything),
    ("audit-ps", AUDITOR_OF_BOTH, Hidden::Everything),
    (
        "all-p",
        "roles = [\"caller\", \"auditor\", \"operator\", \"registrar\"]\nprojects = [\"P1\"]",
        Hidden::Everything,
    ),
    ("operate-p", "roles = [\"operator\"]\nprojects = [\"P1\"]", Hidden::Everything),
    ("operate-s", OPERATOR_OF_SERIES, Hidden::Everything),
];
/// Observers of one engine alone, and of the long form alone: what each engine's queries show has
/// its own tests.
const ON_POSTGRES_ALONE: [&str; 4] = ["own-p", "admin-own", "super-s", "operate-s"];
const ON_SQLITE_ALONE: [&str; 3] = ["own-ps", "super-p", "audit-s"];
const IN_LONG_ALONE: [&str; 5] = ["own-s", "admin", "audit-p", "audit-ps", "operate-p"];

const SERIES: &str = "series = [\"OPEN\", \"ONE\", \"NEWS\", \"UNIFIED-SERIAL\"]";
const BOTH: &str =
    "series = [\"OPEN\", \"ONE\", \"NEWS\", \"UNIFIED-SERIAL\"]\nprojects = [\"P1\"]";
const SUPER_OF_SERIES: &str =
    "roles = [\"super-admin\"]\nseries = [\"OPEN\", \"ONE\", \"NEWS\", \"UNIFIED-SERIAL\"]";
const AUDITOR_OF_SERIES: &str =
    "roles = [\"auditor\"]\nseries = [\"OPEN\", \"ONE\", \"NEWS\", \"UNIFIED-SERIAL\"]";
const AUDITOR_OF_BOTH: &str = r#"roles = ["auditor"]
series = ["OPEN", "ONE", "NEWS", "UNIFIED-SERIAL"]
projects = ["P1"]"#;
const OPERATOR_OF_SERIES: &str = "roles = [\"operator\"]\nseries = [\"OPEN\", \"ONE\"]";

/// Routes that show the same to all: what each kind of problem is, how the process is. `/metrics`
/// names every series: it is for operators, who hide it from others by `http.health_listen` or a
/// firewall.
const FOR_ALL: [&str; 5] = ["/healthz", "/readyz", "/metrics", "/problems", "/problems/{code}"];

/// Routes that no narrowed caller may use: they answer all of them alike.
const NOT_FOR_RESTRICTED: [(&str, &str); 10] = [
    ("get", "/api/v1/document-numbering/tokens"),
    ("post", "/api/v1/document-numbering/tokens"),
    ("post", "/api/v1/document-numbering/tokens/{name}/revoke"),
    ("post", "/api/v1/document-numbering/tokens/{name}/rotate"),
    ("post", "/api/v1/document-numbering/reference/{table}"),
    ("get", "/api/v1/document-numbering/change-requests"),
    ("post", "/api/v1/document-numbering/change-requests/{changeId}/approve"),
    ("post", "/api/v1/document-numbering/change-requests/{changeId}/reject"),
    ("post", "/api/v1/document-numbering/configs/{configId}/reset-counter"),
    ("post", "/api/v1/document-numbering/configs/{configId}/reset-chronology"),
];

/// Places by pairs: one with nothing hidden, one with something. Each is asked once.
const PLACES: [(&str, Hidden); 4] = [
    ("nothing", Hidden::Nothing),
    ("numbers", Hidden::Numbers),
    ("nothing_else", Hidden::Nothing),
    ("everything", Hidden::Everything),
];

/// Pages of one list that are followed, at most.
const PAGES_MAX: usize = 8;

/// Findings that are printed.
const TOLD_MAX: usize = 12;

/// Everything that is asked, route by route: a route that the service has and that is not among
/// them, or a parameter of its query, is found here.
async fn every_route_is_asked(place: &Place, asks: &[Ask]) {
    let document =
        place.ask(None, &Ask::get("/openapi.json", "/openapi.json"), &Ids::UNKNOWN).await;
    let document: Value = serde_json::from_str(&document.body).unwrap();
    let mut missing = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        if FOR_ALL.contains(&path.as_str()) {
            continue;
        }
        for (method, described) in methods.as_object().unwrap() {
            let of_route = || {
                let is_it = |ask: &&Ask| {
                    ask.route == path && ask.method.as_str().eq_ignore_ascii_case(method)
                };
                asks.iter().filter(is_it)
            };
            if of_route().next().is_none() {
                missing.push(format!("{method} {path}"));
            }
            let parameters = described["parameters"].as_array().cloned().unwrap_or_default();
            for parameter in parameters.iter().filter(|it| it["in"] == "query") {
                let name = parameter["name"].as_str().unwrap();
                if !of_route().any(|ask| ask.names(name)) {
                    missing.push(format!("{method} {path}?{name}"));
                }
            }
        }
    }
    assert_eq!(missing, [""; 0], "routes and parameters that no ask of this test has");
}

/// One answer of each kind of caller to each ask, and to the pages after it.
type Answers = BTreeMap<(&'static str, usize), Vec<Answer>>;

/// Asks a place: what only reads, for all callers at once, then the rest, one after the other.
async fn answers(
    place: &Place,
    asks: &[Ask],
    (hidden, skipped): (Hidden, &[&str]),
    ids: &Ids,
) -> Answers {
    let is_asked = |(who, _, kind): &&(&str, &str, Hidden)| {
        let is_skipped = skipped.contains(who) || IN_LONG_ALONE.contains(who);
        *kind == hidden && (is_long() || !is_skipped)
    };
    let observers = OBSERVERS.iter().filter(is_asked).map(|(who, ..)| *who);
    let observers: Vec<&'static str> = observers.collect();
    let mut all = Answers::new();
    let reading = observers.iter().map(|who| async move {
        let mut read = Vec::new();
        for (index, ask) in asks.iter().enumerate().filter(|(_, ask)| ask.reads && !ask.waits) {
            read.push(((*who, index), pages(place, who, ask, ids).await));
        }
        // Those wait for a number that may still come.
        let waiting = asks.iter().enumerate().filter(|(_, ask)| ask.waits);
        let waiting = waiting.map(|(index, ask)| async move {
            ((*who, index), vec![place.ask(Some(who), ask, ids).await])
        });
        read.extend(join_all(waiting).await);
        read
    });
    all.extend(join_all(reading).await.into_iter().flatten());
    for who in observers {
        for (index, ask) in asks.iter().enumerate().filter(|(_, ask)| !ask.reads) {
            all.insert((who, index), vec![place.ask(Some(who), ask, ids).await]);
        }
    }
    all
}

/// An answer and the pages after it, as far as it names any.
async fn pages(place: &Place, who: &str, ask: &Ask, ids: &Ids) -> Vec<Answer> {
    let mut pages = vec![place.ask(Some(who), ask, ids).await];
    while pages.len() < PAGES_MAX {
        let last: Value = serde_json::from_str(&pages.last().unwrap().body).unwrap_or_default();
        let next = match &last["next"] {
            Value::String(next) => next.clone(),
            Value::Number(next) => next.to_string(),
            _ => break,
        };
        pages.push(place.ask(Some(who), &ask.behind(&next), ids).await);
    }
    pages
}

/// Fails with the differences.
fn must_be_alike(what: &str, differences: &[String]) {
    let told = differences.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(differences.is_empty(), "{what}: {} leaks, such as\n{told}", differences.len());
}

fn shown(answers: &[Answer]) -> Vec<String> {
    answers.iter().map(|answer| masked(&answer.to_string())).collect()
}

/// Goal: no answer differs because of what is hidden from its caller. Method: the same asks with a
/// hidden thing present and absent; and about what is hidden and what does not exist.
async fn what_is_out_of_reach_looks_like_what_is_not_there(
    skipped: &[&str],
    of: impl Fn(&str) -> Deployment,
) {
    let places = Place::build(PLACES.map(|(name, hidden)| (of(name), hidden)).into()).await;
    let asks = asks();
    every_route_is_asked(&places[0], &asks).await;
    let mut routes_answered = BTreeSet::new();
    for pair in places.chunks(2) {
        let [bare, full] = pair else { unreachable!("two of each") };
        let hidden = (full.hidden, skipped);
        let there = answers(full, &asks, hidden, &full.ids).await;
        // The same names and ids of what does not exist.
        let nowhere = answers(bare, &asks, hidden, &full.ids).await;
        let mut differences = Vec::new();
        for ((who, index), found) in &there {
            let (ask, without) = (&asks[*index], &nowhere[&(*who, *index)]);
            let (with, without) = (shown(found), shown(without));
            if with != without {
                differences.push(format!("{who}: {ask}\n  there {with:?}\n  not   {without:?}"));
            }
            let is_answered = found[0].status < 300;
            assert!(found[0].status < 500, "{who}: {ask}: {}", found[0]);
            routes_answered.extend(is_answered.then_some((ask.method.clone(), ask.route)));
        }
        must_be_alike("there or not", &differences);
        must_be_alike("hidden or nowhere", &hidden_or_nowhere(full, &asks, &there).await);
    }
    for ask in &asks {
        let route = (ask.method.as_str().to_lowercase(), ask.route);
        // Asked about what is hidden alone: see `orders`.
        if ask.route.ends_with("/activate") {
            continue;
        }
        let is_refused = NOT_FOR_RESTRICTED.contains(&(&*route.0, route.1));
        let is_answered = routes_answered.contains(&(ask.method.clone(), ask.route));
        assert!(
            is_answered != is_refused,
            "{route:?} is answered to nobody, or to who is narrowed"
        );
    }
}

/// What differs, in one place, between asks about what is hidden and about what does not exist.
async fn hidden_or_nowhere(place: &Place, asks: &[Ask], there: &Answers) -> Vec<String> {
    if place.hidden != Hidden::Everything {
        return Vec::new();
    }
    let mut differences = Vec::new();
    for ((who, index), found) in there {
        let (ask, twin) = (&asks[*index], asks[*index].of_nowhere());
        let Some(twin) = twin.filter(|_| ask.reads && !ask.waits) else { continue };
        let other = pages(place, who, &twin, &Ids::UNKNOWN).await;
        let renamed = |text: String| replaced(&text, &place.ids);
        let with: Vec<String> = shown(found).into_iter().map(renamed).collect();
        if with != shown(&other) {
            let (with, other) = (&with, shown(&other));
            differences.push(format!("{who}: {ask}\n  hidden  {with:?}\n  nowhere {other:?}"));
        }
    }
    differences
}

#[tokio::test]
async fn what_is_out_of_reach_looks_like_what_is_not_there_on_sqlite_alone() {
    let of = |_: &str| Deployment::embedded();
    what_is_out_of_reach_looks_like_what_is_not_there(&ON_POSTGRES_ALONE, of).await;
}

#[tokio::test]
async fn what_is_out_of_reach_looks_like_what_is_not_there_on_redis_and_postgres() {
    let postgres = Postgres::start();
    let servers: BTreeMap<&str, Redis> = PLACES.map(|(name, _)| (name, Redis::start())).into();
    let of = |name: &str| Deployment::new(&postgres.url(name), Some(&servers[name].url()));
    what_is_out_of_reach_looks_like_what_is_not_there(&ON_SQLITE_ALONE, of).await;
}

/// Goal: a saver of series learns that a series that it does not see is in the way, and nothing
/// else. Method: definitions in conflict with a hidden one, tried and saved; full sight gets all.
#[tokio::test]
async fn a_refused_change_names_no_series_that_the_caller_does_not_see() {
    let places = Place::build(vec![(Deployment::embedded(), Hidden::Everything)]).await;
    let place = &places[0];
    let configs = "/api/v1/document-numbering/configs";
    for (who, code, template, types, projects) in [
        // The text of a hidden series' numbers.
        ("admin", "NEW", "{V}-{SEQ:4}", "NEW", json!(["P1"])),
        ("super-s", "NEWS", "{V}-{SEQ:4}", "NEWS", json!([])),
        // What a hidden series serves.
        ("super-s", "NEWS", "NEWS-{V}-{SEQ:4}", "HID", json!(["P2"])),
    ] {
        let definition = json!({
            "code": code, "name": "New", "template": template, "reason": "new",
            "serves": { "types": [types], "projects": projects },
            "variables": { "V": { "required": true, "alphabet": "DHIP2", "width": 5 } },
            "serials": [{ "counter": ["V"] }],
        });
        for dry_run in ["?dry_run=true", ""] {
            let mut ask = Ask::post(configs, configs, definition.clone());
            ask.path = format!("{configs}{dry_run}");
            let told = place.ask(Some(who), &ask, &place.ids).await;
            let body: Value = serde_json::from_str(&told.body).unwrap();
            let codes = ["template-ambiguous", "series-ambiguous"];
            assert!(codes.contains(&body["code"].as_str().unwrap()), "{who} {template}: {told}");
            assert!(!told.body.contains("HID") && told.body.contains("beyond"), "{who}: {told}");
            let whole = place.ask(Some("all"), &ask, &place.ids).await;
            assert!(whole.body.contains("HID") && whole.status == told.status, "{whole}");
        }
    }
}
