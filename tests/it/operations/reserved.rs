//! Reservations in `status` and `drain`, and those that a process leaves as it ends.

use serde_json::{Value, json as value};

use super::{json, ok};
use crate::deployment::Deployment;
use crate::lifecycle::reserved::{keep, let_go};

/// A call upon reservations, which must succeed.
async fn call(url: &str, path: &str, body: &Value) -> Value {
    let url = format!("{url}/api/v1/document-numbering/reservations{path}");
    let (status, answer) = testkit::load::post(&testkit::client(), &url, body).await;
    assert!([200, 201].contains(&status), "{status}: {answer}");
    answer
}

async fn reserve(url: &str, document: &str) -> String {
    let made = call(url, "", &value!({ "type": "INV", "document_id": document })).await;
    made["reservation_id"].as_str().unwrap().to_owned()
}

fn deployment() -> Deployment {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    let file = deployment.series_file("INV", "I-{SEQ:4}", "policy = \"gapless\"");
    deployment.apply(&[file]);
    deployment
}

/// Goal: what a process that was killed has confirmed is shown, and journaled without a service.
/// Method: a trigger keeps every sweep from its work until the process is gone.
#[tokio::test]
async fn status_shows_reservations_and_drain_journals_those_that_are_confirmed() {
    let deployment = deployment();
    let mut service = deployment.serve();
    let (one, _other) = (reserve(&service.url, "d1").await, reserve(&service.url, "d2").await);
    keep(&deployment).await;
    call(&service.url, &format!("/{one}/confirm"), &value!({})).await;
    let (_, status) = json(&deployment, &["status"]);
    let live = &status["reservations"];
    assert_eq!((&live["reserved"], &live["confirmed"]), (&1.into(), &1.into()), "{status}");
    let (_, text) = deployment.status(&[]);
    assert!(text.contains("reservations: reserved 1, confirmed 1, cancelled 0"), "{text}");
    service.kill();
    let_go(&deployment).await;
    let (_, dry) = json(&deployment, &["drain"]);
    assert_eq!(dry["reservations_confirmed"], 1, "{dry}");
    let applied = ok(&deployment, &["drain", "--apply"]);
    let told = (&applied["reservations_journaled"], &applied["reservations_confirmed"]);
    assert_eq!(told, (&1.into(), &0.into()), "{applied}");
    let found = ok(&deployment, &["find", "--number", "I-0001"]);
    assert_eq!(found["numbers"][0]["status"], "issued", "{found}");
    deployment.assert_clean();
}

/// A process that is asked to end journals what its callers have confirmed.
#[tokio::test]
async fn a_process_that_ends_leaves_no_confirmed_reservation_behind() {
    let deployment = deployment();
    let service = deployment.serve();
    let mut made = Vec::new();
    for document in 1..=60 {
        made.push(reserve(&service.url, &format!("d{document}")).await);
    }
    keep(&deployment).await;
    for one in &made {
        call(&service.url, &format!("/{one}/confirm"), &value!({})).await;
    }
    let_go(&deployment).await;
    assert!(service.terminate());
    assert_eq!(ok(&deployment, &["reservations"]), value!([]));
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["journal"], 60, "{report}");
}

/// A command that confirms does not wait for a service to journal it.
#[tokio::test]
async fn a_command_that_confirms_leaves_its_number_in_the_journal() {
    let deployment = deployment();
    let made = ok(&deployment, &["reserve", "INV", "--document", "d1"]);
    let id = made["reservation_id"].as_str().unwrap();
    ok(&deployment, &["confirm", id]);
    let found = ok(&deployment, &["find", "--number", "I-0001"]);
    assert_eq!(found["numbers"][0]["document_id"], "d1", "{found}");
    deployment.assert_clean();
}
