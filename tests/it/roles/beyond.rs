//! Only a token that is not narrowed may define what reaches beyond a series' projects (F43).

use reqwest::Method;
use serde_json::{Value, json};

use super::Scene;
use crate::deployment::Deployment;

const CONFIGS: &str = "/api/v1/document-numbering/configs";

fn scene() -> Scene {
    Scene::start(
        Deployment::embedded(),
        &[
            ("admin", "roles = [\"project-admin\"]\nprojects = [\"P1\"]"),
            ("series", "roles = [\"super-admin\"]\nseries = [\"OWN\"]"),
            ("all", "roles = [\"caller\", \"super-admin\"]"),
        ],
    )
}

/// A definition within the reach of both narrowed tokens.
fn own() -> Value {
    json!({
        "code": "OWN", "name": "Own", "template": "OWN-{V}-{SEQ:4}", "reason": "new",
        "serves": { "types": ["OWN"], "projects": ["P1"] },
        "variables": { "V": { "required": true, "alphabet": "A-Z", "width": 2 } },
        "serials": [{ "counter": ["V"] }],
    })
}

/// The field that reaches further, and a definition that says it.
fn further() -> Vec<(&'static str, Value)> {
    let edits: [(&str, &str, Value); 8] = [
        ("ambiguity_accepted", "/ambiguity_accepted", json!("The other office asks for it.")),
        ("unique_within", "/unique_within", json!(["type"])),
        ("references.project", "/references", json!({ "project": "projects" })),
        ("references.type", "/references", json!({ "type": "types" })),
        ("serves.undetermined_types", "/serves/undetermined_types", json!(["OTHER"])),
        ("variables.V.reference", "/variables/V/reference", json!("sites")),
        ("variables.V.source", "/variables/V", json!({ "source": "erp" })),
        ("variables.W.reference", "/variables/W", json!({ "reference": "sites" })),
    ];
    let put = |path: &str, value: Value| {
        let mut definition = own();
        let (at, name) = path.rsplit_once('/').unwrap();
        definition.pointer_mut(at).unwrap()[name] = value;
        definition
    };
    edits.into_iter().map(|(field, path, value)| (field, put(path, value))).collect()
}

impl Scene {
    /// The same with the version that is meant.
    async fn change(
        &self,
        who: &str,
        method: Method,
        path: &str,
        version: u64,
        body: &Value,
    ) -> (u16, Value) {
        let request = testkit::client().request(method, format!("{}{path}", self.service.url));
        let request = request.bearer_auth(&self.tokens[who]).json(body);
        let answer = request.header("If-Match", format!("\"{version}\"")).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }
}

#[tokio::test]
async fn who_is_narrowed_saves_nothing_that_reaches_beyond_its_projects() {
    let scene = scene();
    let post = async |who: &str, definition: &Value, dry_run: bool| {
        let path = format!("{CONFIGS}?dry_run={dry_run}");
        scene.ask(Some(who), Method::POST, &path, Some(definition.clone())).await
    };
    // Uniqueness within its own projects is its own affair.
    for within in [json!(["project"]), json!(["project", "type"]), json!(["type", "V", "project"])]
    {
        let mut definition = own();
        definition["unique_within"] = within;
        let (status, told) = post("admin", &definition, true).await;
        assert_eq!(status, 200, "{told}");
    }
    for (field, definition) in further() {
        for who in ["admin", "series"] {
            for dry_run in [true, false] {
                let (status, told) = post(who, &definition, dry_run).await;
                assert_eq!((status, &told["code"]), (403, &json!("not-permitted")), "{told}");
                assert_eq!(told["field"], field, "{told}");
                assert!(told["detail"].as_str().unwrap().contains(field), "{told}");
            }
        }
        // A caller that is not narrowed passes: what is refused is refused by the definition.
        let (status, told) = post("all", &definition, true).await;
        assert_ne!(status, 403, "{field}: {told}");
    }
}

#[tokio::test]
async fn nor_by_a_change_by_going_back_or_by_turning_it_on() {
    let scene = scene();
    let (status, made) = scene.ask(Some("all"), Method::POST, CONFIGS, Some(own())).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("{CONFIGS}/{}", made["config_id"]);
    for (field, definition) in further() {
        let (status, told) = scene.change("admin", Method::PUT, &path, 1, &definition).await;
        assert_eq!((status, &told["field"]), (403, &json!(field)), "{told}");
    }
    // A version that another caller saved, and one without it after that.
    let mut wide = own();
    wide["unique_within"] = json!(["type"]);
    let (status, told) = scene.change("all", Method::PUT, &path, 1, &wide).await;
    assert_eq!(status, 200, "{told}");
    let (status, told) = scene.change("admin", Method::PUT, &path, 2, &own()).await;
    assert_eq!(status, 200, "{told}");
    let back = json!({ "version": 2, "reason": "back" });
    let below = format!("{path}/rollback");
    let (status, told) = scene.change("admin", Method::POST, &below, 3, &back).await;
    assert_eq!((status, &told["field"]), (403, &json!("unique_within")), "{told}");
    let (status, told) = scene.change("all", Method::POST, &below, 3, &back).await;
    assert_eq!(status, 200, "{told}");
    // It may be turned off by its own admin, and on by one with the right to say what it says.
    let why = json!({ "reason": "over" });
    let off = format!("{path}/deactivate");
    let (status, told) = scene.change("admin", Method::POST, &off, 4, &why).await;
    assert_eq!(status, 200, "{told}");
    let on = format!("{path}/activate");
    let (status, told) = scene.change("admin", Method::POST, &on, 5, &why).await;
    assert_eq!((status, &told["field"]), (403, &json!("unique_within")), "{told}");
    let (status, told) = scene.change("all", Method::POST, &on, 5, &why).await;
    assert_eq!(status, 200, "{told}");
}
