//! Numbers that a refusal shows, of a ledger that goes back beside the service that refused (F30).

use testkit::load;

use super::*;
use crate::restored::{assert_held_on_record, copy_ledger, put_in_place};

const ASSIGN: &str = "/api/v1/document-numbering/numbers/assign";

/// Numbers of another series that the services take before and behind the copy.
const TAKEN: u64 = 5;

async fn post(service: &Service, path: &str, body: Value) -> (u16, Value) {
    load::post(&testkit::client(), &format!("{}{path}", service.url), &body).await
}

/// A number is taken behind a copy of the file, and another service refuses a call for the same
/// document, which names that number. Then the taker dies, and the copy takes the file's place: the
/// number is its document's all the same.
async fn is_told_again(path: &str, body: Value) {
    let deployment = Deployment::embedded();
    let fast = deployment.series_file("FAST", "F-{SEQ:4}", "by_hand = true");
    deployment.apply(&[fast]);
    deployment.apply_load_series();
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let (mut takes, refuses) = (deployment.serve(), deployment.serve());
    let range = json!({ "type": "FAST", "date": "2026-02-03", "count": 3 });
    let (status, told) = post(&takes, &format!("{API}/batches"), range).await;
    assert_eq!(status, 201, "{told}");
    load::documents(&refuses.url, 1, TAKEN).await;
    copy_ledger(&deployment, &copy).await;
    let take = "/api/v1/documents/d1/generate-number";
    let wanted = json!({ "type": "FAST", "date": "2026-02-03" });
    let (status, told) = post(&takes, take, wanted.clone()).await;
    assert_eq!((status, &told["document_number"]), (201, &json!("F-0004")), "{told}");
    let (status, told) = post(&refuses, path, body).await;
    let said = (status, &told["code"], &told["document_number"]);
    let expected = (409, &json!("document-already-numbered"), &json!("F-0004"));
    assert_eq!(said, expected, "{told}");
    takes.kill();
    // Their loss is noticed, whatever else is.
    load::documents(&refuses.url, 1, 2 * TAKEN).await;
    put_in_place(&copy, &file);
    assert_held_on_record(&deployment, &refuses).await;
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "0"]);
    let (status, told) = eventually(LIMIT, async || {
        let (status, told) = post(&refuses, take, wanted.clone()).await;
        if status == 503 { Err(told) } else { Ok((status, told)) }
    })
    .await;
    assert_eq!((status, &told["document_number"]), (200, &json!("F-0004")), "{told}");
    assert!(refuses.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_number_that_a_refused_registration_shows_is_told_again() {
    is_told_again(REGISTER, by_hand("FAST", "F-0005", "d1")).await;
}

#[tokio::test]
async fn a_number_that_a_refused_assignment_shows_is_told_again() {
    let body = json!({ "number": "F-0002", "document_id": "d1" });
    is_told_again(ASSIGN, body).await;
}
