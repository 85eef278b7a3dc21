//! Confirmed numbers of a ledger that goes back beside the service that confirmed them.

use testkit::load;

use super::*;
use crate::restored::{assert_held_on_record, copy_ledger, put_in_place};

/// How soon a service answers again once its ledger is released.
const RELEASED_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// Numbers of another series that the service takes before and behind the copy.
const TAKEN: u64 = 5;

async fn post(service: &Service, path: &str, body: Value) -> (u16, Value) {
    load::post(&testkit::client(), &format!("{}{path}", service.url), &body).await
}

/// The first answer that is no refusal: until its hold is over, a service refuses.
async fn answer(service: &Service, path: &str, body: Value) -> (u16, Value) {
    eventually(RELEASED_LIMIT, async || {
        let (status, told) = post(service, path, body.clone()).await;
        if (200..300).contains(&status) { Ok((status, told)) } else { Err(told) }
    })
    .await
}

/// Where the second service sees a reservation confirmed, the first one dies.
async fn left_to_tell(mut confirms: Service, other: Option<Service>, held: &Value) -> Service {
    let Some(other) = other else { return confirms };
    let path = format!("{}{RESERVATIONS}/{}", other.url, id(held));
    let answer = testkit::client().get(path).send().await.unwrap();
    let told: Value = answer.json().await.unwrap();
    assert_eq!(told["status"], "issued", "{told}");
    confirms.kill();
    other
}

/// A copy of the file in which a number is only reserved replaces it beside the service that
/// confirmed it, or beside one that has only found it confirmed. It is its document's afterwards.
async fn goes_back(is_only_found: bool) {
    let deployment = Deployment::embedded();
    let gapless = deployment.series_file("INV", "I-{SEQ:4}", "policy = \"gapless\"");
    deployment.apply(&[gapless]);
    deployment.apply_load_series();
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let confirms = deployment.serve();
    let other = is_only_found.then(|| deployment.serve());
    load::documents(&confirms.url, 1, TAKEN).await;
    let wanted = json!({ "type": "INV", "document_id": "d1" });
    let (status, held) = post(&confirms, RESERVATIONS, wanted).await;
    assert_eq!((status, &held["document_number"]), (201, &json!("I-0001")), "{held}");
    copy_ledger(&deployment, &copy).await;
    let confirm = format!("{RESERVATIONS}/{}/confirm", id(&held));
    let (status, told) = post(&confirms, &confirm, json!({})).await;
    assert_eq!((status, &told["status"]), (200, &json!("issued")), "{told}");
    let service = left_to_tell(confirms, other, &held).await;
    // Their loss is noticed, whatever else is.
    load::documents(&service.url, 1, 2 * TAKEN).await;
    put_in_place(&copy, &file);
    assert_held_on_record(&deployment, &service).await;
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "0"]);
    // What is not told again was spent as the hold ended.
    let (status, told) = answer(&service, &confirm, json!({})).await;
    let again = (status, &told["status"], &told["replayed"]);
    assert_eq!(again, (200, &json!("issued"), &json!(true)), "{told}");
    for (document, expected) in [("d1", (200, "I-0001")), ("d2", (201, "I-0002"))] {
        let path = format!("/api/v1/documents/{document}/generate-number");
        let (status, told) = answer(&service, &path, json!({ "type": "INV" })).await;
        let number = told["document_number"].as_str().unwrap();
        assert_eq!((status, number), expected, "{told}");
    }
    assert!(service.terminate());
    let ledger = crate::load::open(&deployment).await;
    let rows = ledger.register().numbers_of("d1", None, 10).await.unwrap();
    let numbers: Vec<_> = rows.iter().map(|row| &*row.entry.number).collect();
    assert_eq!(numbers, ["I-0001"]);
    deployment.assert_clean();
}

/// Goal: a confirmation that was answered outlives the ledger that forgets it (L9).
#[tokio::test]
async fn a_confirmation_that_the_ledger_forgets_is_told_again() {
    goes_back(false).await;
}

/// Goal: the same where the process that confirmed it is gone, and another one has shown it (L9).
#[tokio::test]
async fn a_number_that_was_only_found_confirmed_is_told_again() {
    goes_back(true).await;
}

/// Reserves a block of three numbers.
async fn block(service: &Service) -> Value {
    let request = testkit::client().post(format!("{}{RESERVATIONS}", service.url));
    let request = request.json(&json!({ "type": "INV", "count": 3 }));
    let answer = request.header("Idempotency-Key", "book-1").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    answer.json().await.unwrap()
}

/// Goal: the numbers of a hand-back outlive the process that did it and the ledger that forgets
/// them, where another process has answered the same request (L9). Method: a copy of the file in
/// which the block is live replaces it.
#[tokio::test]
async fn a_hand_back_that_was_only_repeated_is_told_again() {
    let deployment = Deployment::embedded();
    let gapless = deployment.series_file("INV", "I-{SEQ:4}", "policy = \"gapless\"");
    deployment.apply(&[gapless]);
    deployment.apply_load_series();
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let mut first = deployment.serve();
    let second = deployment.serve();
    load::documents(&first.url, 1, TAKEN).await;
    let held = block(&first).await;
    copy_ledger(&deployment, &copy).await;
    let hand_back = format!("{RESERVATIONS}/{}/hand-back", id(&held));
    let used = json!({ "used": [{ "number": "I-0002", "document_id": "d1" }] });
    for (service, replayed) in [(&first, false), (&second, true)] {
        let (status, told) = post(service, &hand_back, used.clone()).await;
        assert_eq!((status, &told["replayed"]), (200, &json!(replayed)), "{told}");
    }
    first.kill();
    // The loss is noticed, whatever else is.
    load::documents(&second.url, 1, 2 * TAKEN).await;
    put_in_place(&copy, &file);
    assert_held_on_record(&deployment, &second).await;
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "0"]);
    // What was not told again was spent as the hold ended.
    for (document, expected) in [("d2", (201, "I-0004")), ("d1", (409, "I-0002"))] {
        let path = format!("/api/v1/documents/{document}/generate-number");
        let told = match expected.0 {
            201 => answer(&second, &path, json!({ "type": "INV" })).await,
            _ => post(&second, &path, json!({ "type": "INV" })).await,
        };
        let (status, told) = told;
        let number = told["document_number"].as_str().unwrap();
        assert_eq!((status, number), expected, "{told}");
    }
    assert!(second.terminate());
    deployment.assert_clean();
}
