//! What the shipped roles of PostgreSQL leave to the service and keep from whoever has its password.

use harness::postgres::Postgres;
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::{API, SUPER, Scene};
use crate::deployment::Deployment;

const ROLES: &str = include_str!("../../../deploy/postgres/roles.sql");

/// What the writer's rights are not for.
const WRITER: [&str; 14] = [
    "update event set detail = '{}'",
    "delete from event",
    "update revision set reason = 'x'",
    "delete from revision",
    "update series_version set definition = '{}'",
    "delete from series_version",
    "delete from token",
    "update token set roles = '[\"super-admin\"]'",
    "update token set name = 'x'",
    "update change_request set requested_by = 'x'",
    "update change_request set next_value = 9",
    "update change_request set decided_by = 'x'",
    "delete from change_request",
    "truncate change_request",
];

/// Nor the auditor's.
const AUDITOR: [&str; 3] = [
    "select sha256 from token",
    "select former_sha256 from token",
    "update change_request set decided_by = 'x'",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_does_all_that_is_managed_and_rewrites_nothing_of_it() {
    let postgres = Postgres::start();
    let owned = Deployment::new(&postgres.url("managed"), None);
    owned.apply_load_series();
    for role in ["writer", "archiver", "auditor"] {
        postgres.sql(&format!("create role numerator_{role} login"));
    }
    // Again as after a later migration.
    for _ in 0..2 {
        postgres.sql(&format!("set search_path = managed; {ROLES}"));
    }
    let url = |role: &str| {
        postgres.url("managed").replace("//postgres@", &format!("//numerator_{role}@"))
    };
    let scene = Scene::start(
        Deployment::new(&url("writer"), None),
        &[("orders", &[]), ("boss", SUPER), ("anna", SUPER), ("bert", SUPER)],
    );
    assert_eq!(scene.number("orders", "d1").await.0, 201);
    let series = json!({ "code": "X", "name": "X", "template": "X-{SEQ:3}", "serials": [{}],
        "serves": { "types": ["X"] }, "reason": "new" });
    let request = scene.asked(&scene.tokens["anna"], None, 50).await;
    for (path, body, wanted) in [
        (format!("{request}/approve"), json!({}), 200),
        (format!("{API}/tokens"), json!({ "name": "new" }), 201),
        (format!("{API}/tokens/new/rotate"), json!({}), 200),
        (format!("{API}/tokens/new/revoke"), json!({ "reason": "over" }), 200),
        (format!("{API}/configs"), series, 201),
    ] {
        let (status, told) = scene.post("bert", &path, body).await;
        assert_eq!(status, wanted, "{path}: {told}");
    }
    let listed = Deployment::new(&url("auditor"), None).ok(&["token", "list", "--json"]);
    assert!(listed.contains("boss") && !listed.contains("sha256"), "{listed}");
    for (role, acts) in [("writer", &WRITER[..]), ("auditor", &AUDITOR)] {
        let pool = sqlx::PgPool::connect(&url(role)).await.unwrap();
        for act in acts {
            let done = sqlx::raw_sql(AssertSqlSafe((*act).to_owned())).execute(&pool).await;
            let refused = done.expect_err(act).to_string();
            let is_kept = ["permission denied", "keeps its rows"].iter();
            assert!(is_kept.clone().any(|why| refused.contains(why)), "{role}: {act}: {refused}");
        }
    }
}
