//! What the service describes of itself at `/openapi.json` is what it does: every route is called,
//! correctly and incorrectly, and each answer is compared with the description: its status, its
//! headers, every field and every word in it. What no call here brings about (a lost store, a
//! stopping process) is not examined.

mod calls;
mod reservations;
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use reqwest::header::HeaderName;
use reqwest::{Method, Response};
use serde_json::Value;

use crate::deployment::Deployment;
use schema::Schemas;
use testkit::service::Service;

/// How long a number may take on its way into the journal.
const JOURNALED_MAX: Duration = Duration::from_secs(10);

/// Headers of the connection and of the body itself.
const OF_TRANSPORT: [&str; 4] = ["content-length", "content-type", "date", "transfer-encoding"];

/// A series that keeps chronology, for what two people answer for, one that keeps a note, and one
/// that takes numbers by hand.
const BOOK: &str = r#"
[[series]]
code = "BOOK"
name = "Book"
template = "BOOK-{YEAR}-{SEQ:4}"
serves = { types = ["BOOK"] }
serials = [{ reset = "year" }]
policy = "gapless"
chronology = true
document_date = { past = "5y", future = "10y" }

[[series]]
code = "NOTED"
name = "Noted"
template = "NOTED-{SEQ:4}"
serves = { types = ["NOTED"] }
serials = [{ counter = ["type"] }]
variables = { NOTE = {} }

[[series]]
code = "DRAW"
name = "Drawings"
template = "DRAW-{SEQ:4}"
serves = { types = ["DRAW"] }
serials = [{}]
policy = "gapless"
by_hand = true

[[series]]
code = "HELD"
name = "Held"
template = "HELD-{SEQ:4}"
policy = "gapless"
serves = { types = ["INVOICE"] }
serials = [{ counter = ["type"] }]
"#;

/// A service under test, and its description.
struct Scene {
    service: Service,
    _deployment: Deployment,
    tokens: BTreeMap<&'static str, String>,
    document: Value,
    /// Operations and the statuses with which they answered.
    seen: BTreeSet<(String, u16)>,
    /// Headers that were sent, by operation.
    sent: BTreeSet<(String, String)>,
    faults: Vec<String>,
}

impl Scene {
    async fn start() -> Self {
        let mut deployment = Deployment::embedded();
        deployment.apply_examples();
        let file = deployment.path("book.toml");
        std::fs::write(&file, BOOK).unwrap();
        deployment.apply(&[file]);
        let mut tokens = BTreeMap::new();
        let every = "roles = [\"caller\", \"super-admin\", \"operator\", \"registrar\"]";
        let service = "requests_per_minute = 100000\nspeaks_for_people = true";
        for (name, lines) in [("anna", every), ("bob", every), ("desk", service), ("plain", "")] {
            let made = deployment.ok(&["token", "create", name, "--for-settings", "--json"]);
            let made: Value = serde_json::from_str(&made).unwrap();
            let hash = &made["sha256"];
            deployment.extra +=
                &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {hash}\n{lines}\n");
            tokens.insert(name, made["token"].as_str().unwrap().to_owned());
        }
        let service = deployment.serve();
        let document = testkit::client().get(format!("{}/openapi.json", service.url));
        let document = document.send().await.unwrap().json().await.unwrap();
        let (seen, sent, faults) = Default::default();
        Scene { service, _deployment: deployment, tokens, document, seen, sent, faults }
    }

    /// Path and method of an operation.
    fn route(&self, operation: &str) -> (String, Method) {
        for (path, methods) in self.document["paths"].as_object().unwrap() {
            for (method, described) in methods.as_object().unwrap() {
                if described["operationId"] == operation {
                    let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                    return (path.clone(), method);
                }
            }
        }
        panic!("no operation {operation}");
    }

    /// The example that is shown for the body of an operation.
    fn example(&self, operation: &str) -> Value {
        let (path, method) = self.route(operation);
        let described = &self.document["paths"][&path][method.as_str().to_lowercase()];
        described["requestBody"]["content"]["application/json"]["example"].clone()
    }

    /// Calls, and compares the answer with the description. `tail` is a query, or empty.
    async fn ask(&mut self, operation: &str, call: Call<'_>) -> (u16, Value) {
        let (pattern, method) = self.route(operation);
        let mut path = pattern.clone();
        for (name, value) in call.path {
            path = path.replace(&format!("{{{name}}}"), value);
        }
        assert!(!path.contains('{'), "{path}");
        let url = format!("{}{path}{}", self.service.url, call.query);
        let mut request = testkit::client().request(call.method.unwrap_or(method.clone()), url);
        if let Some(token) = self.tokens.get(call.who) {
            request = request.bearer_auth(token);
        }
        for (name, value) in call.headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let answer = request.send().await.unwrap();
        let described = self.document["paths"][&pattern][method.as_str().to_lowercase()].clone();
        self.judge(operation, &described, answer).await
    }

    async fn judge(
        &mut self,
        operation: &str,
        described: &Value,
        answer: Response,
    ) -> (u16, Value) {
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = answer.bytes().await.unwrap();
        let at = format!("{operation} {status}");
        self.seen.insert((operation.to_owned(), status));
        let responses = &described["responses"];
        let response = responses.get(status.to_string()).unwrap_or(&responses["default"]);
        let named: BTreeSet<String> = response["headers"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.to_lowercase())
            .collect();
        for name in headers.keys().map(HeaderName::as_str) {
            self.sent.insert((operation.to_owned(), name.to_owned()));
            if !OF_TRANSPORT.contains(&name) && !named.contains(name) {
                self.faults.push(format!("{at}: header {name} is not described"));
            }
        }
        let kind = headers.get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let kind = kind.as_deref().and_then(|kind| kind.split(';').next()).unwrap_or_default();
        let content = &response["content"];
        if body.is_empty() {
            if content.is_object() && status != 304 {
                self.faults.push(format!("{at}: no body"));
            }
            return (status, Value::Null);
        }
        if !content[kind].is_object() {
            self.faults.push(format!("{at}: {kind:?} is not described"));
        }
        let Ok(value) = serde_json::from_slice::<Value>(&body) else {
            return (status, Value::Null);
        };
        let schemas = Schemas(&self.document);
        let faults = schemas.faults(&content[kind]["schema"], &value, &at);
        self.faults.extend(faults);
        (status, value)
    }

    /// The same, once the journal has what is requested.
    async fn ask_until(
        &mut self,
        operation: &str,
        call: Call<'_>,
        found: fn(&Value) -> bool,
    ) -> Value {
        let deadline = Instant::now() + JOURNALED_MAX;
        loop {
            let (_, answer) = self.ask(operation, call.clone()).await;
            if found(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{operation}: {answer}");
        }
    }
}

/// The calls.
#[derive(Clone)]
struct Call<'c> {
    who: &'c str,
    path: &'c [(&'c str, &'c str)],
    query: &'c str,
    headers: &'c [(&'c str, &'c str)],
    method: Option<Method>,
    body: Option<Value>,
}

fn by(who: &str) -> Call<'_> {
    Call { who, path: &[], query: "", headers: &[], method: None, body: None }
}

const PERSON: [(&str, &str); 2] = [("on-behalf-of", "ann"), ("on-behalf-of-ip", "203.0.113.9")];

#[tokio::test]
async fn every_route_answers_as_it_describes_itself_header_by_header_and_word_by_word() {
    let mut scene = Scene::start().await;
    calls::others(&mut scene).await;
    calls::numbers(&mut scene).await;
    calls::looks(&mut scene).await;
    calls::lives(&mut scene).await;
    reservations::all(&mut scene).await;
    calls::serials(&mut scene).await;
    calls::configs(&mut scene).await;
    calls::config_changes(&mut scene).await;
    calls::changes(&mut scene).await;
    calls::tokens_and_tables(&mut scene).await;
    assert!(scene.faults.is_empty(), "{} faults:\n{}", scene.faults.len(), scene.faults.join("\n"));
    // Each route has answered, in each way that it describes.
    let mut unseen = Vec::new();
    for methods in scene.document["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            let statuses = operation["responses"].as_object().unwrap().keys();
            for status in statuses.filter_map(|status| status.parse::<u16>().ok()) {
                // Only a service that serves no request answers so.
                let is_away = (id, status) == ("show_readiness", 503);
                if !is_away && !scene.seen.contains(&(id.to_owned(), status)) {
                    unseen.push(format!("{id} {status}"));
                }
            }
        }
    }
    assert!(unseen.is_empty(), "never answered: {unseen:?}");
    // And the headers that clients act on were sent.
    for (operation, name) in [
        ("generate_number", "ratelimit"),
        ("generate_number", "ratelimit-policy"),
        ("generate_number", "idempotent-replayed"),
        ("generate_number", "preference-applied"),
        ("create_revision", "retry-after"),
        ("create_batch", "content-language"),
        ("list_configs", "www-authenticate"),
        ("list_configs", "etag"),
        ("list_configs", "allow"),
        ("list_configs", "keep-alive"),
        ("create_config", "location"),
        ("draw_up_statement", "content-security-policy"),
    ] {
        let sent = (operation.to_owned(), name.to_owned());
        assert!(scene.sent.contains(&sent), "{operation} never sent {name}");
    }
}

#[tokio::test]
async fn the_description_says_what_a_client_has_to_know_in_its_own_words() {
    let scene = Scene::start().await;
    let schemas = Schemas(&scene.document);
    for (path, methods) in scene.document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let at = format!("{method} {path}");
            // Every reference resolves.
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert!(schemas.follow(parameter)["name"].is_string(), "{at}: {parameter}");
            }
            let body = &operation["requestBody"]["content"]["application/json"];
            if body.is_object() {
                assert!(body["example"].is_object(), "{at}: its body has no example");
                let faults = schemas.faults(&body["schema"], &body["example"], &at);
                assert_eq!(faults, Vec::<String>::new());
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                for header in response["headers"].as_object().unwrap().values() {
                    assert!(schemas.follow(header)["schema"].is_object(), "{at}: {header}");
                }
                let body = &response["content"]["application/json"];
                if let Some(example) = body.get("example") {
                    let at = format!("{at} {status}");
                    let faults = schemas.faults(&body["schema"], example, &at);
                    assert_eq!(faults, Vec::<String>::new());
                }
            }
        }
    }
    let mut texts = Vec::new();
    collect(&scene.document, "", &mut texts);
    for (at, text) in texts {
        let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '.');
        for word in words {
            let is_id = word.strip_prefix(['R', 'F', 'S']).is_some_and(|rest| {
                rest.starts_with(|sign: char| sign.is_ascii_digit())
                    && rest.chars().all(|sign| sign.is_ascii_digit() || sign == '.')
            });
            assert!(!is_id, "{at}: {word} means nothing to a client: {text}");
        }
    }
}

/// All descriptions, with their places.
fn collect(value: &Value, at: &str, texts: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                if let (Some(text), true) =
                    (value.as_str(), ["description", "summary"].contains(&&**name))
                {
                    texts.push((at.to_owned(), text.to_owned()));
                }
                collect(value, &format!("{at}/{name}"), texts);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, at, texts)),
        _ => {}
    }
}

/// A text that is one of a few words lists them: a client that switches over it meets no other.
#[tokio::test]
async fn every_field_that_names_its_words_lists_them() {
    let scene = Scene::start().await;
    let mut looked_at = 0;
    for (name, schema) in scene.document["components"]["schemas"].as_object().unwrap() {
        let parts = schema["allOf"].as_array().into_iter().flatten().chain([schema]);
        for (field, described) in parts.filter_map(|part| part["properties"].as_object()).flatten()
        {
            let text = described["description"].as_str().unwrap_or_default();
            let is_text = described["type"] == "string";
            let begins = text.strip_prefix('`').and_then(|rest| rest.chars().next());
            let is_word = begins.is_some_and(|sign| sign.is_ascii_lowercase());
            if is_text && is_word && text.matches('`').count() >= 4 {
                assert!(described["enum"].is_array(), "{name}.{field}: {text}");
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 8, "only {looked_at} fields were looked at");
    let code = &scene.document["components"]["schemas"]["ProblemBody"]["properties"]["code"];
    let listed = testkit::client().get(format!("{}/problems", scene.service.url));
    let listed = listed.send().await.unwrap().text().await.unwrap();
    let pages =
        listed.lines().filter_map(|line| line.strip_prefix("/problems/")?.split(' ').next());
    let codes: Vec<&str> =
        code["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(codes, pages.collect::<Vec<_>>());
}
