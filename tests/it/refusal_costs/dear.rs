//! What makes refusals expensive: long lists to search, for each of a thousand documents.

use std::fmt::Write as _;
use std::path::PathBuf;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};

use super::{Dear, Stand};
use crate::deployment::Deployment;

/// Documents of a batch.
pub(super) const DOCUMENTS: usize = 1_000;

const SERIES: usize = 60;
const TYPES: usize = 900;
const PROJECTS: usize = 6_000;
const VALUES: usize = 1_000;

/// A thousand documents with this request.
pub(super) fn documents(asked: &Value) -> Vec<String> {
    named("d", |_| asked.clone())
}

/// Documents with these names, each with its own request.
fn named(prefix: &str, asked: impl Fn(usize) -> Value) -> Vec<String> {
    let document = |index: usize| {
        let mut document = asked(index);
        document["document_id"] = json!(format!("{prefix}{index}"));
        document.to_string()
    };
    (0..DOCUMENTS).map(document).collect()
}

/// A series of the file, with its sections after it.
pub(super) fn series(code: &str, template: &str, types: &str, more: &str) -> String {
    format!(
        "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{template}\"\n\
         serves = {{ types = [{types}] }}\n{more}\n"
    )
}

fn quoted(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

const ONE_COUNTER: &str = "serials = [{}]";

/// Series of many types each, and of a type that each serves for other projects.
fn many_series() -> String {
    let mut file = String::new();
    for index in 0..SERIES {
        let types = quoted((0..TYPES).map(|number| format!("T{index}-{number}")));
        file += &series(&format!("M{index}"), &format!("M{index}-{{SEQ:4}}"), &types, ONE_COUNTER);
    }
    for index in 0..SERIES / 6 {
        let projects = quoted((0..TYPES).map(|number| format!("K{index}-{number}")));
        let _ = write!(
            file,
            "[[series]]\ncode = \"K{index}\"\nname = \"K\"\ntemplate = \"K{index}-{{SEQ:4}}\"\n\
             serves = {{ types = [\"KNOWN\"], projects = [{projects}] }}\n\
             serials = [{{ counter = [\"type\"] }}]\n"
        );
    }
    file
}

/// Series that refuse each in its own way.
const REFUSING: &str = r#"
[[series]]
code = "NAMES"
name = "Many variables"
template = "N-{SEQ:3}"
serves = { types = ["NAMES"] }
serials = [{ counter = ["type"] }]
MANY_VARIABLES
[[series]]
code = "VALUES"
name = "Many values"
template = "W{V}-{SEQ:3}"
serves = { types = ["VALUES"] }
serials = [{ counter = ["type"] }]
variables.V = { width_max = 120, excluded = "-", values = [MANY_VALUES] }

[[series]]
code = "FREE"
name = "Any value"
template = "G{V}-{SEQ:3}"
serves = { types = ["FREE"] }
serials = [{ counter = ["type"] }]
variables.V = { width_max = 120, excluded = "-" }

[[series]]
code = "WIDE"
name = "Values of one width"
template = "L{V}-{SEQ:3}"
serves = { types = ["WIDE"] }
serials = [{ counter = ["type"] }]
variables.V = { width = 120, excluded = "-" }

[[series]]
code = "HOURS"
name = "Hours"
template = "H-{DATE:yyyyMMddHH}-{SEQ:4}"
serves = { types = ["HOURS"] }
serials = [{ reset = "hour" }]

[[series]]
code = "CLOSED"
name = "Closed"
template = "C-{SEQ:4}"
closed_before = "2024-06-01"
serves = { types = ["CLOSED"] }
serials = [{ counter = ["type"] }]

[[series]]
code = "ORDER"
name = "In order"
template = "O-{SEQ:4}"
policy = "gapless"
chronology = true
serves = { types = ["ORDER"] }
serials = [{ counter = ["type"] }]

[[series]]
code = "FULL"
name = "One number"
template = "F-{SEQ:1}"
serves = { types = ["FULL"] }
serials = [{ counter = ["type"], max = 1 }]

[[series]]
code = "PLAIN"
name = "Plain"
template = "P-{SEQ:6}"
serves = { types = ["PLAIN"] }
serials = [{ counter = ["type"] }]

[[series]]
code = "REFUSED"
name = "A source that refuses"
template = "E{V}"
policy = "gapless"
serves = { types = ["REFUSED"] }
variables.V = { source = "refusing", alphabet = "0-9", width_max = 12 }

[[series]]
code = "INVALID"
name = "A source that gives no value"
template = "I{V}"
policy = "gapless"
serves = { types = ["INVALID"] }
variables.V = { source = "wrong", alphabet = "0-9", width_max = 12 }

[[series]]
code = "AWAY"
name = "A source that nobody knows"
template = "A{V}"
policy = "gapless"
serves = { types = ["AWAY"] }
variables.V = { source = "nowhere", alphabet = "0-9", width_max = 12 }

[[series]]
code = "ONE"
name = "One of two"
template = "X{V}{SEQ:1}"
policy = "gapless"
ambiguity_accepted = "Both offices have asked for it."
serves = { types = ["ONE"] }
serials = [{ counter = ["V"] }]
variables.V = { width_max = 20 }

[[series]]
code = "OTHER"
name = "The other one"
template = "X{V}{SEQ:1}"
policy = "gapless"
ambiguity_accepted = "Both offices have asked for it."
serves = { types = ["OTHER"] }
serials = [{ counter = ["V"] }]
variables.V = { width_max = 20 }

[[series]]
code = "MEMBERS"
name = "Members"
template = "R{PROJECT}-{SEQ:4}"
serves = { types = ["MEMBERS"] }
references = { project = "projects", membership = true }
serials = [{ counter = ["project"] }]
variables.ORIGINATOR = { reference = "organizations", required = true }
"#;

fn refusing_series() -> String {
    let values = quoted((0..VALUES).map(|number| format!("{number:0>50}")));
    let variable = |index: usize| format!("variables.A_VARIABLE_{index:0>4} = {{}}\n");
    let variables: String = (0..60).map(variable).collect();
    REFUSING.replace("MANY_VALUES", &values).replace("MANY_VARIABLES\n", &variables)
}

/// A source that answers all with this.
async fn source(status: u16, body: &'static str) -> String {
    let answer = move || async move { (StatusCode::from_u16(status).unwrap(), body) };
    let router = Router::new().route("/next", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/next", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

impl Stand {
    pub(super) async fn start() -> Self {
        let mut deployment = Deployment::embedded();
        let sources = [
            ("refusing", source(422, "").await),
            ("wrong", source(200, "{\"value\":\"x\"}").await),
        ];
        for (name, url) in sources {
            let _ = write!(
                deployment.extra,
                "[external.{name}]\naddress = \"{url}\"\nattempts_max = 1\ntime_limit = \"20s\"\n\
                 concurrency_max = 1000\n"
            );
        }
        let members = (0..PROJECTS).map(|id| format!("1,P{id},true\n"));
        for (name, table, head, rows) in [
            (
                "organizations",
                None,
                "id,code,name,active\n",
                vec![
                    "1,ORG,Org,true\n".to_owned(),
                    "2,NONE,None,true\n".to_owned(),
                    "3,GONE,Gone,false\n".to_owned(),
                ],
            ),
            (
                "projects",
                None,
                "id,code,name,active\n",
                (0..PROJECTS)
                    .map(|id| format!("P{id},P{id},P,true\n"))
                    .chain(["OTHER,OTHER,O,true\n".to_owned()])
                    .collect(),
            ),
            ("organizations", Some("projects"), "id,of_id,active\n", members.collect()),
        ] {
            let file = deployment.path("rows.csv");
            std::fs::write(&file, head.to_owned() + &rows.concat()).unwrap();
            let file = file.display().to_string();
            let of = table.map_or(vec![], |of| vec!["--of", of]);
            let base = ["reference", "import", &file, "--table", name, "--apply"];
            deployment.ok(&[&base[..], &of].concat());
        }
        let files: Vec<PathBuf> = [("many", many_series()), ("refusing", refusing_series())]
            .map(|(name, text)| {
                let file = deployment.path(&format!("{name}.toml"));
                std::fs::write(&file, text).unwrap();
                file
            })
            .into();
        deployment.apply(&files);
        Stand::of(deployment, testkit::client())
    }

    /// The most expensive refusal of a kind; what it needs is taken.
    pub(super) async fn dearest(&self, slug: &str, attempt: usize) -> Dear {
        let (documents, key) = match slug {
            "malformed-json" => (malformed(), None),
            "idempotency-key-reused" => {
                let plain = |_| json!({ "type": "PLAIN", "date": "2024-01-22" });
                self.take(&named("k", plain), Some("key")).await;
                (named("l", plain), Some("key"))
            }
            "template-ambiguous" => {
                let of = |type_code: &str| {
                    let value = |index: usize| json!(format!("{attempt}v{index}x"));
                    let asked =
                        |index| json!({ "type": type_code, "context": { "V": value(index) } });
                    named(&format!("{attempt}-"), asked)
                };
                self.take(&of("ONE"), None).await;
                (of("OTHER"), None)
            }
            _ => {
                let taken = match slug {
                    "date-before-last" => {
                        r#"{"document_id":"o","type":"ORDER","date":"2024-06-02"}"#
                    }
                    "sequence-exhausted" => r#"{"document_id":"f","type":"FULL"}"#,
                    _ => "",
                };
                if !taken.is_empty() {
                    self.take(&[taken.to_owned()], None).await;
                }
                if slug == "document-already-numbered" {
                    let plain = json!({ "type": "PLAIN", "date": "2024-01-22" });
                    self.take(&documents(&plain), None).await;
                }
                (documents(&asked(slug)), None)
            }
        };
        Dear { documents, key }
    }
}

/// Documents that are not JSON: the last character is a surrogate alone.
fn malformed() -> Vec<String> {
    let document = format!("{{\"document_id\":\"{}\\ud800\"}}", "x".repeat(900));
    vec![document; DOCUMENTS]
}

/// The request of each document that is refused in this way.
fn asked(slug: &str) -> Value {
    let free = |value: String| json!({ "type": "FREE", "context": { "V": value } });
    let member =
        |originator: &str| json!({ "type": "MEMBERS", "context": { "ORIGINATOR": originator } });
    match slug {
        "invalid-field" => {
            let mut wrong = json!({ "date": 1 });
            (0..70).for_each(|index| wrong[format!("a{index}")] = json!(0));
            wrong
        }
        "unknown-type" => json!({ "type": "e\u{301}".repeat(200) }),
        "type-not-configured" => json!({ "type": "KNOWN", "project": "none" }),
        "unknown-variable" => {
            json!({ "type": "NAMES", "context": { "A_VARIABLE_9999": "x".repeat(500) } })
        }
        "missing-variable" => json!({ "type": "FREE" }),
        "value-too-long" => free("x".repeat(500)),
        "value-too-short" => json!({ "type": "WIDE", "context": { "V": "x".repeat(119) } }),
        "unknown-value" => json!({ "type": "VALUES", "context": { "V": "x".repeat(120) } }),
        "wrong-alphabet" => free("\u{410}\u{421}".repeat(60)),
        "invalid-date" => json!({ "type": "PLAIN", "date": "2".repeat(80) }),
        "time-required" => json!({ "type": "HOURS", "date": "2024-01-22" }),
        "period-closed" => json!({ "type": "CLOSED", "date": "2024-01-22" }),
        "date-before-last" => json!({ "type": "ORDER", "date": "2024-06-01" }),
        "unknown-reference" => member(&"x".repeat(500)),
        "inactive-reference" => member("GONE"),
        "project-ambiguous" => member("ORG"),
        "not-a-member" => {
            let mut asked = member("ORG");
            asked["project"] = json!("OTHER");
            asked
        }
        "document-already-numbered" => json!({ "type": "PLAIN", "date": "2024-01-23" }),
        "sequence-exhausted" => json!({ "type": "FULL" }),
        "external-refused" => json!({ "type": "REFUSED" }),
        "external-invalid" => json!({ "type": "INVALID" }),
        "external-unavailable" => json!({ "type": "AWAY" }),
        _ => panic!("{slug}: say what its dearest refusal in a batch is, or which one it costs"),
    }
}
