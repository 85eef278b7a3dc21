//! The headers that routes take and send, each described once: gate, limits and preferences
//! determine which ones a route has.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::super::prefer::can_wait;
use super::super::route::Route;
use crate::auth::Act;

/// Headers of requests, besides those that a route reads itself.
const TAKEN: [(&str, &str); 6] = [
    ("X-Request-Id", "1 to 128 of `A-Z a-z 0-9 . _ : -`: the name of the call in answers and logs"),
    ("Accept-Language", "The language of `user_message`: `th`, `zh-Hans`, `zh-Hant` or `en`"),
    ("On-Behalf-Of", "The person for whom a service asks, in percent-encoded UTF-8"),
    ("On-Behalf-Of-IP", "That person's address"),
    ("Prefer", "`wait=2`: answer within so many seconds, at most `http.time_limit` (RFC 7240)"),
    ("If-None-Match", "An `ETag`: 304 where nothing has changed since"),
];

/// Headers of answers.
const SENT: [(&str, &str); 18] = [
    ("X-Request-Id", "The name of the call, sent or made"),
    ("X-Content-Type-Options", "`nosniff`"),
    ("Cache-Control", "`no-store`"),
    ("Keep-Alive", "`timeout=10`: for so many seconds the connection may be idle"),
    ("RateLimit", "What is left of each limit that counts the call, as `\"user\";r=9;t=6`"),
    ("RateLimit-Policy", "These limits, as `\"user\";q=10;w=60`"),
    ("Preference-Applied", "What was done about `Prefer`, as `wait=2`"),
    ("Idempotent-Replayed", "`true` where an earlier call took what is answered"),
    ("ETag", "What `If-None-Match` and `If-Match` take"),
    ("Location", "Where what was created is found"),
    ("Content-Language", "The language of its sentences"),
    ("Vary", "`Accept-Language` where it has sentences"),
    ("Retry-After", "In so many seconds the same request may succeed"),
    ("WWW-Authenticate", "`Bearer`: a token is needed, or another one"),
    ("Allow", "The methods of the route, where this is none of them"),
    ("Connection", "`close` where it is the last answer of its connection"),
    ("Content-Security-Policy", "What a page may load: nothing"),
    ("Referrer-Policy", "`no-referrer`"),
];

/// Operations whose answer may be that of an earlier call.
const REPLAYED: [&str; 11] = [
    "generate_number",
    "create_batch",
    "create_revision",
    "create_reservation",
    "void_number",
    "correct_number",
    "register_number",
    "assign_number",
    "generate_unified_serial",
    "generate_system_serial",
    "generate_interface_serial",
];

/// Operations whose answer has sentences.
const SPOKEN: [&str; 2] = ["create_batch", "draw_up_statement"];

/// The descriptions of headers to which answers refer.
pub(super) fn components() -> Value {
    let sent = SENT.iter().map(|(name, description)| {
        let header = json!({ "description": description, "schema": { "type": "string" } });
        ((*name).to_owned(), header)
    });
    Value::Object(sent.collect())
}

/// Describes the headers of an operation.
pub(super) fn describe(route: &Route, method: &Method, operation: &mut Value) {
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    let (is_open, waits) = (route.is_open(), can_wait(method, route));
    let act = route.operation(method).and_then(|operation| operation.act);
    let is_limited = act.is_some_and(Act::is_limited);
    let responses = operation["responses"].as_object_mut().expect("responses");
    let is_tagged = responses.contains_key("304");
    for (status, response) in responses.iter_mut() {
        let is_problem = response["content"]["application/problem+json"].is_object();
        let is_page = response["content"]["text/html"].is_object();
        let sent = [
            (
                true,
                &[
                    "X-Request-Id",
                    "X-Content-Type-Options",
                    "Cache-Control",
                    "Keep-Alive",
                    "Connection",
                ][..],
            ),
            (is_limited, &["RateLimit", "RateLimit-Policy"]),
            (waits, &["Preference-Applied"]),
            (REPLAYED.contains(&&*id) && status == "200", &["Idempotent-Replayed"]),
            (is_tagged && !is_problem, &["ETag"]),
            (is_problem || SPOKEN.contains(&&*id), &["Content-Language", "Vary"]),
            (is_problem, &["Retry-After", "Allow"]),
            (is_problem && !is_open, &["WWW-Authenticate"]),
            (is_page, &["Content-Security-Policy", "Referrer-Policy"]),
        ];
        let own: Vec<String> =
            response["headers"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        let sent = sent.into_iter().filter(|(is_sent, _)| *is_sent).flat_map(|(_, names)| names);
        let names = own.iter().map(String::as_str).chain(sent.copied());
        let refer = |name: &str| json!({ "$ref": format!("#/components/headers/{name}") });
        let described = names.map(|name| (name.to_owned(), refer(name)));
        response["headers"] = Value::Object(described.collect());
    }
    let taken = [
        (true, &["X-Request-Id", "Accept-Language"][..]),
        (!is_open, &["On-Behalf-Of", "On-Behalf-Of-IP"]),
        (waits, &["Prefer"]),
        (is_tagged, &["If-None-Match"]),
    ];
    let taken = taken.into_iter().filter(|(is_taken, _)| *is_taken).flat_map(|(_, names)| names);
    let described = |name: &&str| TAKEN.iter().find(|(taken, _)| taken == name);
    let taken = taken.filter_map(described).map(|(name, description)| {
        json!({
            "name": name, "in": "header", "required": false, "description": description,
            "schema": { "type": "string" },
        })
    });
    match operation.get_mut("parameters").and_then(Value::as_array_mut) {
        Some(parameters) => parameters.extend(taken),
        None => operation["parameters"] = taken.collect(),
    }
}
