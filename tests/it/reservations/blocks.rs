//! Blocks over HTTP and by commands: reserved, handed back once, given up with a reason.

use super::*;

/// Reserves a block under a key.
async fn block(service: &Service, token: &str, key: &str, count: u64) -> (u16, Value) {
    let request = testkit::client().post(format!("{}{RESERVATIONS}", service.url));
    let request = request.json(&json!({ "type": "INV", "count": count }));
    let request = request.bearer_auth(token).header("Idempotency-Key", key);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn used(used: &[(&str, &str)]) -> Value {
    let used =
        used.iter().map(|(number, document)| json!({ "number": number, "document_id": document }));
    json!({ "used": used.collect::<Vec<_>>() })
}

/// Each flaw of a hand-back by its place; nothing is changed.
async fn each_flaw_is_refused(service: &Service, shop: &str, id: &str) {
    for (list, status, code, field) in [
        (vec![("I-0002", "x"), ("I-0006", "y")], 422, "invalid-field", "used[1].number"),
        (vec![("I-0002", "x"), ("I-0002", "y")], 422, "invalid-field", "used[1].number"),
        (vec![("I-0002", "x"), ("I-0003", "x")], 422, "invalid-field", "used[1].document_id"),
        (vec![("I-0002", "x"), ("I-0003", " ")], 422, "invalid-field", "used[1].document_id"),
        (vec![("I-0002", "beside")], 409, "document-already-numbered", "used[0].document_id"),
    ] {
        let (found, told) = act(service, shop, id, "hand-back", used(&list)).await;
        let said = (found, told["code"].as_str(), told["field"].as_str());
        assert_eq!(said, (status, Some(code), Some(field)), "{list:?}: {told}");
        assert_eq!(told["number_taken"], "no", "{told}");
        // A number that stands on paper is not to be left out: it would be issued again.
        let detail = told["detail"].as_str().unwrap();
        assert!(code != "document-already-numbered" || detail.contains("void it"), "{told}");
    }
}

#[tokio::test]
async fn a_block_is_reserved_and_handed_back_once() {
    let (deployment, [shop, other, _]) = deployment();
    let service = deployment.serve();
    let (status, made) = block(&service, &shop, "book-1", 5).await;
    let told = (&made["document_number"], &made["last_number"], &made["count"]);
    assert_eq!((status, told), (201, (&json!("I-0001"), &json!("I-0005"), &json!(5))), "{made}");
    assert_eq!((&made["status"], &made["expires_at"]), (&json!("reserved"), &Value::Null));
    let (status, again) = block(&service, &shop, "book-1", 5).await;
    assert_eq!((status, id(&again), &again["replayed"]), (200, id(&made), &json!(true)));
    let (status, told) = block(&service, &shop, "book-1", 6).await;
    assert_eq!((status, &told["code"]), (422, &json!("idempotency-key-reused")), "{told}");
    // It is neither confirmed, nor given up without a reason, nor another caller's.
    let id = id(&made);
    let (status, told) = act(&service, &shop, &id, "confirm", json!({})).await;
    assert_eq!((status, &told["code"]), (409, &json!("is-a-block")), "{told}");
    let (status, told) = act(&service, &shop, &id, "cancel", json!({})).await;
    assert_eq!((status, &told["field"]), (422, &json!("reason")), "{told}");
    let (status, told) = act(&service, &other, &id, "hand-back", used(&[])).await;
    assert_eq!((status, &told["code"]), (404, &json!("reservation-not-found")), "{told}");
    let for_a_document = json!({ "document_id": "x" });
    let (status, told) = act(&service, &shop, &id, "confirm", for_a_document).await;
    assert_eq!((status, &told["code"]), (409, &json!("is-a-block")), "{told}");
    let (_, told) = ask(&service, &shop, (Method::GET, RESERVATIONS), None).await;
    let listed = &told["reservations"][0];
    let numbers = (&listed["document_number"], &listed["last_number"], &listed["count"]);
    assert_eq!(numbers, (&json!("I-0001"), &json!("I-0005"), &json!(5)), "{told}");
    let ends = (&listed["status"], &listed["expires_at"]);
    assert_eq!(ends, (&json!("reserved"), &Value::Null), "{told}");
    // A member is found, and says whose it is.
    let by_text = "/api/v1/document-numbering/numbers/I-0003";
    let (_, told) = ask(&service, &shop, (Method::GET, by_text), None).await;
    assert_eq!(told["reservations"][0]["reservation_id"], json!(id), "{told}");
    let (status, told) = number(&service, &shop, "beside").await;
    assert_eq!((status, &told["document_number"]), (201, &json!("I-0006")), "{told}");
    each_flaw_is_refused(&service, &shop, &id).await;
    let list = used(&[("I-0002", "x"), ("I-0004", "y")]);
    let (status, told) = act(&service, &shop, &id, "hand-back", list.clone()).await;
    let back = json!({ "used": 2, "returned": 3, "spent": 0 });
    assert_eq!((status, &told["status"]), (200, &json!("handed-back")), "{told}");
    assert_eq!((&told["handed_back"], &told["replayed"]), (&back, &json!(false)), "{told}");
    let (status, told) = act(&service, &shop, &id, "hand-back", list).await;
    assert_eq!((status, &told["replayed"]), (200, &json!(true)), "{told}");
    for (deed, body) in [
        ("hand-back", used(&[])),
        ("confirm", json!({})),
        ("confirm", json!({ "document_id": "x" })),
        ("cancel", json!({ "reason": "why" })),
    ] {
        let (status, told) = act(&service, &shop, &id, deed, body).await;
        let said = (status, &told["code"]);
        assert_eq!(said, (409, &json!("reservation-handed-back")), "{deed}: {told}");
    }
    for (document, wanted) in [("d1", "I-0001"), ("d2", "I-0003"), ("x", "I-0002")] {
        let (_, told) = number(&service, &shop, document).await;
        let shown = &told["document_number"];
        assert_eq!(shown, wanted, "{document}: {told}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_block_is_given_up_with_a_reason_and_by_commands() {
    let (deployment, [shop, ..]) = deployment();
    let service = deployment.serve();
    let (_, made) = block(&service, &shop, "book-1", 3).await;
    let reason = json!({ "reason": "the book is lost" });
    let (status, told) = act(&service, &shop, &id(&made), "cancel", reason).await;
    assert_eq!((status, &told["status"]), (200, &json!("cancelled")), "{told}");
    let (status, told) = act(&service, &shop, &id(&made), "hand-back", used(&[])).await;
    assert_eq!((status, &told["code"]), (410, &json!("reservation-cancelled")), "{told}");
    let (status, told) = number(&service, &shop, "next").await;
    assert_eq!((status, &told["document_number"]), (201, &json!("I-0004")), "{told}");
    assert!(service.terminate());
    let made = deployment.ok(&["reserve", "INV", "--count", "3", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["last_number"], "I-0007", "{made}");
    let listed = deployment.ok(&["reservations"]);
    assert!(listed.contains("I-0005 to I-0007  reserved  -  until its block"), "{listed}");
    let listed: Value = serde_json::from_str(&deployment.ok(&["reservations", "--json"])).unwrap();
    let listed = (&listed[0]["last_number"], &listed[0]["count"], &listed[0]["expires_at"]);
    assert_eq!(listed, (&json!("I-0007"), &json!(3), &Value::Null));
    let file = deployment.path("used.csv");
    std::fs::write(&file, "number,document_id\nI-0006,paper-6\n").unwrap();
    let file = file.to_str().unwrap();
    let back = deployment.ok(&["hand-back", &id(&made), "--used", "I-0005=paper-5", file]);
    assert!(back.contains("used 2, returned 1, spent 0"), "{back}");
    let next = deployment.ok(&["next", "INV", "--document", "after"]);
    assert!(next.contains("I-0007"), "{next}");
    deployment.assert_clean();
}
