//! What is shown of void, replaced and corrected numbers; and bad input, which changes nothing.

use serde_json::json;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{Desk, Numbered, REASON, State, apply, deployments};
use crate::deployment::Deployment;

#[tokio::test(flavor = "multi_thread")]
async fn a_life_is_shown_wherever_its_number_is_and_bad_input_changes_nothing() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "shown") {
        apply(&deployment, "LIFE", "LIFE-{SEQ:4}-{REV}");
        apply(&deployment, "ROLL", "ROLL-{SEQ:4}");
        let service = deployment.serve();
        let desk = Desk::of(&service);
        let old = desk.number(State::Issued).await;
        bad_input(&desk, &old).await;
        assert_eq!(desk.state(&old.number).await, State::Issued);
        let new = a_whole_life(&desk, &old).await;
        of_a_range(&desk, &old).await;
        assert!(service.terminate());
        on_paper(&deployment, &old, &new);
        deployment.assert_clean();
    }
}

async fn bad_input(desk: &Desk<'_>, old: &Numbered) {
    for (body, field) in [
        (json!({ "number": old.number, "reason": "too short" }), "reason"),
        (json!({ "number": old.number, "reason": "            " }), "reason"),
        (json!({ "number": old.number, "reason": "x".repeat(501) }), "reason"),
        (json!({ "number": old.number }), "reason"),
        (json!({ "number": "", "reason": REASON }), "number"),
        (json!({ "number": "a\u{1}b", "reason": REASON }), "number"),
        (json!({ "number": old.number, "reason": REASON, "why": "x" }), "why"),
    ] {
        let (status, answer) = desk.call("document-numbering/numbers/void", &body).await;
        assert_eq!((status, answer["field"].as_str()), (422, Some(field)), "{answer}");
    }
    for (context, field) in [
        (json!({}), "context"),
        (json!({ "REV": "B" }), "context.REV"),
        (json!({ "NOTE": "" }), "context.NOTE"),
        (json!({ "OTHER": "x" }), "context.OTHER"),
    ] {
        let (status, answer) = desk.correct(&old.number, context).await;
        assert_eq!((status, answer["field"].as_str()), (422, Some(field)), "{answer}");
    }
}

/// Corrected, revised, voided, replaced; the number in its place.
async fn a_whole_life(desk: &Desk<'_>, old: &Numbered) -> String {
    // A revision is void with its number, and is not voided itself.
    let body = json!({ "rev": "B", "number": old.number });
    let revised = desk.call(&format!("documents/{}/revisions", old.document), &body).await;
    let label = revised.1["document_number"].as_str().unwrap().to_owned();
    let (status, answer) = desk.void(&label, REASON).await;
    assert_eq!((status, answer["field"].as_str()), (422, Some("number")), "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains(&old.number), "{answer}");
    let (_, answer) = desk.correct(&old.number, json!({ "NOTE": "better" })).await;
    assert_eq!(answer["correction"]["context"]["NOTE"], json!({"old": "n", "new": "better"}));
    desk.void(&old.number, REASON).await;
    assert_eq!(desk.rows(&label).await[0]["status"], "voided");
    let (_, body) = desk.generate(&old.document, &json!({ "replaces": old.number })).await;
    let new = body["document_number"].as_str().unwrap().to_owned();
    let (status, body) = desk.generate(&old.document, &json!({ "replaces": old.number })).await;
    assert_eq!((status, &body["status"]), (200, &json!("issued")), "{body}");
    let row = desk.rows(&old.number).await.remove(0);
    assert_eq!(row["voided_by"], "local", "{row}");
    assert_eq!(row["void_reason"], REASON);
    assert_eq!(row["replaced_by"], new);
    assert_eq!(row["corrections"][0]["context"]["NOTE"]["new"], "better");
    assert_eq!(row["chain"], json!([old.number, new]));
    let row = desk.rows(&new).await.remove(0);
    assert_eq!((&row["replaces"], &row["chain"]), (&json!(old.number), &json!([old.number, new])));
    let (_, list) = desk.get("numbers?status=replaced&from=2020-01-01&kinds=number").await;
    assert_eq!(list["numbers"][0]["document_number"], old.number, "{list}");
    new
}

async fn of_a_range(desk: &Desk<'_>, old: &Numbered) {
    // One number of a range.
    let range = json!({ "type": "ROLL", "count": 5 });
    let (status, body) = desk.call("document-numbering/batches", &range).await;
    assert_eq!(status, 201, "{body}");
    assert_eq!(desk.void("ROLL-0003", REASON).await.0, 200);
    let rows = desk.rows("ROLL-0003").await;
    assert_eq!((&rows[0]["status"], &rows[0]["found_as"]), (&json!("voided"), &json!("range")));
    let row = desk.rows("ROLL-0002").await.remove(0);
    assert_eq!(row["status"], "issued", "{row}");
    let void = (&row["void_count"], &row["void_numbers"]);
    assert_eq!(void, (&json!(1), &json!(["ROLL-0003"])), "{row}");
    let (status, body) = desk
        .call(
            "document-numbering/batches",
            &json!({
                "documents": [{ "document_id": "b", "type": "LIFE", "replaces": old.number }],
            }),
        )
        .await;
    let problem = &body["items"][0]["problem"];
    assert_eq!((status, &problem["field"]), (200, &json!("replaces")), "{body}");
}

fn on_paper(deployment: &Deployment, old: &Numbered, new: &str) {
    let csv = deployment.ok(&["export", "--series", "LIFE"]);
    let parts = [&*old.number, ",replaced,", REASON, new];
    let has_all = |line: &str| parts.iter().all(|part| line.contains(*part));
    assert!(csv.lines().any(has_all), "{csv}");
    let statement = ["statement", "--series", "LIFE", "--period", "2024"];
    let paper = deployment.ok(&statement);
    for said in [
        "(1)  of these, void",
        "(1)  of the void ones, replaced by another number",
        &format!("{} (1): Void, and replaced", old.number),
        &format!("Issued, and voided later: {REASON}"),
        &format!("in its place: {new}"),
    ] {
        assert!(paper.contains(said), "{said}: {paper}");
    }
    let thai = deployment.ok(&[&statement[..], &["--language", "th"]].concat());
    assert!(thai.contains("ยกเลิก"), "{thai}");
}
