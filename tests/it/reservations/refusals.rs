//! What is refused, by the field that is wrong and with its remedy, and changes nothing; what
//! counts against limits; and who sees a reservation by its number.

use super::*;

/// Series that reserve nothing: of several serials, with an accepted ambiguity, of a source, of an
/// id.
const UNFIT: &str = "[[series]]\ncode = \"TWO\"\nname = \"TWO\"\npolicy = \"gapless\"\n\
    template = \"T-{SEQ:4}-{SEQ:6:ALL}\"\nserves = { types = [\"TWO\"] }\n\
    [[series.serials]]\ncounter = [\"type\"]\n\
    [[series.serials]]\nname = \"ALL\"\ncounter = []\n\
    [[series]]\ncode = \"ALIKE\"\nname = \"ALIKE\"\npolicy = \"gapless\"\n\
    ambiguity_accepted = \"The other office asks for it.\"\n\
    template = \"A-{SEQ:4}\"\nserves = { types = [\"ALIKE\"] }\n\
    [[series.serials]]\ncounter = [\"type\"]\n\
    [[series]]\ncode = \"CONTRACT\"\nname = \"CONTRACT\"\npolicy = \"gapless\"\n\
    template = \"HT{ERP}\"\nserves = { types = [\"CONTRACT\"] }\n\
    [series.variables.ERP]\nsource = \"erp\"\nalphabet = \"0-9\"\nwidth_max = 12\n\
    [[series]]\ncode = \"IDS\"\nname = \"IDS\"\npolicy = \"gapless\"\n\
    template = \"D-{SNOWFLAKE}\"\nserves = { types = [\"IDS\"] }\n";

/// A refusal as callers read it.
fn refused(answer: &(u16, Value)) -> (u16, Option<&str>, Option<&str>) {
    let (status, told) = answer;
    assert_eq!(told["number_taken"], "no", "{told}");
    (*status, told["code"].as_str(), told["field"].as_str())
}

#[tokio::test]
async fn bad_input_is_refused_by_its_field_and_changes_nothing() {
    let (mut deployment, [shop, other, _]) = deployment();
    deployment.extra += "[external.erp]\naddress = \"http://127.0.0.1:9/\"\n";
    let file = deployment.path("unfit.toml");
    std::fs::write(&file, UNFIT).unwrap();
    deployment.apply(&[file]);
    let service = deployment.serve();
    let wanted = |more: &[(&str, Value)]| {
        let mut body = json!({ "type": "INV", "document_id": "d" });
        for (name, value) in more {
            body[*name] = value.clone();
        }
        body
    };
    for (more, field, says) in [
        (vec![("ttl", json!("0s"))], "ttl", "1s"),
        (vec![("ttl", json!("365d"))], "ttl", "reservations.ttl_max"),
        (vec![("ttl", json!("soon"))], "ttl", "not a duration"),
        (vec![("ttl", json!("-5m"))], "ttl", "not a duration"),
        (vec![("document_id", json!(" "))], "document_id", ""),
        (vec![("replaces", json!("I-0009"))], "replaces", "generate-number"),
        (vec![("type", json!("FAST"))], "type", "void"),
        (vec![("type", json!("TWO"))], "type", "one serial"),
        (vec![("type", json!("ALIKE"))], "type", "ambiguity_accepted"),
        (vec![("type", json!("CONTRACT"))], "type", "source"),
        (vec![("type", json!("IDS"))], "type", "without an id"),
    ] {
        let body = wanted(&more);
        let answer = reserve(&service, &shop, body.clone()).await;
        let (status, _, found) = refused(&answer);
        assert_eq!((status, found), (422, Some(field)), "{body}: {}", answer.1);
        assert!(answer.1["detail"].as_str().unwrap().contains(says), "{body}: {}", answer.1);
    }
    // A batch reserves nothing: neither a range, nor one of a list.
    let batches = "/api/v1/document-numbering/batches";
    let range = json!({ "type": "INV", "count": 2, "ttl": "5m" });
    let answer = ask(&service, &shop, (Method::POST, batches), Some(range)).await;
    assert_eq!(refused(&answer).0, 422, "{}", answer.1);
    let list = json!({ "documents": [{ "document_id": "d", "type": "INV", "ttl": "5m" }] });
    let (_, told) = ask(&service, &shop, (Method::POST, batches), Some(list)).await;
    let item = told.to_string();
    assert!(item.contains("ttl") && !item.contains("I-0001"), "{told}");
    // No reservation, or none of the caller's: what there is does not show.
    let (_, made) = reserve(&service, &shop, wanted(&[])).await;
    assert_eq!(made["document_number"], "I-0001", "nothing was taken: {made}");
    let unknown = uuid::Uuid::new_v4().to_string();
    for deed in ["confirm", "cancel"] {
        let nobodys = act(&service, &shop, &unknown, deed, json!({})).await;
        let anothers = act(&service, &other, &id(&made), deed, json!({})).await;
        for answer in [nobodys, anothers] {
            let told = refused(&answer);
            assert_eq!(told, (404, Some("reservation-not-found"), None), "{}", answer.1);
        }
        let answer = act(&service, &shop, "no-id", deed, json!({})).await;
        assert_eq!(refused(&answer).2, Some("reservationId"), "{}", answer.1);
        let answer = act(&service, &shop, &id(&made), deed, json!({ "until": "noon" })).await;
        assert_eq!(refused(&answer).0, 422, "{}", answer.1);
    }
    for reason in ["", "   ", "a\u{0}b", &"x".repeat(501)] {
        let body = json!({ "reason": reason });
        let answer = act(&service, &shop, &id(&made), "cancel", body).await;
        assert_eq!(refused(&answer).2, Some("reason"), "{reason:?}: {}", answer.1);
    }
    let (_, told) = look(&service, &shop, &id(&made)).await;
    assert_eq!(told["status"], "reserved", "{told}");
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_reservation_counts_against_limits_and_what_is_done_with_it_does_not() {
    let mut deployment = Deployment::sqlite(None);
    deployment.extra =
        "[auth]\nmode = \"on\"\n[limits]\nuser_per_minute = 2\naddress_per_minute = 0\n".into();
    let gapless = deployment.series_file("INV", "I-{SEQ:4}", "policy = \"gapless\"");
    deployment.apply(&[gapless]);
    let token = deployment.ok(&["token", "create", "erp", "--speaks-for-people"]);
    let token = token.trim();
    let service = deployment.serve();
    let post = async |path: &str, body: Value| {
        let request = testkit::client().post(format!("{}{path}", service.url)).json(&body);
        let request = request.bearer_auth(token).header("on-behalf-of", "ann");
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let wanted = |document: &str| json!({ "type": "INV", "document_id": document });
    let (status, one) = post(RESERVATIONS, wanted("d1")).await;
    assert_eq!(status, 201, "{one}");
    let (status, two) = post(RESERVATIONS, wanted("d2")).await;
    assert_eq!(status, 201, "{two}");
    let (status, told) = post(RESERVATIONS, wanted("d3")).await;
    assert_eq!((status, &told["code"]), (429, &json!("too-many-requests")), "{told}");
    // What the caller has is shown, and may be confirmed or given up, whatever limits say.
    for (document, made) in [("d1", &one), ("d2", &two)] {
        let (status, told) = post(RESERVATIONS, wanted(document)).await;
        assert_eq!((status, id(&told)), (200, id(made)), "{told}");
    }
    for (made, deed) in [(&one, "confirm"), (&one, "confirm"), (&two, "cancel"), (&two, "cancel")] {
        let (status, told) = post(&format!("{RESERVATIONS}/{}/{deed}", id(made)), json!({})).await;
        assert_eq!(status, 200, "{told}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_number_that_is_reserved_is_found_by_those_who_see_it() {
    let (deployment, [shop, other, audit]) = deployment();
    let service = deployment.serve();
    let wanted = json!({ "type": "INV", "document_id": "d1", "ttl": "10m" });
    let (_, made) = reserve(&service, &shop, wanted).await;
    let by_path = "/api/v1/document-numbering/numbers/I-0001";
    let by_text = "/api/v1/document-numbering/numbers?number=I-0001";
    for token in [&shop, &audit] {
        let (status, told) = ask(&service, token, (Method::GET, by_path), None).await;
        let found = &told["reservations"][0];
        assert_eq!((status, &told["issued"]), (200, &json!(false)), "{told}");
        assert_eq!((&found["status"], id(found)), (&json!("reserved"), id(&made)), "{told}");
        let about = (&found["document_id"], &found["reserved_by"], &found["expires_at"]);
        assert_eq!(about, (&json!("d1"), &json!("shop"), &made["expires_at"]), "{told}");
        let (status, told) = ask(&service, token, (Method::GET, by_text), None).await;
        assert_eq!((status, &told["code"]), (404, &json!("number-not-found")), "{told}");
        assert!(told["detail"].as_str().unwrap().contains("reserved for d1 until"), "{told}");
    }
    let (_, told) = ask(&service, &other, (Method::GET, by_path), None).await;
    assert_eq!(told["reservations"], Value::Null, "{told}");
    let (_, told) = ask(&service, &other, (Method::GET, by_text), None).await;
    assert!(!told.to_string().contains("d1"), "{told}");
    let reason = json!({ "reason": "the customer left" });
    let (status, _) = act(&service, &shop, &id(&made), "cancel", reason).await;
    assert_eq!(status, 200);
    let ended = eventually(SWEPT_LIMIT, async || {
        let (_, told) = ask(&service, &audit, (Method::GET, by_path), None).await;
        if told["gaps"][0]["reason"] == "returned" { Ok(told) } else { Err(told) }
    })
    .await;
    let found = &ended["reservations"][0];
    let told = (&found["status"], &found["document_id"], &found["reason"]);
    assert_eq!(told, (&json!("cancelled"), &json!("d1"), &json!("the customer left")), "{ended}");
    let output = deployment.run(&["find", "--number", "I-0001"]);
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && why.contains("reserved for d1 until"), "{why}");
    assert!(service.terminate());
    deployment.assert_clean();
}
