//! The calls: each route, correctly and incorrectly.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::{Value, json};

use super::{Call, PERSON, Scene, by};

/// Calls that take numbers, and look-ups of these.
pub(super) async fn numbers(scene: &mut Scene) {
    let one = [("documentId", "order-4711")];
    let body = Some(scene.example("generate_number"));
    let take = Call { path: &one, headers: &PERSON, body, ..by("desk") };
    for _ in 0..2 {
        scene.ask("generate_number", take.clone()).await;
    }
    let (status, issued) = scene.ask("generate_number", take.clone()).await;
    assert_eq!((status, &issued["series"]), (200, &json!("SPO")), "{issued}");
    let other = Some(json!({ "type": "SPO", "date": "2024-01-23" }));
    scene.ask("generate_number", Call { body: other, ..take.clone() }).await;
    let waits = [("prefer", "wait=20"), ("idempotency-key", "k"), ("accept-language", "th")];
    for body in
        [json!({ "type": "NONE" }), json!({ "type": 5 }), json!([]), json!({ "type": "SPO" })]
    {
        let path = &[("documentId", "d2")];
        scene
            .ask("generate_number", Call { path, headers: &waits, body: Some(body), ..by("plain") })
            .await;
    }
    scene.ask("generate_number", Call { body: None, ..take }).await;
    for headers in [&waits[..0], &waits] {
        for _ in 0..2 {
            let body = Some(scene.example("create_batch"));
            scene.ask("create_batch", Call { headers, body, ..by("anna") }).await;
        }
    }
    let list = json!({ "documents": [
        { "document_id": "1", "type": "SPO" }, { "document_id": "2", "type": "NONE" },
    ] });
    scene.ask("create_batch", Call { body: Some(list), ..by("plain") }).await;
    let whole = json!({ "type": "SPO", "count": 3, "expand": true });
    scene.ask("create_batch", Call { body: Some(whole), ..by("plain") }).await;
    let body = Some(scene.example("preview_number"));
    scene.ask("preview_number", Call { body, ..by("plain") }).await;
}

/// Revisions, and look-ups of numbers.
pub(super) async fn looks(scene: &mut Scene) {
    let rfa = json!({
        "type": "RFA", "project": "LCBP3-C2",
        "context": { "DISCIPLINE": "TER", "RFA_TYPE": "RPT", "REV": "A" },
    });
    let path = &[("documentId", "rfa")][..];
    let (_, rfa) = scene.ask("generate_number", Call { path, body: Some(rfa), ..by("anna") }).await;
    let revise = Call { path, body: Some(scene.example("create_revision")), ..by("anna") };
    scene.ask_until("create_revision", revise.clone(), |answer| answer["replayed"] == false).await;
    scene.ask("create_revision", revise).await;
    let of = [("documentId", "nobody")];
    let body = Some(json!({ "rev": "B" }));
    scene.ask("create_revision", Call { path: &of, body, ..by("anna") }).await;
    scene
        .ask_until(
            "list_document_numbers",
            Call { path, query: "?limit=1", ..by("anna") },
            |answer| answer["numbers"][0]["revisions"][0]["document_number"].is_string(),
        )
        .await;
    for query in [
        "?number=SPO-20240122-001",
        "?type=SPO&from=2020-01-01&limit=1&sort=number",
        "?sort=x",
        "?limit=x",
    ] {
        scene
            .ask("list_numbers", Call { query, headers: &[("prefer", "wait=20")], ..by("anna") })
            .await;
    }
    for number in [rfa["document_number"].as_str().unwrap(), "SPO-20240122-999", "nothing"] {
        scene.ask("look_up_number", Call { path: &[("number", number)], ..by("anna") }).await;
    }
    scene.ask("list_counters", Call { query: "?type=SPO", ..by("anna") }).await;
    scene.ask("list_events", Call { query: "?limit=1000", ..by("anna") }).await;
    for format in ["json", "text", "csv", "html", "pdf"] {
        let query = &format!("?series=SPO&period=2024-01-22&format={format}");
        scene.ask("draw_up_statement", Call { query, ..by("anna") }).await;
    }
}

/// What becomes of numbers.
pub(super) async fn lives(scene: &mut Scene) {
    let path = &[("documentId", "noted")][..];
    let noted = json!({ "type": "NOTED", "context": { "NOTE": "n" } });
    let take = |body: Value| Call { path, body: Some(body), ..by("anna") };
    let (_, issued) = scene.ask("generate_number", take(noted.clone())).await;
    let number = issued["document_number"].as_str().unwrap().to_owned();
    let of_number = [("number", number.as_str())];
    let named = || Call { path: &of_number, ..by("anna") };
    let mut correct = scene.example("correct_number");
    (correct["number"], correct["context"]) = (json!(number), json!({ "NOTE": "m" }));
    let mut void = scene.example("void_number");
    void["number"] = json!(number);
    for who in ["anna", "anna", "plain"] {
        let call = |body: &Value| Call { body: Some(body.clone()), ..by(who) };
        scene.ask("correct_number", call(&correct)).await;
        if who == "anna" {
            scene.ask("look_up_number", named()).await;
        }
    }
    for who in ["anna", "anna", "bob", "plain"] {
        scene.ask("void_number", Call { body: Some(void.clone()), ..by(who) }).await;
    }
    scene.ask("correct_number", Call { body: Some(correct), ..by("anna") }).await;
    let mut replacing = noted.clone();
    replacing["replaces"] = json!(number);
    for body in [&replacing, &replacing, &noted] {
        scene.ask("generate_number", take(body.clone())).await;
    }
    scene.ask("look_up_number", named()).await;
    let register = scene.example("register_number");
    let mut other = register.clone();
    other["number"] = json!("DRAW-7");
    for (who, body) in
        [("anna", &register), ("anna", &register), ("bob", &register), ("anna", &other)]
    {
        scene.ask("register_number", Call { body: Some(body.clone()), ..by(who) }).await;
    }
    scene.ask("list_document_numbers", Call { path, ..by("anna") }).await;
    of_a_range(scene).await;
    let query = "?series=NOTED&period=2026&format=json";
    scene.ask("draw_up_statement", Call { query, ..by("anna") }).await;
}

/// What becomes of the numbers of a range.
async fn of_a_range(scene: &mut Scene) {
    let range = json!({ "type": "NOTED", "count": 3, "context": { "NOTE": "n" } });
    let (_, range) = scene.ask("create_batch", Call { body: Some(range), ..by("anna") }).await;
    let number = range["last_number"].clone();
    let mut assign = scene.example("assign_number");
    (assign["number"], assign["document_id"]) = (number.clone(), json!("sheet"));
    let mut other = assign.clone();
    other["document_id"] = json!("another sheet");
    for body in [&assign, &assign, &other] {
        scene.ask("assign_number", Call { body: Some(body.clone()), ..by("anna") }).await;
    }
    let path = &[("documentId", "sheet")][..];
    scene.ask("list_document_numbers", Call { path, ..by("anna") }).await;
    let mut void = scene.example("void_number");
    (void["number"], void["unused"]) = (number, json!(true));
    for _ in 0..2 {
        scene.ask("void_number", Call { body: Some(void.clone()), ..by("anna") }).await;
    }
}

/// Exchange serials, from the first to the end of a step.
pub(super) async fn serials(scene: &mut Scene) {
    let body = Some(scene.example("generate_unified_serial"));
    let key = [("idempotency-key", "unified")];
    let mut unified = Value::Null;
    for _ in 0..2 {
        let call = Call { headers: &key, body: body.clone(), ..by("plain") };
        unified = scene.ask("generate_unified_serial", call).await.1;
    }
    let unified = unified["serial"].as_str().unwrap().to_owned();
    let mut made = BTreeMap::new();
    for operation in ["generate_system_serial", "generate_interface_serial"] {
        let mut body = scene.example(operation);
        body["unified_serial"] = json!(unified);
        for _ in 0..2 {
            let call = Call { headers: &key, body: Some(body.clone()), ..by("plain") };
            let answer = scene.ask(operation, call).await.1;
            made.insert(operation, answer["serial"].as_str().unwrap().to_owned());
        }
    }
    let serial = |operation: &str| json!(made[operation]);
    let with = |scene: &Scene, operation: &str, serial: Value| {
        let mut body = scene.example(operation);
        body["serial"] = serial;
        if ["check_interface_serial", "begin_step"].contains(&operation) {
            body["unified_serial"] = json!(unified);
        }
        Some(body)
    };
    for _ in 0..2 {
        let body = with(scene, "check_interface_serial", serial("generate_interface_serial"));
        scene.ask("check_interface_serial", Call { body, ..by("plain") }).await;
    }
    for operation in ["begin_step", "begin_step", "fail_step", "begin_step"] {
        let body = with(scene, operation, serial("generate_system_serial"));
        scene.ask(operation, Call { body, ..by("plain") }).await;
    }
    let mut done = with(scene, "succeed_step", serial("generate_system_serial")).unwrap();
    done["attempt"] = json!(2);
    for (operation, body) in [
        ("succeed_step", Some(done)),
        ("begin_step", with(scene, "begin_step", serial("generate_system_serial"))),
        ("fail_step", with(scene, "fail_step", serial("generate_system_serial"))),
        ("succeed_step", Some(scene.example("succeed_step"))),
    ] {
        scene.ask(operation, Call { body, ..by("plain") }).await;
    }
    let path = [("serial", unified.as_str())];
    scene
        .ask_until("show_chain", Call { path: &path, ..by("plain") }, |answer| {
            answer["links"].as_array().is_some_and(|links| links.len() > 5)
        })
        .await;
}

/// Series, with each of their changes.
pub(super) async fn configs(scene: &mut Scene) {
    let id = |answer: &Value| answer["config_id"].to_string();
    let body = Some(scene.example("create_config"));
    for query in ["?dry_run=true", ""] {
        scene.ask("create_config", Call { query, body: body.clone(), ..by("anna") }).await;
    }
    let (_, listed) = scene.ask("list_configs", Call { query: "?code=INV", ..by("anna") }).await;
    let own = id(&listed["configs"][0]);
    let path = [("configId", own.as_str()), ("version", "1")];
    let first = &path[..1];
    scene.ask("create_config", Call { body, ..by("anna") }).await;
    let tag = format!("\"{own}-1\"");
    let known = [("if-none-match", tag.as_str())];
    for (operation, path) in [
        ("show_config", first),
        ("list_versions", first),
        ("show_version", &path),
        ("diff_versions", &path),
    ] {
        for headers in [&known[..0], &known, &[("if-none-match", "*")]] {
            scene.ask(operation, Call { path, headers, ..by("anna") }).await;
        }
    }
    scene.ask("list_configs", Call { headers: &[("if-none-match", "*")], ..by("anna") }).await;
    scene.ask("show_config", Call { path: &[("configId", "999")], ..by("anna") }).await;
}

/// Changes of an existing series.
pub(super) async fn config_changes(scene: &mut Scene) {
    let (_, listed) = scene.ask("list_configs", Call { query: "?code=INV", ..by("anna") }).await;
    let own = listed["configs"][0]["config_id"].to_string();
    let path = [("configId", own.as_str())];
    let first = &path[..];
    let tag = format!("\"{own}-1\"");
    let body = Some(scene.example("update_config"));
    for (headers, query) in [
        (&[][..], ""),
        (&[("if-match", tag.as_str())], "?dry_run=true"),
        (&[("if-match", tag.as_str())], ""),
        (&[("if-match", tag.as_str())], ""),
    ] {
        scene
            .ask(
                "update_config",
                Call { path: first, headers, query, body: body.clone(), ..by("anna") },
            )
            .await;
    }
    let mut wrong = body.clone().unwrap();
    wrong["document_date"] = json!("5y");
    let second = [("if-match", format!("\"{own}-2\""))];
    let second = [("if-match", second[0].1.as_str())];
    let (status, told) = scene
        .ask(
            "update_config",
            Call { path: first, headers: &second, body: Some(wrong), ..by("anna") },
        )
        .await;
    assert_eq!((status, &told["field"]), (422, &json!("document_date")), "{told}");
    let body = Some(scene.example("roll_back_config"));
    scene.ask("roll_back_config", Call { path: first, headers: &second, body, ..by("anna") }).await;
    for operation in ["deactivate_config", "activate_config"] {
        for query in ["?dry_run=true", ""] {
            let body = Some(scene.example(operation));
            scene.ask(operation, Call { path: first, query, body, ..by("anna") }).await;
        }
    }
    let (_, now) = scene.ask("show_config", Call { path: first, ..by("anna") }).await;
    let tag = format!("\"{own}-{}\"", now["version"]);
    let headers = [("if-match", tag.as_str())];
    for _ in 0..2 {
        scene
            .ask(
                "remove_config",
                Call {
                    path: first,
                    query: "?reason=typing+error",
                    headers: &headers,
                    ..by("anna")
                },
            )
            .await;
    }
}

/// Changes that two people answer for.
pub(super) async fn changes(scene: &mut Scene) {
    let path = [("documentId", "book")];
    let body = Some(json!({ "type": "BOOK", "date": "2031-05-01" }));
    scene.ask("generate_number", Call { path: &path, body, ..by("anna") }).await;
    let counters = scene
        .ask_until("list_counters", Call { query: "?series=BOOK", ..by("anna") }, |answer| {
            answer["counters"][0]["counter_id"].is_number()
        })
        .await;
    let (counter, config) = (
        counters["counters"][0]["counter_id"].clone(),
        counters["counters"][0]["config_id"].to_string(),
    );
    let path = [("configId", config.as_str())];
    for operation in ["reset_counter", "reset_chronology"] {
        let mut body = scene.example(operation);
        body["counter_id"] = counter.clone();
        if operation == "reset_chronology" {
            body["last_date"] = json!("2030-01-01");
        }
        for _ in 0..2 {
            scene
                .ask(operation, Call { path: &path, body: Some(body.clone()), ..by("anna") })
                .await;
        }
    }
    let (_, listed) = scene.ask("list_changes", by("anna")).await;
    let asked = listed["change_requests"].as_array().unwrap().clone();
    for (change, operation) in
        asked.iter().zip(["approve_change", "reject_change", "approve_change", "reject_change"])
    {
        let id = change["change_id"].to_string();
        let path = [("changeId", id.as_str())];
        for who in ["anna", "bob"] {
            let body = Some(scene.example(operation));
            scene.ask(operation, Call { path: &path, body, ..by(who) }).await;
        }
    }
    scene.ask("list_changes", Call { query: "?pending=true", ..by("anna") }).await;
    let (_, told) = scene
        .ask(
            "approve_change",
            Call { path: &[("changeId", "999")], body: Some(json!({})), ..by("bob") },
        )
        .await;
    assert_eq!(told["code"], "change-not-found", "{told}");
}

/// Tokens of the ledger, and reference data.
pub(super) async fn tokens_and_tables(scene: &mut Scene) {
    let body = Some(scene.example("create_token"));
    for _ in 0..2 {
        scene.ask("create_token", Call { body: body.clone(), ..by("anna") }).await;
    }
    for (operation, name) in [
        ("rotate_token", "order-desk"),
        ("revoke_token", "order-desk"),
        ("revoke_token", "nobody"),
        ("rotate_token", "order-desk"),
    ] {
        let body = Some(scene.example(operation));
        scene.ask(operation, Call { path: &[("name", name)], body, ..by("anna") }).await;
    }
    scene.ask("list_tokens", by("anna")).await;
    let path = &[("table", "organizations")][..];
    let body = Some(scene.example("change_rows"));
    for query in ["?dry_run=true", "", ""] {
        scene.ask("change_rows", Call { path, query, body: body.clone(), ..by("anna") }).await;
    }
    for (operation, path) in [
        ("list_tables", &path[..0]),
        ("list_rows", path),
        ("list_memberships", path),
        ("list_rows", &[("table", "none")]),
    ] {
        for headers in [&[][..], &[("if-none-match", "*")]] {
            scene.ask(operation, Call { path, headers, ..by("anna") }).await;
        }
    }
}

/// Calls that need no token, and a caller without any access.
pub(super) async fn others(scene: &mut Scene) {
    for operation in ["show_health", "show_readiness", "show_metrics", "list_problems"] {
        scene.ask(operation, by("")).await;
        scene.ask(operation, Call { method: Some(Method::DELETE), ..by("") }).await;
    }
    for code in ["internal", "none"] {
        scene.ask("show_problem", Call { path: &[("code", code)], ..by("") }).await;
    }
    scene.ask("list_configs", by("")).await;
    scene
        .ask("list_configs", Call { headers: &[("authorization", "Bearer nbr_x")], ..by("") })
        .await;
    scene.ask("list_tokens", by("plain")).await;
    scene.ask("list_configs", Call { method: Some(Method::PATCH), ..by("anna") }).await;
    scene
        .ask("preview_number", Call { headers: &PERSON, body: Some(json!({})), ..by("plain") })
        .await;
}
