//! The OpenAPI document: the descriptions of the routes, and the parts common to all of them.

mod headers;
mod words;

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use super::route::RouteTable;

/// The examples of the operations' requests and answers, by their names.
const EXAMPLES: &str = include_str!("openapi/examples.json");

/// The document as served: every response has a description, and each route states whether it needs
/// a token, which headers it takes and sends, and which texts are one of a few words.
pub(crate) fn complete(document: &OpenApi, routes: RouteTable, has_tokens: bool) -> Value {
    let mut document = serde_json::to_value(document).expect("the OpenAPI document is JSON");
    let token = json!({
        "type": "http",
        "scheme": "bearer",
        "description": "What `numerator token create NAME` printed, or a JWT of the issuer in \
                        `auth.jwt.issuer`, where the settings have one.",
    });
    document["components"]["securitySchemes"] = json!({ "token": token });
    document["components"]["headers"] = headers::components();
    // Without tokens none is required, and one that is sent does no harm.
    let needed = if has_tokens { json!([{ "token": [] }]) } else { json!([{}, { "token": [] }]) };
    document["security"] = needed;
    let examples: Value = serde_json::from_str(EXAMPLES).expect("the examples are JSON");
    for (path, operations) in members(&mut document["paths"]) {
        let route = routes.find(path).expect("what is described is in the table of routes");
        for (method, operation) in members(operations) {
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes());
            let method = method.expect("a method");
            if route.is_open() {
                operation["security"] = json!([]);
            }
            let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
            show(&examples[&id], operation);
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap_or_default();
                if let Some(words) = words::of_parameter(&id, name) {
                    parameter["schema"] = json!({ "type": "string", "enum": words });
                }
            }
            // In every request the host may be wrong, or the method.
            members(&mut operation["responses"]).entry("default").or_insert_with(a_problem);
            for (status, response) in members(&mut operation["responses"]) {
                let described = response.as_object_mut().expect("a response is an object");
                described.entry("description").or_insert_with(|| describe(status).into());
            }
            headers::describe(route, &method, operation);
        }
    }
    for (name, schema) in members(&mut document["components"]["schemas"]) {
        name_words(name, schema);
    }
    document
}

/// Marks, in a schema and in its parts, the fields with a fixed set of words.
fn name_words(name: &str, schema: &mut Value) {
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        name_words(name, part);
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, described) in fields.into_iter().flatten() {
        let Some(words) = words::of_field(name, field) else { continue };
        match described.get_mut("items") {
            Some(items) => items["enum"] = words,
            None => described["enum"] = words,
        }
    }
}

/// Adds examples of an operation's request and answer.
fn show(examples: &Value, operation: &mut Value) {
    const JSON: &str = "application/json";
    for (of, example) in examples.as_object().into_iter().flatten() {
        let content = match &**of {
            "request" => &mut operation["requestBody"]["content"],
            status => &mut operation["responses"][status]["content"],
        };
        content[JSON]["example"] = example.clone();
    }
}

/// The response that any route may have.
fn a_problem() -> Value {
    let schema = json!({ "$ref": "#/components/schemas/ProblemBody" });
    json!({ "content": { "application/problem+json": { "schema": schema } } })
}

/// The meaning of a response that only states its status.
fn describe(status: &str) -> &'static str {
    let status = status.parse().ok().and_then(|status: u16| StatusCode::from_u16(status).ok());
    status.and_then(|status| status.canonical_reason()).unwrap_or("A problem")
}

fn members(object: &mut Value) -> &mut Map<String, Value> {
    object.as_object_mut().expect("the parts of a document are objects")
}
