//! The routes as a whole: their labels and their description.

mod bodies;

use super::*;
use crate::config::Sources;

/// What needs no token, as it was reviewed.
const OPEN: [&str; 7] =
    ["/", "/healthz", "/metrics", "/openapi.json", "/problems", "/problems/{code}", "/readyz"];

fn document() -> serde_json::Value {
    let flags = vec![("data.dir".to_owned(), "/tmp".to_owned())];
    let settings = Settings::load(&Sources { flags, ..Sources::default() }).expect("settings");
    let routes = described(&settings, &BodyLimits::of(&settings));
    openapi::complete(&routes.split_for_parts().1, TABLE, false)
}

/// `scripts/check-openapi` runs a public validator; this test finds the faults that it would find,
/// and those that generators of clients drop silently.
#[test]
fn the_description_is_one_that_clients_can_be_made_of() {
    let document = document();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for (method, operation) in operations.as_object().expect("operations") {
            for (status, response) in operation["responses"].as_object().expect("responses") {
                let text = response["description"].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{method} {path}: {status} has no description");
            }
            let is_open = OPEN.contains(&path.as_str());
            assert_eq!(operation["security"] == serde_json::json!([]), is_open, "{path}");
        }
    }
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
    // Each of several is named on its own.
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let choices = schemas.values().filter_map(|schema| schema["oneOf"].as_array()).flatten();
    assert!(choices.clone().count() > 3);
    for choice in choices {
        assert!(choice["$ref"].is_string() || choice["type"] == "null", "{choice}");
    }
}

#[test]
fn every_route_is_described() {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().expect("methods") {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(id.contains('_'), "{method} {path}: {id} is no verb_resource");
        }
    }
    for path in [
        "/api/v1/documents/{documentId}/generate-number",
        "/api/v1/documents/{documentId}/numbers",
        "/api/v1/documents/{documentId}/revisions",
        "/api/v1/document-numbering/batches",
        "/api/v1/document-numbering/preview",
        "/api/v1/document-numbering/configs",
        "/api/v1/document-numbering/configs/{configId}",
        "/api/v1/document-numbering/configs/{configId}/activate",
        "/api/v1/document-numbering/configs/{configId}/deactivate",
        "/api/v1/document-numbering/configs/{configId}/versions",
        "/api/v1/document-numbering/configs/{configId}/versions/{version}",
        "/api/v1/document-numbering/configs/{configId}/versions/{version}/diff",
        "/api/v1/document-numbering/configs/{configId}/rollback",
        "/api/v1/document-numbering/reference/{table}",
        "/api/v1/document-numbering/numbers",
        "/api/v1/document-numbering/numbers/{number}",
        "/healthz",
        "/readyz",
        "/metrics",
        "/problems",
        "/problems/{code}",
    ] {
        assert!(paths.contains_key(path), "{path} is not described");
    }
}

#[test]
fn only_health_metrics_and_what_describes_the_service_need_no_token() {
    let open = TABLE.iter().filter(|route| route.is_open());
    let mut paths: Vec<&str> = open.map(|route| route.path).collect();
    paths.sort_unstable();
    assert_eq!(paths, OPEN);
    // An open method would open the whole path.
    for route in TABLE.iter().filter(|route| !route.is_open()) {
        assert!(route.operations.iter().all(|operation| operation.act.is_some()), "{route:?}");
        assert!(route.path.starts_with("/api/"), "{route:?}");
    }
}

/// The attribute of a handler says its method again; a row without a handler does not compile, and
/// a handler without a row is never used.
#[test]
fn each_row_is_described_with_its_method() {
    let document = document();
    let mut described: Vec<(String, String)> = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        let methods = methods.as_object().expect("methods").keys();
        described.extend(methods.map(|method| (path.clone(), method.to_ascii_uppercase())));
    }
    let rows = TABLE.iter().filter(|route| ![START.path, DOCUMENT.path].contains(&route.path));
    let rows = rows.flat_map(|route| {
        let method = |operation: &Operation| (route.path.to_owned(), operation.method.to_string());
        route.operations.iter().map(method)
    });
    let mut rows: Vec<(String, String)> = rows.collect();
    rows.sort_unstable();
    described.sort_unstable();
    assert_eq!(rows, described);
}

#[test]
fn the_fast_path_takes_what_the_table_says_and_each_of_it_once() {
    let fast = TABLE.iter().flat_map(|route| {
        let fast = route.operations.iter().filter(|operation| operation.way == Way::Fast);
        fast.map(|operation| (&operation.method, route.path))
    });
    let known = FAST.iter().map(|(_, pattern)| (&Method::POST, *pattern));
    assert_eq!(fast.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    let reviewed = [
        "/api/v1/documents/{documentId}/generate-number",
        "/api/v1/document-numbering/batches",
        "/api/v1/serials/unified",
        "/api/v1/serials/system",
        "/api/v1/serials/interface",
    ];
    assert_eq!(FAST.iter().map(|(_, pattern)| *pattern).collect::<Vec<_>>(), reviewed);
    for (at, (taking, pattern)) in FAST.iter().enumerate() {
        assert!(FAST[..at].iter().all(|(other, _)| other != taking), "{taking:?}");
        assert!(pattern.matches('{').count() <= 1, "{pattern}");
    }
}

#[test]
fn the_description_knows_every_schema_that_it_names() {
    let document = document();
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let named = text.split("\"$ref\":\"#/components/schemas/").skip(1);
    for name in named.filter_map(|rest| rest.split('"').next()) {
        assert!(schemas.contains_key(name), "{name} is named but not described");
    }
    assert!(schemas["NumberRequest"]["properties"]["type_id"].is_object());
    assert_eq!(schemas["RecipientRequest"]["required"], serde_json::json!(["kind"]));
    let problem = &schemas["ProblemBody"]["properties"];
    assert!(problem["type"]["format"] == "uri-reference" && problem["code"].is_object());
}

#[test]
fn the_api_reference_shows_every_route() {
    let page = include_str!("../../docs/api.md");
    let document = document();
    for path in document["paths"].as_object().expect("paths").keys() {
        assert!(page.contains(&format!("{path}`")), "{path} is missing from docs/api.md");
    }
}
