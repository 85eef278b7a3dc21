//! The calls of reservations.

use serde_json::json;

use super::{Call, Scene, by};

/// Reservations, from the reserve to the confirmation, and to the end.
pub(super) async fn all(scene: &mut Scene) {
    let mut held = Vec::new();
    for document in ["confirmed", "cancelled"] {
        let mut order = scene.example("create_reservation");
        order["document_id"] = json!(document);
        order.as_object_mut().unwrap().remove("date");
        for _ in 0..2 {
            let call = Call { body: Some(order.clone()), ..by("anna") };
            let (_, made) = scene.ask("create_reservation", call).await;
            held.push(made["reservation_id"].as_str().unwrap().to_owned());
        }
    }
    let (confirmed, cancelled) = (held.remove(0), held.pop().unwrap());
    for order in [json!({ "type": "INVOICE" }), json!({ "type": "SPO", "document_id": "x" })] {
        scene.ask("create_reservation", Call { body: Some(order), ..by("anna") }).await;
    }
    for query in ["", "?document_id=confirmed&series=INVOICE&limit=1", "?status=x"] {
        scene.ask("list_reservations", Call { query, ..by("anna") }).await;
    }
    let path = &[("reservationId", &*confirmed)][..];
    for (who, document) in
        [("anna", "other"), ("plain", "confirmed"), ("anna", "confirmed"), ("anna", "confirmed")]
    {
        scene.ask("show_reservation", Call { path, ..by(who) }).await;
        let body = Some(json!({ "document_id": document }));
        scene.ask("confirm_reservation", Call { path, body, ..by(who) }).await;
    }
    for id in [&confirmed, &cancelled, &cancelled] {
        let path = &[("reservationId", &**id)][..];
        let body = Some(scene.example("cancel_reservation"));
        scene.ask("cancel_reservation", Call { path, body, ..by("anna") }).await;
        scene.ask("show_reservation", Call { path, ..by("anna") }).await;
    }
    let path = &[("reservationId", &*cancelled)][..];
    scene.ask("confirm_reservation", Call { path, body: Some(json!({})), ..by("anna") }).await;
    block(scene).await;
}

/// A block, from the reserve to its hand-back.
async fn block(scene: &mut Scene) {
    let order = json!({ "type": "INVOICE", "count": 3 });
    let headers = &[("Idempotency-Key", "book")][..];
    let call = Call { body: Some(order), headers, ..by("anna") };
    let (_, made) = scene.ask("create_reservation", call).await;
    let path = &[("reservationId", made["reservation_id"].as_str().unwrap())][..];
    scene.ask("confirm_reservation", Call { path, body: Some(json!({})), ..by("anna") }).await;
    let number = made["document_number"].clone();
    let used = json!({ "used": [{ "number": number, "document_id": "by-hand" }] });
    for body in [scene.example("hand_back_reservation"), used.clone(), used, json!({ "used": [] })]
    {
        let call = Call { path, body: Some(body), ..by("anna") };
        scene.ask("hand_back_reservation", call).await;
    }
    scene.ask("show_reservation", Call { path, ..by("anna") }).await;
}
