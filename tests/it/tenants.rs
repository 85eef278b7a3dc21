//! Tenants of one series who do not reach each other, each with documents of its own.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for a service that comes back, or learns of a change.
const LIMIT: Duration = Duration::from_secs(30);

const CONFIGS: &str = "/api/v1/document-numbering/configs";

/// A series on either path that separates the documents of projects, and one that does not.
const SERIES: [(&str, &str); 3] = [
    ("APART", "once_per_document = true\ndocuments = \"project\""),
    ("DENSE", "policy = \"gapless\"\ndocuments = \"project\""),
    ("SHARED", "once_per_document = true"),
];

/// A service, two tenants who reach one project each, and a clerk who reaches all.
struct Scene {
    deployment: Deployment,
    service: Service,
    secrets: [String; 3],
}

/// Places of the secrets.
const ONE: usize = 0;
const TWO: usize = 1;
const CLERK: usize = 2;

impl Scene {
    fn start(mut deployment: Deployment) -> Self {
        deployment.extra = "[auth]\nmode = \"on\"\n".into();
        let file = |(code, settings): (&str, &str)| {
            deployment.series_file(code, &format!("{code}-{{SEQ:4}}"), settings)
        };
        deployment.apply(&SERIES.map(file));
        let clerk: &[&str] = &["--role", "caller", "--role", "super-admin"];
        let secrets =
            [("one", &["--project", "P1"][..]), ("two", &["--project", "P2"]), ("clerk", clerk)];
        let secrets = secrets.map(|(name, options)| {
            let created = deployment.ok(&[&["token", "create", name], options].concat());
            created.trim().to_owned()
        });
        let service = deployment.serve();
        Scene { deployment, service, secrets }
    }

    /// Asks until the service answers something that is not a temporary error.
    async fn ask(&self, who: usize, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let (url, started) = (format!("{}{path}", self.service.url), Instant::now());
        loop {
            let request = testkit::client().request(method.clone(), &url);
            let request = request.bearer_auth(&self.secrets[who]);
            let request = if body.is_null() { request } else { request.json(body) };
            let answer = request.send().await.unwrap();
            let (status, told) = (answer.status().as_u16(), answer.json().await.unwrap());
            if status < 500 {
                return (status, told);
            }
            assert!(started.elapsed() < LIMIT, "{told}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn take(&self, who: usize, document: &str, body: Value) -> (u16, Value) {
        let path = format!("/api/v1/documents/{document}/generate-number");
        self.ask(who, Method::POST, &path, &body).await
    }

    /// The number of a request, which is new, or is not.
    async fn number(&self, who: usize, body: Value, is_new: bool) -> String {
        let (status, told) = self.take(who, "o1", body).await;
        assert_eq!(status, if is_new { 201 } else { 200 }, "{told}");
        told["document_number"].as_str().unwrap().to_owned()
    }
}

fn body(type_code: &str, project: Option<&str>) -> Value {
    match project {
        Some(project) => json!({ "type": type_code, "project": project }),
        None => json!({ "type": type_code }),
    }
}

/// Goal: for every caller a document of a project has one number, and another project's document of
/// the same id another one. Method: both tenants and a clerk ask for one id in each series, before
/// and after everything in memory is gone.
async fn are_kept_apart(deployment: Deployment, forget: impl Fn()) {
    let scene = Scene::start(deployment);
    let owners = [(ONE, Some("P1")), (TWO, Some("P2")), (CLERK, None)];
    let mut known = Vec::new();
    for type_code in ["APART", "DENSE"] {
        for (who, project) in owners {
            let number = scene.number(who, body(type_code, project), true).await;
            known.push((who, body(type_code, project), number));
        }
        // Another payload is refused as before, and shown the project's own number.
        let mut dated = body(type_code, Some("P2"));
        dated["date"] = json!("2024-01-22");
        let (status, told) = scene.take(TWO, "o1", dated).await;
        assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
        let own = &known[known.len() - 2].2;
        assert!(told["detail"].as_str().unwrap().contains(own), "{own}: {told}");
        // A project is one in each of its spellings.
        for (project, status, slug) in
            [("e\u{301}", 201, Value::Null), ("é", 409, json!("document-already-numbered"))]
        {
            let told = scene.take(CLERK, "o2", body(type_code, Some(project))).await;
            assert_eq!((told.0, &told.1["code"]), (status, &slug), "{}", told.1);
        }
        let other = json!({ "documents": [
            { "document_id": "b", "type": type_code, "project": "P1" },
            { "document_id": "b", "type": type_code, "project": "P2" },
            { "document_id": "b", "type": type_code, "project": "P1" },
        ] });
        let batches = "/api/v1/document-numbering/batches";
        let (status, told) = scene.ask(CLERK, Method::POST, batches, &other).await;
        let numbers: Vec<&Value> =
            (0..3).map(|place| &told["items"][place]["document_number"]).collect();
        assert!(status < 300 && numbers[0] != numbers[1] && numbers[0] == numbers[2], "{told}");
    }
    let numbers: std::collections::BTreeSet<&String> = known.iter().map(|(.., it)| it).collect();
    assert_eq!(numbers.len(), known.len(), "{known:?}");
    let shared = scene.number(ONE, body("SHARED", Some("P1")), true).await;
    for is_forgotten in [false, true] {
        if is_forgotten {
            forget();
        }
        for (who, body, number) in &known {
            for who in [*who, CLERK] {
                assert_eq!(scene.number(who, body.clone(), false).await, *number, "{body}");
            }
        }
        // Without the setting a series has one document of an id, not shown beyond its reach.
        let (status, told) = scene.take(TWO, "o1", body("SHARED", Some("P2"))).await;
        assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
        assert!(!told.to_string().contains(&shared), "{told}");
    }
    let (_, seen) = scene.ask(TWO, Method::GET, "/api/v1/documents/o1/numbers", &Value::Null).await;
    let rows = seen["numbers"].as_array().unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| row["project"] == "P2"), "{seen}");
    assert!(scene.service.terminate());
    scene.deployment.assert_clean();
}

#[tokio::test]
async fn tenants_have_documents_of_their_own_where_redis_takes_the_numbers() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("tenants"), Some(&redis.url()));
    are_kept_apart(deployment, || redis.flushall()).await;
}

#[tokio::test]
async fn tenants_have_documents_of_their_own_where_the_ledger_takes_the_numbers() {
    are_kept_apart(Deployment::embedded(), || ()).await;
}

/// Goal: a project keeps its documents under its former code, its present one and its id. Method: a
/// row is renamed between a request and its retries; the other payloads are refused, and shown the
/// number.
#[tokio::test]
async fn a_renamed_project_keeps_its_documents() {
    let deployment = Deployment::embedded();
    let import = |rows: &str| {
        let file = deployment.path("projects.csv");
        std::fs::write(&file, format!("id,code,name\n{rows}")).unwrap();
        let file = file.display().to_string();
        deployment.ok(&["reference", "import", &file, "--table", "projects", "--apply"]);
    };
    import("1,P1,One\n2,P2,Two\n");
    let settings = "policy = \"gapless\"\ndocuments = \"project\"\n\
                    references = { project = \"projects\" }";
    deployment.apply(&[deployment.series_file("LISTED", "L-{SEQ:4}", settings)]);
    let service = deployment.serve();
    let client = testkit::client();
    let take = async |document: &str, project: Value| {
        let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
        let mut body = json!({ "type": "LISTED" });
        body.as_object_mut().unwrap().extend(project.as_object().unwrap().clone());
        testkit::load::post(&client, &url, &body).await
    };
    let (status, first) = take("o1", json!({ "project": "P1" })).await;
    assert_eq!(status, 201, "{first}");
    let (status, other) = take("o1", json!({ "project": "P2" })).await;
    assert_eq!(status, 201, "{other}");
    import("1,P9,One\n");
    let started = Instant::now();
    while take("new", json!({ "project": "P9" })).await.0 >= 400 {
        assert!(started.elapsed() < LIMIT, "{}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (status, again) = take("o1", json!({ "project": "P1" })).await;
    assert_eq!((status, &again["document_number"]), (200, &first["document_number"]), "{again}");
    for form in [json!({ "project": "P9" }), json!({ "project_id": "1" })] {
        let (status, told) = take("o1", form).await;
        assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
        let number = first["document_number"].as_str().unwrap();
        assert!(told["detail"].as_str().unwrap().contains(number), "{told}");
    }
    let (status, again) = take("new", json!({ "project": "P1" })).await;
    assert_eq!((status, &again["code"]), (409, &json!("document-already-numbered")), "{again}");
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_series_that_has_numbers_keeps_whose_documents_its_ids_name() {
    let scene = Scene::start(Deployment::embedded());
    let config = async |code: &str| {
        let path = format!("{CONFIGS}?code={code}");
        let (_, list) = scene.ask(CLERK, Method::GET, &path, &Value::Null).await;
        list["configs"][0].clone()
    };
    let apply = |code: &str, documents: &str, options: &[&str]| {
        let settings = format!("once_per_document = true\ndocuments = \"{documents}\"");
        let file = scene.deployment.series_file(code, &format!("N{code}-{{SEQ:4}}"), &settings);
        let file = file.display().to_string();
        scene.deployment.run(&[&["series", "apply", &file], options].concat())
    };
    // Without a number it may still change.
    for documents in ["series", "project"] {
        assert!(apply("APART", documents, &[]).status.success());
    }
    scene.number(ONE, body("APART", Some("P1")), true).await;
    scene.number(ONE, body("SHARED", Some("P1")), true).await;
    for (code, documents) in [("APART", "series"), ("SHARED", "project")] {
        for options in [&[][..], &["--dry-run"]] {
            let refused = apply(code, documents, options);
            let told = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success(), "{code} {options:?}");
            assert!(told.contains("documents: ") && told.contains("successor"), "{told}");
        }
        let saved = config(code).await;
        let mut change = saved["definition"].clone();
        change["documents"] = json!(documents);
        change["reason"] = json!("test");
        for query in ["", "?dry_run=true"] {
            let path = format!("{CONFIGS}/{}{query}", saved["config_id"]);
            let url = format!("{}{path}", scene.service.url);
            let request = testkit::client().put(url).bearer_auth(&scene.secrets[CLERK]);
            let request = request.header("If-Match", format!("\"{}\"", saved["version"]));
            let answer = request.json(&change).send().await.unwrap();
            let (status, told) = (answer.status().as_u16(), answer.json::<Value>().await.unwrap());
            assert_eq!((status, &told["code"]), (409, &json!("series-in-use")), "{told}");
            assert_eq!(told["field"], "documents", "{told}");
        }
        assert_eq!(config(code).await["version"], saved["version"]);
    }
}
