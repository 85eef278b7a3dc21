//! The OpenAPI document: what the routes say of themselves, and what they leave to be said once.

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use super::gate::OPEN;
use super::prefer::can_wait;

/// The document as it is served: every response has a description, and each route says whether it
/// needs a token.
pub(super) fn complete(document: &OpenApi, has_tokens: bool) -> Value {
    let mut document = serde_json::to_value(document).expect("the OpenAPI document is JSON");
    let token = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "What `numerator token create NAME` printed, or a JWT of the issuer in \
                        `auth.jwt.issuer`, where the settings have one.",
    });
    document["components"]["securitySchemes"] = json!({ "token": token });
    // Where there are no tokens, none is asked for, and one that is sent does no harm.
    let needed = if has_tokens { json!([{ "token": [] }]) } else { json!([{}, { "token": [] }]) };
    document["security"] = needed;
    for (path, operations) in members(&mut document["paths"]) {
        for (method, operation) in members(operations) {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes());
            if method.is_ok_and(|method| can_wait(&method, path)) {
                offer_wait(operation);
            }
            if OPEN.contains(&path.as_str()) {
                operation["security"] = json!([]);
            }
            for (status, response) in members(&mut operation["responses"]) {
                let described = response.as_object_mut().expect("a response is an object");
                described.entry("description").or_insert_with(|| describe(status).into());
            }
        }
    }
    document
}

/// Says that a caller may say how long it waits.
fn offer_wait(operation: &mut Value) {
    let prefer = json!({
        "name": "Prefer",
        "in": "header",
        "required": false,
        "schema": { "type": "string" },
        "description": "`wait=2`: answer within so many seconds, at most `http.time_limit` \
                        (RFC 7240). The header `Preference-Applied` tells what was done.",
    });
    match operation["parameters"].as_array_mut() {
        Some(parameters) => parameters.push(prefer),
        None => operation["parameters"] = json!([prefer]),
    }
}

/// What a response means that says no more than its status.
fn describe(status: &str) -> &'static str {
    let status = status.parse().ok().and_then(|status: u16| StatusCode::from_u16(status).ok());
    status.and_then(|status| status.canonical_reason()).unwrap_or("A problem")
}

fn members(object: &mut Value) -> &mut Map<String, Value> {
    object.as_object_mut().expect("the parts of a document are objects")
}
