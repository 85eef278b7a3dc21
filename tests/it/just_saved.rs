//! Recent saves: no process refuses one for good because it does not know of it yet, and a recent
//! change is reported as recent.

use std::sync::Arc;

use numbering::Inputs;
use numerator::auth::Identity;
use numerator::clock::SystemClock;
use numerator::config::{Settings, Sources};
use numerator::engine::allocator::{NumberTaken, Request};
use numerator::ledger::SeriesRemoval;
use numerator::startup::{Mode, Service};
use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service as Process;

use crate::deployment::Deployment;

async fn take(process: &Process, document: &str, body: Value) -> (u16, Value) {
    let url = format!("{}/api/v1/documents/{document}/generate-number", process.url);
    post(&testkit::client(), &url, &body).await
}

/// `series apply && curl`, as a script does it, at each of two processes; by the command and by the
/// route, for a new type, for a variable that a series got, and for a code that a table got.
#[tokio::test]
async fn what_was_saved_a_moment_ago_is_served_by_every_process() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("saved"), None);
    let processes = [deployment.serve(), deployment.serve()];
    let configs = format!("{}/api/v1/document-numbering/configs", processes[0].url);
    for round in 0..4 {
        let code = format!("C{round}");
        let file = deployment.series_file(&code, &format!("{code}-{{SEQ:4}}"), "");
        deployment.apply(&[file]);
        for (index, process) in processes.iter().enumerate() {
            let (status, body) = take(process, &format!("d{index}"), json!({ "type": code })).await;
            assert_eq!(status, 201, "round {round}, process {index}: {body}");
        }
        let settings = "[series.variables.SITE]\ndefault = \"X\"\n";
        let file = deployment.series_file(&code, &format!("{code}-{{SEQ:4}}{{SITE}}"), "");
        let text = std::fs::read_to_string(&file).unwrap() + settings;
        std::fs::write(&file, text).unwrap();
        deployment.apply(&[file]);
        for (index, process) in processes.iter().enumerate() {
            let body = json!({ "type": code, "context": { "SITE": "A" } });
            let (status, body) = take(process, &format!("s{index}"), body).await;
            assert_eq!(status, 201, "round {round}, process {index}: {body}");
        }
        let code = format!("R{round}");
        let definition = json!({
            "code": code, "name": "n", "template": format!("{code}-{{SEQ:4}}"), "reason": "new",
            "serves": { "types": [code] }, "serials": [{}],
        });
        let (status, body) = post(&testkit::client(), &configs, &definition).await;
        assert_eq!(status, 201, "{body}");
        let (status, body) = take(&processes[1], "d", json!({ "type": code })).await;
        assert_eq!(status, 201, "round {round}: {body}");
    }
    for process in processes {
        assert!(process.terminate());
    }
}

/// A request for a series which was just removed: an error of neither the ledger nor the request.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_just_changed_is_said_to_have_just_changed() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for redis in [None, Some(redis.url())] {
        let schema = if redis.is_some() { "redis" } else { "alone" };
        let deployment = Deployment::new(&postgres.url(schema), redis.as_deref());
        for code in ["GONE", "STAYS"] {
            let file = deployment.series_file(code, &format!("{code}-{{SEQ:4}}"), "");
            deployment.apply(&[file]);
        }
        let file = Some(deployment.path("numerator-0.toml"));
        let settings = Settings::load(&Sources { file, ..Sources::default() }).unwrap();
        let clock = Arc::new(SystemClock);
        let service = Service::start(&settings, clock, Mode::Command).await.unwrap();
        let request = |type_code: &str| Request {
            inputs: Inputs { type_code: type_code.into(), ..Inputs::default() },
            document_id: Some("d".into()),
            count: 1,
            reserve_for: None,
            again: false,
            replaces: None,
            idempotency_key: None,
            identity: Arc::new(Identity::local("u", 1)),
            user_id: "u".into(),
            ip_address: None,
        };
        service.allocator.issue(request("STAYS")).await.unwrap();
        let gone = service.ledger.series().list().await.unwrap();
        let gone = gone.iter().find(|version| version.definition.code == "GONE").unwrap();
        let removal = SeriesRemoval {
            series_id: gone.series_id,
            expected: None,
            removed_by: "me".into(),
            reason: "over".into(),
            removed_at_us: 1,
        };
        let node = service.context.membership.node();
        service.ledger.series().remove(node, &removal).await.unwrap();
        let error = service.allocator.issue(request("GONE")).await.expect_err("it is gone");
        assert_eq!(error.number_taken(), NumberTaken::No);
        assert!(error.retry_useful(), "{schema}: {error:?}");
        assert!(error.to_string().contains("has just changed"), "{schema}: {error}");
        service.stop().await.unwrap();
    }
}
