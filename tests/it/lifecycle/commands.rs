//! Who may void and replace over HTTP, and the commands that do.

use serde_json::{Value, json};

use super::{REASON, apply};
use crate::deployment::Deployment;

/// Two projects have the same texts.
const TWIN: &str = r#"
[[series]]
code = "TWIN"
name = "Twin"
template = "TWIN-{SEQ:4}"
unique_within = ["project"]
serves = { types = ["TWIN"] }
serials = [{ counter = ["project"] }]
"#;

/// Callers do not void; a registrar does, within its series and projects, and takes nothing.
#[tokio::test]
async fn who_voids_is_a_registrar_and_within_its_reach() {
    let deployment = {
        let mut deployment = Deployment::embedded();
        deployment.extra = "[auth]\nmode = \"on\"\n".into();
        deployment
    };
    apply(&deployment, "LIFE", "LIFE-{SEQ:4}-{REV}");
    apply(&deployment, "OTHER", "OTHER-{SEQ:4}-{REV}");
    let token = |name: &str, options: &[&str]| {
        let told = deployment.ok(&[&["token", "create", name][..], options].concat());
        told.lines().next().unwrap().trim().to_owned()
    };
    let caller = token("desk", &["--role", "caller"]);
    let registrar = token("registry", &["--role", "registrar", "--series", "OTHER"]);
    let whole = token("head", &["--role", "registrar"]);
    let service = deployment.serve();
    let call = async |secret: &str, path: &str, body: Value| {
        let url = format!("{}/api/v1/{path}", service.url);
        let request = testkit::client().post(url).bearer_auth(secret).json(&body);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, body) =
        call(&caller, "documents/d1/generate-number", json!({ "type": "LIFE" })).await;
    assert_eq!(status, 201, "{body}");
    let number = body["document_number"].clone();
    let void = json!({ "number": number, "reason": REASON });
    let path = "document-numbering/numbers/void";
    let (status, body) = call(&caller, path, void.clone()).await;
    assert_eq!((status, &body["code"]), (403, &json!("not-permitted")), "{body}");
    let (status, body) = call(&registrar, path, void.clone()).await;
    assert_eq!((status, &body["code"]), (404, &json!("number-not-found")), "{body}");
    let (status, body) =
        call(&whole, "documents/d2/generate-number", json!({ "type": "LIFE" })).await;
    assert_eq!((status, &body["code"]), (403, &json!("not-permitted")), "{body}");
    let (status, body) = call(&whole, path, void.clone()).await;
    assert_eq!((status, &body["voided_by"]), (200, &json!("head")), "{body}");
    let (status, body) = call(&whole, path, void).await;
    assert_eq!((status, &body["replayed"]), (200, &json!(true)), "{body}");
    // A caller replaces what it took and another user voided.
    let replaced = json!({ "type": "OTHER", "replaces": number });
    let (status, body) = call(&caller, "documents/d1/generate-number", replaced).await;
    assert_eq!(status, 201, "{body}");
    // What lies beyond a reader's reach is not named beside what it sees.
    let new = body["document_number"].as_str().unwrap().to_owned();
    for (secret, replaces) in [(&registrar, Value::Null), (&whole, number.clone())] {
        let url = format!("{}/api/v1/document-numbering/numbers/{new}", service.url);
        let answer = testkit::client().get(url).bearer_auth(secret).send().await.unwrap();
        let body: Value = answer.json().await.unwrap();
        let row = &body["numbers"][0];
        assert_eq!((&row["document_number"], &row["replaces"]), (&json!(new), &replaces), "{body}");
    }
    assert!(service.terminate());
}

/// The commands: a void number and its successor in one, and what is left to do where the second
/// half fails.
#[tokio::test]
async fn one_command_voids_a_number_and_takes_its_successor() {
    let deployment = Deployment::embedded();
    apply(&deployment, "LIFE", "LIFE-{TO}-{SEQ:4}");
    let next = |to: &str, options: &[&str]| {
        let to = format!("TO={to}");
        let args = ["next", "LIFE", "--date", "2024-01-22", "--set", &to];
        deployment.ok(&[&args[..], options].concat()).trim().to_owned()
    };
    let wrong = next("A", &["--document", "d1"]);
    let refused = |args: &[&str]| {
        let output = deployment.run(args);
        assert!(!output.status.success(), "{args:?} is not refused");
        String::from_utf8(output.stderr).unwrap()
    };
    let void = ["void", &wrong, "--reason", "wrong recipient typed"];
    // What is wrong with the new number is said while nothing is void.
    let said = refused(&[&void[..], &["--replace", "--set", "NOWHERE=x"]].concat());
    assert!(said.contains("unknown-variable") || said.contains("NOWHERE"), "{said}");
    let said = refused(&["next", "LIFE", "--replaces", &wrong, "--set", "TO=B"]);
    assert!(said.contains("not void"), "{said}");
    let right = deployment.ok(&[&void[..], &["--replace", "--set", "TO=B"]].concat());
    let right = right.trim().to_owned();
    assert!(right.starts_with("LIFE-B-"), "{right}");
    let again = deployment.ok(&[&void[..], &["--replace", "--set", "TO=B"]].concat());
    assert_eq!(again.trim(), right, "the same command again finds it");
    let said = refused(&["void", &wrong, "--reason", "another reason of mine"]);
    assert!(said.contains("is void since") && said.contains("wrong recipient typed"), "{said}");
    // A retry without a document finds its number, too.
    let loose = next("C", &[]);
    deployment.ok(&["void", &loose, "--reason", "no document named"]);
    let one = next("D", &["--replaces", &loose]);
    assert_eq!(next("D", &["--replaces", &loose]), one);
    let told = deployment.ok(&["find", "--status", "replaced", "--json"]);
    assert_eq!(told.matches("\"replaced\"").count(), 2, "{told}");
    // One text in two scopes, once within a range: which one is meant is not guessed.
    let twin = deployment.path("twin.toml");
    std::fs::write(&twin, TWIN).unwrap();
    deployment.apply(&[twin]);
    deployment.ok(&["next", "TWIN", "--project", "A", "--count", "3"]);
    for _ in 0..2 {
        deployment.ok(&["next", "TWIN", "--project", "B"]);
    }
    let said = refused(&["void", "TWIN-0002", "--reason", REASON]);
    assert!(said.contains("2 numbers have the text"), "{said}");
    deployment.ok(&["void", "TWIN-0002", "--project", "A", "--reason", REASON]);
    for (project, count) in [("A", 1), ("B", 0)] {
        let find = ["find", "--number", "TWIN-0002", "--project", project, "--json"];
        let told = deployment.ok(&find);
        assert_eq!(told.matches("\"void_reason\"").count(), count, "{told}");
    }
    let corrected = ["correct", &one, "--set", "NOTE=x", "--reason", "noted too late"];
    assert_eq!(deployment.ok(&corrected).trim(), one);
    let said = refused(&["correct", &one, "--set", "TO=x", "--reason", "noted too late"]);
    assert!(said.contains("shows TO"), "{said}");
    deployment.assert_clean();
}
