//! What narrowed tokens see of configurations, of their versions, and of tables.

use reqwest::Method;
use serde_json::{Value, json};

use super::Scene;
use crate::deployment::Deployment;

const CONFIGS: &str = "/api/v1/document-numbering/configs";

fn scene() -> Scene {
    Scene::start(
        Deployment::embedded(),
        &[
            ("p1", "roles = [\"caller\", \"auditor\"]\nprojects = [\"P1\"]"),
            ("plain", "roles = [\"caller\", \"auditor\"]\nseries = [\"PLAIN\"]"),
            ("admin", "roles = [\"project-admin\"]\nprojects = [\"P1\"]"),
            ("all", "roles = [\"caller\", \"super-admin\"]"),
        ],
    )
}

#[tokio::test]
async fn a_version_beyond_reach_looks_like_one_that_there_is_not() {
    let (scene, configs) = (scene(), CONFIGS);
    let (_, of_none) = scene.get("plain", &format!("{configs}/999/versions/1")).await;
    let (_, config) = scene.get("all", &format!("{configs}/ONE")).await;
    let id = config["config_id"].to_string();
    for below in ["versions/1", "versions/1/diff", "versions"] {
        let (status, told) = scene.get("plain", &format!("{configs}/{id}/{below}")).await;
        assert_eq!(status, 404, "{below}: {told}");
        assert_eq!(told["detail"].as_str().unwrap().replace(&id, "999"), of_none["detail"]);
    }
    let back = Some(json!({ "version": 1, "reason": "back" }));
    let path = format!("{configs}/{id}/rollback");
    let (status, told) = scene.ask(Some("all"), Method::POST, &path, back.clone()).await;
    assert_eq!(status, 428, "{told}");
    let (_, both) = scene.get("all", &format!("{configs}/BOTH")).await;
    let path = format!("{configs}/{}/rollback", both["config_id"]);
    assert_eq!(scene.ask(Some("admin"), Method::POST, &path, back).await.0, 403);
    // What changes is shown to all readers, its effect to those that may read all of its counters.
    for (who, code, is_told) in
        [("all", "BOTH", true), ("p1", "BOTH", false), ("p1", "ONE", true), ("admin", "ONE", true)]
    {
        let (_, diff) = scene.get(who, &format!("{configs}/{code}/versions/1/diff")).await;
        assert_eq!(diff["effect"].is_object(), is_told, "{who} {code}: {diff}");
        assert_eq!(diff["changes"][0]["path"], "/active", "{diff}");
    }
}

#[tokio::test]
async fn what_was_removed_and_numbers_of_others_are_told_to_who_would_have_seen_them() {
    let (scene, configs) = (scene(), CONFIGS);
    let order = json!({ "type": "BOTH", "project": "P1" });
    scene.number("all", "b", order).await;
    // A removed one is on record for those that would have seen it.
    let gone = json!({
        "code": "GONE", "name": "Gone", "template": "GONE-{SEQ:3}", "reason": "new",
        "serves": { "types": ["GONE"], "projects": ["P2"] }, "serials": [{}],
    });
    let (_, made) = scene.ask(Some("all"), Method::POST, configs, Some(gone)).await;
    let path = format!("{configs}/{}", made["config_id"]);
    let url = format!("{}{path}?reason=x", scene.service.url);
    let request = testkit::client().delete(url).bearer_auth(&scene.tokens["all"]);
    assert_eq!(request.header("If-Match", "\"1\"").send().await.unwrap().status(), 204);
    assert_eq!(scene.get("all", &format!("{path}/versions")).await.0, 200);
    for who in ["p1", "plain"] {
        assert_eq!(scene.get(who, &format!("{path}/versions")).await.0, 404, "{who}");
        assert_eq!(scene.get(who, &format!("{path}/versions/1")).await.0, 404, "{who}");
    }
    // A number of a series beyond a caller's reach is not shown as one that reads like another.
    let like = json!({
        "code": "LIKE", "name": "Like", "template": "BOTH-{PROJECT}-{SEQ:4}", "reason": "like",
        "serves": { "types": ["LIKE"], "projects": ["P1"] }, "unique_within": ["project"],
        "serials": [{ "counter": ["type", "project"] }],
    });
    let path = format!("{configs}?dry_run=true");
    for (who, warned) in [("all", true), ("admin", false)] {
        let (status, tried) = scene.ask(Some(who), Method::POST, &path, Some(like.clone())).await;
        assert_eq!(status, 200, "{tried}");
        assert_eq!(tried["warnings"] != json!([]), warned, "{who}: {tried}");
    }
}

#[tokio::test]
async fn who_is_narrowed_reads_of_tables_what_its_series_refer_to_and_changes_none() {
    let scene = scene();
    let reference = |below: &str| format!("/api/v1/document-numbering/reference{below}");
    let post = async |who: &str, path: &str, body: Value| {
        let (status, told) = scene.ask(Some(who), Method::POST, path, Some(body)).await;
        assert!(status < 300 || who != "all", "{told}");
        status
    };
    let rows = |codes: &[&str]| {
        let row = |code: &&str| json!({ "id": code, "code": code });
        json!({ "rows": codes.iter().map(row).collect::<Vec<_>>(), "reason": "new" })
    };
    post("all", &reference("/projects"), rows(&["P1", "P2"])).await;
    post("all", &reference("/orgs"), rows(&["A", "B"])).await;
    post("all", &reference("/kinds"), rows(&["K"])).await;
    let of = |id: &str, of_id: &str| json!({ "id": id, "of_table": "projects", "of_id": of_id });
    let memberships = json!({ "memberships": [of("A", "P1"), of("B", "P2")], "reason": "new" });
    post("all", &reference("/orgs"), memberships).await;
    let series = json!({
        "code": "REFD", "name": "Refd", "template": "REFD-{PROJECT}-{SEQ:4}",
        "serves": { "types": ["REFD"] }, "references": { "project": "projects" },
        "variables": { "ORIGINATOR": { "required": true, "reference": "orgs" } },
        "serials": [{ "counter": ["project"] }], "reason": "new",
    });
    post("all", "/api/v1/document-numbering/configs", series).await;
    let ids = async |who: &str, below: &str, list: &str, field: &str| {
        let (status, told) = scene.get(who, &reference(below)).await;
        assert_eq!(status, 200, "{told}");
        let all = told[list].as_array().unwrap().clone();
        all.iter().map(|it| it[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("all", "", "tables", "table").await, ["kinds", "orgs", "projects"]);
    assert_eq!(ids("admin", "", "tables", "table").await, ["orgs", "projects"]);
    assert_eq!(ids("plain", "", "tables", "table").await, [""; 0]);
    assert_eq!(ids("admin", "/projects", "rows", "code").await, ["P1"]);
    assert_eq!(ids("all", "/orgs/memberships", "memberships", "id").await, ["A", "B"]);
    assert_eq!(ids("admin", "/orgs/memberships", "memberships", "id").await, ["A"]);
    for (who, below) in [("admin", "/kinds"), ("plain", "/orgs"), ("plain", "/orgs/memberships")] {
        let (status, told) = scene.get(who, &reference(below)).await;
        assert_eq!((status, &told["code"]), (404, &json!("table-not-found")), "{who}: {told}");
    }
    assert_eq!(post("admin", &reference("/projects"), rows(&["P3"])).await, 403);
}
