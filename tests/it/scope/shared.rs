//! Sources, tables and room: what all projects share is used as far as it was granted.

use std::fmt::Write as _;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::{API, Scene};
use crate::deployment::Deployment;

const ADMINS: [(&str, &[&str]); 4] = [
    ("boss", &["--role", "super-admin"]),
    ("c1", &["--role", "project-admin", "--project", "C1"]),
    ("c2", &["--role", "project-admin", "--project", "C2"]),
    ("both", &["--role", "project-admin", "--project", "C1", "--project", "C2"]),
];

fn series(code: &str, projects: &[&str], more: &Value) -> Value {
    let mut definition = json!({
        "code": code, "name": code, "template": format!("{code}-{{PROJECT}}-{{SEQ:4}}"),
        "serves": { "types": [code], "projects": projects }, "reason": "new",
        "serials": [{ "counter": ["project"] }],
    });
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    definition
}

#[tokio::test]
async fn a_source_or_a_table_is_named_by_who_is_narrowed_to_those_to_whom_it_is_given() {
    let mut deployment = Deployment::embedded();
    deployment.extra =
        "[external.erp]\naddress = \"http://127.0.0.1:9/next\"\nprojects = [\"C1\"]\n\
        [external.mes]\naddress = \"http://127.0.0.1:9/next\"\n\
        [external.crm]\naddress = \"http://127.0.0.1:9/next\"\nseries = [\"OWN\"]\n\
        [reference.sites]\nprojects = [\"C1\"]\n"
            .into();
    let scene = Scene::start(deployment, &ADMINS);
    for table in ["sites", "kinds"] {
        let rows = json!({ "rows": [{ "id": "1", "code": "A" }], "reason": "new" });
        let (status, told) = scene.post("boss", &format!("{API}/reference/{table}"), rows).await;
        assert_eq!(status, 200, "{told}");
    }
    let source = |name: &str| {
        let template = "S-{PROJECT}-{V}";
        json!({ "template": template, "serials": [], "policy": "gapless",
            "variables": { "V": { "source": name, "alphabet": "0-9", "width_max": 12 } } })
    };
    let table = |name: &str| {
        let originator = json!({ "required": true, "reference": name });
        json!({ "variables": { "ORIGINATOR": originator } })
    };
    let save = async |who: &str, definition: Value| {
        let path = format!("{API}/configs?dry_run=true");
        let (status, told) = scene.post(who, &path, definition).await;
        assert!(status == 200 || status == 403, "{told}");
        (status, told["field"].as_str().unwrap_or_default().to_owned())
    };
    let yes = (200, String::new());
    let no = |field: &str| {
        let variable = if field == "source" { "V" } else { "ORIGINATOR" };
        (403, format!("variables.{variable}.{field}"))
    };
    for (who, code, projects, says, wanted) in [
        ("c1", "S", &["C1"][..], source("erp"), yes.clone()),
        ("both", "S", &["C1"], source("erp"), yes.clone()),
        ("both", "S", &["C1", "C2"], source("erp"), no("source")),
        ("c2", "S", &["C2"], source("erp"), no("source")),
        ("c1", "S", &["C1"], source("mes"), no("source")),
        ("c1", "S", &["C1"], source("sites"), no("source")),
        ("c2", "OWN", &["C2"], source("crm"), yes.clone()),
        ("c2", "S", &["C2"], source("crm"), no("source")),
        ("c1", "S", &["C1"], table("sites"), yes.clone()),
        ("c2", "S", &["C2"], table("sites"), no("reference")),
        ("c1", "S", &["C1"], table("kinds"), no("reference")),
        ("c1", "S", &["C1"], table("erp"), no("reference")),
        ("boss", "S", &["C2"], source("mes"), yes.clone()),
        ("boss", "S", &["C2"], table("kinds"), yes),
    ] {
        let told = save(who, series(code, projects, &says)).await;
        assert_eq!(told, wanted, "{who} {code} {projects:?} {says}");
    }
    goes_on_as_it_was_given(&scene, &series("S", &["C1"], &table("sites"))).await;
}

/// Saved, turned off and on by its own admin; another one's stays out of reach.
async fn goes_on_as_it_was_given(scene: &Scene, definition: &Value) {
    let (status, made) = scene.post("c1", &format!("{API}/configs"), definition.clone()).await;
    assert_eq!(status, 201, "{made}");
    let path = format!("{API}/configs/{}", made["config_id"]);
    for act in ["deactivate", "activate"] {
        let why = json!({ "reason": "a pause" });
        let (status, told) = scene.post("c1", &format!("{path}/{act}"), why).await;
        assert_eq!(status, 200, "{act}: {told}");
    }
    let rows = format!("{API}/reference/sites");
    assert_eq!(scene.get("c1", &rows).await.0, 200);
    assert_eq!(scene.get("c2", &rows).await.0, 404);
}

/// Goal: no administrator of one project uses up what all projects share. Method: an administrator
/// that is not narrowed has brought as many series as a project may have.
#[tokio::test]
async fn a_project_takes_up_so_many_series_and_bytes_by_its_own_admins_and_no_more() {
    let deployment = Deployment::embedded();
    let file = deployment.path("many.toml");
    let mut text = String::new();
    for number in 0..99 {
        let _ = write!(
            text,
            "[[series]]\ncode = \"M{number}\"\nname = \"n\"\ntemplate = \"M{number}-{{SEQ:3}}\"\n\
             serves = {{ types = [\"M{number}\"], projects = [\"C1\"] }}\nserials = [{{}}]\n"
        );
    }
    std::fs::write(&file, text).unwrap();
    deployment.apply(&[file]);
    let scene = Scene::start(deployment, &ADMINS);
    let configs = format!("{API}/configs");
    let save = async |who: &str, dry_run: bool, definition: Value| {
        let path = format!("{configs}?dry_run={dry_run}");
        let (status, told) = scene.post(who, &path, definition).await;
        (status, told["field"].as_str().unwrap_or_default().to_owned(), told)
    };
    let (status, _, last) = save("c1", false, series("LAST", &["C1"], &json!({}))).await;
    assert_eq!(status, 201, "{last}");
    let full = (422, "serves.projects".to_owned());
    for who in ["c1", "both"] {
        for dry_run in [true, false] {
            let (status, field, told) =
                save(who, dry_run, series("ONE", &["C1"], &json!({}))).await;
            assert_eq!((status, field), full, "{told}");
            assert!(told["detail"].as_str().unwrap().contains("C1"), "{told}");
        }
    }
    // Another project, and an administrator of all, have room; existing ones may be changed.
    for (who, code, project) in [("c2", "TWO", "C2"), ("boss", "ALL", "C1")] {
        let (status, _, told) = save(who, false, series(code, &[project], &json!({}))).await;
        assert_eq!(status, 201, "{told}");
    }
    let url = format!("{}{configs}/{}", scene.service.url, last["config_id"]);
    let upon = async |request: RequestBuilder, version: u32| {
        let request = request.bearer_auth(&scene.tokens["c1"]);
        let answer = request.header("If-Match", format!("\"{version}\"")).send().await.unwrap();
        answer.status().as_u16()
    };
    let another = series("LAST", &["C1"], &json!({ "name": "L" }));
    assert_eq!(upon(testkit::client().put(&url).json(&another), 1).await, 200);
    // A removed one keeps its row, and frees no room.
    let removal = testkit::client().delete(format!("{url}?reason=over"));
    assert_eq!(upon(removal, 2).await, 204);
    let (status, field, _) = save("c1", false, series("ONE", &["C1"], &json!({}))).await;
    assert_eq!((status, field), full);
}
